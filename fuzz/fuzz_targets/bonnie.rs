//! See `stackrace::testing::bonnie`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::bonnie(data));
