//! Data that a workload only reads, or writes over where they lie: laid out once per standing stack.
//!
//! They are looked at before each trial that uses them, and laid out anew where they are not what they
//! were. They are a convenience: where room gets short, they go first.
//!
//! A workload with `same-data` works on those of the workload before it, in the directory of the first of
//! them. They are gone after the last.

use std::path::{Path, PathBuf};

use super::trial::{Before, Trial};
use stackrace_layers::stack::file_data;
use stackrace_load::workload::{DataUse, KeptData};

/// File systems that no layer makes and that write over a block where it lies.
const IN_PLACE: &[&str] = &["vfat"];

/// Beginnings of the names of disks that have no cache in this machine's memory.
const PLAIN_DISKS: &[&str] = &["sd", "vd", "xvd", "nvme", "mmcblk"];

/// The data of a workload that makes one large file: no names and sizes of many need be forgotten.
const ONE_FILE: u64 = 1;

/// Returns true if no memory of this machine caches a disk's blocks; the kernel's files are read with `read`.
fn is_plain(name: &str, read: impl Fn(&Path) -> Option<String>) -> bool {
    let dio = format!("/sys/block/{name}/loop/dio");
    let direct = |text: String| text.trim() == "1";
    PLAIN_DISKS.iter().any(|begin| name.starts_with(begin))
        // Only a loop device has this file. With direct I/O it goes past the cache of the file it is on.
        || read(Path::new(&dio)).is_some_and(direct)
}

impl Trial<'_> {
    /// The directory of its data on the stack.
    pub(super) fn directory(&self) -> PathBuf {
        self.directory_of(self.data_of())
    }

    /// The directory of a workload's own data.
    fn directory_of(&self, workload: usize) -> PathBuf {
        let directory = self.standing.directory();
        directory.join(format!(".stackrace-{workload}"))
    }

    /// The workload whose data it works on, which may be its own.
    pub(super) fn data_of(&self) -> usize {
        self.configured().data_of(self.workload)
    }

    /// Returns true if the workload after it works on the data that it leaves.
    fn passes_data_on(&self) -> bool {
        let next = self.configured().workloads.get(self.workload + 1);
        self.knows_its_data() && next.is_some_and(|next| next.uses_data_before())
    }

    /// Returns true if what lies on the stack can be compared with what it was: not on other machines, nor on bare
    /// devices, nor after a pass that wears the stack in.
    fn knows_its_data(&self) -> bool {
        self.standing.others().is_empty()
            && self.standing.bare().is_none()
            && self.executor.clients.is_none()
            && matches!(self.before, Before::Nothing)
    }

    /// The data that the next trial finds, of those that this one has kept or leaves.
    pub(super) fn data_left(&self, directory: &Path, kept: Option<KeptData>) -> Option<KeptData> {
        if self.passes_data_on() {
            return KeptData::of(directory, true).ok();
        }
        kept.filter(|_| !self.workload().uses_data_before())
    }

    /// The data an earlier trial left for this one, if they are still what they were; else nothing of
    /// them is left.
    pub(super) fn take_data(&self) -> Option<KeptData> {
        let found = self.data.borrow_mut().remove(&self.data_of());
        if let Some(data) = found {
            let directory = self.directory();
            // What was left by trials that did not come to the last one is in the way of a new file.
            if self.workload().data_use() != DataUse::Spent && data.is_in(&directory) {
                return Some(data);
            }
            // What cannot be removed is found when the directory is made.
            let _ = self.executor.host.remove_tree(&directory);
        }
        self.make_room();
        None
    }

    /// Data just laid out, if they may stay for the next trial.
    pub(super) fn data_to_keep(&self, directory: &Path) -> Option<KeptData> {
        let stays = self.keeps && self.knows_its_data();
        // What is written over has other content each time: then sizes alone are compared.
        let sampled = match self.workload().data_use() {
            DataUse::Read => true,
            DataUse::Rewritten if self.in_place() => false,
            DataUse::Rewritten | DataUse::Spent => return None,
        };
        if !stays || self.room().is_none_or(|(free, largest)| free < largest) {
            return None;
        }
        KeptData::of(directory, sampled).ok()
    }

    fn in_place(&self) -> bool {
        let of = |name: &str| file_data(name).in_place || IN_PLACE.contains(&name);
        self.file_system().is_some_and(|name| of(&name))
    }

    fn file_system(&self) -> Option<String> {
        let mount = self.executor.host.mount_of(self.standing.directory());
        mount.ok().map(|mount| mount.file_system)
    }

    /// Returns true if nothing but the pages of the trial's own files could answer from memory: large files on a plain
    /// disk of this machine. Dropping all caches would cost time, and others theirs.
    pub(super) fn own_files_suffice(&self) -> bool {
        let devices = self.standing.devices();
        let host = self.executor.host;
        let plain = |name: &String| is_plain(name, |path| host.read_text(path).ok());
        let large = self.workload().data_use() != DataUse::Spent
            || self.workload().cost().files == ONE_FILE;
        large
            && self.standing.others().is_empty()
            && !devices.is_empty()
            && devices.iter().all(plain)
            && self
                .file_system()
                .is_some_and(|name| file_data(&name).page_cache_alone)
    }

    /// Bytes free on the stack, and those its largest trial needs, with a quarter to spare.
    fn room(&self) -> Option<(u64, u64)> {
        let host = self.executor.host;
        let free = host.free_bytes(self.standing.directory()).ok()?;
        let needed = self.configured().data_bytes();
        Some((free, needed.saturating_add(needed / 4)))
    }

    /// Removes what earlier trials left where this one may need the room.
    fn make_room(&self) {
        if self.room().is_some_and(|(free, largest)| free >= largest) {
            return;
        }
        for workload in std::mem::take(&mut *self.data.borrow_mut()).into_keys() {
            // What stays in the way makes the trial fail for want of room, which says so.
            let _ = (self.executor.host).remove_tree(&self.directory_of(workload));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_device_is_plain_only_where_it_goes_past_the_cache() {
        let with = |text: &'static str| move |_: &Path| Some(text.to_owned());
        assert!(is_plain("loop3", with("1\n")));
        assert!(!is_plain("loop3", with("0\n")));
        assert!(!is_plain("loop3", |_| None));
        assert!(is_plain("vda1", |_| None));
        assert!(!is_plain("dm-0", |_| None));
    }
}
