#![forbid(unsafe_code)]
//! What was measured, kept: the log of a run, its index, tables.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod record;
pub mod tables;
