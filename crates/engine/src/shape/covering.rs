//! Random blocks of several sizes that together visit each byte once per pass.

use crate::draw::derive;
use crate::error::StartError;
use crate::spec::IoTarget;

use super::blocks::BlockMap;
use super::permutation::Permutation;

/// One worker's order. A unit is the distance at which blocks may begin.
#[derive(Debug, Clone)]
pub(super) struct Covering {
    units: BlockMap,
    unit: u64,
    permutation: Permutation,
    /// The next unit of the permutation.
    next: u64,
    pass: u64,
    seed: u64,
    /// One bit for each unit: it was visited in this pass.
    visited: Vec<u64>,
    left: u64,
}

impl Covering {
    /// Visits the units of these files; smaller rests at their ends are left out.
    ///
    /// # Errors
    /// [`StartError::Spec`] if no file holds a unit.
    pub(super) fn new(targets: &[IoTarget], unit: u32, seed: u64) -> Result<Self, StartError> {
        let unit = u64::from(unit.max(1));
        let units = BlockMap::new(targets, unit);
        let count = units.count();
        if count == 0 {
            return Err(StartError::Spec {
                what: format!("no file holds a block of {unit} bytes"),
                next: "lower the block size, or make the files larger",
            });
        }
        Ok(Self {
            units,
            unit,
            permutation: Permutation::new(count, seed),
            next: 0,
            pass: 0,
            seed,
            visited: vec![0; count.div_ceil(64) as usize],
            left: count,
        })
    }

    fn is_visited(&self, unit: u64) -> bool {
        self.visited[(unit / 64) as usize] >> (unit % 64) & 1 == 1
    }

    /// A place for a block of up to `size` bytes: file, offset and what fits there.
    #[inline(never)]
    pub(super) fn choose(&mut self, size: u32) -> (u32, u64, u32) {
        if self.left == 0 {
            self.pass += 1;
            self.permutation = Permutation::new(self.units.count(), derive(self.seed, self.pass));
            (self.next, self.left) = (0, self.units.count());
            self.visited.fill(0);
        }
        // As long as any unit is left, one of those that follow in the permutation is.
        let begin = loop {
            let unit = self.permutation.apply(self.next);
            self.next += 1;
            if !self.is_visited(unit) {
                break unit;
            }
        };
        let target = self.units.target_of(begin);
        let wanted = (u64::from(size) / self.unit).max(1);
        let end = self.units.end_of(target).min(begin + wanted);
        let free = (begin..end)
            .take_while(|unit| !self.is_visited(*unit))
            .count() as u64;
        for unit in begin..begin + free {
            self.visited[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        self.left -= free;
        // No more than `size`, which came from 32 bits.
        let bytes = (free * self.unit) as u32;
        (target as u32, self.units.offset_in(target, begin), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_visits_each_byte_once_whatever_the_sizes() {
        let target = |bytes| IoTarget {
            path: "file".into(),
            bytes,
        };
        let mut order =
            Covering::new(&[target(100 * 512), target(300), target(33 * 512)], 512, 7).unwrap();
        let mut orders = Vec::new();
        for _ in 0..3 {
            let (mut seen, mut sizes) = (
                std::collections::BTreeSet::new(),
                [2048, 512, 4096].into_iter().cycle(),
            );
            let mut order_of_pass = Vec::new();
            while seen.len() < 133 {
                let (file, offset, bytes) = order.choose(sizes.next().unwrap());
                order_of_pass.push((file, offset));
                for at in (offset..offset + u64::from(bytes)).step_by(512) {
                    assert!(seen.insert((file, at)), "twice in {file}: {at}");
                }
            }
            orders.push(order_of_pass);
        }
        assert_ne!(orders[0], orders[1]);
    }
}
