//! The second machine of a stack where both are in one kernel, as in virtual time.
//!
//! It has a name of its own and, once a stack made it (`common::one_kernel`), a network of its own.
//! Everything else it shares with the first machine: processor, memory, page cache, file systems.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use stackrace_system::{enter_network, take_host_name};

/// Name of the second machine.
pub const SECOND: &str = "node2";

/// The run's directory there: both machines see the same file systems.
pub(super) const SCRATCH: &str = "/run/node2";

/// Its network, which is there as long as a stack needs it. `ip netns` keeps it here.
const NETWORK: &str = "/run/netns/node2";

/// Addresses of the first machine and of this one on a line within the kernel's own network.
pub const LOOPBACK_ENDS: [IpAddr; 2] = [loopback(1), loopback(2)];

/// Their addresses where the second machine has a network of its own.
pub const NETWORK_ENDS: [IpAddr; 2] = [on_network(1), on_network(2)];

const fn loopback(machine: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, machine))
}

const fn on_network(machine: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 77, 0, machine))
}

/// Returns true if it has a network of its own now.
pub(super) fn has_network() -> bool {
    Path::new(NETWORK).exists()
}

/// Does something on this machine: on a thread that has its name and sees its network.
///
/// # Errors
/// The system's, where the thread cannot go there; nothing was done then.
pub(super) fn on_second<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            take_host_name(SECOND)?;
            if has_network() {
                enter_network(std::os::fd::AsFd::as_fd(&std::fs::File::open(NETWORK)?))?;
            }
            Ok(work())
        });
        // A panic over there is one here.
        there
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
