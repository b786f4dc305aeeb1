//! Another machine of a stack, as a host: what the first one asks the agent there.
//!
//! In the lab that agent listens in the private network. There is nothing to be kept from anybody:
//! the network ends in the machine's directory, and the guests are disposable. Over SSH nothing
//! listens: what is asked goes through the one who can log in to both ([`super::relay`]).

use super::dial::Dial;
use super::relay::Line;
use super::speed::speed_to;
use super::wire::{Reply, Request};
use super::{Agent, AgentError};
use crate::event::CommandRun;
use crate::host::local::Sink;
use crate::host::verb::{Told, Verb};
use crate::host::{
    Filling, Host, HostError, LabDisk, LineSpeed, MountInfo, Needs, Output, argv, lacking, shown,
};
use crate::time::{Clock, SystemClock};
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How long a guest may say nothing before it is looked whether it is still there.
const SILENCE: Duration = Duration::from_secs(30);

/// Another machine of a stack.
pub(crate) struct Peer {
    name: String,
    sink: Sink,
    way: Way,
}

/// How its agent is asked.
enum Way {
    /// Over TCP.
    Guest(Dial),
    /// Through the one who started this program.
    Relayed(Arc<Line>),
}

impl Peer {
    /// Another guest of the lab, whose agent listens at an address; the sink is told of every command.
    pub(crate) fn in_guest(name: String, address: SocketAddr, sink: Sink) -> Self {
        let way = Way::Guest(Dial::new(address));
        Self { name, sink, way }
    }

    /// A machine over SSH; the sink is told of every command.
    pub(crate) fn relayed(line: Arc<Line>, sink: Sink) -> Self {
        let name = line.of.name.clone();
        let way = Way::Relayed(line);
        Self { name, sink, way }
    }

    fn lost(&self, cause: impl ToString) -> HostError {
        HostError::Elsewhere {
            host: self.name.clone(),
            said: format!("cannot be talked to: {}", cause.to_string()),
            next: String::new(),
            kind: std::io::ErrorKind::NotConnected,
        }
    }

    /// Why there is no answer.
    fn unanswered(&self) -> HostError {
        match &self.way {
            Way::Guest(_) => self.lost("the connection has ended"),
            Way::Relayed(line) => self.lost(line.gone()),
        }
    }

    fn agent(&self) -> Result<Arc<Agent>, HostError> {
        match &self.way {
            Way::Guest(dial) => dial.agent().map_err(|error| self.lost(error)),
            Way::Relayed(line) => Ok(Arc::clone(line.agent())),
        }
    }

    fn ask<T: DeserializeOwned>(&self, verb: Verb) -> Result<T, HostError> {
        self.request(Request::Do { verb })
    }

