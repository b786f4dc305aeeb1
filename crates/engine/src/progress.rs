//! How far a worker is.

/// Operations that were completed, fsyncs left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) ops: u64,
    /// Bytes they moved.
    pub(crate) bytes: u64,
    /// Sum of their latencies, ns.
    pub(crate) latency_ns: u128,
}

impl Progress {
    /// The sum of the two.
    pub(crate) fn plus(self, more: Self) -> Self {
        Self {
            ops: self.ops + more.ops,
            bytes: self.bytes + more.bytes,
            latency_ns: self.latency_ns + more.latency_ns,
        }
    }

    /// The progress after an earlier reading of the same recorder.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            ops: self.ops - earlier.ops,
            bytes: self.bytes - earlier.bytes,
            latency_ns: self.latency_ns - earlier.latency_ns,
        }
    }
}
