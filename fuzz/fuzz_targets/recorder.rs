//! See `stackrace::testing::recorder`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::recorder(data));
