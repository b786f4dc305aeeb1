//! Block I/O as the engine is asked for it: its files, its phases, its figures.

use stackrace_base::unit::{InWords, ShownPath};
use std::fs::File;
use std::num::NonZeroU32;

use stackrace_engine::spec::{
    AccessPattern, Again, Content, Durability, Fresh, IoEngine, IoTarget, Pacing, Spec, Stop,
};
use stackrace_engine::verify::{self, ContentLedger};
use stackrace_engine::{Op, PhaseOutcome, StartError};

use super::super::kept::{DataLayout, DataUse};
use crate::workload::kind::{Cost, Place, SLICE_NS, Slicing, WorkloadError, advised, trouble};
use crate::workload::metric::{self, Figure, Latency};
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::unit;

/// Nature of a workload of this kind, beside its settings.
pub struct Frame {
    /// Order of the blocks.
    pub access: AccessPattern,
    /// Reads among the operations, from 0 to 1.
    pub read_share: f64,
    /// The phase writes new files; otherwise the data are laid out before.
    pub new_files: bool,
}

/// One phase of block I/O, resolved but for its place and seed.
#[derive(Debug)]
pub struct BlockIo {
    /// Bytes of all files together.
    pub size: u64,
    /// Files that the size is divided among.
    pub files: u32,
    /// Block sizes in bytes, with their weights.
    pub block_sizes: Vec<(u32, u32)>,
    pub(super) align: Option<NonZeroU32>,
    /// Threads that issue operations at once.
    pub threads: u32,
    /// Operations outstanding per thread.
    pub queue_depth: u32,
    pub(super) access: AccessPattern,
    /// See [`Frame::read_share`].
    pub read_share: f64,
    /// Rule for when written data are forced to the device.
    pub durability: Durability,
    pub(super) pacing: Pacing,
    /// Longest time it may take, ns; `None` means until the passes or operations are done.
    pub time_ns: Option<u64>,
    pub(super) operations: Option<u64>,
    /// Passes over the data, where each block comes once in one; 0 means until time is over.
    pub passes: u64,
    /// The way operations reach the kernel.
    pub engine: IoEngine,
    pub(super) direct: bool,
    pub(super) preallocate: bool,
    /// See [`Frame::new_files`].
    pub(super) new_files: bool,
    pub(super) content: Content,
    pub(super) verify: bool,
    /// Works on the data of the workload before it.
    pub same_data: bool,
}

/// The phase that reads everything back.
const VERIFY: &str = "verify";
/// Most bytes of one of its reads.
const VERIFY_BYTES: u64 = 1 << 20;

impl BlockIo {
    /// Bytes from the beginning of one block to the earliest beginning of the next that is whole:
    /// files are multiples of it, so that every one of its blocks fits.
    fn stride(&self) -> u64 {
        let largest = self.block_sizes.iter().map(|(size, _)| *size).max();
        let align = self.align.map_or(0, NonZeroU32::get);
        // Blocks lie this far apart, so that none reaches into the next.
        u64::from(largest.unwrap_or(0).max(align).max(1))
    }

    /// Bytes of one file: whole blocks.
    fn file_bytes(&self) -> u64 {
        let stride = self.stride();
        // Rounded down to whole blocks: every block of a pass exists.
        self.size / u64::from(self.files) / stride * stride
    }

    /// Operations of one pass over the data.
    fn blocks(&self) -> u64 {
        self.file_bytes() / self.stride() * u64::from(self.files)
    }

    /// Makes the specification that the engine is asked for.
    pub fn spec(&self, place: &Place<'_>) -> Spec {
        let target = |file: u32| IoTarget {
            path: match place.existing {
                Some(path) => path.to_owned(),
                None => place.directory.join(format!("data.{file}")),
            },
            bytes: self.file_bytes(),
        };
        let pass = self.operations_of_a_pass();
        let ops = self.operations_at_most();
        Spec {
            targets: (0..self.files).map(target).collect(),
            block_sizes: self.block_sizes.clone(),
            access: self.access,
            align: self.align,
            read_share: self.read_share,
            threads: self.threads,
            queue_depth: self.queue_depth,
            direct: self.direct,
            preallocate: self.preallocate,
            // Advice to the kernel is part of some classic tools, not of this workload.
            durability: self.durability,
            pacing: self.pacing,
            content: self.content,
            stop: Stop {
                ops,
                time_ns: self.time_ns,
            },
            again: pass.and_then(|ops| self.again(ops, place)),
            part: None,
            engine: self.engine,
            seed: place.seed,
            slice_ns: SLICE_NS,
        }
    }

