//! See `stackrace::testing::shell_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::shell_answer(data));
