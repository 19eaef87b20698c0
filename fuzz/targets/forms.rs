//! libFuzzer's way to the check of the same name.

#![no_main]

#[path = "../checks/forms.rs"]
mod forms;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forms::check(bytes));
