//! Lays out files for a later phase: writes them completely, in large pieces, and syncs them.

use rustix::fs::OFlags;
use rustix::io::Errno;

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use crate::content::{ContentPool, POOL_BYTES};
use crate::control::Control;
use crate::error::StartError;
use crate::io::sync::sync_file;
use crate::outcome::{Op, OpError};
use crate::spec::{Content, IoTarget};
use stackrace_system::retry::again;

/// Bytes of one write.
const PIECE_BYTES: usize = 1 << 20;
/// The content's stream: different from those of all workers with the same seed.
const STREAM: u32 = (1 << 20) - 1;

/// Writes the first `bytes` bytes of every target, creates it if missing, and syncs it. Bytes
/// beyond that stay as they are. Nothing is measured; `control` shows the progress (operations are
/// writes of up to 1 MiB).
///
/// If [`Control::stop`] is set, returns `Ok` at once and leaves the files unfinished.
///
/// # Errors
/// [`StartError::Open`]; [`StartError::LayOut`] with path, offset and errno of the write that
/// failed (a full device, for one); [`StartError::Memory`].
pub fn lay_out(
    targets: &[IoTarget],
    content: Content,
    seed: u64,
    control: &Control,
) -> Result<(), StartError> {
    // Duplicates repeat pieces of this size; compressible shares hold for pages within them.
    let mut pool = ContentPool::new(
        content,
        seed,
        STREAM,
        1,
        PIECE_BYTES..=PIECE_BYTES,
        POOL_BYTES,
    )?;
    for target in targets {
        let file = crate::target::open(target, OFlags::WRONLY | OFlags::CREATE)?;
        if !write_whole(target, &file, &mut pool, control)? {
            return Ok(());
        }
        sync_file(&file, false).map_err(|errno| failed(Op::Fsync, target, None, errno))?;
    }
    Ok(())
}

/// Returns whether it got to the end.
fn write_whole(
    target: &IoTarget,
    file: &OwnedFd,
    pool: &mut ContentPool,
    control: &Control,
) -> Result<bool, StartError> {
    let mut offset = 0;
    while offset < target.bytes {
        // Between pieces: a large file would otherwise delay the stop by minutes.
        if control.stopped() {
            return Ok(false);
        }
        let wanted = (target.bytes - offset).min(PIECE_BYTES as u64) as usize;
        let mut piece = pool.take(wanted);
        while !piece.is_empty() {
            let written = again(|| rustix::io::pwrite(file, piece, offset))
                .map_err(|errno| failed(Op::Write, target, Some(offset), errno))?;
            // A write that moves nothing would loop for ever.
            if written == 0 {
                return Err(failed(Op::Write, target, Some(offset), Errno::IO));
            }
            offset += written as u64;
            piece = &piece[written..];
        }
        control.ops.fetch_add(1, Ordering::Relaxed);
        control.bytes.fetch_add(wanted as u64, Ordering::Relaxed);
    }
    Ok(true)
}

fn failed(op: Op, target: &IoTarget, offset: Option<u64>, errno: Errno) -> StartError {
    StartError::LayOut(OpError {
        op,
        path: target.path.clone(),
        offset,
        errno: errno.raw_os_error(),
        detail: String::new(),
    })
}
