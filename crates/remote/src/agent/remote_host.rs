//! Another machine as a host: its commands and files, asked for over a connection.

use super::connection::{Connection, ConnectionError};
use super::message::{COORDINATOR, ExecRequest, PeerAddress, WorkerReply, WorkerRequest};
use serde::de::DeserializeOwned;
use stackrace_base::event::{CommandRun, StorageIdentity, again};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::InWords;
use stackrace_machine::host::local::Sink;
use stackrace_machine::host::verb::{RemoteError, Verb};
use stackrace_machine::host::{
    Filling, Host, HostError, LabDisk, LineSpeed, MadeThing, MountInfo, Needs, Output, Whereabouts,
    argv, lacking, line_speed,
};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Interval between tries to reach a machine that may come back.
const RETRY: Duration = Duration::from_millis(200);

/// Another machine of a stack, as its first machine reaches it: through the coordinator.
#[derive(Clone)]
pub struct Peer {
    /// Connection to the coordinator.
    pub connection: Arc<Connection>,
    /// Its number, from 2.
    pub machine: u32,
    /// The coordinator's description of it.
    pub address: PeerAddress,
}

impl Peer {
    /// The peers of this machine.
    pub fn all(connection: &Arc<Connection>, addresses: Vec<PeerAddress>) -> Vec<Self> {
        let peers = (2..).zip(addresses).map(|(machine, address)| Self {
            connection: Arc::clone(connection),
            machine,
            address,
        });
        peers.collect()
    }

    /// The machine as a host; the sink is told of every command. `first` is what cleans the first machine.
    pub fn host(&self, sink: Sink, first: &str) -> RemoteHost {
        RemoteHost {
            named_by: Vec::new(),
            cleaned_by: format!("{first} --peer {}", self.address.name),
            name: self.address.name.clone(),
            machine: self.machine,
            connection: Arc::clone(&self.connection),
            peer: Some(self.address.clone()),
            sink,
        }
    }
}

/// A machine that a connection leads to.
pub struct RemoteHost {
    name: String,
    machine: u32,
    connection: Arc<Connection>,
    /// Address of it as a peer; `None` if the coordinator itself asks it.
    peer: Option<PeerAddress>,
    /// Options of the command line that name it, and the command that removes what is left on it.
    named_by: Vec<String>,
    cleaned_by: String,
    sink: Sink,
}

/// The command that removes what is left on a machine that these options of the command line name, with further options.
pub fn clean_command(named_by: &[String], more: &[&str]) -> String {
    let named_by = named_by.iter().map(String::as_str);
    let words = std::iter::once("clean").chain(named_by);
    again(&words.chain(more.iter().copied()).collect::<Vec<_>>())
}

impl RemoteHost {
    /// The machine at the other end of a coordinator's connection.
    pub fn direct(name: impl Into<String>, connection: &Arc<Connection>) -> Self {
        Self {
            named_by: Vec::new(),
            cleaned_by: again(&["clean"]),
            name: name.into(),
            machine: COORDINATOR,
            connection: Arc::clone(connection),
            peer: None,
            sink: Arc::new(|_| ()),
        }
    }

    /// Takes the options of the command line that name it.
    pub fn with_named_by(self, options: &[String]) -> Self {
        Self {
            cleaned_by: clean_command(options, &[]),
            named_by: options.to_vec(),
            ..self
        }
    }

    /// Options of the command line that name it; none if it is the one that is typed at, a guest or a peer.
    pub fn named_by(&self) -> &[String] {
        &self.named_by
    }

    fn error(&self, said: impl ToString, next: &str, kind: std::io::ErrorKind) -> HostError {
        HostError::Elsewhere {
            host: self.name.clone(),
            said: said.to_string(),
            next: next.to_owned(),
            kind,
        }
    }

    fn unreached(&self, error: &ConnectionError) -> HostError {
        let said = format!("cannot be reached: {error}");
        self.error(said, &error.next, std::io::ErrorKind::NotConnected)
    }

    /// Asks, and waits for the reply. Nothing is asked a second time unless the coordinator says that
    /// it was not delivered: a request that was under way when the machine was lost has failed.
    fn exec_request(&self, request: ExecRequest) -> Result<WorkerReply, HostError> {
        let request = WorkerRequest::Exec(request);
        loop {
            let opened = self.connection.open(self.machine, &request);
            let reply = opened.and_then(|conversation| conversation.receive());
            match reply.map_err(|error| self.unreached(&error))? {
                // A guest whose power was cut may be starting.
                WorkerReply::Undelivered {
                    may_return: true, ..
                } => SystemClock.sleep(RETRY),
                WorkerReply::Undelivered { why, .. } => {
                    return Err(self.unreached(&ConnectionError::new(why)));
                }
                WorkerReply::Failed(error) => return Err(error.heard(&self.name)),
                WorkerReply::Refused { text, next, .. } => {
                    return Err(self.error(text, &next, std::io::ErrorKind::Other));
                }
                reply => return Ok(reply),
            }
        }
    }

