//! See `stackrace::testing::arguments`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::arguments(data));
