#![forbid(unsafe_code)]
//! What each layer of a storage stack stands on: what a layer is, its set-up, the guard of disks.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod foundation;
