//! What the system counts while a trial runs: processor, block layer, page cache, pressure.
//!
//! A snapshot is taken right before the clock starts and right after it stops; the observation is
//! their difference. Each source is one file under `/proc`, parsed by a function that is tested
//! with real text. A value the machine does not offer is absent, never zero.

mod cpu;
mod diskstats;
mod environment;
mod group;
mod heat;
mod interfaces;
mod kernel_threads;
mod memory;
mod physical;
mod pressure;
mod process;
mod pulse;
mod slices;

pub use environment::{
    environment, environment_of, io_limit, kernel, limiting_facts, memory_available, memory_bytes,
    memory_bytes_of,
};

pub use pulse::{Pulse, StoppedLook};
pub use slices::SliceCounter;

use stackrace_base::event::{Counted, DeviceCounted, ThreadCounted};

/// Everything counted at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    process: Option<process::ProcessIo>,
    own_cpu: cpu::ProcessCpu,
    machine: Option<cpu::MachineCpu>,
    devices: Vec<(String, diskstats::DeviceTotals)>,
    pressure_cpu_ns: Option<u64>,
    pressure_io_ns: Option<u64>,
    pressure_memory_ns: Option<u64>,
    memory: Option<memory::MemoryCounters>,
    throttled: Option<u64>,
    write_caches: Vec<(String, String)>,
    kernel_threads: kernel_threads::Threads,
    interfaces: Vec<interfaces::InterfaceTotals>,
    at_ns: u64,
}

impl Snapshot {
    /// Reads all sources; `devices` are names as in `/proc/diskstats`.
    pub fn take(devices: &[String]) -> Self {
        Self {
            // Listed only on this machine: a snapshot from text has no processes.
            kernel_threads: kernel_threads::take(),
            at_ns: now_ns(),
            ..Self::read(devices, |path| std::fs::read_to_string(path).ok())
        }
    }

    /// Counts from `self` until now.
    pub fn until_now(&self, devices: &[String]) -> Counted {
        self.until_at(now_ns(), devices)
    }

    fn until_at(&self, at_ns: u64, devices: &[String]) -> Counted {
        let mut later = Self::read(devices, |path| std::fs::read_to_string(path).ok());
        later.at_ns = at_ns;
        // Last, as the time it takes is no workload's. What ran for less than a tick shows in no count of ticks, and
        // there may be hundreds of threads.
        if at_ns.saturating_sub(self.at_ns) >= kernel_threads::TICK_NS {
            later.kernel_threads = kernel_threads::take();
        }
        self.until(&later)
    }

    /// A snapshot of files that `read` returns by path; `None`: there is no such file.
    pub fn read(devices: &[String], read: impl Fn(&str) -> Option<String>) -> Self {
        let disks = read("/proc/diskstats")
            .map(|text| diskstats::parse(&text))
            .unwrap_or_default();
        let machine = read("/proc/stat").and_then(|text| cpu::parse(&text));
        let page = rustix::param::page_size() as u64;
        Self {
            process: read("/proc/self/io").and_then(|text| process::parse(&text)),
            own_cpu: cpu::own(read("/proc/self/stat").as_deref()),
            machine,
            memory: read("/proc/vmstat").and_then(|text| memory::parse(&text, page)),
            throttled: heat::throttled(machine.map_or(0, |m| m.cpus.min(CPUS_MAX)), &read),
            write_caches: devices
                .iter()
                .filter_map(|name| Some((name.clone(), write_cache(name, &read)?)))
                .collect(),
            kernel_threads: kernel_threads::Threads::new(),
            at_ns: 0,
            // What lies on no device of this machine comes over the network, or from memory.
            interfaces: match devices {
                [] => interfaces::take(&read),
                _ => Vec::new(),
            },
            devices: devices
                .iter()
                .filter_map(|name| {
                    disks
                        .iter()
                        .find(|(disk, _)| disk == name)
                        .map(|(_, device)| (name.clone(), *device))
                })
                .collect(),
            pressure_cpu_ns: read("/proc/pressure/cpu").and_then(|text| pressure::parse(&text)),
            pressure_io_ns: read("/proc/pressure/io").and_then(|text| pressure::parse(&text)),
            pressure_memory_ns: read("/proc/pressure/memory")
                .and_then(|text| pressure::parse(&text)),
        }
    }

