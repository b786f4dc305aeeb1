//! Whether what is read is what was written.
//!
//! Each 512-byte sector written under verification says what it is: file, offset, generation and a
//! checksum (`docs/formats/sector.md`). A [`ContentLedger`] remembers which generation each unit of each
//! file must hold; it is all that has to be kept to check every byte, in the same phase or in a
//! later one. A read that does not hold what the ledger says fails the phase, with the offset of
//! the first wrong sector, what was expected and what was found.
//!
//! An operation takes the units it touches in the ledger before it is issued and gives them back
//! when its content was stamped or checked, so that no two operations under way overlap: what a
//! read must return is always known, and no alarm is false. Which operations are issued, and in
//! which order, stays what the seed says.
//!
//! Stamping and checking are no part of any latency: the clock is read once more, after the one
//! and before the other.

mod finding;
mod lay_out;
mod ledger;
mod sector;
mod verifier;

pub use lay_out::lay_out_verified;
pub use ledger::{ContentLedger, unit_bytes};

pub(crate) use finding::ContentMismatch;
pub(crate) use verifier::{Slots, Verified};

#[cfg(test)]
mod tests;
