//! Values of the kernel that a layer sets, reads back, and has written back when the stack is torn down; and layers
//! that set values of the whole machine.

use crate::foundation::block;
use crate::foundation::error::LayerError;
use crate::foundation::gives::{Danger, Gives, StandingLayer};
use crate::foundation::inspection::Inspection;
use crate::foundation::layer::{Layer, LayerKind};
use crate::foundation::setup::Setup;
use stackrace_base::event::Fact;
use stackrace_machine::host::{Host, HostError, Needs};
use stackrace_machine::journal::Undo;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// One value that is asked for.
pub struct AskedParameter<'a> {
    /// Its name in words: `scheduler of loop3`, `vm.dirty_bytes`.
    pub name: String,
    /// The file that holds it.
    pub path: PathBuf,
    /// The value as the file shows it.
    pub value: &'a str,
}

/// `[none] mq-deadline` → `none`; other files hold nothing but the value.
fn value(text: &str) -> &str {
    block::chosen(text.trim())
}

/// The value that a file holds now.
///
/// # Errors
/// It cannot be read.
pub fn now(host: &dyn Host, path: &Path) -> Result<String, HostError> {
    Ok(value(&host.read_text(path)?).to_owned())
}

/// Writes a value back, if the file still holds what was written to it: `path` and `ours`, then where and
/// what is written.
///
/// # Errors
/// The system refuses.
pub fn write_back(
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

impl Setup<'_> {
    /// Sets a parameter of the kernel until the stack is torn down.
    pub fn set_parameter(&mut self, file: &Path, text: &str) -> Result<(), LayerError> {
        let before = self.host().read_text(file)?.trim().to_string();
        self.set_parameter_after(file, text, before)
    }

    /// As [`Self::set_parameter`], where what brings the state before back is not what the file shows.
    pub fn set_parameter_after(
        &mut self,
        file: &Path,
        text: &str,
        before: String,
    ) -> Result<(), LayerError> {
        // Without an entry where nothing changes: undoing would take back what another program
        // sets meanwhile.
        if before != text {
            self.will(Undo::WriteBack {
                file: file.to_path_buf(),
                ours: text.to_string(),
                before,
            })?;
            self.host().write_text(file, text)?;
        }
        Ok(())
    }
}

/// Undoes an entry whose first word is a proof of [`Setup::prove`], and the others what `undo` takes. After a restart of
/// the machine there is nothing to undo: it has set its values anew, and gives names of devices to others.
///
/// # Errors
/// Those of `undo`.
pub fn since_start(
    host: &dyn Host,
    of: &[OsString],
    undo: fn(&dyn Host, &[OsString]) -> Result<(), HostError>,
) -> Result<(), HostError> {
    match of.split_first() {
        Some((proof, rest)) if host.exists(Path::new(proof)) => undo(host, rest),
        _ => Ok(()),
    }
}

impl AskedParameter<'_> {
    /// Sets it until the stack is torn down; `undo` is made of the value before, `None` where another entry
    /// brings that back. The value is read back.
    ///
    /// # Errors
    /// There is none of that name, the kernel takes another value, or refuses it.
    pub fn set(
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
                format!("{name} is {found} although {asked} was asked for"),
                "ask for a value that the kernel takes as it is",
            )),
        }
    }
}

/// The part of a layer that sets the machine which the others do not have.
pub trait SetsMachine: Send + Sync {
    /// Its kind, as the list of all layers has it.
    const KIND: &'static LayerKind;
    /// The reason why a stack has one of it at most, as a clause.
    const ONE: &'static str;

    /// What is asked for in words, for the plan.
    fn asked(&self) -> String;
    /// As [`Layer::dangers`]: what this machine does not have, or may not be told.
    fn dangers(&self, host: &dyn Host) -> Vec<Danger>;
    /// Sets it until the stack is torn down, and reads it back.
    ///
    /// # Errors
    /// The machine does not have it, or does not take it.
    fn set(&self, setup: &mut Setup<'_>) -> Result<Vec<Fact>, LayerError>;
}

/// Something that sets the machine, at any height of a stack: a layer.
pub struct OfMachine<S>(pub S);

impl<S: SetsMachine> Layer for OfMachine<S> {
    fn of_kind(&self) -> &'static LayerKind {
        S::KIND
    }

    fn describe_asked(&self) -> String {
        self.0.asked()
    }

    fn sets_the_machine(&self) -> bool {
        true
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        // The upper one would win, and the lower one say what is not so.
        match below.iter().any(|layer| layer.kind() == self.kind()) {
            true => Err(S::ONE.to_owned()),
            false => Ok(()),
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            root: true,
            ..Needs::default()
        }
    }

    fn dangers(&self, machine: &Inspection<'_>) -> Vec<Danger> {
        self.0.dangers(machine.host)
    }

    fn returns(&self) -> bool {
        true
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        Ok(StandingLayer::new(self.kind(), self.0.set(setup)?, below))
    }
}
