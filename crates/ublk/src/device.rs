//! What a served device is like, and what is known of it.

use super::log::{DeviceLog, Medium, SharedLog};
use stackrace_drives::Nanos;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Bytes of memory that are kept or not.
pub(super) const PAGE: u64 = 4096;

/// The properties that a device states of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceShape {
    /// Size, bytes; a multiple of the physical sector.
    pub bytes: u64,
    /// Smallest unit it reads and writes, bytes; a power of two.
    pub logical_sector: u64,
    /// Unit in which its media are written, bytes; a power of two.
    pub physical_sector: u64,
    /// Set if it turns.
    pub rotational: bool,
    /// Set if it loses what was not flushed when the power fails.
    pub volatile_cache: bool,
    /// Set if it takes discards.
    pub discards: bool,
}

/// The form in which a driver knows the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Commands with their direction and size, as `linux/ublk_cmd.h` has it today.
    Encoded,
    /// Commands by their numbers alone: before Linux 6.4.
    Plain,
}

impl Dialect {
    /// The name of a command in it.
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

/// The settings of a served device.
#[derive(Debug, Clone, Default)]
pub struct Serving {
    /// Completions come so much before the model's instant, ns: what the way to the kernel costs.
    pub lead: Nanos,
    /// Set if all that is written is kept, with its instants: see [`ServedDevice::log`].
    pub logged: bool,
    /// Content that it holds at first; `None` means zeros.
    pub medium: Option<Medium>,
}

/// The work of a device so far.
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

    /// The writes it was told to do since it appeared; `None` if they are not kept.
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

/// The error of serving a device.
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
