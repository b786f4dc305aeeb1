//! See `stackrace::testing::journal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::journal(data));
