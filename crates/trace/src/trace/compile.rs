//! Events of the kernel as ordered operations: threads and files numbered, names hashed, wakes found.

mod naming;

use std::collections::{HashMap, HashSet};

use super::call::{Call, Code, by_number};
use super::names::{Hashing, NameKey, Names, ROOT};
use super::operation::Operation;
use super::raw::{RawEvent, RawKind};

/// Bits of a mode that say what a file is, and their values (inode(7)).
const KIND: u16 = 0o170_000;
const REGULAR: u16 = 0o100_000;
const DIRECTORY: u16 = 0o040_000;
const LINK: u16 = 0o120_000;
/// Flag of `open` that a file is made (open(2), on every architecture of Linux that is recorded).
const CREATE: u64 = 0o100;
/// The working directory, where a descriptor may stand.
const WORKING: i32 = -100;

/// The directory and the machine of a recording.
#[derive(Debug)]
pub struct Recorded {
    /// Absolute paths of the directory: without links, and others that lead to it.
    pub directories: Vec<Vec<u8>>,
    /// Its file system, as the kernel numbers it.
    pub device: u32,
    /// A number means several files: Btrfs counts in each subvolume anew.
    pub subvolumes: bool,
    /// The directories that it stands in.
    pub above: Vec<Above>,
    /// When the recording began, ns of the monotonic clock.
    pub began: u64,
    /// Column of the numbers of calls: [`super::ARCHITECTURE`].
    pub architecture: usize,
}

/// A directory that the recorded one stands in: relative names may begin there.
#[derive(Debug)]
pub struct Above {
    /// Its file system, as the kernel numbers it.
    pub device: u32,
    /// Number of the directory in its file system.
    pub inode: u64,
    /// Its absolute path, without links.
    pub path: Vec<u8>,
}

/// A thread as far as it is known.
#[derive(Debug)]
struct Known {
    number: u32,
    /// Time off the processor up to the end of its last operation, ns since the kernel knows it.
    queued: u64,
    blocked: u64,
    /// Last wake: when, and which operation it is.
    woken: Option<(u64, u64)>,
}

/// Where a name leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Below(u32),
    Elsewhere,
    Unknown,
}

/// Makes operations of events, in the order of the ring.
#[derive(Debug)]
pub struct Compiler {
    recorded: Recorded,
    calls: Vec<Option<&'static Call>>,
    hashing: Hashing,
    threads: HashMap<u32, Known>,
    /// Open files by their address; none: it is not below the directory.
    files: HashMap<u64, Option<u32>>,
    /// Names of inodes.
    inodes: HashMap<u64, u32>,
    /// Inodes of directories, and of all else, by their names.
    directories: HashMap<u32, u64>,
    plain: HashMap<u32, u64>,
    /// Names of inodes that were removed: only what was open before may still have such a number.
    removed: HashMap<u64, u32>,
    /// Links that lead out of the directory.
    leaving: HashSet<u32>,
    /// File system and inode of the working directory of a process.
    working: HashMap<u32, (u32, u64)>,
    next_thread: u32,
    next_file: u32,
    operations: u64,
    unresolved: u64,
    elsewhere: u64,
}

impl Compiler {
    /// Begins with what is recorded.
    pub fn new(recorded: Recorded, key: NameKey) -> Self {
        Self {
            calls: by_number(recorded.architecture),
            recorded,
            hashing: Hashing::new(key),
            threads: HashMap::new(),
            files: HashMap::new(),
            inodes: HashMap::new(),
            directories: HashMap::new(),
            plain: HashMap::new(),
            removed: HashMap::new(),
            leaving: HashSet::new(),
            working: HashMap::new(),
            next_thread: 0,
            next_file: 0,
            operations: 0,
            unresolved: 0,
            elsewhere: 0,
        }
    }

    /// The recording begins now, ns of the monotonic clock.
    pub fn begin(&mut self, now: u64) {
        self.recorded.began = now;
    }

    /// Names an entry of the tree: `part` in a directory that was named before. None: there are too many names.
    pub fn entry(&mut self, parent: u32, part: &[u8], inode: u64, directory: bool) -> Option<u32> {
        let number = self.hashing.part(parent, part)?;
        self.learn(inode, number, directory);
        Some(number)
    }

    /// Names an entry whose number is that of another file system, and says nothing here.
    pub fn foreign(&mut self, parent: u32, part: &[u8]) -> Option<u32> {
        self.hashing.part(parent, part)
    }

    /// Names the directory itself.
    pub fn root(&mut self, inode: u64) {
        self.learn(inode, ROOT, true);
    }

    /// The names so far.
    pub fn names(&self) -> &Names {
        &self.hashing.names
    }

