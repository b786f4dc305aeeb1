//! What each clone of each job does, with the files there are: one phase of the engine.

mod amounts;

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom};
use std::num::{NonZeroU32, NonZeroU64};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use stackrace_engine::draw::derive;
use stackrace_engine::spec::{
    AccessPattern, Content, Durability, IoEngine, IoTarget, NameCall, Pacing, Spec, Steps, Stop,
};
use stackrace_engine::verify::unit_bytes;

use super::job::{self as classic, FioJob, JobFiles, JobPace};
use super::place::JobError;
use crate::workload::SLICE_NS;
use amounts::FoundFile;

/// One clone of a job.
#[derive(Debug)]
pub(super) struct Planned {
    /// Position of the job in the file, from 0.
    pub(super) job: usize,
    /// Its number among all clones of all jobs, from 1.
    pub(super) number: usize,
    pub(super) spec: Spec,
    /// State of each file now; `None` if it does not exist.
    found: Vec<Option<FoundFile>>,
    /// Length each file has to have, bytes.
    lengths: Vec<u64>,
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
            let planned = Planned::new(at, job, clone, seed)?;
            all.push(Planned {
                number: all.len() + 1,
                ..planned
            });
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
            let writes = other.spec.read_share < 1.0 && jobs[other.job].stage == job.stage;
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
fn look(job: &FioJob, path: &Path) -> Result<Option<FoundFile>, JobError> {
    let refused = |why: &dyn std::fmt::Display, next: &str| {
        JobError::at(&job.place, format!("{}: {why}", path.display()), next)
    };
    let kind = match std::fs::metadata(path) {
        Ok(kind) => kind,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
            return match parent.is_none_or(Path::is_dir) {
                true if !job.makes_files => Err(refused(
                    &"there is no such file, and allow_file_create=0",
                    "name a file that exists",
                )),
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
            true => Ok(Some(FoundFile {
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
    if job.read_share < 1.0 || job.care.overwrite {
        let next = "only read it, or write to a file: what is on a device is never overwritten";
        return Err(refused(&"a block device is not written to", next));
    }
    Ok(Some(FoundFile { bytes, device }))
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
        let place = amounts::ClonePlace::new(job, clone, &paths, &found)?;
        let amount = amounts::Amount::of(job, &place.sizes)?;
        let stop = Stop {
            ops: amount.operations,
            time_ns: job.time_ns,
        };
        let targets = paths.into_iter().zip(place.sizes);
        let targets = targets
            .map(|(path, bytes)| IoTarget { path, bytes })
            .collect();
        let spec = Spec {
            bytes: amount.bytes,
            skipped: place.offset,
            ..spec(job, targets, stop, seed)
        };
        Ok(Self {
            job: at,
            number: 0,
            spec,
            found,
            lengths: place.lengths,
        })
    }

    /// The job reads what it does not write: its files are laid out.
    pub(super) fn reads_first(&self, job: &FioJob) -> bool {
        match job.engine {
            classic::Engine::Null | classic::Engine::Names(NameCall::Create) => false,
            // Whatever it counts them as, it needs files that are there.
            classic::Engine::Names(_) => true,
            _ => job.read_share > 0.0 || job.care.overwrite,
        }
    }

    /// The files that are missing or too short, with the length they need.
    pub(super) fn wanting(&self) -> Vec<IoTarget> {
        let held = self
            .found
            .iter()
            .map(|found| found.map_or(0, |found| found.bytes));
        let targets = self.spec.targets.iter().zip(&self.lengths).zip(held);
        targets
            .filter(|((_, length), held)| **length > *held)
            .map(|((target, length), _)| IoTarget {
                path: target.path.clone(),
                bytes: *length,
            })
            .collect()
    }

    /// Makes the specification that reads everything back which so many writes may have written.
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
            bytes: None,
            ramp_ns: 0,
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
            classic::Access::InTurn(blocks) => AccessPattern::Stepped(Steps::InTurn { blocks }),
            classic::Access::Gap(bytes) => AccessPattern::Stepped(Steps::Gap { bytes }),
            classic::Access::Strided(zones) => AccessPattern::Stepped(Steps::Zoned {
                used: zones.used,
                every: zones.every,
            }),
            classic::Access::Zoned(zones) => AccessPattern::Zoned(zones),
            classic::Access::Covering => AccessPattern::Covering,
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
        advise: job.care.advise,
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
            classic::Engine::Names(call) => IoEngine::Names(call),
            classic::Engine::Reserve => IoEngine::Reserve,
            classic::Engine::Punch => IoEngine::Punch,
            classic::Engine::Length => IoEngine::Length,
        },
        seed,
        again: None,
        part: None,
        bytes: None,
        skipped: 0,
        ramp_ns: job.ramp_ns,
        history_ns: (!job.logs.files.is_empty()).then_some(job.logs.every_ns),
        slice_ns: SLICE_NS,
    }
}
