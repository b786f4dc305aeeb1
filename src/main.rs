#![forbid(unsafe_code)]
//! The program.

mod event;
mod host;
mod journal;
mod setting;
mod stack;
mod time;
mod unit;

fn main() {}
