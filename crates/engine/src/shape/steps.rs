//! A sequential order with gaps, by zones, or over several files in turn.

use crate::error::StartError;
use crate::spec::{IoTarget, Steps};

/// The place at which the next block of one file would begin, bytes.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    bytes: u64,
    at: u64,
}

/// The position of one worker in each of its files, and whose turn is next.
#[derive(Debug, Clone)]
pub struct SteppedStream {
    steps: Steps,
    files: Vec<Cursor>,
    /// The file whose turn it is.
    turn: usize,
    /// Blocks it still has in this turn.
    left: u32,
}

impl SteppedStream {
    /// A stream over these files, with blocks of up to `largest` bytes.
    ///
    /// # Errors
    /// [`StartError::Spec`] if there is no place for a block, or a step leads out of the file.
    pub fn new(
        steps: Steps,
        targets: &[IoTarget],
        largest: u32,
        workers: u32,
    ) -> Result<Self, StartError> {
        let refuse = |what: String, next| Err(StartError::Spec { what, next });
        if workers > 1 {
            let what = format!("{steps:?} for {workers} workers");
            return refuse(what, "use one thread, and a ring for more at once");
        }
        let smallest = targets.iter().map(|target| target.bytes).min().unwrap_or(0);
        let most = targets.iter().map(|target| target.bytes).max().unwrap_or(0);
        let fits = match steps {
            Steps::InTurn { blocks } => blocks > 0 && most >= u64::from(largest),
            Steps::Gap { bytes } => {
                // Back from the end, a whole block has to fit behind the new position.
                let back = bytes >= 0 || bytes.unsigned_abs() >= u64::from(largest);
                smallest >= u64::from(largest)
                    && bytes.unsigned_abs() <= smallest
                    && (back || bytes.unsigned_abs() < u64::from(largest))
            }
            Steps::Zoned { used, every } => {
                smallest >= u64::from(largest) && used > 0 && every >= used
            }
        };
        if !fits {
            let what = format!("{steps:?} with blocks of {largest} bytes in {smallest}");
            return refuse(what, "lower the block size or the step");
        }
        let cursor = |target: &IoTarget| Cursor {
            bytes: target.bytes,
            at: 0,
        };
        Ok(Self {
            steps,
            files: targets.iter().map(cursor).collect(),
            turn: 0,
            left: match steps {
                Steps::InTurn { blocks } => blocks,
                _ => 1,
            },
        })
    }

    /// The next `size` bytes: file and offset.
    #[inline(never)]
    pub fn advance(&mut self, size: u32) -> (u32, u64) {
        let size = u64::from(size);
        match self.steps {
            Steps::InTurn { blocks } => self.in_turn(blocks, size),
            Steps::Gap { bytes } => {
                let target = self.next_file();
                let file = &mut self.files[target];
                let at = after_gap(file.bytes, file.at, bytes);
                let at = if at + size > file.bytes { 0 } else { at };
                file.at = at + size;
                (target as u32, at)
            }
            Steps::Zoned { used, every } => {
                let target = self.next_file();
                let file = &mut self.files[target];
                // The last block of a zone may begin before the end of what is used, and end behind it.
                let at = match file.at.checked_rem(every) {
                    Some(within) if file.at > 0 && (within >= used || within == 0) => {
                        file.at.next_multiple_of(every)
                    }
                    _ => file.at,
                };
                let at = if at + size > file.bytes { 0 } else { at };
                file.at = at + size;
                (target as u32, at)
            }
        }
    }

    fn next_file(&mut self) -> usize {
        let target = self.turn;
        self.turn = (self.turn + 1) % self.files.len();
        target
    }

    fn in_turn(&mut self, blocks: u32, size: u64) -> (u32, u64) {
        let whole = |file: &Cursor| file.at + size <= file.bytes;
        if !self.files.iter().any(whole) {
            // All are done: the next pass begins with the first file.
            self.files.iter_mut().for_each(|file| file.at = 0);
            (self.turn, self.left) = (0, blocks);
        }
        while self.left == 0 || !whole(&self.files[self.turn]) {
            self.turn = (self.turn + 1) % self.files.len();
            self.left = blocks;
        }
        self.left -= 1;
        let file = &mut self.files[self.turn];
        let at = file.at;
        file.at += size;
        (self.turn as u32, at)
    }
}