    /// Waits for a reply for as long as the peer is there: a guest without power, or behind a cut
    /// link, says nothing, and its end of the connection neither. Of a line over SSH the end is told.
    fn hear(&self, agent: &Agent, replies: &Receiver<Reply>) -> Result<Reply, HostError> {
        loop {
            match replies.recv_timeout(SILENCE) {
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Disconnected) => return Err(self.unanswered()),
                Err(RecvTimeoutError::Timeout) => {
                    if let Way::Guest(dial) = &self.way {
                        let looked = dial.look_after(agent);
                        looked.map_err(|error| self.lost(error))?;
                    }
                }
            }
        }
    }

    /// What was begun there.
    fn begun<T>(&self, asked: Result<T, AgentError>) -> Result<T, HostError> {
        asked.map_err(|error| match error {
            AgentError::Ended => self.unanswered(),
            other => self.lost(other),
        })
    }

    fn request<T: DeserializeOwned>(&self, request: Request) -> Result<T, HostError> {
        let agent = self.agent()?;
        let (_, replies) = self.begun(agent.ask(request))?;
        match self.hear(&agent, &replies)? {
            Reply::Did { value } => serde_json::from_value(value).map_err(|error| self.lost(error)),
            Reply::Unable { told } => Err(told.heard(&self.name)),
            Reply::Refused { why } => Err(HostError::Elsewhere {
                host: self.name.clone(),
                said: why,
                next: String::new(),
                kind: std::io::ErrorKind::Other,
            }),
            other => Err(self.lost(format!("{other:?}"))),
        }
    }

    /// Something that is missing here, as it is told elsewhere.
    fn lacks(&self, error: &HostError) -> HostError {
        if let HostError::Occupied { .. } | HostError::Elsewhere { .. } = error {
            // It bears the machine's name already.
            return error.clone();
        }
        let lacks = Told::of(error).heard(&self.name);
        match (lacks, error) {
            (
                HostError::Elsewhere {
                    host, said, kind, ..
                },
                HostError::NeedsRoot,
            ) => {
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
    socket.connect((address, 9))?;
    Ok(socket.local_addr()?.ip())
}

impl Host for Peer {
    fn name(&self) -> &str {
        &self.name
    }

    fn exec(&self, argv: &[OsString]) -> Result<Output, HostError> {
        let began = SystemClock.now_ns();
        let agent = self.agent()?;
        let (_, replies) = self.begun(agent.begin(argv))?;
        let ended = super::output(self.hear(&agent, &replies)?);
        let elapsed_ns = SystemClock.now_ns().saturating_sub(began);
        let output = ended.map_err(|error| match error {
            AgentError::Refused(cause) => HostError::NotStarted {
                command: format!("{} on {}", shown(argv), self.name),
                cause,
            },
            other => self.lost(other),
        })?;
        (self.sink)(CommandRun {
            host: self.name.clone(),
            argv: argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            status: output.status,
            stdout: output.stdout.clone(),
            stderr: output.stderr.clone(),
            elapsed_ns,
        });
        Ok(output)
    }

    fn missing(&self, needs: &Needs) -> Vec<HostError> {
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
        Err(self.lost("a guest has no virtual machines of its own"))
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
        match &self.way {
            Way::Guest(_) => None,
            Way::Relayed(line) => Some(&line.of.directory),
        }
    }

    fn line(&self) -> Result<[IpAddr; 2], HostError> {
        match &self.way {
            Way::Guest(dial) => {
                let here = dial.connect().and_then(|stream| stream.local_addr());
                let here = here.map_err(|error| self.lost(error))?;
                Ok([here.ip(), dial.address().ip()])
            }
            Way::Relayed(line) => {
                let there = line.of.address;
                let here = towards(there).map_err(|error| HostError::Elsewhere {
                    host: self.name.clone(),
                    said: format!("no line leads to {there}: {error}"),
                    next: format!(
                        "name the address the line goes to: --peer {}=ADDRESS",
                        self.name
                    ),
                    kind: error.kind(),
                })?;
                Ok([here, there])
            }
        }
    }

    fn measured_at(&self) -> Result<SocketAddr, HostError> {
        match &self.way {
            Way::Guest(dial) => Ok(dial.address()),
            Way::Relayed(line) => self.request(Request::Listen {
                address: line.of.address,
            }),
        }
    }

    fn measure_line(&self, bytes: u64) -> Result<Option<LineSpeed>, HostError> {
        let address = self.measured_at()?;
        let speed = speed_to(address, bytes);
        speed
            .map(Some)
            .map_err(|error| self.lost(format!("{address}: {error}")))
    }

    fn measure_line_to(
        &self,
        other: &dyn Host,
        bytes: u64,
    ) -> Result<Option<LineSpeed>, HostError> {
        let address = other.measured_at()?;
        self.request(Request::Measure { address, bytes }).map(Some)
    }

    fn pause(&self, duration: Duration) {
        SystemClock.sleep(duration);
    }

    /// Names are chosen by node 1 alone.
    fn nonce(&self) -> Result<String, HostError> {
        Err(self.lost("a peer chooses no names"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve;
    use super::*;
    use crate::host::Daemon;
    use std::net::TcpListener;
    use std::sync::Mutex;

    /// A peer whose agent answers in this process, on a port of this machine.
    fn peer(sink: Sink) -> Peer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve::of_peer(stream));
            }
        });
        Peer::in_guest("node2".to_string(), address, sink)
    }

    #[test]
    fn a_peer_does_what_a_host_does_and_says_where_it_failed() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&log);
        let peer = peer(Arc::new(move |run| kept.lock().unwrap().push(run)));
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let made = base.join("made");
        peer.create_dir(&made).unwrap();
        assert!(made.is_dir() && peer.is_dir(&made));
        let error = peer.create_dir(&made).unwrap_err();
        assert!(error.is_already_there());
        assert!(error.to_string().starts_with("node2: "), "{error}");
        let file = made.join("text");
        peer.create_file(&file, 0, Filling::Sparse).unwrap();
        peer.write_text(&file, "a \"b\"\nc").unwrap();
        assert_eq!(peer.read_text(&file).unwrap(), "a \"b\"\nc");
        assert_eq!(peer.list(&made).unwrap(), ["text"]);
        let mount = peer.mount_of(&made).unwrap();
        assert!(made.starts_with(&mount.mount_point));
        let failed = peer.must(&argv(["sh", "-c", "echo no >&2; exit 3"]));
        assert!(failed.unwrap_err().to_string().contains("status 3: no"));
        let missing = peer.exec(&argv(["no-such-program"])).unwrap_err();
        assert!(missing.to_string().contains("node2"), "{missing}");
        peer.end_daemon("no-such-daemon", "no-such-mark").unwrap();
        assert_eq!(peer.running("no-such-daemon").unwrap(), None);
        let daemon = Daemon {
            program: "no-such-daemon",
            port: Some(peer.measured_at().unwrap().port()),
        };
        let taken = peer.check_free(&daemon).unwrap_err().to_string();
        let me = format!("(process {}) listens at port", std::process::id());
        assert!(
            taken.starts_with("node2: ") && taken.contains(&me),
            "{taken}"
        );
        let log = log.lock().unwrap();
        assert_eq!(log.len(), 1, "what ran is recorded, once");
        assert_eq!((&*log[0].host, log[0].status), ("node2", Some(3)));
    }

    #[test]
    fn the_line_to_a_peer_is_measured() {
        let peer = peer(Arc::new(|_| ()));
        let speed = peer.measure_line(300_000).unwrap().unwrap();
        assert_eq!(speed.bytes, 300_000);
        assert!(speed.round_trip_ns > 0 && speed.rate.is_finite() && speed.rate > 0.0);
        assert!(peer.line().unwrap().iter().all(IpAddr::is_loopback));
    }

    #[test]
    fn a_peer_that_is_not_there_is_named() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let peer = Peer::in_guest("node2".to_string(), address, Arc::new(|_| ()));
        let error = peer.mounts().unwrap_err();
        let words = "node2: cannot be talked to";
        assert!(error.to_string().starts_with(words), "{error}");
    }
}
