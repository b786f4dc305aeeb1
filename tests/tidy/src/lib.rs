//! Measures a checkout of stackrace and checks the rules its source keeps.
//!
//! The rules are in `tests/rules.rs` of this package; `bench/house` prints the figures.

#![forbid(unsafe_code)]

pub mod docs;
pub mod figures;
pub mod imports;
pub mod packages;
pub mod rules;
pub mod source;
pub mod texts;
