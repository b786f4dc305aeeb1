//! A tree of files copied within the stack, plainly or as rsync does it.
//!
//! The tree is generated from a profile (sizes log-normal) or copied from a real directory given by
//! the user. As rsync: each file gets a temporary name, its mode and times, and is renamed.

use std::path::PathBuf;

use stackrace_engine::Outcome;
use stackrace_engine::files::AtEnd;
use stackrace_engine::spec::Content;
use stackrace_engine::tree::{
    self, COPY_BUFFER_BYTES, CopyMethod, Entry, Manner, SizeDistribution, TreeShape,
};

use super::block::content;
use super::block::words::{COMPRESS_RATIO, CONTENT};
use super::copy_file::{METHOD, SYNC_AT_END, at_end, durable, method, method_words};
use super::metric;
use super::{Cost, Place, SLICE_NS, Trouble, Workload, WorkloadKind, trouble};
use crate::event::{Better, MetricHead};
use crate::setting::{Kind, Refusal, Setting, SettingDoc, Settings};
use crate::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "copy-tree",
    summary: "a tree of files copied within the stack",
    source: "cp -r and rsync -a as traced on Linux",
    settings: &[
        FILES,
        DIRECTORIES,
        SIZE_MEDIAN,
        SIZE_SPREAD,
        SIZE_MAX,
        FROM,
        METHOD,
        SettingDoc {
            name: "as-rsync",
            kind: Kind::Flag,
            default: "false",
            required: false,
            doc: "Temporary name, mode and times set, renamed.",
        },
        SYNC_AT_END,
        CONTENT,
        COMPRESS_RATIO,
    ],
    example: "copy-tree = { files = 2000, size-median = \"8 KiB\" }",
    parse: |settings| {
        Ok(Box::new(CopyTree {
            source: Source::parse(settings)?,
            method: method(settings)?,
            manner: if settings.flag("as-rsync")?.unwrap_or(false) {
                Manner::Renamed
            } else {
                Manner::Direct
            },
            at_end: at_end(settings)?,
        }))
    },
};

/// Number of files.
pub(super) const FILES: SettingDoc = SettingDoc {
    name: "files",
    kind: Kind::Count,
    default: "1000",
    required: false,
    doc: "Number of files generated.",
};
/// Number of directories.
pub(super) const DIRECTORIES: SettingDoc = SettingDoc {
    name: "directories",
    kind: Kind::Count,
    default: "50",
    required: false,
    doc: "Number of directories generated.",
};
/// Median size.
pub(super) const SIZE_MEDIAN: SettingDoc = SettingDoc {
    name: "size-median",
    kind: Kind::Bytes,
    default: "16 KiB",
    required: false,
    doc: "Median size of a file.",
};
/// Spread.
pub(super) const SIZE_SPREAD: SettingDoc = SettingDoc {
    name: "size-spread",
    kind: Kind::Number,
    default: "1.5",
    required: false,
    doc: "Standard deviation of the natural logarithm of the sizes; 0: all equal.",
};
/// Largest size.
pub(super) const SIZE_MAX: SettingDoc = SettingDoc {
    name: "size-max",
    kind: Kind::Bytes,
    default: "64 MiB",
    required: false,
    doc: "No file is larger.",
};
/// A real tree.
pub(super) const FROM: SettingDoc = SettingDoc {
    name: "from",
    kind: Kind::Text,
    default: "",
    required: false,
    doc: "A real directory whose tree is used instead of a generated one (it is only read).",
};

/// Refuses words about a generated tree beside a real one: they would be ignored.
fn not_generated(settings: &Settings) -> Result<(), Refusal> {
    let generated = [
        FILES,
        DIRECTORIES,
        SIZE_MEDIAN,
        SIZE_SPREAD,
        SIZE_MAX,
        CONTENT,
        COMPRESS_RATIO,
    ];
    let clash = |setting: &&Setting| generated.iter().any(|doc| doc.name == setting.name);
    match settings.settings.iter().find(clash) {
        None => Ok(()),
        Some(setting) => Err(Refusal::at(
            &setting.name_span,
            format!(
                "{} describes a generated tree, and `from` names a real one",
                setting.name
            ),
            "leave out one of the two",
        )),
    }
}

/// Where the tree comes from.
#[derive(Debug)]
pub(super) struct Source {
    shape: TreeShape,
    from: Option<PathBuf>,
    content: Content,
    bytes: u64,
    files: u64,
}

