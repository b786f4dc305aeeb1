//! A thread that sees another machine's name and network. So do the processes it starts.

use std::io::Result;
use std::os::fd::BorrowedFd;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Gives the calling thread a host name of its own. Only root may do that.
///
/// # Errors
/// The system's.
pub fn take_host_name(name: &str) -> Result<()> {
    // SAFETY: only the name of the machine is no longer shared with other threads: no descriptor and no
    // memory is concerned.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUTS) }?;
    Ok(rustix::system::sethostname(name.as_bytes())?)
}

/// Moves the calling thread into a network namespace. Only root may do that.
///
/// # Errors
/// The system's; also when it is no network namespace.
pub fn enter_network(namespace: BorrowedFd<'_>) -> Result<()> {
    Ok(move_into_link_name_space(
        namespace,
        Some(LinkNameSpaceType::Network),
    )?)
}
