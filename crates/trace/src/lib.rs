#![forbid(unsafe_code)]
//! A recorded application: its calls to storage as a file, and how much of its time they are.
//!
//! `docs/architecture.md` says what the room does and which it may use.

pub mod trace;
