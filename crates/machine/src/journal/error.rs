//! Why a journal cannot be used.

use crate::host::HostError;
use stackrace_base::event::{again, again_in, shell};
use stackrace_base::unit::ShownPath;
use std::path::{Path, PathBuf};

/// Version of the file's format.
pub(super) const FORMAT: u32 = 4;

/// The reason why a journal cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Another process holds it.
    #[error("the run that writes {} is alive", path.shown())]
    Live {
        /// Path of the journal that is held.
        path: PathBuf,
    },
    /// A line in the middle is not a line of this format.
    #[error("{}:{line}: this line is not valid", path.shown())]
    Broken {
        /// Path of the journal with that line.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
    /// Another version of the program wrote it.
    #[error("{} has format {format}; this program reads format {FORMAT}", path.shown())]
    OtherFormat {
        /// Path of the journal that has it.
        path: PathBuf,
        /// The version that is written at its head.
        format: u32,
    },
    /// An entry asks for something that does not prove to be of the journal's own run.
    #[error("the journal asks for something that its run did not create: {0}")]
    Foreign(String),
    /// The journal says that it belongs to another run than the one it was found with.
    #[error("{} says that it belongs to the run {run}", path.shown())]
    OtherRun {
        /// Path of the journal that says so.
        path: PathBuf,
        /// The run it names.
        run: String,
    },
    /// The journal is a link, or another user can have written it.
    #[error("{why}")]
    NotOwn {
        /// The fault, and the file or directory that has it.
        why: String,
        /// Advice to the user.
        next: String,
    },
    /// The file is not at its path any more: the store was moved, or something hides it.
    #[error("{}", elsewhere(path, now, *hidden))]
    Moved {
        /// The path it was made at.
        path: PathBuf,
        /// Its path now.
        now: PathBuf,
        /// True if something is mounted over it; otherwise it was moved.
        hidden: bool,
    },
    /// The system refused something.
    #[error(transparent)]
    System(HostError),
}

/// Tells what became of a journal that is not at its path.
fn elsewhere(path: &Path, now: &Path, hidden: bool) -> String {
    let path = path.shown();
    match hidden {
        true => format!("{path} is hidden: something was mounted over it"),
        false => format!("{path} was moved to {}", now.shown()),
    }
}

impl JournalError {
    /// Returns true if there is no journal.
    pub fn is_missing(&self) -> bool {
        let missing = std::io::ErrorKind::NotFound;
        matches!(self, Self::System(HostError::Path { kind, .. }) if *kind == missing)
    }

    /// Advice to the user about it.
    pub fn next(&self) -> String {
        match self {
            Self::Live { .. } => "wait until that run has ended, or interrupt it".to_string(),
            Self::Broken { path, .. } => {
                format!("look at {} and undo what it names yourself", path.shown())
            }
            Self::OtherFormat { format, .. } if *format > FORMAT => {
                "use a newer stackrace".to_string()
            }
            Self::OtherFormat { path, .. } => format!(
                "run `stackrace clean` of the version that wrote it, or undo what {} names yourself",
                path.shown()
            ),
            Self::Foreign(_) => {
                "look at the journal; undo yourself what is yours, then remove the run's directory"
                    .to_string()
            }
            Self::OtherRun { path, .. } => {
                let dir = path.parent().unwrap_or(path);
                let remove = shell(&["rm".as_ref(), "-r".as_ref(), dir.as_os_str()]);
                format!("look at it; if nothing of it is left, remove it: {remove}")
            }
            Self::NotOwn { next, .. } => next.clone(),
            Self::Moved { hidden: true, .. } => {
                format!(
                    "umount what is mounted over it, then: {}",
                    again(&["clean"])
                )
            }
            Self::Moved { now, .. } => format!(
                "move it back, then: {}; or name the store where it is: {}",
                again(&["clean"]),
                // `STORE/runs/ID/journal.jsonl`
                again_in(&["clean"], now.ancestors().nth(3).unwrap_or(now))
            ),
            Self::System(error) => error.next(),
        }
    }
}
