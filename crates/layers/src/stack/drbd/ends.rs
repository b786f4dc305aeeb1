//! The two machines of a replicated device, each with a disk, an address and a free device.

use stackrace_foundation::foundation::{Device, LayerError, Setup, filesystem};
use stackrace_machine::host::{Host, argv};
use std::net::IpAddr;
use std::path::PathBuf;

/// The port of device 0; device 1 has the next one.
const PORT: usize = 7788;

/// Devices that are tried for one that is free.
const MINORS: usize = 64;

/// One of the two machines.
pub(super) struct End {
    /// The machine's name for itself.
    pub(super) name: String,
    /// Number of its device.
    pub(super) minor: usize,
    /// The disk that is replicated.
    pub(super) disk: PathBuf,
    /// Its address on the line.
    pub(super) address: IpAddr,
}

impl End {
    /// An end on a disk, on a machine whose driver is loaded.
    fn of(
        host: &dyn Host,
        disk: &Device,
        minor: usize,
        address: IpAddr,
    ) -> Result<Self, LayerError> {
        // drbdadm finds its own section of the file by this name (`on NAME`).
        let name = host.must(&argv(["uname", "-n"]))?.stdout;
        Ok(Self {
            name: name.trim().to_string(),
            minor,
            disk: disk.path.clone(),
            address,
        })
    }
}

/// Both ends, each on a disk and at an address.
///
/// # Errors
/// A disk holds something; both machines have one name; no device is free.
pub(super) fn ends(
    setup: &Setup<'_>,
    disks: [&Device; 2],
    addresses: [IpAddr; 2],
) -> Result<[End; 2], LayerError> {
    let (host, peer) = (setup.host(), setup.peer()?);
    // After a power cut they hold what was replicated.
    if !setup.is_returning() {
        filesystem::ours_to_format(host, disks[0])?;
        filesystem::ours_to_format(peer, disks[1])?;
    }
    let minors = free_minors(host, peer)?;
    let ends = [
        End::of(host, disks[0], minors[0], addresses[0])?,
        End::of(peer, disks[1], minors[1], addresses[1])?,
    ];
    if ends[0].name == ends[1].name {
        return Err(LayerError::refused(
            format!(
                "both machines have the name {}, and DRBD tells them apart by their names",
                ends[0].name
            ),
            "give one another name (hostnamectl hostname NAME)",
        ));
    }
    Ok(ends)
}

/// The port of both ends.
pub(super) fn port(ends: &[End; 2]) -> usize {
    PORT + ends[0].minor
}

/// A device number of each machine that neither uses: the same one, except in one kernel.
fn free_minors(here: &dyn Host, there: &dyn Host) -> Result<[usize; 2], LayerError> {
    let mut load = argv(["modprobe", "drbd"]);
    if there.shares_kernel() {
        // The driver asks drbdadm before it copies to an end, under the name of the first machine alone:
        // it would not find the second one's, and end the connection. An answer is all that is needed.
        load.push("usermode_helper=/bin/true".into());
        // That is read only when the driver is loaded, and looking for it may have loaded it.
        here.exec(&argv(["modprobe", "-r", "drbd"]))?;
    }
    for host in [here, there] {
        // The driver shows in /sys which numbers are free.
        host.must(&load)?;
    }
    let free = |minor: &usize| {
        let shown = PathBuf::from(format!("/sys/block/drbd{minor}"));
        !here.exists(&shown) && !there.exists(&shown)
    };
    let mut all = (0..MINORS).filter(free);
    let first = all.next();
    let second = match there.shares_kernel() {
        true => all.next(),
        false => first,
    };
    first.zip(second).map(Into::into).ok_or_else(|| {
        LayerError::refused(
            format!("{MINORS} devices of DRBD are in use"),
            "take some down",
        )
    })
}
