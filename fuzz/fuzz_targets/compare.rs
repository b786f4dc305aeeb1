//! See `stackrace::testing::compare`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::compare(data));
