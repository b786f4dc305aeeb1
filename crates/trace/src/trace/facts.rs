//! What a trace says of itself: where it was recorded, the tree before it, and how it ended.

use serde::{Deserialize, Serialize};

/// Version of the format. It changes when an older program would read a trace wrongly.
pub(super) const VERSION: u32 = 2;
/// The oldest version that is read. It has no targets of links, nothing of the page cache, and nothing of the devices.
pub(super) const OLDEST: u32 = 1;

/// Where a trace was recorded. It stands at its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceOrigin {
    /// Version of the program that recorded it.
    pub program: String,
    /// Kernel, as `uname -r` says.
    pub kernel: String,
    /// Architecture, as Rust names it: `x86_64`, `aarch64`.
    pub architecture: String,
    /// File system of the recorded directory: `ext4`.
    pub file_system: String,
    /// Processors that the machine had.
    pub processors: u32,
    /// Largest share of the application's processor time that recording might cost, in 1/10,000.
    pub cost_limit: u32,
    /// The trace is a part of another one: it begins in the middle of the application.
    pub cut: bool,
}

/// Kind of an entry of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// Holds other entries.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A device, a socket, a pipe: it is not made again.
    Other,
}

/// An entry of the tree as it was before the recording began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptEntry {
    /// Its name: see [`super::Names`].
    pub path: u32,
    /// Directory, file, link, or something else.
    pub kind: EntryKind,
    /// Its size, bytes.
    pub size: u64,
    /// Bytes that are stored; fewer than the size where it has holes.
    pub stored: u64,
    /// Name that a link leads to; 0: it is no link, or leads elsewhere.
    pub target: u32,
}

/// A part of a file that was in memory before the recording began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResidentRange {
    /// The file's name.
    pub path: u32,
    /// Where it begins, bytes.
    pub offset: u64,
    /// How long it is, bytes.
    pub length: u64,
}

/// What the devices below a directory did, for all programs together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceTotal {
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Flushes; none where the kernel does not count them.
    pub flushes: Option<u64>,
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The application ended.
    Ended,
    /// The time was over.
    Time,
    /// Ctrl-C.
    Interrupted,
    /// The file reached its limit.
    FileLimit,
    /// The file system of the trace had no room.
    NoSpace,
    /// Recording cost more than was allowed.
    Cost,
    /// There were as many threads as a trace takes.
    Threads,
    /// The trace was cut out of another one.
    Cut,
}

/// How a recording ended. It stands at the end of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// Why; none only while it goes on.
    pub stopped: Option<StopReason>,
    /// Operations in the trace.
    pub operations: u64,
    /// Threads in the trace.
    pub threads: u64,
    /// Events that the kernel offered.
    pub events: u64,
    /// Events for which the ring had no room.
    pub lost: u64,
    /// Threads and processes that could not be followed: there were too many at once.
    pub not_followed: u64,
    /// Names that could not be resolved: too long, or relative to a directory that is not known.
    pub unresolved: u64,
    /// Files that were made on the same file system by names that are not below the directory; 0 before it was counted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub elsewhere: u64,
    /// Estimated processor time that the recording took from the application, ns.
    pub cost_ns: u64,
    /// Processor time of the application meanwhile, that of recording included, ns.
    pub processor_ns: u64,
    /// Length of the recording, ns.
    pub elapsed_ns: u64,
    /// What the devices did meanwhile; none: that is not counted there, or the trace is of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceTotal>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Ending {
    /// Share of events that were lost.
    pub fn lost_share(&self) -> f64 {
        share(self.lost, self.events)
    }

    /// Share of the application's processor time that recording cost.
    pub fn cost_share(&self) -> f64 {
        share(self.cost_ns, self.processor_ns.saturating_sub(self.cost_ns))
    }
}

/// One number as a share of another one; 0 of 0 is none.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}
