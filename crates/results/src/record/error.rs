//! What can go wrong with a record, and what to do about it.

use stackrace_base::unit::{InWords, ShownPath};
use std::io;
use std::path::{Path, PathBuf};

use stackrace_base::event::{FORMAT, LineError, again, again_in, is_store_named, shell};
use stackrace_base::owned::OwnError;

/// The reason for which the record could not be written, read or found.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The system refused something.
    #[error("cannot {tried} {}: {}", path.shown(), source.in_words())]
    System {
        /// The attempt, as a verb: `write`.
        tried: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// No runs can be kept in a directory that was named for them.
    #[error("no runs can be kept in {}: {why}", store.shown())]
    NoPlace {
        /// The directory.
        store: PathBuf,
        /// The reason, one clause.
        why: String,
    },
    /// The disk below the store is full.
    #[error("the disk is full: cannot write {}", path.shown())]
    Full {
        /// The log.
        path: PathBuf,
    },
    /// The log was removed while it was written.
    #[error("{} was removed while the run went on: its results are lost", path.shown())]
    Removed {
        /// The log.
        path: PathBuf,
    },
    /// Another program changed the log while it was written.
    #[error(
        "another program changed {} while the run went on ({expected} bytes were written, and it has {found}): what it holds cannot be relied on",
        path.shown()
    )]
    Changed {
        /// The log.
        path: PathBuf,
        /// Bytes that were written to it.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// The log is not at its path any more, with all that was written.
    #[error("{}", elsewhere(path, now))]
    Moved {
        /// The path it was made at.
        path: PathBuf,
        /// The path it is at; its own path means that something is mounted over it.
        now: PathBuf,
    },
    /// A file or directory of the store is a link, or another user can have written it.
    #[error(transparent)]
    NotOwn(OwnError),
    /// A log says that it is of another run than its directory.
    #[error("{} says that it is the log of the run \"{}\"", path.shown(), run.escape_debug())]
    OtherRun {
        /// The log.
        path: PathBuf,
        /// The run it names.
        run: String,
    },
    /// Another process writes this log.
    #[error("another process is writing {}", path.shown())]
    Locked {
        /// The log.
        path: PathBuf,
    },
    /// An earlier write or sync failed in a way that leaves the log's end unknown.
    #[error("an earlier write to {} failed, so its end is unknown", path.shown())]
    Broken {
        /// The log.
        path: PathBuf,
    },
    /// The event cannot be read back from its own text (a figure that is not a number).
    #[error("an event could not be read back from its own text: {why}")]
    Unreadable {
        /// Message of the reader.
        why: String,
    },
    /// The log does not begin with a readable `run-started`.
    #[error("line 1 of {} does not begin a run: {error}", path.shown())]
    NoHead {
        /// The log.
        path: PathBuf,
        /// What is wrong with its first line.
        error: LineError,
    },
    /// The log was written by a newer program, in a format whose first line is not understood.
    #[error("{} has log format {format}; this stackrace reads format {FORMAT}", path.shown())]
    NewerHead {
        /// The log.
        path: PathBuf,
        /// The format that its first line names.
        format: u64,
    },
    /// The log was written by an older program, in a format that is no longer read.
    #[error("{} has log format {format}; this stackrace reads format {FORMAT}", path.shown())]
    OldFormat {
        /// The log.
        path: PathBuf,
        /// The format that its first line names.
        format: u64,
    },
    /// The log is of a newer program: it is read as far as it is understood, and never added to.
    #[error("{} has log format {format}; this stackrace writes format {FORMAT}", path.shown())]
    NewerFormat {
        /// The log.
        path: PathBuf,
        /// The format that its first line names.
        format: u32,
    },
    /// A run id that could not be the name of a directory.
    #[error("\"{}\" is not a run id", run.escape_debug())]
    BadId {
        /// The id as it was given.
        run: String,
    },
    /// A word that cannot be a tag.
    #[error("\"{}\" cannot be a tag", tag.escape_debug())]
    BadTag {
        /// The word as it was given.
        tag: String,
    },
    /// A run of this id exists.
    #[error("run {run} exists already")]
    Exists {
        /// The id.
        run: String,
    },
    /// There is no store in a directory.
    #[error("there is no store in {}: no run was kept there", store.shown())]
    NoStore {
        /// The directory.
        store: PathBuf,
    },
    /// The store holds no runs.
    #[error("{} has no runs yet", store.shown())]
    NoRuns {
        /// The directory of the store.
        store: PathBuf,
    },
    /// No run begins like this.
    #[error("no run begins with \"{}\"", wanted.escape_debug())]
    Unknown {
        /// Text that the user typed.
        wanted: String,
        /// The ids most like it, best first.
        nearest: Vec<String>,
    },
    /// More than one run begins like this.
    #[error("{count} runs begin with \"{}\"", wanted.escape_debug())]
    Ambiguous {
        /// Text that the user typed.
        wanted: String,
        /// The newest of those that do, newest first.
        candidates: Vec<String>,
        /// Number of runs that do.
        count: usize,
    },
    /// A database that runs are read from does not give them.
    #[error("{what}")]
    Team {
        /// The attempt, its object, and the answer of the server.
        what: String,
        /// Advice to the user.
        next: String,
    },
    /// The index failed; the logs are not affected.
    #[error("cannot {tried} the index: {why}")]
    Index {
        /// The attempt, as a verb.
        tried: &'static str,
        /// Message of SQLite.
        why: String,
    },
}

