//! The directory where runs live, and how one is found in it.
//!
//! ```text
//! <store>/runs/<run id>/log.jsonl   the truth (docs/formats/log.md)
//!                       log.torn    rests of torn lines, if there were any
//!                       study.toml  the study as it was given
//!                       now.json    what it is doing, while it goes on (docs/formats/now.md)
//!                       tags        words the user put on it, one a line
//! <store>/order                     ids in the order in which the runs were begun
//! <store>/stackrace.db              the index, derived (docs/formats/index.md)
//! ```

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::RecordError;
use super::index::Index;
use super::log::{self, LOG, Log};
use super::now::{self, Now, NowFile};
use super::read::Record;
use super::summary::{RunSummary, summary};
use super::tags;
use stackrace_base::appendlog::split_torn;
use stackrace_base::event::{LogLine, RunStarted};
use stackrace_base::owned::{FileState, OwnDir, OwnError};
use stackrace_base::time::Clock;

/// Name of the file beside the log: what depends on the machine, where the log itself does not.
const MADE_ON: &str = "made-on.json";
/// Name of the file with the ids of the runs, one on each line, in the order in which they were begun: a clock can be
/// set, and then the times in ids and logs do not tell.
const ORDER: &str = "order";
/// Name of the directory of all runs.
const RUNS: &str = "runs";
/// Number of ids that an error lists.
const LISTED: usize = 5;
/// Characters of an id that are its time: `2026-11-21T1405`.
const ID_TIME: usize = 15;
/// Most bytes of a first line that are read where no more of a log is wanted: it holds the whole study.
const HEAD_MAX: u64 = 16 << 20;

/// Changes whenever a run's log does: its bytes, and another number.
pub type LogVersion = (u64, i128);

/// A directory of runs.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

/// Ids that are drawn for a run before it is given up: far more than chance asks for.
const DRAWS: u32 = 100;

/// Makes a run's id from a time of day (RFC 3339) and some entropy: `2026-11-21T1405-k3f9`.
///
/// The suffix has no vowels and nothing that looks like something else, so that it reads aloud.
pub fn run_id(today: &str, entropy: u64) -> String {
    const LETTERS: &[u8; 28] = b"0123456789bcdfghjkmnpqrstvwx";
    let time: String = today.chars().filter(|&c| c != ':').take(ID_TIME).collect();
    let mut rest = entropy;
    let suffix: String = (0..4)
        .map(|_| {
            let letter = LETTERS[(rest % 28) as usize];
            rest /= 28;
            char::from(letter)
        })
        .collect();
    format!("{time}-{suffix}")
}

impl Store {
    /// Opens a store; makes its directories where they are missing, for the user alone.
    ///
    /// # Errors
    /// The directories cannot be made, or are not the user's own.
    pub fn open(dir: &Path) -> Result<Self, RecordError> {
        OwnDir::open_or_make(dir)
            .and_then(|store| store.dir_or_make(RUNS))
            .map_err(|error| RecordError::no_place(dir, error))?;
        Ok(Self {
            dir: dir.to_path_buf(),
        })
    }

    /// Opens a store to read it. Where there is none, none is made: it has no runs.
    ///
    /// # Errors
    /// Its directories are not the user's own.
    pub fn look(dir: &Path) -> Result<Self, RecordError> {
        let store = Self {
            dir: dir.to_path_buf(),
        };
        match store.runs_dir() {
            Err(error) if !error.is_missing() => Err(RecordError::no_place(dir, error)),
            _ => Ok(store),
        }
    }

    /// Returns true if its directories are there; one that was only looked at may be none.
    pub fn is_there(&self) -> bool {
        self.runs_dir().is_ok()
    }

    /// The directory in which all runs are kept.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Directory of a run, by its whole id.
    pub fn run_dir(&self, run: &str) -> PathBuf {
        self.dir.join(RUNS).join(run)
    }

    /// Makes a file in the store for the user alone.
    ///
    /// # Errors
    /// Something of that name is there, or the system refuses.
    pub fn create_file(&self, name: &str) -> Result<File, RecordError> {
        Ok(OwnDir::open(&self.dir)?.create(name)?)
    }

    /// Puts a file for the user alone into the store, in the place of one that may be there.
    ///
    /// # Errors
    /// The system refuses.
    pub fn replace_file(&self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        Ok(OwnDir::open(&self.dir)?.replace(name, bytes)?)
    }

