//! See `stackrace::testing::mountinfo`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::mountinfo(data));