impl Source {
    /// Reads the settings that describe a tree.
    pub(super) fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let files = settings.count("files")?.unwrap_or(1000);
        let directories = settings.count("directories")?.unwrap_or(50);
        if files == 0 || files > 50_000_000 || directories == 0 || directories > 1_000_000 {
            return Err(Refusal::at(
                settings.span_of("files"),
                "a tree has 1 to 50 million files in 1 to 1 million directories",
                "",
            ));
        }
        let median = settings.bytes("size-median")?.unwrap_or(16 << 10);
        let sigma = settings.number("size-spread")?.unwrap_or(1.5);
        let max = settings.bytes("size-max")?.unwrap_or(64 << 20).max(median);
        let size = if sigma == 0.0 {
            SizeDistribution::Fixed { bytes: median }
        } else {
            SizeDistribution::LogNormal {
                median_bytes: median,
                sigma,
                max_bytes: max,
            }
        };
        let shape = TreeShape {
            directories: u32::try_from(directories).unwrap_or(u32::MAX),
            depth_max: 6,
            files,
            size,
            symlink_share: 0.01,
            name_bytes_min: 6,
            name_bytes_max: 24,
            seed: 0,
        };
        let from = settings.text("from")?.map(PathBuf::from);
        if let Some(from) = &from
            && !from.is_dir()
        {
            return Err(Refusal::at(
                settings.span_of("from"),
                format!("{} is no directory", from.display()),
                "name an existing directory; it is only read",
            ));
        }
        if from.is_some() {
            not_generated(settings)?;
        }
        let entries = match &from {
            Some(from) => {
                tree::scan(from)
                    .map_err(|error| Refusal::at(settings.span_of("from"), error.to_string(), ""))?
                    .entries
            }
            None => shape.entries(),
        };
        Ok(Self {
            shape,
            from,
            content: content(settings)?,
            bytes: tree::total_bytes(&entries),
            files: entries.len() as u64,
        })
    }

    /// One clause.
    pub(super) fn words(&self) -> String {
        let what = self
            .from
            .as_ref()
            .map_or("a generated tree".to_owned(), |from| {
                format!("the tree of {}", from.display())
            });
        format!(
            "{what} of {} entries, {}",
            self.files,
            unit::bytes(self.bytes)
        )
    }

    /// What one tree needs.
    pub(super) fn cost(&self) -> Cost {
        let disk = self.bytes + self.files * 4096;
        Cost {
            prepare_bytes: self.bytes,
            measured_bytes: Some(0),
            disk_bytes: disk,
            measured_ns: None,
            files: self.files,
            working_set_bytes: self.bytes,
        }
    }

    /// Makes the tree at `place/source`.
    pub(super) fn build(&self, place: &Place<'_>) -> Result<PathBuf, Trouble> {
        let root = place.directory.join("source");
        match &self.from {
            Some(from) => {
                tree::copy_tree(
                    from,
                    &root,
                    CopyMethod::Classic {
                        buffer_bytes: COPY_BUFFER_BYTES,
                    },
                    Manner::Direct,
                    AtEnd::Durable,
                    SLICE_NS,
                    place.control,
                )
                .map_err(trouble)
                .and_then(|outcome| match outcome.error {
                    Some(error) => Err(trouble(error)),
                    None => Ok(()),
                })?;
            }
            None => {
                let shape = TreeShape {
                    seed: place.seed,
                    ..self.shape.clone()
                };
                let entries: Vec<Entry> = shape.entries();
                tree::build(&entries, &root, self.content, place.seed, place.control)
                    .map_err(trouble)?;
            }
        }
        Ok(root)
    }
}

#[derive(Debug)]
struct CopyTree {
    source: Source,
    method: CopyMethod,
    manner: Manner,
    at_end: AtEnd,
}

impl Workload for CopyTree {
    fn summary(&self) -> String {
        format!(
            "copy {} {}{}{}",
            self.source.words(),
            method_words(self.method),
            if self.manner == Manner::Renamed {
                ", as rsync does it"
            } else {
                ""
            },
            durable(self.at_end)
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![
            metric::elapsed_head(),
            metric::throughput_head(),
            metric::head("files", "op/s", Better::Higher),
        ]
    }

    fn cost(&self) -> Cost {
        let one = self.source.cost();
        Cost {
            measured_bytes: Some(one.prepare_bytes * 2),
            disk_bytes: one.disk_bytes * 2,
            files: one.files * 2,
            ..one
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["copy tree"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), Trouble> {
        self.source.build(place).map(drop)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<Outcome, Trouble> {
        tree::copy_tree(
            &place.directory.join("source"),
            &place.directory.join("copy"),
            self.method,
            self.manner,
            self.at_end,
            SLICE_NS,
            place.control,
        )
        .map_err(trouble)
    }

    fn evaluate(&self, outcomes: &[Outcome]) -> Vec<Option<f64>> {
        let Some(outcome) = outcomes.first() else {
            return vec![None; 3];
        };
        vec![
            metric::elapsed(outcome),
            metric::throughput(outcome),
            metric::operations(outcome),
        ]
    }
}
