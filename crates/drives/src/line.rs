//! A network line: rate, delay, and loss.

use crate::Nanos;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// One direction of a line that sends messages in order.
#[derive(Debug, Clone)]
pub struct Line {
    /// Bytes a second.
    rate: f64,
    delay: Nanos,
    loss: f64,
    free_at: Nanos,
    chance: Xoshiro256PlusPlus,
}

/// The reason for which a line is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The rate is not above 0.
    #[error("a rate above 0 B/s is expected")]
    Rate,
    /// The loss is not a share from 0 to less than 1.
    #[error("a loss from 0 to less than 1 is expected")]
    Loss,
}

impl Line {
    /// A line of `rate` bytes a second, a one-way `delay`, and the share `loss` of messages lost;
    /// which ones follows from the seed.
    ///
    /// # Errors
    /// When nothing would ever arrive.
    pub fn new(rate: f64, delay: Nanos, loss: f64, seed: u64) -> Result<Self, LineError> {
        if !(rate > 0.0 && rate.is_finite()) {
            return Err(LineError::Rate);
        }
        if !(0.0..1.0).contains(&loss) {
            return Err(LineError::Loss);
        }
        Ok(Self {
            rate,
            delay,
            loss,
            free_at: 0,
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
        })
    }

    /// Sends `bytes` at `now`, and returns the instant at which the last of them arrives, or `None`
    /// if they are lost. A lost message takes its time on the line all the same.
    pub fn send(&mut self, bytes: u64, now: Nanos) -> Option<Nanos> {
        let begin = now.max(self.free_at);
        self.free_at = begin + (bytes as f64 * 1e9 / self.rate).round() as Nanos;
        // The upper 53 bits make an even share between 0 and 1.
        let share = (self.chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        (share >= self.loss).then_some(self.free_at + self.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_delay_are_exact() {
        let mut line = Line::new(125e6, 500_000, 0.0, 1).expect("a sound line");
        assert_eq!(line.send(125_000, 0), Some(1_500_000));
        // The second waits for the first to have left.
        assert_eq!(line.send(125_000, 0), Some(2_500_000));
        assert_eq!(line.send(0, 10_000_000), Some(10_500_000));
    }

    #[test]
    fn the_stated_share_is_lost_and_the_same_one_each_time() {
        let run = || {
            let mut line = Line::new(1e9, 0, 0.2, 7).expect("a sound line");
            let sent = (0..10_000).map(|at| line.send(1, at * 100));
            sent.map(|arrived| arrived.is_none()).collect::<Vec<_>>()
        };
        let lost = run().iter().filter(|lost| **lost).count();
        assert!((1_850..2_150).contains(&lost), "{lost}");
        assert_eq!(run(), run());
    }

    #[test]
    fn a_line_on_which_nothing_arrives_is_refused() {
        assert_eq!(Line::new(0.0, 0, 0.0, 1).err(), Some(LineError::Rate));
        assert_eq!(Line::new(1.0, 0, 1.0, 1).err(), Some(LineError::Loss));
    }
}
