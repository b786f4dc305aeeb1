//! The runs of a folder, as a gallery shows them: each log is found, read up to a limit, and shown or refused.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use stackrace_base::bounded::ByteLimit;
use stackrace_base::failure::Failure;
use stackrace_base::unit::{self, InWords, ShownPath};
use stackrace_show::gallery::{CATALOGUE, Catalogue, GalleryRun, MachinePart, RefusedFile};

/// Largest log that is read, bytes.
const LOG_MAX: u64 = 64 << 20;
/// Most bytes of all logs together: they are held until the site is written.
const ALL_MAX: u64 = 512 << 20;
/// Most runs of a gallery.
const RUNS_MAX: usize = 1000;
/// Folders within folders that are looked into: a store has its logs two below it.
const DEPTH_MAX: usize = 4;
/// Files that are looked at.
const FILES_MAX: usize = 20_000;
/// Name of a log in the directory of its run.
const LOG: &str = "log.jsonl";
/// Endings of files that can be logs.
const ENDINGS: [&str; 2] = ["jsonl", "json"];

/// What was found in a folder.
#[derive(Default)]
pub(crate) struct Gathered {
    /// Number of runs that are shown.
    pub(crate) runs: usize,
    /// Files that are not shown, with the reason.
    pub(crate) refused: Vec<RefusedFile>,
    /// Files and folders that are no logs by their names.
    pub(crate) others: Vec<String>,
}

/// Files of a folder.
#[derive(Default)]
struct FoundFiles {
    /// Those that may be logs, by their paths below the folder.
    logs: Vec<(String, PathBuf)>,
    refused: Vec<RefusedFile>,
    others: Vec<String>,
    seen: usize,
}

/// Reads the runs of a folder one by one, and hands each that can be shown to `show`.
///
/// # Errors
/// The folder, or the list of a gallery in it, cannot be read.
pub(crate) fn read(
    dir: &Path,
    without: &BTreeSet<MachinePart>,
    show: &mut dyn FnMut(GalleryRun),
) -> Result<Gathered, Failure> {
    // A folder that was published has the hashes of its logs.
    let listed = catalogue(dir)?;
    let mut found = FoundFiles::default();
    look(dir, dir, DEPTH_MAX, &mut found).map_err(|error| {
        let text = format!("cannot list {}: {}", dir.shown(), error.in_words());
        Failure::refused(text).next("name a folder with logs of runs that you may read")
    })?;
    let twice = twice(&found.logs);
    let mut gathered = Gathered {
        refused: found.refused,
        others: found.others,
        ..Gathered::default()
    };
    if let Some(listed) = &listed {
        // Pages of a gallery are no logs, and are known to be its pages.
        let made = |name: &String| listed.files.contains_key(name);
        gathered.others.retain(|name| !made(name));
        gathered.refused.extend(missing(listed, &found.logs));
    }
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    let mut bytes = 0;
    for (name, path) in &found.logs {
        let read = one(name, path, (listed.as_ref(), without, &twice));
        let read = read.and_then(|run| {
            // Counted as published: what is cut is not held.
            bytes += run.log.len() as u64;
            let limit = (bytes > ALL_MAX).then(|| unit::bytes(ALL_MAX));
            let many = (gathered.runs >= RUNS_MAX).then(|| unit::counted(RUNS_MAX, "run"));
            match limit.or(many) {
                None => Ok(run),
                Some(most) => Err(RefusedFile::new(
                    name,
                    format!("a gallery has {most} at most"),
                    "make two galleries",
                )),
            }
        });
        match read {
            Err(why) => gathered.refused.push(why),
            Ok(run) => match shown.get(&run.record.head.run) {
                // The content of both was compared before.
                Some(first) => gathered
                    .others
                    .push(format!("{name} (the same log as {first})")),
                None => {
                    shown.insert(run.record.head.run.clone(), name.clone());
                    gathered.runs += 1;
                    show(run);
                }
            },
        }
    }
    Ok(gathered)
}

/// The list of a gallery that was made, if the folder is one.
fn catalogue(dir: &Path) -> Result<Option<Catalogue>, Failure> {
    let path = dir.join(CATALOGUE);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let read = ByteLimit::new(LOG_MAX).read(&path);
    let read = read.map_err(|error| error.in_words().to_string());
    let read = read.and_then(|bytes| Catalogue::read(&bytes));
    read.map(Some).map_err(|why| {
        Failure::refused(format!("{}: {why}", path.shown()))
            .next("make the gallery anew from its logs: stackrace gallery DIR")
    })
}

