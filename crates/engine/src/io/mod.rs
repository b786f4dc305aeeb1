//! How an operation reaches the kernel: by a call, by a ring, or not at all.

pub(crate) mod null;
pub(crate) mod sync;

use rustix::io::Errno;

use crate::shape::Step;

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What the system said; 0 where it reported success.
    pub(crate) errno: i32,
    /// What is wrong although the system reported success; empty otherwise.
    pub(crate) detail: &'static str,
}

impl Fault {
    /// A read that returned nothing.
    pub(crate) const END_OF_FILE: Fault = Fault {
        errno: 0,
        detail: "the file ends here: it is shorter than the phase was told",
    };
    /// A write that moved nothing.
    pub(crate) const NOTHING_WRITTEN: Fault = Fault {
        errno: 0,
        detail: "nothing was written",
    };
    /// A ring that refuses what it should take.
    pub(crate) const NOT_TAKEN: Fault = Fault {
        errno: 0,
        detail: "the ring did not take it",
    };
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Fault {
        Fault {
            errno: errno.raw_os_error(),
            detail: "",
        }
    }
}

/// Does one operation at a time.
pub(crate) trait Device {
    /// Does a read or write and returns the bytes it moved: at least one.
    fn issue(&mut self, step: &Step) -> Result<u32, Fault>;
    /// Makes what was written to this file durable.
    fn sync(&mut self, target: u32) -> Result<(), Fault>;
}
