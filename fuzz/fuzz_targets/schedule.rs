//! See `stackrace::testing::schedule`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::schedule(data));
