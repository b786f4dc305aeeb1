//! The card of a cloud volume.

use super::claim::Claim;
use crate::card::{CardError, Stated};
use crate::{Nanos, SECTOR, Volume, VolumeParameters};
use serde::{Deserialize, Serialize};

/// A card of a cloud volume.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VolumeCard {
    /// The word a study names it by.
    pub model: String,
    /// Provider and product, in words.
    pub name: String,
    /// GiB.
    pub capacity: Stated<u64>,
    /// Time of a request that is not held back, reading and writing, ms.
    pub latency: Stated<[f64; 2]>,
    /// Requests a second that are always granted.
    pub iops: Stated<f64>,
    /// Requests a second while there is credit.
    pub burst_iops: Stated<f64>,
    /// Requests of credit at the start, and at most.
    pub credit: Stated<f64>,
    /// MiB a second.
    pub rate: Stated<f64>,
    /// KiB that count as one request.
    pub request: Stated<u64>,
    /// Figures of the whole volume, to test the card with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

impl VolumeCard {
    /// The volume of this card, with its full credit.
    ///
    /// # Errors
    /// When the limits would let nothing pass.
    pub fn volume(&self) -> Result<Volume, CardError> {
        Volume::new(VolumeParameters {
            sectors: (self.capacity.value << 30) / SECTOR,
            latency: self.latency.value.map(|ms| (ms * 1e6).round() as Nanos),
            iops: self.iops.value,
            burst_iops: self.burst_iops.value,
            credit: self.credit.value,
            rate: self.rate.value * f64::from(1 << 20),
            request_bytes: self.request.value << 10,
        })
        .map_err(|error| CardError::at("iops", error.to_string()))
    }
}
