//! Bytes this process asked for and what the storage layer had to move: `/proc/self/io` (proc(5)).

/// Totals since the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessIo {
    /// `rchar`: asked of the kernel, from wherever it came.
    pub(super) asked_read_bytes: u64,
    /// `read_bytes`: fetched from storage on its behalf.
    pub(super) fetched_bytes: u64,
    /// `write_bytes`: caused to be sent to storage.
    pub(super) sent_bytes: u64,
    /// `cancelled_write_bytes`: counted above, and dropped before they were sent.
    pub(super) cancelled_bytes: u64,
}

/// Parses the file; none if a field is missing.
pub(super) fn parse(text: &str) -> Option<ProcessIo> {
    let field = |name: &str| {
        text.lines().find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(':')?
                .trim()
                .parse::<u64>()
                .ok()
        })
    };
    Some(ProcessIo {
        asked_read_bytes: field("rchar")?,
        fetched_bytes: field("read_bytes")?,
        sent_bytes: field("write_bytes")?,
        cancelled_bytes: field("cancelled_write_bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_bytes_is_not_taken_for_a_longer_word() {
        let text = "rchar: 6976\nwchar: 1\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n";
        let process = ProcessIo {
            asked_read_bytes: 6976,
            fetched_bytes: 4096,
            sent_bytes: 8192,
            cancelled_bytes: 5,
        };
        assert_eq!(parse(text), Some(process));
        assert_eq!(parse("rchar: 1\n"), None);
    }
}
