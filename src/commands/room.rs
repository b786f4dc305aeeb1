//! Whether the data of a comparison fit into its directories.

use stackrace_base::failure::Failure;
use stackrace_base::unit;
use stackrace_study::purpose::{Purpose, SizedBy};
use stackrace_study::study::Study;

/// Share of the free space beyond which nothing is asked for.
pub(crate) const FREE_SHARE: f64 = 0.8;

/// A directory, and the bytes that may be written there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoomAt<'a> {
    /// Its path as text.
    pub(crate) text: &'a str,
    /// Free bytes.
    pub(crate) free: u64,
}

/// Most and least bytes that are advised: less than the least says nothing of a storage.
const ADVISED: [u64; 2] = [1 << 30, 1 << 20];

fn fits(study: &Study, side: &RoomAt<'_>) -> bool {
    study.trial_disk_bytes() as f64 <= side.free as f64 * FREE_SHARE
}

/// Refuses a size where none of the workloads has one.
///
/// # Errors
/// All of them have a number of files.
pub(crate) fn check_size(size: Option<u64>, purpose: &Purpose) -> Result<(), Failure> {
    let mut parts = purpose.parts.iter();
    if size.is_none() || parts.any(|part| part.sized_by != SizedBy::Files) {
        return Ok(());
    }
    let name = purpose.name;
    Err(Failure::usage(format!(
        "--size: the workloads of --for {name} have a number of files, and no size"
    ))
    .next("leave it out, or change the numbers in the study that --print-study prints"))
}

/// Refuses a comparison whose data do not fit; `next` advises what to do.
///
/// # Errors
/// The first directory with too little room.
pub(crate) fn check(
    study: &Study,
    sides: &[RoomAt<'_>],
    next: impl FnOnce() -> String,
) -> Result<(), Failure> {
    match sides.iter().find(|side| !fits(study, side)) {
        Some(side) => Err(too_little(study, side, " and leaves a fifth free").next(next())),
        None => Ok(()),
    }
}

/// The same for a program or a workload that the user chose, which may fill the directories.
///
/// # Errors
/// The first directory with too little room.
pub(crate) fn check_own(study: &Study, sides: &[RoomAt<'_>], next: &str) -> Result<(), Failure> {
    let needed = study.trial_disk_bytes();
    match sides.iter().find(|side| side.free < needed) {
        Some(side) => Err(too_little(study, side, "").next(next)),
        None => Ok(()),
    }
}

fn too_little(study: &Study, side: &RoomAt<'_>, and: &str) -> Failure {
    Failure::refused(format!(
        "{} has {} free; this comparison needs {}{and}",
        side.text,
        unit::bytes(side.free),
        unit::bytes(study.trial_disk_bytes())
    ))
}

/// A size that fits everywhere; `of` makes the comparison with so many bytes.
pub(crate) fn advice(sides: &[RoomAt<'_>], of: impl Fn(u64) -> Result<Study, Failure>) -> String {
    let [most, least] = ADVISED;
    let mut sizes = std::iter::successors(Some(most), |size| Some(size / 2));
    let mut sizes = sizes.by_ref().take_while(|size| *size >= least);
    let fitting = sizes.find(|size| {
        let study = of(*size);
        study.is_ok_and(|study| sides.iter().all(|side| fits(&study, side)))
    });
    match fitting {
        Some(size) => format!(
            "free space there, or give less data: --size {}MiB",
            size >> 20
        ),
        None => "name a directory with more room".to_owned(),
    }
}

/// Data in which a block of a workload does not fit.
pub(crate) fn too_small(size: u64, purpose: &str) -> Failure {
    let size = unit::bytes(size);
    Failure::usage(format!("--size {size} is too small for {}", purpose))
        .next("give more data, such as --size 64MiB")
}