/// Adds the files of a folder to what was found.
fn look(root: &Path, dir: &Path, depth: usize, found: &mut FoundFiles) -> std::io::Result<()> {
    let entries: Result<Vec<fs::DirEntry>, _> = fs::read_dir(dir)?.collect();
    // In the order of names, so that the same folder gives the same site.
    let mut entries = entries?;
    entries.sort_by_key(fs::DirEntry::file_name);
    // The directory of a run has other files of the run beside its log.
    let of_a_run = entries.iter().any(|entry| entry.file_name() == LOG);
    for entry in entries {
        let path = entry.path();
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        found.seen += 1;
        let kind = entry.file_type()?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if hidden || name == CATALOGUE {
            continue;
        }
        if found.seen > FILES_MAX {
            found.refused.push(RefusedFile::new(
                &name,
                format!("it and what follows are beyond {FILES_MAX} files, and were not looked at"),
                "copy the logs alone into a folder",
            ));
            return Ok(());
        }
        if kind.is_dir() {
            match depth > 1 && !path.join(CATALOGUE).exists() {
                true => look(root, &path, depth - 1, found)?,
                false => found.others.push(format!("{name}/")),
            }
        } else if !kind.is_file() {
            // A link could lead to any file of this machine, and a pipe has no end.
            found.others.push(format!("{name} (no regular file)"));
        } else if of_a_run {
            if entry.file_name() == LOG {
                found.logs.push((name, path));
            }
        } else if ENDINGS
            .iter()
            .any(|ending| path.extension() == Some(ending.as_ref()))
        {
            found.logs.push((name, path));
        } else {
            found.others.push(name);
        }
    }
    Ok(())
}

/// Runs with two logs that differ: which of them is genuine cannot be told.
fn twice(logs: &[(String, PathBuf)]) -> BTreeMap<String, HashSet<blake3::Hash>> {
    let mut hashes: BTreeMap<String, HashSet<blake3::Hash>> = BTreeMap::new();
    for (name, path) in logs {
        if let Ok(bytes) = bytes_of(name, path)
            && let Some(run) = id_of(&bytes)
        {
            hashes.entry(run).or_default().insert(blake3::hash(&bytes));
        }
    }
    hashes.retain(|_, hashes| hashes.len() > 1);
    hashes
}

/// The run that the first line of a log names.
fn id_of(bytes: &[u8]) -> Option<String> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    Some(value.get("run")?.as_str()?.to_owned())
}

fn bytes_of(name: &str, path: &Path) -> Result<Vec<u8>, RefusedFile> {
    let large = "leave it out, or publish a shorter run";
    let refused = |why: String, next: &str| RefusedFile::new(name, why, next);
    // A file that is only long takes no memory before it is refused.
    let length = fs::metadata(path).map_or(0, |about| about.len());
    if length > LOG_MAX {
        let (is, most) = (unit::bytes(length), unit::bytes(LOG_MAX));
        return Err(refused(
            format!("it has {is}, and a log may have {most}"),
            large,
        ));
    }
    let read = ByteLimit::new(LOG_MAX).read(path);
    read.map_err(|error| {
        refused(
            format!("it cannot be read: {}", error.in_words()),
            "let this user read it",
        )
    })
}

type Judged<'a> = (
    Option<&'a Catalogue>,
    &'a BTreeSet<MachinePart>,
    &'a BTreeMap<String, HashSet<blake3::Hash>>,
);

fn one(
    name: &str,
    path: &Path,
    (listed, without, twice): Judged<'_>,
) -> Result<GalleryRun, RefusedFile> {
    // Read again: all logs at once would take the memory of all.
    let bytes = bytes_of(name, path)?;
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let listed = listed.and_then(|listed| listed.hash_of(name));
    // Before its content is looked at: a forged log can be a good one.
    if listed.is_some_and(|listed| listed != hash) {
        let why = format!(
            "its hash is not the one in {CATALOGUE}: it was changed since it was published"
        );
        return Err(RefusedFile::new(
            name,
            why,
            "take the log from the machine that measured it",
        ));
    }
    // The list says which one is genuine.
    if listed.is_none() && id_of(&bytes).is_some_and(|run| twice.contains_key(&run)) {
        let why =
            "another file is a log of the same run with other content: one of them was changed";
        return Err(RefusedFile::new(
            name,
            why,
            "leave out the one that was changed",
        ));
    }
    GalleryRun::read(bytes, name, without)
}

/// Logs of a list that are not there.
fn missing(listed: &Catalogue, logs: &[(String, PathBuf)]) -> Vec<RefusedFile> {
    let gone = listed
        .runs
        .iter()
        .filter(|run| logs.iter().all(|(name, _)| *name != run.log));
    gone.map(|run| {
        let why = format!("{CATALOGUE} lists it, and it is not there");
        RefusedFile::new(&run.log, why, "copy the whole gallery")
    })
    .collect()
}
