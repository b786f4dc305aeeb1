//! What all workloads that read and write blocks share: their settings, and the engine's spec.
//!
//! A workload of this kind is a choice of mode, access and defaults; everything else means the same
//! in each of them and is documented, checked and resolved here.

use std::num::NonZeroU64;

use stackrace_engine::Outcome;
use stackrace_engine::spec::{Access, Content, Durability, Engine, Pacing, Spec, Stop, Target};

use super::{Cost, Place, SLICE_NS, Trouble, trouble};
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use crate::unit;

/// See its `doc`.
pub(super) const SIZE: SettingDoc = SettingDoc {
    name: "size",
    kind: Kind::Bytes,
    default: "",
    required: true,
    doc: "Size of the data: all files together.",
};
/// See its `doc`.
pub(super) const THREADS: SettingDoc = SettingDoc {
    name: "threads",
    kind: Kind::Count,
    default: "1",
    required: false,
    doc: "Threads.",
};
/// See its `doc`.
pub(super) const QUEUE_DEPTH: SettingDoc = SettingDoc {
    name: "queue-depth",
    kind: Kind::Count,
    default: "1",
    required: false,
    doc: "Operations outstanding at once, per thread.",
};
/// See its `doc`.
pub(super) const DIRECT: SettingDoc = SettingDoc {
    name: "direct",
    kind: Kind::Flag,
    default: "false",
    required: false,
    doc: "O_DIRECT: past the page cache.",
};
/// See its `doc`.
pub(super) const FSYNC_AT_END: SettingDoc = SettingDoc {
    name: "fsync-at-end",
    kind: Kind::Flag,
    default: "true",
    required: false,
    doc: "fsync before the clock stops, if anything was written.",
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

/// What differs from one workload to the next where nothing is written.
pub(super) struct Defaults {
    /// Bytes.
    pub(super) block_size: u32,
    /// Number of files.
    pub(super) files: u32,
    /// Writes between two fsyncs; 0: never.
    pub(super) fsync_every: u64,
}

/// One phase of block I/O, resolved but for its place and seed.
#[derive(Debug)]
pub(super) struct BlockIo {
    pub(super) size: u64,
    pub(super) files: u32,
    pub(super) block_size: u32,
    pub(super) threads: u32,
    pub(super) queue_depth: u32,
    pub(super) access: Access,
    pub(super) read_share: f64,
    pub(super) durability: Durability,
    pub(super) time_ns: Option<u64>,
    pub(super) operations: Option<u64>,
    pub(super) engine: Engine,
    pub(super) direct: bool,
    content: Content,
}

impl BlockIo {
    /// Reads the settings all share; access and read share are the caller's.
    pub(super) fn parse(settings: &Settings, defaults: &Defaults) -> Result<Self, Refusal> {
        let size = size(settings)?;
        let files = at_least_one(settings, "files", defaults.files)?;
        let every = settings
            .count("fsync-every")?
            .unwrap_or(defaults.fsync_every);
        Ok(Self {
            size,
            files,
            block_size: block_size(settings, defaults.block_size, size / u64::from(files))?,
            threads: at_least_one(settings, "threads", 1)?,
            queue_depth: at_least_one(settings, "queue-depth", 1)?,
            access: Access::Sequential,
            read_share: 0.0,
            durability: Durability {
                fsync_every: NonZeroU64::new(every),
                fsync_at_end: settings.flag("fsync-at-end")?.unwrap_or(true),
                ..Durability::default()
            },
            time_ns: settings.time_ns("time")?,
            operations: settings.count("operations")?,
            engine: engine(settings)?,
            direct: settings.flag("direct")?.unwrap_or(false),
            content: content(settings)?,
        })
    }

    /// Operations of one pass over the data.
    fn blocks(&self) -> u64 {
        self.file_bytes() / u64::from(self.block_size) * u64::from(self.files)
    }

    /// Bytes of one file: whole blocks.
    fn file_bytes(&self) -> u64 {
        let block = u64::from(self.block_size);
        self.size / u64::from(self.files) / block * block
    }

    fn spec(&self, place: &Place<'_>) -> Spec {
        let target = |file: u32| Target {
            path: place.directory.join(format!("data.{file}")),
            bytes: self.file_bytes(),
        };
        // One pass where each block comes once: what was read is cached, and would be read from
        // there the second time.
        let pass = match self.access {
            Access::Sequential | Access::OncePerPass => Some(self.blocks()),
            _ => None,
        };
        let ops = match (pass, self.operations) {
            (Some(pass), Some(asked)) => Some(pass.min(asked)),
            (pass, asked) => pass.or(asked),
        };
        Spec {
            targets: (0..self.files).map(target).collect(),
            block_sizes: vec![(self.block_size, 1)],
            access: self.access,
            align: None,
            read_share: self.read_share,
            threads: self.threads,
            queue_depth: self.queue_depth,
            direct: self.direct,
            preallocate: false,
            durability: self.durability,
            pacing: Pacing::Closed { think_time_ns: 0 },
            content: self.content,
            stop: Stop {
                ops,
                time_ns: self.time_ns,
            },
            engine: self.engine,
            seed: place.seed,
            slice_ns: SLICE_NS,
        }
    }

    /// Writes the files a later phase reads or overwrites.
    pub(super) fn lay_out(&self, place: &Place<'_>) -> Result<(), Trouble> {
        let targets = self.spec(place).targets;
        stackrace_engine::lay_out(&targets, self.content, place.seed, place.control)
            .map_err(trouble)
    }

    /// Runs the phase.
    pub(super) fn run(&self, place: &Place<'_>) -> Result<Outcome, Trouble> {
        stackrace_engine::run(&self.spec(place), place.control).map_err(trouble)
    }

    /// What it costs; `laid_out`: the data are written before the clock starts.
    pub(super) fn cost(&self, laid_out: bool) -> Cost {
        Cost {
            prepare_bytes: if laid_out { self.size } else { 0 },
            measured_bytes: None,
            disk_bytes: self.size,
            measured_ns: self.time_ns,
            files: u64::from(self.files),
            working_set_bytes: self.size,
        }
    }

    /// `, fsync after every 16 writes`, or nothing where nothing is written.
    pub(super) fn fsync_words(&self) -> String {
        match self.durability.fsync_every {
            _ if self.read_share >= 1.0 => String::new(),
            None => String::new(),
            Some(n) if n.get() == 1 => ", fsync after each write".to_owned(),
            Some(n) => format!(", fsync after every {n} writes"),
        }
    }
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
    let content = settings.text("content")?;
    if content.as_deref() == Some("zero") && ratio > 1.0 {
        return Err(Refusal::at(
            settings.span_of("compress-ratio"),
            "zeros have no compress-ratio of their own",
            "leave out compress-ratio, or write content = \"random\"",
        ));
    }
    Ok(match content.as_deref() {
        Some("zero") => Content::Zero,
        _ if ratio > 1.0 => Content::Shaped {
            ratio,
            duplicates: 0.0,
        },
        _ => Content::Random,
    })
}

/// The engine asked for.
fn engine(settings: &Settings) -> Result<Engine, Refusal> {
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
fn block_size(settings: &Settings, default: u32, size: u64) -> Result<u32, Refusal> {
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
