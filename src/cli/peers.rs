//! `--peer HOST`: further machines of a stack, over SSH.
//!
//! The program on the first machine cannot log in to them, and need not: it asks them through this
//! one ([`relay`](crate::agent::relay)).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use super::args::{Reach, There};
use super::failure::Failure;
use super::on;
use crate::agent::relay::{Far, Introduced};
use crate::agent::ssh::{Remote, Way};
use crate::agent::{Agent, AgentError};
use crate::event::Fact;
use crate::host::verb::Verb;
use crate::journal::BOOT;
use crate::record::Record;
use crate::study::Study;

/// The kernel's version.
const KERNEL: &str = "/proc/sys/kernel/osrelease";

/// What a peer's directory is called, before an id of its own.
pub(super) const DIRECTORY: &str = "peer-";

/// A peer as it is asked for.
pub(super) struct Asked {
    way: Way,
    /// Where the line of a stack goes; none: where SSH goes.
    address: Option<IpAddr>,
}

/// Reads `[USER@]HOST[:PORT][=ADDRESS]`.
pub(super) fn asked(words: &[String], reach: &Reach) -> Result<Vec<Asked>, Failure> {
    let mut names = BTreeSet::new();
    let each = words.iter().map(|word| {
        let (to, address) = match word.split_once('=') {
            Some((to, address)) => (to, Some(address)),
            None => (&**word, None),
        };
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
        Ok(Asked {
            way: on::way("--peer", to, reach)?,
            address: address.transpose()?,
        })
    });
    each.collect()
}

/// Refuses peers that nobody needs, and fewer than are needed where some are given.
pub(super) fn check(study: &Study, there: &There) -> Result<(), Failure> {
    let given = there.peers.len();
    if given == 0 {
        return Ok(());
    }
    if study.places().is_some() {
        return Err(Failure::usage(
            "--peer goes with one first machine, and this study is tried on several",
        )
        .next("try it on one, or leave --peer out"));
    }
    if let Some(same) = there.peers.iter().find(|peer| there.on.contains(peer)) {
        return Err(Failure::usage(format!("{same} cannot be a peer of itself"))
            .next("name another machine"));
    }
    let nodes = study
        .configurations
        .iter()
        .map(|each| each.stack.nodes())
        .max();
    let needed = nodes.unwrap_or(1) - 1;
    let next = match needed {
        0 => "leave --peer out".to_owned(),
        1 => "name one machine: --peer [USER@]HOST".to_owned(),
        more => format!("name {more} machines, with --peer each"),
    };
    if given == needed {
        return Ok(());
    }
    let needs = match needed {
        0 => "no peer".to_owned(),
        1 => "one peer".to_owned(),
        more => format!("{more} peers"),
    };
    Err(Failure::usage(format!(
        "the stacks of this study need {needs}; --peer names {given}"
    ))
    .next(next))
}

/// The peers a run was made with, as they were asked for.
pub(super) fn known(record: &Record) -> Vec<String> {
    let facts = record.head.environment.iter();
    let peers = facts.filter(|fact| (2..).take(9).any(|node| fact.name == over_ssh(node)));
    peers.map(|fact| fact.value.clone()).collect()
}

/// Name of the fact that says which machine had a number.
fn over_ssh(node: usize) -> String {
    format!("node {node} over ssh")
}

/// A peer that is reached.
pub(super) struct Peer {
    remote: Remote,
    /// What the first machine is told of it.
    pub(super) introduced: Introduced,
}

impl Far for Peer {
    fn agent(&self) -> &Agent {
        self.remote.agent()
    }

    fn why(&self) -> String {
        self.remote.broken().to_string()
    }
}

fn cannot(error: AgentError) -> Failure {
    Failure::unable(error.to_string()).next(error.next())
}

impl Peer {
    /// Connects to the peers of a first machine; `id` names what they do.
    pub(super) fn connect(
        asked: &[Asked],
        first: &Agent,
        id: &str,
    ) -> Result<Vec<Arc<Self>>, Failure> {
        let each = asked.iter().map(|asked| {
            let remote = Remote::connect(&asked.way).map_err(on::unreachable)?;
            let name = remote.to();
            let Some(address) = asked.address.or(remote.address()) else {
                return Err(Failure::usage(format!("{name} does not say its address"))
                    .next(format!("name it: --peer {name}=ADDRESS")));
            };
            // Drawn when a kernel starts: two machines never have the same.
            let boot = || Verb::ReadText { path: BOOT.into() };
            if address.is_loopback()
                && first.does::<String>("here", boot()).map_err(cannot)?
                    != remote.does::<String>(boot()).map_err(cannot)?
            {
                return Err(Failure::refused(format!(
                    "{name} is reached at {address}, where the first machine finds itself"
                ))
                .next(format!(
                    "name the address the line between them goes to: --peer {name}=ADDRESS"
                )));
            }
            let directory = remote.store(&format!("{DIRECTORY}{id}"));
            // Its commands bear the name of its directory.
            let run = directory.file_name().unwrap_or_default();
            let belongs = remote.agent().belong_to(&run.to_string_lossy());
            belongs.map_err(cannot)?;
            let introduced = Introduced {
                name,
                address,
                directory,
            };
            Ok(Arc::new(Self { remote, introduced }))
        });
        each.collect()
    }

    /// Where it is, and this program there.
    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// What the record says of a peer of this number.
    pub(super) fn facts(&self, node: usize) -> Vec<Fact> {
        let Introduced { name, address, .. } = &self.introduced;
        let mut facts = vec![Fact::new(over_ssh(node), format!("{name}={address}"))];
        let path = Path::new(KERNEL).to_path_buf();
        if let Ok(kernel) = self.remote.does::<String>(Verb::ReadText { path }) {
            facts.push(Fact::new(format!("kernel of {name}"), kernel.trim()));
        }
        facts
    }
}
