//! Operations of a trace as steps of a replay.

mod refuses;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;

use stackrace_engine::Op;
use stackrace_engine::replay::{
    HeldFile, On, OrderBuilder, ReplayCall, ReplayPlan, ReplayStep, Touch, WarmPart,
};
use stackrace_trace::trace::{Code, MAPPED_MAX, Names, Operation, Part, TraceError, TraceReader};

use super::lanes::{LANES_MAX, Lanes};
use super::on_name::{is_still, on_either};
use super::recorded::{Arrivals, RecordedOp};
use super::touched::{CREATE, EVENT, LOCK, end_of_file, touch};
use super::tree::{KeptTree, link_target, path};
use crate::workload::kind::Cost;
use stackrace_base::unit;

/// The kernel moves no more at once (`MAX_RW_COUNT`).
const MOVED_MAX: u64 = 0x7fff_f000;
/// Most bytes of whole paths: all of them are in memory.
const PATHS_MAX: usize = 512 << 20;
/// Flag of `unlinkat` that a directory goes (`AT_REMOVEDIR`).
const REMOVE_DIR: u64 = 0x200;

/// A trace as it is replayed.
pub(super) struct Compiled {
    pub(super) plan: ReplayPlan,
    pub(super) tree: KeptTree,
    pub(super) cost: Cost,
    pub(super) calls: u64,
    pub(super) recorded: BTreeMap<Op, RecordedOp>,
    /// From the first operation to the end of the last one, less what recording took.
    pub(super) recorded_ns: u64,
    /// Why it cannot be replayed.
    pub(super) refused: Option<String>,
}

/// A thread while its operations go by. Times are those of the recording.
#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    /// End of its last operation that ended its gap.
    end: u64,
    /// Processor time since then that is in steps already.
    spent: u64,
    /// It is known when it began.
    begun: bool,
    /// The fork that it begins with.
    fork: Option<u64>,
    /// The thread of the replay that makes its calls; none before its first step.
    lane: Option<u32>,
    steps: u64,
}

/// Space that a name takes.
#[derive(Debug, Clone, Copy, Default)]
struct Grown {
    before: u64,
    end: u64,
    written: u64,
    /// Its size after the operations so far.
    size: u64,
}

struct Compiling<'a> {
    moved: &'a HashSet<u32>,
    arrivals: Arrivals,
    /// What recording took of each operation, ns.
    each_ns: u64,
    threads: Vec<Thread>,
    lanes: Lanes,
    steps: Vec<Vec<ReplayStep>>,
    order: OrderBuilder,
    numbers: HashMap<u32, u32>,
    names: Vec<std::ffi::CString>,
    /// Bytes of these names.
    path_bytes: usize,
    held: Vec<HeldFile>,
    warm: Vec<WarmPart>,
    /// Open files that were ever locked as a whole.
    locked: HashSet<u32>,
    /// Names of open files, and the highest number of one.
    files: HashMap<u32, u32>,
    highest: u32,
    grown: HashMap<u32, Grown>,
    made: u64,
    moved_bytes: u64,
    at: u64,
    calls: u64,
    recorded: BTreeMap<Op, RecordedOp>,
    recorded_ns: u64,
    refused: Option<String>,
}

