//! A tree of files copied within the stack, plainly or as rsync does it.
//!
//! The tree is [`super::tree`]'s. As rsync: each file gets a temporary name, its times, owner and
//! mode, and is renamed.

use stackrace_engine::files::AtEnd;
use stackrace_engine::tree::{self, CopyMethod, CopyStyle, RSYNC_BUFFER_BYTES};
use stackrace_engine::{Op, PhaseOutcome};

use super::copy_file::{METHOD, SYNC_AT_END, at_end, durable, method_words};
use super::kind::{Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble};
use super::metric::Figure;
use super::tree::{FROM, HELD, INVENTED, Source};
use stackrace_base::setting::{OverShell, SettingDoc};

/// Flag to copy as rsync does.
const AS_RSYNC: SettingDoc = SettingDoc::flag(
    "as-rsync",
    "false",
    "Temporary name, mode and times set, renamed.",
);

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "copy-tree",
    summary: "a tree of files copied within the stack",
    source: "cp -r and rsync -a as traced on Linux",
    settings: &SettingDoc::joined::<13>(&[
        &INVENTED,
        &[FROM, METHOD.doc, AS_RSYNC, SYNC_AT_END],
        &HELD,
    ]),
    example: "copy-tree = { files = 2000, size-median = \"8 KiB\" }",
    mergeable: true,
    over_shell: OverShell::Nearest("command = { run = \"tar xf …\" }"),
    parse: |settings| {
        let mut method = settings.choice(METHOD)?;
        let mut manner = CopyStyle::Direct;
        if settings.flag("as-rsync")? {
            manner = CopyStyle::Renamed;
            // rsync has a buffer of its own size; without it the number of system calls would be
            // that of cp.
            if let CopyMethod::Classic { buffer_bytes } = &mut method {
                *buffer_bytes = RSYNC_BUFFER_BYTES;
            }
        }
        Ok(Box::new(CopyTree {
            source: Source::parse(settings)?,
            method,
            manner,
            at_end: at_end(settings)?,
        }))
    },
    ..WorkloadKind::PLAIN
};

#[derive(Debug)]
struct CopyTree {
    source: Source,
    method: CopyMethod,
    manner: CopyStyle,
    at_end: AtEnd,
}

impl Workload for CopyTree {
    fn summary(&self) -> String {
        format!(
            "copy {} {}{}{}",
            self.source.words(),
            method_words(self.method),
            if self.manner == CopyStyle::Renamed {
                ", as rsync does it"
            } else {
                ""
            },
            durable(self.at_end)
        )
    }

    fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = vec![
            Figure::elapsed(),
            Figure::throughput(),
            Figure::rate("files", &[Op::Copy]),
        ];
        figures.extend(Figure::cpu());
        figures
    }

    fn draws_sizes(&self) -> bool {
        self.source.is_drawn()
    }

    fn cost(&self) -> Cost {
        let one = self.source.cost();
        Cost {
            // Read once, written once.
            measured_bytes: Some(one.prepare_bytes.saturating_mul(2)),
            disk_bytes: one.disk_bytes.saturating_mul(2),
            files: one.files * 2,
            ..one
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["copy tree"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.source.build(place).map(drop)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
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
}
