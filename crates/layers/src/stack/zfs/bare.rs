//! Devices left as they are, for a workload that makes and destroys pools on them itself.
//!
//! Before the workload begins, the journal names what it may make: pools whose names begin with
//! the run's mark, mounted in one directory. All of them that still exist are destroyed when the
//! stack is torn down.

use crate::stack::zfs::properties as zfs;
use crate::stack::zfs::undo::DESTROY;
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, Settings};
use stackrace_foundation::foundation::{
    Bare, Gives, GivesKind, Layer, LayerError, LayerKind, ON_TWO_DISKS, Setup, StandingLayer,
    Takes, block, filesystem,
};
use stackrace_machine::host::Needs;

/// The layer `bare` of a study.
pub(crate) const KIND: LayerKind = LayerKind {
    name: "bare",
    summary: "Devices left as they are, for a workload that makes pools of ZFS on them itself: migrate-pool, mend-pool.",
    settings: &[],
    takes: Takes::at_least(2),
    gives: GivesKind::Bare,
    example: "bare = {}",
    parse,
    shapes: &[
        &["loop = { size = \"1 GiB\", count = 3 }", "bare = {}"],
        &[ON_TWO_DISKS, "bare = {}"],
    ],
    over_shell: zfs::OVER_SHELL,
    ..LayerKind::EMPTY
};

struct BareDevices;

fn parse(_settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    Ok(Box::new(BareDevices))
}

impl Layer for BareDevices {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        "bare devices, for pools (ZFS) of the workload's".to_string()
    }

    fn needs(&self) -> Needs {
        Needs::as_root(&["zpool", "zfs", "wipefs", "blkid"], zfs::PACKAGES)
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        // Looked at now: the workload's commands will not ask again.
        let devices = filesystem::to_format(host, below)?;
        let mark = setup.plain_name("pool");
        let directory = setup.scratch()?.join(format!(".{mark}"));
        setup.create_tree(&directory)?;
        if setup.is_outlived() {
            for device in &devices {
                setup.will_carry(device, &mark)?;
            }
        }
        let pools = ["-a", "-b"].map(|end| format!("{mark}{end}"));
        // Entries for pools that do not exist yet: only the workload knows when it makes one.
        for pool in &pools {
            setup.will(DESTROY.of([pool.into()]))?;
        }
        zfs::load(host);
        let names: Vec<String> = devices
            .iter()
            .map(|device| block::kernel_name(host, &device.path))
            .collect();
        let mut facts = vec![Fact::new("devices", names.join(" "))];
        facts.extend(block::kernel(host));
        Ok(StandingLayer {
            devices: names,
            ..StandingLayer::new(
                "bare",
                facts,
                Gives::Bare(Bare {
                    devices: devices.into_iter().map(|device| device.path).collect(),
                    pools,
                    directory,
                }),
            )
        })
    }
}
