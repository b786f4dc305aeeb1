//! What memory holds back and what it gives up: `/proc/vmstat` (proc_vmstat(5)), in pages.

/// Totals and the state at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryCounters {
    /// Dirty, or on their way to storage, now.
    pub(super) unwritten_bytes: u64,
    /// Fetched from swap space since the machine was started.
    pub(super) swapped_in_bytes: u64,
    /// Moved to swap space since then.
    pub(super) swapped_out_bytes: u64,
}

/// Parses the file; none if a field is missing. `page` is the size of a page, bytes.
pub(super) fn parse(text: &str, page: u64) -> Option<MemoryCounters> {
    let bytes = |name: &str| {
        let value = text.lines().find_map(|line| {
            let (found, value) = line.split_once(' ')?;
            // The whole name: `nr_dirty` is also the beginning of other names.
            (found == name).then_some(value)
        })?;
        Some(value.trim().parse::<u64>().ok()?.saturating_mul(page))
    };
    Some(MemoryCounters {
        unwritten_bytes: bytes("nr_dirty")?.saturating_add(bytes("nr_writeback")?),
        swapped_in_bytes: bytes("pswpin")?,
        swapped_out_bytes: bytes("pswpout")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_bytes_and_names_are_whole() {
        let text = "nr_free_pages 9\nnr_dirty 3\nnr_writeback 2\nnr_writeback_temp 7\nnr_dirty_threshold 11\npswpin 5\npswpout 6\n";
        let memory = MemoryCounters {
            unwritten_bytes: 5 * 4096,
            swapped_in_bytes: 5 * 4096,
            swapped_out_bytes: 6 * 4096,
        };
        assert_eq!(parse(text, 4096), Some(memory));
        assert_eq!(parse("nr_dirty 3\n", 4096), None);
    }
}
