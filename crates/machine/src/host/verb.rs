//! What a host is asked, as data: so that this program on another machine does it there.

use super::{Filling, Host, HostError, LabDisk, MadeThing, line_speed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// A verb of [`Host`] with what it is done to; commands are asked for by their words instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case")]
pub enum Verb {
    /// [`Host::is_root`].
    IsRoot,
    /// Asks whether it has a program.
    Finds {
        /// Its name.
        tool: String,
    },
    /// [`Host::create_dir`].
    CreateDir {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::create_file`].
    CreateFile {
        /// The path on that machine.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Its content.
        filling: Filling,
    },
    /// [`Host::remove_file`].
    RemoveFile {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::remove_dir`].
    RemoveDir {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::remove_tree`].
    RemoveTree {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::write_text`].
    WriteText {
        /// The path on that machine.
        path: PathBuf,
        /// The new content.
        text: String,
    },
    /// [`Host::sync_file_system`].
    SyncFileSystem {
        /// A path in the file system, on that machine.
        path: PathBuf,
    },
    /// [`Host::read_text`].
    ReadText {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::list`].
    List {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::exists`].
    Exists {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::is_dir`].
    IsDir {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::canonical`].
    Canonical {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::free_bytes`].
    FreeBytes {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::mounts`].
    Mounts,
    /// [`Host::mount_of`].
    MountOf {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::identity_of`].
    IdentityOf {
        /// The directory on that machine.
        path: PathBuf,
    },
    /// [`Host::thing_at`].
    ThingAt {
        /// The path on that machine.
        path: PathBuf,
    },
    /// [`Host::find_thing`].
    FindThing {
        /// The thing as it was when it was made.
        thing: MadeThing,
        /// The path that it was made at.
        path: PathBuf,
    },
    /// [`Host::holders`].
    Holders {
        /// The device or the mounted directory.
        path: PathBuf,
    },
    /// [`Host::outlive`].
    Outlive {
        /// The run whose commands are waited for.
        run: String,
    },
    /// [`Host::lab_disk`].
    LabDisk {
        /// The disk of the lab, by its serial number.
        disk: LabDisk,
    },
    /// [`Host::running`].
    Running {
        /// Its name.
        program: String,
    },
    /// [`Host::listener`].
    Listener {
        /// The port, from 1.
        port: u16,
    },
    /// Listen once at an address of that machine for a measurement of the line to it.
    Listen {
        /// The address to listen on.
        address: IpAddr,
    },
    /// Measure the line from there to where another machine listens.
    MeasureLine {
        /// The machine that listens, and its port.
        address: SocketAddr,
        /// Number of bytes to send.
        bytes: u64,
    },
    /// [`Host::end_daemon`].
    EndDaemon {
        /// Its name.
        program: String,
        /// The mark that it bears.
        mark: String,
    },
}

/// Does what is asked; the answer as data, in the form [`super::MountInfo`] and its like have there.
///
/// # Errors
/// The host's own.
pub fn perform(host: &dyn Host, verb: Verb) -> Result<Value, HostError> {
    Ok(match verb {
        Verb::IsRoot => json!(host.is_root()),
        Verb::Finds { tool } => json!(super::tools::find(&tool).is_some()),
        Verb::CreateDir { path } => json!(host.create_dir(&path)?),
        Verb::CreateFile {
            path,
            bytes,
            filling,
        } => json!(host.create_file(&path, bytes, filling)?),
        Verb::RemoveFile { path } => json!(host.remove_file(&path)?),
        Verb::RemoveDir { path } => json!(host.remove_dir(&path)?),
        Verb::RemoveTree { path } => json!(host.remove_tree(&path)?),
        Verb::WriteText { path, text } => json!(host.write_text(&path, &text)?),
        Verb::SyncFileSystem { path } => json!(host.sync_file_system(&path)?),
        Verb::ReadText { path } => json!(host.read_text(&path)?),
        Verb::List { path } => {
            let names = host.list(&path)?.into_iter();
            let names = names.map(|name| name.to_string_lossy().into_owned());
            json!(names.collect::<Vec<_>>())
        }
        Verb::Exists { path } => json!(host.exists(&path)),
        Verb::IsDir { path } => json!(host.is_dir(&path)),
        Verb::Canonical { path } => json!(host.canonical(&path)?),
        Verb::FreeBytes { path } => json!(host.free_bytes(&path)?),
        Verb::Mounts => json!(host.mounts()?),
        Verb::MountOf { path } => json!(host.mount_of(&path)?),
        Verb::IdentityOf { path } => json!(host.identity_of(&path)?),
        Verb::ThingAt { path } => json!(host.thing_at(&path)),
        Verb::FindThing { thing, path } => json!(host.find_thing(&thing, &path)),
        Verb::Holders { path } => json!(host.holders(&path)),
        Verb::Outlive { run } => json!(host.outlive(&run)?),
        Verb::LabDisk { disk } => json!(host.lab_disk(&disk)?),
        Verb::Running { program } => json!(host.running(&program)?),
        Verb::Listener { port } => json!(host.listener(port)?),
        Verb::Listen { address } => {
            let at = line_speed::listen_once(address);
            json!(at.map_err(|error| cannot("listen at", address, error))?)
        }
        Verb::MeasureLine { address, bytes } => {
            let speed = line_speed::measure(address, bytes);
            json!(speed.map_err(|error| cannot("measure the line to", address, error))?)
        }
        Verb::EndDaemon { program, mark } => json!(host.end_daemon(&program, &mark)?),
    })
}

/// The error that something could not be done with an address.
fn cannot(what: &'static str, address: impl ToString, error: std::io::Error) -> HostError {
    HostError::path(what, Path::new(&address.to_string()), error)
}

/// An error as it is told to another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteError {
    /// The error in words.
    said: String,
    /// Advice about it.
    next: String,
    /// True if something was in the way.
    already_there: bool,
}

impl RemoteError {
    /// The error as it is told to another machine.
    pub fn of(error: &HostError) -> Self {
        Self {
            said: error.to_string(),
            next: error.next(),
            already_there: error.is_already_there(),
        }
    }

    /// The error where it is heard.
    pub fn heard(self, host: &str) -> HostError {
        HostError::Elsewhere {
            host: host.to_string(),
            said: self.said,
            next: self.next,
            kind: if self.already_there {
                ErrorKind::AlreadyExists
            } else {
                ErrorKind::Other
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::MountInfo;
    use crate::host::local::LocalHost;
    use std::sync::Arc;

    #[test]
    fn what_is_asked_as_data_is_done_and_told() {
        let host = LocalHost::new(Arc::new(|_| ()));
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("made");
        let verb = Verb::CreateDir { path: path.clone() };
        let text = serde_json::to_string(&verb).unwrap();
        let verb: Verb = serde_json::from_str(&text).unwrap();
        perform(&host, verb.clone()).unwrap();
        assert!(path.is_dir());
        let error = perform(&host, verb).unwrap_err();
        let heard = RemoteError::of(&error).heard("node2");
        assert!(heard.is_already_there());
        assert!(heard.to_string().starts_with("node2: cannot create"));
        let mounts = perform(&host, Verb::Mounts).unwrap();
        let mounts: Vec<MountInfo> = serde_json::from_value(mounts).unwrap();
        assert_eq!(mounts.len(), host.mounts().unwrap().len());
    }
}
