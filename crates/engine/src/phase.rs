//! One phase of block I/O from beginning to end: set up, start all workers at once, merge their
//! results.

mod closing;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::alternation::AlternationSeat;
use crate::block_report::{BlockReport, drive_ring_whole, drive_whole};
use crate::block_worker::{BlockWorker, Cadence, NextPass};
use crate::choose::{EngineChoice, IoMethod, choose};
use crate::clock::{Calibration, FastClock};
use crate::content::{ContentPool, POOL_BYTES};
use crate::control::Control;
use crate::descriptors;
use crate::error::StartError;
use crate::gate::StartGate;
use crate::io::IoDevice;
use crate::io::null::Null;
use crate::io::sync::Sync;
use crate::io::update::Update;
use crate::io::uring::{Buffers, Uring, build};
use crate::outcome::{Op, PhaseEnd, PhaseOutcome, mean_outstanding};
use crate::pace::{Eager, Scheduled, Thinking};
use crate::pacing::Schedule;
use crate::recorder::Recorder;
use crate::ring::{InFlight, Ring};
use crate::shape::{OpSequence, WorkerShare};
use crate::spec::{Fresh, IoEngine, Pacing, Spec};
use crate::target::open_all;
use crate::verify::{ContentLedger, Slots, Verified};
use crate::watch::{Finish, PhaseWatch, spin_ns};
use stackrace_system::cpu::Cpu;
use stackrace_system::draw::Draw;
use stackrace_system::memory::AlignedMemory;
use stackrace_system::wake_precisely;

/// Stack of a worker, bytes: its call depth is small and it never recurses.
const STACK_BYTES: usize = 256 << 10;
/// Most workers that have a content pool of full size each; more share that much memory.
const FULL_POOLS: usize = 8;
/// Smallest pool per worker, bytes.
const POOL_BYTES_MIN: usize = 256 << 10;

/// Purpose of the random numbers that Poisson arrivals are drawn from.
const PURPOSE_ARRIVALS: u64 = 0x6172_7269_7665_0000;

/// Runs one phase.
///
/// Opens or creates the targets, sets everything up, runs all workers from a common start and
/// merges their results. A failed operation ends the phase: the outcome then holds the complete
/// error and everything measured until then.
///
/// At the end of the time, outstanding operations complete and count. Operations of an open loop
/// that were due but not issued by then are dropped, so the achieved rate can be below the offered
/// one.
///
/// # Errors
/// If the phase could not begin. Nothing was measured, but files may have been created.
pub fn run(spec: &Spec, control: &Control) -> Result<PhaseOutcome, StartError> {
    run_phase(spec, None, control)
}

/// Runs one phase like [`run`], and also stamps everything it writes and checks everything it reads
/// against `ledger` (see [`crate::verify`]). [`PhaseOutcome::verified_bytes`] counts the checked
/// bytes; wrong content fails the phase. Units that were never written successfully are not
/// checked.
///
/// # Errors
/// As [`run`], and [`StartError::Spec`] if the ledger does not fit these files and blocks.
pub fn run_verified(
    spec: &Spec,
    ledger: &ContentLedger,
    control: &Control,
) -> Result<PhaseOutcome, StartError> {
    ledger.check(spec)?;
    run_phase(spec, Some(ledger), control)
}

fn run_phase(
    spec: &Spec,
    ledger: Option<&ContentLedger>,
    control: &Control,
) -> Result<PhaseOutcome, StartError> {
    let ran = run_seated(spec, ledger, control);
    // However it ended: the other phases must not wait for this one.
    let Some((cpu, parts)) = control.seat.as_ref().map(AlternationSeat::leave) else {
        return ran;
    };
    ran.map(|outcome| PhaseOutcome {
        cpu_user_ns: cpu.user_ns,
        cpu_system_ns: cpu.system_ns,
        parts,
        ..outcome
    })
}