/// Makes steps of a trace; `each_ns`: what recording took of each operation.
///
/// # Errors
/// The trace is refused.
pub(super) fn compile<R: Read>(
    mut from: TraceReader<R>,
    moved: &HashSet<u32>,
    arrivals: Arrivals,
    each_ns: u64,
) -> Result<Compiled, TraceError> {
    let mut tree = KeptTree::default();
    let mut compiling = Compiling {
        moved,
        arrivals,
        each_ns,
        threads: Vec::new(),
        lanes: Lanes::default(),
        steps: Vec::new(),
        order: OrderBuilder::default(),
        numbers: HashMap::new(),
        names: Vec::new(),
        path_bytes: 0,
        held: Vec::new(),
        warm: Vec::new(),
        locked: HashSet::new(),
        files: HashMap::new(),
        highest: 0,
        grown: HashMap::new(),
        made: 0,
        moved_bytes: 0,
        at: 0,
        calls: 0,
        recorded: BTreeMap::new(),
        recorded_ns: 0,
        refused: None,
    };
    let mut part = 0;
    while let Some(next) = from.next_part()? {
        match next {
            Part::Tree(entries) => {
                for entry in &entries {
                    tree.add(from.names(), entry);
                    let grown = compiling.grown.entry(entry.path).or_default();
                    (grown.before, grown.size) = (entry.size, entry.size);
                }
            }
            Part::Resident(ranges) => {
                for range in ranges {
                    let name = compiling.named(from.names(), range.path);
                    compiling.warm.push(WarmPart {
                        name,
                        offset: range.offset,
                        length: range.length,
                    });
                }
            }
            Part::Operations(operations) => {
                for operation in &operations {
                    compiling.take(operation, from.names());
                    compiling.at += 1;
                }
            }
            Part::Ending(_) => {}
        }
        // Few bytes of a trace may be many of paths, if each stands in the one before.
        if tree.path_bytes + compiling.path_bytes > PATHS_MAX {
            let most = unit::bytes(PATHS_MAX as u64);
            let why = format!("its paths have more than {most}");
            return Err(TraceError::Impossible { part, why });
        }
        part += 1;
    }
    Ok(compiling.finish(tree))
}

