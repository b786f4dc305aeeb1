//! What a plan asks for: whether PostMark would take it, and the directories it needs.

use std::path::PathBuf;

use rustix::io::Errno;

use super::{FILES_MAX, PostMarkPlan, SIZE_MAX};
use crate::outcome::{Op, OpError};
use crate::worker_pool::refusal;

impl PostMarkPlan {
    pub(super) fn check(&self) -> Result<(), OpError> {
        let wrong = if self.locations.is_empty() {
            "there is no location"
        } else if self.locations.iter().any(|location| location.weight == 0) {
            "a location has no weight"
        } else if !(1..=FILES_MAX).contains(&self.files) {
            "the number of files is out of PostMark's range"
        } else if self.size_low == 0 || self.size_high < self.size_low || self.size_high > SIZE_MAX
        {
            "the file sizes are out of range"
        } else if self.read_block == 0 || self.write_block == 0 {
            "a block size is 0"
        } else if self.total_weight().is_none() {
            "the sum of the locations' weights is too large"
        } else {
            return Ok(());
        };
        Err(refusal(Op::Create, &self.root(), Errno::INVAL, wrong))
    }

    pub(super) fn root(&self) -> PathBuf {
        self.locations
            .first()
            .map_or_else(PathBuf::new, |location| location.path.clone())
    }

    pub(super) fn total_weight(&self) -> Option<u32> {
        let weights = self.locations.iter().map(|location| location.weight);
        weights.into_iter().try_fold(0, u32::checked_add)
    }

    /// The subdirectories of all locations; PostMark makes none where one is asked for.
    pub(super) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        let count = if self.subdirectories > 1 {
            self.subdirectories
        } else {
            0
        };
        self.locations.iter().flat_map(move |location| {
            (0..count).map(move |number| location.path.join(format!("s{number}")))
        })
    }
}
