//! Which operations are reads: an exact share, in an order nobody can predict.
//!
//! Operation `i` of the whole phase belongs to a window of 64. Before each window the number of
//! reads is exactly `round(share * i)` (Bresenham's error accumulator in closed form); within a
//! window reads and writes are shuffled. So the share is exact for the phase as a whole, yet there
//! is no pattern such as "each third operation is a write" that a cache or disk could fall in step
//! with.

use crate::draw::Draw;

const WINDOW: u64 = 64;

/// One worker's sequence of reads and writes.
#[derive(Debug, Clone)]
pub struct Mix {
    /// Some: always this.
    constant: Option<bool>,
    share: f64,
    /// Number, within the phase, of the operation after the current window.
    next: u64,
    /// Number of the worker's last operation + 1.
    end: u64,
    /// The current window, one bit for each operation left.
    window: u64,
    left: u64,
    draw: Draw,
}

impl Mix {
    /// Operations `before`, `before + 1`, … of the phase, `operations` of them if that is known.
    pub fn new(share: f64, before: u64, operations: Option<u64>, draw: Draw) -> Mix {
        let constant = match share {
            0.0 => Some(false),
            1.0 => Some(true),
            _ => None,
        };
        let end = operations.map_or(u64::MAX, |count| before.saturating_add(count));
        Mix {
            constant,
            share,
            next: before,
            end,
            window: 0,
            left: 0,
            draw,
        }
    }

    /// Whether the next operation is a read.
    #[inline(always)]
    pub fn is_read(&mut self) -> bool {
        if let Some(constant) = self.constant {
            return constant;
        }
        if self.left == 0 {
            self.refill();
        }
        let read = self.window & 1 == 1;
        self.window >>= 1;
        self.left -= 1;
        read
    }

    fn refill(&mut self) {
        // The last window is as long as what is left; beyond the announced end, windows go on.
        let remaining = self.end.saturating_sub(self.next);
        self.left = if remaining == 0 {
            WINDOW
        } else {
            remaining.min(WINDOW)
        };
        let reads_before = |operations: u64| (operations as f64 * self.share).round() as u64;
        let mut reads = reads_before(self.next + self.left) - reads_before(self.next);
        self.next += self.left;
        self.window = 0;
        // Selection sampling (D. Knuth, TAOCP 2, 3.4.2, algorithm S): each arrangement is equally
        // likely.
        for slot in 0..self.left {
            if self.draw.below(self.left - slot) < reads {
                self.window |= 1 << slot;
                reads -= 1;
            }
        }
    }
}
