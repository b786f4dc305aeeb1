//! `version = …`: the requests of sysbench itself, on the files it would make.

use stackrace_engine::sysbench::{SysbenchMode, SysbenchPlan, SysbenchVersion, Transfer};
use stackrace_engine::{Op, PhaseOutcome};

use super::report::{self as classic, MODE};
use crate::workload::block::words::{OpenSync, SYNC};
use crate::workload::block::{at_least_one, content, size};
use crate::workload::metric::{self, Latency};
use crate::workload::{Cost, Place, SLICE_NS, Workload, WorkloadError, advised, trouble};
use stackrace_base::event::MetricHead;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;

pub(super) const VERSION: ChoiceDoc<SysbenchVersion> = choice!(
    "version",
    ["0.4" => SysbenchVersion::V0_4, "1.0" => SysbenchVersion::V1_0],
    "",
    "Make exactly the requests of this version of sysbench, fsync bursts included; without it only the modes are the same.",
);
/// The way of moving bytes, by the backlog of a queue.
pub(super) const IO: ChoiceDoc<fn(u32) -> Transfer> = choice!(
    "io",
    [
        "sync" => |_| Transfer::Sync,
        "async" => |backlog| Transfer::Async { backlog },
        "mmap" => |_| Transfer::Mmap,
    ],
    "sync",
    "With version: by pread and pwrite, by a queue (io_uring), or in mapped files.",
);
pub(super) const BACKLOG: SettingDoc = SettingDoc::count(
    "backlog",
    "128",
    "With io = \"async\": requests outstanding at once, per thread.",
);
pub(super) const MERGE: SettingDoc = SettingDoc::count(
    "merge",
    "0",
    "With version: blocks in one request of a sequential mode; 0: one.",
);
pub(super) const FSYNC_EACH: SettingDoc = SettingDoc::flag(
    "fsync-each",
    "false",
    "With version: fsync after each write, inside its latency, instead of bursts and of the end.",
);

/// Files that sysbench makes unless told otherwise.
const FILES: u32 = 128;

/// Words that only mean something with a version, or only without.
pub(super) const WITH: [&str; 4] = ["io", "backlog", "merge", "fsync-each"];
const WITHOUT: [&str; 4] = ["think-time", "preallocate", "engine", "arrivals"];

/// The workload that makes sysbench's own requests.
#[derive(Debug)]
pub(super) struct Exact {
    /// The plan, but for its place and seed.
    plan: SysbenchPlan,
}

impl Exact {
    pub(super) fn parse(settings: &Settings, mode: SysbenchMode) -> Result<Self, Refusal> {
        for name in WITHOUT {
            if settings.given(name) {
                return Err(settings.refuse(
                    name,
                    format!("sysbench has no {name}"),
                    format!("leave out {name}, or version"),
                ));
            }
        }
        let exact = Self {
            plan: Self::plan(settings, mode)?,
        };
        exact
            .plan
            .check()
            .map_err(|error| Refusal::at(&settings.span, error.to_string(), error.next()))?;
        exact.check(settings)?;
        Ok(exact)
    }

    fn plan(settings: &Settings, mode: SysbenchMode) -> Result<SysbenchPlan, Refusal> {
        let version = settings.choice(VERSION)?;
        let sync = settings.choice(SYNC)?;
        let number = |name: &str| {
            let count = settings.count(name)?;
            u32::try_from(count)
                .map_err(|_| settings.refuse(name, format!("{count} is too many"), "write less"))
        };
        let block = settings.bytes("block-size")?;
        Ok(SysbenchPlan {
            directory: std::path::PathBuf::new(),
            version,
            mode,
            transfer: settings.choice(IO)?(number("backlog")?),
            files: match settings.given("files") {
                true => at_least_one(settings, "files")?,
                false => FILES,
            },
            total_bytes: size(settings)?,
            // What does not fit is refused by the plan as too large.
            block_size: u32::try_from(block).unwrap_or(u32::MAX),
            merged: number("merge")?,
            open_sync: sync == OpenSync::Sync,
            open_dsync: sync == OpenSync::Dsync,
            direct: settings.flag("direct")?,
            fsync_every: number("fsync-every")?,
            fsync_each: settings.flag("fsync-each")?,
            fsync_at_end: settings.flag("fsync-at-end")?,
            data_only: settings.flag("data-only")?,
            ratio: settings.number("ratio")?,
            validate: settings.flag("verify")?,
            content: content(settings)?,
            threads: at_least_one(settings, "threads")?,
            events: settings.optional_count("operations")?.unwrap_or_default(),
            // Always limited, although 0.4 itself is not: a trial has to end.
            time_ns: Some(settings.lasting_ns("time")?),
            rate: settings.optional_number("rate")?.filter(|rate| *rate > 0.0),
            seed: 0,
            slice_ns: SLICE_NS,
        })
    }

    /// Refuses words that would be ignored.
    fn check(&self, settings: &Settings) -> Result<(), Refusal> {
        let ignored = |name: &str, why: &str| {
            let help = format!("leave out {name}");
            Err(settings.refuse(name, why, help))
        };
        let plan = &self.plan;
        if plan.direct && !plan.block_size.is_multiple_of(512) {
            return Err(settings.refuse(
                "block-size",
                format!("direct I/O cannot use blocks of {} B", plan.block_size),
                "write a multiple of 512 B, or direct = false",
            ));
        }
        let queued = matches!(plan.transfer, Transfer::Async { .. });
        if settings.given("backlog") && !queued {
            return ignored("backlog", "only io = \"async\" has a backlog");
        }
        if settings.given("merge") && !plan.mode.sequential() {
            return ignored("merge", "only sequential requests merge");
        }
        if plan.fsync_each && settings.given("fsync-every") {
            return ignored("fsync-every", "each write is synced by itself");
        }
        if plan.version == SysbenchVersion::V0_4 && plan.rate.is_some() {
            return ignored("rate", "sysbench 0.4 has no rate");
        }
        for name in ["content", "compress-ratio", "duplicates"] {
            if plan.validate && settings.given(name) {
                return ignored(name, "what is verified is random, with a checksum");
            }
        }
        Ok(())
    }

