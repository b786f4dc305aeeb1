//! Directories that are tried before a run: what was found out there counts only if each of them lay on
//! the same storage all the time.

use std::path::{Path, PathBuf};

use stackrace_base::event::StorageIdentity;
use stackrace_base::failure::Failure;
use stackrace_layers::stack;
use stackrace_machine::host::Host;

/// Directories, each with what it lay on when it was first looked at.
pub(crate) struct WatchedDirs<'a> {
    host: &'a dyn Host,
    before: Vec<StorageIdentity>,
    /// The private directory of the data; `None` if there is none by now.
    data: Option<PathBuf>,
    /// True if nothing was made or done since it was looked at.
    just_looked: bool,
}

impl<'a> WatchedDirs<'a> {
    /// Looks at directories for the first time.
    ///
    /// # Errors
    /// One is not there, or it cannot be found out what it lies on.
    pub(crate) fn of(host: &'a dyn Host, directories: &[PathBuf]) -> Result<Self, Failure> {
        let before = directories.iter().map(|path| lies_on(host, path));
        Ok(Self {
            host,
            before: before.collect::<Result<_, _>>()?,
            data: None,
            just_looked: false,
        })
    }

    /// Looks at what a file lies in, or at a device itself.
    ///
    /// # Errors
    /// It is not there, or it cannot be found out.
    pub(crate) fn of_existing(host: &'a dyn Host, path: &Path) -> Result<Self, Failure> {
        let holds = path.parent().filter(|_| path.is_file());
        let mut watched = Self::of(host, &[holds.unwrap_or(path).to_path_buf()])?;
        // Data are there already: nothing is made before it is read.
        watched.just_looked = true;
        Ok(watched)
    }

    /// Takes directories that were looked at already.
    pub(crate) fn known(host: &'a dyn Host, before: Vec<StorageIdentity>) -> Self {
        Self {
            host,
            before,
            data: None,
            just_looked: false,
        }
    }

    /// The same with the private directory of the data below the last of them.
    pub(crate) fn with_data(self, directory: &Path) -> Self {
        Self {
            data: Some(directory.to_path_buf()),
            ..self
        }
    }

    /// Refuses to go on if one of them lies on something else by now.
    ///
    /// # Errors
    /// What was there before, and what is there now.
    pub(crate) fn unchanged(&self) -> Result<(), Failure> {
        match self.exchanged() {
            None => Ok(()),
            Some(told) => Err(Failure::refused(format!(
                "{told}; nothing that was found out until now counts"
            ))
            .next("bring back what was there, leave it there, and begin again")),
        }
    }

    /// The same as [`WatchedDirs::exchanged`]; a first look that follows at once need not read everything again.
    pub(crate) fn exchanged_since(&mut self) -> Option<String> {
        match std::mem::take(&mut self.just_looked) {
            true => None,
            false => self.exchanged(),
        }
    }

    /// Says what was exchanged; `None` if nothing was.
    pub(crate) fn exchanged(&self) -> Option<String> {
        let mounts = self.host.mounts().unwrap_or_default();
        let exchanged = self.before.iter().find_map(|before| {
            let path = Path::new(&before.directory);
            stack::looked_again(self.host, &mounts, before, path)
        });
        let covered = || {
            stack::covered(
                self.host,
                &mounts,
                self.data.as_deref()?,
                self.before.last(),
            )
        };
        Some(exchanged.or_else(covered)?.told())
    }
}

/// Returns what a directory lies on.
///
/// # Errors
/// It is not there, or it cannot be found out.
pub(crate) fn lies_on(host: &dyn Host, directory: &Path) -> Result<StorageIdentity, Failure> {
    let identity = host.identity_of(directory);
    identity.map_err(|error| Failure::refused(error.to_string()).next(error.next()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_machine::host::local::LocalHost;
    use std::sync::Arc;

    #[test]
    fn a_file_is_watched_by_what_it_lies_in() {
        let host = LocalHost::new(Arc::new(|_| ()));
        let held = tempfile::tempdir().unwrap();
        let file = held.path().join("a");
        std::fs::write(&file, "a").unwrap();
        let mut watched = WatchedDirs::of_existing(&host, &file).ok().unwrap();
        assert_eq!(watched.before[0].directory, held.path().to_string_lossy());
        assert_eq!(watched.exchanged(), None);
        watched.before[0].options = Some(vec!["commit=600".to_owned()]);
        let told = watched.exchanged().unwrap();
        assert!(told.contains("was mounted with commit=600"), "{told}");
        // What it lies on was found out a moment ago, once; in a directory, data are made meanwhile.
        assert_eq!(watched.exchanged_since(), None);
        assert_eq!(watched.exchanged_since(), Some(told.clone()));
        let directory = [held.path().to_path_buf()];
        let mut watched = WatchedDirs::of(&host, &directory).ok().unwrap();
        watched.before[0].options = Some(vec!["commit=600".to_owned()]);
        assert_eq!(watched.exchanged_since(), Some(told));
    }
}
