//! A set of sectors as ranges that neither overlap nor touch.

/// Ranges of sectors, sorted; each is `first..end`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extents {
    ranges: Vec<(u64, u64)>,
    sectors: u64,
}

impl Extents {
    /// Room for this many ranges before anything is allocated again.
    pub(crate) fn with_capacity(ranges: usize) -> Self {
        Self {
            ranges: Vec::with_capacity(ranges),
            sectors: 0,
        }
    }

    /// Number of sectors in all ranges.
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a range and merges it with all it overlaps or touches. Returns whether it continues or
    /// overlaps one that was there.
    pub(crate) fn insert(&mut self, mut first: u64, mut end: u64) -> bool {
        let from = self.ranges.partition_point(|range| range.1 < first);
        let to = self.ranges.partition_point(|range| range.0 <= end);
        for range in &self.ranges[from..to] {
            (first, end) = (first.min(range.0), end.max(range.1));
            self.sectors -= range.1 - range.0;
        }
        self.sectors += end - first;
        self.ranges.splice(from..to, [(first, end)]);
        to > from
    }

    /// Takes out a range.
    pub(crate) fn remove(&mut self, first: u64, end: u64) {
        let from = self.ranges.partition_point(|range| range.1 <= first);
        let to = self.ranges.partition_point(|range| range.0 < end);
        if from == to {
            return;
        }
        let (low, high) = (self.ranges[from], self.ranges[to - 1]);
        for range in &self.ranges[from..to] {
            self.sectors -= range.1 - range.0;
        }
        let left = (low.0 < first).then_some((low.0, first));
        let right = (high.1 > end).then_some((end, high.1));
        for range in left.iter().chain(&right) {
            self.sectors += range.1 - range.0;
        }
        self.ranges.splice(from..to, left.into_iter().chain(right));
    }

    /// Whether all of `first..end` is in the set.
    pub(crate) fn covers(&self, first: u64, end: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.1 < end);
        self.ranges
            .get(at)
            .is_some_and(|range| range.0 <= first && end <= range.1)
    }

    /// Whether any of `first..end` is in the set.
    pub(crate) fn touches(&self, first: u64, end: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.1 <= first);
        self.ranges.get(at).is_some_and(|range| range.0 < end)
    }

    /// The first range that ends after `sector`, going round at the end; none: the set is empty.
    pub(crate) fn next_from(&self, sector: u64) -> Option<(u64, u64)> {
        let at = self.ranges.partition_point(|range| range.1 <= sector);
        self.ranges.get(at).or(self.ranges.first()).copied()
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
        assert_eq!(set.ranges, [(10, 40)]);
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
                prop_assert!(set.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
            let (first, end) = (probe.0, probe.0 + probe.1);
            prop_assert_eq!(set.covers(first, end), (first..end).all(|at| plain.contains(&at)));
            prop_assert_eq!(set.touches(first, end), (first..end).any(|at| plain.contains(&at)));
        }
    }
}