    /// Counts from `self` to `later`.
    pub fn until(&self, later: &Self) -> Counted {
        let mut counted = Counted {
            cpu_user_ns: later.own_cpu.user_ns.saturating_sub(self.own_cpu.user_ns),
            cpu_system_ns: later
                .own_cpu
                .system_ns
                .saturating_sub(self.own_cpu.system_ns),
            pressure_cpu_ns: difference(self.pressure_cpu_ns, later.pressure_cpu_ns),
            pressure_io_ns: difference(self.pressure_io_ns, later.pressure_io_ns),
            pressure_memory_ns: difference(self.pressure_memory_ns, later.pressure_memory_ns),
            throttled: difference(self.throttled, later.throttled),
            // 0 where the snapshot came from text and not from this machine.
            window_ns: Some(later.at_ns.saturating_sub(self.at_ns)).filter(|&ns| ns > 0),
            kernel_thread: kernel_threads::busiest(&self.kernel_threads, &later.kernel_threads),
            kernel_threads_ns: kernel_threads::together(
                &self.kernel_threads,
                &later.kernel_threads,
            ),
            interfaces: interfaces::between(&self.interfaces, &later.interfaces),
            ..Counted::default()
        };
        if let (Some(before), Some(after)) = (&self.machine, &later.machine) {
            counted.cpu_machine_busy_ns = after.busy_ns.saturating_sub(before.busy_ns);
            counted.cpu_steal_ns = after.steal_ns.saturating_sub(before.steal_ns);
            counted.cpus = after.cpus;
        }
        if let (Some(before), Some(after)) = (&self.process, &later.process) {
            counted.asked_read_bytes = after
                .asked_read_bytes
                .saturating_sub(before.asked_read_bytes);
            counted.fetched_bytes = after.fetched_bytes.saturating_sub(before.fetched_bytes);
            counted.sent_bytes = after.sent_bytes.saturating_sub(before.sent_bytes);
            let cancelled = after.cancelled_bytes.saturating_sub(before.cancelled_bytes);
            counted.cancelled_bytes = Some(cancelled);
            counted.cache_hit_bytes = Some(
                counted
                    .asked_read_bytes
                    .saturating_sub(counted.fetched_bytes),
            );
        }
        if let (Some(before), Some(after)) = (&self.memory, &later.memory) {
            let more = |after: u64, before: u64| Some(after.saturating_sub(before));
            counted.unwritten_bytes = more(after.unwritten_bytes, before.unwritten_bytes);
            counted.swapped_in_bytes = more(after.swapped_in_bytes, before.swapped_in_bytes);
            counted.swapped_out_bytes = more(after.swapped_out_bytes, before.swapped_out_bytes);
        }
        for (name, before) in &self.devices {
            if let Some((_, after)) = later.devices.iter().find(|(other, _)| other == name) {
                let cache = later.write_caches.iter().find(|(other, _)| other == name);
                counted.devices.push(DeviceCounted {
                    write_cache: cache.map(|(_, mode)| mode.clone()),
                    ..before.until(after, name)
                });
            }
        }
        counted
    }
}

/// Most processors that are checked for throttling: each costs reading two files next to the
/// measured time.
const CPUS_MAX: u32 = 1024;

/// The monotonic clock, ns.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000) + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// The kernel's view of a device's write cache; a partition has that of its disk.
fn write_cache(name: &str, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    // An NVMe disk with several paths counts no flushes: of its cache nothing can be said by what reached it.
    if read(&format!("/sys/class/block/{name}/device/iopolicy")).is_some() {
        return None;
    }
    // The entry is a symbolic link into the disk's directory, so `..` of a partition is its disk.
    let own = read(&format!("/sys/class/block/{name}/queue/write_cache"));
    let text = own.or_else(|| read(&format!("/sys/class/block/{name}/../queue/write_cache")))?;
    Some(text.trim().to_owned())
}

