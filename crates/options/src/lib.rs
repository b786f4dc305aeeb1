#![forbid(unsafe_code)]
//! The options of the command line, as they are typed.
//!
//! `docs/architecture.md` says what each room does and which it may use.

// Apart from all that carries them out: nothing here is expanded again after an edit elsewhere.
pub mod options;
