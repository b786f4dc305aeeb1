#![forbid(unsafe_code)]
//! Records the calls of an application to storage, by programs in the kernel.
//!
//! `docs/architecture.md` says what the room does and which it may use.

pub mod capture;
