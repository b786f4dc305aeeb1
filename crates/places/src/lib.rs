#![forbid(unsafe_code)]
//! The places where a study runs.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod place;
