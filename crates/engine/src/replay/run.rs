//! A replay from its start to its end.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::act::{Acts, Memory, PIECE};
use super::files::{HeldFile, OpenFiles, WarmPart};
use super::order::{Going, ReplayOrder};
use super::pace;
use super::step::{ReplayCall, ReplayStep};
use crate::control::Control;
use crate::outcome::{Op, OpError, PhaseOutcome, ReplayDifference, ReplayResults};
use crate::recorder::Recorder;
use crate::worker_pool::{Halt, PhaseOptions, Worker, WorkerPool, fault, no_memory, refusal};
use stackrace_system::draw::Draw;
use stackrace_system::memory::{AlignedMemory, NoMemory};
use stackrace_system::{lacking, wake_precisely};

/// What content is drawn for.
const CONTENT: u64 = 0x7265_706c_6179_0000;
/// Steps after which progress is told.
const TOLD_STEPS: usize = 256;
/// Shortest memory of a thread for what it reads.
const MEMORY_MIN: u64 = 64 << 10;

/// The calls of an application.
#[derive(Debug)]
pub struct ReplayPlan {
    /// Names below the directory, and what links lead to, which steps number; none is absolute or has `..`.
    pub names: Vec<CString>,
    /// Parts of files that were in memory.
    pub warm: Vec<WarmPart>,
    /// Files that were open before.
    pub held: Vec<HeldFile>,
    /// Highest number of a file.
    pub files: u32,
    /// The steps of each thread.
    pub threads: Vec<Vec<ReplayStep>>,
    /// What they wait for, of the same threads and steps.
    pub order: ReplayOrder,
}

/// When a call began and ended, ns since the start.
type Moment = (u64, u64);

/// Results of one thread.
struct ThreadDone {
    steps: usize,
    moments: Vec<Moment>,
    results: ReplayResults,
}

