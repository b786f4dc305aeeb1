//! Undoing what stands between machines.

use crate::host::{Host, HostError, LINE_HANDLE, argv, shown};
use std::io::ErrorKind;
use std::time::Duration;

/// How often, and with what pause, a replicated device that is open is tried again.
const BUSY_TRIES: usize = 30;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// The peer an entry speaks of: of its name, since its number may be another one's by now.
///
/// # Errors
/// When it is not among those that can be talked to.
pub(crate) fn named<'a>(
    host: &'a dyn Host,
    node: usize,
    name: &str,
) -> Result<&'a dyn Host, HostError> {
    if name.is_empty() {
        return host.peer(node);
    }
    let peers = (2..=host.nodes()).filter_map(|node| host.peer(node).ok());
    let mut named = peers.filter(|peer| peer.name() == name);
    named.next().ok_or_else(|| HostError::Elsewhere {
        host: name.to_owned(),
        said: format!("nothing can be undone there without a line to it: add --peer {name}"),
        next: format!("stackrace clean --peer {name}"),
        kind: ErrorKind::NotConnected,
    })
}

/// What drbdsetup says of a name it does not know, and where its driver is not loaded.
const NO_REPLICA: [&str; 4] = [
    "Unknown resource",
    "does not exist",
    "No such",
    "Could not connect to 'drbd' generic netlink family",
];

/// Takes down a replicated device; none of that name is fine.
///
/// # Errors
/// When it stays in use, or the tool fails.
pub(super) fn down_replica(host: &dyn Host, name: &str) -> Result<(), HostError> {
    let command = argv(["drbdsetup", "down", name]);
    let mut tries = 1;
    loop {
        let output = host.exec(&command)?;
        let said = |word: &str| output.stderr.contains(word) || output.stdout.contains(word);
        if output.status == Some(0) || NO_REPLICA.iter().any(|words| said(words)) {
            return Ok(());
        }
        if tries == BUSY_TRIES || !said("open") {
            let command = shown(&command);
            return Err(HostError::Failed { command, output });
        }
        tries += 1;
        host.pause(BUSY_PAUSE);
    }
}

/// Takes away what delays or slows a network card, if that is what [`Undo`](super::Undo) put there.
///
/// # Errors
/// When the tool fails.
pub(super) fn plain_line(host: &dyn Host, card: &str) -> Result<(), HostError> {
    let found = host.must(&argv(["tc", "qdisc", "show", "dev", card]))?;
    if found.stdout.contains(&format!(" {LINE_HANDLE} root")) {
        host.must(&argv(["tc", "qdisc", "del", "dev", card, "root"]))?;
    }
    Ok(())
}

/// Ends the kernel's NFS server and what belongs to it.
///
/// # Errors
/// Outside of the lab; when the tools fail.
pub(super) fn end_nfs(host: &dyn Host) -> Result<(), HostError> {
    host.end_daemon("rpc.mountd")?;
    host.must(&argv(["exportfs", "-ua"]))?;
    host.must(&argv(["exportfs", "-f"]))?;
    host.must(&argv(["rpc.nfsd", "0"]))?;
    host.end_daemon("rpcbind")
}
