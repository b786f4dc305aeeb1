#![forbid(unsafe_code)]
//! What limits a figure, and what a comparison shows.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod audit;
pub mod published;
pub mod verdict;