/// Beginning of the next block, behind one that ended at `at`; 0 if there was none.
fn after_gap(bytes: u64, at: u64, gap: i64) -> u64 {
    if at == 0 {
        return 0;
    }
    match at.checked_add_signed(gap) {
        Some(next) if next < bytes => next,
        Some(_) => 0,
        None => bytes.saturating_add_signed(gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(steps: Steps, files: &[u64], size: u32, count: usize) -> Vec<(u32, u64)> {
        let targets: Vec<IoTarget> = files
            .iter()
            .map(|bytes| IoTarget {
                path: "file".into(),
                bytes: *bytes << 10,
            })
            .collect();
        let mut stream = SteppedStream::new(steps, &targets, size << 10, 1).unwrap();
        let step = |_| {
            let (file, at) = stream.advance(size << 10);
            (file, at >> 10)
        };
        (0..count).map(step).collect()
    }

    fn of_one(steps: Steps, bytes: u64, size: u32, count: usize) -> Vec<u64> {
        let all = offsets(steps, &[bytes], size, count);
        all.into_iter().map(|(_, at)| at).collect()
    }

    const fn gap(kib: i64) -> Steps {
        Steps::Gap { bytes: kib << 10 }
    }

    // Each of these orders was seen in fio 3.33 with its log of offsets.
    #[test]
    fn a_gap_is_left_out_after_each_block_in_either_direction() {
        assert_eq!(of_one(gap(8), 32, 4, 5), [0, 12, 24, 0, 12]);
        assert_eq!(of_one(gap(-8), 32, 4, 9), [0, 24, 20, 16, 12, 8, 4, 0, 24]);
        assert_eq!(
            of_one(gap(-12), 64, 4, 9),
            [0, 52, 44, 36, 28, 20, 12, 4, 52]
        );
        assert_eq!(of_one(gap(-4), 64, 4, 3), [0, 0, 0]);
        assert_eq!(of_one(gap(-2), 20, 4, 5), [0, 2, 4, 6, 8]);
        assert_eq!(of_one(gap(-20), 62, 4, 5), [0, 42, 26, 10, 42]);
        assert_eq!(of_one(gap(20), 110, 16, 4), [0, 36, 72, 0]);
    }

    #[test]
    fn files_take_turns_until_each_is_done() {
        let of = |file, at| (file, at);
        let turns = |blocks, count| offsets(Steps::InTurn { blocks }, &[32, 16, 0], 16, count);
        assert_eq!(turns(1, 4), [of(0, 0), of(1, 0), of(0, 16), of(0, 0)]);
        assert_eq!(turns(2, 4), [of(0, 0), of(0, 16), of(1, 0), of(0, 0)]);
    }

    #[test]
    fn the_beginning_of_each_zone_is_used() {
        let zones = |used: u64, every: u64| Steps::Zoned {
            used: used << 10,
            every: every << 10,
        };
        let all = of_one(zones(32, 96), 200, 16, 6);
        assert_eq!(all, [0, 16, 96, 112, 0, 16]);
        // The last block of a zone may reach behind what is used.
        let all = of_one(zones(40, 64), 128, 16, 7);
        assert_eq!(all, [0, 16, 32, 64, 80, 96, 0]);
        let all = of_one(zones(32, 32), 64, 16, 5);
        assert_eq!(all, [0, 16, 32, 48, 0]);
    }

    #[test]
    fn a_step_out_of_the_file_is_refused() {
        let target = IoTarget {
            path: "file".into(),
            bytes: 8192,
        };
        for (steps, workers) in [(gap(-16), 1), (gap(16), 1), (gap(4), 2)] {
            SteppedStream::new(steps, std::slice::from_ref(&target), 4096, workers).unwrap_err();
        }
    }
}
