//! What a served device is like, and what is known of it.

use super::log::{DeviceLog, Medium, SharedLog};
use stackrace_drives::Nanos;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Bytes of memory that are kept or not.
pub(super) const PAGE: u64 = 4096;

/// What a device says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceShape {
    /// Size, bytes; a multiple of the physical sector.
    pub bytes: u64,
    /// Smallest unit it reads and writes, bytes; a power of two.
    pub logical_sector: u64,
    /// What its media are written in, bytes; a power of two.
    pub physical_sector: u64,
    /// Whether it turns.
    pub rotational: bool,
    /// Whether it loses what was not flushed when the power fails.
    pub volatile_cache: bool,
    /// Whether it takes discards.
    pub discards: bool,
}

/// How a driver knows the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// With their direction and size, as `linux/ublk_cmd.h` has it today.
    Encoded,
    /// By their numbers alone: before Linux 6.4.
    Plain,
}

impl Dialect {
    /// What a command is called in it.
    pub(super) const fn word(self, command: u32) -> u32 {
        match self {
            Self::Encoded => command,
            Self::Plain => command & 0xff,
        }
    }
}

/// A device that is served until the process ends.
#[derive(Debug)]
pub struct ServedDevice {
    pub(super) path: PathBuf,
    pub(super) counters: Arc<Counters>,
    pub(super) number: u32,
    pub(super) dialect: Dialect,
    pub(super) log: Option<SharedLog>,
}

/// How a device is served.
#[derive(Debug, Clone, Default)]
pub struct Serving {
    /// Completions come so much before the model's instant, ns: what the way to the kernel costs.
    pub lead: Nanos,
    /// Whether all that is written is kept, with its instants: see [`ServedDevice::log`].
    pub logged: bool,
    /// What it holds at first; none: zeros.
    pub medium: Option<Medium>,
}

/// What a device has done so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    /// The thread that serves it, as the kernel numbers it.
    pub(super) thread: AtomicI32,
}

impl ServedDevice {
    /// Path of the block device: `/dev/ublkbN`.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// What it was told to write since it appeared; none: that is not kept.
    pub fn log(&self) -> Option<DeviceLog> {
        self.log.as_ref().map(SharedLog::read)
    }

    /// Requests completed so far, and the processor time that the serving thread took, ns; 0 once it
    /// has ended.
    pub fn cost(&self) -> (u64, u64) {
        let requests = self.counters.requests.load(Ordering::Relaxed);
        // Asked only here: a question after each request would cost about as much as the model.
        let thread = self.counters.thread.load(Ordering::Relaxed);
        let said = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
        let busy = said
            .ok()
            .and_then(|said| said.split(' ').next()?.parse().ok());
        (requests, busy.unwrap_or(0))
    }
}

/// Why a device cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot {tried} a served block device: {why}")]
pub struct ServeError {
    tried: &'static str,
    why: String,
}

impl ServeError {
    pub(super) fn new(tried: &'static str, why: impl std::fmt::Display) -> Self {
        Self {
            tried,
            why: why.to_string(),
        }
    }
}