    /// How many threads were seen so far.
    pub fn threads(&self) -> u64 {
        u64::from(self.next_thread)
    }

    /// Names that could not be resolved.
    pub fn unresolved(&self) -> u64 {
        self.unresolved
    }

    /// Files that were made on this file system by names that are not below the directory.
    pub fn elsewhere(&self) -> u64 {
        self.elsewhere
    }

    /// Makes operations of an event.
    pub fn event(&mut self, event: &RawEvent<'_>, out: &mut Vec<Operation>) {
        match event.kind {
            RawKind::Call => self.call(event, out),
            RawKind::Wake => self.wake(event, out),
            RawKind::Fork => self.fork(event, out),
            RawKind::Exit => {
                let operation = self.operation(Code::Exit, event);
                self.push(operation, out);
                self.settle(event);
                // The first thread ends with its process, but for rare ones.
                if event.thread == event.process {
                    self.working.remove(&event.process);
                }
            }
        }
    }

    fn push(&mut self, operation: Operation, out: &mut Vec<Operation>) {
        self.operations += 1;
        out.push(operation);
    }

    fn thread(&mut self, id: u32) -> &mut Known {
        let next = &mut self.next_thread;
        self.threads.entry(id).or_insert_with(|| {
            let number = *next;
            *next += 1;
            Known {
                number,
                queued: 0,
                blocked: 0,
                woken: None,
            }
        })
    }

    /// An operation with the times of an event.
    fn operation(&mut self, code: Code, event: &RawEvent<'_>) -> Operation {
        let began = self.recorded.began;
        let known = self.thread(event.thread);
        let before = |all: u64, inside: u64, last: u64| all.saturating_sub(inside + last);
        Operation {
            start: event.start.saturating_sub(began),
            duration: event.end.saturating_sub(event.start.max(began)),
            gap_queued: before(event.queued, event.queued_inside, known.queued),
            gap_blocked: before(event.blocked, event.blocked_inside, known.blocked),
            queued: event.queued_inside,
            blocked: event.blocked_inside,
            result: event.result,
            ..Operation::of(code, known.number, 0)
        }
    }

    /// The next gap of the thread begins here.
    fn settle(&mut self, event: &RawEvent<'_>) {
        let known = self.thread(event.thread);
        known.queued = event.queued;
        known.blocked = event.blocked;
    }

    fn wake(&mut self, event: &RawEvent<'_>, out: &mut Vec<Operation>) {
        let mut operation = self.operation(Code::Wake, event);
        let at = self.operations;
        // The kernel has numbers of threads below 2^22.
        let woken = self.thread(event.result as u32);
        woken.woken = Some((event.end, at));
        operation.result = i64::from(woken.number);
        self.push(operation, out);
    }

    fn fork(&mut self, event: &RawEvent<'_>, out: &mut Vec<Operation>) {
        let child = event.result as u32;
        // The number of a thread that ended comes back.
        self.threads.remove(&child);
        if event.arguments[1] == 2 {
            // The command begins: what starts it is not recorded.
            self.recorded.began = event.end;
            let number = self.thread(child).number;
            self.push(Operation::of(Code::Begin, number, 0), out);
            return;
        }
        let mut operation = self.operation(Code::Fork, event);
        operation.result = i64::from(self.thread(child).number);
        self.push(operation, out);
        let process = event.arguments[0] as u32;
        // A child begins where its parent works.
        if let Some(working) = self.working.get(&event.process).copied() {
            self.working.insert(process, working);
        }
    }

    fn call(&mut self, event: &RawEvent<'_>, out: &mut Vec<Operation>) {
        let call = self.calls.get(usize::from(event.call)).copied().flatten();
        let found = call.and_then(|call| self.storage(call, event, out));
        let mut operation = match found {
            Some(operation) => operation,
            // What neither concerns the directory nor waited is time between two operations.
            None if event.blocked_inside == 0 => return,
            None => {
                // Pipes, sockets and terminals are no storage, even where they have a name.
                let is_file = match event.file {
                    0 => call.is_some_and(|call| call.role.name > 0),
                    _ => is_stored(event.mode),
                };
                match is_file {
                    true => self.operation(Code::OtherFile, event),
                    false => self.operation(Code::Other, event),
                }
            }
        };
        if !operation.code.is_storage() {
            let at = self.operations;
            let woken = self.thread(event.thread).woken;
            // An older wake ended an older wait.
            let woken = woken.filter(|(when, _)| *when >= event.start);
            let before = woken.map_or(0, |(_, wake)| at - wake);
            operation.cause = before.try_into().unwrap_or_default();
        }
        self.push(operation, out);
        self.settle(event);
    }