    fn at(&self, place: &Place<'_>) -> SysbenchPlan {
        SysbenchPlan {
            directory: place.directory.to_owned(),
            seed: place.seed,
            ..self.plan.clone()
        }
    }

    /// Returns true if anything is ever synced.
    fn syncs(&self) -> bool {
        let plan = &self.plan;
        // Sequential modes of 0.4 sync only at the end.
        let bursts = plan.fsync_every > 0
            && !(plan.version == SysbenchVersion::V0_4 && plan.mode.sequential());
        plan.mode.writes() && (plan.fsync_each || plan.fsync_at_end || bursts)
    }

    /// Returns true if this measures a metric of a report. Of version 1.0 an event may be an fsync,
    /// and those at the end are none: where there are any, one histogram of all would mean neither.
    fn measures(&self, name: &str) -> bool {
        let both = self.plan.mode == SysbenchMode::RandomBoth;
        match name.split_once(' ').map_or(name, |(first, _)| first) {
            "operations" | "throughput" => true,
            // In one direction they would repeat `operations` and `throughput`.
            "reads" | "writes" | "read" | "write" => both,
            "fsyncs" => self.syncs(),
            "event" => self.plan.version == SysbenchVersion::V1_0 && !self.plan.mode.writes(),
            "request" => self.plan.version == SysbenchVersion::V0_4,
            _ => false,
        }
    }

    fn ops(&self) -> Vec<Op> {
        let mut ops = self.plan.mode.ops().to_vec();
        if self.syncs() {
            ops.push(Op::Fsync);
        }
        ops
    }

    fn value(name: &str, outcome: &PhaseOutcome) -> Option<f64> {
        let of = |op| metric::of(outcome, op);
        let per_second = |amount: u64| Some(amount as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64);
        match name {
            "operations" => metric::operations(outcome),
            "throughput" => metric::throughput(outcome),
            "reads" => per_second(of(Op::Read)?.count),
            "writes" => per_second(of(Op::Write)?.count),
            "fsyncs" => per_second(of(Op::Fsync)?.count),
            "read throughput" => per_second(of(Op::Read)?.bytes),
            "write throughput" => per_second(of(Op::Write)?.bytes),
            _ => {
                let which = if name.ends_with("p95") {
                    Latency::P95
                } else {
                    Latency::Mean
                };
                metric::latency_of_all(outcome, &[Op::Read, Op::Write], which)
            }
        }
    }
}

/// The latencies of each kind of operation.
const LATENCIES: [Latency; 3] = [Latency::Min, Latency::Mean, Latency::P95];

impl Workload for Exact {
    fn summary(&self) -> String {
        let plan = &self.plan;
        let version = match plan.version {
            SysbenchVersion::V0_4 => "0.4",
            SysbenchVersion::V1_0 => "1.0",
        };
        let sync = match (self.syncs(), plan.fsync_each, plan.fsync_every) {
            (false, ..) => String::new(),
            (_, true, _) => ", fsync after each write".to_owned(),
            (_, _, 0) => ", fsync at the end".to_owned(),
            (_, _, every) => format!(", fsync of every file after each {every} requests"),
        };
        format!(
            "sysbench {version} {} over {} files of together {}, blocks of {}, {}{sync}, at most {}",
            MODE.word(plan.mode),
            plan.files,
            unit::bytes(plan.total_bytes),
            unit::bytes(u64::from(plan.block_size)),
            unit::counted(plan.threads as usize, "thread"),
            unit::time_ns(plan.time_ns.unwrap_or(0) as f64)
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let shared = classic::metrics().into_iter();
        let mut heads: Vec<MetricHead> = shared.filter(|it| self.measures(&it.name)).collect();
        for op in self.ops() {
            heads.extend(LATENCIES.map(|which| metric::latency_head(op, which)));
        }
        heads
    }

    fn cost(&self) -> Cost {
        let plan = &self.plan;
        let laid_out = plan.mode != SysbenchMode::SeqWrite;
        Cost {
            prepare_bytes: if laid_out { plan.total_bytes } else { 0 },
            measured_bytes: None,
            // Files are written in whole blocks, so each may be up to a block longer than its
            // share.
            disk_bytes: plan.total_bytes + u64::from(plan.files) * u64::from(plan.block_size),
            measured_ns: plan.time_ns,
            files: u64::from(plan.files),
            working_set_bytes: plan.total_bytes,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![MODE.word(self.plan.mode)]
    }

    fn offered_per_s(&self, _phase: usize) -> Option<f64> {
        self.plan.rate
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        if self.plan.mode == SysbenchMode::SeqWrite {
            return Ok(());
        }
        let prepared = self.at(place).prepare(place.control, &mut |_, _| ());
        prepared.map(drop).map_err(trouble)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let run = self.at(place).run(place.control, None);
        run.map(|run| run.outcome).map_err(|error| {
            let next = error.next();
            advised(error, &next)
        })
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        let Some(outcome) = outcomes.first() else {
            return vec![None; self.metrics().len()];
        };
        let shared = classic::metrics().into_iter();
        let shared = shared.filter(|it| self.measures(&it.name));
        let mut values: Vec<Option<f64>> = shared
            .map(|head| Self::value(&head.name, outcome))
            .collect();
        for op in self.ops() {
            values.extend(LATENCIES.map(|which| metric::latency(outcome, op, which)));
        }
        values
    }
}
