#![forbid(unsafe_code)]
//! What all rooms share: units, time, settings, events, the store's files.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod appendlog;
pub mod bounded;
pub mod event;
pub mod failure;
pub mod interrupt;
pub mod owned;
pub mod printed;
pub mod private;
pub mod setting;
pub mod time;
pub mod unit;
pub mod video;
