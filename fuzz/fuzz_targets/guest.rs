//! See `stackrace::testing::guest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::guest(data));
