//! The live page of the real program, asked over real HTTP: who is let in, what is shown, what it takes
//! of the machine, and that nothing is done that was not allowed.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[macro_use]
#[path = "../support/study.rs"]
mod study;

#[expect(dead_code, reason = "other tests need file systems too")]
#[path = "../support/mod.rs"]
mod support;

mod control;
mod limits;
mod pages;
mod server;
