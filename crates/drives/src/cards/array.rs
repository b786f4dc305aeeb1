//! The card of a RAID controller.

use super::claim::Claim;
use crate::card::{CardError, DiskCard, Stated};
use crate::{ArrayLayout, Controller, ControllerParameters, Disk, Nanos, SECTOR};
use serde::{Deserialize, Serialize};

/// A card of a RAID controller with its disks.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ArrayCard {
    /// The word a study names it by.
    pub model: String,
    /// Maker and product, in words.
    pub name: String,
    /// The card of its disks.
    pub disks: Stated<String>,
    /// Number of disks.
    pub count: Stated<usize>,
    /// Layout of the data on the disks.
    pub layout: Stated<ArrayLayout>,
    /// KiB on one disk before the next is taken.
    pub chunk: Stated<u64>,
    /// KiB of memory.
    pub memory: Stated<u64>,
    /// Share of the memory that caches writes; the rest is for reading and is not modelled.
    pub write_share: Stated<f64>,
    /// Set if a battery keeps the memory; without one every write waits for the disks.
    pub battery: Stated<bool>,
    /// Time of the controller for a command, ms.
    pub overhead: Stated<f64>,
    /// Rate of the host interface, MB/s.
    pub bus: Stated<f64>,
    /// Figures of the whole array, to test the card with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

impl ArrayCard {
    /// The controller of this card over disks of that one, their platters turned differently.
    ///
    /// # Errors
    /// When a value is impossible, or the number of disks does not fit the layout.
    pub fn controller(&self, disk: &DiskCard, phase: Nanos) -> Result<Controller<Disk>, CardError> {
        let share = self.write_share.value;
        if !(0.0..=1.0).contains(&share) {
            return Err(CardError::at(
                "write-share",
                "a share from 0 to 1 is expected",
            ));
        }
        if !(self.bus.value.is_finite() && self.bus.value > 0.0) {
            return Err(CardError::at("bus", "a rate above 0 is expected"));
        }
        // Spindles are not synchronised.
        let turned = |at: usize| phase + at as Nanos * 1_234_567;
        let disks: Result<Vec<_>, _> = (0..self.count.value)
            .map(|at| disk.disk(turned(at)))
            .collect();
        // Without a battery no write may be acknowledged before it is on a disk.
        let cached = if self.battery.value { share } else { 0.0 };
        let parameters = ControllerParameters {
            layout: self.layout.value,
            chunk: (self.chunk.value << 10) / SECTOR,
            write_sectors: (((self.memory.value << 10) / SECTOR) as f64 * cached) as u64,
            overhead: (self.overhead.value * 1e6).round() as Nanos,
            bus_sector: (SECTOR as f64 * 1e3 / self.bus.value).round() as Nanos,
        };
        Controller::new(disks?, parameters)
            .map_err(|error| CardError::at("count", error.to_string()))
    }
}
