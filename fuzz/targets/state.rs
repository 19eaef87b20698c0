//! libFuzzer's way to the check of the same name.

#![no_main]

#[path = "../checks/state.rs"]
mod state;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| state::check(bytes));
