//! Which I/O engine runs a phase, and why.

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::StartError;
use crate::io::uring;
use crate::spec::{IoEngine, Spec};
use stackrace_system::memory::AlignedMemory;
use stackrace_system::{direct, read_without_waiting};

/// Most workers (threads, or threads times queue depth) of a phase.
pub const WORKERS_MAX: u32 = 1024;
/// Largest queue depth of a thread.
pub(crate) const QUEUE_DEPTH_MAX: u32 = 4096;

/// Reason for which a ring cannot count an fsync into the latency of a write.
const APART: &str = "a write completes apart from its fsync, which is to be part of its latency";

/// Blocks a device is probed with.
const PROBE_READS: u64 = 8;

/// The method by which the workers of a phase do their I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IoMethod {
    /// Plain calls; one worker per outstanding operation.
    Sync,
    /// A ring per thread.
    Uring,
    /// No I/O; one worker per outstanding operation.
    Null,
}

impl IoMethod {
    /// The name in [`crate::PhaseOutcome::engine`].
    pub(crate) fn name(self) -> &'static str {
        match self {
            IoMethod::Sync => "sync",
            IoMethod::Uring => "io_uring",
            IoMethod::Null => "null",
        }
    }
}

/// A decision and its reason.
#[derive(Debug, Clone)]
pub(crate) struct EngineChoice {
    pub(crate) way: IoMethod,
    /// Threads the phase runs on.
    pub(crate) workers: u32,
    pub(crate) why: String,
}

/// Chooses by the request, the file and the kernel.
///
/// # Errors
/// [`StartError::Ring`] if a ring was requested and the kernel refuses it; [`StartError::Spec`] for
/// too many workers, and for a ring with an fsync inside a write's latency.
pub(crate) fn choose(spec: &Spec) -> Result<EngineChoice, StartError> {
    let depth = spec.queue_depth;
    let asked = || "asked for".to_owned();
    let (way, mut why) = match spec.engine {
        IoEngine::Null => (IoMethod::Null, asked()),
        IoEngine::Update => (IoMethod::Sync, "a write reads its block first".to_owned()),
        IoEngine::Sync => (IoMethod::Sync, asked()),
        IoEngine::Uring if spec.durability.fsync_in_write => {
            return Err(StartError::Spec {
                what: format!("with io_uring, {APART}"),
                next: "use the sync engine, or count the fsync by itself",
            });
        }
        IoEngine::Uring => {
            uring::allowed()?;
            (IoMethod::Uring, asked())
        }
        IoEngine::Auto => decide(spec)?,
    };
    let workers = match way {
        IoMethod::Uring => spec.threads,
        IoMethod::Sync | IoMethod::Null => spec.threads.saturating_mul(depth),
    };
    if way == IoMethod::Sync && depth > 1 {
        why = format!("{why}; each thread became {depth}, with one operation outstanding each");
    }
    if depth > QUEUE_DEPTH_MAX {
        return Err(StartError::Spec {
            what: format!("a queue depth of {depth} for each thread"),
            next: "use at most 4096",
        });
    }
    if workers > WORKERS_MAX {
        return Err(StartError::Spec {
            what: match workers == spec.threads {
                true => format!("{workers} threads are too many"),
                // Who asked for two threads would not understand that they are too many.
                false => format!(
                    "{} threads with queue depth {depth} are {workers} threads here, each with one operation outstanding: \
                     too many",
                    spec.threads
                ),
            },
            next: "use fewer: at most 1024 threads, or threads times queue depth where io_uring does not serve",
        });
    }
    Ok(EngineChoice { way, workers, why })
}

/// The automatic choice.
fn decide(spec: &Spec) -> Result<(IoMethod, String), StartError> {
    let depth = spec.queue_depth;
    if spec.durability.fsync_in_write {
        return Ok((IoMethod::Sync, format!("in a ring, {APART}")));
    }
    if depth == 1 {
        return Ok((
            IoMethod::Sync,
            "queue depth 1: a plain read or write takes less CPU time than io_uring".to_owned(),
        ));
    }
    if let Err(refusal) = uring::allowed() {
        return Ok((IoMethod::Sync, format!("{refusal}; {}", refusal.next())));
    }
    if !spec.direct {
        return Ok((IoMethod::Uring, format!("queue depth {depth}")));
    }
    let by_workers = match probe(spec)? {
        Probe::InPlace => {
            let why = format!("queue depth {depth}, and the device takes requests without waiting");
            return Ok((IoMethod::Uring, why));
        }
        Probe::ByWorkers => {
            "the device would hand each request of a ring to a kernel thread, which costs more than \
             a plain call"
        }
        Probe::NoData => {
            "the file holds no data yet to try the device with, and a ring hands writes that \
             allocate to kernel threads"
        }
    };
    let workers = spec.threads.saturating_mul(depth);
    Ok(if workers > WORKERS_MAX {
        let why = format!("{by_workers}; but {workers} threads of our own are too many");
        (IoMethod::Uring, why)
    } else {
        (IoMethod::Sync, by_workers.to_owned())
    })
}

/// The response of a device to requests it must not block on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// Takes them.
    InPlace,
    /// Refuses them, so that a ring passes them to a kernel thread, which may block: many times
    /// as expensive as a plain call.
    ByWorkers,
    /// The file holds nothing to read.
    NoData,
}

/// Reads a few blocks of the first file twice: plainly, so that the file system has their places
/// at hand, and then as a ring would first try it (`RWF_NOWAIT`).
///
/// With direct I/O, which alone is probed, this warms no page cache.
fn probe(spec: &Spec) -> Result<Probe, StartError> {
    let Some(target) = spec.targets.iter().max_by_key(|target| target.bytes) else {
        return Ok(Probe::NoData);
    };
    let largest = spec
        .block_sizes
        .iter()
        .map(|(size, _)| *size)
        .max()
        .unwrap_or(0);
    let flags = direct().map(|direct| OFlags::RDONLY | direct);
    let Some(file) = flags
        .ok()
        .and_then(|flags| crate::target::open(target, flags).ok())
    else {
        // Writable but not readable: nothing can be probed.
        return Ok(Probe::NoData);
    };
    let mut memory = AlignedMemory::new(largest as usize)?;
    let buffer = &mut memory.bytes_mut()[..largest as usize];
    let blocks = (target.bytes / u64::from(largest.max(1))).max(1);
    let mut tried = 0;
    for number in 0..PROBE_READS {
        let offset = blocks * number / PROBE_READS * u64::from(largest);
        if !matches!(rustix::io::pread(&file, &mut *buffer, offset), Ok(1..)) {
            continue;
        }
        tried += 1;
        match read_without_waiting(&file, buffer, offset) {
            Ok(_) => return Ok(Probe::InPlace),
            Err(Errno::OPNOTSUPP) => return Ok(Probe::ByWorkers),
            // Busy this time: try another block.
            Err(_) => {}
        }
    }
    Ok(if tried == 0 {
        Probe::NoData
    } else {
        Probe::ByWorkers
    })
}
