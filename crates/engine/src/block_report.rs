//! Runs one worker to its end and collects its results.

use crate::block_worker::{BlockWorker, FailedOp, drive};
use crate::io::IoDevice;
use crate::pace::Pacer;
use crate::recorder::Recorder;
use crate::ring::{InFlight, Ring, drive_ring};
use crate::watch::Finish;

/// The results of one worker.
pub(crate) struct BlockReport {
    pub(crate) recorder: Recorder,
    pub(crate) finish: Finish,
    pub(crate) failure: Option<FailedOp>,
    pub(crate) outstanding_ns: u64,
    pub(crate) back: u64,
    pub(crate) end_ns: u64,
    pub(crate) unissued: u64,
}

/// Runs a worker to its end.
pub(crate) fn drive_whole<D: IoDevice, P: Pacer>(
    mut worker: BlockWorker<'_>,
    device: &mut D,
    mut pace: P,
) -> BlockReport {
    match worker.watch.first_part() {
        None => loop {
            drive(&mut worker, device, &mut pace);
            if !worker.next_pass() {
                break;
            }
        },
        Some(finish) => worker.finish = finish,
    }
    report(worker, pace)
}

/// Runs a worker with a ring to its end; also returns whether the ring was drained.
pub(crate) fn drive_ring_whole<R: Ring, P: Pacer>(
    mut worker: BlockWorker<'_>,
    ring: &mut R,
    mut pace: P,
    flight: &mut InFlight,
) -> (BlockReport, bool) {
    let drained = match worker.watch.first_part() {
        None => loop {
            let drained = drive_ring(&mut worker, ring, &mut pace, flight);
            if !drained || !worker.next_pass() {
                break drained;
            }
        },
        Some(finish) => {
            worker.finish = finish;
            true
        }
    };
    (report(worker, pace), drained)
}

/// The results of a worker that is done.
fn report<P: Pacer>(mut worker: BlockWorker<'_>, pace: P) -> BlockReport {
    let end_ns = worker.watch.now_ns();
    worker.watch.report(&worker.recorder);
    worker.watch.retire(&worker.recorder);
    // Operations that became due while the last ones completed were not due in the phase's time.
    let owed = pace.owed(end_ns.min(worker.watch.deadline_ns()));
    BlockReport {
        recorder: worker.recorder,
        finish: worker.finish,
        failure: worker.failure,
        outstanding_ns: worker.outstanding_ns,
        back: worker.watch.back(),
        end_ns,
        unissued: owed.min(worker.left),
    }
}
