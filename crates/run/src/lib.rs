#![forbid(unsafe_code)]
//! A study carried out: prepared, run round by round, stopped and carried on.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod crash;
pub mod execute;
pub mod prepare;
pub mod run;
