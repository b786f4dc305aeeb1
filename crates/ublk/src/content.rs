//! What a served device holds: memory that is used only where something other than zeros was
//! written, and a file of the host where there is no more memory.

use super::device::{PAGE, ServeError};
use super::room::{ContentRoom, HostPage, ZEROS};
use rustix::mm::{Advice, MapFlags};
use stackrace_system::mapping::Mapping;
use std::collections::BTreeMap;
use std::ops::Range;

/// A part of a range: its page, its first byte, and its place in the range.
type Part = (u64, u64, Range<usize>);

/// The content of a device.
pub(super) struct StoredContent {
    memory: Mapping,
    bytes: u64,
    /// One bit for each page: whether it is kept in memory. A page that is kept nowhere holds zeros.
    kept: Vec<u64>,
    /// Pages that are kept on the host.
    on_host: BTreeMap<u64, HostPage>,
    /// Room that is left for keeping more.
    room: ContentRoom,
}

impl StoredContent {
    /// A device of zeros; what is written to it takes of `room`.
    pub(super) fn new(bytes: u64, room: &ContentRoom) -> Result<Self, ServeError> {
        let length = usize::try_from(bytes.next_multiple_of(PAGE)).unwrap_or(usize::MAX);
        let failed = |errno: rustix::io::Errno| ServeError::new("reserve memory for", errno);
        // Far more than the machine has: only what is written takes memory.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let memory = Mapping::anonymous(length, flags).map_err(failed)?;
        let start = memory.start().as_ptr().cast();
        // SAFETY: the range is the mapping, and the advice changes none of its content.
        match unsafe { rustix::mm::madvise(start, length, Advice::LinuxNoHugepage) } {
            // A kernel that has no huge pages, as with PREEMPT_RT, does not know the advice.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let pages = bytes.div_ceil(PAGE);
        Ok(Self {
            memory,
            bytes,
            kept: vec![0; pages.div_ceil(64) as usize],
            on_host: BTreeMap::new(),
            room: room.clone(),
        })
    }

    fn is_kept(&self, page: u64) -> bool {
        self.kept[(page / 64) as usize] >> (page % 64) & 1 == 1
    }

    /// The memory in which a page is kept, and its first byte there; `None` if it holds zeros.
    fn place(&self, page: u64) -> Option<(&Mapping, usize)> {
        if self.is_kept(page) {
            return Some((&self.memory, (page * PAGE) as usize));
        }
        self.on_host.get(&page).map(HostPage::place)
    }

    /// Makes room for a page of zeros, and returns its place; `None` if there is no room.
    fn keep(&mut self, page: u64) -> Option<(&Mapping, usize)> {
        if self.room.take() {
            self.kept[(page / 64) as usize] |= 1 << (page % 64);
        } else {
            let on_host = self.room.take_on_host()?;
            self.on_host.insert(page, on_host);
        }
        self.place(page)
    }

    /// The part of each page that a range touches.
    fn parts(&self, from: u64, length: usize) -> impl Iterator<Item = Part> + use<> {
        let end = (from + length as u64).min(self.bytes);
        let mut at = from;
        std::iter::from_fn(move || {
            let stop = ((at / PAGE + 1) * PAGE).min(end);
            (at < end).then(|| {
                let place = (at - from) as usize..(stop - from) as usize;
                let part = (at / PAGE, at, place);
                at = stop;
                part
            })
        })
    }

    /// Copies what the device holds from byte `from` on; behind its end there are zeros.
    pub(super) fn read(&self, from: u64, into: &mut [u8]) {
        let held = self.bytes.saturating_sub(from).min(into.len() as u64);
        into[held as usize..].fill(0);
        for (page, at, place) in self.parts(from, into.len()) {
            let target = &mut into[place];
            match self.place(page) {
                Some((memory, start)) => memory.read(start + (at % PAGE) as usize, target),
                None => target.fill(0),
            }
        }
    }

    /// Keeps these bytes from byte `from` on; false: there is no room for them, and what was kept
    /// of them is undefined.
    #[must_use]
    pub(super) fn write(&mut self, from: u64, bytes: &[u8]) -> bool {
        for (page, at, place) in self.parts(from, bytes.len()) {
            let source = &bytes[place];
            let kept = match self.place(page) {
                None if is_zeros(source) => continue,
                None => self.keep(page),
                kept => kept,
            };
            let Some((memory, start)) = kept else {
                return false;
            };
            memory.write(start + (at % PAGE) as usize, source);
        }
        true
    }

    /// Makes a range zeros again; pages that lie in it whole take no room any more.
    pub(super) fn clear(&mut self, from: u64, length: u64) {
        let end = (from + length).min(self.bytes);
        let mut page = from / PAGE;
        while page * PAGE < end {
            // A whole word of pages that are not kept is passed over at once: a range may be the
            // whole of a large device.
            if page.is_multiple_of(64) && self.kept[(page / 64) as usize] == 0 {
                page += 64;
                continue;
            }
            if self.is_kept(page) {
                self.clear_page(page, from, end);
            }
            page += 1;
        }
        let touched = self.on_host.range(from / PAGE..end.div_ceil(PAGE));
        let touched: Vec<u64> = touched.map(|(page, _)| *page).collect();
        for page in touched {
            self.clear_page(page, from, end);
        }
    }

    /// Makes the part of a page zeros that lies between `from` and `end`.
    fn clear_page(&mut self, page: u64, from: u64, end: u64) {
        let (first, last) = (from.max(page * PAGE), end.min((page + 1) * PAGE));
        let length = (last - first) as usize;
        if let Some((memory, start)) = self.place(page) {
            memory.write(start + (first % PAGE) as usize, &ZEROS[..length]);
        }
        if last - first < PAGE {
            return;
        }
        if let Some(on_host) = self.on_host.remove(&page) {
            self.room.give_back_on_host(on_host);
            return;
        }
        let start = self.memory.place((page * PAGE) as usize, length).cast();
        // SAFETY: the range is one page of our mapping, to which no reference is ever made.
        let given_back = unsafe { rustix::mm::madvise(start, length, Advice::LinuxDontNeed) };
        if given_back.is_ok() {
            self.kept[(page / 64) as usize] &= !(1 << (page % 64));
            self.room.give_back();
        }
    }
}

/// Returns true if there is nothing but zeros. In parts, so that the processor takes many bytes at
/// once: making a file system writes little else, and byte by byte this was half of all that
/// serving it took.
fn is_zeros(bytes: &[u8]) -> bool {
    let mut parts = bytes.chunks(256);
    parts.all(|part| part.iter().fold(0, |all, byte| all | byte) == 0)
}

impl Drop for StoredContent {
    fn drop(&mut self) {
        // The next device takes of the same room.
        let in_memory: u32 = self.kept.iter().map(|word| word.count_ones()).sum();
        for _ in 0..in_memory {
            self.room.give_back();
        }
        for (_, page) in std::mem::take(&mut self.on_host) {
            self.room.give_back_on_host(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &StoredContent, from: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![9; length];
        content.read(from, &mut bytes);
        bytes
    }

    #[test]
    fn what_was_written_is_read_back_and_the_rest_is_zeros() {
        // Far larger than any memory: only what is written may take some.
        let mut content = StoredContent::new(1 << 42, &ContentRoom::new(1 << 20)).unwrap();
        assert!(content.write((1 << 41) + 4000, &[7; 200]));
        assert_eq!(read(&content, (1 << 41) + 4000, 200), [7; 200]);
        assert_eq!(read(&content, (1 << 41) + 3990, 10), [0; 10]);
        assert_eq!(read(&content, 12, 5000), vec![0; 5000]);
        assert!(content.write((1 << 42) - 4, &[8; 4]));
        assert_eq!(read(&content, (1 << 42) - 5, 8), [0, 8, 8, 8, 8, 0, 0, 0]);
    }

    #[test]
    fn zeros_take_no_room_and_a_full_device_says_so() {
        let mut content = StoredContent::new(1 << 30, &ContentRoom::new(2 * 4096)).unwrap();
        assert!(content.write(0, &[0; 65_536]));
        assert!(content.write(0, &[1; 8192]));
        assert!(!content.write(8192, &[1; 4096]));
        // What is kept may change all the same.
        assert!(content.write(0, &[2; 8192]));
        content.clear(0, 4096);
        assert_eq!(read(&content, 0, 8192)[4095..4097], [0, 2]);
        assert!(content.write(8192, &[1; 4096]));
    }

    #[test]
    fn what_memory_has_no_room_for_is_kept_in_the_hosts_file() {
        let path = std::env::temp_dir().join(format!("stackrace-room-{}", std::process::id()));
        std::fs::write(&path, [0; 3 * 4096]).unwrap();
        let room = ContentRoom::new(4096).with_host_file(&path).unwrap();
        let mut content = StoredContent::new(1 << 42, &room).unwrap();
        let mut other = StoredContent::new(1 << 30, &room).unwrap();
        let far = 1 << 41;
        assert!(content.write(0, &[1; 4096]));
        assert!(content.write(far + 100, &[2; 4096]));
        assert!(other.write(0, &[3; 4096]));
        assert!(!other.write(8192, &[4; 4096]));
        // What is kept may change, zeros take nothing, and devices do not see each other's pages.
        assert!(content.write(far + 200, &[5; 100]));
        assert!(other.write(4096, &[0; 4096]));
        let found = read(&content, far, 8192);
        assert!(found[..100].iter().all(|byte| *byte == 0));
        assert!(found[100..200].iter().all(|byte| *byte == 2));
        assert!(found[200..300].iter().all(|byte| *byte == 5));
        assert!(found[300..4196].iter().all(|byte| *byte == 2));
        assert!(found[4196..].iter().all(|byte| *byte == 0));
        assert_eq!(read(&other, 0, 4096), [3; 4096]);
        // A page that is given back is zeros for the next one.
        content.clear(far, 8192);
        assert_eq!(read(&content, far, 8192), [0; 8192]);
        assert!(other.write(8192 + 4095, &[6; 1]));
        let found = read(&other, 8192, 4096);
        assert!(found[..4095].iter().all(|byte| *byte == 0));
        assert_eq!(found[4095], 6);
        // A device that is gone leaves its room to the others.
        drop(content);
        assert!(other.write(1 << 20, &[7; 2 * 4096]));
        assert!(!other.write(2 << 20, &[8; 4096]));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_part_of_a_page_is_cleared_without_its_neighbours() {
        let mut content = StoredContent::new(1 << 30, &ContentRoom::new(1 << 20)).unwrap();
        assert!(content.write(0, &[3; 12_288]));
        content.clear(4000, 5000);
        let found = read(&content, 0, 12_288);
        assert!(found[..4000].iter().all(|byte| *byte == 3));
        assert!(found[4000..9000].iter().all(|byte| *byte == 0));
        assert!(found[9000..].iter().all(|byte| *byte == 3));
    }
}
