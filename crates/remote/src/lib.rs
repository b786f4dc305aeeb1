#![forbid(unsafe_code)]
//! Other machines and disposable ones.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod agent;
pub mod lab;
