//! A device that a layer puts together of those below.

use crate::foundation::block::kernel_name;
use crate::foundation::gives::{Device, Gives, Origin, StandingLayer};
use stackrace_base::event::Fact;
use stackrace_machine::host::Host;
use std::path::PathBuf;

/// A layer that gives one device, put together under a name of ours, which shows its traffic.
pub fn standing(
    host: &dyn Host,
    layer: &str,
    facts: Vec<Fact>,
    path: PathBuf,
    name: String,
) -> StandingLayer {
    StandingLayer {
        devices: vec![kernel_name(host, &path)],
        ..StandingLayer::new(
            layer,
            facts,
            Gives::Devices(vec![Device {
                path,
                origin: Origin::Made(name),
            }]),
        )
    }
}
