//! A trace as it is replayed: read once, checked, and kept for as long as someone uses it.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use stackrace_engine::Op;
use stackrace_engine::replay::ReplayPlan;
use stackrace_trace::trace::{
    DeviceTotal, REPLAYED_MAX, SharedSyncs, Summary, Summing, TraceError, TraceReader,
};

use super::compile::{Compiled, compile};
use super::recorded::{Arrivals, RecordedOp};
use super::touched::add_moved;
use super::tree::KeptTree;
use crate::workload::kind::Cost;
use stackrace_base::event::{RecordedApplication, RecordedDevice, RecordedOperation};
use stackrace_base::unit::{self, InWords, ShownPath};

/// Shares of events that were lost, and of time on storage that cannot be repeated, above which a replay is not like the
/// application.
const LOST_MAX: f64 = 0.001;
const UNCOVERED_MAX: f64 = 0.02;
/// What to do where a trace cannot be replayed.
const RECORD: &str = "record the application again: stackrace record --help";
const SHORTER: &str = "record a shorter time: stackrace record --help";

/// A trace that can be replayed.
#[derive(Debug)]
pub(super) struct LoadedTrace {
    pub(super) digest: String,
    /// Why this machine cannot make its calls, though it can read them: another one measures.
    pub(super) not_here: Option<String>,
    pub(super) plan: ReplayPlan,
    pub(super) tree: KeptTree,
    pub(super) cost: Cost,
    /// Calls that are made.
    pub(super) calls: u64,
    /// Share of the critical path that waits for what was not recorded.
    pub(super) outside_share: f64,
    /// Syncs that several threads shared.
    pub(super) shared: SharedSyncs,
    operations: BTreeMap<Op, RecordedOp>,
    recorded_ns: u64,
    lost: f64,
    covered: f64,
    cost_share: f64,
    file_system: String,
    device: Option<DeviceTotal>,
}

impl LoadedTrace {
    /// Kinds of calls, those with the most time first.
    pub(super) fn by_time(&self) -> Vec<Op> {
        let mut kinds: Vec<(&Op, &RecordedOp)> = self.operations.iter().collect();
        // What takes most of the time decides.
        kinds.sort_by_key(|(_, recorded)| std::cmp::Reverse(recorded.sum_ns));
        kinds.into_iter().map(|(op, _)| *op).collect()
    }

    /// What a replay of it is held against.
    pub(super) fn recorded(&self) -> RecordedApplication {
        let by_time = self.by_time().into_iter();
        let operations = by_time.filter_map(|op| {
            let recorded = self.operations.get(&op)?;
            Some(RecordedOperation {
                op: op.name().to_owned(),
                ns: u64::try_from(recorded.sum_ns).unwrap_or(u64::MAX),
                ns_p99: recorded.latency.value_at_quantile(0.99),
            })
        });
        RecordedApplication {
            home: None,
            file_system: self.file_system.clone(),
            lost: self.lost,
            covered: self.covered,
            cost: self.cost_share,
            elapsed_ns: self.recorded_ns,
            operations: operations.collect(),
            device: self.device.map(|device| RecordedDevice {
                read_bytes: device.read_bytes,
                written_bytes: device.written_bytes,
                flushes: device.flushes,
            }),
            not_by_elapsed: None,
        }
    }
}

/// What a trace is called by while it is in use.
type Called = (PathBuf, u64, Option<SystemTime>, Arrivals);

/// Traces in use: a study is read several times.
static IN_USE: Mutex<Vec<(Called, Weak<LoadedTrace>)>> = Mutex::new(Vec::new());

type Refused = (String, &'static str);

/// Reads a trace, unless it is in use already.
///
/// # Errors
/// Why it cannot be replayed, and what to do.
pub(super) fn of(trace: &Path, arrivals: Arrivals) -> Result<Arc<LoadedTrace>, Refused> {
    let unread = |error: std::io::Error| {
        let why = format!("{}: {}", trace.shown(), error.in_words());
        (
            why,
            "name the file that `stackrace record` wrote, or copy it to this path on the machine that measures",
        )
    };
    let about = std::fs::metadata(trace).map_err(unread)?;
    // A pipe would be read once, and it is read twice: which names move has to be known before the order is made.
    if !about.is_file() {
        let why = format!("{} is no regular file", trace.shown());
        return Err((why, "name the file that `stackrace record` wrote"));
    }
    let known = (
        trace.to_owned(),
        about.len(),
        about.modified().ok(),
        arrivals,
    );
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.retain(|(_, loaded)| loaded.strong_count() > 0);
    let found = in_use.iter().find(|(other, _)| *other == known);
    if let Some(loaded) = found.and_then(|(_, loaded)| loaded.upgrade()) {
        return Ok(loaded);
    }
    let file = File::open(trace).map_err(unread)?;
    let loaded = read(file, arrivals);
    let loaded = loaded.map_err(|(why, next)| (format!("{}: {why}", trace.shown()), next))?;
    let loaded = Arc::new(loaded);
    in_use.push((known, Arc::downgrade(&loaded)));
    Ok(loaded)
}

/// What is known of a trace once all of it went by.
struct Known {
    digest: blake3::Hash,
    summary: Summary,
    moved: HashSet<u32>,
}

/// A file, and the sum of what was read of it.
struct Summed<'a> {
    file: BufReader<&'a File>,
    sum: &'a mut blake3::Hasher,
}

