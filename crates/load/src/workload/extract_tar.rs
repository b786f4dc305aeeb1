//! A tar archive unpacked within the stack, as GNU `tar -x` does it.
//!
//! The archive lies on the stack as well: one the user names is copied there before the clock
//! starts, and otherwise one is made of a tree of [`super::tree`].

use stackrace_base::unit::ShownPath;
use std::path::PathBuf;

use stackrace_engine::files::AtEnd;
use stackrace_engine::{Op, PhaseOutcome, tree};

use super::copy_file::{SYNC_AT_END, at_end, durable};
use super::kind::{Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble};
use super::metric::Figure;
use super::read_file::{bring, real_file};
use super::tree::{ENTRY_BYTES, HELD, INVENTED, Source, alone};
use stackrace_base::setting::{OverShell, Refusal, SettingDoc, Settings};
use stackrace_base::unit;

/// Settings that describe the tree in an archive that is made.
const MADE: [SettingDoc; 9] = SettingDoc::joined(&[&INVENTED, &HELD]);
const FROM: SettingDoc = SettingDoc::text(
    "from",
    "",
    "A real tar archive, not compressed, used instead of a made one (it is only read).",
);

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "extract-tar",
    summary: "a tar archive unpacked within the stack",
    source: "tar -x of GNU tar 1.34 as traced on Linux",
    settings: &SettingDoc::joined::<11>(&[&INVENTED, &[FROM, SYNC_AT_END], &HELD]),
    example: "extract-tar = { profile = \"source-code\", scale = 0.5 }",
    mergeable: true,
    over_shell: OverShell::Nearest("command = { run = \"tar xf …\" }"),
    parse: |settings| {
        Ok(Box::new(ExtractTar {
            archive: Archive::parse(settings)?,
            at_end: at_end(settings)?,
        }))
    },
    ..WorkloadKind::PLAIN
};

#[derive(Debug)]
enum Archive {
    Made(Source),
    Real { path: PathBuf, bytes: u64 },
}

impl Archive {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let Some((path, bytes)) = real_file(settings)? else {
            return Ok(Self::Made(Source::parse(settings)?));
        };
        // What describes a made archive says nothing of a real one.
        alone(settings, "from", &MADE)?;
        Ok(Self::Real { path, bytes })
    }
}

#[derive(Debug)]
struct ExtractTar {
    archive: Archive,
    at_end: AtEnd,
}

impl Workload for ExtractTar {
    fn summary(&self) -> String {
        let what = match &self.archive {
            Archive::Made(source) => format!("a tar archive of {}", source.words()),
            Archive::Real { path, bytes } => {
                format!("{}, {}", path.shown(), unit::bytes(*bytes))
            }
        };
        format!("unpack {what}{}", durable(self.at_end))
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = vec![
            Figure::elapsed(),
            Figure::throughput(),
            Figure::rate("files", &[Op::Create, Op::Link]),
        ];
        figures.extend(Figure::cpu());
        figures
    }

    fn draws_sizes(&self) -> bool {
        matches!(&self.archive, Archive::Made(source) if source.is_drawn())
    }

    fn cost(&self) -> Cost {
        // An archive has a header of 512 bytes for each entry, a file system a block. How many
        // entries a real archive has is not known before it is read.
        let (bytes, entries) = match &self.archive {
            Archive::Made(source) => (
                source.bytes.saturating_add(source.entries * 1024),
                source.entries,
            ),
            Archive::Real { bytes, .. } => (*bytes, 0),
        };
        Cost {
            prepare_bytes: bytes,
            // The archive read, its content written.
            measured_bytes: Some(bytes.saturating_mul(2)),
            disk_bytes: bytes
                .saturating_mul(2)
                .saturating_add(entries * ENTRY_BYTES),
            measured_ns: None,
            files: entries + 1,
            working_set_bytes: bytes,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["extract"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        match &self.archive {
            Archive::Made(source) => source.archive(place).map(drop),
            Archive::Real { path, .. } => bring(path, "source.tar", place),
        }
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        tree::extract_tar(
            &place.directory.join("source.tar"),
            &place.directory.join("extracted"),
            self.at_end,
            SLICE_NS,
            place.control,
        )
        .map_err(trouble)
    }
}
