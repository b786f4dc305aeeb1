//! The other guests of a machine: node 1 asks their agents over the private network.

use crate::agent::peer::Peer;
use crate::host::Host;
use crate::host::local::Sink;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// Where agents listen.
const PORT: u16 = 7077;

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
        let name = format!("node{node}");
        let peer: Box<dyn Host> = Box::new(Peer::in_guest(name, address(node), Arc::clone(sink)));
        peer
    });
    peers.collect()
}
