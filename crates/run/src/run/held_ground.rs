//! The storage of a trial as each of the machines sees it that measure beside the first one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use stackrace_base::event::{ExchangedStorage, StorageIdentity};
use stackrace_layers::stack;
use stackrace_load::workload::{WorkloadError, trouble};
use stackrace_machine::host::Host;
use stackrace_remote::agent::message::PhaseReply;

/// Reason why a machine beside the first one does not go on with a trial.
pub enum GroundTrouble {
    /// Something failed there.
    Failed(WorkloadError),
    /// Its storage is another one; with what failed, most likely because of that.
    Exchanged(Box<ExchangedStorage>, Option<String>),
}

impl From<String> for GroundTrouble {
    fn from(error: String) -> Self {
        Self::Failed(trouble(error))
    }
}

impl From<&str> for GroundTrouble {
    fn from(error: &str) -> Self {
        Self::Failed(trouble(error.to_owned()))
    }
}

impl From<GroundTrouble> for PhaseReply {
    fn from(trouble: GroundTrouble) -> Self {
        match trouble {
            GroundTrouble::Failed(trouble) => Self::Failed {
                said: trouble.to_string(),
                cause: trouble.cause,
            },
            GroundTrouble::Exchanged(storage, effect) => Self::Exchanged { storage, effect },
        }
    }
}

/// Storage of the directories of a run, as it was when this machine first measured in each of them.
#[derive(Debug, Default)]
pub struct KnownGrounds(Mutex<BTreeMap<PathBuf, StorageIdentity>>);

impl KnownGrounds {
    /// Looks at a directory that the user named, before each trial.
    ///
    /// # Errors
    /// It is something else than before, or it cannot be found out.
    pub fn check(&self, host: &dyn Host, path: &Path) -> Result<(), GroundTrouble> {
        let mut known = self.0.lock();
        let Some(before) = known.get(path) else {
            let first = host.identity_of(path);
            let first = first.map_err(|error| GroundTrouble::Failed(trouble(error)))?;
            known.insert(path.to_path_buf(), first);
            return Ok(());
        };
        match stack::looked_again(host, &[], before, path) {
            None => Ok(()),
            Some(exchanged) => Err(GroundTrouble::Exchanged(Box::new(exchanged), None)),
        }
    }
}

/// Storage of the directories of a trial, as a machine beside the first one sees it.
pub(super) struct HeldGround {
    directories: Vec<(PathBuf, StorageIdentity)>,
    /// The private directory of the trial, with its data.
    data: PathBuf,
}

impl HeldGround {
    /// Looks at them before the trial: what the user named, as it says most, then the private directory of the data.
    ///
    /// # Errors
    /// One is not there, or it cannot be found out.
    pub(super) fn of(host: &dyn Host, named: Option<&Path>, data: &Path) -> Result<Self, String> {
        let looked = named.into_iter().chain([data]).map(|path| {
            let before = host.identity_of(path).map_err(|error| error.to_string())?;
            Ok((path.to_path_buf(), before))
        });
        Ok(Self {
            directories: looked.collect::<Result<_, String>>()?,
            data: data.to_path_buf(),
        })
    }

    /// What is another storage by now, or hides a part of the data; `None` if nothing is.
    fn exchanged(&self, host: &dyn Host) -> Option<ExchangedStorage> {
        let mounts = host.mounts().unwrap_or_default();
        let mut all = self.directories.iter();
        let exchanged =
            all.find_map(|(path, before)| stack::looked_again(host, &mounts, before, path));
        let below = self.directories.last().map(|(_, before)| before);
        exchanged.or_else(|| stack::covered(host, &mounts, &self.data, below))
    }

    /// Looks at them after a part of a trial, whatever came of it.
    ///
    /// # Errors
    /// What failed; one of them is something else by now: what was there, and what is there.
    pub(super) fn after<T>(
        &self,
        host: &dyn Host,
        done: Result<T, String>,
    ) -> Result<T, GroundTrouble> {
        let look = || self.exchanged(host);
        // What happens between two looks is seen at a directory below first; a second pass says it of
        // the one that the user named.
        match look().map(|first| look().unwrap_or(first)) {
            None => Ok(done?),
            Some(exchanged) => Err(GroundTrouble::Exchanged(Box::new(exchanged), done.err())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::FailureCause;
    use stackrace_machine::host::argv;
    use stackrace_machine::host::plan::Fault;

    /// Of a client and a peer: each sees its own mounts, which the first machine does not.
    #[test]
    fn a_file_of_the_data_that_another_one_is_mounted_over_is_told_beside_the_first_machine_too() {
        let base = tempfile::tempdir().unwrap();
        let [named, data] = ["named", "named/data"].map(|name| base.path().join(name));
        let covered = data.join("file");
        for named in [Some(named.as_path()), None] {
            let dirs = [base.path().join("named"), data.clone(), covered.clone()];
            let host = stack::imagined(Fault::Never).of_system("Linux", dirs);
            let ground = HeldGround::of(&host, named, &data).unwrap();
            assert!(ground.after(&host, Ok(())).is_ok());
            let over = ["mount", "-t", "tmpfs", "tmpfs", covered.to_str().unwrap()];
            host.must(&argv(over)).unwrap();
            let Err(GroundTrouble::Exchanged(storage, None)) = ground.after(&host, Ok(())) else {
                panic!("it was not seen");
            };
            let told = storage.told();
            assert!(told.contains(covered.to_str().unwrap()), "{told}");
            assert!(told.contains(" and is now on tmpfs"), "{told}");
        }
    }

    #[test]
    fn the_cause_of_a_failure_reaches_the_machine_that_asked() {
        let full = std::io::Error::from_raw_os_error(28);
        let reply = PhaseReply::from(GroundTrouble::Failed(trouble(full)));
        let PhaseReply::Failed { said, cause } = reply else {
            panic!("{reply:?}");
        };
        assert!(said.contains("No space left on device"), "{said}");
        assert_eq!(cause, Some(FailureCause::Errno(28)));
    }
}
