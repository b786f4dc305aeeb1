//! Events of the kernel as ordered operations: threads and files numbered, names hashed, wakes found.

use std::collections::HashMap;

use super::call::{Call, Code, by_number};
use super::names::{Hashing, NameKey, Names, ROOT};
use super::operation::Operation;
use super::raw::{RawEvent, RawKind};

/// Bits of a mode that say what a file is, and their values (inode(7)).
const KIND: u16 = 0o170_000;
const REGULAR: u16 = 0o100_000;
const DIRECTORY: u16 = 0o040_000;
/// The working directory, where a descriptor may stand.
const WORKING: i32 = -100;

/// The directory and the machine of a recording.
#[derive(Debug)]
pub struct Recorded {
    /// Absolute path of the directory, without links.
    pub directory: Vec<u8>,
    /// Its file system, as the kernel numbers it.
    pub device: u32,
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
    /// Inodes of directories, by their names.
    directories: HashMap<u32, u64>,
    /// File system and inode of the working directory of a process.
    working: HashMap<u32, (u32, u64)>,
    next_thread: u32,
    next_file: u32,
    operations: u64,
    unresolved: u64,
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
            working: HashMap::new(),
            next_thread: 0,
            next_file: 0,
            operations: 0,
            unresolved: 0,
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

    /// Name that a link leads to; none: it leaves the directory.
    pub fn target(&mut self, link: u32, target: &[u8]) -> Option<u32> {
        if target.starts_with(b"/") {
            return match self.absolute(target) {
                Place::Below(name) => Some(name),
                _ => None,
            };
        }
        let (parent, _) = self.hashing.names.last(link)?;
        self.hashing.path(parent, target)
    }

    /// Names the directory itself.
    pub fn root(&mut self, inode: u64) {
        self.learn(inode, ROOT, true);
    }

