//! The line between two machines of a stack that are in one kernel.
//!
//! Servers and clients that are processes get a network each, joined by two cards (veth(4)). What the
//! kernel itself sends, as DRBD does, never leaves the kernel's first network: there both ends have an
//! address of the loopback device.

use crate::foundation::error::LayerError;
use crate::foundation::setup::Setup;
use stackrace_machine::host::second::{LOOPBACK_ENDS, NETWORK_ENDS, SECOND};
use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::{Param, UndoKind, text};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

/// Owner of the sockets at the ends of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// Sockets of a driver, in the kernel's first network.
    OfKernel,
    /// Sockets of processes, or of what the kernel does for the network of one.
    OfProcesses,
}

/// The card of a machine to itself, and what its addresses end with. In that network, what is sent to
/// the second address comes from the first one.
const LOOPBACK: &str = "lo";
const LOOPBACK_NET: &str = "/8";

/// File that sets the size of its packets, and that size on Ethernet, bytes.
const LOOPBACK_MTU: &str = "/sys/class/net/lo/mtu";
const ETHERNET: &str = "1500";

/// Directory that shows the cards of a machine.
const CARDS: &str = "/sys/class/net";

/// Name of the card at the other end of the second machine's.
const FIRST: &str = "node1";

/// Addresses of this machine and of its peer on the line between them, which is made where both are in
/// one kernel.
///
/// # Errors
/// When it cannot be made.
pub fn ends(setup: &mut Setup<'_>, sockets: Sockets) -> Result<[IpAddr; 2], LayerError> {
    match (setup.peer()?.shares_kernel(), sockets) {
        (false, _) => Ok(setup.ends()?),
        (true, Sockets::OfKernel) => {
            // The loopback device answers for it anyway, but tools look whether a machine has it.
            let address = LOOPBACK_ENDS[1].to_string();
            let proof = setup.prove("address")?;
            let undo = GIVE_UP.of([proof.into(), LOOPBACK.into(), address.clone().into()]);
            let held = format!("{address}{LOOPBACK_NET}");
            setup.make(
                undo,
                &argv(["ip", "address", "add", &held, "dev", LOOPBACK]),
            )?;
            // Packets as on Ethernet: of the loopback device's own, of 64 KiB, a connection would have
            // one under way, and wait for its answer.
            setup.set_parameter(Path::new(LOOPBACK_MTU), ETHERNET)?;
            Ok(LOOPBACK_ENDS)
        }
        (true, Sockets::OfProcesses) => {
            join(setup)?;
            Ok(NETWORK_ENDS)
        }
    }
}

/// Returns true if both ends are in one network.
///
/// # Errors
/// There is no second machine.
pub fn is_one_network(setup: &Setup<'_>, sockets: Sockets) -> Result<bool, LayerError> {
    Ok(sockets == Sockets::OfKernel && setup.peer()?.shares_kernel())
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

/// Takes an address from a card.
pub const GIVE_UP: UndoKind = UndoKind::new(
    "line",
    "give-up-address",
    &[Param::Path, Param::Name, Param::Address],
    give_up,
);

/// Takes an address from a card, if that is what the stack gave it.
///
/// # Errors
/// When the tool fails.
fn give_up(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let (proof, card) = (Path::new(&of[0]), text(of, 1));
    let address = format!("{}{LOOPBACK_NET}", text(of, 2));
    let shown = host
        .must(&argv(["ip", "-o", "address", "show", "dev", card]))?
        .stdout;
    // The machine was started again, or the address was taken away already.
    if host.exists(proof) && shown.contains(&format!(" {address} ")) {
        host.must(&argv(["ip", "address", "delete", &address, "dev", card]))?;
    }
    Ok(())
}

/// Takes the network of the second machine away, and both cards with it.
pub const SEVER: UndoKind = UndoKind::new("line", "sever", &[Param::Path, Param::Name], sever);

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
        // Its cards would go with the network, but a moment later: the next network has a card of
        // that name.
        if host.exists(&Path::new(CARDS).join(network)) {
            host.must(&argv(["ip", "link", "delete", network]))?;
        }
        host.must(&argv(["ip", "netns", "delete", network]))?;
    }
    Ok(())
}
