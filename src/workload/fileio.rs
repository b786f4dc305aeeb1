//! Sysbench-style file I/O: six modes over several files, fsync at a cadence.
//!
//! Shares sysbench's vocabulary (modes, 1.5 reads a write, fsync after every 100 requests), not its
//! exact sequence. Data is random, not zeros: zeros compress to nothing on half of the file
//! systems this is meant to compare. With `fsync-every = 1` the fsync counts into the latency of
//! the write before it, as `--file-fsync-all` does.

use std::num::NonZeroU64;

use stackrace_engine::spec::{Access, Content, Durability, Engine, Pacing, Spec, Stop, Target};
use stackrace_engine::{Op, Outcome};

use super::metric::{self, Latency};
use super::sequential::{
    COMPRESS_RATIO, CONTENT, ENGINE, at_least_one, block_size, content, engine, size,
};
use super::{Cost, Place, SLICE_NS, Trouble, Workload, WorkloadKind, trouble};
use crate::event::{Better, MetricHead};
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use crate::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "fileio",
    summary: "sysbench-style file I/O: six modes, several files, fsync at a cadence",
    source: "the modes and defaults of sysbench 1.0.20 fileio",
    settings: &[
        SettingDoc {
            name: "mode",
            kind: Kind::Choice(&["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"]),
            default: "",
            required: true,
            doc: "Sequential write of new files, rewrite, read; random read, write, both.",
        },
        SettingDoc {
            name: "size",
            kind: Kind::Bytes,
            default: "",
            required: true,
            doc: "All files together.",
        },
        SettingDoc {
            name: "files",
            kind: Kind::Count,
            default: "8",
            required: false,
            doc: "Number of files (sysbench: 128).",
        },
        SettingDoc {
            name: "block-size",
            kind: Kind::Bytes,
            default: "16 KiB",
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
            name: "fsync-every",
            kind: Kind::Count,
            default: "100",
            required: false,
            doc: "fsync after so many writes of a thread; 0: never.",
        },
        SettingDoc {
            name: "fsync-at-end",
            kind: Kind::Flag,
            default: "true",
            required: false,
            doc: "fsync every file before the clock stops.",
        },
        SettingDoc {
            name: "ratio",
            kind: Kind::Number,
            default: "1.5",
            required: false,
            doc: "Reads for each write in rndrw.",
        },
        SettingDoc {
            name: "direct",
            kind: Kind::Flag,
            default: "false",
            required: false,
            doc: "O_DIRECT: past the page cache.",
        },
        SettingDoc {
            name: "time",
            kind: Kind::Time,
            default: "10 s",
            required: false,
            doc: "Stop after this long.",
        },
        CONTENT,
        COMPRESS_RATIO,
        ENGINE,
    ],
    example: "fileio = { mode = \"rndrw\", size = \"1 GiB\", fsync-every = 100 }",
    parse: |settings| Ok(Box::new(FileIo::parse(settings)?)),
};

#[derive(Debug)]
struct FileIo {
    mode: &'static str,
    size: u64,
    files: u32,
    block_size: u32,
    threads: u32,
    read_share: f64,
    direct: bool,
    durability: Durability,
    time_ns: u64,
    content: Content,
    engine: Engine,
}