    fn learn(&mut self, inode: u64, name: u32, directory: bool) {
        self.inodes.insert(inode, name);
        if directory {
            self.directories.insert(name, inode);
        }
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
                // Pipes, sockets and terminals are no storage.
                let is_file = [REGULAR, DIRECTORY].contains(&(event.mode & KIND));
                let named = call.is_some_and(|call| call.role.name > 0);
                match is_file || named {
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
        let (mut handle, mut path, mut second) = (0, 0, 0);
        let role = call.role;
        if role.opens && event.result >= 0 {
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
            handle = self.handle(event, out)?;
        } else if role.closes {
            handle = self.files.get(&event.file).copied().flatten()?;
        }
        let mut operation = self.operation(call.code, event);
        operation.handle = handle;
        operation.path = path;
        operation.second = second;
        operation.offset = event.argument(call.offset);
        operation.length = event.argument(call.length);
        operation.flags = event.argument(call.flags) | call.implied;
        let moved = event.result.max(0).unsigned_abs();
        match call.code {
            Code::Read | Code::Write => {
                operation.offset = event.position.saturating_sub(moved);
            }
            Code::Map => operation.flags |= event.argument(4) << 32,
            _ => {}
        }
        // Several buffers: only their sum is known, by what was moved.
        let buffers = matches!(
            call.code,
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
        let place = match event.device == self.recorded.device && event.file != 0 {
            true => self.place(event.name, at, event),
            false => Place::Elsewhere,
        };
        let name = match place {
            Place::Below(name) => Some(name),
            // By a link, or by another mount.
            _ if event.device == self.recorded.device => self.inodes.get(&event.inode).copied(),
            _ => None,
        };
        let Some(name) = name else {
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
    fn handle(&mut self, event: &RawEvent<'_>, out: &mut Vec<Operation>) -> Option<u32> {
        if event.file == 0 || event.device != self.recorded.device {
            return None;
        }
        if let Some(known) = self.files.get(&event.file) {
            return *known;
        }
        let Some(name) = self.inodes.get(&event.inode).copied() else {
            self.files.insert(event.file, None);
            return None;
        };
        self.next_file += 1;
        let moved = event.result.max(0).unsigned_abs();
        let thread = self.thread(event.thread).number;
        let start = event.start.saturating_sub(self.recorded.began);
        // Its position is that before this call: what was moved is taken off.
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

    /// Where the names of a call lead.
    fn places(&mut self, call: &Call, event: &RawEvent<'_>) -> [Option<Place>; 2] {
        let first = self.place(event.name, call, event);
        let second = (call.role.second > 0).then(|| match event.second {
            // No name that the call looks up: a link may lead to what is not there.
            target if call.code == Code::SymLink => match (first, target) {
                (Place::Below(link), Some(target)) => self
                    .target(link, target)
                    .map_or(Place::Elsewhere, Place::Below),
                _ => Place::Elsewhere,
            },
            // The second directory may be another one; only the working directory is sure to be the same.
            Some(name) if call.role.at && !name.starts_with(b"/") => {
                let same = event.argument(call.role.second - 1) as i32
                    == event.argument(call.role.name - 1) as i32;
                match same {
                    true => self.place(Some(name), call, event),
                    false => Place::Unknown,
                }
            }
            name => self.place(name, call, event),
        });
        let places = [Some(first), second];
        // It is counted, as it makes the trace less than whole.
        if places.contains(&Some(Place::Unknown)) {
            self.unresolved += 1;
        }
        places
    }

    fn place(&mut self, name: Option<&[u8]>, call: &Call, event: &RawEvent<'_>) -> Place {
        let Some(name) = name else {
            return Place::Unknown;
        };
        if name.starts_with(b"/") {
            return self.absolute(name);
        }
        let role = call.role;
        let relative_to = event.argument(role.name.saturating_sub(1)) as i32;
        let (mut device, mut base) = (event.base_device, event.base);
        if !role.at || relative_to == WORKING {
            let before = self.working.insert(event.process, (device, base));
            if call.code == Code::ChangeDir {
                // The kernel side saw the new one.
                (device, base) = before.unwrap_or_default();
            }
        }
        if device == self.recorded.device
            && let Some(from) = self.inodes.get(&base).copied()
        {
            return match self.hashing.path(from, name) {
                Some(name) => Place::Below(name),
                // It leaves the directory.
                None => Place::Elsewhere,
            };
        }
        let mut above = self.recorded.above.iter();
        let above = above.find(|above| (above.device, above.inode) == (device, base));
        match above.map(|above| [&above.path, &b"/"[..], name].concat()) {
            Some(name) => self.absolute(&name),
            None => Place::Elsewhere,
        }
    }

    /// Where an absolute name leads.
    fn absolute(&mut self, name: &[u8]) -> Place {
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in name.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        let directory = self.recorded.directory.split(|byte| *byte == b'/');
        let directory = directory.filter(|part| !part.is_empty());
        let mut below = parts.into_iter();
        for part in directory {
            if below.next() != Some(part) {
                return Place::Elsewhere;
            }
        }
        let name = below.try_fold(ROOT, |at, part| self.hashing.part(at, part));
        name.map_or(Place::Unknown, Place::Below)
    }

    /// Learns what a call did to the names of directories.
    fn moved(&mut self, code: Code, event: &RawEvent<'_>, path: u32, second: u32) {
        if event.result < 0 {
            return;
        }
        match code {
            Code::ChangeDir if path > 0 => {
                self.learn(event.base, path, true);
                let new = (event.base_device, event.base);
                self.working.insert(event.process, new);
            }
            Code::Rename => {
                // A file needs no care: it is known by its address when it is open, and by its new name later.
                let Some(inode) = self.directories.remove(&path) else {
                    return;
                };
                // Directories in it have other names now, which are learnt when they are opened.
                let within = |names: &Names, mut name: u32| {
                    while let Some((parent, _)) = names.last(name) {
                        if parent == path {
                            return true;
                        }
                        name = parent;
                    }
                    false
                };
                let names = &self.hashing.names;
                self.directories.retain(|name, _| !within(names, *name));
                self.inodes.retain(|_, name| !within(names, *name));
                self.inodes.remove(&inode);
                if second > 0 {
                    self.learn(inode, second, true);
                }
            }
            _ => {}
        }
    }
}