impl Read for Summed<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.file.read(into)?;
        self.sum.update(&into[..bytes]);
        Ok(bytes)
    }
}

/// Reads all of a trace, before anything is made of it.
fn know(file: &File) -> Result<Known, TraceError> {
    let mut sum = blake3::Hasher::new();
    let mut reader = TraceReader::new(Summed {
        file: BufReader::new(file),
        sum: &mut sum,
    })?;
    let mut summing = Summing::of(reader.origin().clone());
    let mut moved = HashSet::new();
    while let Some(part) = reader.next_part()? {
        summing.take(&part);
        add_moved(&part, &mut moved);
    }
    Ok(Known {
        digest: sum.finalize(),
        summary: summing.end(),
        moved,
    })
}

fn read(mut file: File, arrivals: Arrivals) -> Result<LoadedTrace, Refused> {
    let refused = |error: TraceError| (error.to_string(), RECORD);
    let Known {
        digest,
        summary,
        moved,
    } = know(&file).map_err(refused)?;
    check(&summary)?;
    let bound = &summary.bound;
    let rewound = file.rewind().map_err(TraceError::System);
    let again = rewound.and_then(|()| TraceReader::new(BufReader::new(file)));
    // The recording's own cost stands in the gaps between the calls.
    let each = summary.ending.cost_ns / summary.ending.events.max(1);
    let compiled = again.and_then(|again| compile(again, &moved, arrivals, each));
    let compiled = compiled.map_err(refused)?;
    let Compiled {
        plan,
        tree,
        cost,
        calls,
        recorded,
        recorded_ns,
        refused: cannot,
    } = compiled;
    if let Some(why) = cannot {
        return Err((
            why,
            "compare with a workload instead: stackrace show workloads",
        ));
    }
    if calls == 0 {
        let why = "it has no call that can be replayed".to_owned();
        return Err((why, "record the directory that the application works in"));
    }
    Ok(LoadedTrace {
        digest: digest.to_hex().to_string(),
        not_here: not_here(&summary),
        plan,
        tree,
        cost,
        calls,
        outside_share: bound.outside_share(),
        shared: summary.shared,
        operations: recorded,
        recorded_ns,
        lost: summary.ending.lost_share(),
        covered: summary.coverage(),
        cost_share: summary.ending.cost_share(),
        file_system: summary.origin.file_system,
        device: summary.ending.device,
    })
}

/// Why this machine cannot make the calls of a trace; numbers and bits of calls are kept as the architecture has them.
fn not_here(summary: &Summary) -> Option<String> {
    let (there, here) = (&summary.origin.architecture, std::env::consts::ARCH);
    (there != here).then(|| {
        format!(
            "it was recorded on {there}, and this machine is {here}: flags of calls differ; replay it on a machine like \
             the recorded one"
        )
    })
}

/// Refuses what cannot be replayed, or would not be like the application.
fn check(summary: &Summary) -> Result<(), Refused> {
    let (origin, ending) = (&summary.origin, &summary.ending);
    if origin.cut {
        let why = "it is a part of a trace: what its files were like where it begins is not known";
        return Err((why.to_owned(), "replay the whole trace"));
    }
    if ending.operations > REPLAYED_MAX {
        let why = format!(
            "it has {} operations; at most {} are replayed",
            unit::count(ending.operations),
            unit::count(REPLAYED_MAX),
        );
        return Err((why, SHORTER));
    }
    if ending.lost_share() > LOST_MAX {
        let why = format!(
            "{} of {} events were lost when it was recorded: a replay would not be like the application",
            unit::count(ending.lost),
            unit::count(ending.events)
        );
        return Err((why, RECORD));
    }
    // Each of them may be the one that the others waited for.
    let left_out = ending.not_followed.saturating_add(ending.unresolved);
    if left_out as f64 > ending.operations as f64 * LOST_MAX {
        let why = format!(
            "{} threads or names of {} operations could not be followed when it was recorded",
            unit::count(left_out),
            unit::count(ending.operations)
        );
        return Err((why, RECORD));
    }
    let covered = summary.coverage();
    if 1.0 - covered > UNCOVERED_MAX {
        let why = format!(
            "only {} of its time on storage can be replayed: io_uring, aio, msync, copies between files and waits for \
             pages cannot",
            unit::percent(covered)
        );
        return Err((
            why,
            "compare with a workload instead: stackrace show workloads",
        ));
    }
    Ok(())
}
