//! Directories that are measured in, so that two runs of this machine notice each other.
//!
//! Each run locks its directories themselves (`flock`): that leaves nothing behind, ends with the process,
//! and is seen by runs of other users with stores of their own.

use stackrace_base::unit::ShownPath;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::place::machine_options::unable;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use stackrace_base::failure::Failure;
use stackrace_machine::host::{Host, process};
use stackrace_machine::journal::BOOT;
use stackrace_remote::agent::message::ExecRequest;
use stackrace_remote::agent::remote_host::RemoteHost;
use stackrace_run::prepare::clean::patiently;
use stackrace_study::study::Study;

/// Directories that no other run measures in as long as this lives.
#[derive(Debug, Default)]
pub struct TakenDirs {
    locks: Vec<File>,
}

impl TakenDirs {
    /// Takes directories, each named once, and gives the sentences on those that another run has.
    pub fn take<'a>(directories: impl Iterator<Item = &'a Path>) -> (Self, Vec<String>) {
        Self::locked(directories, FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes a directory for a load, which loads others beside it but no run.
    ///
    /// # Errors
    /// A run measures in it.
    pub fn of_load(directory: &Path) -> Result<Self, Failure> {
        let shared = FlockOperation::NonBlockingLockShared;
        let (taken, others) = Self::locked(std::iter::once(directory), shared);
        match others.is_empty() {
            true => Ok(taken),
            false => Err(Failure::refused(others.join("\n       "))
                .next("wait until it has ended, or name another directory")),
        }
    }

    fn locked<'a>(
        directories: impl Iterator<Item = &'a Path>,
        how: FlockOperation,
    ) -> (Self, Vec<String>) {
        let mut taken = Self::default();
        let mut others = Vec::new();
        let mut known = BTreeSet::new();
        for directory in directories {
            // What cannot be opened is refused elsewhere, with its reason.
            let Ok(opened) = File::open(directory) else {
                continue;
            };
            // Two names of one directory: this run does not stand in its own way.
            let number = opened.metadata().map(|it| (it.dev(), it.ino())).ok();
            if number.is_some_and(|number| !known.insert(number)) {
                continue;
            }
            let lock = || flock(&opened, how);
            match patiently(lock, |locked| *locked == Err(Errno::WOULDBLOCK)) {
                Ok(()) => taken.locks.push(opened),
                Err(Errno::WOULDBLOCK) => others.push(format!(
                    "another run of stackrace measures in {}{}: each would slow down the other",
                    directory.shown(),
                    process::locker(&opened).map_or_else(String::new, |it| format!(" ({it})"))
                )),
                // Some file systems lock no directories.
                Err(_) => {}
            }
        }
        (taken, others)
    }

    /// Takes a study's directories; `anyway`: also where another run has them.
    ///
    /// # Errors
    /// Another run measures in one of them.
    pub fn of_study(directories: &[PathBuf], anyway: bool) -> Result<(Self, Vec<String>), Failure> {
        let (taken, others) = Self::take(directories.iter().map(PathBuf::as_path));
        Ok((taken, permitted(others, anyway)?))
    }
}

/// Refuses to measure beside other runs, unless the user permits it.
fn permitted(others: Vec<String>, anyway: bool) -> Result<Vec<String>, Failure> {
    match others.is_empty() || anyway {
        true => Ok(others),
        false => Err(Failure::refused(others.join("\n       "))
            .next("wait until it has ended, or measure all the same with --anyway")),
    }
}

/// Has workers on other machines take the directories of a study, as long as they live.
///
/// # Errors
/// Another run measures in one of them; a machine does not answer.
pub fn of_study_there(
    study: &Study,
    hosts: &[RemoteHost],
    anyway: bool,
) -> Result<Vec<String>, Failure> {
    let directories = directories(study);
    if directories.is_empty() {
        return Ok(Vec::new());
    }
    let mut known = BTreeSet::new();
    let mut others = Vec::new();
    for host in hosts {
        // A machine with two names would stand in its own way. What has no such file has one name.
        let boot = host.read_text(Path::new(BOOT));
        if !known.insert(boot.unwrap_or_else(|_| host.name().to_owned())) {
            continue;
        }
        let directories = directories.clone();
        let taken: Vec<String> = host
            .value(ExecRequest::Take { directories })
            .map_err(unable)?;
        let named = taken
            .into_iter()
            .map(|why| format!("{}: {why}", host.name()));
        others.extend(named);
    }
    permitted(others, anyway)
}

/// Directories of the user's that are configurations of a study as they are, each once. One alone counts, too: a
/// second run beside it would be measured with it.
pub fn directories(study: &Study) -> Vec<PathBuf> {
    let each = study.configurations.iter();
    let named: BTreeSet<PathBuf> = each
        .filter_map(|it| it.stack.existing_directory())
        .collect();
    named.into_iter().collect()
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
        let told = refused.unwrap().0;
        assert!(told.contains("another run of stackrace measures in"));
        // The one that has it is this very process.
        let named = format!("(process {}: ", std::process::id());
        assert!(told.contains(&named), "{told}");
        let (_, others) = TakenDirs::of_study(&path, true).ok().unwrap();
        assert_eq!(others.len(), 1);
        drop(first);
        // Two names of one directory are no two runs.
        let twice = [path[0].clone(), path[0].join(".")];
        let taken = TakenDirs::of_study(&twice, false);
        assert!(taken.is_ok_and(|(_, others)| others.is_empty()));
        assert!(TakenDirs::of_study(&path, false).is_ok());
    }

    #[test]
    fn loads_go_on_beside_each_other_and_not_beside_a_run() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = [directory.path().to_owned()];
        let loads = [0, 1].map(|_| TakenDirs::of_load(&path[0]).ok().unwrap());
        assert!(TakenDirs::of_study(&path, false).is_err());
        drop(loads);
        let _run = TakenDirs::of_study(&path, false).ok().unwrap();
        assert!(TakenDirs::of_load(&path[0]).is_err());
    }
}