/// Tells what became of a log that is not where it was made: nothing of it is lost.
fn elsewhere(path: &Path, now: &Path) -> String {
    let whole = "it has all results";
    if path == now {
        // Its own name, which something else has for the moment.
        let path = path.shown();
        return format!("something was mounted over {path} while the run went on; {whole}");
    }
    match (store_of(path), store_of(now)) {
        // The last names are the same: it moved with a directory above it.
        (Some(was), Some(is)) if was != is => format!(
            "the store {} was moved to {} while the run went on; {whole}",
            was.shown(),
            is.shown()
        ),
        _ => format!(
            "{} was moved to {} while the run went on; {whole}",
            path.shown(),
            now.shown()
        ),
    }
}

/// Advice on a log that is elsewhere: its record is there, and after cleaning the run goes on.
fn found_again(path: &Path, now: &Path) -> String {
    let run = run_of(now);
    match (path == now, store_of(now)) {
        (false, Some(store)) => format!(
            "move it back, or name it: {}; then go on with: {}",
            again_in(&["clean"], store),
            again_in(&["resume", &run], store)
        ),
        _ => format!(
            "unmount what lies over it, then: {}; then go on with: {}",
            again(&["clean"]),
            again(&["resume", &run])
        ),
    }
}

/// Advice on a run whose directory has another name.
fn named_as_before(log: &Path, run: &str) -> String {
    let dir = log.parent().unwrap_or(log);
    // The name comes from a file of others, and the advice is copied into a shell.
    let before = dir.with_file_name(run.replace('/', "-"));
    let rename = shell(&["mv".as_ref(), dir.as_os_str(), before.as_os_str()]);
    format!("if you renamed it, name it as before: {rename}")
}

/// Advice on a log whose first line tells nothing of a run.
fn without_head(log: &Path) -> String {
    let dir = log.parent().unwrap_or(log);
    let remove = shell(&["rm".as_ref(), "-r".as_ref(), dir.as_os_str()]);
    format!("bring it back from a copy; if the run died at its start, remove it: {remove}")
}

/// The store of a log: `STORE/runs/ID/log.jsonl`.
fn store_of(log: &Path) -> Option<&Path> {
    let runs = log.parent()?.parent()?;
    // A directory that was renamed by itself lies in no store.
    (runs.file_name()? == "runs").then(|| runs.parent())?
}

/// The run of a log.
fn run_of(log: &Path) -> String {
    let run = log.parent().and_then(Path::file_name);
    run.unwrap_or_default().to_string_lossy().into_owned()
}

