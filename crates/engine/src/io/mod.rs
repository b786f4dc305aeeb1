//! How an operation reaches the kernel: by a call, by a ring, or not at all.

pub(crate) mod null;
pub(crate) mod sync;
pub(crate) mod update;
#[cfg_attr(not(target_os = "linux"), path = "no_uring.rs")]
pub(crate) mod uring;

use rustix::io::Errno;

use crate::shape::BlockStep;
use crate::verify::ContentMismatch;

/// The failure of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IoFailure {
    /// Error of the system; 0 where it reported success.
    pub(crate) errno: i32,
    /// The fault although the system reported success; empty otherwise.
    pub(crate) detail: &'static str,
}

impl IoFailure {
    /// A read that returned nothing.
    pub(crate) const END_OF_FILE: IoFailure = IoFailure {
        errno: 0,
        detail: "the file ends here: it is shorter than the phase was told",
    };
    /// A write that moved nothing.
    pub(crate) const NOTHING_WRITTEN: IoFailure = IoFailure {
        errno: 0,
        detail: "nothing was written",
    };
    /// A read with wrong content; the mismatch says what.
    pub(crate) const WRONG: IoFailure = IoFailure {
        errno: 0,
        detail: "the content is wrong",
    };
    /// A ring that takes no more operations.
    pub(crate) const NOT_TAKEN: IoFailure = IoFailure {
        errno: 0,
        detail: "the ring did not take it",
    };
}

impl From<Errno> for IoFailure {
    fn from(errno: Errno) -> IoFailure {
        IoFailure {
            errno: errno.raw_os_error(),
            detail: "",
        }
    }
}

/// A device that does one operation at a time.
pub(crate) trait IoDevice {
    /// Set if content is verified. Then every operation is prepared before it begins and checked
    /// after it is recorded, both outside its latency, at the cost of another clock reading.
    const VERIFIES: bool = false;

    /// Prepares the next operation. Returns false if it must wait, because an operation in progress
    /// uses the same bytes.
    #[inline(always)]
    fn prepare(&mut self, _step: &BlockStep) -> bool {
        true
    }
    /// Does a read or write and returns the bytes it moved: at least one.
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure>;
    /// Checks the content of an operation that moved this many bytes.
    #[inline(always)]
    fn check(&mut self, _step: &BlockStep, _moved: u32) -> Result<(), ContentMismatch> {
        Ok(())
    }
    /// Makes what was written to this file durable.
    fn sync(&mut self, target: u32) -> Result<(), IoFailure>;
}
