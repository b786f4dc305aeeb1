//! What the system counted while a trial was measured.

use super::fact::Fact;
use serde::{Deserialize, Serialize};

/// Counters of the system during the measured part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// CPU of this process, user, ns.
    pub cpu_user_ns: u64,
    /// CPU of this process, system, ns.
    pub cpu_system_ns: u64,
    /// CPU of the whole machine that was busy (user, nice, system, irq, softirq), ns.
    pub cpu_machine_busy_ns: u64,
    /// CPU the hypervisor took away, ns.
    pub cpu_steal_ns: u64,
    /// Processors.
    pub cpus: u32,
    /// Block devices under the stack.
    pub devices: Vec<DeviceCounted>,
    /// Bytes this process asked the kernel to read (`rchar`).
    pub asked_read_bytes: u64,
    /// Bytes this process caused to be fetched from storage (`read_bytes`).
    pub fetched_bytes: u64,
    /// Bytes this process caused to be sent to storage (`write_bytes`).
    pub sent_bytes: u64,
    /// Bytes read that came from the page cache: asked less fetched, never below 0; none where
    /// the process could not be asked.
    // None is not 0: a process that could not be asked says nothing about its cache.
    pub cache_hit_bytes: Option<u64>,
    /// Pressure stall, ns, some task waiting: cpu, io, memory; none where the kernel has no PSI.
    // Pressure is missing on kernels without PSI, and in most containers.
    pub pressure_cpu_ns: Option<u64>,
    /// See `pressure_cpu_ns`.
    pub pressure_io_ns: Option<u64>,
    /// See `pressure_cpu_ns`.
    pub pressure_memory_ns: Option<u64>,
    /// The network line the data take, as it was measured when the stack was set up: `line NAME`,
    /// with its rate. `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Fact>,
    /// Time from the first reading of the counters to the last, ns: a little more than the measured part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Bytes of `sent_bytes` that were dropped before they were sent: of files cut or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_bytes: Option<u64>,
    /// Bytes of the whole machine that were in memory only (dirty, or on their way) when a phase
    /// ended, beyond those when it began; the most of all phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten_bytes: Option<u64>,
    /// Bytes the machine fetched from its swap space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_in_bytes: Option<u64>,
    /// Bytes the machine moved to its swap space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_out_bytes: Option<u64>,
    /// Times a processor was slowed down because it was hot, over all processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<u64>,
    /// Pauses of a second or more in which the program, or one that it started, was stopped, frozen or had no
    /// processor, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_ns: Option<u64>,
    /// Process that this program started and that was stopped for a second or more: `fio job (process 4711)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Lateness of a thread that only has to wake up, all together, ns; pauses included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ns: Option<u64>,
    /// Time the machine was suspended, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_ns: Option<u64>,
    /// Time by which the wall clock was set, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_set_ns: Option<i64>,
    /// The thread of the kernel that used the most processor time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_thread: Option<ThreadCounted>,
    /// Processor time of all threads of the kernel together, ns: its work for the trial belongs to no
    /// process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_threads_ns: Option<u64>,
    /// Network interfaces of the machine that moved anything, where the data lie on no device of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceCounted>,
}

/// Traffic of one network interface, frames and headers with it (differences over the measured part).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounted {
    /// `eth0`.
    pub interface: String,
    /// Bytes that came in, with the frames of other programs.
    pub received_bytes: u64,
    /// Bytes that went out, likewise.
    pub sent_bytes: u64,
    /// The speed at which it is connected, B/s in each direction; `None` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<u64>,
}

/// Processor time of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCounted {
    /// `kworker/u8:2-loop0`, as the kernel names it at the end.
    pub name: String,
    /// User and system, ns.
    pub cpu_ns: u64,
}

impl Counted {
    /// Counters of the storage below a directory: bytes of its own device, which stands first; and flushes of whichever
    /// of them counts these, as a partition counts none and its disk does. None where no device is below it.
    pub fn storage(&self) -> Option<DeviceCounted> {
        let flushes = self.devices.iter().filter_map(|device| device.flushes);
        let flushes = flushes.max();
        let own = self.devices.first()?.clone();
        Some(DeviceCounted { flushes, ..own })
    }
}

/// Counters of the block layer for one device (differences over the measured part).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceCounted {
    /// `loop3`, `nvme0n1`.
    pub device: String,
    /// Read requests completed.
    pub reads: u64,
    /// Bytes of the completed read requests.
    pub read_bytes: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Bytes of the completed write requests.
    pub written_bytes: u64,
    /// Flush requests completed; none where the kernel does not count them.
    pub flushes: Option<u64>,
    /// Time with at least one request in flight, ns.
    pub busy_ns: u64,
    /// Time weighted by requests in flight, ns.
    pub weighted_ns: u64,
    /// `write back` (the device may hold what was written in volatile memory until it is flushed) or
    /// `write through`, as the kernel takes it to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<String>,
}
