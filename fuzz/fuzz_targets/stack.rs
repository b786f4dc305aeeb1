//! See `stackrace::testing::stack`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::stack(data));
