#![no_main]
//! libFuzzer's way to the check of the same name.

#[path = "../checks/config.rs"]
mod config;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| config::check(bytes));
