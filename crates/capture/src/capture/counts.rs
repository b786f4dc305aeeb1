//! What the kernel side counts, and what that cost.

/// What the kernel side counted so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// Calls, wakes, switches that were looked at.
    pub(super) handled: u64,
    /// Events that were offered to the ring.
    pub(super) sent: u64,
    /// Events for which it had no room.
    pub(super) lost: u64,
    /// Processor time of those who are followed, ns.
    pub(super) processor_ns: u64,
    /// Processes and threads for which there was no room.
    pub(super) not_followed: u64,
}
