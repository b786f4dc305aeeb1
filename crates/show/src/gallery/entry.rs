//! One run of a gallery, from the bytes of a file: read, looked through, cut, judged.

use std::collections::BTreeSet;
use std::path::Path;

use super::cut;
use super::fits::fits;
use super::part::MachinePart;
use super::told::MachineWords;
use stackrace_base::event::{DriveTold, Event, FORMAT};
use stackrace_judge::verdict::{Evidence, Verdict, judge};
use stackrace_results::record::{Record, RecordError};

/// A file that is not shown, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedFile {
    /// The file, below the folder.
    pub file: String,
    /// Reason, a clause.
    pub why: String,
    /// Advice, a clause that begins with a verb.
    pub next: String,
}

impl RefusedFile {
    /// A file that is refused.
    pub fn new(file: &str, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            why: why.into(),
            next: next.into(),
        }
    }
}

/// A run that is shown.
pub struct GalleryRun {
    /// The run, as it is published.
    pub record: Record,
    /// Its verdict, judged from its trials.
    pub verdict: Verdict,
    /// Its log as it is published.
    pub log: Vec<u8>,
    /// Hash of that (BLAKE3, hex).
    pub hash: String,
    /// What the published log says of machines.
    pub words: MachineWords,
    /// What was cut from the log.
    pub removed: MachineWords,
}

/// Advice where a log was changed.
const COPY: &str = "copy the log again from the store it was made in (`stackrace runs` lists its runs), or leave it out";
/// Advice where a file is no log.
const A_LOG: &str =
    "put the run's log there: runs/ID/log.jsonl of a store, or what `--events FILE` wrote";

impl GalleryRun {
    /// Reads a log.
    ///
    /// # Errors
    /// It is no log, it is of an unknown version, or its numbers do not fit.
    pub fn read(
        bytes: Vec<u8>,
        file: &str,
        without: &BTreeSet<MachinePart>,
    ) -> Result<Self, RefusedFile> {
        let refused = |why: String, next: &str| RefusedFile::new(file, why, next);
        let read = |bytes: &[u8]| {
            let path = Path::new(file);
            let record = match Record::parse(bytes, path) {
                // Parts that are not understood could decide the verdict: nothing of it is shown.
                Ok(record) if record.head.format > FORMAT => Err(RecordError::NewerHead {
                    path: path.to_owned(),
                    format: record.head.format.into(),
                }),
                read => read,
            };
            record.map_err(|error| {
                let next = match error {
                    RecordError::NoHead { .. } => A_LOG.to_owned(),
                    _ => error.next(),
                };
                RefusedFile::new(file, error.to_string(), next)
            })
        };
        let record = read(&bytes)?;
        if !Record::fits_id(&record.head.run) {
            let id = record.head.run.escape_debug();
            return Err(refused(format!("\"{id}\" is not a run id"), COPY));
        }
        fits(&record).map_err(|why| refused(why, COPY))?;
        let words = |record: &Record| cut::words(record).map_err(|why| refused(why, COPY));
        let found = words(&record)?;
        if without.is_empty() {
            return Ok(Self::of(record, bytes, (found, MachineWords::default())));
        }
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        let log = cut::without(&record, without, lines)
            .map_err(|why| refused(why, "cut fewer parts, or leave this file out"))?;
        // What is shown and hashed is what is published, read back from its own bytes.
        let record = read(&log)?;
        let left = words(&record)?;
        let removed = found.only(without);
        Ok(Self::of(record, log, (left, removed)))
    }

    fn of(record: Record, log: Vec<u8>, (words, removed): (MachineWords, MachineWords)) -> Self {
        Self {
            verdict: judge(&Evidence::of(&record)),
            hash: blake3::hash(&log).to_hex().to_string(),
            record,
            log,
            words,
            removed,
        }
    }
}

/// The drives that a run lay on, or one of its configurations alone; each once.
pub fn drives(record: &Record, of: Option<usize>) -> Vec<DriveTold> {
    let mut drives: Vec<DriveTold> = Vec::new();
    for event in record.events() {
        let Event::StackSetUp {
            configuration,
            layers,
            ..
        } = event
        else {
            continue;
        };
        let meant = of.is_none_or(|of| of == *configuration);
        let facts = layers
            .iter()
            .filter(|_| meant)
            .flat_map(|layer| &layer.facts);
        for drive in facts.filter_map(|fact| fact.drive.as_ref()) {
            if !drives.contains(drive) {
                drives.push(drive.clone());
            }
        }
    }
    drives
}
