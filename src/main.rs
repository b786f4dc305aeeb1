#![forbid(unsafe_code)]
//! The program.
fn main() {}
