//! Random reads, writes, or a mix of both, in one file laid out before.
//!
//! By default each block is visited at most once (`access = "once"`) and the phase ends with the
//! pass: a buffered random read can then not be answered by the cache it filled itself. `uniform`
//! draws with repeats and ends by time alone.

use stackrace_engine::spec::Access;
use stackrace_engine::{Op, Outcome};

use super::block::{
    BlockIo, COMPRESS_RATIO, CONTENT, DIRECT, Defaults, ENGINE, FSYNC_AT_END, QUEUE_DEPTH, SIZE,
    THREADS,
};
use super::metric::{self, Latency};
use super::{Cost, Place, Trouble, Workload, WorkloadKind};
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
        SIZE,
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
        THREADS,
        QUEUE_DEPTH,
        DIRECT,
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
        FSYNC_AT_END,
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

const TIME_NS: u64 = 5_000_000_000;

#[derive(Debug)]
struct Random {
    io: BlockIo,
}

impl Random {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let defaults = Defaults {
            block_size: 4096,
            files: 1,
            fsync_every: 0,
        };
        let mut io = BlockIo::parse(settings, &defaults)?;
        io.read_share = match settings.text("mode")?.as_deref() {
            Some("read") => 1.0,
            Some("write") => 0.0,
            _ => settings.share("read-share")?.unwrap_or(0.6),
        };
        io.access = match settings.text("access")?.as_deref() {
            Some("uniform") => Access::Uniform,
            Some("zipf") => Access::Zipf(1.1),
            Some("hot") => Access::HotCold {
                hot_range: 0.1,
                hot_ops: 0.9,
            },
            _ => Access::OncePerPass,
        };
        io.time_ns = io.time_ns.or(Some(TIME_NS));
        Ok(Self { io })
    }

    fn ops(&self) -> Vec<Op> {
        let mut ops = Vec::new();
        if self.io.read_share > 0.0 {
            ops.push(Op::Read);
        }
        if self.io.read_share < 1.0 {
            ops.push(Op::Write);
            // Listed even where it is never called: treatments may differ in how often it is.
            ops.push(Op::Fsync);
        }
        ops
    }
}

impl Workload for Random {
    fn summary(&self) -> String {
        let what = match self.io.read_share {
            1.0 => "random reads".to_owned(),
            0.0 => "random writes".to_owned(),
            share => format!("random mix of {} reads", unit::percent(share)),
        };
        format!(
            "{what} of {} in a file of {}, {} thread(s) × queue depth {}{}{}, at most {}",
            unit::bytes(u64::from(self.io.block_size)),
            unit::bytes(self.io.size),
            self.io.threads,
            self.io.queue_depth,
            self.io.fsync_words(),
            if self.io.direct { ", O_DIRECT" } else { "" },
            unit::time_ns(self.io.time_ns.unwrap_or(TIME_NS) as f64)
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
        self.io.cost(true)
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![match self.io.read_share {
            1.0 => "random read",
            0.0 => "random write",
            _ => "random mixed",
        }]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), Trouble> {
        self.io.lay_out(place)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<Outcome, Trouble> {
        self.io.run(place)
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
