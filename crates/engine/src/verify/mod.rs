//! Checks that reads return what was written.
//!
//! Each 512-byte sector written with verification contains its file, offset, generation and a
//! checksum (`docs/formats/sector.md`). A [`ContentLedger`] records the generation each unit of
//! each file must hold; that is enough to check every byte, in the same phase or a later one. Wrong
//! content fails the phase; the error names the offset of the first wrong sector, the expected
//! content and the found content.
//!
//! An operation takes its units in the ledger before it is issued and returns them when its content
//! is stamped or checked. So no two outstanding operations overlap, the expected content is always
//! known, and there are no false alarms. Which operations are issued, and in which order, stays
//! what the seed says.
//!
//! Stamping and checking are not part of any latency: the clock is read after the former and before
//! the latter.

mod finding;
mod lay_out;
mod ledger;
pub(crate) mod sector;
mod slots;
mod verifier;

pub use lay_out::lay_out_verified;
pub use ledger::{ContentLedger, unit_bytes};

pub(crate) use finding::ContentMismatch;
pub(crate) use slots::Slots;
pub(crate) use verifier::Verified;

#[cfg(test)]
mod tests;
