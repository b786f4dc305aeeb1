//! What one stretch of a run did.

use crate::outcome::Op;

/// The operations of one stretch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) created: u64,
    pub(super) read: u64,
    pub(super) appended: u64,
    pub(super) deleted: u64,
}

impl From<Counts> for Vec<(Op, u64)> {
    fn from(counts: Counts) -> Self {
        vec![
            (Op::Create, counts.created),
            (Op::Open, counts.read),
            (Op::Append, counts.appended),
            (Op::Unlink, counts.deleted),
        ]
    }
}
