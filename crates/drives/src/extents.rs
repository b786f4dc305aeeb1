//! A set of sectors as ranges that neither overlap nor touch.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Ranges of sectors: the end of each by its first. A tree, because a write cache holds thousands of
/// them and each write changes one or two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extents {
    ranges: BTreeMap<u64, u64>,
    sectors: u64,
}

impl Extents {
    /// Number of sectors in all ranges.
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The range that begins at `sector` or before, the last of them.
    fn at(&self, sector: u64) -> Option<(u64, u64)> {
        let (first, end) = self.ranges.range(..=sector).next_back()?;
        Some((*first, *end))
    }

    /// Adds a range and merges it with all it overlaps or touches. Returns whether it continues or
    /// overlaps one that was there.
    pub(crate) fn insert(&mut self, mut first: u64, mut end: u64) -> bool {
        let mut merged = false;
        // From the end backwards: each one found is taken out, so the next is the one before it.
        while let Some(range) = self.at(end).filter(|range| range.1 >= first) {
            self.take(range);
            (first, end) = (first.min(range.0), end.max(range.1));
            merged = true;
        }
        self.put(first, end);
        merged
    }

    fn take(&mut self, range: (u64, u64)) {
        self.ranges.remove(&range.0);
        self.sectors -= range.1 - range.0;
    }

    fn put(&mut self, first: u64, end: u64) {
        if first < end {
            self.ranges.insert(first, end);
            self.sectors += end - first;
        }
    }

    /// Takes out a range.
    pub(crate) fn remove(&mut self, first: u64, end: u64) {
        while let Some(range) = end
            .checked_sub(1)
            .and_then(|last| self.at(last))
            .filter(|range| range.1 > first)
        {
            self.take(range);
            self.put(range.0, range.1.min(first));
            self.put(end, range.1.max(end));
        }
    }

    /// Whether all of `first..end` is in the set.
    pub(crate) fn covers(&self, first: u64, end: u64) -> bool {
        self.at(first).is_some_and(|range| end <= range.1)
    }

    /// Whether any of `first..end` is in the set.
    pub(crate) fn touches(&self, first: u64, end: u64) -> bool {
        let last = end.saturating_sub(1);
        self.at(last).is_some_and(|range| range.1 > first)
    }

    /// The range that holds `sector` or begins behind it; behind the last one, the first.
    pub(crate) fn next_from(&self, sector: u64) -> Option<(u64, u64)> {
        let here = self.at(sector).filter(|range| range.1 > sector);
        let behind = self.ranges.range((Excluded(sector), Unbounded)).next();
        let next = behind.or_else(|| self.ranges.first_key_value());
        here.or(next.map(|(first, end)| (*first, *end)))
    }

    /// All ranges, in order.
    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(first, end)| (*first, *end))
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
            steps in prop::collection::vec((any::<bool>(), 0_u64..60, 1_u64..20), 1..40),
            probe in (0_u64..70, 1_u64..10),
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
