//! Random reads, writes, or a mix of both, in one file laid out before.
//!
//! By default each block is visited at most once (`access = "once"`) and the phase ends with the
//! pass: a buffered random read can then not be answered by the cache it filled itself. `uniform`
//! draws with repeats and ends by time alone.

use std::num::NonZeroU64;

use stackrace_engine::spec::{Access, Content, Durability, Engine, Pacing, Spec, Stop, Target};
use stackrace_engine::{Op, Outcome};

use super::metric::{self, Latency};
use super::sequential::{
    COMPRESS_RATIO, CONTENT, ENGINE, FILE, at_least_one, block_size, content, engine, size,
};
use super::{Cost, Place, SLICE_NS, Trouble, Workload, WorkloadKind, trouble};
use crate::event::MetricHead;
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use crate::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "random",
    summary: "random reads, writes or a mix in one file, at any block size and queue depth",
    source: "the common core of fio rw=randread/randwrite/randrw and sysbench rndrd/rndwr/rndrw",
    settings: &[
        SettingDoc {
            name: "mode",
            kind: Kind::Choice(&["read", "write", "mixed"]),
            default: "",
            required: true,
            doc: "Read, write, or both.",
        },
        SettingDoc {
            name: "size",
            kind: Kind::Bytes,
            default: "",
            required: true,
            doc: "Size of the file.",
        },
        SettingDoc {
            name: "read-share",
            kind: Kind::Share,
            default: "60 %",
            required: false,
            doc: "Share of reads in a mix.",
        },
        SettingDoc {
            name: "block-size",
            kind: Kind::Bytes,
            default: "4 KiB",
            required: false,
            doc: "Bytes of one operation.",
        },
        SettingDoc {
            name: "threads",
            kind: Kind::Count,
            default: "1",
            required: false,
            doc: "Threads.",
        },
        SettingDoc {
            name: "queue-depth",
            kind: Kind::Count,
            default: "1",
            required: false,
            doc: "Operations outstanding at once, per thread.",
        },
        SettingDoc {
            name: "direct",
            kind: Kind::Flag,
            default: "false",
            required: false,
            doc: "O_DIRECT: past the page cache.",
        },
        SettingDoc {
            name: "access",
            kind: Kind::Choice(&["once", "uniform", "zipf", "hot"]),
            default: "once",
            required: false,
            doc: "Each block once, or drawn with repeats: uniformly, by Zipf's law (1.1), or 90 % of operations on 10 % of the file.",
        },
        SettingDoc {
            name: "fsync-every",
            kind: Kind::Count,
            default: "0",
            required: false,
            doc: "fsync after so many writes of a thread; 0: never.",
        },
        SettingDoc {
            name: "fsync-at-end",
            kind: Kind::Flag,
            default: "true",
            required: false,
            doc: "fsync before the clock stops, if anything was written.",
        },
        SettingDoc {
            name: "time",
            kind: Kind::Time,
            default: "5 s",
            required: false,
            doc: "Stop after this long.",
        },
        SettingDoc {
            name: "operations",
            kind: Kind::Count,
            default: "",
            required: false,
            doc: "Stop after so many operations.",
        },
        CONTENT,
        COMPRESS_RATIO,
        ENGINE,
    ],
    example: "random = { mode = \"read\", size = \"1 GiB\", block-size = \"4 KiB\", queue-depth = 16, direct = true }",
    parse: |settings| Ok(Box::new(Random::parse(settings)?)),
};

#[derive(Debug)]
struct Random {
    read_share: f64,
    size: u64,
    block_size: u32,
    threads: u32,
    queue_depth: u32,
    direct: bool,
    access: Access,
    durability: Durability,
    time_ns: u64,
    operations: Option<u64>,
    content: Content,
    engine: Engine,
}

