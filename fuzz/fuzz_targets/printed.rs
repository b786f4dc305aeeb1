//! See `stackrace::testing::printed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::printed(data));
