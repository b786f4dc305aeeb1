//! See `stackrace::testing::stats`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::stats(data));
