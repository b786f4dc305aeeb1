//! See `stackrace::testing::postmark`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::postmark(data));
