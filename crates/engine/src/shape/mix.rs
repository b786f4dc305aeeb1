//! Which operations are of one kind (reads, or of one size): an exact share in an unpredictable
//! order.
//!
//! Operation `i` of the whole phase belongs to a window of 64. Before each window the number of
//! those chosen is exactly `round(share * i)` (Bresenham's error accumulator in closed form);
//! within a window they are shuffled among the rest. So the share is exact for the phase as a
//! whole, yet there is no pattern such as "each third operation is a write" that a cache or disk
//! could fall in step with.

use std::ops::Range;

use stackrace_system::draw::Draw;

const WINDOW: u64 = 64;

/// One worker's sequence of yes and no.
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
    /// Operations `range` of the phase; the end is `u64::MAX` if it is not known.
    pub fn new(share: f64, range: Range<u64>, draw: Draw) -> Mix {
        let constant = match share {
            0.0 => Some(false),
            1.0 => Some(true),
            _ => None,
        };
        Mix {
            constant,
            share,
            next: range.start,
            end: range.end,
            window: 0,
            left: 0,
            draw,
        }
    }

    /// Returns true if the next operation is of the kind.
    #[inline(always)]
    pub fn chooses(&mut self) -> bool {
        if let Some(constant) = self.constant {
            return constant;
        }
        if self.left == 0 {
            self.refill();
        }
        let chosen = self.window & 1 == 1;
        self.window >>= 1;
        self.left -= 1;
        chosen
    }

    fn refill(&mut self) {
        // The last window is as long as what is left; beyond the announced end, windows go on.
        let remaining = self.end.saturating_sub(self.next);
        self.left = if remaining == 0 {
            WINDOW
        } else {
            remaining.min(WINDOW)
        };
        let (share, next) = (self.share, self.next);
        let mut chosen = chosen_of(share, next + self.left) - chosen_of(share, next);
        self.next += self.left;
        self.window = 0;
        // Selection sampling (D. Knuth, TAOCP 2, 3.4.2, algorithm S): each arrangement is equally
        // likely.
        for slot in 0..self.left {
            if self.draw.below(self.left - slot) < chosen {
                self.window |= 1 << slot;
                chosen -= 1;
            }
        }
    }
}

/// Number of operations that are chosen of the first `operations` of a phase.
pub(super) fn chosen_of(share: f64, operations: u64) -> u64 {
    (operations as f64 * share).round() as u64
}
