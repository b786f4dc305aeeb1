//! Many small files: create, stat, read, unlink, each phase on a settled stack.
//!
//! Directories are made before the clock starts. Creating and unlinking end with a `syncfs` inside
//! the clock (unless switched off): metadata that is only in memory has not been stored. Reading
//! opens, reads whole and closes.

use stackrace_engine::files::{AtEnd, FileSet, Order};
use stackrace_engine::spec::Content;
use stackrace_engine::{Op, Outcome};

use super::block::words::{COMPRESS_RATIO, CONTENT};
use super::block::{at_least_one, content};
use super::copy_file::{at_end, durable};
use super::metric::{self, Latency};
use super::{Cost, Place, SLICE_NS, Trouble, Workload, WorkloadKind, trouble};
use crate::event::{Better, MetricHead};
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use crate::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "files",
    summary: "many small files created, looked up, read and unlinked",
    source: "the common core of bonnie++ -n, mdtest and fs_mark",
    settings: &[
        SettingDoc {
            name: "count",
            kind: Kind::Count,
            default: "",
            required: true,
            doc: "Number of files.",
        },
        SettingDoc {
            name: "directories",
            kind: Kind::Count,
            default: "16",
            required: false,
            doc: "Number of directories they are spread over.",
        },
        SettingDoc {
            name: "size-min",
            kind: Kind::Bytes,
            default: "1 KiB",
            required: false,
            doc: "Smallest file.",
        },
        SettingDoc {
            name: "size-max",
            kind: Kind::Bytes,
            default: "16 KiB",
            required: false,
            doc: "Largest file (sizes are log-uniform between).",
        },
        SettingDoc {
            name: "threads",
            kind: Kind::Count,
            default: "1",
            required: false,
            doc: "Threads.",
        },
        SettingDoc {
            name: "fsync",
            kind: Kind::Flag,
            default: "false",
            required: false,
            doc: "fsync each file when it is created.",
        },
        SettingDoc {
            name: "sync-at-end",
            kind: Kind::Flag,
            default: "true",
            required: false,
            doc: "Make created and unlinked files durable before the clock stops.",
        },
        CONTENT,
        COMPRESS_RATIO,
    ],
    example: "files = { count = 10000, size-min = \"1 KiB\", size-max = \"16 KiB\" }",
    parse: |settings| Ok(Box::new(Files::parse(settings)?)),
};

const PHASES: [(&str, Op); 4] = [
    ("create", Op::Create),
    ("stat", Op::Stat),
    ("read", Op::Open),
    ("unlink", Op::Unlink),
];

#[derive(Debug)]
struct Files {
    count: u64,
    directories: u32,
    size_min: u64,
    size_max: u64,
    threads: u32,
    fsync: bool,
    at_end: AtEnd,
    content: Content,
}

impl Files {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let count = settings.count("count")?.unwrap_or(0);
        if count == 0 || count > 100_000_000 {
            return Err(Refusal::at(
                settings.span_of("count"),
                "count must be between 1 and 100 million",
                "",
            ));
        }
        let size_min = settings.bytes("size-min")?.unwrap_or(1 << 10);
        let size_max = settings
            .bytes("size-max")?
            .unwrap_or((16 << 10).max(size_min));
        if size_max < size_min {
            return Err(Refusal::at(
                settings.span_of("size-max"),
                "size-max is below size-min",
                "swap them",
            ));
        }
        Ok(Self {
            count,
            directories: at_least_one(settings, "directories", 16)?,
            size_min,
            size_max,
            threads: at_least_one(settings, "threads", 1)?,
            fsync: settings.flag("fsync")?.unwrap_or(false),
            at_end: at_end(settings)?,
            content: content(settings)?,
        })
    }

    fn set(&self, place: &Place<'_>) -> FileSet {
        FileSet {
            root: place.directory.to_owned(),
            directories: self.directories,
            files: self.count,
            size_min: self.size_min,
            size_max: self.size_max,
            threads: self.threads,
            fsync_each: self.fsync,
            content: self.content,
            seed: place.seed,
        }
    }

    /// Mean of a log-uniform distribution: (max - min) / ln(max / min).
    fn bytes_expected(&self) -> u64 {
        let (low, high) = (self.size_min.max(1) as f64, self.size_max.max(1) as f64);
        let mean = if self.size_max > self.size_min {
            (high - low) / (high / low).ln()
        } else {
            self.size_max as f64
        };
        (mean * self.count as f64) as u64
    }
}

impl Workload for Files {
    fn summary(&self) -> String {
        format!(
            "create, stat, read and unlink {} files of {} to {} in {} directories, {} thread(s){}{}",
            self.count,
            unit::bytes(self.size_min),
            unit::bytes(self.size_max),
            self.directories,
            self.threads,
            if self.fsync { ", fsync after each" } else { "" },
            durable(self.at_end)
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let mut heads = vec![metric::elapsed_head()];
        for (name, op) in PHASES {
            heads.push(metric::head(name, "op/s", Better::Higher));
            heads.push(metric::latency_head(op, Latency::P99));
        }
        heads
    }

    fn cost(&self) -> Cost {
        let bytes = self.bytes_expected();
        // A file takes at least one block of 4 KiB and an inode.
        let disk = (bytes + self.count * 4096).max(1 << 20);
        Cost {
            prepare_bytes: 0,
            measured_bytes: Some(bytes * 2),
            disk_bytes: disk,
            measured_ns: None,
            files: self.count,
            working_set_bytes: bytes,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        PHASES.iter().map(|(name, _)| *name).collect()
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), Trouble> {
        self.set(place).prepare().map_err(trouble)
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<Outcome, Trouble> {
        let set = self.set(place);
        match phase {
            0 => set.create(self.at_end, SLICE_NS, place.control),
            1 => set.stat(Order::Random, SLICE_NS, place.control),
            2 => set.read(Order::Random, SLICE_NS, place.control),
            _ => set.unlink(Order::Random, self.at_end, SLICE_NS, place.control),
        }
        .map_err(trouble)
    }

    fn evaluate(&self, outcomes: &[Outcome]) -> Vec<Option<f64>> {
        let whole: u64 = outcomes.iter().map(|outcome| outcome.elapsed_ns).sum();
        let mut values = vec![(outcomes.len() == PHASES.len()).then_some(whole as f64 / 1e9)];
        for (index, (_, op)) in PHASES.iter().enumerate() {
            let outcome = outcomes.get(index);
            values.push(outcome.and_then(metric::operations));
            values.push(outcome.and_then(|outcome| metric::latency(outcome, *op, Latency::P99)));
        }
        values
    }
}