impl ReplayPlan {
    /// Makes the calls in a directory that has the tree as it was before. What is written follows from `seed`.
    ///
    /// # Errors
    /// Memory is short, or the directory or a file that was open before cannot be opened. A full disk in mid-way is in
    /// [`PhaseOutcome::error`] instead.
    pub fn run(
        &self,
        root: &Path,
        seed: u64,
        slice_ns: u64,
        control: &Control,
    ) -> Result<PhaseOutcome, OpError> {
        if !cfg!(target_os = "linux") {
            return Err(refusal(Op::Open, root, Errno::NOSYS, lacking("replay")));
        }
        // All memory and all files of before stand when the clock starts: none of them is the storage's time.
        let acts = self.acts(root, seed)?;
        for held in &self.held {
            let path = || self.path(root, held.name);
            acts.hold(held)
                .map_err(|errno| fault(Op::Open, &path(), errno))?;
        }
        let going = Going::of(&self.order);
        let done = Mutex::new(Vec::new());
        let mut parts = Vec::with_capacity(self.threads.len());
        for thread in 0..self.threads.len() {
            // Mapped here, not in the thread: a page fault in its first read would count as that read.
            let room = self
                .room(thread)
                .map_err(|error| no_memory(Op::Open, root, error))?;
            parts.push((thread, room));
        }
        let workers = WorkerPool {
            watch: PhaseOptions {
                slice_ns,
                control,
                ops: &[],
            },
            why: "the calls of a recorded application, each thread's in their order".to_owned(),
            root,
            keep: None,
        };
        let work = |(thread, memory): (usize, Memory), worker: &mut Worker<'_>| {
            let mut replayed = ThreadReplay {
                plan: self,
                acts: &acts,
                going: &going,
                root,
                thread,
                memory,
                late_ns: 0,
                done: ThreadDone {
                    steps: 0,
                    // Room for all: a vector that grows in mid-way would delay a call.
                    moments: Vec::with_capacity(self.threads[thread].len()),
                    results: ReplayResults::default(),
                },
            };
            let result = replayed.run(worker);
            // A thread that panicked ends the phase; what the others measured is still right.
            let mut all = done
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            all.push((thread, replayed.done));
            result
        };
        // SAFETY: `keep` is none: the threads share one table of descriptors.
        let outcome = unsafe { workers.together(parts, work, None) };
        drop(acts);
        let done = done
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(self.measured(outcome?, done, slice_ns))
    }

    /// Reads what was in memory when the recording began.
    ///
    /// # Errors
    /// Memory is short, or a file cannot be read.
    pub fn warm(&self, root: &Path, control: &Control) -> Result<(), OpError> {
        if self.warm.is_empty() {
            return Ok(());
        }
        // What is read is thrown away: one piece of memory serves all parts.
        let memory = AlignedMemory::new(PIECE).map_err(|error| no_memory(Op::Open, root, error))?;
        let (acts, mut memory) = (self.acts(root, 0)?, Memory(memory));
        for part in &self.warm {
            // Gigabytes take minutes; who stopped them learns so by the phase.
            if control.stopped() {
                break;
            }
            acts.warm(part, &mut memory, &|| control.stopped())
                .map_err(|errno| fault(Op::Read, &self.path(root, part.name), errno))?;
        }
        Ok(())
    }

    fn acts(&self, root: &Path, seed: u64) -> Result<Acts<'_>, OpError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, root, flags, Mode::empty());
        let content = AlignedMemory::new(2 * PIECE);
        let mut content = content.map_err(|error| no_memory(Op::Open, root, error))?;
        let mut draw = Draw::new(seed, CONTENT);
        // Random: storage that compresses or deduplicates would look faster than it was recorded.
        for word in content.bytes_mut().chunks_exact_mut(8) {
            word.copy_from_slice(&draw.bits().to_le_bytes());
        }
        let calls = self.threads.iter().flatten().map(|step| &step.call);
        Ok(Acts {
            root: opened.map_err(|errno| fault(Op::Open, root, errno))?,
            names: &self.names,
            files: OpenFiles::of(self.files, calls),
            content,
        })
    }

    /// Memory for the longest read of a thread.
    fn room(&self, thread: usize) -> Result<Memory, NoMemory> {
        let lengths = self.threads[thread].iter().map(|step| match step.call {
            ReplayCall::Read { length, .. } | ReplayCall::ReadAt { length, .. } => length,
            ReplayCall::List { length, .. } => length,
            _ => 0,
        });
        let longest = lengths.max().unwrap_or(0).clamp(MEMORY_MIN, PIECE as u64);
        AlignedMemory::new(longest as usize).map(Memory)
    }

    fn path(&self, root: &Path, name: u32) -> PathBuf {
        root.join(self.shown(name))
    }

    fn shown(&self, name: u32) -> String {
        self.names[name as usize].to_string_lossy().into_owned()
    }

    /// The outcome with every call as it was timed.
    fn measured(
        &self,
        outcome: PhaseOutcome,
        done: Vec<(usize, ThreadDone)>,
        slice_ns: u64,
    ) -> PhaseOutcome {
        // One for all: of hundreds of threads each would need megabytes for itself.
        let mut recorder = Recorder::new(slice_ns, &Op::ALL);
        let mut results = ReplayResults::default();
        for (thread, done) in done {
            // A thread that was stopped made only its first steps.
            let steps = self.threads[thread][..done.steps].iter();
            let called = steps.filter(|step| step.call.op().is_some());
            for (step, (begun, ended)) in called.zip(done.moments) {
                if let Some(op) = step.call.op() {
                    recorder.record(op, begun, ended, bytes(step));
                }
            }
            results.add(done.results);
        }
        let merged = Recorder::merge(vec![recorder], slice_ns);
        PhaseOutcome {
            ops: merged.ops,
            series: merged.series,
            slice_ns: merged.slice_ns,
            // The threads of an application are not alike: a spread among them says nothing of the storage.
            threads: Vec::new(),
            replayed: Some(results),
            ..outcome
        }
    }
}

