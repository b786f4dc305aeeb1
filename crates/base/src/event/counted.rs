//! What the system counted while a trial was measured.

use super::fact::Fact;
use serde::{Deserialize, Serialize};

/// What the system counted during the measured part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// CPU of this process, user, ns.
    pub(crate) cpu_user_ns: u64,
    /// CPU of this process, system, ns.
    pub(crate) cpu_system_ns: u64,
    /// CPU of the whole machine that was busy (user, nice, system, irq, softirq), ns.
    pub(crate) cpu_machine_busy_ns: u64,
    /// CPU the hypervisor took away, ns.
    pub(crate) cpu_steal_ns: u64,
    /// Processors.
    pub(crate) cpus: u32,
    /// Block devices under the stack.
    pub(crate) devices: Vec<DeviceCounted>,
    /// Bytes this process asked the kernel to read (`rchar`).
    pub(crate) asked_read_bytes: u64,
    /// Bytes this process caused to be fetched from storage (`read_bytes`).
    pub(crate) fetched_bytes: u64,
    /// Bytes this process caused to be sent to storage (`write_bytes`).
    pub(crate) sent_bytes: u64,
    /// Bytes read that came from the page cache: asked less fetched, never below 0; none where
    /// the process could not be asked.
    // None is not 0: a process that could not be asked says nothing about its cache.
    pub(crate) cache_hit_bytes: Option<u64>,
    /// Pressure stall, ns, some task waiting: cpu, io, memory; none where the kernel has no PSI.
    // Pressure is missing on kernels without PSI, and in most containers.
    pub(crate) pressure_cpu_ns: Option<u64>,
    /// See `pressure_cpu_ns`.
    pub(crate) pressure_io_ns: Option<u64>,
    /// See `pressure_cpu_ns`.
    pub(crate) pressure_memory_ns: Option<u64>,
    /// The network line the data take, as it was measured when the stack was set up: `line NAME`,
    /// `NUMBER B/s, …`. None: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<Fact>,
    /// From the first reading of the counters to the last, ns: a little more than the measured part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window_ns: Option<u64>,
    /// Of `sent_bytes`, those that were dropped before they were sent: of files cut or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cancelled_bytes: Option<u64>,
    /// Bytes of the whole machine that were in memory only (dirty, or on their way) when a phase
    /// ended, beyond those when it began; the most of all phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unwritten_bytes: Option<u64>,
    /// Bytes the machine fetched from its swap space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) swapped_in_bytes: Option<u64>,
    /// Bytes the machine moved to its swap space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) swapped_out_bytes: Option<u64>,
    /// Times a processor was slowed down because it was hot, over all processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) throttled: Option<u64>,
    /// Pauses of a second or more in which the program was stopped, frozen or had no processor, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paused_ns: Option<u64>,
    /// By how much a thread that only has to wake up was late, all together, ns; pauses included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) late_ns: Option<u64>,
    /// How long the machine was suspended, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) suspended_ns: Option<u64>,
    /// By how much the wall clock was set, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clock_set_ns: Option<i64>,
    /// The thread of the kernel that used the most processor time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kernel_thread: Option<ThreadCounted>,
    /// Network interfaces of the machine that moved anything, where the data lie on no device of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) interfaces: Vec<InterfaceCounted>,
}

/// What one network interface moved, frames and headers with it (differences over the measured part).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InterfaceCounted {
    /// `eth0`.
    pub(crate) interface: String,
    /// What came in, with the frames of other programs.
    pub(crate) received_bytes: u64,
    /// What went out, likewise.
    pub(crate) sent_bytes: u64,
    /// The speed at which it is connected, B/s in each direction; none: it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_per_s: Option<u64>,
}

/// Processor time of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ThreadCounted {
    /// `kworker/u8:2-loop0`, as the kernel names it at the end.
    pub(crate) name: String,
    /// User and system, ns.
    pub(crate) cpu_ns: u64,
}

/// What the block layer counted for one device (differences over the measured part).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeviceCounted {
    /// `loop3`, `nvme0n1`.
    pub(crate) device: String,
    /// Read requests completed.
    pub(crate) reads: u64,
    /// Bytes of the completed read requests.
    pub(crate) read_bytes: u64,
    /// Write requests completed.
    pub(crate) writes: u64,
    /// Bytes of the completed write requests.
    pub(crate) written_bytes: u64,
    /// Flush requests completed; none where the kernel does not count them.
    pub(crate) flushes: Option<u64>,
    /// Time with at least one request in flight, ns.
    pub(crate) busy_ns: u64,
    /// Time weighted by requests in flight, ns.
    pub(crate) weighted_ns: u64,
    /// `write back` (the device may hold what was written in volatile memory until it is flushed) or
    /// `write through`, as the kernel takes it to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) write_cache: Option<String>,
}