impl Compiling<'_> {
    fn finish(mut self, tree: KeptTree) -> Compiled {
        let grown = self.grown.values().map(|grown| {
            let longer = grown.end.saturating_sub(grown.before);
            longer.min(grown.written)
        });
        let grown = grown.fold(0, u64::saturating_add);
        let longest = self.threads.iter().map(|thread| thread.steps).max();
        // No thread waited longer for the recorder than the one that had the most to record.
        let recorder_ns = self.each_ns.saturating_mul(longest.unwrap_or(0));
        self.check_size();
        if self.lanes.are_too_many() {
            let most = unit::count(LANES_MAX.into());
            self.refused.get_or_insert_with(|| {
                format!("more than {most} of its threads lived at the same time")
            });
        }
        let order = self.order.build();
        // Threads without steps have no list of their own.
        self.steps.resize_with(order.threads(), Vec::new);
        let cost = Cost {
            prepare_bytes: tree.bytes,
            measured_bytes: Some(self.moved_bytes),
            disk_bytes: tree.bytes.saturating_add(grown),
            measured_ns: None,
            files: tree.entries() + self.made,
            working_set_bytes: tree.bytes,
        };
        Compiled {
            plan: ReplayPlan {
                names: self.names,
                files: self.highest,
                held: self.held,
                warm: self.warm,
                threads: self.steps,
                order,
            },
            tree,
            cost,
            calls: self.calls,
            recorded: self.recorded,
            recorded_ns: self.recorded_ns.saturating_sub(recorder_ns),
            refused: self.refused,
        }
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        let at = thread as usize;
        // The reader bounds the number of threads, and the summary's check what is replayed.
        if self.threads.len() <= at {
            self.threads.resize(at + 1, Thread::default());
        }
        &mut self.threads[at]
    }

    /// The place of a name in the list of the plan.
    fn named(&mut self, names: &Names, name: u32) -> u32 {
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.path_bytes += names.length(name);
            self.names.push(path(names, name));
        }
        number
    }

    fn take(&mut self, operation: &Operation, names: &Names) {
        self.recorded_ns = self.recorded_ns.max(operation.end());
        let new = operation.handle > self.highest;
        self.highest = self.highest.max(operation.handle);
        match operation.code {
            Code::Held if new => self.hold(operation, names),
            Code::Held => {}
            Code::Begin => {
                let thread = self.thread(operation.thread);
                (thread.begun, thread.end) = (true, operation.start);
            }
            Code::Wake | Code::Fork => self.signal(operation),
            _ => self.call(operation, names),
        }
    }

    fn hold(&mut self, operation: &Operation, names: &Names) {
        let name = self.named(names, operation.path);
        self.files.insert(operation.handle, operation.path);
        self.held.push(HeldFile {
            file: operation.handle,
            name,
            flags: operation.flags as u32,
            position: operation.offset,
        });
    }

    /// Begins a thread that was there before: what it waited in then began before the recording.
    fn begin(&mut self, thread: u32, at: u64) -> u64 {
        let thread = self.thread(thread);
        if thread.begun {
            return 0;
        }
        (thread.begun, thread.end) = (true, at);
        at
    }

    /// The thread of the replay that makes the calls of a recorded one.
    fn lane(&mut self, thread: u32) -> usize {
        let Thread { lane, fork, .. } = *self.thread(thread);
        let lane = lane.unwrap_or_else(|| self.lanes.begin(fork.is_none()));
        self.thread(thread).lane = Some(lane);
        lane as usize
    }

    fn push(&mut self, thread: u32, step: ReplayStep, mut touches: Vec<Touch>) {
        let at = self.lane(thread);
        self.thread(thread).steps += 1;
        // Whatever it does first comes after the fork; the rest follows by itself.
        if let Some(fork) = self.thread(thread).fork.take() {
            touches.push(Touch {
                thing: EVENT | fork,
                changes: false,
            });
        }
        if self.steps.len() <= at {
            self.steps.resize_with(at + 1, Vec::new);
        }
        self.steps[at].push(step);
        self.order.step(at as u32, &touches);
    }

    /// A wake or a fork, inside of a call that follows it.
    fn signal(&mut self, operation: &Operation) {
        let sleep_ns = self.begin(operation.thread, operation.start);
        let each_ns = self.each_ns;
        let thread = self.thread(operation.thread);
        let passed = operation.end().saturating_sub(thread.end);
        let off = operation.gap_queued + operation.gap_blocked;
        let off = off.saturating_add(operation.queued + operation.blocked);
        let off = off.saturating_add(each_ns);
        let computed = passed.saturating_sub(off);
        let compute_ns = computed.saturating_sub(thread.spent);
        // The call that it stands in names the same gap again.
        thread.spent = thread.spent.max(computed);
        let step = ReplayStep {
            compute_ns,
            sleep_ns,
            ..ReplayStep::of(ReplayCall::Nothing, 0)
        };
        let event = Touch {
            thing: EVENT | self.at,
            changes: true,
        };
        self.push(operation.thread, step, vec![event]);
        if operation.code == Code::Fork {
            let (end, fork) = (operation.end(), Some(self.at));
            let child = operation.result.try_into().unwrap_or(0);
            // A damaged trace may name a thread that goes on already.
            let child = self.thread(child);
            if !child.begun {
                *child = Thread {
                    end,
                    begun: true,
                    fork,
                    ..Thread::default()
                };
            }
        }
    }

    fn call(&mut self, operation: &Operation, names: &Names) {
        let began = self.begin(operation.thread, operation.start);
        let each_ns = self.each_ns;
        let thread = self.thread(operation.thread);
        let gap = operation.start.saturating_sub(thread.end);
        let off = (operation.gap_queued + operation.gap_blocked).saturating_add(each_ns);
        let gap = gap.saturating_sub(off);
        let compute_ns = gap.saturating_sub(thread.spent);
        // What was spent beyond the gap was spent inside of this call.
        let inside_spent = thread.spent.saturating_sub(gap);
        (thread.end, thread.spent) = (thread.end.max(operation.end()), 0);
        let mut step = ReplayStep {
            compute_ns,
            sleep_ns: began,
            ..ReplayStep::of(ReplayCall::Nothing, operation.result)
        };
        let mut touches = Vec::new();
        step.call = self.storage(operation, names);
        if let Some(op) = step.call.op() {
            self.calls += 1;
            self.moved_bytes = self.moved_bytes.saturating_add(operation.moved());
            // Whom a lock waited for comes before it here: that is no time of its own.
            let waited = match operation.code {
                Code::LockWhole => operation.blocked,
                _ => 0,
            };
            let took = operation.duration.saturating_sub(waited);
            self.recorded.entry(op).or_default().add(took);
            touch(operation, names, self.moved, &mut touches);
            touches.extend(self.lock(operation));
            let name = self.name_of(operation);
            let size = &mut self.grown.entry(name).or_default().size;
            touches.extend(end_of_file(operation, name, size));
        } else {
            let off = operation.queued.saturating_add(operation.blocked);
            step.after_ns = operation
                .duration
                .saturating_sub(off + inside_spent.min(TIME_LEFT));
            self.waits(operation, &mut step, &mut touches);
        }
        self.push(operation.thread, step, touches);
        if operation.code == Code::Exit {
            // It keeps its place: a thread that goes still wakes the one that waits for its end.
            let lane = self.lane(operation.thread);
            self.lanes.end(lane as u32);
        }
    }

    /// The lock of a file that an operation touches: each use of an open file that was locked may be the last one, which
    /// gives the lock up.
    fn lock(&mut self, operation: &Operation) -> Option<Touch> {
        let changes = matches!(operation.code, Code::LockWhole | Code::Close);
        if operation.code == Code::LockWhole {
            self.locked.insert(operation.handle);
        }
        let name = self.files.get(&operation.handle);
        let name = name.filter(|_| self.locked.contains(&operation.handle))?;
        Some(Touch {
            thing: LOCK | u64::from(*name),
            changes,
        })
    }

    /// What a thread waits for in a call that is not made.
    fn waits(&self, operation: &Operation, step: &mut ReplayStep, touches: &mut Vec<Touch>) {
        // Nothing of a thread follows its end.
        if operation.code == Code::Exit {
            step.after_ns = 0;
            return;
        }
        if operation.cause > 0 && !operation.code.is_storage() {
            // The reader has no cause before the first operation.
            let wake = self.at.saturating_sub(operation.cause.into());
            touches.push(Touch {
                thing: EVENT | wake,
                changes: false,
            });
        } else if operation.code == Code::Other && self.arrivals == Arrivals::Open {
            step.arrives_ns = (operation.blocked > 0).then(|| operation.end());
        } else {
            // No longer than it took: the wait may have begun before the recording.
            let waited = operation.blocked.min(operation.duration);
            step.sleep_ns = step.sleep_ns.saturating_add(waited);
        }
    }

    /// The name of what an operation works on; 0: none. Of a file that was opened by several names the one that was used.
    fn name_of(&self, operation: &Operation) -> u32 {
        match operation.path {
            0 => self.files.get(&operation.handle).copied().unwrap_or(0),
            name => name,
        }
    }

    /// Counts the space that an operation takes.
    fn grow(&mut self, operation: &Operation, end: u64, written: u64) {
        let name = self.name_of(operation);
        let grown = self.grown.entry(name).or_default();
        grown.end = grown.end.max(end);
        grown.written = grown.written.saturating_add(written);
    }

    /// The call of an operation; nothing where it is not made.
    fn storage(&mut self, operation: &Operation, names: &Names) -> ReplayCall {
        match operation.code {
            // `sync` has neither a file nor a name.
            Code::SyncFs => ReplayCall::SyncAll,
            Code::StatFs => ReplayCall::StatFs,
            _ if operation.handle == 0 || operation.path > 0 => self.on_name(operation, names),
            _ => match self.on_file(operation) {
                ReplayCall::Nothing => self.on_name(operation, names),
                call => call,
            },
        }
    }

    /// A call on an open file alone.
    fn on_file(&mut self, operation: &Operation) -> ReplayCall {
        let (file, offset, length) = (operation.handle, operation.offset, operation.length);
        let flags = operation.flags as u32;
        match operation.code {
            Code::Read | Code::ReadAt | Code::Write | Code::WriteAt => self.transfer(operation),
            Code::Fsync => ReplayCall::Fsync { file },
            Code::Fdatasync => ReplayCall::Fdatasync { file },
            Code::SyncRange => ReplayCall::SyncRange {
                file,
                offset,
                length,
                flags,
            },
            Code::Close => ReplayCall::Close { file },
            Code::Seek => {
                // Offsets are signed; the trace has their bits.
                let (offset, whence) = (offset as i64, flags);
                ReplayCall::Seek {
                    file,
                    offset,
                    whence,
                }
            }
            Code::List => ReplayCall::List { file, length },
            Code::LockWhole => ReplayCall::LockWhole {
                file,
                operation: flags,
            },
            Code::Advise => ReplayCall::Advise {
                file,
                offset,
                length,
                advice: flags,
            },
            Code::Allocate => {
                // A hole that is punched takes no space; it is counted, as the bound may be too high but never too low.
                // So is what failed: with more room it may not.
                self.grow(operation, offset.saturating_add(length), length);
                ReplayCall::Allocate {
                    file,
                    mode: flags,
                    offset,
                    length,
                }
            }
            Code::Map => {
                self.check_mapping(operation);
                ReplayCall::Map {
                    file,
                    offset,
                    length: length.min(MAPPED_MAX),
                }
            }
            _ => ReplayCall::Nothing,
        }
    }

    fn transfer(&mut self, operation: &Operation) -> ReplayCall {
        let (file, offset) = (operation.handle, operation.offset);
        let length = operation.length.min(MOVED_MAX);
        if matches!(operation.code, Code::Write | Code::WriteAt) {
            // Also what was not written when recorded: it is asked for again, and there may be room for it here.
            self.grow(operation, offset.saturating_add(length), length);
            self.check_flags(operation);
        }
        match operation.code {
            Code::Read => ReplayCall::Read { file, length },
            Code::ReadAt => ReplayCall::ReadAt {
                file,
                offset,
                length,
            },
            Code::Write => ReplayCall::Write { file, length },
            _ => ReplayCall::WriteAt {
                file,
                offset,
                length,
            },
        }
    }

    /// A call on a name, or on a name or a file.
    fn on_name(&mut self, operation: &Operation, names: &Names) -> ReplayCall {
        let (length, mode) = (operation.length, operation.flags as u32);
        let on = match (operation.path, operation.handle) {
            (0, 0) => return ReplayCall::Nothing,
            (0, file) => On::File(file),
            (name, _) if is_still(operation) => On::Link(self.named(names, name)),
            (name, _) => On::Name(self.named(names, name)),
        };
        let name = match on {
            On::Name(name) | On::Link(name) => name,
            On::File(_) => return on_either(operation, on),
        };
        match operation.code {
            Code::Open => {
                let made = operation.flags & CREATE != 0 && operation.result >= 0;
                self.made += u64::from(made);
                self.files.insert(operation.handle, operation.path);
                ReplayCall::Open {
                    name,
                    flags: mode,
                    mode: length as u32,
                    file: operation.handle,
                }
            }
            Code::Access => ReplayCall::Access { name, mode },
            Code::ReadLink => ReplayCall::ReadLink { name },
            Code::MakeDir => {
                self.made += 1;
                ReplayCall::MakeDir { name, mode }
            }
            Code::Unlink if operation.flags & REMOVE_DIR != 0 => ReplayCall::RemoveDir { name },
            Code::RemoveDir => ReplayCall::RemoveDir { name },
            Code::Unlink => ReplayCall::Unlink { name },
            Code::Rename | Code::Link if operation.second > 0 => {
                let second = self.named(names, operation.second);
                match operation.code {
                    Code::Rename => ReplayCall::Rename {
                        name,
                        second,
                        flags: mode,
                    },
                    _ => ReplayCall::Link { name, second },
                }
            }
            Code::SymLink => {
                self.made += 1;
                let target = self.names.len() as u32;
                let leads = link_target(names, operation.path, operation.second);
                self.names.push(leads);
                ReplayCall::SymLink { name, target }
            }
            // A directory that a process works in: its name is looked up, and no more.
            Code::ChangeDir => ReplayCall::Stat { on },
            _ => on_either(operation, on),
        }
    }
}

/// Longest processor time inside of a call that is taken off: sums of two do not overflow.
const TIME_LEFT: u64 = 1 << 60;
