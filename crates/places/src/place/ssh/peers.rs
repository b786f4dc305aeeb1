//! `--peer HOST`: further machines of a stack, over SSH.
//!
//! The first machine cannot log in to them, and need not: what it asks them goes through the
//! coordinator ([`Router`]).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use crate::place::machine_options::{MachineOptions, SshOptions, unable};
use crate::place::workers::not_reached;
use stackrace_base::event::Fact;
use stackrace_base::failure::Failure;
use stackrace_machine::host::Host;
use stackrace_machine::journal::BOOT;
use stackrace_remote::agent::message::PeerAddress;
use stackrace_remote::agent::remote_host::RemoteHost;
use stackrace_remote::agent::router::Router;
use stackrace_remote::agent::ssh::{Remote, StopAsked, Way};
use stackrace_study::study::Study;

/// The kernel's version.
const KERNEL: &str = "/proc/sys/kernel/osrelease";

/// Beginning of the name of a peer's directory, before an id of its own.
pub const DIRECTORY: &str = "peer-";

/// The way in which a peer is reached.
#[derive(Debug)]
pub struct PeerWay {
    /// Name that the user gave it.
    pub asked: String,
    way: Way,
    /// Address to which the line of a stack goes; `None` for the one of SSH.
    address: Option<IpAddr>,
}

/// Reads `[USER@]HOST[:PORT][=ADDRESS]`.
pub fn ways(words: &[String], ssh: &SshOptions<'_>) -> Result<Vec<PeerWay>, Failure> {
    let mut names = BTreeSet::new();
    let each = words.iter().map(|word| {
        let (to, address) = match word.split_once('=') {
            Some((to, address)) => (to, Some(address)),
            None => (&**word, None),
        };
        // One machine twice would be two nodes of a stack that share their disks.
        if !names.insert(to) {
            return Err(Failure::usage(format!("--peer {to} is said twice"))
                .next("name another machine, or leave one out"));
        }
        let address = address.map(|address| {
            address.parse().map_err(|_| {
                Failure::usage(format!("--peer {word}: {address:?} is no address"))
                    .next(format!("write it like --peer {to}=10.1.0.2"))
            })
        });
        Ok(PeerWay {
            asked: word.clone(),
            way: ssh.way("--peer", to)?,
            address: address.transpose()?,
        })
    });
    each.collect()
}

/// Refuses peers where the stacks need none, and another number of them than they need.
pub fn check(study: &Study, options: &MachineOptions<'_>) -> Result<(), Failure> {
    let given = options.peers.len();
    if given == 0 {
        return Ok(());
    }
    if study.places().is_some() {
        return Err(Failure::usage(
            "--peer goes with one first machine, and this study is tried on several",
        )
        .next("try it on one, or leave --peer out"));
    }
    let mut peers = options.peers.iter();
    if let Some(same) = peers.find(|peer| options.on.contains(peer)) {
        return Err(Failure::usage(format!("{same} cannot be a peer of itself"))
            .next("name another machine"));
    }
    // The first machine of a stack is none of its own peers.
    let nodes = study.configurations.iter().map(|each| each.stack.nodes());
    let needed = nodes.max().unwrap_or(1) - 1;
    if given == needed {
        return Ok(());
    }
    let (needs, next) = match needed {
        0 => ("no peer".to_owned(), "leave --peer out".to_owned()),
        1 => (
            "one peer".to_owned(),
            "name one machine: --peer [USER@]HOST".to_owned(),
        ),
        more => (
            format!("{more} peers"),
            format!("name {more} machines, with --peer each"),
        ),
    };
    Err(Failure::usage(format!(
        "the stacks of this study need {needs}; --peer names {given}"
    ))
    .next(next))
}

/// Name of the fact that says which machine had a number.
fn over_ssh(node: u32) -> String {
    format!("node {node} over ssh")
}

/// A further machine of a stack, reached over SSH.
pub struct ConnectedPeer {
    /// Way to the peer.
    pub remote: Remote,
    /// Address of which the first machine is told.
    pub address: PeerAddress,
}

impl ConnectedPeer {
    /// Connects the peers of a first machine; `id` names what they do.
    pub fn connect(
        ways: &[PeerWay],
        first: &RemoteHost,
        router: &Arc<Router>,
        (id, stop): (&str, &StopAsked),
    ) -> Result<Vec<Self>, Failure> {
        let each = (2..).zip(ways).map(|(machine, peer)| {
            let way = Way {
                stop: stop.clone(),
                ..peer.way.clone()
            };
            let remote =
                Remote::connect(&way, router, machine).map_err(|error| not_reached(&error))?;
            let name = remote.to();
            let Some(address) = peer.address.or(remote.address()) else {
                return Err(Failure::usage(format!("{name} does not say its address"))
                    .next(format!("name it: --peer {name}=ADDRESS")));
            };
            // Drawn when a kernel starts: two machines never have the same.
            let boot = |host: &RemoteHost| host.read_text(Path::new(BOOT)).map_err(unable);
            if address.is_loopback() && boot(first)? != boot(&remote.host())? {
                return Err(Failure::refused(format!(
                    "{name} is reached at {address}, where the first machine finds itself"
                ))
                .next(format!(
                    "name the address the line between them goes to: --peer {name}=ADDRESS"
                )));
            }
            // Where SSH leads to need not be where the first machine finds it: a NAT, a second network.
            let directory = Some(remote.store(&format!("{DIRECTORY}{id}")));
            let address = PeerAddress {
                name,
                address,
                directory,
            };
            Ok(Self { remote, address })
        });
        each.collect()
    }

    /// Returns what the record says of a peer of this number.
    pub fn facts(&self, node: u32) -> Vec<Fact> {
        let PeerAddress { name, address, .. } = &self.address;
        let mut facts = vec![Fact::new(over_ssh(node), format!("{name}={address}"))];
        if let Ok(kernel) = self.remote.host().read_text(Path::new(KERNEL)) {
            facts.push(Fact::new(format!("kernel of {name}"), kernel.trim()));
        }
        facts
    }
}
