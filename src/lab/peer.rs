//! The other guests of a machine, as hosts: what node 1 asks them over the private network.
//!
//! The agent of node 2 and of those after it listens at its own address there. There is nothing to
//! be kept from anybody: the network ends in the machine's directory, and the guests are disposable.

use crate::agent::dial::Dial;
use crate::agent::speed::speed_to;
use crate::agent::wire::{Reply, Request};
use crate::agent::{self, Agent, AgentError};
use crate::event::CommandRun;
use crate::host::local::Sink;
use crate::host::verb::Verb;
use crate::host::{
    Filling, Host, HostError, LabDisk, LineSpeed, MountInfo, Needs, Output, argv, shown,
};
use crate::time::{Clock, SystemClock};
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Where agents listen.
const PORT: u16 = 7077;

/// How long a peer may say nothing before it is looked whether it is still there.
const SILENCE: Duration = Duration::from_secs(30);

fn address(node: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 0, node)), PORT)
}

/// A number the kernel was started with: `lab.node=2`.
fn option(name: &str) -> Option<u8> {
    let words = std::fs::read_to_string("/proc/cmdline").ok()?;
    let word = words.split_whitespace().find_map(|word| {
        let (option, value) = word.split_once('=')?;
        (option == name).then_some(value)
    });
    word?.parse().ok()
}

/// Where this guest's agent listens; none: nobody needs it.
pub(crate) fn own_address() -> Option<SocketAddr> {
    let node = option("lab.node")?;
    (node > 1).then(|| address(node))
}

/// The other guests of the machine this is node 1 of; none elsewhere. The sink is told of every
/// command.
pub(crate) fn all(sink: &Sink) -> Vec<Box<dyn Host>> {
    if !Path::new(crate::host::LAB_MARK).exists() || option("lab.node") != Some(1) {
        return Vec::new();
    }
    let nodes = 2..=option("lab.nodes").unwrap_or(1);
    let peers = nodes.map(|node| {
        let peer: Box<dyn Host> = Box::new(Peer {
            name: format!("node{node}"),
            sink: Arc::clone(sink),
            dial: Dial::new(address(node)),
        });
        peer
    });
    peers.collect()
}

/// Another guest.
struct Peer {
    name: String,
    sink: Sink,
    dial: Dial,
}

impl Peer {
    fn lost(&self, cause: impl ToString) -> HostError {
        HostError::Elsewhere {
            host: self.name.clone(),
            said: format!("cannot be talked to: {}", cause.to_string()),
            next: String::new(),
            kind: std::io::ErrorKind::NotConnected,
        }
    }

    fn agent(&self) -> Result<Arc<Agent>, HostError> {
        self.dial.agent().map_err(|error| self.lost(error))
    }

    fn ask<T: DeserializeOwned>(&self, verb: Verb) -> Result<T, HostError> {
        self.request(Request::Do { verb })
    }

    /// Waits for a reply for as long as the peer is there: one without power, or behind a cut link,
    /// says nothing, and its end of the connection neither.
    fn hear(&self, agent: &Agent, replies: &Receiver<Reply>) -> Result<Reply, HostError> {
        loop {
            match replies.recv_timeout(SILENCE) {
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.lost("the connection has ended"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let looked = self.dial.look_after(agent);
                    looked.map_err(|error| self.lost(error))?;
                }
            }
        }
    }

    fn request<T: DeserializeOwned>(&self, request: Request) -> Result<T, HostError> {
        let agent = self.agent()?;
        let asked = agent.ask(request);
        let (_, replies) = asked.map_err(|error| self.lost(error))?;
        match self.hear(&agent, &replies)? {
            Reply::Did { value } => serde_json::from_value(value).map_err(|error| self.lost(error)),
            Reply::Unable { told } => Err(told.heard(&self.name)),
            other => Err(self.lost(format!("{other:?}"))),
        }
    }
}

impl Host for Peer {
    fn name(&self) -> &str {
        &self.name
    }

    fn exec(&self, argv: &[OsString]) -> Result<Output, HostError> {
        let began = SystemClock.now_ns();
        let agent = self.agent()?;
        let begun = agent.begin(argv);
        let (_, replies) = begun.map_err(|error| self.lost(error))?;
        let ended = agent::output(self.hear(&agent, &replies)?);
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
        let mut missing = Vec::new();
        for tool in needs.tools {
            let tool = (*tool).to_string();
            match self.ask(Verb::Finds { tool: tool.clone() }) {
                Ok(true) => {}
                Ok(false) => missing.push(HostError::ToolMissing { tool }),
                Err(error) => return vec![error],
            }
        }
        if let Some(name) = needs.file_system {
            // A failure shows in the mount that needs it; the guests are of one image.
            let _ = self.exec(&argv(["modprobe", name]));
        }
        let free = needs.daemons.iter().map(|daemon| self.check_free(daemon));
        missing.extend(free.filter_map(Result::err));
        missing
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

    fn line(&self) -> Result<[IpAddr; 2], HostError> {
        let stream = self.dial.connect();
        let ends = stream.and_then(|stream| stream.local_addr());
        let ends = ends.map_err(|error| self.lost(error))?;
        Ok([ends.ip(), self.dial.address().ip()])
    }

    fn measure_line(&self, bytes: u64) -> Result<Option<LineSpeed>, HostError> {
        let speed = speed_to(self.dial.address(), bytes);
        speed.map(Some).map_err(|error| self.lost(error))
    }

    fn measure_line_to(&self, other: IpAddr, bytes: u64) -> Result<Option<LineSpeed>, HostError> {
        let address = SocketAddr::new(other, PORT);
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
                std::thread::spawn(move || agent::serve::of_peer(stream));
            }
        });
        Peer {
            name: "node2".to_string(),
            sink,
            dial: Dial::new(address),
        }
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
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let daemon = Daemon {
            program: "no-such-daemon",
            port: Some(listener.local_addr().unwrap().port()),
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
        let peer = Peer {
            name: "node2".to_string(),
            sink: Arc::new(|_| ()),
            dial: Dial::new(address),
        };
        let error = peer.mounts().unwrap_err();
        let words = "node2: cannot be talked to";
        assert!(error.to_string().starts_with(words), "{error}");
    }
}
