//! `stackrace compare`: existing directories raced against each other, without a study file.
//!
//! A comparison is an ordinary study that the program writes: `--print-study` shows it. Before
//! anything is measured, the directories are looked at for reasons why the answer would mislead.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stackrace_engine::Control;
use stackrace_engine::files::{AtEnd, CurrentNames, FileSet, Pass, VisitOrder};
use stackrace_engine::spec::{Content, IoTarget};

use super::Setting;
use super::args::{Arguments, Compare, Verb};
use super::execute;
use super::failure::Failure;
use crate::host::{Host, MountInfo, local::LocalHost};
use crate::journal::{Journal, Undo};
use crate::observe;
use crate::purpose::{self, Pace, Purpose};
use crate::time::{Clock, SystemClock};
use crate::unit;

/// Rounds a comparison's trials are sized for.
const ROUNDS: u32 = 8;
/// Rounds it does at most, if they turn out shorter than that: the next look.
const ROUNDS_MAX: u32 = 12;
/// Share of the time given to measuring; the rest is raising, settling and lowering.
const MEASURING_SHARE: f64 = 0.9;
/// Bytes written by the probe that finds out how fast a directory is, roughly.
const PROBE_BYTES: u64 = 32 << 20;
/// Files made by it.
const PROBE_FILES: u64 = 200;
/// More of the free space than this is never asked for.
const FREE_SHARE: f64 = 0.8;

/// One directory of the comparison.
struct Side {
    path: PathBuf,
    text: String,
    mount: MountInfo,
    free: u64,
}

pub(super) fn exec(setting: &Setting, verb: Compare) -> Result<u8, Failure> {
    let Some(purpose) = purpose::find(&verb.purpose) else {
        let names: Vec<&str> = purpose::ALL.iter().map(|purpose| purpose.name).collect();
        return Err(super::show::unknown("purpose", &verb.purpose, &names));
    };
    let time_ns =
        unit::parse_time_ns(&verb.time).map_err(|why| Failure::usage(format!("--time: {why}")))?;
    let size = verb
        .size
        .as_deref()
        .map(unit::parse_bytes)
        .transpose()
        .map_err(|why| Failure::usage(format!("--size: {why}")))?;
    let host = LocalHost::new(Arc::new(|_| ()));
    let sides = sides(&host, &verb.directories)?;
    let mut warnings = misleading(&sides);
    if !warnings.is_empty() && !verb.anyway {
        return Err(Failure::refused(warnings.join("\n       "))
            .next("--anyway compares them all the same and keeps this with the result"));
    }
    let pace = probe(setting, &host, &sides)?;
    let text = study(&verb, purpose, &sides, pace, time_ns, size);
    if verb.print_study {
        super::print(&text);
        return Ok(0);
    }
    let mut study = execute::parse("compare", text.as_bytes())?;
    execute::deciding(&mut study, &verb.deciding)?;
    let needed = study.trial_disk_bytes();
    for side in &sides {
        if needed as f64 > side.free as f64 * FREE_SHARE {
            return Err(Failure::refused(format!(
                "{} has {} free; this comparison needs {} and leaves a fifth free",
                side.text,
                unit::bytes(side.free),
                unit::bytes(needed)
            ))
            .next("free space there, or give less data with --size"));
        }
    }
    warnings.extend(cache_warning(&study, verb.warm));
    if !setting.quiet {
        for warning in &warnings {
            super::error(&format!("warning: {warning}\n"));
        }
    }
    execute::start(
        setting,
        &study,
        &warnings,
        &execute::Asked {
            decide: verb.deciding.decide,
            wipe: &[],
        },
        &verb.output,
    )
}

