#![forbid(unsafe_code)]
//! The printed results of other tools, read into our own words.
//!
//! `docs/architecture.md` says what each room does and which it may use.

// Below the workloads, so that an edit of one does not check all importers again.
pub mod import;
