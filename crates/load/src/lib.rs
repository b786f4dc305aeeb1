#![forbid(unsafe_code)]
//! What is done to a stack.
//!
//! `docs/architecture.md` says what each room does and which it may use.

// What other tools print is read below this package, in `crates/import`.
pub mod programs;
pub mod tools;
pub mod workload;
