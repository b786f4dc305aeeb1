//! The files that exist, in slots.

use super::twister::Twister;

/// A file that exists: where it is, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PostMarkFile {
    /// Its name: files are numbered from 1 in order of creation.
    pub(super) number: u32,
    /// Index of the location.
    pub(super) location: u32,
    /// Index of the subdirectory, if there are any.
    pub(super) subdirectory: u32,
    /// Bytes.
    pub(super) size: u32,
}

/// The table of the files: twice as many slots as files at the start. A file's slot decides which
/// later draws find it, so this rule is part of the benchmark.
#[derive(Debug)]
pub(super) struct FileTable {
    slots: Vec<Option<PostMarkFile>>,
    /// The slot after the one taken last.
    rover: usize,
    count: usize,
}

impl FileTable {
    pub(super) fn new(slots: usize) -> FileTable {
        FileTable {
            slots: vec![None; slots],
            rover: 0,
            count: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.count == self.slots.len()
    }

    /// Puts a file into the slot after the one taken last if that is free, else into the first
    /// free one.
    pub(super) fn insert(&mut self, file: PostMarkFile) {
        // The rover may stand past the end: then there is no next slot.
        let next = match self.slots.get(self.rover) {
            Some(None) => Some(self.rover),
            _ => self.slots.iter().position(Option::is_none),
        };
        if let Some(slot) = next {
            self.slots[slot] = Some(file);
            self.rover = slot + 1;
            self.count += 1;
        }
    }

    /// A slot with a file in it: slots are drawn until one is not empty.
    pub(super) fn draw(&self, random: &mut Twister) -> usize {
        debug_assert!(!self.is_empty(), "drawing would never end");
        loop {
            // Each miss is a draw too: fewer files mean more draws, as with PostMark.
            let slot = random.below(self.slots.len() as u32) as usize;
            if self.slots[slot].is_some() {
                return slot;
            }
        }
    }

    /// The file in a slot that [`FileTable::draw`] gave.
    pub(super) fn file(&mut self, slot: usize) -> &mut PostMarkFile {
        self.slots[slot]
            .as_mut()
            .expect("a slot that was drawn is not empty")
    }

    /// Empties a slot; what was in it.
    pub(super) fn remove(&mut self, slot: usize) -> Option<PostMarkFile> {
        let file = self.slots[slot].take();
        // Its last sweep goes over all slots, empty ones too.
        self.count -= usize::from(file.is_some());
        file
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_the_next_slot_or_the_first_free_one() {
        let mut table = FileTable::new(4);
        let file = |number| PostMarkFile {
            number,
            location: 0,
            subdirectory: 0,
            size: 1,
        };
        (1..=4).for_each(|number| table.insert(file(number)));
        assert!(table.is_full());
        assert_eq!(table.remove(2).map(|file| file.number), Some(3));
        assert_eq!(table.remove(0).map(|file| file.number), Some(1));
        table.insert(file(5));
        assert_eq!(table.file(0).number, 5, "past the end: the first hole");
        table.insert(file(6));
        assert_eq!(table.file(2).number, 6, "slot 1 is taken: the first hole");
        assert!(table.is_full());
    }
}
