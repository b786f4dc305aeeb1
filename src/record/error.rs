//! What can go wrong with a record, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the record could not be written, read or found.
#[derive(Debug)]
pub(crate) enum RecordError {
    /// The system refused something.
    System {
        /// What was tried, as a verb: `write`.
        tried: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk below the store is full.
    Full {
        /// The log.
        path: PathBuf,
    },
    /// Another process writes this log.
    Locked {
        /// The log.
        path: PathBuf,
    },
    /// An earlier write or sync failed in a way that leaves the log's end unknown.
    Broken {
        /// The log.
        path: PathBuf,
    },
    /// The event cannot be read back from its own text (a figure that is not a number).
    Unreadable {
        /// What the reader said.
        why: String,
    },
    /// The log does not begin with a readable `run-started`.
    NoHead {
        /// The log.
        path: PathBuf,
        /// What the reader said.
        why: String,
    },
    /// A run id that could not be the name of a directory.
    BadId {
        /// As given.
        run: String,
    },
    /// A run of this id exists.
    Exists {
        /// The id.
        run: String,
    },
    /// There is no run at all.
    NoRuns {
        /// The store.
        store: PathBuf,
    },
    /// No run begins like this.
    Unknown {
        /// As given.
        wanted: String,
        /// The ids most like it, best first.
        nearest: Vec<String>,
    },
    /// More than one run begins like this.
    Ambiguous {
        /// As given.
        wanted: String,
        /// The newest of those that do, newest first.
        candidates: Vec<String>,
        /// How many do.
        count: usize,
    },
    /// The index failed; the logs are not affected.
    Index {
        /// What was tried.
        tried: &'static str,
        /// What SQLite said.
        why: String,
    },
}

impl RecordError {
    pub(crate) fn system(tried: &'static str, path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::StorageFull {
            return Self::Full {
                path: path.to_path_buf(),
            };
        }
        Self::System {
            tried,
            path: path.to_path_buf(),
            source,
        }
    }

    /// What the user can do: one sentence that begins with a verb; empty: nothing to advise.
    pub(crate) fn next(&self) -> String {
        match self {
            Self::System { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
                "raise the limit on the size of a file (ulimit -f), then go on with: stackrace resume"
                    .to_owned()
            }
            Self::System { .. } => "check that the store's directory can be written".to_owned(),
            Self::Full { .. } => {
                "free some space, then go on with: stackrace resume; every line written before is kept".to_owned()
            }
            Self::Locked { .. } => "wait for the other stackrace, or stop it".to_owned(),
            Self::Broken { .. } => "go on with: stackrace resume".to_owned(),
            Self::Unreadable { .. } => {
                "report this as a mistake in stackrace; what was measured before is kept".to_owned()
            }
            Self::NoHead { .. } => {
                "remove the run's directory if the run died while it began".to_owned()
            }
            Self::BadId { .. } => {
                "use the id as listed, for example 2026-11-21T1405-k3f9".to_owned()
            }
            Self::Exists { .. } => "start the run again".to_owned(),
            Self::NoRuns { .. } => "name another store with --store, or run a study".to_owned(),
            Self::Unknown { nearest, .. } if nearest.is_empty() => "use: last".to_owned(),
            Self::Unknown { nearest, .. } => {
                format!("use the id of a run, its beginning, or last; nearest: {}", nearest.join(", "))
            }
            Self::Ambiguous { candidates, .. } => {
                format!("write more of it: {}", candidates.join(", "))
            }
            Self::Index { .. } => {
                "nothing is lost: the index can be rebuilt from the logs".to_owned()
            }
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System {
                tried,
                path,
                source,
            } => write!(f, "cannot {tried} {}: {source}", path.display()),
            Self::Full { path } => write!(
                f,
                "the disk is full: no room to go on writing {}",
                path.display()
            ),
            Self::Locked { path } => {
                write!(f, "another process is writing {}", path.display())
            }
            Self::Broken { path } => write!(
                f,
                "an earlier write to {} failed, so that its end is unknown",
                path.display()
            ),
            Self::Unreadable { why } => {
                write!(
                    f,
                    "an event could not be read back from its own text: {why}"
                )
            }
            Self::NoHead { path, why } => {
                write!(f, "{} does not begin like a run: {why}", path.display())
            }
            Self::BadId { run } => write!(f, "\"{}\" is no run id", run.escape_debug()),
            Self::Exists { run } => write!(f, "there is already a run {run}"),
            Self::NoRuns { store } => write!(f, "there is no run in {} yet", store.display()),
            Self::Unknown { wanted, .. } => {
                write!(f, "no run begins with \"{}\"", wanted.escape_debug())
            }
            Self::Ambiguous { wanted, count, .. } => {
                write!(f, "{count} runs begin with \"{}\"", wanted.escape_debug())
            }
            Self::Index { tried, why } => write!(f, "cannot {tried} the index: {why}"),
        }
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
