//! Reading one file from beginning to end, as `dd if=FILE of=/dev/null bs=N` does, without the
//! write to nowhere.

use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, read};

use super::copy::at;
use crate::control::Control;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::{PhaseOptions, alone, fault, refusal};
use stackrace_system::memory::AlignedMemory;

/// Reads the file or device at `path` in blocks of `block_bytes`, past the page cache if `direct`,
/// to its end, or until at least `bytes` have been read.
///
/// Records one [`Op::Read`] per call; the one that finds the end moves nothing. A shorter last
/// block is no short read; one in the middle is counted as such and the reading goes on behind it.
///
/// # Errors
/// Nothing was measured: the file cannot be opened, `direct` is refused, the block is empty or
/// there is no memory for it. Whatever fails later is found in [`PhaseOutcome::error`].
pub fn read_file(
    path: &Path,
    block_bytes: u32,
    direct: bool,
    bytes: Option<u64>,
    slice_ns: u64,
    control: &Control,
) -> Result<PhaseOutcome, OpError> {
    if block_bytes == 0 {
        return Err(refusal(Op::Read, path, Errno::INVAL, "the block is empty"));
    }
    let plain = OFlags::RDONLY | OFlags::CLOEXEC;
    let flags = if direct {
        stackrace_system::direct().map(|direct| plain | direct)
    } else {
        Ok(plain)
    };
    let opened = flags.and_then(|flags| openat(CWD, path, flags, Mode::empty()));
    let source = opened.map_err(|errno| match errno {
        Errno::INVAL if direct => refusal(
            Op::Open,
            path,
            errno,
            "cannot be opened for direct I/O; use direct = false",
        ),
        errno => fault(Op::Open, path, errno),
    })?;
    let mut memory = AlignedMemory::new(block_bytes as usize)
        .map_err(|error| refusal(Op::Read, path, Errno::NOMEM, error.to_string()))?;
    let why = format!(
        "read by calls of {block_bytes} bytes{}",
        if direct { ", past the page cache" } else { "" }
    );
    let watch = PhaseOptions {
        slice_ns,
        control,
        ops: &[Op::Read],
    };
    Ok(alone(watch, why, |worker| {
        let block = &mut memory.bytes_mut()[..block_bytes as usize];
        let (mut offset, mut short) = (0, false);
        while bytes.is_none_or(|bytes| offset < bytes) {
            worker.proceed()?;
            let got = worker.time(Op::Read, || read(&source, &mut *block).map(|n| n as u64));
            match got.map_err(|errno| at(Op::Read, path, offset, errno))? {
                0 => break,
                got => {
                    // Only now: a short block at the end of the file is not a short read.
                    if short {
                        worker.count_short();
                    }
                    short = got < u64::from(block_bytes);
                    offset += got;
                }
            }
        }
        Ok(())
    }))
}
