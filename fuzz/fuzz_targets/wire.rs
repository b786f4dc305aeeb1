//! See `stackrace::testing::wire`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::wire(data));
