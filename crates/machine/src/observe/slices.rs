//! What the system counts while a trial has its slices, and not while others have theirs.
//!
//! Counters that are read quickly are read at both ends of each slice, outside its time, and added
//! up. What cannot be had so often (pressure, threads of the kernel, memory) would count the work of
//! other trials too, and is left out. What hits all trials of the time alike (pauses, heat, swap) is
//! taken from the whole time.

use std::sync::{Mutex, PoisonError};

use super::{Snapshot, add, now_ns};
use stackrace_base::event::Counted;

/// Files that are read at both ends of each slice.
const QUICK: &[&str] = &[
    "/proc/self/io",
    "/proc/self/stat",
    "/proc/stat",
    "/proc/diskstats",
];

/// The counters of one trial in slices.
pub struct SliceCounter {
    devices: Vec<String>,
    state: Mutex<SliceState>,
}

#[derive(Default)]
struct SliceState {
    begun: Option<Snapshot>,
    counted: Counted,
}

impl SliceCounter {
    /// Slices for a stack on these devices, named as in `/proc/diskstats`.
    pub fn new(devices: Vec<String>) -> Self {
        let state = Mutex::default();
        Self { devices, state }
    }

    /// A slice is about to begin.
    pub fn begins(&self) {
        let now = self.look();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.begun = Some(now);
    }

    /// A slice is over.
    pub fn ended(&self) {
        let now = self.look();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begun) = state.begun.take() {
            add(&mut state.counted, &begun.until(&now));
        }
    }

    fn look(&self) -> Snapshot {
        let read = |path: &str| {
            let quick = QUICK.contains(&path);
            quick.then(|| std::fs::read_to_string(path).ok()).flatten()
        };
        Snapshot {
            at_ns: now_ns(),
            ..Snapshot::read(&self.devices, read)
        }
    }

    /// Counts of all slices, completed by `whole`: those from the first slice of any trial to the last.
    pub fn counted(&self, whole: &Counted) -> Counted {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        completed(state.counted.clone(), whole)
    }
}

fn completed(slices: Counted, whole: &Counted) -> Counted {
    let part = match (slices.window_ns, whole.window_ns) {
        (Some(own), Some(all)) if all > 0 => (own as f64 / all as f64).min(1.0),
        _ => 1.0,
    };
    let mut counted = Counted {
        pressure_cpu_ns: None,
        pressure_io_ns: None,
        pressure_memory_ns: None,
        unwritten_bytes: None,
        kernel_thread: None,
        kernel_threads_ns: None,
        throttled: whole.throttled,
        swapped_in_bytes: whole.swapped_in_bytes,
        swapped_out_bytes: whole.swapped_out_bytes,
        paused_ns: whole.paused_ns,
        stopped: whole.stopped.clone(),
        // A share of the time is judged: that of the slices stands for it.
        late_ns: whole.late_ns.map(|ns| (ns as f64 * part) as u64),
        suspended_ns: whole.suspended_ns,
        clock_set_ns: whole.clock_set_ns,
        ..slices
    };
    for device in &mut counted.devices {
        let mut known = whole.devices.iter();
        let same = known.find(|known| known.device == device.device);
        device.write_cache = same.and_then(|same| same.write_cache.clone());
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::DeviceCounted;

    #[test]
    fn only_what_is_read_within_slices_is_counted() {
        let counter = SliceCounter::new(Vec::new());
        let read = |bytes: usize| {
            let zero = std::fs::File::open("/dev/zero").unwrap();
            let mut room = vec![0; bytes];
            std::io::Read::read_exact(&mut &zero, &mut room).unwrap();
        };
        counter.begins();
        read(1 << 20);
        counter.ended();
        // Other tests of this process read as well, but no such amounts.
        read(256 << 20);
        counter.begins();
        read(1 << 20);
        counter.ended();
        let asked = counter.counted(&Counted::default()).asked_read_bytes;
        assert!((2 << 20..200 << 20).contains(&asked), "{asked}");
    }

    #[test]
    fn what_others_may_have_caused_is_left_out_and_what_hits_all_alike_is_kept() {
        let device = |write_cache: Option<&str>| DeviceCounted {
            device: "loop0".to_owned(),
            write_cache: write_cache.map(str::to_owned),
            ..DeviceCounted::default()
        };
        let slices = Counted {
            window_ns: Some(10),
            unwritten_bytes: Some(3),
            fetched_bytes: 7,
            devices: vec![device(None)],
            ..Counted::default()
        };
        let whole = Counted {
            window_ns: Some(40),
            pressure_io_ns: Some(5),
            unwritten_bytes: Some(9),
            fetched_bytes: 99,
            late_ns: Some(8),
            paused_ns: Some(6),
            throttled: Some(1),
            devices: vec![device(Some("write back"))],
            ..Counted::default()
        };
        let counted = completed(slices, &whole);
        assert_eq!((counted.fetched_bytes, counted.window_ns), (7, Some(10)));
        assert_eq!(
            (counted.pressure_io_ns, counted.unwritten_bytes),
            (None, None)
        );
        assert_eq!((counted.paused_ns, counted.late_ns), (Some(6), Some(2)));
        assert_eq!(counted.throttled, Some(1));
        assert_eq!(
            counted.devices[0].write_cache.as_deref(),
            Some("write back")
        );
    }
}
