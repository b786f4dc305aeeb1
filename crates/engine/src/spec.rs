//! The description of a phase of block I/O, fully resolved: no later step adds defaults.
//!
//! Units: bytes, nanoseconds, operations per second.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use crate::error::StartError;

/// One file (or device) a phase works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoTarget {
    /// A regular file or a block device.
    pub path: PathBuf,
    /// Number of its bytes, from 0, that the phase may touch.
    pub bytes: u64,
}

/// The order in which blocks are visited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AccessPattern {
    /// Ascending from 0, file after file, starting again at the first; one stream over all
    /// threads is cut into as many contiguous ranges as there are threads.
    Sequential,
    /// Uniformly random, with repeats.
    Uniform,
    /// Random, each block exactly once per pass (a keyed permutation; no memory per block).
    OncePerPass,
    /// Zipf with the given exponent (> 0), rank scattered over the range by a permutation.
    Zipf(f64),
    /// Pareto with the given shape `h` in (0, 1) as fio defines it.
    Pareto(f64),
    /// Normal around the middle of the range with this standard deviation, as a share of the range.
    Normal(f64),
    /// The first share of the range (`hot_range`) receives this share of operations (`hot_ops`).
    HotCold {
        /// Share of the range that is hot, in (0, 1).
        hot_range: f64,
        /// Share of operations that go there, in (0, 1).
        hot_ops: f64,
    },
}

/// The bytes that are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Content {
    /// Zeros. Compressing or thin storage may store nothing.
    Zero,
    /// Random bytes that neither compress nor repeat.
    Random,
    /// Random bytes of which about `1 - 1/ratio` can be compressed away (ratio ≥ 1), with a share
    /// of blocks (0 … 1) that repeat earlier ones.
    Shaped {
        /// Size before over size after compression.
        ratio: f64,
        /// Share of blocks that are copies of others.
        duplicates: f64,
    },
}

/// The points at which data is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Durability {
    /// Number of writes of a thread after which fsync is called on the file (`None` means never).
    pub fsync_every: Option<NonZeroU64>,
    /// Set if the fsync that follows a write, with `fsync_every` 1, counts into that write's
    /// latency (what sysbench's `--file-fsync-all` reports) as well as under its own kind. Needs
    /// plain calls: refused with [`IoEngine::Uring`], and decides for sync with [`IoEngine::Auto`].
    pub fsync_in_write: bool,
    /// Uses fdatasync instead of fsync.
    pub data_only: bool,
    /// Calls fsync on every file at the end, inside the phase's time, if anything was written.
    pub fsync_at_end: bool,
    /// Opens with `O_DSYNC`.
    pub open_dsync: bool,
    /// Opens with `O_SYNC`.
    pub open_sync: bool,
}

/// The rule for the start of the next operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// Starts as soon as one completes, after this think time (0: at once).
    Closed {
        /// Pause between a completion and the next issue, ns.
        think_time_ns: u64,
    },
    /// Starts by the clock, evenly spaced, this many per second over all threads; latency is
    /// counted from the intended start.
    Fixed(f64),
    /// Starts by the clock, exponentially distributed gaps (Poisson arrivals), this many per second
    /// on average over all threads; latency is counted from the intended start.
    Poisson(f64),
}

/// The end of the phase: at whichever limit comes first. At least one must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stop {
    /// Number of operations over all threads after which it ends (fsyncs not counted).
    pub ops: Option<u64>,
    /// Time after which it ends, ns.
    pub time_ns: Option<u64>,
}

/// A phase that goes over its data more than once, each time as if it were the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// Operations of one pass over all threads (fsyncs not counted).
    pub ops: u64,
    /// The work before the next pass.
    pub fresh: Fresh,
}

/// The way in which data are made as they were before the first pass. The clock of the phase stands
/// still meanwhile, each thread for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fresh {
    /// Their clean pages are dropped from the page cache.
    Evicted,
    /// The files are emptied, so that each pass writes new ones. What was written is synced before,
    /// inside the phase's time, if the phase syncs at its end. One thread with a queue depth of 1
    /// only.
    Anew,
}

/// The I/O engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IoEngine {
    /// Decides by what the file, the kernel and the queue depth allow; the outcome says why.
    #[default]
    Auto,
    /// `pread`/`pwrite`; queue depth above 1 becomes that many threads.
    Sync,
    /// io_uring.
    Uring,
    /// Completes at once without I/O: measures the generator itself.
    Null,
    /// A write reads its block, changes one byte and writes it back (bonnie++'s rewriting): one
    /// operation, of the bytes that it writes. Reads and writes are plain calls. Not for verified
    /// phases.
    Update,
}

/// The part of one of several processes that share files: every so many bytes, in turn (the
/// *segments* of IOR; one run of all its bytes is one segment).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePart {
    /// Its number, from 0.
    pub rank: u32,
    /// Number of processes that share the files, at least 1.
    pub of: u32,
    /// Bytes of each process that lie together; a multiple of every block size, at least 1.
    pub run_bytes: u64,
}

impl FilePart {
    /// The place of a byte of this process in the file.
    #[inline(always)]
    pub fn offset(self, own: u64) -> u64 {
        let (run, within) = (own / self.run_bytes, own % self.run_bytes);
        (run * u64::from(self.of) + u64::from(self.rank)) * self.run_bytes + within
    }
}

