//! No I/O: every operation completes at once. The rest is the cost of the generator.

use std::hint::black_box;

use super::{IoDevice, IoFailure};
use crate::content::ContentPool;
use crate::outcome::Op;
use crate::shape::BlockStep;

/// A device that does nothing, after everything was prepared as for a real one.
#[derive(Debug)]
pub(crate) struct Null {
    pub(crate) pool: Option<ContentPool>,
}

impl IoDevice for Null {
    #[inline(always)]
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure> {
        if let (Op::Write, Some(pool)) = (step.op, &mut self.pool) {
            // The optimizer would remove content that is never written.
            black_box(pool.take(step.size as usize));
        }
        black_box(step);
        Ok(step.size)
    }

    #[inline(always)]
    fn sync(&mut self, target: u32) -> Result<(), IoFailure> {
        black_box(target);
        Ok(())
    }
}
