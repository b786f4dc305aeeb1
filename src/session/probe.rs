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

/// How fast the directories are, roughly: sizes the trials, is never reported. All get the same work,
/// so a rate is that of all of them one after the other.
///
/// # Errors
/// A directory cannot be written to.
pub(super) fn pace<'a>(
    context: &Context,
    host: &LocalHost,
    directories: impl Iterator<Item = (&'a str, &'a Path)>,
) -> Result<Pace, Failure> {
    temporary::work(context, host, |journal, id| {
        let mut probed = Vec::new();
        for (name, path) in directories {
            let root = path.join(format!(".stackrace-probe-{id}"));
            probed.push(probe_one(host, journal, name, root)?);
        }
        let together = |rate: fn(&Pace) -> f64| {
            let seconds: f64 = probed.iter().map(|pace| rate(pace).recip()).sum();
            probed.len() as f64 / seconds
        };
        Ok(Pace {
            write_rate: together(|pace| pace.write_rate),
            read_rate: together(|pace| pace.read_rate),
            create_rate: together(|pace| pace.create_rate),
        })
    })
}

/// Writes one file, reads it again, and makes some small ones below `root`, which does not exist yet.
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
    let data = root.join("data");
    // Where the pages stay, reading is only thought to be faster than it is.
    let _ = stackrace_engine::residency::evict(&data);
    let began = SystemClock.now_ns();
    stackrace_engine::residency::populate(&data).map_err(|error| refuse(&error))?;
    let read_rate = PROBE_BYTES as f64 / seconds(began);
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
        read_rate,
        create_rate: PROBE_FILES as f64 / seconds(began),
    })
}
