//! The storage of a trial as each of the machines sees it that measure beside the first one.

use std::path::{Path, PathBuf};

use stackrace_base::event::StorageIdentity;
use stackrace_layers::stack;
use stackrace_machine::host::Host;

/// What the directory of a trial lies on, as a machine beside the first one sees it.
pub(super) struct HeldGround {
    path: PathBuf,
    before: StorageIdentity,
}

impl HeldGround {
    /// Looks at it before the trial.
    ///
    /// # Errors
    /// It is not there, or it cannot be found out.
    pub(super) fn of(host: &dyn Host, path: &Path) -> Result<Self, String> {
        let before = host.identity_of(path).map_err(|error| error.to_string())?;
        let path = path.to_path_buf();
        Ok(Self { path, before })
    }

    /// Looks at it after a phase.
    ///
    /// # Errors
    /// It is something else by now: what was there, and what is there.
    pub(super) fn is_same(&self, host: &dyn Host) -> Result<(), String> {
        let now = host.identity_of(&self.path).ok();
        match stack::compared(&self.before, now) {
            None => Ok(()),
            Some(exchanged) => Err(exchanged.told()),
        }
    }
}