fn difference(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// Counts hits from what the workload read itself, where it read anything. The kernel's `rchar` leaves
/// out reads through a ring, and holds what this program read of `/proc` meanwhile: with few operations
/// those are the larger part, and no hits of the workload.
pub fn asked_by_workload(counted: &mut Counted, read_bytes: u64) {
    counted.asked_read_bytes = counted.asked_read_bytes.max(read_bytes);
    let asked = match read_bytes {
        0 => counted.asked_read_bytes,
        bytes => bytes,
    };
    let hits = asked.saturating_sub(counted.fetched_bytes);
    counted.cache_hit_bytes = counted.cache_hit_bytes.map(|_| hits);
}

/// Adds the counts of two phases of one trial. A counter that overflows stays at its maximum.
pub fn add(into: &mut Counted, more: &Counted) {
    let plus = |a: Option<u64>, b: Option<u64>| Some(a.unwrap_or(0).saturating_add(b?));
    let sum = |into: &mut u64, more: u64| *into = into.saturating_add(more);
    sum(&mut into.cpu_user_ns, more.cpu_user_ns);
    sum(&mut into.cpu_system_ns, more.cpu_system_ns);
    sum(&mut into.cpu_machine_busy_ns, more.cpu_machine_busy_ns);
    sum(&mut into.cpu_steal_ns, more.cpu_steal_ns);
    into.cpus = more.cpus;
    sum(&mut into.asked_read_bytes, more.asked_read_bytes);
    sum(&mut into.fetched_bytes, more.fetched_bytes);
    sum(&mut into.sent_bytes, more.sent_bytes);
    into.cache_hit_bytes = plus(into.cache_hit_bytes, more.cache_hit_bytes);
    into.pressure_cpu_ns = plus(into.pressure_cpu_ns, more.pressure_cpu_ns);
    into.pressure_io_ns = plus(into.pressure_io_ns, more.pressure_io_ns);
    into.pressure_memory_ns = plus(into.pressure_memory_ns, more.pressure_memory_ns);
    into.window_ns = plus(into.window_ns, more.window_ns);
    into.cancelled_bytes = plus(into.cancelled_bytes, more.cancelled_bytes);
    // A level, not a count: two phases do not add up.
    into.unwritten_bytes = into.unwritten_bytes.max(more.unwritten_bytes);
    into.swapped_in_bytes = plus(into.swapped_in_bytes, more.swapped_in_bytes);
    into.swapped_out_bytes = plus(into.swapped_out_bytes, more.swapped_out_bytes);
    into.throttled = plus(into.throttled, more.throttled);
    into.paused_ns = plus(into.paused_ns, more.paused_ns);
    into.stopped = more.stopped.clone().or(into.stopped.take());
    into.late_ns = plus(into.late_ns, more.late_ns);
    into.suspended_ns = plus(into.suspended_ns, more.suspended_ns);
    let set = into.clock_set_ns.unwrap_or(0);
    into.clock_set_ns = more.clock_set_ns.map(|more| set.saturating_add(more));
    into.kernel_threads_ns = plus(into.kernel_threads_ns, more.kernel_threads_ns);
    add_thread(&mut into.kernel_thread, more.kernel_thread.as_ref());
    for interface in &more.interfaces {
        let mut known = into.interfaces.iter_mut();
        match known.find(|known| known.interface == interface.interface) {
            Some(known) => {
                sum(&mut known.received_bytes, interface.received_bytes);
                sum(&mut known.sent_bytes, interface.sent_bytes);
            }
            None => into.interfaces.push(interface.clone()),
        }
    }
    for device in &more.devices {
        match into
            .devices
            .iter_mut()
            .find(|known| known.device == device.device)
        {
            Some(known) => add_device(known, device),
            None => into.devices.push(device.clone()),
        }
    }
}

/// Adds the time of the same thread; of two different ones, keeps the busier.
fn add_thread(into: &mut Option<ThreadCounted>, more: Option<&ThreadCounted>) {
    match (into, more) {
        (Some(known), Some(more)) if known.name == more.name => {
            known.cpu_ns = known.cpu_ns.saturating_add(more.cpu_ns);
        }
        (Some(known), Some(more)) if known.cpu_ns >= more.cpu_ns => {}
        (into, Some(more)) => *into = Some(more.clone()),
        (_, None) => {}
    }
}

fn add_device(into: &mut DeviceCounted, more: &DeviceCounted) {
    let sum = |into: &mut u64, more: u64| *into = into.saturating_add(more);
    sum(&mut into.reads, more.reads);
    sum(&mut into.read_bytes, more.read_bytes);
    sum(&mut into.writes, more.writes);
    sum(&mut into.written_bytes, more.written_bytes);
    let flushes = into.flushes.zip(more.flushes);
    into.flushes = flushes.map(|(a, b)| a.saturating_add(b));
    sum(&mut into.busy_ns, more.busy_ns);
    sum(&mut into.weighted_ns, more.weighted_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_several_paths_tells_nothing_of_its_cache() {
        let with = |files: &'static [&'static str]| {
            move |path: &str| {
                let known = files.iter().any(|file| path.ends_with(file));
                known.then(|| "write back\n".to_owned())
            }
        };
        let one = write_cache("nvme0n1", with(&["nvme0n1/queue/write_cache"]));
        assert_eq!(one.as_deref(), Some("write back"));
        let several = with(&["queue/write_cache", "device/iopolicy"]);
        assert_eq!(write_cache("nvme0n1", several), None);
    }

    #[test]
    fn phases_add_up_and_what_is_a_state_does_not() {
        let thread = |name: &str, cpu_ns: u64| ThreadCounted {
            name: name.to_owned(),
            cpu_ns,
        };
        let phase = |unwritten: u64, thread: ThreadCounted| Counted {
            window_ns: Some(10),
            unwritten_bytes: Some(unwritten),
            throttled: Some(1),
            kernel_thread: Some(thread),
            ..Counted::default()
        };
        let mut sum = Counted::default();
        add(&mut sum, &phase(7, thread("loop0", 5)));
        add(&mut sum, &phase(3, thread("loop0", 6)));
        add(&mut sum, &phase(0, thread("md0", 10)));
        assert_eq!((sum.window_ns, sum.throttled), (Some(30), Some(3)));
        assert_eq!(sum.unwritten_bytes, Some(7));
        assert_eq!(sum.kernel_thread, Some(thread("loop0", 11)));
    }

    /// Counts read on a real machine, while one thread of it works.
    #[test]
    fn a_snapshot_of_this_machine_has_a_window() {
        let before = Snapshot::take(&[]);
        let counted = before.until_now(&[]);
        assert!(counted.window_ns.is_some_and(|ns| ns > 0));
        assert!(counted.unwritten_bytes.is_some() && counted.cancelled_bytes.is_some());
    }

    /// What judges a trial finds the same in both.
    #[test]
    fn facts_that_limit_figures_are_those_of_the_environment() {
        let figures = |facts: Vec<stackrace_base::event::Fact>| {
            let facts = facts.into_iter().filter(|fact| fact.figure.is_some());
            facts
                .map(|fact| (fact.name, fact.figure))
                .collect::<Vec<_>>()
        };
        let limiting = figures(limiting_facts());
        assert_eq!(limiting, figures(environment()));
        assert!(limiting.iter().any(|(name, _)| name == "memory"));
    }

    #[test]
    fn kernel_threads_are_listed_again_only_after_a_tick_of_their_counters() {
        let before = Snapshot::take(&[]);
        let short = before.until_at(before.at_ns + kernel_threads::TICK_NS - 1, &[]);
        assert_eq!((short.kernel_threads_ns, short.kernel_thread), (None, None));
        let long = before.until_at(before.at_ns + kernel_threads::TICK_NS, &[]);
        // A container may hide them.
        let listed = !before.kernel_threads.is_empty();
        assert_eq!(long.kernel_threads_ns.is_some(), listed);
    }

    /// 8 MiB read through a ring, of which the kernel fetched 2: `rchar` alone says no hit at all.
    #[test]
    fn reads_through_a_ring_count_as_asked() {
        let mut counted = Counted {
            fetched_bytes: 2 << 20,
            cache_hit_bytes: Some(0),
            ..Counted::default()
        };
        asked_by_workload(&mut counted, 8 << 20);
        assert_eq!(counted.cache_hit_bytes, Some(6 << 20));
        // A few reads that all came from the device, among those of this program's own counters.
        let mut few = Counted {
            asked_read_bytes: 80 << 10,
            fetched_bytes: 20 << 10,
            cache_hit_bytes: Some(60 << 10),
            ..Counted::default()
        };
        asked_by_workload(&mut few, 20 << 10);
        assert_eq!(few.cache_hit_bytes, Some(0));
        let mut unknown = Counted::default();
        asked_by_workload(&mut unknown, 1);
        assert_eq!(unknown.cache_hit_bytes, None);
    }
}
