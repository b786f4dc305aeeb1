//! See `stackrace::testing::fio`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::fio(data));