    /// The operation of a call on something below the directory.
    fn storage(
        &mut self,
        call: &Call,
        event: &RawEvent<'_>,
        out: &mut Vec<Operation>,
    ) -> Option<Operation> {
        let (mut handle, mut path, mut second, mut made) = (0, 0, 0, false);
        let role = call.role;
        let code = call.at_position(event);
        if role.opens && event.result >= 0 {
            made = !self.inodes.contains_key(&event.inode);
            (handle, path) = self.opened(event)?;
        } else if role.name > 0 {
            let places = self.places(call, event);
            [path, second] = places.map(|place| match place {
                Some(Place::Below(name)) => name,
                _ => 0,
            });
            if path == 0 && second == 0 {
                return None;
            }
            self.moved(call.code, event, path, second);
        } else if role.descriptor > 0 {
            handle = self.handle(code, event, out)?;
        } else if role.closes {
            handle = self.files.get(&event.file).copied().flatten()?;
        }
        let mut operation = self.operation(code, event);
        operation.handle = handle;
        operation.path = path;
        operation.second = second;
        operation.offset = event.argument(call.offset);
        operation.length = event.argument(call.length);
        operation.flags = event.argument(call.flags) | call.implied;
        let moved = event.result.max(0).unsigned_abs();
        match code {
            Code::Open if call.hides_flags() && handle > 0 => {
                // Those of the open file: what made it is left out there.
                let makes = if made { CREATE } else { 0 };
                operation.flags = u64::from(event.flags) | makes;
                operation.length = (event.mode & 0o777).into();
            }
            Code::Read | Code::Write => {
                operation.offset = event.position.saturating_sub(moved);
            }
            Code::Map => operation.flags |= event.argument(4) << 32,
            _ => {}
        }
        // Several buffers: only their sum is known, by what was moved.
        let buffers = matches!(
            code,
            Code::Read | Code::ReadAt | Code::Write | Code::WriteAt
        );
        if buffers && call.length == 0 {
            operation.length = moved;
        }
        Some(operation)
    }

    /// A file that was opened: its number and its name; none: it is elsewhere.
    fn opened(&mut self, event: &RawEvent<'_>) -> Option<(u32, u32)> {
        let at = self.calls[usize::from(event.call)]?;
        let here = event.device == self.recorded.device && is_stored(event.mode);
        let place = match here && event.file != 0 {
            true => self.place(event.name, at, event),
            false => Place::Elsewhere,
        };
        let absolute = event.name.is_some_and(|name| name.starts_with(b"/"));
        let name = match place {
            Place::Below(name) => Some(name),
            // By a link, or by another mount. Elsewhere on Btrfs another file may have the same number.
            _ if here && !(self.recorded.subvolumes && absolute) => {
                self.inodes.get(&event.inode).copied()
            }
            _ => None,
        };
        let Some(name) = name else {
            let made = (event.argument(at.flags) | at.implied) & CREATE != 0;
            self.elsewhere += u64::from(here && made);
            // Its next calls are dropped without looking again.
            self.files.insert(event.file, None);
            return None;
        };
        // A name may lead to another file than before.
        self.learn(event.inode, name, event.mode & KIND == DIRECTORY);
        self.next_file += 1;
        self.files.insert(event.file, Some(self.next_file));
        Some((self.next_file, name))
    }

    /// The number of an open file; one that was open before is named first.
    fn handle(
        &mut self,
        code: Code,
        event: &RawEvent<'_>,
        out: &mut Vec<Operation>,
    ) -> Option<u32> {
        if event.file == 0 || event.device != self.recorded.device {
            return None;
        }
        if let Some(known) = self.files.get(&event.file) {
            return *known;
        }
        let known = self.inodes.get(&event.inode);
        let known = known.or_else(|| self.removed.get(&event.inode));
        let known = known.filter(|_| is_stored(event.mode));
        let Some(name) = known.copied() else {
            self.files.insert(event.file, None);
            return None;
        };
        self.next_file += 1;
        // Its position is that before this call: what was moved is taken off.
        let moved = match code {
            Code::Read | Code::Write => event.result.max(0).unsigned_abs(),
            _ => 0,
        };
        let thread = self.thread(event.thread).number;
        let start = event.start.saturating_sub(self.recorded.began);
        let held = Operation {
            handle: self.next_file,
            path: name,
            offset: event.position.saturating_sub(moved),
            flags: event.flags.into(),
            ..Operation::of(Code::Held, thread, start)
        };
        self.push(held, out);
        self.files.insert(event.file, Some(self.next_file));
        Some(self.next_file)
    }
}

/// Whether something is stored, by its mode: pipes, sockets and devices are not, whatever directory they stand in.
fn is_stored(mode: u16) -> bool {
    [REGULAR, DIRECTORY, LINK].contains(&(mode & KIND))
}
