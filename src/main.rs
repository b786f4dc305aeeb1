#![forbid(unsafe_code)]
//! The program.

mod event;
mod setting;
mod time;
mod unit;

fn main() {}
