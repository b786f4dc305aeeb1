//! What each clone of each job does, with the files there are: one phase of the engine.

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom};
use std::num::{NonZeroU32, NonZeroU64};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use stackrace_engine::draw::derive;
use stackrace_engine::spec::{
    AccessPattern, Content, Durability, IoEngine, IoTarget, Pacing, Spec, Stop,
};
use stackrace_engine::verify::unit_bytes;

use super::job::{self as classic, Extent, FioJob, JobFiles, JobPace};
use super::place::JobError;
use crate::workload::SLICE_NS;

/// One clone of a job.
#[derive(Debug)]
pub(super) struct Planned {
    /// Position of the job in the file, from 0.
    pub(super) job: usize,
    pub(super) spec: Spec,
    /// What each file holds now; none: it does not exist.
    found: Vec<Option<Found>>,
}

/// A file that exists.
#[derive(Debug, Clone, Copy)]
struct Found {
    bytes: u64,
    device: bool,
}

/// Every clone of every job, in order.
///
/// # Errors
/// What cannot be done with the files there are; nothing was touched.
pub(super) fn plan(jobs: &[FioJob], entropy: u64) -> Result<Vec<Planned>, JobError> {
    let mut all: Vec<Planned> = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        for clone in 0..job.clones {
            // Counted over all jobs: two clones never draw the same numbers.
            let number = all.len() as u64;
            let seed = derive(job.seed.unwrap_or(entropy), number);
            all.push(Planned::new(at, job, clone, seed)?);
        }
    }
    check_shared(jobs, &all)?;
    Ok(all)
}

/// Refuses to verify what another job of the group writes.
fn check_shared(jobs: &[FioJob], all: &[Planned]) -> Result<(), JobError> {
    for (at, one) in all
        .iter()
        .enumerate()
        .filter(|(_, one)| jobs[one.job].verify)
    {
        let job = &jobs[one.job];
        let with = |other: &Planned| {
            let writes = other.spec.read_share < 1.0 && jobs[other.job].group == job.group;
            let mut paths = other.spec.targets.iter().map(|target| &target.path);
            writes && paths.any(|path| one.spec.targets.iter().any(|target| target.path == *path))
        };
        if let Some((_, other)) = all
            .iter()
            .enumerate()
            .find(|(n, other)| *n != at && with(other))
        {
            let what = format!(
                "{} is to be verified, and {} writes the same file meanwhile",
                job.name, jobs[other.job].name
            );
            let next = "write stonewall between them, or give them files of their own";
            return Err(JobError::at(&job.place, what, next));
        }
    }
    Ok(())
}

/// The paths of a clone's files.
fn paths(job: &FioJob, clone: u32) -> Vec<PathBuf> {
    let directory = match job.directories.as_slice() {
        [] => None,
        all => Some(&all[clone as usize % all.len()]),
    };
    let inside = |name: String| match directory {
        // fio puts an absolute name below the directory, too.
        Some(directory) => PathBuf::from(format!("{directory}/{name}")),
        None => PathBuf::from(name),
    };
    match &job.files {
        JobFiles::Named(names) => names.iter().cloned().map(inside).collect(),
        JobFiles::Pattern(pattern) => (0..job.file_count)
            .map(|file| {
                let name = pattern
                    // The title last: what it holds is no pattern.
                    .replace("$jobnum", &clone.to_string())
                    .replace("$filenum", &file.to_string())
                    .replace("$jobname", &job.title);
                inside(name)
            })
            .collect(),
    }
}

/// Looks at a file; nothing is changed by that.
fn look(job: &FioJob, path: &Path) -> Result<Option<Found>, JobError> {
    let refused = |why: &dyn std::fmt::Display, next: &str| {
        JobError::at(&job.place, format!("{}: {why}", path.display()), next)
    };
    let kind = match std::fs::metadata(path) {
        Ok(kind) => kind,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
            return match parent.is_none_or(Path::is_dir) {
                true => Ok(None),
                false => Err(refused(
                    &"there is no such directory",
                    "make it, or name another with directory",
                )),
            };
        }
        Err(error) => return Err(refused(&error, "name a file you may use")),
    };
    let device = kind.file_type().is_block_device();
    if !device {
        return match kind.is_file() {
            true => Ok(Some(Found {
                bytes: kind.len(),
                device,
            })),
            false => Err(refused(
                &"it is neither a file nor a block device",
                "name another",
            )),
        };
    }
    let bytes = File::open(path)
        // stat(2) says 0 for the size of a device; its end is found by seeking.
        .and_then(|mut file| file.seek(SeekFrom::End(0)))
        .map_err(|error| {
            refused(
                &error,
                "become a user who may read it (root, or the group disk)",
            )
        })?;
    if job.read_share < 1.0 || job.overwrite {
        let next = "only read it, or write to a file: what is on a device is never overwritten";
        return Err(refused(&"a block device is not written to", next));
    }
    Ok(Some(Found { bytes, device }))
}

