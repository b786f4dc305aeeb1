//! See `stackrace::testing::afp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::afp(data));