    /// Work between two passes of so many operations: what was read is cached, and would be read from
    /// there the second time; a file that exists is not a new one.
    fn again(&self, ops: u64, place: &Place<'_>) -> Option<Again> {
        // Direct I/O leaves nothing in the page cache, and a warm start asks for warm passes.
        let cached = self.read_share > 0.0 && !self.direct && place.cold;
        let fresh = match (self.new_files, cached) {
            (true, _) => Fresh::Anew,
            (false, true) => Fresh::Evicted,
            (false, false) => return None,
        };
        (self.passes != 1).then_some(Again { ops, fresh })
    }

    /// Makes the specification that reads every byte back, from beginning to end, whatever the
    /// phase before did.
    pub(super) fn read_back(&self, spec: Spec) -> Spec {
        let unit = u64::from(verify::unit_bytes(&spec));
        // As large as can be, so that whole blocks make up the whole file.
        let fits = |block: &u64| self.file_bytes().is_multiple_of(*block);
        // Large blocks, because reading back is not what is measured.
        let block = (1..=VERIFY_BYTES / unit).map(|n| n * unit).rfind(fits);
        // A unit is at most a block, and those fit into 32 bits.
        let block = u32::try_from(block.unwrap_or(unit)).unwrap_or(u32::MAX);
        Spec {
            block_sizes: vec![(block, 1)],
            access: AccessPattern::Sequential,
            align: None,
            read_share: 1.0,
            threads: 1,
            queue_depth: 1,
            preallocate: false,
            durability: Durability::default(),
            pacing: Pacing::Closed { think_time_ns: 0 },
            stop: Stop {
                ops: Some(self.file_bytes() / u64::from(block) * u64::from(self.files)),
                time_ns: None,
            },
            again: None,
            ..spec
        }
    }