fn run_seated(
    spec: &Spec,
    ledger: Option<&ContentLedger>,
    control: &Control,
) -> Result<PhaseOutcome, StartError> {
    // First of all: the set-up below gives the calibration its time, so that nothing waits for it.
    let calibration = Calibration::begin();
    spec.check()?;
    let files = match spec.engine {
        IoEngine::Null => Vec::new(),
        _ => open_all(spec)?,
    };
    let choice = choose(spec)?;
    let shapes = WorkerShare::all(spec, choice.workers)
        .map(|share| Ok((OpSequence::new(spec, &share)?, share)))
        .collect::<Result<Vec<_>, StartError>>()?;
    if let Some(seat) = &control.seat {
        seat.enter(choice.workers as usize);
    }
    // Files stay open until the last worker has ended.
    let phase = BlockPhase {
        spec,
        control,
        files: &files,
        way: choice.way,
        spin_ns: spin_ns(choice.workers),
        halt: AtomicBool::new(false),
        ledger,
        verified_bytes: AtomicU64::new(0),
    };
    let (clock, cpu, reports) = phase.run_workers(calibration, shapes)?;
    Ok(phase.merge(clock, cpu, reports, choice))
}

/// The cost of the generator itself, ns per operation: a phase that does everything but the I/O
/// (random 4 KiB reads, one thread, every latency recorded), over so many operations. 0 if that could not be
/// measured.
pub fn self_cost(operations: u64) -> f64 {
    empty_phase(operations, SELF_SLICE_NS)
        .map_or(0.0, |outcome| outcome.elapsed_ns as f64 / operations as f64)
}

/// The same in the part of the phase that was least disturbed: other processes can only add to it.
pub fn least_self_cost(operations: u64) -> f64 {
    empty_phase(operations, SELF_SLICE_NS).map_or(0.0, |outcome| {
        // The first part and the last one are no whole parts.
        let whole = outcome.series.iter().skip(1);
        let whole = whole.take(outcome.series.len().saturating_sub(2));
        let most = whole.map(|slice| slice.ops).max().unwrap_or(0);
        let least = outcome.slice_ns as f64 / most as f64;
        least.min(outcome.elapsed_ns as f64 / operations as f64)
    })
}

/// Width of the parts in which the generator's cost is looked at, ns: hundreds of operations, and shorter than what a
/// processor is taken away for.
const SELF_SLICE_NS: u64 = 20_000;

/// A phase without I/O. `None`: without memory or a thread for it, no other phase will start either.
fn empty_phase(operations: u64, slice_ns: u64) -> Option<PhaseOutcome> {
    let target = crate::spec::IoTarget {
        path: "null".into(),
        bytes: 1 << 30,
    };
    let spec = Spec {
        content: crate::spec::Content::Zero,
        stop: crate::spec::Stop {
            ops: Some(operations),
            time_ns: None,
        },
        engine: IoEngine::Null,
        seed: 0,
        slice_ns,
        ..Spec::reads(vec![target], 4096)
    };
    run(&spec, &Control::default()).ok()
}

/// State shared by all workers of a phase.
struct BlockPhase<'a> {
    spec: &'a Spec,
    control: &'a Control,
    files: &'a [OwnedFd],
    way: IoMethod,
    /// Spinning before a deadline, ns: see [`spin_ns`].
    spin_ns: u64,
    halt: AtomicBool,
    /// The expected content; `None` if nothing is verified.
    ledger: Option<&'a ContentLedger>,
    /// Each worker adds its share when it ends.
    verified_bytes: AtomicU64,
}

