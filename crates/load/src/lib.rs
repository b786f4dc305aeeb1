#![forbid(unsafe_code)]
//! What is done to a stack, and what other tools say of it.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod crash;
pub mod import;
pub mod programs;
pub mod tools;
pub mod workload;
