//! libFuzzer's way to the check of the same name.

#![no_main]

#[path = "../checks/token.rs"]
mod token;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| token::check(bytes));
