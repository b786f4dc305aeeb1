//! How data are spread over the devices of a pool, and what that takes.

use stackrace_base::setting::{ChoiceDoc, choice};
use stackrace_foundation::foundation::block;

/// Ways in which data are spread over the devices of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topology {
    Stripe,
    Mirror,
    Raid10,
    Raidz1,
    Raidz2,
    Raidz3,
    Draid1,
    Draid2,
    Draid3,
}

pub(super) const TOPOLOGY: ChoiceDoc<Topology> = choice!(
    "topology",
    [
        "stripe" => Topology::Stripe,
        "mirror" => Topology::Mirror,
        "raid10" => Topology::Raid10,
        "raidz1" => Topology::Raidz1,
        "raidz2" => Topology::Raidz2,
        "raidz3" => Topology::Raidz3,
        "draid1" => Topology::Draid1,
        "draid2" => Topology::Draid2,
        "draid3" => Topology::Draid3,
    ],
    "stripe",
    "How data is spread; raid10: pairs of mirrors, in order.",
);

impl Topology {
    /// Fewest devices that data can be spread over like this.
    pub(super) fn devices_min(self) -> usize {
        match self {
            Topology::Stripe => 1,
            Topology::Mirror | Topology::Raidz1 => 2,
            Topology::Raidz2 | Topology::Draid1 => 3,
            Topology::Raid10 | Topology::Raidz3 | Topology::Draid2 => 4,
            Topology::Draid3 => 5,
        }
    }

    /// Bytes that so many bytes of data become, on so many devices.
    pub(super) fn written(self, bytes: u64, data: usize) -> u64 {
        match self {
            Topology::Stripe => bytes,
            Topology::Mirror => bytes.saturating_mul(data as u64),
            Topology::Raid10 => bytes.saturating_mul(2),
            Topology::Raidz1 | Topology::Draid1 => block::with_parity(bytes, data, 1),
            Topology::Raidz2 | Topology::Draid2 => block::with_parity(bytes, data, 2),
            Topology::Raidz3 | Topology::Draid3 => block::with_parity(bytes, data, 3),
        }
    }
}
