#![forbid(unsafe_code)]
//! The program.

mod event;
mod record;
mod report;
mod setting;
mod time;
mod unit;
mod verdict;

fn main() {}
