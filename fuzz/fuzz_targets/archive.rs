//! See `stackrace::testing::archive`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::archive(data));
