#![forbid(unsafe_code)]
//! A question, its design and its plan.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod plan;
pub mod purpose;
pub mod study;
