//! Directories that are measured in, so that two runs of this machine notice each other.
//!
//! Each run locks its directories themselves (`flock`): that leaves nothing behind, ends with the process,
//! and is seen by runs of other users with stores of their own.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use stackrace_base::failure::Failure;
use stackrace_study::study::Study;

/// Directories that no other run measures in as long as this lives.
#[derive(Debug, Default)]
pub(super) struct TakenDirs {
    locks: Vec<File>,
}

impl TakenDirs {
    /// Takes directories, each named once, and gives the sentences on those that another run has.
    pub(super) fn take<'a>(directories: impl Iterator<Item = &'a Path>) -> (Self, Vec<String>) {
        let mut taken = Self::default();
        let mut others = Vec::new();
        for directory in directories {
            // What cannot be opened is refused elsewhere, with its reason.
            let Ok(opened) = File::open(directory) else {
                continue;
            };
            match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => taken.locks.push(opened),
                Err(Errno::WOULDBLOCK) => others.push(format!(
                    "another run of stackrace measures in {}: each would slow down the other",
                    directory.display()
                )),
                // Some file systems lock no directories.
                Err(_) => {}
            }
        }
        (taken, others)
    }

    /// The same of a study's directories; `anyway`: also where another run has them.
    ///
    /// # Errors
    /// Another run measures in one of them.
    pub(super) fn of_study(
        directories: &[PathBuf],
        anyway: bool,
    ) -> Result<(Self, Vec<String>), Failure> {
        let (taken, others) = Self::take(directories.iter().map(PathBuf::as_path));
        match others.is_empty() || anyway {
            true => Ok((taken, others)),
            false => Err(Failure::refused(others.join("\n       ")).next(
                "wait until it has ended (stackrace runs), or measure all the same with --anyway",
            )),
        }
    }
}

/// The directories of a study whose stacks are nothing else, each once; none: there is something else,
/// or nothing to compare.
pub(super) fn directories(study: &Study) -> Option<Vec<PathBuf>> {
    let stacks = study.configurations.iter().map(|one| &one.stack);
    let all: Option<Vec<PathBuf>> = stacks.map(|stack| stack.existing_directory()).collect();
    let mut all = all.filter(|all| all.len() > 1)?;
    all.sort();
    all.dedup();
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_taken_once_and_free_again_afterwards() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = [directory.path().to_owned()];
        let (first, others) = TakenDirs::of_study(&path, false).ok().unwrap();
        assert_eq!(others, [""; 0]);
        let refused = TakenDirs::of_study(&path, false)
            .err()
            .map(Failure::into_parts);
        assert!(
            refused
                .unwrap()
                .0
                .contains("another run of stackrace measures in")
        );
        let (_, others) = TakenDirs::of_study(&path, true).ok().unwrap();
        assert_eq!(others.len(), 1);
        drop(first);
        assert!(TakenDirs::of_study(&path, false).is_ok());
    }
}