/// Bytes that a step moved: those of the recording, from which it hardly ever differs.
fn bytes(step: &ReplayStep) -> u64 {
    match step.call.op() {
        Some(Op::Read | Op::Write) => step.result.max(0).unsigned_abs(),
        _ => 0,
    }
}

/// A thread that goes on.
struct ThreadReplay<'a> {
    plan: &'a ReplayPlan,
    acts: &'a Acts<'a>,
    going: &'a Going<'a>,
    root: &'a Path,
    thread: usize,
    memory: Memory,
    /// How late what it answers was taken up; the next call has to bear it.
    late_ns: u64,
    done: ThreadDone,
}

impl ThreadReplay<'_> {
    fn run(&mut self, worker: &mut Worker<'_>) -> Result<(), Halt> {
        // Sleeps stand for waits that were recorded: the kernel's usual slack would lengthen each.
        wake_precisely();
        for (at, step) in self.plan.threads[self.thread].iter().enumerate() {
            self.before(step, at, worker)?;
            let result = self.call(step, at, worker);
            // After the call, whatever it said: the last user closes the file.
            if let Some(file) = step.call.file() {
                self.acts.used(file);
            }
            // Before an error is returned: others that wait for this step see the end of the phase, and not a gap.
            self.going.complete((self.thread, at));
            self.done.steps = at + 1;
            result?;
            if at % TOLD_STEPS == 0 {
                worker.proceed()?;
                let control = worker.control();
                control.ops.fetch_add(TOLD_STEPS as u64, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Whatever lies between the step before and this one.
    fn before(
        &mut self,
        step: &ReplayStep,
        at: usize,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        pace::compute(step.compute_ns, worker)?;
        // Open: the moment is the client's, and being late is the storage's fault. Closed: a wait lasts as long as it did.
        if let Some(arrives_ns) = step.arrives_ns {
            pace::sleep_until(arrives_ns, worker)?;
            self.late_ns = worker.now_ns().saturating_sub(arrives_ns);
        } else if step.sleep_ns > 0 {
            let until = worker.now_ns().saturating_add(step.sleep_ns);
            pace::sleep_until(until, worker)?;
        }
        self.going.wait((self.thread, at), || worker.proceed())?;
        pace::compute(step.after_ns, worker)
    }

    fn call(&mut self, step: &ReplayStep, at: usize, worker: &mut Worker<'_>) -> Result<(), Halt> {
        // A step without a call only keeps the order: a fork, a wake, an end.
        let Some(op) = step.call.op() else {
            return Ok(());
        };
        // Draws the content: no two writes are alike, and each replay writes the same.
        let number = (self.thread as u64) << 32 | at as u64;
        let begun = worker.now_ns();
        let result = self.acts.act(&step.call, &mut self.memory, number);
        let ended = worker.now_ns();
        let late = std::mem::take(&mut self.late_ns);
        self.done.moments.push((begun.saturating_sub(late), ended));
        let results = &mut self.done.results;
        results.calls += 1;
        if step.call.agree(step.result, result) {
            return Ok(());
        }
        results.differing += 1;
        let name = || {
            step.call
                .name()
                .map_or_else(String::new, |name| self.plan.shown(name))
        };
        if results.first.is_none() {
            results.first = Some(ReplayDifference {
                op,
                name: name(),
                recorded: step.result,
                replayed: result,
            });
        }
        self.goes_on(op, step, result)
    }

    /// Ends the replay where it no longer says anything of the storage: a full disk, a broken one, and our own limit on
    /// open files.
    fn goes_on(&self, op: Op, step: &ReplayStep, result: i64) -> Result<(), Halt> {
        let ends = [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::IO,
            Errno::ROFS,
            Errno::MFILE,
            Errno::NFILE,
        ];
        let ended = ends
            .into_iter()
            .find(|errno| result == -i64::from(errno.raw_os_error()));
        match ended {
            None => Ok(()),
            Some(errno) => {
                let name = step.call.name();
                let path =
                    name.map_or(self.root.to_owned(), |name| self.plan.path(self.root, name));
                Err(fault(op, &path, errno).into())
            }
        }
    }
}
