//! Where the names of calls lead, and what calls do to names.

use super::super::call::{Call, Code, NO_FOLLOW};
use super::super::names::{Names, NoName, ROOT};
use super::super::raw::RawEvent;
use super::{Compiler, KIND, LINK, Place, WORKING};

/// Flag of `renameat2` that two names change places (`RENAME_EXCHANGE`).
const EXCHANGE: u64 = 2;

impl Compiler {
    /// Name that a link leads to; none: it leaves the directory.
    pub fn target(&mut self, link: u32, target: &[u8]) -> Option<u32> {
        let place = match (target.starts_with(b"/"), self.hashing.names.last(link)) {
            (true, _) => self.absolute(target),
            (false, Some((parent, _))) => self.walk(parent, target),
            (false, None) => Place::Elsewhere,
        };
        match place {
            Place::Below(name) => Some(name),
            // What is named through it is elsewhere, too.
            _ => {
                self.leaving.insert(link);
                None
            }
        }
    }

    pub(super) fn learn(&mut self, inode: u64, name: u32, directory: bool) {
        self.inodes.insert(inode, name);
        self.removed.remove(&inode);
        match directory {
            true => self.directories.insert(name, inode),
            false => self.plain.insert(name, inode),
        };
    }

    /// Where the names of a call lead.
    pub(super) fn places(&mut self, call: &Call, event: &RawEvent<'_>) -> [Option<Place>; 2] {
        let first = self.place(event.name, call, event);
        let second = (call.role.second > 0).then(|| match event.second {
            // No name that the call looks up: a link may lead to what is not there.
            target if call.code == Code::SymLink => match (first, target) {
                (Place::Below(link), Some(target)) if event.result >= 0 => self
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

    /// Where a name leads; one that is a link out of the directory leads elsewhere, unless the link itself is meant.
    pub(super) fn place(
        &mut self,
        name: Option<&[u8]>,
        call: &Call,
        event: &RawEvent<'_>,
    ) -> Place {
        let found = match name {
            Some(name) if name.starts_with(b"/") => self.absolute(name),
            Some(name) => self.relative(name, call, event),
            // The descriptor itself is meant (`futimens`): the kernel side saw what it is of.
            None if call.role.at && event.argument(call.role.name) == 0 => {
                let here = event.base_device == self.recorded.device;
                let known = here.then(|| self.inodes.get(&event.base)).flatten();
                known.map_or(Place::Elsewhere, |name| Place::Below(*name))
            }
            None => Place::Unknown,
        };
        match found {
            Place::Below(name) if self.leaving.contains(&name) && follows(call, event) => {
                Place::Elsewhere
            }
            found => found,
        }
    }

    fn relative(&mut self, name: &[u8], call: &Call, event: &RawEvent<'_>) -> Place {
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
            return self.walk(from, name);
        }
        let mut above = self.recorded.above.iter();
        let above = above.find(|above| (above.device, above.inode) == (device, base));
        match above.map(|above| [&above.path, &b"/"[..], name].concat()) {
            Some(name) => self.absolute(&name),
            None => Place::Elsewhere,
        }
    }

    /// Where a path leads from a directory.
    fn walk(&mut self, from: u32, path: &[u8]) -> Place {
        match self.hashing.path(from, path, &self.leaving) {
            Ok(name) => Place::Below(name),
            Err(NoName::Leaves) => Place::Elsewhere,
            Err(NoName::Full) => Place::Unknown,
        }
    }

    /// Where an absolute name leads.
    fn absolute(&mut self, name: &[u8]) -> Place {
        let named = parts(name);
        let mut directories = self.recorded.directories.iter();
        let below = directories.find_map(|directory| named.strip_prefix(&parts(directory)[..]));
        match below.map(|below| below.join(&b'/')) {
            Some(below) => self.walk(ROOT, &below),
            None => Place::Elsewhere,
        }
    }

    /// Learns what a call did to names.
    pub(super) fn moved(&mut self, code: Code, event: &RawEvent<'_>, path: u32, second: u32) {
        if event.result < 0 {
            return;
        }
        match code {
            Code::ChangeDir if path > 0 => {
                self.learn(event.base, path, true);
                let new = (event.base_device, event.base);
                self.working.insert(event.process, new);
            }
            Code::Unlink | Code::RemoveDir => self.removed(path),
            Code::Link if second > 0 => {
                if let Some(number) = self.plain.get(&path).copied() {
                    self.learn(number, second, false);
                }
            }
            Code::Rename => {
                let swaps = self.is_exchange(event);
                let [one, other] = [path, second].map(|name| self.taken(name));
                self.renamed(one, second);
                match swaps {
                    true => self.renamed(other, path),
                    // What it replaced is gone, and its number comes back.
                    false if other.number != one.number => self.forget(other.number, second),
                    false => {}
                }
            }
            _ => {}
        }
    }

    fn is_exchange(&self, event: &RawEvent<'_>) -> bool {
        let call = self.calls.get(usize::from(event.call)).copied().flatten();
        call.is_some_and(|call| event.argument(call.flags) & EXCHANGE != 0)
    }

    /// A name is gone: a file that is made later may have the number of what it named.
    fn removed(&mut self, name: u32) {
        let gone = self.taken(name);
        self.forget(gone.number, name);
    }

    fn forget(&mut self, number: Option<u64>, name: u32) {
        let Some(number) = number else {
            return;
        };
        // Another name of the same file may be known.
        if self.inodes.get(&number) == Some(&name) {
            self.inodes.remove(&number);
            // It may be open from before the recording.
            self.removed.insert(number, name);
        }
    }

    /// Takes a name from what it names, and from all below it.
    fn taken(&mut self, name: u32) -> Taken {
        let mut taken = Taken {
            number: self.plain.remove(&name),
            leaves: self.leaving.remove(&name),
            is_directory: false,
        };
        let Some(number) = self.directories.remove(&name) else {
            return taken;
        };
        (taken.number, taken.is_directory) = (Some(number), true);
        // Directories in it have other names now, which are learnt when they are opened.
        let within = |names: &Names, mut below: u32| {
            while let Some((parent, _)) = names.last(below) {
                if parent == name {
                    return true;
                }
                below = parent;
            }
            false
        };
        let names = &self.hashing.names;
        self.directories.retain(|below, _| !within(names, *below));
        self.plain.retain(|below, _| !within(names, *below));
        self.inodes.retain(|_, below| !within(names, *below));
        taken
    }

    /// What was taken from one name has another one now; 0: it left the directory.
    fn renamed(&mut self, taken: Taken, name: u32) {
        if taken.leaves && name > 0 {
            self.leaving.insert(name);
        }
        match taken.number {
            Some(number) if name > 0 => self.learn(number, name, taken.is_directory),
            Some(number) => {
                self.inodes.remove(&number);
            }
            None => {}
        }
    }
}

/// What a name was given to.
#[derive(Debug, Clone, Copy)]
struct Taken {
    number: Option<u64>,
    is_directory: bool,
    /// It is a link out of the directory.
    leaves: bool,
}

/// The parts of an absolute name.
fn parts(name: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

/// Whether a call is about what a link leads to, and not about the link itself.
fn follows(call: &Call, event: &RawEvent<'_>) -> bool {
    match call.code {
        Code::Unlink | Code::RemoveDir | Code::MakeDir | Code::ReadLink => false,
        Code::Rename | Code::Link | Code::SymLink => false,
        Code::Open => event.mode & KIND != LINK,
        _ => (event.argument(call.flags) | call.implied) & NO_FOLLOW == 0,
    }
}
