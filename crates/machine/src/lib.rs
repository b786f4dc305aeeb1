#![forbid(unsafe_code)]
//! A machine: its processes, its files, its counters, and what a run left on it.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod host;
pub mod journal;
pub mod observe;
