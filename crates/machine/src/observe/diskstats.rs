//! Block devices as the kernel counts them: `/proc/diskstats` (Documentation/admin-guide/iostats.rst).

use stackrace_base::event::DeviceCounted;

/// A sector in this file is always 512 bytes, whatever the device's own sector size.
const SECTOR: u64 = 512;

/// Totals of one device since it appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceTotals {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    busy_ns: u64,
    weighted_ns: u64,
    flushes: Option<u64>,
}

/// Every device with its name; lines that are not understood are left out.
pub(super) fn parse(text: &str) -> Vec<(String, DeviceTotals)> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(String, DeviceTotals)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let name = (*fields.get(2)?).to_owned();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let device = DeviceTotals {
        reads: number(3)?,
        read_bytes: number(5)?.saturating_mul(SECTOR),
        writes: number(7)?,
        written_bytes: number(9)?.saturating_mul(SECTOR),
        // The file counts in milliseconds.
        busy_ns: number(12)?.saturating_mul(1_000_000),
        weighted_ns: number(13)?.saturating_mul(1_000_000),
        // Since Linux 5.5.
        flushes: number(18),
    };
    Some((name, device))
}

impl DeviceTotals {
    /// Counts from `self` to `later`.
    pub(super) fn until(&self, later: &Self, name: &str) -> DeviceCounted {
        DeviceCounted {
            device: name.to_owned(),
            reads: later.reads.saturating_sub(self.reads),
            read_bytes: later.read_bytes.saturating_sub(self.read_bytes),
            writes: later.writes.saturating_sub(self.writes),
            written_bytes: later.written_bytes.saturating_sub(self.written_bytes),
            flushes: self
                .flushes
                .zip(later.flushes)
                .map(|(a, b)| b.saturating_sub(a)),
            busy_ns: later.busy_ns.saturating_sub(self.busy_ns),
            weighted_ns: later.weighted_ns.saturating_sub(self.weighted_ns),
            write_cache: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_counted_between_two_readings() {
        let before = parse(
            " 254 0 vda 100 5 2000 30 50 6 4000 70 0 80 90 0 0 0 0 11 12\n   7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\nbroken line\n",
        );
        let after = parse(" 254 0 vda 110 5 2016 33 60 6 4100 77 0 85 95 0 0 0 0 15 13\n");
        assert_eq!(before.len(), 2);
        let counted = before[0].1.until(&after[0].1, "vda");
        assert_eq!((counted.reads, counted.read_bytes), (10, 16 * 512));
        assert_eq!((counted.writes, counted.written_bytes), (10, 100 * 512));
        assert_eq!(
            (counted.busy_ns, counted.weighted_ns, counted.flushes),
            (5_000_000, 5_000_000, Some(4))
        );
    }
}