    /// Removes such a file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove_file(&self, name: &str) -> Result<(), RecordError> {
        Ok(OwnDir::open(&self.dir)?.remove_file(name)?)
    }

    fn runs_dir(&self) -> Result<OwnDir, OwnError> {
        OwnDir::open(&self.dir)?.dir(RUNS)
    }

    fn all(&self) -> Result<OwnDir, RecordError> {
        Ok(self.runs_dir()?)
    }

    /// The directory of a run, held open.
    pub(super) fn own(&self, run: &str) -> Result<OwnDir, RecordError> {
        Ok(self.all()?.dir(run)?)
    }

    /// Begins a run: makes its directory and writes the first line, which is given back.
    ///
    /// # Errors
    /// The id is taken or no name for a directory, or the system refuses; nothing is left behind.
    pub fn create_run(
        &self,
        head: RunStarted,
        clock: Arc<dyn Clock>,
    ) -> Result<(Log, LogLine), RecordError> {
        // The id becomes a name of a directory and a word of commands that are shown to be copied.
        if !Record::fits_id(&head.run) {
            return Err(RecordError::BadId { run: head.run });
        }
        let all = self.all()?;
        if !self.has_log(&head.run) {
            // First: an id without a run is skipped, and a run without a place would be taken for one of an older version.
            self.note_order(&head.run)?;
        }
        Log::create(&all, head, clock)
    }

    /// Begins a run under an id that no other has, whatever the head says of its id. `draw` gives the bits of an id.
    ///
    /// # Errors
    /// No free id was drawn, or the system refuses.
    pub fn begin_run(
        &self,
        mut head: RunStarted,
        clock: &Arc<dyn Clock>,
        mut draw: impl FnMut() -> u64,
    ) -> Result<(Log, Record), RecordError> {
        let today = clock.today();
        for draws in 1..=DRAWS {
            head.run = run_id(&today, draw());
            match self.create_run(head.clone(), Arc::clone(clock)) {
                // Ids of one minute are few enough for two of many runs to be the same.
                Err(RecordError::Exists { .. }) if draws < DRAWS => {}
                made => {
                    let (log, line) = made?;
                    let lines = vec![line];
                    let notes = Vec::new();
                    return Ok((log, Record { head, lines, notes }));
                }
            }
        }
        Err(RecordError::Exists { run: head.run })
    }

    /// Adds a run to the order.
    fn note_order(&self, run: &str) -> Result<(), RecordError> {
        let mut order = OwnDir::open(&self.dir)?.append(ORDER, true)?;
        let written = order.write_all(format!("{run}\n").as_bytes());
        written.map_err(|source| RecordError::system("write", &self.dir.join(ORDER), source))
    }

    /// Places of the runs in the order in which they were begun, by id; empty in the store of an older version.
    fn order(&self) -> HashMap<String, usize> {
        let read = || {
            let file = OwnDir::open(&self.dir).ok()?.read(ORDER).ok()?;
            std::io::read_to_string(file).ok()
        };
        // A run in virtual time can be removed and made again under its id: the last place counts.
        let text: String = read().unwrap_or_default();
        text.lines().map(str::to_owned).zip(0..).collect()
    }

    /// Returns true if the log of a run (by its whole id) is there.
    pub fn has_log(&self, run: &str) -> bool {
        self.own(run).is_ok_and(|dir| dir.has(LOG))
    }

    /// Goes on with a run (by its whole id). The number says how many bytes of a torn last line
    /// were moved aside.
    ///
    /// # Errors
    /// Another process writes it, it has no readable first line, or the system refuses.
    pub fn reopen_run(&self, run: &str, clock: Arc<dyn Clock>) -> Result<(Log, u64), RecordError> {
        Log::reopen(&self.own(run)?.obeyed()?, clock)
    }

    /// Keeps, beside the log of a run in virtual time, what depends on the machine it was made on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_made_on(&self, run: &str, text: &str) -> Result<(), RecordError> {
        Ok(self.own(run)?.replace(MADE_ON, text.as_bytes())?)
    }

    /// Begins to tell what a run is doing; `None` where its directory does not take it.
    pub fn tell_now(&self, run: &str) -> Option<NowFile> {
        NowFile::create(self.own(run).ok()?)
    }

    /// The present work of a run; `None` if it does not say.
    pub fn now(&self, run: &str) -> Option<Now> {
        now::read(&self.own(run).ok()?)
    }

    /// Returns true if a run that has not ended is going on: a process writes its log. One that has
    /// not ended and does not go on was killed.
    pub fn goes_on(&self, run: &str) -> bool {
        self.own(run).is_ok_and(|dir| log::written(&dir))
    }

    /// Removes a run (by its whole id) with all that is in its directory, and its rows of the index.
    /// `may_go` is asked once nothing else can write the run any more.
    ///
    /// # Errors
    /// A process writes it, `may_go` refuses, or the system does. What a kill leaves half removed is
    /// still listed, and can be removed again.
    pub fn remove_run<E: From<RecordError>>(
        &self,
        run: &str,
        may_go: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let remove = |dir: &OwnDir| -> Result<(), OwnError> {
            for name in dir.names()?.iter().filter(|name| *name != LOG) {
                match dir.dir(name) {
                    Ok(_) => dir.remove_tree(name)?,
                    Err(_) => dir.remove_file(name)?,
                }
            }
            // Last: a directory without a log is no run, so its rest would never be found.
            dir.remove_file(LOG)?;
            let all = OwnDir::open(&self.dir)?.dir(RUNS)?;
            all.remove_dir(run)?;
            all.sync()
        };
        let dir = self.own(run)?.obeyed().map_err(RecordError::from)?;
        let _held = log::hold(&dir)?;
        may_go(dir.path())?;
        remove(&dir).map_err(RecordError::from)?;
        // Derived data: an index that cannot be used is made anew from the logs that are left.
        if let Ok(Some(mut index)) = Index::open(&self.dir) {
            let _ = index.forget(run);
        }
        Ok(())
    }

    /// Ids of all runs but the newest `keep` that are still there, oldest first. Runs that go on or
    /// have a tag are no candidates, and do not count.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn all_but_newest(&self, keep: usize) -> Result<Vec<String>, RecordError> {
        let mut ids = self.ids()?;
        ids.retain(|run| !self.goes_on(run) && self.tags(run).is_empty());
        let order = self.order();
        if ids.iter().any(|run| !order.contains_key(run)) {
            // By the log, not by the id: runs in virtual time have no date in theirs.
            ids.sort_by_cached_key(|run| self.version(run).map_or(0, |(_, changed)| changed));
        }
        ids.truncate(ids.len().saturating_sub(keep));
        Ok(ids)
    }

    /// Bytes and time of the last change of a run's log, ns since 1970: equal means the same.
    ///
    /// # Errors
    /// The log is not there.
    pub fn version(&self, run: &str) -> Result<LogVersion, RecordError> {
        version(&self.own(run)?)
    }

    /// Ids of all runs, oldest first.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn ids(&self) -> Result<Vec<String>, RecordError> {
        self.each(|run, _| run)
    }

    /// Looks at each run, oldest first, in its directory, with the state of its log. `None`: it is refused, and reading says why.
    pub(super) fn each<T>(
        &self,
        look: impl Fn(String, Option<(&OwnDir, Option<FileState>)>) -> T,
    ) -> Result<Vec<T>, RecordError> {
        let runs = match self.runs_dir() {
            Err(error) if error.is_missing() => return Ok(Vec::new()),
            runs => runs?,
        };
        let mut found = Vec::new();
        let names = runs.names()?;
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        for run in in_order(names.collect(), &self.order()) {
            // One at a time: a process may hold only so many open.
            let dir = match runs.dir(&run) {
                Ok(dir) => match dir.state(LOG) {
                    // What is no regular file is listed with the reason, too.
                    None if !dir.has(LOG) => continue,
                    state => Some((dir, state)),
                },
                Err(OwnError::System { .. }) => continue,
                Err(_) => None,
            };
            found.push(look(run, dir.as_ref().map(|(dir, state)| (dir, *state))));
        }
        Ok(found)
    }

    /// Tags of a run, by its whole id.
    pub fn tags(&self, run: &str) -> BTreeSet<String> {
        self.own(run)
            .map(|dir| tags::read(&dir))
            .unwrap_or_default()
    }

    /// Puts tags on a run (by its whole id) and takes others off. Gives back those it has now.
    ///
    /// # Errors
    /// A word cannot be a tag, or the system refuses; nothing is changed then.
    pub fn tag(
        &self,
        run: &str,
        put_on: &[String],
        take_off: &[String],
    ) -> Result<BTreeSet<String>, RecordError> {
        let ids = self.ids()?;
        for tag in put_on {
            tags::check(tag)?;
            // A word that begins an id already means that run.
            if ids.iter().any(|id| id.starts_with(tag.as_str())) {
                return Err(RecordError::BadTag { tag: tag.clone() });
            }
        }
        let dir = self.own(run)?.obeyed()?;
        let mut tags = tags::read(&dir);
        tags.retain(|tag| !take_off.contains(tag));
        tags.extend(put_on.iter().cloned());
        tags::write(&dir, &tags)?;
        Ok(tags)
    }

    /// Whole id of the run meant by an id, its beginning, the characters behind its time, a tag, or `last`.
    ///
    /// # Errors
    /// None or more than one is meant; the error lists the nearest.
    pub fn find(&self, wanted: &str) -> Result<String, RecordError> {
        let ids = self.ids()?;
        if ids.is_empty() {
            return Err(RecordError::nothing_in(&self.dir, self.is_there()));
        }
        if wanted == "last" {
            return Ok(self.newest(&ids));
        }
        let mut matching: Vec<&String> = ids.iter().filter(|id| id.starts_with(wanted)).collect();
        // What tells runs of one minute apart is what people remember: `k3f9` of `2026-11-21T1405-k3f9`.
        if matching.is_empty() {
            let last = |id: &&String| id.rsplit('-').next() == Some(wanted);
            matching.extend(ids.iter().filter(last));
        }
        // An id that begins or ends like this is meant first, so that no tag can hide a run.
        if matching.is_empty() {
            // The directory of all runs is walked to once, not for each of thousands.
            let runs = self.all()?;
            let tagged = |id: &&String| {
                runs.dir(id)
                    .is_ok_and(|dir| tags::read(&dir).contains(wanted))
            };
            matching.extend(ids.iter().filter(tagged));
        }
        match matching.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(RecordError::Unknown {
                wanted: wanted.to_owned(),
                nearest: nearest(wanted, &ids),
            }),
            // A whole id is meant even where it begins another one.
            [first, ..] if *first == wanted => Ok((*first).clone()),
            _ => {
                let count = matching.len();
                matching.reverse();
                Err(RecordError::Ambiguous {
                    wanted: wanted.to_owned(),
                    candidates: matching.into_iter().take(LISTED).cloned().collect(),
                    count,
                })
            }
        }
    }

    /// One run for a list; one that cannot be read is listed with the reason.
    pub fn summary(&self, run: &str) -> RunSummary {
        self.read_or_said(run).1
    }

    /// A run that is read now, and its summary, which says why if it cannot be read.
    pub(super) fn read_or_said(&self, run: &str) -> (Option<Record>, RunSummary) {
        match self.read_run(run) {
            Ok(record) => {
                let summary = self.summary_of(&record);
                (Some(record), summary)
            }
            Err(error) => {
                let summary = RunSummary {
                    run: run.to_owned(),
                    unreadable: Some(error.to_string()),
                    tags: self.tags(run).into_iter().collect(),
                    ..RunSummary::default()
                };
                (None, summary)
            }
        }
    }

    /// The same of a run of this store that was read.
    pub fn summary_of(&self, record: &Record) -> RunSummary {
        RunSummary {
            tags: self.tags(&record.head.run).into_iter().collect(),
            ..summary(record)
        }
    }

    /// The first line of a run's log, by the run's whole id: however long the log is, no more is read.
    ///
    /// # Errors
    /// It cannot be read, or begins no run.
    pub fn first_line(&self, run: &str) -> Result<LogLine, RecordError> {
        let dir = self.own(run)?;
        let path = dir.path().join(LOG);
        let mut line = Vec::new();
        let file = BufReader::new(dir.read(LOG)?).take(HEAD_MAX);
        { file }
            .read_until(b'\n', &mut line)
            .map_err(|source| RecordError::system("read", &path, source))?;
        let mut record = Record::parse(&line, &path)?;
        record.is_of_run(&path)?;
        Ok(record.lines.remove(0))
    }

    /// Reads a run by its whole id, with the bytes of its whole lines.
    ///
    /// # Errors
    /// Its log cannot be read.
    pub fn read_with_lines(&self, run: &str) -> Result<(Record, Vec<u8>), RecordError> {
        let dir = self.own(run)?;
        let path = dir.path().join(LOG);
        let mut bytes = dir.read_all(LOG)?;
        let record = Record::parse(&bytes, &path)?;
        record.is_of_run(&path)?;
        bytes.truncate(split_torn(&bytes).0.len());
        Ok((record, bytes))
    }

    /// Reads the run meant by an id, its beginning, or `last`.
    ///
    /// # Errors
    /// It is not found, or its log cannot be read.
    pub fn read(&self, wanted: &str) -> Result<Record, RecordError> {
        self.read_run(&self.find(wanted)?)
    }

    pub(super) fn read_run(&self, run: &str) -> Result<Record, RecordError> {
        self.read_with_lines(run).map(|(record, _)| record)
    }

    /// The newest of runs, which are in order. Among those of an older version behind the last one that has its place in
    /// the order, the logs decide: the time of an id has minutes only.
    fn newest(&self, ids: &[String]) -> String {
        let order = self.order();
        let last = ids.iter().rposition(|id| order.contains_key(id));
        let ids = &ids[last.unwrap_or(0)..];
        let has_date = |id: &&String| id.starts_with(|c: char| c.is_ascii_digit());
        let dated = self.newest_dated(ids.iter().filter(has_date));
        // A run in virtual time has no date in its id, nor in its log: the file's time tells.
        let others = ids.iter().filter(|id| !has_date(id));
        let runs = self.all();
        let changed = |id: &&String| {
            let dir = runs.as_ref().ok().and_then(|runs| runs.dir(id).ok());
            dir.and_then(|dir| version(&dir).ok())
                .map_or(0, |(_, changed)| changed)
        };
        let newest = dated.into_iter().chain(others).max_by_key(changed);
        newest.cloned().unwrap_or_default()
    }

    fn newest_dated<'a>(
        &self,
        ids: impl Iterator<Item = &'a String> + Clone,
    ) -> Option<&'a String> {
        let time = |id: &String| id.chars().take(ID_TIME).collect::<String>();
        let minute = time(ids.clone().last()?);
        ids.filter(|id| time(id) == minute).max_by_key(|id| {
            let began = self.first_line(id).map(|line| line.at).unwrap_or_default();
            // Ids hold the minute only: two runs of one minute are told apart by their logs.
            (began, (*id).clone())
        })
    }
}

