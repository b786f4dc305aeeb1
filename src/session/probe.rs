//! How fast directories are, roughly: sizes the trials of a comparison, is never reported.

use std::path::{Path, PathBuf};

use stackrace_engine::Control;
use stackrace_engine::files::{AtEnd, CurrentNames, FileSet, Pass, VisitOrder};
use stackrace_engine::spec::{Content, IoTarget};

use super::context::Context;
use super::temporary;
use crate::failure::Failure;
use crate::host::{Host, local::LocalHost};
use crate::journal::{Journal, Undo};
use crate::purpose::Pace;
use crate::time::{Clock, SystemClock};
use crate::workload::SLICE_NS;

/// Bytes written to each directory.
pub(super) const PROBE_BYTES: u64 = 32 << 20;
/// Files made in it.
const PROBE_FILES: u64 = 200;

/// How fast the slowest directory is, roughly: sizes the trials, is never reported.
///
/// # Errors
/// A directory cannot be written to.
pub(super) fn pace<'a>(
    context: &Context,
    host: &LocalHost,
    directories: impl Iterator<Item = (&'a str, &'a Path)>,
) -> Result<Pace, Failure> {
    temporary::work(context, host, |journal, id| {
        let mut pace = Pace {
            write_rate: f64::INFINITY,
            create_rate: f64::INFINITY,
        };
        for (name, path) in directories {
            let one = probe_one(
                host,
                journal,
                name,
                path.join(format!(".stackrace-probe-{id}")),
            )?;
            pace.write_rate = pace.write_rate.min(one.write_rate);
            pace.create_rate = pace.create_rate.min(one.create_rate);
        }
        Ok(pace)
    })
}

/// Writes one file and makes some small ones below `root`, which does not exist yet.
fn probe_one(
    host: &dyn Host,
    journal: &Journal,
    name: &str,
    root: PathBuf,
) -> Result<Pace, Failure> {
    let refuse = |error: &dyn std::fmt::Display| {
        Failure::refused(format!("{name} cannot be used: {error}"))
            .next("choose a directory you may write to, with some free space")
    };
    journal
        .will(name, Undo::RemoveTree(root.clone()))
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    host.create_dir(&root).map_err(|error| refuse(&error))?;
    let control = Control::default();
    let seconds = |began: u64| (SystemClock.now_ns().saturating_sub(began) as f64 / 1e9).max(1e-6);
    let began = SystemClock.now_ns();
    let target = IoTarget {
        path: root.join("data"),
        bytes: PROBE_BYTES,
    };
    stackrace_engine::lay_out(&[target], Content::Random, 1, &control)
        .map_err(|error| refuse(&error))?;
    let write_rate = PROBE_BYTES as f64 / seconds(began);
    let set = FileSet {
        root,
        directories: 1,
        files: PROBE_FILES,
        size_min: 1024,
        size_max: 4096,
        threads: 1,
        fsync_each: false,
        content: Content::Random,
        names: CurrentNames::default(),
        seed: 1,
    };
    let began = SystemClock.now_ns();
    set.prepare().map_err(|error| refuse(&error))?;
    let outcome = set
        .create(Pass {
            order: VisitOrder::Creation,
            at_end: AtEnd::Durable,
            slice_ns: SLICE_NS,
            control: &control,
        })
        .map_err(|error| refuse(&error))?;
    if let Some(error) = outcome.error {
        return Err(refuse(&error));
    }
    Ok(Pace {
        write_rate,
        create_rate: PROBE_FILES as f64 / seconds(began),
    })
}
