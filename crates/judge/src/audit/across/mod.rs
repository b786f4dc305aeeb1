//! What differs between the configurations of a run although the question is another one.
//!
//! A check here sees the whole run: how each stack stood, its trials, and what the checks of single
//! trials found. A new one is one file and one line in [`ALL`].

mod clients;
mod difference;
mod drift;
mod layered;
mod mount_options;
mod same_disk;
#[cfg(test)]
mod sample;
mod space;
mod unequal;

pub(crate) use difference::Unlike;
pub(super) use difference::{RunReading, named};

/// Every check, in the order of their notes.
const ALL: &[fn(&RunReading<'_>) -> Vec<Unlike>] = &[
    layered::judge,
    mount_options::judge,
    same_disk::judge,
    space::fill,
    space::age,
    unequal::judge,
    drift::judge,
    clients::judge,
];

/// Lists the differences, with the evidence in each sentence.
pub(super) fn differences(reading: &RunReading<'_>) -> Vec<Unlike> {
    ALL.iter().flat_map(|judge| judge(reading)).collect()
}