/// One phase of block I/O.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The files; sizes need not be equal. Files that are written are created if missing and
    /// never truncated.
    pub targets: Vec<IoTarget>,
    /// Bytes of one operation and their weights; `[(4096, 1)]` for a single block size. A weight is
    /// a share of the operations, not of the bytes, exact in the long run and deterministic from
    /// the seed; sizes of weight 0 are not used.
    pub block_sizes: Vec<(u32, u32)>,
    /// Order of the blocks.
    pub access: AccessPattern,
    /// Random blocks lie at multiples of this many bytes instead of their own size (fio's
    /// `blockalign`). Refused where blocks that must come once each would overlap, and for
    /// sequential access, which has no choice.
    pub align: Option<NonZeroU32>,
    /// Share of reads among the operations: 1 only reads, 0 only writes. Exact in the long run
    /// and deterministic from the seed.
    pub read_share: f64,
    /// Number of threads that work at once, at least 1.
    pub threads: u32,
    /// Operations outstanding at once, per thread.
    pub queue_depth: u32,
    /// Opens with `O_DIRECT`.
    pub direct: bool,
    /// Reserves the blocks of every target that is written (`fallocate`) before the clock starts.
    pub preallocate: bool,
    /// When data is made durable.
    pub durability: Durability,
    /// The rule for the start of the next operation.
    pub pacing: Pacing,
    /// Content that is written.
    pub content: Content,
    /// The end of the phase.
    pub stop: Stop,
    /// More than one pass over the data; none: what comes again finds what the pass before left.
    pub again: Option<Again>,
    /// The targets are shared with other processes, and this is the part of this one. `None` means
    /// that all of it is. The bytes of a target are then those of this process alone.
    pub part: Option<FilePart>,
    /// The I/O engine.
    pub engine: IoEngine,
    /// Everything random follows from it.
    pub seed: u64,
    /// Width of one step of the time series, ns.
    pub slice_ns: u64,
}

impl Spec {
    /// The simplest phase, as a base for others: uniform reads of one block size through the page
    /// cache, one thread, one at a time, as fast as possible; engine chosen automatically, seed 1,
    /// steps of 100 ms, random content. It has no end: give it a [`Stop`].
    pub fn reads(targets: Vec<IoTarget>, block_size: u32) -> Spec {
        Spec {
            targets,
            block_sizes: vec![(block_size, 1)],
            access: AccessPattern::Uniform,
            align: None,
            read_share: 1.0,
            threads: 1,
            queue_depth: 1,
            direct: false,
            preallocate: false,
            durability: Durability::default(),
            pacing: Pacing::Closed { think_time_ns: 0 },
            content: Content::Random,
            stop: Stop::default(),
            again: None,
            part: None,
            engine: IoEngine::Auto,
            seed: 1,
            slice_ns: 100_000_000,
        }
    }

    /// Refuses what the block sequences do not check themselves.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        let refuse = |what: String, next| Err(StartError::Spec { what, next });
        if self.targets.is_empty() {
            return refuse("no file to work on".to_owned(), "give at least one target");
        }
        if self.threads == 0 || self.queue_depth == 0 {
            let what = format!(
                "{} threads with queue depth {}",
                self.threads, self.queue_depth
            );
            return refuse(what, "give at least one of each");
        }
        if self.stop == Stop::default() {
            return refuse(
                "the phase would never end".to_owned(),
                "give a number of operations or a time",
            );
        }
        self.check_part()?;
        let workers = u64::from(self.threads) * u64::from(self.queue_depth);
        match self.again {
            Some(Again { ops: 0, .. }) => {
                return refuse("a pass over no data".to_owned(), "give it operations");
            }
            // Another thread would still write what this one empties.
            Some(Again {
                fresh: Fresh::Anew, ..
            }) if workers > 1 => {
                return refuse(
                    format!("{workers} operations at once on files that are made anew"),
                    "give one thread and a queue depth of 1",
                );
            }
            _ => {}
        }
        let durability = self.durability;
        // An fsync after several writes cannot be charged to one of them.
        if durability.fsync_in_write && durability.fsync_every != Some(NonZeroU64::MIN) {
            let every = durability
                .fsync_every
                .map_or("no write".to_owned(), |every| format!("{every} writes"));
            let what =
                format!("an fsync is to be part of the write before it, but follows {every}");
            return refuse(what, "call fsync after every write, or count it by itself");
        }
        match self.pacing {
            // Negated, so that a rate that is not a number is refused, too.
            Pacing::Fixed(rate) | Pacing::Poisson(rate) if !(rate > 0.0 && rate.is_finite()) => {
                refuse(
                    format!("{rate} operations per second"),
                    "give a rate above 0",
                )
            }
            _ => Ok(()),
        }
    }

    /// Refuses a part of shared files that does not consist of whole blocks.
    fn check_part(&self) -> Result<(), StartError> {
        let Some(part) = self.part else { return Ok(()) };
        let whole = |(size, _): &(u32, u32)| {
            part.run_bytes > 0 && part.run_bytes.is_multiple_of(u64::from((*size).max(1)))
        };
        if part.rank < part.of && self.block_sizes.iter().all(whole) && !self.preallocate {
            return Ok(());
        }
        Err(StartError::Spec {
            what: format!(
                "part {} of {} in runs of {} bytes",
                part.rank, part.of, part.run_bytes
            ),
            next: "give runs of whole blocks, and reserve nothing",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_processes_cover_a_file_once() {
        for run_bytes in [4, 8, 24] {
            let part = |rank| FilePart {
                rank,
                of: 3,
                run_bytes,
            };
            let each = (0..3).flat_map(|rank| (0..24).map(move |own| part(rank).offset(own)));
            let mut covered: Vec<u64> = each.collect();
            covered.sort_unstable();
            assert_eq!(covered, (0..72).collect::<Vec<_>>(), "{run_bytes}");
        }
        // Segments lie behind each other, strides between each other.
        let at = |run_bytes| {
            let (rank, of) = (1, 3);
            FilePart {
                rank,
                of,
                run_bytes,
            }
            .offset(5)
        };
        assert_eq!((at(24), at(4)), (29, 17));
    }
}