/// Bytes and time of the last change of the log in a run's directory.
fn version(dir: &OwnDir) -> Result<LogVersion, RecordError> {
    // Opened, not only looked at: what another user can write is refused.
    dir.read(LOG)?;
    let state = dir.state(LOG).ok_or_else(|| {
        let gone = std::io::ErrorKind::NotFound.into();
        RecordError::system("look at", &dir.path().join(LOG), gone)
    })?;
    // The length alone misses a log that was replaced by one of equal length.
    Ok((state.bytes, i128::from(state.modified_ns)))
}

/// Ids, oldest first: by their places, and one that has none before the first of a later time.
fn in_order(mut ids: Vec<String>, order: &HashMap<String, usize>) -> Vec<String> {
    ids.sort_unstable();
    let (mut placed, others): (Vec<_>, Vec<_>) =
        ids.into_iter().partition(|id| order.contains_key(id));
    placed.sort_by_key(|id| order.get(id));
    let mut others = others.into_iter().peekable();
    let mut all = Vec::with_capacity(placed.len() + others.len());
    for id in placed {
        while let Some(other) = others.next_if(|other| *other < id) {
            all.push(other);
        }
        all.push(id);
    }
    all.extend(others);
    all
}

/// The ids most like what was asked for, best first.
fn nearest(wanted: &str, ids: &[String]) -> Vec<String> {
    let mut scored: Vec<(f64, &String)> = ids
        .iter()
        .map(|id| (strsim::jaro_winkler(wanted, id), id))
        .collect();
    // Equally near: the newer one first.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(a.1)));
    scored
        .into_iter()
        .take(LISTED)
        .map(|(_, id)| id.clone())
        .collect()
}