/// Bytes of each file the job works on.
fn sizes(job: &FioJob, paths: &[PathBuf], found: &[Option<Found>]) -> Result<Vec<u64>, JobError> {
    let refuse = |what: String, next: &str| JobError::at(&job.place, what, next);
    let each = |at: usize| match (job.file_bytes, job.size) {
        (Some(bytes), _) => Ok(bytes),
        (None, Some(Extent::Bytes(all))) => Ok(all / paths.len() as u64),
        (None, size) => {
            let percent = match size {
                Some(Extent::Percent(percent)) => percent,
                _ => 100,
            };
            match found[at].map_or(0, |found| found.bytes) {
                0 => Err(refuse(
                    format!(
                        "{}: there is nothing to take the size from (job {})",
                        paths[at].display(),
                        job.name
                    ),
                    "write size=64m, or name a file that exists",
                )),
                // Percent times bytes may exceed 64 bits.
                bytes => Ok((u128::from(bytes) * u128::from(percent) / 100) as u64),
            }
        }
    };
    let sizes: Vec<u64> = (0..paths.len()).map(each).collect::<Result<_, _>>()?;
    let named = matches!(job.files, JobFiles::Named(_));
    for ((path, bytes), found) in paths.iter().zip(&sizes).zip(found) {
        let Some(found) = found.filter(|found| found.bytes < *bytes) else {
            continue;
        };
        if found.device || (named && job.read_share == 1.0 && found.bytes > 0) {
            let what = format!(
                "{} holds {} bytes, and {bytes} are to be used",
                path.display(),
                found.bytes
            );
            return Err(refuse(
                what,
                "leave size out: all of it; what only is read is not made longer",
            ));
        }
    }
    Ok(sizes)
}

/// Operations of the whole phase; none: until its time is over.
fn operations(job: &FioJob, sizes: &[u64]) -> Result<Option<u64>, JobError> {
    if job.time_based {
        return Ok(job.operations);
    }
    let total: u64 = sizes.iter().sum();
    let weights: u64 = job
        .block_sizes
        .iter()
        .map(|(_, weight)| u64::from(*weight))
        .sum();
    let bytes = job.block_sizes.iter();
    let bytes: u64 = bytes
        .map(|(size, weight)| u64::from(*size) * u64::from(*weight))
        .sum();
    // The last operation begins while there is anything left.
    let in_bytes = |amount: u64| {
        let operations = u128::from(amount) * u128::from(weights);
        operations.div_ceil(u128::from(bytes.max(1))) as u64
    };
    let pass = match job.block_sizes.as_slice() {
        [(size, _)] => sizes.iter().map(|file| file / u64::from(*size)).sum(),
        _ => in_bytes(total),
    };
    let pass = match job.size {
        // With `filesize`, `size` limits a pass and not the files.
        Some(Extent::Bytes(all)) if all < total => pass.min(in_bytes(all)),
        _ => pass,
    };
    let once = match job.io_size {
        None => pass,
        Some(Extent::Bytes(all)) => in_bytes(all),
        Some(Extent::Percent(percent)) => {
            in_bytes((u128::from(total) * u128::from(percent) / 100) as u64)
        }
    };
    if pass == 0 || once == 0 {
        let what = format!("no whole block fits into the size of {}", job.name);
        return Err(JobError::at(
            &job.place,
            what,
            "write a smaller bs or a larger size",
        ));
    }
    let all = once.saturating_mul(job.loops);
    Ok(Some(job.operations.map_or(all, |most| most.min(all))))
}