impl Random {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let size = size(settings)?;
        let read_share = match settings.text("mode")?.as_deref() {
            Some("read") => 1.0,
            Some("write") => 0.0,
            _ => settings.share("read-share")?.unwrap_or(0.6),
        };
        if !(0.0..=1.0).contains(&read_share) {
            return Err(Refusal::at(
                settings.span_of("read-share"),
                "a share lies between 0 % and 100 %",
                "write for example read-share = \"60 %\"",
            ));
        }
        Ok(Self {
            read_share,
            size,
            block_size: block_size(settings, 4096, size)?,
            threads: at_least_one(settings, "threads", 1)?,
            queue_depth: at_least_one(settings, "queue-depth", 1)?,
            direct: settings.flag("direct")?.unwrap_or(false),
            access: match settings.text("access")?.as_deref() {
                Some("uniform") => Access::Uniform,
                Some("zipf") => Access::Zipf(1.1),
                Some("hot") => Access::HotCold {
                    hot_range: 0.1,
                    hot_ops: 0.9,
                },
                _ => Access::OncePerPass,
            },
            durability: Durability {
                fsync_every: settings.count("fsync-every")?.and_then(NonZeroU64::new),
                fsync_at_end: settings.flag("fsync-at-end")?.unwrap_or(true),
                ..Durability::default()
            },
            time_ns: settings.time_ns("time")?.unwrap_or(5_000_000_000),
            operations: settings.count("operations")?,
            content: content(settings)?,
            engine: engine(settings)?,
        })
    }

    fn blocks(&self) -> u64 {
        self.size / u64::from(self.block_size)
    }

    /// Most operations one phase may do: one pass where each block is visited once.
    fn operations_max(&self) -> Option<u64> {
        match (self.access, self.operations) {
            (Access::OncePerPass, Some(asked)) => Some(asked.min(self.blocks())),
            (Access::OncePerPass, None) => Some(self.blocks()),
            (_, asked) => asked,
        }
    }

    fn spec(&self, place: &Place<'_>) -> Spec {
        Spec {
            targets: vec![Target {
                path: place.directory.join(FILE),
                bytes: self.blocks() * u64::from(self.block_size),
            }],
            block_sizes: vec![(self.block_size, 1)],
            access: self.access,
            read_share: self.read_share,
            threads: self.threads,
            queue_depth: self.queue_depth,
            direct: self.direct,
            durability: self.durability,
            pacing: Pacing::Closed { think_time_ns: 0 },
            content: self.content,
            stop: Stop {
                ops: self.operations_max(),
                time_ns: Some(self.time_ns),
            },
            engine: self.engine,
            seed: place.seed,
            slice_ns: SLICE_NS,
        }
    }

    fn ops(&self) -> Vec<Op> {
        let mut ops = Vec::new();
        if self.read_share > 0.0 {
            ops.push(Op::Read);
        }
        if self.read_share < 1.0 {
            ops.push(Op::Write);
            // Listed even where it is never called: treatments may differ in how often it is.
            ops.push(Op::Fsync);
        }
        ops
    }
}

impl Workload for Random {
    fn summary(&self) -> String {
        let what = match self.read_share {
            1.0 => "random reads".to_owned(),
            0.0 => "random writes".to_owned(),
            share => format!("random mix of {} reads", unit::percent(share)),
        };
        let every = self
            .durability
            .fsync_every
            .map_or(String::new(), |n| format!(", fsync after every {n} writes"));
        let direct = if self.direct { ", O_DIRECT" } else { "" };
        format!(
            "{what} of {} in a file of {}, {} thread(s) × queue depth {}{every}{direct}, at most {}",
            unit::bytes(u64::from(self.block_size)),
            unit::bytes(self.size),
            self.threads,
            self.queue_depth,
            unit::time_ns(self.time_ns as f64)
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let mut heads = vec![metric::operations_head(), metric::throughput_head()];
        for op in self.ops() {
            heads.extend(
                [Latency::P50, Latency::P95, Latency::P99]
                    .map(|which| metric::latency_head(op, which)),
            );
        }
        heads
    }

    fn cost(&self) -> Cost {
        Cost {
            prepare_bytes: self.size,
            measured_bytes: None,
            disk_bytes: self.size,
            measured_ns: Some(self.time_ns),
            files: 1,
            working_set_bytes: self.size,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![match self.read_share {
            1.0 => "random read",
            0.0 => "random write",
            _ => "random mixed",
        }]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), Trouble> {
        stackrace_engine::lay_out(
            &self.spec(place).targets,
            self.content,
            place.seed,
            place.control,
        )
        .map_err(trouble)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<Outcome, Trouble> {
        stackrace_engine::run(&self.spec(place), place.control).map_err(trouble)
    }

    fn evaluate(&self, outcomes: &[Outcome]) -> Vec<Option<f64>> {
        let Some(outcome) = outcomes.first() else {
            return vec![None; self.metrics().len()];
        };
        let mut values = vec![metric::operations(outcome), metric::throughput(outcome)];
        for op in self.ops() {
            values.extend(
                [Latency::P50, Latency::P95, Latency::P99]
                    .map(|which| metric::latency(outcome, op, which)),
            );
        }
        values
    }
}