impl BlockPhase<'_> {
    /// Starts a thread for each share, all at once, and waits for them.
    fn run_workers(
        &self,
        calibration: Calibration,
        shapes: Vec<(OpSequence, WorkerShare)>,
    ) -> Result<(FastClock, Cpu, Vec<BlockReport>), StartError> {
        let gate = StartGate::default();
        std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(shapes.len());
            let mut refused = None;
            for (shape, share) in shapes {
                match self.spawn(scope, &gate, shape, share) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        refused = Some(error);
                        break;
                    }
                }
            }
            let opened = gate.open(handles.len(), calibration, refused, self.control);
            let reports = handles
                .into_iter()
                .filter_map(|handle| match handle.join() {
                    Ok(report) => report,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
            let reports = reports.collect();
            let (clock, cpu) = opened?;
            Ok((clock, cpu, reports))
        })
    }

    fn spawn<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        gate: &'env StartGate,
        shape: OpSequence,
        share: WorkerShare,
    ) -> Result<ScopedJoinHandle<'scope, Option<BlockReport>>, StartError> {
        let builder = Builder::new()
            .name("engine".to_owned())
            // With up to 1,024 workers, the default of 2 MiB each would reserve 2 GiB.
            .stack_size(STACK_BYTES);
        builder
            .spawn_scoped(scope, move || self.work(gate, shape, &share))
            .map_err(|error| StartError::Thread {
                errno: error.raw_os_error().unwrap_or(0),
            })
    }

    /// Runs one worker. Returns `None` if the phase did not begin.
    fn work(
        &self,
        gate: &StartGate,
        shape: OpSequence,
        share: &WorkerShare,
    ) -> Option<BlockReport> {
        // An open loop starts each operation at its instant.
        wake_precisely();
        let ops = self.ops();
        let recorder = Recorder::new(self.spec.slice_ns, &ops);
        // A closed loop has no lateness, and the histograms for it cost memory.
        let recorder = match self.spec.pacing {
            Pacing::Closed { .. } => recorder,
            Pacing::Fixed(_) | Pacing::Poisson(_) => recorder.open_loop(),
        };
        match self.way {
            IoMethod::Null => {
                let device = self.pool(share, 1).map(|pool| Null { pool });
                self.work_on(gate, device, shape, recorder, share)
            }
            IoMethod::Sync => {
                // Not for a ring: its registered files need no look-up in the table.
                // SAFETY: this thread has made nothing yet but a recorder, which owns no descriptor. It
                // uses the files of the phase, and those outlive it.
                unsafe { descriptors::own_table(self.files) };
                if self.spec.engine == IoEngine::Update {
                    let device = self.update_device();
                    return self.work_on(gate, device, shape, recorder, share);
                }
                let device = self.sync_device(share);
                match self.ledger {
                    None => self.work_on(gate, device, shape, recorder, share),
                    Some(ledger) => {
                        let device = device.map(|device| self.verified(device, 1, ledger));
                        self.work_on(gate, device, shape, recorder, share)
                    }
                }
            }
            IoMethod::Uring => self.work_ring(gate, shape, recorder, share),
        }
    }

    /// The kinds of operation this phase can issue.
    fn ops(&self) -> Vec<Op> {
        let writes = self.spec.read_share < 1.0;
        let durability = self.spec.durability;
        let anew = self
            .spec
            .again
            .is_some_and(|again| again.fresh == Fresh::Anew);
        let syncs = durability.fsync_every.is_some() || (anew && durability.fsync_at_end);
        let syncs = writes && syncs;
        let possible = [
            (Op::Read, self.spec.read_share > 0.0),
            (Op::Write, writes),
            (Op::Fsync, syncs),
        ];
        possible
            .into_iter()
            .filter_map(|(op, possible)| possible.then_some(op))
            .collect()
    }

    /// A device or ring whose operations are checked against the ledger.
    fn verified<'s, I: Slots>(
        &'s self,
        inner: I,
        slots: usize,
        ledger: &'s ContentLedger,
    ) -> Verified<'s, I> {
        Verified::new(inner, slots, ledger, self.files, &self.verified_bytes)
    }

    /// The content this worker writes. `None` if it only reads, or the ledger decides the content.
    fn pool(&self, share: &WorkerShare, slots: usize) -> Result<Option<ContentPool>, StartError> {
        if self.spec.read_share == 1.0 || self.ledger.is_some() {
            return Ok(None);
        }
        let (least, most) = self.block_sizes();
        let workers = share.workers as usize;
        let bytes = (POOL_BYTES * FULL_POOLS / workers.max(FULL_POOLS)).max(POOL_BYTES_MIN);
        let Spec { content, seed, .. } = self.spec;
        ContentPool::new(*content, *seed, share.worker, slots, least..=most, bytes).map(Some)
    }

    /// The smallest and the largest block.
    fn block_sizes(&self) -> (usize, usize) {
        let sizes = self.spec.block_sizes.iter().map(|(size, _)| *size as usize);
        (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0))
    }

    /// Bytes of one buffer: the largest read, and with verification also the largest write.
    fn buffer_bytes(&self) -> usize {
        if self.spec.read_share > 0.0 || self.ledger.is_some() {
            self.block_sizes().1
        } else {
            0
        }
    }

    fn sync_device(&self, share: &WorkerShare) -> Result<Sync<'_>, StartError> {
        Ok(Sync {
            files: self.files,
            read: AlignedMemory::new(self.buffer_bytes())?,
            pool: self.pool(share, 1)?,
            data_only: self.spec.durability.data_only,
        })
    }

    fn update_device(&self) -> Result<Update<'_>, StartError> {
        Ok(Update {
            files: self.files,
            block: AlignedMemory::new(self.block_sizes().1)?,
            data_only: self.spec.durability.data_only,
            changed: 0,
        })
    }

    /// Waits for the common start and drives a device that does one operation at a time.
    fn work_on<D: IoDevice>(
        &self,
        gate: &StartGate,
        device: Result<D, StartError>,
        shape: OpSequence,
        recorder: Recorder,
        share: &WorkerShare,
    ) -> Option<BlockReport> {
        let (mut device, refused) = match device {
            Ok(device) => (Some(device), None),
            Err(error) => (None, Some(error)),
        };
        let cadence = Cadence::new(self.spec.durability, self.spec.targets.len());
        let schedule = self.schedule(share);
        let clock = gate.pass(refused)?;
        // `pass` returned a clock only if no worker failed, so there is a device.
        let device = device.as_mut()?;
        let worker = self.worker(clock, shape, recorder, cadence, share);
        Some(match (self.spec.pacing, schedule) {
            (_, Some(schedule)) => drive_whole(worker, device, Scheduled(schedule)),
            (Pacing::Closed { think_time_ns }, None) if think_time_ns > 0 => {
                drive_whole(worker, device, Thinking { think_time_ns })
            }
            (_, None) => drive_whole(worker, device, Eager),
        })
    }

    /// Makes a ring, waits for the common start and drives the ring.
    fn work_ring(
        &self,
        gate: &StartGate,
        shape: OpSequence,
        recorder: Recorder,
        share: &WorkerShare,
    ) -> Option<BlockReport> {
        let depth = self.spec.queue_depth as usize;
        let (mut buffers, mut ring) = match self
            .buffers(share, depth)
            .and_then(|buffers| Ok((buffers, build(depth)?)))
        {
            Ok(both) => both,
            Err(error) => {
                // The others wait for this worker: it must arrive even if it cannot run.
                gate.pass(Some(error));
                return None;
            }
        };
        let data_only = self.spec.durability.data_only;
        let uring = Uring::new(&mut ring, self.files, &mut buffers, data_only);
        let driven = match self.ledger {
            None => self.work_through(gate, uring, shape, recorder, share),
            Some(ledger) => {
                let uring = self.verified(uring, depth, ledger);
                self.work_through(gate, uring, shape, recorder, share)
            }
        };
        // Closing the ring cancels its operations, so it goes before the buffers they use.
        drop(ring);
        let (report, drained) = driven?;
        if !drained {
            // The kernel may still read or write them. Leaking them is safe; freeing them is not.
            std::mem::forget(buffers);
        }
        Some(report)
    }

    /// Waits for the common start and drives a ring. Also returns whether the ring was drained.
    fn work_through<R: Ring>(
        &self,
        gate: &StartGate,
        mut ring: R,
        shape: OpSequence,
        recorder: Recorder,
        share: &WorkerShare,
    ) -> Option<(BlockReport, bool)> {
        let mut flight = InFlight::new(self.spec.queue_depth as usize, self.files.len());
        let cadence = Cadence::new(self.spec.durability, self.files.len());
        let schedule = self.schedule(share);
        let clock = gate.pass(None)?;
        let worker = self.worker(clock, shape, recorder, cadence, share);
        let (r, f) = (&mut ring, &mut flight);
        Some(match (self.spec.pacing, schedule) {
            (_, Some(schedule)) => drive_ring_whole(worker, r, Scheduled(schedule), f),
            (Pacing::Closed { think_time_ns }, None) if think_time_ns > 0 => {
                drive_ring_whole(worker, r, Thinking { think_time_ns }, f)
            }
            (_, None) => drive_ring_whole(worker, r, Eager, f),
        })
    }

    fn buffers(&self, share: &WorkerShare, depth: usize) -> Result<Buffers, StartError> {
        Buffers::new(depth, self.buffer_bytes(), self.pool(share, depth)?)
    }

    /// The worker's share of an open loop's arrivals; `None` for a closed loop.
    fn schedule(&self, share: &WorkerShare) -> Option<Schedule> {
        let WorkerShare {
            worker, workers, ..
        } = *share;
        match self.spec.pacing {
            Pacing::Closed { .. } => None,
            Pacing::Fixed(rate) => Some(Schedule::fixed(rate, worker, workers)),
            Pacing::Poisson(rate) => {
                let draw = Draw::new(self.spec.seed, PURPOSE_ARRIVALS | u64::from(worker));
                Some(Schedule::poisson(rate, workers, draw))
            }
        }
    }

    fn worker(
        &self,
        clock: FastClock,
        shape: OpSequence,
        recorder: Recorder,
        cadence: Cadence,
        share: &WorkerShare,
    ) -> BlockWorker<'_> {
        let stop = self.spec.stop;
        let endless = self.control.endless.load(Ordering::Relaxed);
        let time_ns = stop.time_ns.filter(|_| !endless);
        let all = stop.ops.map_or(u64::MAX, |total| share.operations(total));
        let again = self.spec.again.map(|again| NextPass {
            spec: self.spec,
            files: self.files,
            fresh: again.fresh,
            ops: share.operations(again.ops).max(1),
        });
        let left = again.map_or(all, |again| again.ops.min(all));
        BlockWorker {
            shape,
            recorder,
            watch: PhaseWatch::new(clock, self.control, &self.halt, time_ns, self.spin_ns),
            cadence,
            left,
            later: all - left,
            again,
            outstanding_ns: 0,
            finish: Finish::Complete,
            failure: None,
        }
    }

    /// Closes the phase: the final fsync, if requested, and one outcome merged from all reports.
    fn merge(
        &self,
        clock: FastClock,
        cpu: Cpu,
        reports: Vec<BlockReport>,
        choice: EngineChoice,
    ) -> PhaseOutcome {
        let mut ended = end_of(&reports);
        let failures = reports.iter().filter_map(|report| report.failure.clone());
        // Later failures are often consequences of the first one.
        let mut failure = failures.min_by_key(|failure| failure.at_ns);
        let mut elapsed_ns = reports
            .iter()
            .map(|report| report.end_ns)
            .max()
            .unwrap_or(0);
        let mut outstanding: u128 = reports.iter().map(|r| u128::from(r.outstanding_ns)).sum();
        let clock_back = reports.iter().map(|report| report.back).sum();
        let unissued = reports.iter().map(|report| report.unissued).sum();
        let mut recorders: Vec<Recorder> = reports.into_iter().map(|r| r.recorder).collect();
        let wrote = recorders.iter().any(|each| each.count(Op::Write) > 0);
        // A phase that was stopped or failed is not made durable: that could take minutes.
        if ended == PhaseEnd::Complete && wrote && self.spec.durability.fsync_at_end {
            let (last, failed, end_ns) = self.close(clock, elapsed_ns);
            if failed.is_some() {
                (ended, failure) = (PhaseEnd::Failed, failed);
            }
            // One fsync is outstanding at a time.
            outstanding += u128::from(end_ns.saturating_sub(elapsed_ns));
            elapsed_ns = elapsed_ns.max(end_ns);
            recorders.push(last);
        }
        let cpu = cpu.spent();
        let merged = Recorder::merge(recorders, self.spec.slice_ns);
        let method = choice.way.name();
        PhaseOutcome {
            ended,
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            ops: merged.ops,
            threads: merged.threads,
            lateness: merged.lateness,
            unissued,
            verified_bytes: self.verified_bytes.load(Ordering::Relaxed),
            series: merged.series,
            error: failure.map(|failure| self.error(failure)),
            short: merged.short,
            depth_achieved: mean_outstanding(outstanding, elapsed_ns),
            clock: clock.name(),
            clock_error: clock.disagreement(),
            clock_back,
            ..PhaseOutcome::of_program(method, choice.why, elapsed_ns, merged.slice_ns)
        }
    }
}

/// The end of a phase whose threads reported this.
fn end_of(reports: &[BlockReport]) -> PhaseEnd {
    reports
        .iter()
        .fold(PhaseEnd::Complete, |ended, report| match report.finish {
            // A part that is over is followed by another, or by one of the others.
            Finish::Complete | Finish::PartOver => ended,
            Finish::Stopped if ended == PhaseEnd::Failed => ended,
            Finish::Stopped => PhaseEnd::Stopped,
            Finish::Failed => PhaseEnd::Failed,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over one operation there is no part that could be less disturbed than the whole.
    #[test]
    fn the_least_cost_of_the_generator_is_known_after_one_operation_and_after_many() {
        for operations in [1, 5_000] {
            let least = least_self_cost(operations);
            assert!(least.is_finite() && least > 0.0, "{least}");
        }
    }
}
