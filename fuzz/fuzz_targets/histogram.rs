//! See `stackrace::testing::histogram`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::histogram(data));
