//! See `stackrace::testing::trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::trace(data));
