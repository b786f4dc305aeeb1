//! One large file read from beginning to end, as dd reads it.
//!
//! The file is made before the clock starts, or one the user names is copied onto the stack; it is
//! read cold, as every phase starts. `stackrace load FILE read-file` reads a file where it lies.

use stackrace_base::unit::{InWords, ShownPath};
use std::path::{Path, PathBuf};

use stackrace_engine::files::AtEnd;
use stackrace_engine::spec::IoTarget;
use stackrace_engine::tree::{self, COPY_BUFFER_BYTES, CopyMethod};
use stackrace_engine::{Op, PhaseOutcome};

use super::block::words::{COMPRESS_RATIO, CONTENT, DIRECT, block_size};
use super::block::{content, size};
use super::kind::{
    Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble, trouble_at,
};
use super::metric::{Figure, Latency};
use super::tree::alone;
use stackrace_base::setting::{OverShell, Refusal, SettingDoc, Settings};
use stackrace_base::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "read-file",
    summary: "one large file read from beginning to end",
    source: "dd of coreutils 9.1 as traced on Linux, without its write to /dev/null",
    settings: &[
        SIZE,
        FROM,
        block_size("1 MiB"),
        DIRECT,
        CONTENT.doc,
        COMPRESS_RATIO,
    ],
    example: "read-file = { size = \"1 GiB\", block-size = \"128 KiB\" }",
    mergeable: true,
    level: true,
    over_shell: OverShell::Nearest("command = { run = \"dd …\" } or \"cp …\""),
    parse: |settings| Ok(Box::new(ReadFile::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

const SIZE: SettingDoc = SettingDoc::bytes(
    "size",
    "",
    "Size of the file; needed unless `from` is given.",
);
const FROM: SettingDoc = SettingDoc::text(
    "from",
    "",
    "A real file, read instead of a made one (copied onto the stack first, itself only read).",
);

/// The file named by `from`, if it is, and its size.
pub(super) fn real_file(settings: &Settings) -> Result<Option<(PathBuf, u64)>, Refusal> {
    let Some(from) = settings.optional_text("from")? else {
        return Ok(None);
    };
    match std::fs::metadata(&from) {
        Ok(about) if about.is_file() && about.len() > 0 => Ok(Some((from.into(), about.len()))),
        Ok(_) => Err(format!("{from} is no regular file with something in it")),
        Err(error) => Err(format!("{from}: {error}", error = error.in_words())),
    }
    .map_err(|message| {
        let help = "name an existing file; it is only read";
        settings.refuse("from", message, help)
    })
}

/// Copies a file of the user's onto the stack, under a name of ours.
pub(super) fn bring(from: &Path, name: &str, place: &Place<'_>) -> Result<(), WorkloadError> {
    // A name may be a link to the file; the copy itself follows none.
    let from = from
        .canonicalize()
        .map_err(|error| trouble_at(from, error))?;
    let method = CopyMethod::Classic {
        buffer_bytes: COPY_BUFFER_BYTES,
    };
    let to = place.directory.join(name);
    let copied = tree::copy_file(&from, &to, method, AtEnd::Durable, SLICE_NS, place.control);
    let outcome = copied.map_err(trouble)?;
    outcome.error.map_or(Ok(()), |error| Err(trouble(error)))
}

#[derive(Debug)]
struct ReadFile {
    size: u64,
    from: Option<PathBuf>,
    block_bytes: u32,
    direct: bool,
    content: stackrace_engine::spec::Content,
}

impl ReadFile {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let (from, size) = match real_file(settings)? {
            None => (None, size(settings)?),
            Some((from, bytes)) => {
                alone(settings, "from", &[SIZE, CONTENT.doc, COMPRESS_RATIO])?;
                (Some(from), bytes)
            }
        };
        let direct = settings.flag("direct")?;
        let block = settings.bytes("block-size")?;
        // dd takes any size; direct I/O does not.
        let fits = (1..=64 << 20).contains(&block) && (!direct || block.is_multiple_of(512));
        let block_bytes = u32::try_from(block).ok().filter(|_| fits);
        Ok(Self {
            size,
            from,
            block_bytes: block_bytes.ok_or_else(|| {
                settings.refuse(
                    "block-size",
                    format!("block size {} does not work here", unit::bytes(block)),
                    "choose from 1 B to 64 MiB; for direct I/O a multiple of 512 B",
                )
            })?,
            direct,
            content: content(settings)?,
        })
    }

    /// The summary of reads of so many bytes of something.
    fn words(&self, of_what: &str) -> String {
        format!(
            "read {of_what} {} in blocks of {}{}",
            unit::bytes(self.size),
            unit::bytes(self.block_bytes.into()),
            if self.direct { ", O_DIRECT" } else { "" }
        )
    }
}

impl Workload for ReadFile {
    fn summary(&self) -> String {
        match &self.from {
            Some(from) => self.words(&format!("a copy of {} of", from.shown())),
            None => self.words("a file of"),
        }
    }

    fn summary_on_existing(&self) -> String {
        self.words("the first")
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = vec![
            Figure::throughput(),
            Figure::elapsed(),
            Figure::latency(Op::Read, Latency::P99),
        ];
        figures.extend(Figure::cpu());
        figures
    }

    fn cost(&self) -> Cost {
        Cost {
            prepare_bytes: self.size,
            measured_bytes: Some(self.size),
            disk_bytes: self.size,
            measured_ns: None,
            files: 1,
            working_set_bytes: self.size,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["read"]
    }

    fn on_existing(&self) -> Result<(), WorkloadError> {
        match &self.from {
            None => Ok(()),
            Some(_) => Err(trouble("`from` names another file")),
        }
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        if let Some(from) = &self.from {
            return bring(from, "source", place);
        }
        let target = IoTarget {
            path: place.directory.join("source"),
            bytes: self.size,
        };
        stackrace_engine::lay_out(&[target], self.content, place.seed, place.control)
            .map_err(trouble)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        // Of what exists, a part may have been asked for.
        let (path, bytes) = match place.existing {
            Some(path) => (path.to_owned(), Some(self.size)),
            // A file of our own is read to its end.
            None => (place.directory.join("source"), None),
        };
        let (block, direct) = (self.block_bytes, self.direct);
        tree::read_file(&path, block, direct, bytes, SLICE_NS, place.control).map_err(trouble)
    }
}