fn sides(host: &dyn Host, directories: &[PathBuf]) -> Result<Vec<Side>, Failure> {
    if directories.len() < 2 {
        return Err(Failure::usage("one directory alone cannot be compared")
            .next("name two or more: stackrace compare DIR DIR"));
    }
    let mut sides: Vec<Side> = Vec::new();
    for directory in directories {
        let path = std::fs::canonicalize(directory).map_err(|error| {
            Failure::refused(format!("{}: {error}", directory.display()))
                .next("name an existing directory")
        })?;
        if !path.is_dir() {
            return Err(
                Failure::refused(format!("{} is no directory", path.display()))
                    .next("name a directory on the storage you want to know about"),
            );
        }
        let Some(text) = path.to_str().map(str::to_owned) else {
            return Err(Failure::refused(format!(
                "the name of {} is not UTF-8, and a study is text",
                path.display()
            ))
            .next("rename it, or give it a plain name: mount --bind DIR /mnt/NAME"));
        };
        if sides.iter().any(|side| side.path == path) {
            return Err(Failure::refused(format!("{text} is named twice"))
                .next("compare two different directories"));
        }
        let mount = host
            .mount_of(&path)
            .map_err(|error| Failure::refused(error.to_string()).next(error.next()))?;
        let free = host
            .free_bytes(&path)
            .map_err(|error| Failure::refused(error.to_string()).next(error.next()))?;
        if free < PROBE_BYTES * 2 {
            return Err(
                Failure::refused(format!("{text} has only {} free", unit::bytes(free)))
                    .next("free space there, or choose another directory"),
            );
        }
        sides.push(Side {
            path,
            text,
            mount,
            free,
        });
    }
    Ok(sides)
}

/// Why comparing these would mislead, one sentence each.
fn misleading(sides: &[Side]) -> Vec<String> {
    let mut reasons = Vec::new();
    for (index, side) in sides.iter().enumerate() {
        for other in &sides[..index] {
            if side.mount.st_dev == other.mount.st_dev {
                reasons.push(format!("{} and {} are on the same file system ({}): a difference between them would say nothing about storage", other.text, side.text, side.mount.file_system));
            }
        }
    }
    let memory = |side: &&Side| matches!(side.mount.file_system.as_str(), "tmpfs" | "ramfs");
    let (in_memory, on_disk): (Vec<&Side>, Vec<&Side>) = sides.iter().partition(memory);
    if let (Some(ram), Some(disk)) = (in_memory.first(), on_disk.first()) {
        reasons.push(format!("{} is {} (memory, lost at power-off) and {} is {} on storage: memory wins, and nothing is learned", ram.text, ram.mount.file_system, disk.text, disk.mount.file_system));
    }
    reasons
}

/// What must be said where the data fit into memory.
fn cache_warning(study: &crate::study::Study, warm: bool) -> Option<String> {
    let memory = observe::memory_bytes()?;
    let largest = study.working_set_bytes();
    if largest >= memory {
        return None;
    }
    let fits = format!(
        "the data of each trial ({} at most) fit into memory ({})",
        unit::bytes(largest),
        unit::bytes(memory)
    );
    if warm {
        return Some(format!(
            "{fits} and caches are kept warm: reads will come from memory, not from storage"
        ));
    }
    let how = if rustix::process::geteuid().is_root() {
        "caches are dropped before each measurement"
    } else {
        "without root only the files' own pages can be dropped before each measurement, not the file system's metadata"
    };
    Some(format!(
        "{fits}; {how}, what was left in memory is counted beside each result, and writes end with fsync"
    ))
}

/// How fast the slowest directory is, roughly: sizes the trials, is never reported.
fn probe(setting: &Setting, host: &LocalHost, sides: &[Side]) -> Result<Pace, Failure> {
    super::clean::passing(setting, host, |journal, id| {
        let mut pace = Pace {
            write_rate: f64::INFINITY,
            create_rate: f64::INFINITY,
        };
        for side in sides {
            let one = probe_one(host, journal, side, id)?;
            pace.write_rate = pace.write_rate.min(one.write_rate);
            pace.create_rate = pace.create_rate.min(one.create_rate);
        }
        Ok(pace)
    })
}

