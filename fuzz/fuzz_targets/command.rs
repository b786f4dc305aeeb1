//! See `stackrace::testing::command`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::command(data));
