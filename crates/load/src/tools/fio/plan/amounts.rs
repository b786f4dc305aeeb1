//! How much a clone does: where its files begin, how long they are, how many operations.

use std::path::PathBuf;

use stackrace_engine::spec::NameCall;

use super::super::job::{Access, Engine, Extent, FioJob, JobFiles, StridedZones};
use super::super::place::JobError;

/// A file that exists.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundFile {
    pub(super) bytes: u64,
    pub(super) device: bool,
}

/// Parts of its files that a clone works on.
pub(super) struct ClonePlace {
    /// Bytes of each file the job works on.
    pub(super) sizes: Vec<u64>,
    /// Bytes at the beginning of each that are left out.
    pub(super) offset: u64,
    /// Length each has to have, bytes.
    pub(super) lengths: Vec<u64>,
}

/// Amount of work after which a clone is done.
pub(super) struct Amount {
    /// Number of operations; `None` if that is no limit.
    pub(super) operations: Option<u64>,
    /// Number of bytes; `None` if that is no limit.
    pub(super) bytes: Option<u64>,
}

/// Returns so many percent of what a file holds.
fn share(bytes: u64, percent: u64) -> u64 {
    // Percent times bytes may exceed 64 bits.
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}

fn refuse(job: &FioJob, what: String, next: &str) -> JobError {
    JobError::at(&job.place, what, next)
}

impl ClonePlace {
    pub(super) fn new(
        job: &FioJob,
        clone: u32,
        paths: &[PathBuf],
        found: &[Option<FoundFile>],
    ) -> Result<Self, JobError> {
        let offset = offset(job, clone, paths, found)?;
        let each = |at: usize| size(job, offset, &paths[at], paths.len() as u64, found[at]);
        let sizes: Vec<u64> = (0..paths.len()).map(each).collect::<Result<_, _>>()?;
        let lengths: Vec<u64> = sizes
            .iter()
            // With `filesize`, `size` may say less than the file holds.
            .map(|bytes| {
                job.file_bytes
                    .unwrap_or(0)
                    .max(bytes.saturating_add(offset))
            })
            .collect();
        let named = matches!(job.files, JobFiles::Named(_));
        for ((path, bytes), found) in paths.iter().zip(&lengths).zip(found) {
            let Some(found) = found.filter(|found| found.bytes < *bytes) else {
                continue;
            };
            if found.device || (named && job.read_share == 1.0 && found.bytes > 0) {
                let what = format!(
                    "{} holds {} bytes, and {bytes} are to be used",
                    path.display(),
                    found.bytes
                );
                let next = "leave size out: all of it; what only is read is not made longer";
                return Err(refuse(job, what, next));
            }
        }
        Ok(Self {
            sizes,
            offset,
            lengths,
        })
    }
}

/// Returns where the files of a clone begin, bytes.
fn offset(
    job: &FioJob,
    clone: u32,
    paths: &[PathBuf],
    found: &[Option<FoundFile>],
) -> Result<u64, JobError> {
    let bytes = |part: Option<Extent>| match part {
        None => Ok(0),
        Some(Extent::Bytes(bytes)) => Ok(bytes),
        Some(Extent::Percent(percent)) => match found.first().copied().flatten() {
            Some(found) if found.bytes > 0 => Ok(share(found.bytes, percent)),
            // fio takes a share of nothing then, which is nothing.
            _ => {
                let what = format!(
                    "{}: an offset in percent of a file that is not there",
                    paths[0].display()
                );
                Err(refuse(job, what, "write bytes, or name a file that exists"))
            }
        },
    };
    let more = bytes(job.offset.increment)?.saturating_mul(u64::from(clone));
    let all = bytes(job.offset.first)?.saturating_add(more);
    let percent = |part| matches!(part, Some(Extent::Percent(_)));
    if !percent(job.offset.first) && !percent(job.offset.increment) {
        return Ok(all);
    }
    let smallest = job
        .block_sizes
        .iter()
        .map(|(size, _)| u64::from(*size))
        .min();
    let align = match job.offset.align {
        0 => smallest.unwrap_or(1),
        align => align,
    };
    all.checked_next_multiple_of(align).ok_or_else(|| {
        refuse(
            job,
            format!("{all} bytes are no offset"),
            "write a smaller one",
        )
    })
}

