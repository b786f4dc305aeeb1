//! Values of the kernel that a layer sets, reads back, and has written back when the stack is torn down.

use crate::stack::common::block;
use crate::stack::error::LayerError;
use crate::stack::setup::Setup;
use stackrace_machine::host::{Host, HostError};
use stackrace_machine::journal::Undo;
use std::path::{Path, PathBuf};

/// One value that is asked for.
pub(crate) struct AskedParameter<'a> {
    /// Its name in words: `scheduler of loop3`, `vm.dirty_bytes`.
    pub(crate) name: String,
    /// The file that holds it.
    pub(crate) path: PathBuf,
    /// The value as the file shows it.
    pub(crate) value: &'a str,
}

/// `[none] mq-deadline` → `none`; other files hold nothing but the value.
fn value(text: &str) -> &str {
    block::chosen(text.trim())
}

/// The value that a file holds now.
///
/// # Errors
/// It cannot be read.
pub(crate) fn now(host: &dyn Host, path: &Path) -> Result<String, HostError> {
    Ok(value(&host.read_text(path)?).to_owned())
}

/// Writes a value back, if the file still holds what was written to it: `path` and `ours`, then where and
/// what is written.
///
/// # Errors
/// The system refuses.
pub(crate) fn write_back(
    host: &dyn Host,
    (path, ours): (&Path, &str),
    (to, before): (&Path, &str),
) -> Result<(), HostError> {
    // What others set since is theirs.
    match host.exists(path) && now(host, path)? == ours {
        true => host.write_text(to, before),
        false => Ok(()),
    }
}

impl AskedParameter<'_> {
    /// Sets it until the stack is torn down; `undo` is made of the value before, `None` where another entry
    /// brings that back. The value is read back.
    ///
    /// # Errors
    /// There is none of that name, the kernel takes another value, or refuses it.
    pub(crate) fn set(
        &self,
        setup: &mut Setup<'_>,
        undo: impl FnOnce(&str) -> Result<Option<Undo>, HostError>,
    ) -> Result<(), LayerError> {
        let Self {
            name,
            path,
            value: asked,
        } = self;
        let shown = setup.host().read_text(path).map_err(|_| {
            LayerError::refused(
                format!("there is no {name} that could be set"),
                "leave it out: this kernel or this device does not have it",
            )
        })?;
        let before = value(&shown);
        // Without an entry where nothing changes: undoing would take back what others set meanwhile.
        if before == *asked {
            return Ok(());
        }
        if let Some(undo) = undo(before)? {
            setup.will(undo)?;
        }
        setup.host().write_text(path, asked).map_err(|error| {
            LayerError::refused(
                format!("{name} cannot be {asked}: {error}"),
                format!("write one that it takes; it shows: {}", shown.trim()),
            )
        })?;
        // The kernel rounds some, and says nothing.
        let found = now(setup.host(), path)?;
        match found == *asked {
            true => Ok(()),
            false => Err(LayerError::refused(
                format!("{name} is {found} although {asked} was asked"),
                "ask for a value that the kernel takes as it is",
            )),
        }
    }
}
