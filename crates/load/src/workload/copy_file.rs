//! One large file copied within the stack.
//!
//! `classic` reads and writes buffers of 128 KiB as older cp and most file managers do;
//! `in-kernel` asks `copy_file_range`, `reflink` asks the file system to share blocks. On file
//! systems that share blocks the last two may move no data at all: the method is part of the
//! question, so it is named and never replaced silently.

use std::path::PathBuf;

use stackrace_engine::PhaseOutcome;
use stackrace_engine::files::AtEnd;
use stackrace_engine::spec::{Content, IoTarget};
use stackrace_engine::tree::{self, COPY_BUFFER_BYTES, CopyMethod};

use super::block::words::{COMPRESS_RATIO, CONTENT};
use super::block::{content, size};
use super::kind::{Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble};
use super::metric::{self, Figure};
use stackrace_base::setting::{ChoiceDoc, OverShell, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "copy-file",
    summary: "one large file copied within the stack",
    source: "cp of coreutils 9 (in-kernel, reflink) and before (classic)",
    settings: &[
        SettingDoc::bytes("size", "", "Size of the file.").required(),
        METHOD.doc,
        SYNC_AT_END,
        CONTENT.doc,
        COMPRESS_RATIO,
    ],
    example: "copy-file = { size = \"1 GiB\" }",
    mergeable: true,
    level: true,
    over_shell: OverShell::Nearest("command = { run = \"dd …\" } or \"cp …\""),
    parse: |settings| {
        Ok(Box::new(CopyFile {
            size: size(settings)?,
            method: settings.choice(METHOD)?,
            at_end: at_end(settings)?,
            content: content(settings)?,
        }))
    },
    ..WorkloadKind::PLAIN
};

/// Method by which data is copied.
pub(super) const METHOD: ChoiceDoc<CopyMethod> = choice!(
    "method",
    [
        // The default moves data for sure; the others may share blocks.
        "classic" => CopyMethod::Classic { buffer_bytes: COPY_BUFFER_BYTES },
        "in-kernel" => CopyMethod::InKernel,
        "reflink" => CopyMethod::Reflink,
    ],
    "classic",
    "Read and write buffers, copy_file_range, or share blocks.",
);
/// Durable before the clock stops.
pub(super) const SYNC_AT_END: SettingDoc = SettingDoc::flag(
    "sync-at-end",
    "true",
    "Make the result durable before the clock stops (cp itself never does).",
);

/// Reads whether the clock waits for durability.
pub(super) fn at_end(settings: &Settings) -> Result<AtEnd, Refusal> {
    Ok(if settings.flag("sync-at-end")? {
        AtEnd::Durable
    } else {
        AtEnd::Return
    })
}

/// The same in words.
pub(super) fn durable(at_end: AtEnd) -> &'static str {
    match at_end {
        AtEnd::Durable => ", durable before the clock stops",
        AtEnd::Return => "",
    }
}

/// Name of the method in the summary of a workload.
pub(super) fn method_words(method: CopyMethod) -> &'static str {
    match method {
        CopyMethod::Classic { .. } => "by reads and writes of 128 KiB",
        CopyMethod::InKernel => "by copy_file_range",
        CopyMethod::Reflink => "by sharing blocks (reflink)",
    }
}

#[derive(Debug)]
struct CopyFile {
    size: u64,
    method: CopyMethod,
    at_end: AtEnd,
    content: Content,
}

fn source(place: &Place<'_>) -> PathBuf {
    place.directory.join("source")
}

impl Workload for CopyFile {
    fn summary(&self) -> String {
        format!(
            "copy one file of {} {}{}",
            unit::bytes(self.size),
            method_words(self.method),
            durable(self.at_end)
        )
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        // The file once, not bytes read plus bytes written: that is what "copied at" means.
        let copied = |outcome: &PhaseOutcome| metric::per_second(self.size, outcome.elapsed_ns);
        let mut figures = vec![
            Figure::elapsed(),
            Figure::of(metric::throughput_head(), copied),
        ];
        figures.extend(Figure::cpu());
        figures
    }

    fn cost(&self) -> Cost {
        Cost {
            prepare_bytes: self.size,
            // Read once, written once.
            measured_bytes: Some(self.size * 2),
            disk_bytes: self.size * 2,
            measured_ns: None,
            files: 2,
            working_set_bytes: self.size,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["copy"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let target = IoTarget {
            path: source(place),
            bytes: self.size,
        };
        // The same content in every configuration of a round, because compression may depend on it.
        stackrace_engine::lay_out(&[target], self.content, place.seed, place.control)
            .map_err(trouble)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        tree::copy_file(
            &source(place),
            &place.directory.join("copy"),
            self.method,
            self.at_end,
            SLICE_NS,
            place.control,
        )
        .map_err(trouble)
    }
}
