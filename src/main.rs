#![forbid(unsafe_code)]
//! The program.

mod event;
mod plan;
mod setting;
mod study;
mod time;
mod unit;

fn main() {}
