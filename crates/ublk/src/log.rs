//! What a served device was told to write, with content: from it, what it would hold after a power
//! cut at any instant can be made again.

use rustix::io::Errno;
use stackrace_drives::power::{Logged, WriteLog};
use stackrace_drives::{Completion, Nanos, Operation, Request};
use std::sync::{Arc, Mutex, PoisonError};

/// Every write and flush of a device since it appeared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceLog {
    /// Writes and flushes in the order they were submitted. Discards are writes of zeros that
    /// nothing made durable.
    pub entries: Vec<Logged>,
    /// The bytes that each of them wrote; empty: zeros, or nothing.
    pub contents: Vec<Arc<[u8]>>,
}

/// The content that a device begins with.
#[derive(Debug, Clone, Default)]
pub struct Medium {
    /// First byte, how many, and what: empty stands for zeros. A later piece lies over an earlier.
    pub pieces: Vec<(u64, u64, Arc<[u8]>)>,
    /// Sectors of 512 bytes that cannot be read until they are written again: `first..end`.
    pub unreadable: Vec<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Kept {
    log: WriteLog,
    contents: Vec<Arc<[u8]>>,
}

/// The log as the serving thread and its owner share it.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedLog(Arc<Mutex<Kept>>);

impl SharedLog {
    fn with<T>(&self, what: impl FnOnce(&mut Kept) -> T) -> T {
        // A thread that panicked has left whole entries behind.
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes a write or a flush with its data.
    pub(super) fn submit(&self, request: Request, now: Nanos, bytes: &[u8]) {
        let zeros = bytes.iter().all(|byte| *byte == 0);
        let content: Arc<[u8]> = if zeros { [].into() } else { bytes.into() };
        self.with(|kept| {
            kept.log.submit(request, now);
            kept.contents.push(content);
        });
    }

    /// Notes that a request was acknowledged.
    pub(super) fn complete(&self, id: u64, at: Nanos) {
        self.with(|kept| kept.log.complete(Completion { id, at }));
    }

    /// All of it until now.
    pub(super) fn read(&self) -> DeviceLog {
        self.with(|kept| DeviceLog {
            entries: kept.log.entries().to_vec(),
            contents: kept.contents.clone(),
        })
    }
}

/// Sectors that cannot be read.
#[derive(Debug, Default)]
pub(super) struct Unreadable(Vec<(u64, u64)>);

impl Unreadable {
    pub(super) fn new(ranges: Vec<(u64, u64)>) -> Self {
        Self(ranges)
    }

    /// The error with which a request fails, if it does. A write makes its sectors readable again.
    pub(super) fn error(&mut self, request: &Request) -> Option<Errno> {
        let (first, end) = (request.first, request.first + u64::from(request.sectors));
        let touched = self.0.iter().any(|bad| bad.0 < end && first < bad.1);
        if !touched {
            return None;
        }
        if request.operation == Operation::Read {
            return Some(Errno::IO);
        }
        let left = self.0.iter().flat_map(|&(from, to)| {
            let (before, after) = ((from, to.min(first)), (from.max(end), to));
            [before, after]
        });
        self.0 = left.filter(|range| range.0 < range.1).collect();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: Operation, first: u64, sectors: u32) -> Request {
        Request {
            id: 0,
            operation,
            first,
            sectors,
        }
    }

    #[test]
    fn what_cannot_be_read_can_be_written_and_read_then() {
        let mut bad = Unreadable::new(vec![(8, 16)]);
        let write = Operation::Write { durable: false };
        assert_eq!(bad.error(&request(Operation::Read, 0, 8)), None);
        assert_eq!(bad.error(&request(Operation::Read, 15, 1)), Some(Errno::IO));
        assert_eq!(bad.error(&request(write, 10, 2)), None);
        assert_eq!(bad.error(&request(Operation::Read, 10, 2)), None);
        assert_eq!(bad.error(&request(Operation::Read, 8, 3)), Some(Errno::IO));
        assert_eq!(bad.error(&request(Operation::Read, 12, 1)), Some(Errno::IO));
    }

    #[test]
    fn a_log_has_the_data_of_each_write_and_when_it_was_acknowledged() {
        let log = SharedLog::default();
        let write = Operation::Write { durable: true };
        log.submit(request(write, 8, 1), 5, &[7; 512]);
        log.complete(0, 9);
        log.submit(request(write, 9, 1), 10, &[0; 512]);
        let read = log.read();
        assert_eq!(read.entries[0].completed, Some(9));
        assert_eq!(read.entries[1].completed, None);
        assert_eq!(read.contents[0][..], [7; 512]);
        assert!(read.contents[1].is_empty());
    }
}