/// Returns the bytes of one of so many files the job works on.
fn size(
    job: &FioJob,
    offset: u64,
    path: &std::path::Path,
    files: u64,
    found: Option<FoundFile>,
) -> Result<u64, JobError> {
    let behind = |bytes: u64| {
        bytes
            .checked_sub(offset)
            .filter(|rest| *rest > 0)
            .ok_or_else(|| {
                let what = format!(
                    "{} has {bytes} bytes, and begins behind {offset}",
                    path.display()
                );
                refuse(job, what, "write a smaller offset")
            })
    };
    match (job.file_bytes, job.size) {
        (Some(bytes), Some(Extent::Bytes(size))) if files == 1 && offset > 0 => {
            Ok(behind(bytes)?.min(size))
        }
        (Some(bytes), _) => behind(bytes),
        (None, Some(Extent::Bytes(all))) => Ok(all / files),
        (None, size) => match found.map_or(0, |found| found.bytes) {
            0 => {
                let what = format!(
                    "{}: there is nothing to take the size from (job {})",
                    path.display(),
                    job.name
                );
                Err(refuse(
                    job,
                    what,
                    "write size=64m, or name a file that exists",
                ))
            }
            bytes => match size {
                Some(Extent::Percent(percent)) => Ok(share(bytes, percent).min(behind(bytes)?)),
                _ => behind(bytes),
            },
        },
    }
}

impl Amount {
    /// Returns the amount of a clone that works on so many bytes of each file.
    pub(super) fn of(job: &FioJob, sizes: &[u64]) -> Result<Self, JobError> {
        if job.time_based {
            return Ok(Self {
                operations: job.operations,
                bytes: None,
            });
        }
        let total: u64 = sizes.iter().sum();
        let wanted = match job.io_size {
            None => total,
            Some(Extent::Bytes(all)) => all,
            Some(Extent::Percent(percent)) => share(total, percent),
        };
        let random = !matches!(job.access, Access::Sequential | Access::InTurn(_));
        if job.block_sizes.len() > 1 && random {
            return by_bytes(job, sizes, wanted);
        }
        let (pass, once) = match job.access {
            Access::Gap(_) | Access::Strided(_) => stepped(job, total, wanted)?,
            _ => (pass(job, sizes), None),
        };
        let once = match (once, job.io_size) {
            (Some(once), _) => once,
            (None, None) => pass.saturating_mul(job.loops),
            (None, Some(_)) => in_bytes(job, wanted).saturating_mul(job.loops),
        };
        check_turns(job, sizes)?;
        check_calls(job, sizes)?;
        if pass == 0 || once == 0 {
            return Err(no_block(job));
        }
        Ok(Self {
            operations: Some(job.operations.map_or(once, |most| most.min(once))),
            bytes: None,
        })
    }
}

fn no_block(job: &FioJob) -> JobError {
    let what = format!("no whole block fits into the size of {}", job.name);
    refuse(job, what, "write a smaller bs or a larger size")
}

/// Operations that move so many bytes: the last one begins while there is anything left.
fn in_bytes(job: &FioJob, amount: u64) -> u64 {
    let weights = job.block_sizes.iter().map(|(_, weight)| u64::from(*weight));
    let weights: u64 = weights.sum();
    let bytes = job.block_sizes.iter();
    let bytes: u64 = bytes
        .map(|(size, weight)| u64::from(*size) * u64::from(*weight))
        .sum();
    let operations = u128::from(amount) * u128::from(weights);
    operations.div_ceil(u128::from(bytes.max(1))) as u64
}

/// Operations of one pass over all files.
fn pass(job: &FioJob, sizes: &[u64]) -> u64 {
    let total: u64 = sizes.iter().sum();
    let pass = match job.block_sizes.as_slice() {
        [(size, _)] => sizes.iter().map(|file| file / u64::from(*size)).sum(),
        _ => in_bytes(job, total),
    };
    match job.size {
        // With `filesize`, `size` limits a pass and not the files.
        Some(Extent::Bytes(all)) if all < total => pass.min(in_bytes(job, all)),
        _ => pass,
    }
}

