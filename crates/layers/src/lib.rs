#![forbid(unsafe_code)]
//! Storage stacks, layer by layer: set up, described, settled, torn down.
//!
//! `docs/architecture.md` says what each room does and which it may use.

pub mod stack;
