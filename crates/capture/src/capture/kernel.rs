//! The kernel side: loaded, told whom to follow, read, and gone when it is dropped.

use std::collections::HashSet;

use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};

use stackrace_base::failure::Failure;
use stackrace_trace::trace::roles;

use super::counts::Counts;

/// The compiled kernel side of this machine's architecture.
#[cfg(target_arch = "aarch64")]
const OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/recorder-arm64.o");
#[cfg(not(target_arch = "aarch64"))]
const OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/recorder-x86.o");

/// Its programs, and where in the kernel each is called. What sends events is last: all before it is ready then.
const PROGRAMS: [(&str, &str); 6] = [
    ("switched", "sched_switch"),
    ("ended", "sched_process_exit"),
    ("forked", "sched_process_fork"),
    ("woken", "sched_waking"),
    ("call_ends", "sys_exit"),
    ("call_begins", "sys_enter"),
];

/// A process that is followed, one that starts those that are, and one that was followed until it ended.
const FOLLOWED: u8 = 1;
const STARTS: u8 = 2;
const GONE: u8 = 3;

/// The kernel side. The kernel removes it when this process ends, in whichever way.
pub(super) struct KernelSide {
    /// Its programs are in the kernel as long as this lives.
    loaded: Option<Ebpf>,
    ring: RingBuf<MapData>,
    watched: HashMap<MapData, u32, u8>,
    /// Processes that were gone at the last look.
    gone: HashSet<u32>,
    counts: PerCpuArray<MapData, u64>,
}

impl KernelSide {
    /// Loads it for a file system, as the kernel numbers it.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(super) fn load(architecture: usize, device: u32) -> Result<Self, Failure> {
        let types =
            Btf::from_sys_fs().map_err(|error| refused("read the kernel's types", &error))?;
        let mut loader = EbpfLoader::new();
        loader
            .btf(Some(&types))
            .override_global("DEVICE", &device, true);
        let mut loaded = loader
            .load(OBJECT)
            .map_err(|error| refused("load the recorder into the kernel", &error))?;
        let missing = || Failure::internal("the recorder's kernel side is not whole");
        let map = |loaded: &mut Ebpf, name: &str| loaded.take_map(name).ok_or_else(missing);
        // Filled before any program is called.
        let mut by_number: Array<MapData, [u8; 7]> = map(&mut loaded, "roles")?
            .try_into()
            .map_err(|error| refused("find the recorder's table of calls", &error))?;
        for (number, role) in roles(architecture) {
            by_number
                .set(number.into(), role.bytes(), 0)
                .map_err(|error| refused("fill the recorder's table of calls", &error))?;
        }
        let found = |error| refused("find the recorder's tables", &error);
        let ring = map(&mut loaded, "ring")?.try_into().map_err(found)?;
        let watched = map(&mut loaded, "watched")?.try_into().map_err(found)?;
        let counts = map(&mut loaded, "counts")?.try_into().map_err(found)?;
        // One after the other; until the last one no call is complete, and none is sent.
        for (name, place) in PROGRAMS {
            let doing = format!("call the recorder at {place}");
            let program = loaded.program_mut(name).ok_or_else(missing)?;
            let program: &mut BtfTracePoint = program
                .try_into()
                .map_err(|error| refused(&doing, &error))?;
            program
                .load(place, &types)
                .map_err(|error| refused(&doing, &error))?;
            program.attach().map_err(|error| refused(&doing, &error))?;
        }
        // The kernel's types are most of what this program ever held: 11 MiB.
        drop(types);
        stackrace_system::memory::give_back();
        Ok(Self {
            loaded: Some(loaded),
            ring,
            watched,
            gone: HashSet::new(),
            counts,
        })
    }

    /// Follows a process, and all that it starts from now on.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(super) fn follow(&mut self, process: u32) -> Result<(), Failure> {
        self.watch(process, FOLLOWED)
    }

    /// Follows what this process starts, and not itself.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(super) fn follow_started(&mut self, process: u32) -> Result<(), Failure> {
        self.watch(process, STARTS)
    }

    fn watch(&mut self, process: u32, how: u8) -> Result<(), Failure> {
        let doing = format!("follow process {process}");
        let done = self.watched.insert(process, how, 0);
        done.map_err(|error| refused(&doing, &error))
    }

    /// Follows a process, or what it starts, no longer.
    pub(super) fn unfollow(&mut self, process: u32) {
        // Not there: nothing is followed by it.
        let _ = self.watched.remove(&process);
    }

    /// Whether a process is followed.
    pub(super) fn follows(&self, process: u32) -> bool {
        self.watched
            .get(&process, 0)
            .is_ok_and(|how| how == FOLLOWED)
    }

    /// Whether a process that is followed still runs.
    pub(super) fn follows_some(&self) -> bool {
        let mut all = self.watched.iter();
        all.any(|entry| entry.is_ok_and(|(_, how)| how == FOLLOWED))
    }

    /// Makes room for others: what was gone at the last look already wakes no one else.
    pub(super) fn forget_gone(&mut self) {
        let all = self.watched.iter().flatten();
        let gone: HashSet<u32> = all
            .filter_map(|(process, how)| (how == GONE).then_some(process))
            .collect();
        for process in gone.intersection(&self.gone) {
            // Its number was taken by one that is not followed: the kernel side forgot it already.
            let _ = self.watched.remove(process);
        }
        self.gone = gone;
    }

    /// Takes its programs out of the kernel; what they sent and counted is still there.
    pub(super) fn leave(&mut self) {
        self.loaded = None;
    }

    /// Hands over the next event; none: there is none now.
    pub(super) fn next_event(&mut self, take: &mut dyn FnMut(&[u8])) -> Option<()> {
        self.ring.next().map(|event| take(&event))
    }

    /// What was counted so far; what cannot be read counts as none.
    pub(super) fn counts(&self) -> Counts {
        let sum = |which: u32| {
            let all = self.counts.get(&which, 0);
            all.map_or(0, |of_each| of_each.iter().sum())
        };
        Counts {
            handled: sum(0),
            sent: sum(1),
            lost: sum(2),
            processor_ns: sum(3),
            not_followed: sum(4),
        }
    }
}

/// The kernel refused something: what it said, to the last cause.
fn refused(doing: &str, error: &dyn std::error::Error) -> Failure {
    // The first word of such an error is often the least telling.
    let mut causes = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(next) = cause {
        causes.push(next.to_string());
        cause = next.source();
    }
    let said = causes.join(": ");
    Failure::unable(format!("could not {doing}: {said}"))
        .next("run it as root on the machine itself; dmesg says more if the kernel is locked down")
}