    /// Result of a request whose reply is a value.
    ///
    /// # Errors
    /// It cannot be done there, or the connection is lost.
    pub fn value<T: DeserializeOwned>(&self, request: ExecRequest) -> Result<T, HostError> {
        match self.exec_request(request)? {
            WorkerReply::Value(value) => serde_json::from_value(value)
                .map_err(|error| self.error(error, "", std::io::ErrorKind::InvalidData)),
            other => Err(self.unexpected(&other)),
        }
    }

    fn unexpected(&self, reply: &WorkerReply) -> HostError {
        let said = format!("an unexpected answer: {reply:?}");
        self.error(said, "", std::io::ErrorKind::InvalidData)
    }

    fn ask<T: DeserializeOwned>(&self, verb: Verb) -> Result<T, HostError> {
        self.value(ExecRequest::Operation(verb))
    }

    /// Returns true if there is something at a path, where it matters that the machine answers.
    ///
    /// # Errors
    /// It does not answer.
    pub fn sees(&self, path: &Path) -> Result<bool, HostError> {
        self.ask(Verb::Exists { path: path.into() })
    }

    fn as_peer(&self) -> Result<&PeerAddress, HostError> {
        self.peer.as_ref().ok_or(HostError::NoPeer { node: 1 })
    }

    /// The error of something that is missing here, as it is told elsewhere.
    fn lacks(&self, error: &HostError) -> HostError {
        if let HostError::Occupied { .. } | HostError::Elsewhere { .. } = error {
            // It bears the machine's name already.
            return error.clone();
        }
        let lacks = RemoteError::of(error).heard(&self.name);
        match (lacks, error) {
            (
                HostError::Elsewhere {
                    host, said, kind, ..
                },
                HostError::NeedsRoot,
            ) => {
                // The user may have named another account; the advice names only the machine.
                let login = self.name.rsplit('@').next().unwrap_or_default();
                let next = format!(
                    "log in as root: --peer root@{login}; or --sudo, where sudo asks no password"
                );
                HostError::Elsewhere {
                    host,
                    said,
                    next,
                    kind,
                }
            }
            (lacks, _) => lacks,
        }
    }
}

/// The address from which this machine would send to another; nothing is sent.
fn towards(address: IpAddr) -> std::io::Result<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // The port of "discard" (RFC 863); any would do.
    // Sends nothing: a connected datagram socket only asks the kernel which way it would take.
    socket.connect((address, 9))?;
    Ok(socket.local_addr()?.ip())
}

impl Host for RemoteHost {
    fn name(&self) -> &str {
        &self.name
    }

    fn exec(&self, argv: &[OsString]) -> Result<Output, HostError> {
        let began = SystemClock.now_ns();
        let words = argv.iter().map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = words.collect();
        // On a peer, the name of the run's directory is what `clean` finds its commands by.
        let directory = self.peer.as_ref().and_then(|peer| peer.directory.as_ref());
        let run = directory.and_then(|directory| directory.file_name());
        let request = ExecRequest::Command {
            argv: words.clone(),
            run: run.map(|run| run.to_string_lossy().into_owned()),
        };
        let output = match self.exec_request(request)? {
            WorkerReply::Output(output) => output,
            other => return Err(self.unexpected(&other)),
        };
        // The time includes the way there and back: it is what the run waited.
        (self.sink)(CommandRun {
            host: self.name.clone(),
            argv: words,
            status: output.status,
            stdout: output.stdout.clone(),
            stderr: output.stderr.clone(),
            elapsed_ns: SystemClock.now_ns().saturating_sub(began),
        });
        Ok(output)
    }

    fn missing(&self, needs: &Needs) -> Vec<HostError> {
        // Looked for over there: the search path and the tools are those of the other machine.
        let finds = |tool: &str| {
            let tool = tool.to_string();
            self.ask(Verb::Finds { tool })
        };
        match lacking(self, needs, &finds) {
            Ok(missing) => missing.iter().map(|error| self.lacks(error)).collect(),
            Err(error) => vec![error],
        }
    }

    fn is_root(&self) -> bool {
        self.ask(Verb::IsRoot).unwrap_or(false)
    }

    fn create_dir(&self, path: &Path) -> Result<(), HostError> {
        self.ask(Verb::CreateDir { path: path.into() })
    }