impl FileIo {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let size = size(settings)?;
        let files = at_least_one(settings, "files", 8)?;
        let mode = match settings.text("mode")?.as_deref() {
            Some("seqrewr") => "seqrewr",
            Some("seqrd") => "seqrd",
            Some("rndrd") => "rndrd",
            Some("rndwr") => "rndwr",
            Some("rndrw") => "rndrw",
            _ => "seqwr",
        };
        let ratio = settings.number("ratio")?.unwrap_or(1.5);
        let every = settings.count("fsync-every")?.unwrap_or(100);
        let engine = engine(settings)?;
        if engine == Engine::Uring && every == 1 && mode != "seqrd" && mode != "rndrd" {
            return Err(Refusal::at(
                settings.span_of("engine"),
                "a ring cannot count an fsync into the write before it",
                "write engine = \"sync\" or \"auto\", or another fsync-every",
            ));
        }
        Ok(Self {
            mode,
            size,
            files,
            block_size: block_size(settings, 16 << 10, size / u64::from(files))?,
            threads: at_least_one(settings, "threads", 1)?,
            read_share: match mode {
                "seqrd" | "rndrd" => 1.0,
                "rndrw" => ratio / (ratio + 1.0),
                _ => 0.0,
            },
            direct: settings.flag("direct")?.unwrap_or(false),
            durability: Durability {
                fsync_every: NonZeroU64::new(every),
                fsync_in_write: every == 1,
                fsync_at_end: settings.flag("fsync-at-end")?.unwrap_or(true),
                ..Durability::default()
            },
            time_ns: settings.time_ns("time")?.unwrap_or(10_000_000_000),
            content: content(settings)?,
            engine,
        })
    }

    fn sequential(&self) -> bool {
        self.mode.starts_with("seq")
    }

    fn spec(&self, place: &Place<'_>) -> Spec {
        let block = u64::from(self.block_size);
        let bytes = self.size / u64::from(self.files) / block * block;
        let blocks = bytes / block * u64::from(self.files);
        Spec {
            targets: (0..self.files)
                .map(|i| Target {
                    path: place.directory.join(format!("test_file.{i}")),
                    bytes,
                })
                .collect(),
            block_sizes: vec![(self.block_size, 1)],
            access: if self.sequential() {
                Access::Sequential
            } else {
                Access::OncePerPass
            },
            read_share: self.read_share,
            threads: self.threads,
            queue_depth: 1,
            direct: self.direct,
            durability: self.durability,
            pacing: Pacing::Closed { think_time_ns: 0 },
            content: self.content,
            // One pass: what was read once is cached, and would be read from there again.
            stop: Stop {
                ops: Some(blocks),
                time_ns: Some(self.time_ns),
            },
            engine: self.engine,
            seed: place.seed,
            slice_ns: SLICE_NS,
        }
    }

    fn ops(&self) -> &'static [Op] {
        match self.mode {
            "seqrd" | "rndrd" => &[Op::Read],
            "rndrw" => &[Op::Read, Op::Write],
            _ => &[Op::Write],
        }
    }
}

impl Workload for FileIo {
    fn summary(&self) -> String {
        let every = match self.durability.fsync_every {
            _ if self.read_share >= 1.0 => String::new(),
            None => ", no fsync before the end".to_owned(),
            Some(n) if n.get() == 1 => ", fsync after each write".to_owned(),
            Some(n) => format!(", fsync after every {n} writes"),
        };
        format!(
            "sysbench-style {} over {} files of together {}, blocks of {}, {} thread(s){every}, at most {}",
            self.mode,
            self.files,
            unit::bytes(self.size),
            unit::bytes(u64::from(self.block_size)),
            self.threads,
            unit::time_ns(self.time_ns as f64)
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let mut heads = vec![metric::operations_head(), metric::throughput_head()];
        for op in self.ops() {
            heads.extend(
                [Latency::Min, Latency::Mean, Latency::P95]
                    .map(|which| metric::latency_head(*op, which)),
            );
        }
        if self.read_share < 1.0 {
            heads.push(metric::head("fsyncs", "op/s", Better::Higher));
        }
        heads
    }

    fn cost(&self) -> Cost {
        Cost {
            prepare_bytes: if self.mode == "seqwr" { 0 } else { self.size },
            measured_bytes: None,
            disk_bytes: self.size,
            measured_ns: Some(self.time_ns),
            files: u64::from(self.files),
            working_set_bytes: self.size,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![self.mode]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), Trouble> {
        if self.mode == "seqwr" {
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
            return vec![None; self.metrics().len()];
        };
        let mut values = vec![metric::operations(outcome), metric::throughput(outcome)];
        for op in self.ops() {
            values.extend(
                [Latency::Min, Latency::Mean, Latency::P95]
                    .map(|which| metric::latency(outcome, *op, which)),
            );
        }
        if self.read_share < 1.0 {
            values.push(
                metric::of(outcome, Op::Fsync)
                    .map(|entry| entry.count as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64),
            );
        }
        values
    }
}
