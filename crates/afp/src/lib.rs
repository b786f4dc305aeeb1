#![forbid(unsafe_code)]
//! A client for AFP, the protocol of Mac file servers.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod afp;
