//! See `stackrace::testing::sysbench`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackrace::testing::sysbench(data));
