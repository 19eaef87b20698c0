//! libFuzzer's way to the check of the same name.

#![no_main]

#[path = "../checks/config.rs"]
mod config;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| config::check(bytes));