    fn create_file(&self, path: &Path, bytes: u64, filling: Filling) -> Result<(), HostError> {
        self.ask(Verb::CreateFile {
            path: path.into(),
            bytes,
            filling,
        })
    }

    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        self.ask(Verb::RemoveFile { path: path.into() })
    }

    fn remove_dir(&self, path: &Path) -> Result<(), HostError> {
        self.ask(Verb::RemoveDir { path: path.into() })
    }

    fn remove_tree(&self, path: &Path) -> Result<(), HostError> {
        self.ask(Verb::RemoveTree { path: path.into() })
    }

    fn write_text(&self, path: &Path, text: &str) -> Result<(), HostError> {
        self.ask(Verb::WriteText {
            path: path.into(),
            text: text.to_string(),
        })
    }

    fn sync_file_system(&self, path: &Path) -> Result<(), HostError> {
        self.ask(Verb::SyncFileSystem { path: path.into() })
    }

    fn read_text(&self, path: &Path) -> Result<String, HostError> {
        self.ask(Verb::ReadText { path: path.into() })
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>, HostError> {
        let names: Vec<String> = self.ask(Verb::List { path: path.into() })?;
        Ok(argv(names))
    }

    fn lost(&self) -> Option<String> {
        self.connection.lost_since(self.machine)
    }

    fn answers(&self) -> Result<(), HostError> {
        self.sees(Path::new("/")).map(drop)
    }

    fn exists(&self, path: &Path) -> bool {
        self.ask(Verb::Exists { path: path.into() })
            .unwrap_or(false)
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.ask(Verb::IsDir { path: path.into() }).unwrap_or(false)
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.ask(Verb::Canonical { path: path.into() })
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, HostError> {
        self.ask(Verb::FreeBytes { path: path.into() })
    }

    fn mounts(&self) -> Result<Vec<MountInfo>, HostError> {
        self.ask(Verb::Mounts)
    }

    fn mount_of(&self, path: &Path) -> Result<MountInfo, HostError> {
        self.ask(Verb::MountOf { path: path.into() })
    }

    fn identity_of(&self, directory: &Path) -> Result<StorageIdentity, HostError> {
        let path = directory.into();
        self.ask(Verb::IdentityOf { path })
    }

    fn thing_at(&self, path: &Path) -> Option<MadeThing> {
        self.ask(Verb::ThingAt { path: path.into() }).ok()?
    }

    fn find_thing(&self, thing: &MadeThing, path: &Path) -> Whereabouts {
        let (thing, path) = (thing.clone(), path.into());
        let found = self.ask(Verb::FindThing { thing, path });
        found.unwrap_or(Whereabouts::NotKnown)
    }

    fn cleaned_by(&self) -> &str {
        &self.cleaned_by
    }

    fn holders(&self, path: &Path) -> Vec<String> {
        self.ask(Verb::Holders { path: path.into() })
            .unwrap_or_default()
    }

    fn outlive(&self, run: &str) -> Result<Option<String>, HostError> {
        let run = run.to_string();
        self.ask(Verb::Outlive { run })
    }

    fn lab_disk(&self, disk: &LabDisk) -> Result<PathBuf, HostError> {
        self.ask(Verb::LabDisk { disk: disk.clone() })
    }

    fn end_machine(&self, _directory: &Path) -> Result<(), HostError> {
        let said = "virtual machines are started on the coordinator's machine alone";
        Err(self.error(said, "", std::io::ErrorKind::Unsupported))
    }

    fn running(&self, program: &str) -> Result<Option<String>, HostError> {
        let program = program.to_string();
        self.ask(Verb::Running { program })
    }

    fn listener(&self, port: u16) -> Result<Option<String>, HostError> {
        self.ask(Verb::Listener { port })
    }

    fn end_daemon(&self, program: &str, mark: &str) -> Result<(), HostError> {
        self.ask(Verb::EndDaemon {
            program: program.to_string(),
            mark: mark.to_string(),
        })
    }

    fn own_scratch(&self) -> Option<&Path> {
        self.peer.as_ref()?.directory.as_deref()
    }

    fn line(&self) -> Result<[IpAddr; 2], HostError> {
        let there = self.as_peer()?.address;
        let here = towards(there).map_err(|error| {
            let said = format!(
                "no line leads to {there}: {error}",
                error = error.in_words()
            );
            let name = &self.name;
            let next = format!("name the address the line goes to: --peer {name}=ADDRESS");
            self.error(said, &next, error.kind())
        })?;
        Ok([here, there])
    }

    fn measured_at(&self) -> Result<SocketAddr, HostError> {
        let address = self.as_peer()?.address;
        self.ask(Verb::Listen { address })
    }

    fn measure_line(&self, bytes: u64) -> Result<Option<LineSpeed>, HostError> {
        let address = self.measured_at()?;
        let speed = line_speed::measure(address, bytes);
        speed.map(Some).map_err(|error| {
            self.error(
                format!("{address}: {error}", error = error.in_words()),
                "",
                error.kind(),
            )
        })
    }

    fn measure_line_to(
        &self,
        other: &dyn Host,
        bytes: u64,
    ) -> Result<Option<LineSpeed>, HostError> {
        let address = other.measured_at()?;
        self.ask(Verb::MeasureLine { address, bytes }).map(Some)
    }

    fn pause(&self, duration: Duration) {
        SystemClock.sleep(duration);
    }

    /// Names are chosen by the first machine alone.
    fn nonce(&self) -> Result<String, HostError> {
        let said = "the first machine chooses all names";
        Err(self.error(said, "", std::io::ErrorKind::Unsupported))
    }
}