    /// The trial's ledger, made where there is none yet.
    fn ledger<'b>(&self, place: &Place<'b>) -> Result<&'b ContentLedger, StartError> {
        if let Some(ledger) = place.ledger.get() {
            return Ok(ledger);
        }
        let spec = self.spec(place);
        let unit = verify::unit_bytes(&spec);
        let ledger = ContentLedger::new(&spec.targets, unit, self.content, place.seed)?;
        Ok(place.ledger.get_or_init(|| ledger))
    }

    /// Writes the files a later phase reads or overwrites.
    pub fn lay_out(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let laid_out = if self.verify {
            self.ledger(place)
                .and_then(|ledger| stackrace_engine::lay_out_verified(ledger, place.control))
        } else {
            let targets = self.spec(place).targets;
            stackrace_engine::lay_out(&targets, self.content, place.seed, place.control)
        };
        laid_out.map_err(with_advice)
    }

    /// The measured phase by its name, and the one that reads everything back.
    pub fn phases(&self, measured: &'static str) -> Vec<&'static str> {
        let back = self.verify.then_some(VERIFY);
        std::iter::once(measured).chain(back).collect()
    }

    /// Runs one of them.
    pub fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let mut spec = self.spec(place);
        if phase > 0 {
            spec = self.read_back(spec);
            // A phase that ended by time may have left files short. What was never written reads as
            // zeros and is known to be so.
            if self.new_files {
                complete(&spec.targets)?;
            }
        }
        self.run(&spec, place)
    }

    /// Has the engine do what a specification of these blocks asks for.
    ///
    /// # Errors
    /// It could not begin, with what helps.
    pub fn run(&self, spec: &Spec, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let outcome = if self.verify {
            self.ledger(place)
                .and_then(|ledger| stackrace_engine::run_verified(spec, ledger, place.control))
        } else {
            stackrace_engine::run(spec, place.control)
        };
        outcome.map_err(with_advice)
    }

    /// Says what becomes of data that were laid out before.
    pub fn data_use(&self) -> DataUse {
        match (self.verify || self.new_files, self.read_share == 1.0) {
            (true, _) => DataUse::Spent,
            (false, true) => DataUse::Read,
            (false, false) => DataUse::Rewritten,
        }
    }

    /// The data it needs and leaves, where they are whole when it ends.
    pub fn data_layout(&self) -> Option<DataLayout> {
        // A new file that ends by time or by a number of operations may be short of its size.
        let cut_short = self.new_files && (self.time_ns.is_some() || self.operations.is_some());
        (!self.verify && !cut_short).then(|| DataLayout {
            files: self.files,
            file_bytes: self.file_bytes(),
            content: self.content,
        })
    }

    /// Says whether it may be measured in slices.
    pub fn slicing(&self) -> Slicing {
        let durability = self.durability;
        let handed_over = self.direct
            || durability.open_dsync
            || durability.open_sync
            || durability.fsync_every.is_some();
        // Blocks that come once each find no cache, and no read-ahead guesses them.
        let uncached = self.direct || self.access == AccessPattern::OncePerPass;
        match (self.verify || self.new_files, self.read_share == 1.0) {
            (false, true) if uncached => Slicing::Reads,
            (false, false) if handed_over => Slicing::Writes,
            _ => Slicing::Never,
        }
    }

    /// Checks that a file or device that exists can take the place of the data.
    pub fn on_existing(&self) -> Result<(), WorkloadError> {
        if self.verify {
            return Err(trouble(
                "what exists cannot be verified: its correct content is not known",
            ));
        }
        match (self.read_share == 1.0, self.files) {
            (true, 1) => Ok(()),
            // Not divided on the user's behalf: the offsets would be others than in a study.
            (true, _) => Err(trouble("one file or device cannot be several files")),
            (false, _) => Err(trouble("this writes, and what exists is only ever read")),
        }
    }

    /// The limit of time in words, as the end of a sentence.
    pub fn at_most(&self) -> String {
        self.time_ns.map_or(String::new(), |ns| {
            format!(", at most {}", unit::time_ns(ns as f64))
        })
    }

    /// Returns what it costs; `laid_out`: the data are written before the clock starts.
    pub fn cost(&self, laid_out: bool) -> Cost {
        Cost {
            prepare_bytes: if laid_out && !self.same_data {
                self.size
            } else {
                0
            },
            measured_bytes: None,
            disk_bytes: self.size,
            measured_ns: self.time_ns,
            files: u64::from(self.files),
            working_set_bytes: self.size,
        }
    }

    /// Operations of one pass; `None` if blocks are drawn, so that there is none.
    fn operations_of_a_pass(&self) -> Option<u64> {
        match self.access {
            AccessPattern::Sequential | AccessPattern::OncePerPass => Some(self.blocks()),
            _ => None,
        }
    }

    /// Operations after which it ends; `None` if it does not end by their number.
    fn operations_at_most(&self) -> Option<u64> {
        let pass = self.operations_of_a_pass().filter(|_| self.passes > 0);
        let passes = pass.map(|pass| pass.saturating_mul(self.passes));
        match (passes, self.operations) {
            (Some(passes), Some(asked)) => Some(passes.min(asked)),
            (passes, asked) => passes.or(asked),
        }
    }

    /// Most operations of a kind that it does; `None` if it does not end by their number, or does none of that kind.
    pub fn operations_most(&self, op: &str) -> Option<u64> {
        let all = self.operations_at_most()?;
        let share = |share: f64| (all as f64 * share) as u64;
        match op {
            "read" => Some(share(self.read_share)),
            "write" => Some(share(1.0 - self.read_share)),
            "fsync" => Some(all / self.durability.fsync_every?.get()),
            _ => None,
        }
    }

    /// Bytes of one pass over the data, where each block comes once: written ones may be read first.
    pub fn moved_in_one_pass(&self) -> u64 {
        let times = match self.engine {
            IoEngine::Update => 2,
            _ => 1,
        };
        self.size.saturating_mul(times)
    }

    /// Operations per second the schedule asks for; `None` if it is a closed loop.
    pub fn offered_per_s(&self) -> Option<f64> {
        match self.pacing {
            Pacing::Closed { .. } => None,
            Pacing::Fixed(rate) | Pacing::Poisson(rate) => Some(rate),
        }
    }

    /// The figures of an open loop: one latency first, as the operations per second follow from the
    /// schedule; and besides, how much of it was achieved, and the service times.
    pub fn figures<'a>(
        &self,
        mut figures: Vec<Figure<'a>>,
        primary: usize,
        ops: &[Op],
    ) -> Vec<Figure<'a>> {
        if let Some(offered) = self.offered_per_s() {
            // An open loop has the throughput it offers; what is asked of it is the latency.
            figures[..=primary].rotate_right(1);
            let head = MetricHead::new("offered load achieved", "%", Better::Higher);
            let achieved = move |outcome: &PhaseOutcome| {
                metric::operations(outcome).map(|rate| rate / offered * 100.0)
            };
            figures.push(Figure::of(head, achieved));
            figures.extend(services(ops).map(|(op, which)| Figure::service(op, which)));
        }
        figures
    }

    /// Words for how often the data are gone over: `once`, `3 times`, `again and again`.
    pub fn passes_words(&self) -> String {
        match self.passes {
            0 => "again and again".to_owned(),
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            passes => format!("{passes} times"),
        }
    }

    /// Words for what is not said of every phase: fsync cadence, durability, pacing, the cache.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        if self.read_share < 1.0 {
            words.extend(self.durability_words());
        }
        if self.direct {
            words.push("O_DIRECT".to_owned());
        }
        if let Some(align) = self.align {
            let align = unit::bytes(u64::from(align.get()));
            words.push(format!("at multiples of {align}"));
        }
        if self.verify {
            words.push("verified".to_owned());
        }
        if self.engine == IoEngine::Update {
            words.push("each block read before it is written".to_owned());
        }
        if self.same_data {
            words.push("on the data of the workload before it".to_owned());
        }
        match self.pacing {
            Pacing::Closed { think_time_ns: 0 } => {}
            Pacing::Closed { think_time_ns } => {
                words.push(format!(
                    "think time {}",
                    unit::time_ns(think_time_ns as f64)
                ));
            }
            Pacing::Fixed(rate) => words.push(format!("{rate}/s offered, evenly")),
            Pacing::Poisson(rate) => words.push(format!("{rate}/s offered, Poisson arrivals")),
        }
        words.iter().map(|word| format!(", {word}")).collect()
    }

    fn durability_words(&self) -> Vec<String> {
        let sync = if self.durability.data_only {
            "fdatasync"
        } else {
            "fsync"
        };
        let every = match self.durability.fsync_every.map(std::num::NonZero::get) {
            None => None,
            Some(1) => Some(format!("{sync} after each write")),
            Some(n) => Some(format!("{sync} after every {n} writes")),
        };
        let opened = match (self.durability.open_dsync, self.durability.open_sync) {
            (true, _) => Some("O_DSYNC".to_owned()),
            (_, true) => Some("O_SYNC".to_owned()),
            _ => None,
        };
        let reserved = self
            .preallocate
            .then(|| "blocks reserved before".to_owned());
        [every, opened, reserved].into_iter().flatten().collect()
    }

    /// Words for how uneven access is, where it is not each block once: `, zipf 1.1`.
    pub fn access_words(&self) -> String {
        match self.access {
            AccessPattern::Sequential | AccessPattern::OncePerPass => String::new(),
            AccessPattern::Uniform => ", uniform".to_owned(),
            AccessPattern::Zipf(skew) => format!(", Zipf {skew}"),
            AccessPattern::Pareto(skew) => format!(", Pareto {skew}"),
            AccessPattern::Normal(skew) => format!(", normal {skew}"),
            AccessPattern::HotCold { hot_range, hot_ops } => format!(
                ", {} of operations on {} of the data",
                unit::percent(hot_ops),
                unit::percent(hot_range)
            ),
        }
    }
}

/// Makes files as long as they were to be. Of what was not written to its end nothing is known, and
/// nothing is checked there; what was written and is missing is wrong with zeros in its place too.
fn complete(targets: &[IoTarget]) -> Result<(), WorkloadError> {
    for target in targets {
        let lengthen = || {
            let file = File::options().write(true).open(&target.path)?;
            if file.metadata()?.len() < target.bytes {
                file.set_len(target.bytes)?;
            }
            Ok(())
        };
        lengthen().map_err(|error: std::io::Error| {
            let said = format!(
                "cannot lengthen {}: {}",
                target.path.shown(),
                error.in_words()
            );
            trouble(error).saying(said)
        })?;
    }
    Ok(())
}

/// Explains why a phase could not begin, and what to do about it.
fn with_advice(error: StartError) -> WorkloadError {
    let next = error.next();
    advised(error, &next)
}

/// The service times an open loop reports.
fn services(ops: &[Op]) -> impl Iterator<Item = (Op, Latency)> {
    let timed = ops.iter().copied().filter(|op| *op != Op::Fsync);
    timed.flat_map(|op| [Latency::P50, Latency::P95, Latency::P99].map(|which| (op, which)))
}
