//! Who hears of promised operations while they happen.

use crate::outcome::PromiseRecord;

/// A listener to promised operations as they happen: where a power cut takes the ledger of this
/// machine, another one has it.
pub trait Acknowledged: Sync {
    /// A thread is about to begin an operation. It may be kept waiting: no clock runs yet.
    fn begins(&self, thread: u32);
    /// An operation was acknowledged, or failed.
    fn ended(&self, record: &PromiseRecord);
}