impl Planned {
    fn new(at: usize, job: &FioJob, clone: u32, seed: u64) -> Result<Self, JobError> {
        let paths = paths(job, clone);
        let found = match job.engine {
            // The null engine opens nothing, so no file has to exist.
            classic::Engine::Null => vec![None; paths.len()],
            _ => paths
                .iter()
                .map(|path| look(job, path))
                .collect::<Result<_, _>>()?,
        };
        let sizes = sizes(job, &paths, &found)?;
        let stop = Stop {
            ops: operations(job, &sizes)?,
            time_ns: job.time_ns,
        };
        let targets = paths.into_iter().zip(sizes);
        let targets = targets
            .map(|(path, bytes)| IoTarget { path, bytes })
            .collect();
        Ok(Self {
            job: at,
            spec: spec(job, targets, stop, seed),
            found,
        })
    }

    /// The job reads what it does not write: its files are laid out.
    pub(super) fn reads_first(&self, job: &FioJob) -> bool {
        job.engine != classic::Engine::Null && (job.read_share > 0.0 || job.overwrite)
    }

    /// The files that are missing or too short.
    pub(super) fn wanting(&self) -> Vec<IoTarget> {
        let held = self
            .found
            .iter()
            .map(|found| found.map_or(0, |found| found.bytes));
        let targets = self.spec.targets.iter().zip(held);
        targets
            .filter(|(target, held)| target.bytes > *held)
            .map(|(target, _)| target.clone())
            .collect()
    }

    /// What reads everything back that so many writes may have written.
    pub(super) fn read_back(&self, writes: u64) -> Spec {
        let block = unit_bytes(&self.spec);
        let files = self.spec.targets.iter();
        let blocks: u64 = files.map(|target| target.bytes / u64::from(block)).sum();
        let ops = match self.spec.access {
            AccessPattern::Sequential if self.spec.block_sizes.len() == 1 => blocks.min(writes),
            // Random writes may be anywhere.
            _ => blocks,
        };
        Spec {
            block_sizes: vec![(block, 1)],
            access: AccessPattern::Sequential,
            align: None,
            read_share: 1.0,
            durability: Durability::default(),
            pacing: Pacing::Closed { think_time_ns: 0 },
            stop: Stop {
                ops: Some(ops),
                time_ns: None,
            },
            ..self.spec.clone()
        }
    }
}

fn spec(job: &FioJob, targets: Vec<IoTarget>, stop: Stop, seed: u64) -> Spec {
    Spec {
        targets,
        block_sizes: job.block_sizes.clone(),
        access: match job.access {
            classic::Access::Sequential => AccessPattern::Sequential,
            classic::Access::Once => AccessPattern::OncePerPass,
            classic::Access::Uniform => AccessPattern::Uniform,
            classic::Access::Zipf(theta) => AccessPattern::Zipf(theta),
            classic::Access::Pareto(power) => AccessPattern::Pareto(power),
            classic::Access::Normal(deviation) => AccessPattern::Normal(deviation),
        },
        align: job.align.and_then(NonZeroU32::new),
        read_share: job.read_share,
        // A clone is one thread of fio's.
        threads: 1,
        queue_depth: job.queue_depth,
        direct: job.direct,
        // Done before, so that what a file system cannot do is no failure of the phase.
        preallocate: false,
        advise: job.advise,
        durability: Durability {
            fsync_every: NonZeroU64::new(job.durable.every),
            fsync_in_write: false,
            data_only: job.durable.data_only,
            fsync_at_end: job.durable.at_end,
            open_dsync: job.durable.open_dsync,
            open_sync: job.durable.open_sync,
        },
        pacing: match job.pace {
            JobPace::Think(think_time_ns) => Pacing::Closed { think_time_ns },
            JobPace::Even(rate) => Pacing::Fixed(rate),
            JobPace::Poisson(rate) => Pacing::Poisson(rate),
        },
        content: match job.content {
            classic::Content::Zero => Content::Zero,
            classic::Content::Random { ratio, duplicates } if ratio > 1.0 || duplicates > 0.0 => {
                Content::Shaped { ratio, duplicates }
            }
            classic::Content::Random { .. } => Content::Random,
        },
        stop,
        engine: match job.engine {
            classic::Engine::Plain => IoEngine::Sync,
            classic::Engine::Ring => IoEngine::Uring,
            classic::Engine::Null => IoEngine::Null,
        },
        seed,
        again: None,
        part: None,
        slice_ns: SLICE_NS,
    }
}
