//! See `stackrace::testing::shape`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::shape(data));
