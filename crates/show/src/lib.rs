#![forbid(unsafe_code)]
//! What a reader sees: terminal, files, pages, a team's database.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod export;
pub mod gallery;
pub mod report;
#[cfg(feature = "postgresql")]
pub mod team;
pub mod web;
