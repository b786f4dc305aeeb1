//! A tree of files copied within the stack, plainly or as rsync does it.
//!
//! The tree is [`super::tree`]'s. As rsync: each file gets a temporary name, its times, owner and
//! mode, and is renamed.

use stackrace_engine::files::AtEnd;
use stackrace_engine::tree::{self, CopyMethod, Manner, RSYNC_BUFFER_BYTES};
use stackrace_engine::{Op, Outcome};

use super::block::words::{COMPRESS_RATIO, CONTENT};
use super::copy_file::{METHOD, SYNC_AT_END, at_end, durable, method, method_words};
use super::metric;
use super::tree::{
    DIRECTORIES, FILES, FROM, PROFILE, SCALE, SIZE_MAX, SIZE_MEDIAN, SIZE_SPREAD, Source,
};
use super::{Cost, Place, SLICE_NS, Trouble, Workload, WorkloadKind, trouble};
use crate::event::{Better, MetricHead};
use crate::setting::{Kind, SettingDoc};

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
        PROFILE,
        SCALE,
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
        let mut method = method(settings)?;
        let mut manner = Manner::Direct;
        if settings.flag("as-rsync")?.unwrap_or(false) {
            manner = Manner::Renamed;
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
};

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
        let mut heads = vec![
            metric::elapsed_head(),
            metric::throughput_head(),
            metric::head("files", "op/s", Better::Higher),
        ];
        heads.extend(metric::cpu_heads());
        heads
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
            return vec![None; 5];
        };
        let mut values = vec![
            metric::elapsed(outcome),
            metric::throughput(outcome),
            metric::operations_of(outcome, &[Op::Copy]),
        ];
        values.extend(metric::cpu(outcome));
        values
    }
}
