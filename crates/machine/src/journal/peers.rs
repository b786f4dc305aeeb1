//! Finding the other machine that an entry speaks of.

use crate::host::{Host, HostError};
use stackrace_base::event::again;
use std::io::ErrorKind;

/// The kernel's own id of the time since the machine was started.
pub use crate::host::identity::BOOT;

/// The peer an entry speaks of: of its name, since its number may be another one's by now.
///
/// # Errors
/// When it is not among those that can be talked to.
pub fn named<'a>(host: &'a dyn Host, name: &str) -> Result<&'a dyn Host, HostError> {
    let peers = (2..=host.nodes()).filter_map(|node| host.peer(node).ok());
    let mut named = peers.filter(|peer| peer.name() == name);
    named.next().ok_or_else(|| HostError::Elsewhere {
        host: name.to_owned(),
        said: format!("nothing can be undone there without a line to it: add --peer {name}"),
        next: again(&["clean", "--peer", name]),
        kind: ErrorKind::NotConnected,
    })
}
