#![no_main]
//! libFuzzer's way to the check of the same name.

#[path = "../checks/state.rs"]
mod state;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| state::check(bytes));
