//! See `stackrace::testing::unit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::unit(data));
