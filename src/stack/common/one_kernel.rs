//! The line between two machines of a stack that are in one kernel.
//!
//! Servers and clients that are processes get a network each, joined by two cards (veth(4)). What the
//! kernel itself sends, as DRBD does, never leaves the kernel's first network: there both ends have an
//! address of the loopback device.

use crate::host::second::{LOOPBACK_ENDS, NETWORK_ENDS, SECOND};
use crate::host::{Host, HostError, argv};
use crate::journal::{Param, UndoKind, text};
use crate::stack::error::LayerError;
use crate::stack::setup::Setup;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

/// Whose sockets are at the ends of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Those of a driver, in the kernel's first network.
    OfKernel,
    /// Those of processes, or of what the kernel does for the network of one.
    OfProcesses,
}

/// What the card at the other end of the second machine's is called.
const FIRST: &str = "node1";

/// Addresses of this machine and of its peer on the line between them, which is made where both are in
/// one kernel.
///
/// # Errors
/// When it cannot be made.
pub(super) fn ends(setup: &mut Setup<'_>, sockets: Sockets) -> Result<[IpAddr; 2], LayerError> {
    match (setup.peer()?.shares_kernel(), sockets) {
        (false, _) => Ok(setup.ends()?),
        (true, Sockets::OfKernel) => Ok(LOOPBACK_ENDS),
        (true, Sockets::OfProcesses) => {
            join(setup)?;
            Ok(NETWORK_ENDS)
        }
    }
}

/// Gives the second machine a network of its own, and joins it to the first one's.
fn join(setup: &mut Setup<'_>) -> Result<(), LayerError> {
    // A network bears no name of ours: this file stands for it, and is gone with the machine's memory.
    let proof = setup.prove("network")?;
    setup.will(SEVER.of([proof.into(), SECOND.into()]))?;
    let run = |setup: &mut Setup<'_>, line: &str| {
        let words = argv(line.split(' '));
        setup.host().must(&words).map(|_| ())
    };
    run(setup, &format!("ip netns add {SECOND}"))?;
    // Each card is called after the machine that it leads to.
    let pair = format!("ip link add {SECOND} type veth peer name {FIRST} netns {SECOND}");
    run(setup, &pair)?;
    let [first, second] = NETWORK_ENDS;
    let up = |setup: &mut Setup<'_>, card: &str, own: IpAddr| {
        run(setup, &format!("ip address add {own}/24 dev {card}"))?;
        run(setup, &format!("ip link set {card} up"))
    };
    up(setup, SECOND, first)?;
    setup.on_peer(|setup| {
        // Daemons of a server speak to each other over it.
        run(setup, "ip link set lo up")?;
        Ok(up(setup, FIRST, second)?)
    })
}

/// Takes the network of the second machine away, and both cards with it.
pub(crate) const SEVER: UndoKind = UndoKind {
    layer: "line",
    name: "sever",
    params: &[Param::Path, Param::Name],
    undo: sever,
};

/// Takes a network away, if that is what the stack made.
///
/// # Errors
/// When the tool fails.
fn sever(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let (proof, network) = (Path::new(&of[0]), text(of, 1));
    // The machine was started again, and the network went with that; or it was taken away already.
    let listed = host.must(&argv(["ip", "netns", "list"]))?.stdout;
    let named = |line: &str| line.split_whitespace().next() == Some(network);
    if host.exists(proof) && listed.lines().any(named) {
        host.must(&argv(["ip", "netns", "delete", network]))?;
    }
    Ok(())
}
