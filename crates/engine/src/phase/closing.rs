//! The end of a phase: the closing fsync, and the failure as it is reported.

use super::BlockPhase;
use crate::block_worker::FailedOp;
use crate::clock::FastClock;
use crate::io::sync::sync_file;
use crate::outcome::{Op, OpError};
use crate::recorder::Recorder;

impl BlockPhase<'_> {
    /// The closing fsync, and when it ended in the phase's time, ns.
    pub(super) fn close(
        &self,
        mut clock: FastClock,
        elapsed_ns: u64,
    ) -> (Recorder, Option<FailedOp>, u64) {
        if self.control.seat.is_some() || self.spec.again.is_some() {
            // The time in which other phases had their parts, and between two passes, is none of this one.
            clock.set(elapsed_ns);
        }
        let (recorder, failed) = self.sync_all(clock);
        (recorder, failed, clock.now_ns())
    }

    /// Syncs every file, one after the other.
    fn sync_all(&self, clock: FastClock) -> (Recorder, Option<FailedOp>) {
        // Apart from the threads' recorders: none of them did this.
        let mut recorder = Recorder::new(self.spec.slice_ns, &[Op::Fsync]).closing();
        let mut begun_ns = clock.now_ns();
        for (target, file) in self.files.iter().enumerate() {
            let synced = sync_file(file, self.spec.durability.data_only);
            let now_ns = clock.now_ns();
            if let Err(errno) = synced {
                let target = target as u32;
                let fault = errno.into();
                let failure = FailedOp {
                    op: Op::Fsync,
                    target,
                    offset: None,
                    fault,
                    finding: String::new(),
                    at_ns: now_ns,
                };
                return (recorder, Some(failure));
            }
            recorder.record(Op::Fsync, begun_ns, now_ns, 0);
            // One reading serves as the end of one and the beginning of the next.
            begun_ns = now_ns;
        }
        (recorder, None)
    }

    /// A failure with the path it happened on.
    pub(super) fn error(&self, failure: FailedOp) -> OpError {
        OpError {
            op: failure.op,
            path: self.spec.targets[failure.target as usize].path.clone(),
            offset: failure.offset,
            errno: failure.fault.errno,
            detail: if failure.finding.is_empty() {
                failure.fault.detail.to_owned()
            } else {
                failure.finding
            },
        }
    }
}