fn probe_one(host: &dyn Host, journal: &Journal, side: &Side, id: &str) -> Result<Pace, Failure> {
    let refuse = |error: &dyn std::fmt::Display| {
        Failure::refused(format!("{} cannot be used: {error}", side.text))
            .next("choose a directory you may write to, with some free space")
    };
    let root = side.path.join(format!(".stackrace-probe-{id}"));
    journal
        .will(&side.text, Undo::RemoveTree(root.clone()))
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
            slice_ns: crate::workload::SLICE_NS,
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

/// The study `compare` writes for these directories where nothing else is asked for.
pub(crate) fn compared(paths: &[PathBuf]) -> String {
    use clap::Parser;
    let words = ["stackrace", "compare", "--"].map(std::ffi::OsStr::new);
    let words = words
        .into_iter()
        .chain(paths.iter().map(|path| path.as_os_str()));
    let Ok(Verb::Compare(verb)) = Arguments::try_parse_from(words).map(|typed| typed.verb) else {
        return String::new();
    };
    let sides: Vec<Side> = paths
        .iter()
        .map(|path| Side {
            path: path.clone(),
            text: path.to_string_lossy().into_owned(),
            mount: MountInfo {
                id: 0,
                st_dev: (0, 0),
                root: path.clone(),
                mount_point: path.clone(),
                options: Vec::new(),
                file_system: String::new(),
                source: std::ffi::OsString::new(),
            },
            free: 0,
        })
        .collect();
    let pace = Pace {
        write_rate: 1e9,
        create_rate: 1e4,
    };
    study(&verb, &purpose::ALL[0], &sides, pace, 120_000_000_000, None)
}

/// The study, as text.
fn study(
    verb: &Compare,
    purpose: &Purpose,
    sides: &[Side],
    pace: Pace,
    time_ns: u64,
    size: Option<u64>,
) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let paths: Vec<String> = sides.iter().map(|side| quoted(&side.text)).collect();
    let names: Vec<String> = short_names(sides);
    let each = time_ns as f64 / 1e9 * MEASURING_SHARE
        / f64::from(ROUNDS)
        / sides.len() as f64
        / purpose.parts.len() as f64;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "title = {}",
        quoted(&format!("{} for {}", names.join(" or "), purpose.summary))
    );
    let _ = writeln!(text, "\n[factors]\ndirectory = [");
    for (name, path) in names.iter().zip(&paths) {
        let _ = writeln!(text, "  {{ label = {}, value = {path} }},", quoted(name));
    }
    let _ = writeln!(text, "]\n\n[[stack]]\ndir = {{ path = \"{{directory}}\" }}");
    for part in purpose.parts {
        let _ = writeln!(
            text,
            "\n[[workload]]\nname = {}\nweight = {}\n{}",
            quoted(part.name),
            part.weight,
            part.toml(pace, each, size)
        );
    }
    let until = if verb.each { "each" } else { "overall" };
    let _ = writeln!(
        text,
        "\n[decide]\nrounds-at-most = {ROUNDS_MAX}\nat-most = \"{} ms\"\nuntil = \"{until}\"",
        time_ns / 1_000_000
    );
    let _ = writeln!(
        text,
        "\n[trial]\ndrop-caches = {0}\nremount = false",
        !verb.warm
    );
    text
}

/// The last parts of the paths where they differ and can be read, else the whole paths.
fn short_names(sides: &[Side]) -> Vec<String> {
    let last = |path: &Path| {
        path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        )
    };
    let short: Vec<String> = sides.iter().map(|side| last(&side.path)).collect();
    let unique = (1..short.len()).all(|i| !short[..i].contains(&short[i]));
    if unique && short.iter().all(|name| !name.trim().is_empty()) {
        short
    } else {
        sides.iter().map(|side| side.text.clone()).collect()
    }
}
