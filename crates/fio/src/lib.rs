#![forbid(unsafe_code)]
//! fio: its jobs looked at before fio itself is given them, and its reports read.
//!
//! `docs/architecture.md` says what the room does and which it may use.

pub mod fio;