impl RecordError {
    /// The error for a file of the store: `tried` is a verb for the message, `source` what the system said. A
    /// full disk becomes [`Self::Full`], anything else [`Self::System`].
    pub fn system(tried: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            // A full disk is the one failure here that a user can end, so it has its own advice.
            io::ErrorKind::StorageFull => Self::Full { path },
            _ => Self::System {
                tried,
                path,
                source,
            },
        }
    }

    /// Nothing was kept in this directory: a store without runs, or the name of one with a typo.
    pub(super) fn nothing_in(dir: &Path, is_there: bool) -> Self {
        let store = dir.to_path_buf();
        // The usual one is not there before the first run.
        match is_there || !is_store_named() {
            true => Self::NoRuns { store },
            false => Self::NoStore { store },
        }
    }

    /// The error of a store that cannot be opened: a place that cannot be one is told from a fault of the system.
    pub(super) fn no_place(store: &Path, error: OwnError) -> Self {
        use io::ErrorKind::{NotADirectory, PermissionDenied, ReadOnlyFilesystem};
        let why = match &error {
            OwnError::System { source, .. } if source.kind() == NotADirectory => {
                let file = store.ancestors().find(|path| path.exists());
                match file.filter(|file| *file != store) {
                    Some(file) => format!("{} is no directory", file.shown()),
                    None => "it is no directory".to_owned(),
                }
            }
            OwnError::System { source, .. }
                if [PermissionDenied, ReadOnlyFilesystem].contains(&source.kind()) =>
            {
                error.to_string()
            }
            _ => return error.into(),
        };
        Self::NoPlace {
            store: store.to_path_buf(),
            why,
        }
    }

    /// Returns true if it was refused before anything was done: what is there is not the user's own.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::NoPlace { .. }
                | Self::NotOwn(_)
                | Self::OtherRun { .. }
                | Self::NewerFormat { .. }
        )
    }

    /// Advice to the user: one sentence that begins with a verb; empty if there is nothing to advise.
    pub fn next(&self) -> String {
        match self {
            Self::System { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                return format!(
                    "raise the limit on file size (ulimit -f), then continue with: {}",
                    again(&["resume"])
                );
            }
            Self::System { .. } => "check that the store's directory is writable",
            Self::NoPlace { .. } => "name a directory that you may write to: --store DIR",
            Self::Full { .. } => {
                return format!(
                    "free some space, then continue with: {}; every line written before is kept",
                    again(&["resume"])
                );
            }
            Self::Changed { .. } => "run the study again, and let no other program write to the run's directory",
            Self::Removed { .. } => "run the study again, and leave the run's directory where it is",
            Self::Moved { path, now } => return found_again(path, now),
            Self::NotOwn(error) => return error.next(),
            Self::OtherRun { path, run } => return named_as_before(path, run),
            Self::Locked { .. } => "wait for the other stackrace, or stop it",
            Self::Broken { .. } => return format!("continue with: {}", again(&["resume"])),
            Self::Unreadable { .. } => {
                "report this as a bug in stackrace; what was measured before is kept"
            }
            Self::NoHead { path, .. } => return without_head(path),
            Self::NewerHead { .. } => "read it with the stackrace that wrote it, or a newer one",
            Self::OldFormat { .. } => {
                "read it with the stackrace that wrote it, or measure again: the run's study.toml is unchanged"
            }
            Self::NewerFormat { .. } => "resume it with the stackrace that wrote it",
            Self::BadId { .. } => "use the id as listed, for example 2026-11-21T1405-k3f9",
            Self::BadTag { .. } => {
                "use letters, digits, `-`, `_` and `.`, up to 64, for example before-upgrade; not `last`, and no beginning of a run's id"
            }
            Self::Exists { .. } => "start the run again",
            Self::NoStore { .. } => {
                "name the directory that a run was kept in: --store DIR; without it, the usual one is read"
            }
            Self::NoRuns { .. } => {
                "begin one: stackrace run demo; or name another store: --store DIR"
            }
            Self::Unknown { nearest, .. } if nearest.is_empty() => "use: last",
            Self::Unknown { nearest, .. } => {
                let nearest = nearest.join(", ");
                return format!("use a run id, its beginning or end, or last; for example {nearest}");
            }
            Self::Ambiguous { candidates, .. } => {
                return format!("type more of it: {}", candidates.join(", "));
            }
            Self::Team { next, .. } => return next.clone(),
            Self::Index { .. } => "nothing is lost: the index can be rebuilt from the logs",
        }
        .to_owned()
    }
}

impl From<OwnError> for RecordError {
    fn from(error: OwnError) -> Self {
        match error {
            OwnError::System {
                tried,
                path,
                source,
            } => Self::system(tried, &path, source),
            error => Self::NotOwn(error),
        }
    }
}
