//! The card of a solid-state drive.

use super::claim::Claim;
use crate::card::{CardError, Stated};
use crate::{MAPPING_UNIT, Nanos, SECTOR, Ssd, SsdParameters};
use serde::{Deserialize, Serialize};

/// A card of a solid-state drive. Times are microseconds, rates MB/s (10⁶ bytes).
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SsdCard {
    /// The word a study names it by.
    pub model: String,
    /// Maker and product, in words.
    pub name: String,
    /// Channels between controller and flash.
    pub channels: Stated<u32>,
    /// Dies on each channel.
    pub dies_per_channel: Stated<u32>,
    /// KiB programmed at once on a die, all its planes together.
    pub page: Stated<u64>,
    /// Pages erased at once.
    pub pages_per_block: Stated<u32>,
    /// Share of flash beyond what the host sees: 0.07 for 7 %.
    pub over_provisioning: Stated<f64>,
    /// Time to read a page.
    pub read: Stated<f64>,
    /// Time to program a page.
    pub program: Stated<f64>,
    /// Time to program a page in the SLC cache.
    pub program_slc: Stated<f64>,
    /// SLC cache as a share of the drive; 0 means no cache.
    pub slc_share: Stated<f64>,
    /// Time to erase a block.
    pub erase: Stated<f64>,
    /// Longest wait of a read for a program or erase that is suspended for it.
    pub suspend: Stated<f64>,
    /// Rate of a channel, MB/s.
    pub channel: Stated<f64>,
    /// Time of the controller for a command.
    pub overhead: Stated<f64>,
    /// Rate of the interface, MB/s.
    pub bus: Stated<f64>,
    /// Time of the interface for a command, beside its data.
    pub bus_command: Stated<f64>,
    /// KiB of written data held before they are programmed.
    pub buffer: Stated<u64>,
    /// Set if capacitors keep the buffer when the power fails.
    pub protected: Stated<bool>,
    /// Figures of the whole drive, to test the card with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

impl SsdCard {
    /// A drive of this kind with so many sectors. Its timing is that of the whole product, its
    /// caches are in proportion.
    ///
    /// # Errors
    /// When there is no room for garbage collection, or a rate is not above 0.
    pub fn ssd(&self, sectors: u64) -> Result<Ssd, CardError> {
        for (name, rate) in [("channel", self.channel.value), ("bus", self.bus.value)] {
            if !(rate.is_finite() && rate > 0.0) {
                return Err(CardError::at(name, "a rate above 0 is expected"));
            }
        }
        // Sheets give microseconds and MB/s; the model counts in whole ns.
        let ns = |microseconds: f64| (microseconds * 1e3).round() as Nanos;
        let time = |bytes: u64, rate: f64| (bytes as f64 * 1e3 / rate).round() as Nanos;
        let parameters = SsdParameters {
            sectors,
            channels: self.channels.value,
            dies_per_channel: self.dies_per_channel.value,
            page: self.page.value << 10,
            pages_per_block: self.pages_per_block.value,
            over_provisioning: self.over_provisioning.value,
            read: ns(self.read.value),
            program: ns(self.program.value),
            program_slc: ns(self.program_slc.value),
            // A share, so that a small modelled drive behaves as the whole product does.
            slc_bytes: ((sectors * SECTOR) as f64 * self.slc_share.value) as u64,
            erase: ns(self.erase.value),
            suspend: ns(self.suspend.value),
            channel_unit: time(MAPPING_UNIT, self.channel.value),
            overhead: ns(self.overhead.value),
            bus_sector: time(SECTOR, self.bus.value),
            bus_command: ns(self.bus_command.value),
            buffer: self.buffer.value << 10,
            protected: self.protected.value,
        };
        Ssd::new(parameters).map_err(|error| CardError::at("over-provisioning", error.to_string()))
    }
}
