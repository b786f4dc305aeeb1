//! One operation of a trace.

use super::call::Code;

/// One operation. Times are in ns; the first operation of a recording starts at 0.
///
/// A thread's operations do not overlap. Between two of them it computed, but for the times of the gap. Operations
/// that order threads ([`Code::Wake`], [`Code::Fork`]) happen inside a call of their thread: `start` is that of the
/// call, `duration` the time inside it, and the gap before it is named again by the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Which call, or what orders threads.
    pub code: Code,
    /// Its thread, in the order in which threads appear.
    pub thread: u32,
    /// When it began.
    pub start: u64,
    /// How long it took.
    pub duration: u64,
    /// Time of the gap before it in which the thread could have run, and had no processor.
    pub gap_queued: u64,
    /// Time of the gap before it in which the thread slept outside of any call: it waited for a page.
    pub gap_blocked: u64,
    /// Time within it without a processor.
    pub queued: u64,
    /// Time within it asleep.
    pub blocked: u64,
    /// The result, as the kernel gave it: an error is below 0. Of a wake and of a fork the other thread.
    pub result: i64,
    /// The open file, in the order in which they appear, from 1; 0: none.
    pub handle: u32,
    /// The name, see [`super::Names`]; of a call on a descriptor 0.
    pub path: u32,
    /// The second name.
    pub second: u32,
    /// Where in the file; of reads and writes without an offset the position before them.
    pub offset: u64,
    /// How many bytes were asked for; of an open its mode.
    pub length: u64,
    /// Flags, as the architecture has them.
    pub flags: u64,
    /// How many operations before it the wake stands that ended its wait; 0: nothing in the trace did.
    pub cause: u32,
}

/// Bits of a mapping: pages may be written (protection), and reach the file (flags, in the upper half).
const WRITABLE: u64 = 2;
const SHARED: u64 = 1 << 32;

impl Operation {
    /// An operation of a thread, all else 0.
    pub fn of(code: Code, thread: u32, start: u64) -> Self {
        Self {
            code,
            thread,
            start,
            duration: 0,
            gap_queued: 0,
            gap_blocked: 0,
            queued: 0,
            blocked: 0,
            result: 0,
            handle: 0,
            path: 0,
            second: 0,
            offset: 0,
            length: 0,
            flags: 0,
            cause: 0,
        }
    }

    /// Moment of its end: start and duration together.
    pub fn end(&self) -> u64 {
        self.start + self.duration
    }

    /// Whether what is written through this mapping reaches the file: no call tells of it.
    pub fn maps_for_writing(&self) -> bool {
        let written = WRITABLE | SHARED;
        self.code == Code::Map && self.flags & written == written
    }

    /// Bytes that it moved.
    pub fn moved(&self) -> u64 {
        match self.code {
            Code::Read | Code::ReadAt | Code::Write | Code::WriteAt | Code::Copy => {
                self.result.max(0).unsigned_abs()
            }
            _ => 0,
        }
    }
}
