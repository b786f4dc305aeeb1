//! Laying out files whose content a later phase verifies.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;

use super::ledger::ContentLedger;
use super::verifier::Verified;
use crate::control::Control;
use crate::error::StartError;
use crate::io::sync::Sync;
use crate::io::{IoDevice, IoFailure};
use crate::outcome::{Op, OpError};
use crate::shape::BlockStep;
use stackrace_system::memory::AlignedMemory;

/// Bytes of one write, or a unit if that is larger.
const PIECE_BYTES: usize = 1 << 20;

/// Writes every unit of the ledger's files once, creates what is missing, and syncs it, like
/// [`crate::lay_out`]; the ledger then knows what they hold. What is left at the end of a file,
/// smaller than a unit, is not touched.
///
/// If [`Control::stop`] is raised, returns at once with `Ok` and the files unfinished: what was not
/// written is not checked later.
///
/// # Errors
/// [`StartError::Open`]; [`StartError::LayOut`] with path, offset and errno of the write that
/// failed; [`StartError::Memory`].
pub fn lay_out_verified(ledger: &ContentLedger, control: &Control) -> Result<(), StartError> {
    let flags = OFlags::WRONLY | OFlags::CREATE;
    let files = ledger.targets().iter();
    let files: Vec<_> = files
        .map(|target| crate::target::open(target, flags))
        .collect::<Result<_, _>>()?;
    let unit_bytes = ledger.unit_bytes();
    // Whole units, so that each piece is one operation of a verified phase.
    let piece_bytes = (PIECE_BYTES / unit_bytes).max(1) * unit_bytes;
    let device = Sync {
        files: &files,
        read: AlignedMemory::new(piece_bytes)?,
        pool: None,
        data_only: false,
    };
    let nothing_read = AtomicU64::new(0);
    let mut device = Verified::new(device, 1, ledger, &files, &nothing_read);
    for target in 0..files.len() as u32 {
        if !write_whole(ledger, &mut device, target, piece_bytes as u64, control)? {
            return Ok(());
        }
        let synced = device.sync(target);
        synced.map_err(|fault| failed(ledger, Op::Fsync, target, None, fault))?;
    }
    Ok(())
}

/// Returns whether it got to the end.
fn write_whole<D: IoDevice>(
    ledger: &ContentLedger,
    device: &mut D,
    target: u32,
    piece_bytes: u64,
    control: &Control,
) -> Result<bool, StartError> {
    let unit_bytes = ledger.unit_bytes() as u64;
    let end = ledger.units_of(target).len() as u64 * unit_bytes;
    let mut offset = 0;
    while offset < end {
        let step = BlockStep {
            op: Op::Write,
            target,
            size: (end - offset).min(piece_bytes) as u32,
            offset,
        };
        let fail = |fault| failed(ledger, Op::Write, target, Some(offset), fault);
        // A phase on the same ledger may be under way, and have some of it in use.
        while !control.stopped() && !device.prepare(&step) {
            std::thread::yield_now();
        }
        if control.stopped() {
            return Ok(false);
        }
        let moved = device.issue(&step).map_err(fail)?;
        // A write is not looked at, only booked.
        let _ = device.check(&step, moved);
        // A unit written in part is written again as a whole.
        let whole = u64::from(moved) / unit_bytes * unit_bytes;
        if whole == 0 {
            return Err(fail(IoFailure::NOTHING_WRITTEN));
        }
        offset += whole;
        control.ops.fetch_add(1, Ordering::Relaxed);
        control.bytes.fetch_add(whole, Ordering::Relaxed);
    }
    Ok(true)
}

fn failed(
    ledger: &ContentLedger,
    op: Op,
    target: u32,
    offset: Option<u64>,
    fault: IoFailure,
) -> StartError {
    StartError::LayOut(OpError {
        op,
        path: ledger.targets()[target as usize].path.clone(),
        offset,
        errno: fault.errno,
        detail: fault.detail.to_owned(),
    })
}