/// Random blocks of several sizes: what is drawn says how many it takes.
fn by_bytes(job: &FioJob, sizes: &[u64], wanted: u64) -> Result<Amount, JobError> {
    let smallest = job
        .block_sizes
        .iter()
        .map(|(size, _)| u64::from(*size))
        .min();
    let unit = job.align.map_or(smallest.unwrap_or(1), u64::from).max(1);
    let whole: u64 = sizes.iter().map(|file| file / unit * unit).sum();
    let pass = match (job.access, job.size) {
        // What is smaller than a block at the end of a file is never visited.
        (Access::Covering, _) if job.io_size.is_none() => whole,
        (_, Some(Extent::Bytes(all))) if job.io_size.is_none() => wanted.min(all),
        _ => wanted,
    };
    if whole == 0 || pass == 0 {
        return Err(no_block(job));
    }
    Ok(Amount {
        operations: job.operations,
        bytes: Some(pass.saturating_mul(job.loops)),
    })
}

/// Operations of a job with gaps or zones: of one pass, and of all of it. A pass goes on from the
/// beginning until it has moved `wanted` bytes, but for a file whose last place is too small for a
/// block: there it ends.
fn stepped(job: &FioJob, total: u64, wanted: u64) -> Result<(u64, Option<u64>), JobError> {
    let size = job
        .block_sizes
        .first()
        .map_or(1, |(size, _)| u64::from(*size));
    let places = match job.access {
        Access::Gap(gap) => gaps(total, size, gap),
        Access::Strided(zones) => zone_places(total, size, zones),
        _ => None,
    };
    let all = u128::from(wanted) * u128::from(job.loops);
    match places {
        None => Ok((
            wanted.div_ceil(size),
            Some(all.div_ceil(u128::from(size)) as u64),
        )),
        Some(_) if job.io_size.is_some() => Err(refuse(
            job,
            format!(
                "{}: io_size, where the last place is too small for a block",
                job.name
            ),
            "write a size that the blocks with their gaps fill",
        )),
        Some(places) => {
            let pass = places.min(wanted.div_ceil(size));
            Ok((pass, Some(pass.saturating_mul(job.loops))))
        }
    }
}

/// Places of a pass that ends where no block fits; `None` if it goes on from the beginning.
fn gaps(total: u64, size: u64, gap: i64) -> Option<u64> {
    // Back, or on the spot: what lies before the beginning is counted from the end, and fits.
    let step = size.checked_add_signed(gap).filter(|step| *step > 0)?;
    let last = (total.max(1) - 1) / step * step;
    (last + size > total).then(|| total.checked_sub(size).map_or(0, |room| room / step + 1))
}

fn zone_places(total: u64, size: u64, zones: StridedZones) -> Option<u64> {
    let blocks = zones.used.div_ceil(size);
    let last = (total.max(1) - 1) / zones.every;
    let fits = ((total - last * zones.every) / size).min(blocks);
    (fits < blocks).then(|| last * blocks + fits)
}

/// Refuses reads and writes of several files in turn that do not come out even: fio has a stream of
/// each, and they end in other places.
fn check_turns(job: &FioJob, sizes: &[u64]) -> Result<(), JobError> {
    let mixed = job.read_share > 0.0 && job.read_share < 1.0;
    let whole = |size: &u64| {
        job.block_sizes
            .iter()
            .all(|(block, _)| size.is_multiple_of(u64::from(*block)))
    };
    if matches!(job.access, Access::InTurn(_)) && mixed && !sizes.iter().all(whole) {
        let what = format!(
            "{}: reads and writes of files that are no multiple of a block",
            job.name
        );
        return Err(refuse(
            job,
            what,
            "write a size that is a multiple of bs for each file",
        ));
    }
    Ok(())
}

/// Refuses to delete a file more than once.
fn check_calls(job: &FioJob, sizes: &[u64]) -> Result<(), JobError> {
    let deletes = job.engine == Engine::Names(NameCall::Delete);
    let one = |size: &u64| {
        job.block_sizes
            .iter()
            .all(|(block, _)| size / u64::from(*block) == 1)
    };
    if deletes && (!sizes.iter().all(one) || job.io_size.is_some()) {
        let what = format!(
            "{}: a file is deleted once, and a file of several blocks would be for each",
            job.name
        );
        return Err(refuse(job, what, "write a filesize that is bs"));
    }
    Ok(())
}
