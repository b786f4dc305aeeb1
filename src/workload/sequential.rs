//! One file written, overwritten or read from beginning to end.
//!
//! `write` makes a new file, `rewrite` overwrites one that was laid out before, `read` reads one
//! that was laid out before. One pass, never a second over the same data: a second pass of a read
//! would measure the cache. Writing ends with fsync inside the clock unless switched off.

use std::num::NonZeroU64;

use stackrace_engine::spec::{Access, Content, Durability, Engine, Pacing, Spec, Stop, Target};
use stackrace_engine::{Op, Outcome};

use super::metric::{self, Latency};
use super::{Cost, Place, SLICE_NS, Trouble, Workload, WorkloadKind, trouble};
use crate::event::MetricHead;
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use crate::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "sequential",
    summary: "one large file written, rewritten or read once from beginning to end",
    source: "the common core of dd, bonnie++ block I/O and fio rw=read/write",
    settings: &[
        SettingDoc {
            name: "mode",
            kind: Kind::Choice(&["write", "rewrite", "read"]),
            default: "",
            required: true,
            doc: "Make a new file, overwrite one, or read one.",
        },
        SettingDoc {
            name: "size",
            kind: Kind::Bytes,
            default: "",
            required: true,
            doc: "Size of the file.",
        },
        SettingDoc {
            name: "block-size",
            kind: Kind::Bytes,
            default: "1 MiB",
            required: false,
            doc: "Bytes of one operation.",
        },
        SettingDoc {
            name: "threads",
            kind: Kind::Count,
            default: "1",
            required: false,
            doc: "Threads, each on its own contiguous part.",
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
            name: "fsync-every",
            kind: Kind::Count,
            default: "0",
            required: false,
            doc: "fsync after so many writes; 0: never.",
        },
        SettingDoc {
            name: "fsync-at-end",
            kind: Kind::Flag,
            default: "true",
            required: false,
            doc: "fsync before the clock stops.",
        },
        SettingDoc {
            name: "time",
            kind: Kind::Time,
            default: "",
            required: false,
            doc: "Stop after this long even if the pass is not complete.",
        },
        CONTENT,
        COMPRESS_RATIO,
        ENGINE,
    ],
    example: "sequential = { mode = \"write\", size = \"1 GiB\" }",
    parse: |settings| Ok(Box::new(Sequential::parse(settings)?)),
};

/// What is written, shared by all workloads that write blocks.
pub(super) const CONTENT: SettingDoc = SettingDoc {
    name: "content",
    kind: Kind::Choice(&["random", "zero"]),
    default: "random",
    required: false,
    doc: "What is written: random bytes, or zeros (compressing and thin storage may store nothing of them).",
};
/// How compressible it is.
pub(super) const COMPRESS_RATIO: SettingDoc = SettingDoc {
    name: "compress-ratio",
    kind: Kind::Number,
    default: "1",
    required: false,
    doc: "How many times smaller the data can be compressed.",
};
/// Which I/O engine.
pub(super) const ENGINE: SettingDoc = SettingDoc {
    name: "engine",
    kind: Kind::Choice(&["auto", "sync", "io_uring"]),
    default: "auto",
    required: false,
    doc: "I/O engine; auto decides and says why.",
};

/// Name of the one file all block workloads work on.
pub(super) const FILE: &str = "data";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Write,
    Rewrite,
    Read,
}

#[derive(Debug)]
struct Sequential {
    mode: Mode,
    size: u64,
    block_size: u32,
    threads: u32,
    queue_depth: u32,
    direct: bool,
    durability: Durability,
    time_ns: Option<u64>,
    content: Content,
    engine: Engine,
}

/// The content asked for by `content` and `compress-ratio`.
pub(super) fn content(settings: &Settings) -> Result<Content, Refusal> {
    let ratio = settings.number("compress-ratio")?.unwrap_or(1.0);
    if ratio < 1.0 {
        return Err(Refusal::at(
            settings.span_of("compress-ratio"),
            "a compress-ratio below 1 cannot be",
            "write 1 for data that does not compress, 2 for data that halves",
        ));
    }
    Ok(match settings.text("content")?.as_deref() {
        Some("zero") => Content::Zero,
        _ if ratio > 1.0 => Content::Shaped {
            ratio,
            duplicates: 0.0,
        },
        _ => Content::Random,
    })
}

/// The engine asked for.
pub(super) fn engine(settings: &Settings) -> Result<Engine, Refusal> {
    Ok(match settings.text("engine")?.as_deref() {
        Some("sync") => Engine::Sync,
        Some("io_uring") => Engine::Uring,
        _ => Engine::Auto,
    })
}

