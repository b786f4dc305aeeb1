//! A log in a store: reading it changes nothing, and going on with it only sets a torn line aside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::others::carried_out;
use stackrace_base::appendlog::split_torn;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_results::record::{Record, Store};
use stackrace_study::study::{self, Kinds};

/// The run whose directory a log is found in that names none that can be one.
const RUN: &str = "2026-11-21T1405-fzzd";

/// Every file below a directory, with its content.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => dirs.push(path),
                false => drop(found.insert(path.clone(), fs::read(path).unwrap_or_default())),
            }
        }
    }
    found
}

/// Puts a log into a store beside the file of another user, reads it in every way, goes on with it,
/// and carries its study out on an imagined machine.
///
/// # Panics
/// Another file than the log changed, the log lost a whole line, or a machine was touched beside the
/// stacks of the study.
pub(super) fn kept(data: &[u8]) {
    let parsed = Record::parse(data, Path::new("log.jsonl")).ok();
    let named = parsed.as_ref().map_or(RUN, |record| &record.head.run);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_name = (1..=64).contains(&named.len()) && named.chars().all(plain);
    let run = if is_name { named } else { RUN };
    let Ok(ground) = tempfile::tempdir() else {
        panic!("no temporary directory");
    };
    let others = ground.path().join("others");
    let Ok(store) = Store::open(&ground.path().join("store")) else {
        panic!("no store");
    };
    let log = store.run_dir(run).join("log.jsonl");
    let made = fs::write(&others, "theirs")
        .and_then(|()| fs::create_dir(store.run_dir(run)))
        .and_then(|()| fs::write(&log, data));
    assert!(made.is_ok(), "{made:?}");
    let mut before = files(ground.path());
    let read = store.read(run);
    assert_eq!(read.is_ok(), parsed.is_some() && is_name, "{named:?}");
    assert_eq!(store.summary(run).unreadable.is_none(), read.is_ok());
    assert_eq!(files(ground.path()), before, "reading a log changed a file");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    if let Ok((reopened, torn)) = store.reopen_run(run, clock) {
        drop(reopened);
        let (whole, rest) = split_torn(data);
        assert_eq!(torn, rest.len() as u64);
        before.insert(log.clone(), whole.to_vec());
        if torn > 0 {
            before.insert(log.with_extension("torn"), [rest, b"\n"].concat());
        }
    }
    assert_eq!(files(ground.path()), before, "more than a torn line moved");
    let Some(record) = parsed else { return };
    if let Ok(study) = study::parse("log", record.head.study.as_bytes(), &Kinds::real()) {
        carried_out(&study);
    }
}
