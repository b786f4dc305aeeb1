//! Power cuts in virtual time: what the drives of a trial were told to write leaves the guest; in a
//! fresh one the drives hold what a cut would have left, the stack is brought back, and every promise
//! is checked.
//!
//! Of a real machine the power is cut while its ledger grows here, line by line.

mod capture;
mod drive_log;
mod heard;
mod instants;
mod medium;
mod recover;
mod told;

pub use capture::CrashSide;
pub use capture::{Capture, CrashPackage};
pub use drive_log::drive_log;
pub use heard::HeardLedger;
pub use instants::instants;
pub use recover::recover;
pub use told::LedgerStream;
