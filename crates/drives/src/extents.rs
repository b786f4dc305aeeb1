//! A set of sectors as ranges that neither overlap nor touch.

/// Most ranges in one block.
const BLOCK: usize = 64;

/// The first sector of a range, and that behind its last.
type Range = (u64, u64);

/// Ranges of sectors in order. They lie in blocks, none of them empty, because a write cache holds
/// thousands of ranges and each write changes one or two. A `BTreeMap` takes longer: it finds
/// the last range before a sector only by going down the tree twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extents {
    blocks: Vec<Vec<Range>>,
    sectors: u64,
}

impl Extents {
    /// Number of sectors in all ranges.
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns true if there is no range.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Block and place of the last range that begins at `sector` or before.
    fn find(&self, sector: u64) -> Option<(usize, usize)> {
        let block = self.blocks.partition_point(|block| block[0].0 <= sector);
        let block = block.checked_sub(1)?;
        let behind = self.blocks[block].partition_point(|range| range.0 <= sector);
        Some((block, behind - 1))
    }

    /// The range that [`Self::find`] finds.
    fn at(&self, sector: u64) -> Option<Range> {
        let (block, place) = self.find(sector)?;
        Some(self.blocks[block][place])
    }

    /// Adds a range and merges it with all it overlaps or touches. Returns whether it continues or
    /// overlaps one that was there.
    pub(crate) fn insert(&mut self, mut first: u64, mut end: u64) -> bool {
        let mut merged = false;
        // From the end backwards: each one found is taken out, so the next is the one before it.
        while let Some((block, place)) = self.find(end) {
            let range = self.blocks[block][place];
            if range.1 < first {
                break;
            }
            self.take(block, place);
            (first, end) = (first.min(range.0), end.max(range.1));
            merged = true;
        }
        self.put(first, end);
        merged
    }

    fn take(&mut self, block: usize, place: usize) {
        let range = self.blocks[block].remove(place);
        self.sectors -= range.1 - range.0;
        if self.blocks[block].is_empty() {
            self.blocks.remove(block);
        }
    }

    /// Adds a range that touches none.
    fn put(&mut self, first: u64, end: u64) {
        if first >= end {
            return;
        }
        self.sectors += end - first;
        let (block, place) = match self.find(first) {
            Some((block, place)) => (block, place + 1),
            None if self.is_empty() => {
                self.blocks.push(Vec::with_capacity(BLOCK));
                (0, 0)
            }
            None => (0, 0),
        };
        self.blocks[block].insert(place, (first, end));
        if self.blocks[block].len() == BLOCK {
            let mut behind = Vec::with_capacity(BLOCK);
            behind.extend(self.blocks[block].drain(BLOCK / 2..));
            self.blocks.insert(block + 1, behind);
        }
    }

    /// Takes out a range.
    pub(crate) fn remove(&mut self, first: u64, end: u64) {
        while let Some((block, place)) = end.checked_sub(1).and_then(|last| self.find(last)) {
            let range = self.blocks[block][place];
            if range.1 <= first {
                break;
            }
            self.take(block, place);
            self.put(range.0, range.1.min(first));
            self.put(end, range.1.max(end));
        }
    }

    /// Returns true if all of `first..end` is in the set.
    pub(crate) fn covers(&self, first: u64, end: u64) -> bool {
        self.at(first).is_some_and(|range| end <= range.1)
    }

    /// Returns true if any of `first..end` is in the set.
    pub(crate) fn touches(&self, first: u64, end: u64) -> bool {
        let last = end.saturating_sub(1);
        self.at(last).is_some_and(|range| range.1 > first)
    }

    /// The range that holds `sector` or begins behind it; behind the last one, the first.
    pub(crate) fn next_from(&self, sector: u64) -> Option<Range> {
        let first = *self.blocks.first()?.first()?;
        let Some((block, place)) = self.find(sector) else {
            return Some(first);
        };
        let here = self.blocks[block][place];
        if here.1 > sector {
            return Some(here);
        }
        let behind = self.blocks[block].get(place + 1);
        let behind = behind.or_else(|| self.blocks.get(block + 1)?.first());
        Some(*behind.unwrap_or(&first))
    }

    /// All ranges, in order.
    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.blocks.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut set = Extents::default();
        assert!(!set.insert(10, 20));
        assert!(!set.insert(30, 40));
        assert!(set.insert(20, 30));
        assert_eq!(set.iter().collect::<Vec<_>>(), [(10, 40)]);
        assert_eq!(set.sectors(), 30);
    }

    #[test]
    fn the_next_range_goes_round_at_the_end() {
        let mut set = Extents::default();
        assert_eq!(set.next_from(0), None);
        set.insert(10, 20);
        set.insert(30, 40);
        assert_eq!(set.next_from(15), Some((10, 20)));
        assert_eq!(set.next_from(20), Some((30, 40)));
        assert_eq!(set.next_from(40), Some((10, 20)));
    }

    proptest! {
        #[test]
        fn the_set_holds_what_a_plain_set_of_sectors_holds(
            // A few crowded ranges, and as many as fill several blocks.
            (steps, probe) in prop_oneof![
                (prop::collection::vec((any::<bool>(), 0_u64..60, 1_u64..20), 1..40), (0_u64..70, 1_u64..10)),
                (
                    prop::collection::vec((prop::bool::weighted(0.8), 0_u64..2000, 1_u64..4), 300..600),
                    (0_u64..2000, 1_u64..10),
                ),
            ],
        ) {
            let (mut set, mut plain) = (Extents::default(), BTreeSet::new());
            for (insert, first, sectors) in steps {
                let end = first + sectors;
                if insert {
                    set.insert(first, end);
                    plain.extend(first..end);
                } else {
                    set.remove(first, end);
                    plain.retain(|sector| !(first..end).contains(sector));
                }
                prop_assert_eq!(set.sectors(), plain.len() as u64);
                prop_assert_eq!(set.is_empty(), plain.is_empty());
                let ranges: Vec<_> = set.iter().collect();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
            let (first, end) = (probe.0, probe.0 + probe.1);
            prop_assert_eq!(set.covers(first, end), (first..end).all(|at| plain.contains(&at)));
            prop_assert_eq!(set.touches(first, end), (first..end).any(|at| plain.contains(&at)));
        }
    }
}
