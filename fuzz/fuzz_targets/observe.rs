//! See `stackrace::testing::observe`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::observe(data));