/// A count that must be at least 1 and fit.
pub(super) fn at_least_one(settings: &Settings, name: &str, default: u32) -> Result<u32, Refusal> {
    match settings.count(name)? {
        None => Ok(default),
        Some(value) => match u32::try_from(value) {
            Ok(value) if (1..=4096).contains(&value) => Ok(value),
            _ => Err(Refusal::at(
                settings.span_of(name),
                format!("{name} must be between 1 and 4096"),
                "",
            )),
        },
    }
}

/// A block size: a multiple of 512 from 512 B to 64 MiB, at most `size`.
pub(super) fn block_size(settings: &Settings, default: u32, size: u64) -> Result<u32, Refusal> {
    let value = settings.bytes("block-size")?.unwrap_or(u64::from(default));
    let valid = value % 512 == 0 && (512..=64 << 20).contains(&value);
    match u32::try_from(value) {
        Ok(block) if valid && value <= size => Ok(block),
        _ => Err(Refusal::at(
            settings.span_of("block-size"),
            format!("block size {} does not work here", unit::bytes(value)),
            format!(
                "choose a multiple of 512 B from 512 B to 64 MiB, at most the size ({})",
                unit::bytes(size)
            ),
        )),
    }
}

/// A size that must be given and be above nothing.
pub(super) fn size(settings: &Settings) -> Result<u64, Refusal> {
    match settings.bytes("size")? {
        Some(0) | None => Err(Refusal::at(
            settings.span_of("size"),
            "a size of 0 measures nothing",
            "write for example size = \"1 GiB\"",
        )),
        Some(value) => Ok(value),
    }
}

impl Sequential {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let size = size(settings)?;
        Ok(Self {
            mode: match settings.text("mode")?.as_deref() {
                Some("rewrite") => Mode::Rewrite,
                Some("read") => Mode::Read,
                _ => Mode::Write,
            },
            size,
            block_size: block_size(settings, 1 << 20, size)?,
            threads: at_least_one(settings, "threads", 1)?,
            queue_depth: at_least_one(settings, "queue-depth", 1)?,
            direct: settings.flag("direct")?.unwrap_or(false),
            durability: Durability {
                fsync_every: settings.count("fsync-every")?.and_then(NonZeroU64::new),
                fsync_at_end: settings.flag("fsync-at-end")?.unwrap_or(true),
                ..Durability::default()
            },
            time_ns: settings.time_ns("time")?,
            content: content(settings)?,
            engine: engine(settings)?,
        })
    }

    fn op(&self) -> Op {
        if self.mode == Mode::Read {
            Op::Read
        } else {
            Op::Write
        }
    }

    fn spec(&self, place: &Place<'_>) -> Spec {
        let whole = self.size / u64::from(self.block_size) * u64::from(self.block_size);
        Spec {
            targets: vec![Target {
                path: place.directory.join(FILE),
                bytes: whole,
            }],
            block_sizes: vec![(self.block_size, 1)],
            access: Access::Sequential,
            read_share: if self.mode == Mode::Read { 1.0 } else { 0.0 },
            threads: self.threads,
            queue_depth: self.queue_depth,
            direct: self.direct,
            durability: self.durability,
            pacing: Pacing::Closed { think_time_ns: 0 },
            content: self.content,
            stop: Stop {
                ops: Some(whole / u64::from(self.block_size)),
                time_ns: self.time_ns,
            },
            engine: self.engine,
            seed: place.seed,
            slice_ns: SLICE_NS,
        }
    }
}

impl Workload for Sequential {
    fn summary(&self) -> String {
        let what = match self.mode {
            Mode::Write => "write a new file of",
            Mode::Rewrite => "overwrite a file of",
            Mode::Read => "read a file of",
        };
        let end = if self.mode != Mode::Read && self.durability.fsync_at_end {
            ", fsync at the end"
        } else {
            ""
        };
        let every = self
            .durability
            .fsync_every
            .map_or(String::new(), |n| format!(", fsync after every {n}"));
        format!(
            "{what} {} once in blocks of {}{every}{end}",
            unit::bytes(self.size),
            unit::bytes(u64::from(self.block_size))
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![
            metric::throughput_head(),
            metric::operations_head(),
            metric::latency_head(self.op(), Latency::P50),
            metric::latency_head(self.op(), Latency::P99),
        ]
    }

    fn cost(&self) -> Cost {
        Cost {
            prepare_bytes: if self.mode == Mode::Write {
                0
            } else {
                self.size
            },
            measured_bytes: Some(self.size),
            disk_bytes: self.size,
            measured_ns: self.time_ns,
            files: 1,
            working_set_bytes: self.size,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![match self.mode {
            Mode::Write => "write",
            Mode::Rewrite => "rewrite",
            Mode::Read => "read",
        }]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), Trouble> {
        if self.mode == Mode::Write {
            return Ok(());
        }
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
            return vec![None; 4];
        };
        vec![
            metric::throughput(outcome),
            metric::operations(outcome),
            metric::latency(outcome, self.op(), Latency::P50),
            metric::latency(outcome, self.op(), Latency::P99),
        ]
    }
}
