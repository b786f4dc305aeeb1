//! Opens the files of a phase.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::StartError;
use crate::spec::{Fresh, IoEngine, IoTarget, Spec};
use stackrace_system::retry::again;
use stackrace_system::{Advice, FallocateFlags, NOATIME, O_DSYNC, direct, fadvise, fallocate};

/// Opens every target as the spec says, and reserves its blocks if it asks for that.
pub(crate) fn open_all(spec: &Spec) -> Result<Vec<OwnedFd>, StartError> {
    let mut flags = match spec.read_share {
        // Blocks are read before they are written.
        _ if spec.engine == IoEngine::Update => OFlags::RDWR | OFlags::CREATE,
        1.0 => OFlags::RDONLY,
        0.0 => OFlags::WRONLY | OFlags::CREATE,
        _ => OFlags::RDWR | OFlags::CREATE,
    };
    if spec.direct {
        // Before any file is made; a phase has at least one.
        let refused = |_| StartError::DirectRefused {
            path: spec.targets[0].path.clone(),
        };
        flags |= direct().map_err(refused)?;
    }
    flags |= durable_on_return(spec.durability.open_dsync, spec.durability.open_sync);
    let reserves = spec.preallocate && spec.read_share < 1.0;
    let open_one = |target| {
        let file = open(target, flags)?;
        if reserves {
            preallocate(target, &file)?;
        }
        Ok(file)
    };
    spec.targets.iter().map(open_one).collect()
}

/// Flags with which each write is durable when it returns: `O_DSYNC`, `O_SYNC`, or none of both.
pub(crate) fn durable_on_return(dsync: bool, sync: bool) -> OFlags {
    // The bits of `O_DSYNC` are among those of `O_SYNC`: to clear one is to clear the other.
    match (dsync, sync) {
        (_, true) => OFlags::SYNC,
        (true, false) => O_DSYNC,
        (false, false) => OFlags::empty(),
    }
}

/// Makes files what they were before a pass over them (see [`Fresh`]).
///
/// # Errors
/// The index of the file that could not be emptied or reserved anew, and why.
pub(crate) fn freshen(spec: &Spec, files: &[OwnedFd], fresh: Fresh) -> Result<(), (u32, Errno)> {
    for ((file, target), number) in files.iter().zip(&spec.targets).zip(0..) {
        match fresh {
            // A kernel that does not drop them would not before the first pass either, and what was
            // in memory then is on record.
            Fresh::Evicted => drop(fadvise(file, 0, None, Advice::DontNeed)),
            Fresh::Anew => {
                let empty = || rustix::fs::ftruncate(file, 0);
                again(empty).map_err(|errno| (number, errno))?;
                if spec.preallocate && target.bytes > 0 {
                    let bytes = target.bytes;
                    let reserve = || fallocate(file, FallocateFlags::empty(), 0, bytes);
                    again(reserve).map_err(|errno| (number, errno))?;
                }
            }
        }
    }
    Ok(())
}

/// Reserves the blocks of the part of a file the phase may touch; a shorter file grows to it.
fn preallocate(target: &IoTarget, file: &OwnedFd) -> Result<(), StartError> {
    if target.bytes == 0 {
        // The call refuses an empty range.
        return Ok(());
    }
    let reserve = || fallocate(file, FallocateFlags::empty(), 0, target.bytes);
    again(reserve).map_err(|errno| StartError::Preallocate {
        path: target.path.clone(),
        bytes: target.bytes,
        errno: errno.raw_os_error(),
    })
}

/// Opens one target. Reads do not update the access time if possible: that would be a metadata
/// write the phase did not ask for, and about 60 ns per read.
pub(crate) fn open(target: &IoTarget, flags: OFlags) -> Result<OwnedFd, StartError> {
    let attempt = |flags| {
        rustix::fs::open(
            &target.path,
            flags | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o644),
        )
    };
    let opened = match attempt(flags | NOATIME) {
        // Only the owner may ask for it.
        Err(Errno::PERM) => attempt(flags),
        other => other,
    };
    opened.map_err(|errno| match errno {
        Errno::INVAL if direct().is_ok_and(|direct| flags.contains(direct)) => {
            StartError::DirectRefused {
                path: target.path.clone(),
            }
        }
        errno => StartError::Open {
            path: target.path.clone(),
            errno: errno.raw_os_error(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags the kernel has really set.
    fn obtained(flags: OFlags) -> OFlags {
        let file = tempfile::NamedTempFile::new().unwrap();
        let target = IoTarget {
            path: file.path().into(),
            bytes: 0,
        };
        rustix::fs::fcntl_getfl(open(&target, flags).unwrap()).unwrap()
    }

    #[test]
    fn o_dsync_does_not_set_o_sync() {
        const O_SYNC: u32 = 0o4_010_000;
        let bits = |dsync, sync| {
            let flags = OFlags::WRONLY | durable_on_return(dsync, sync);
            obtained(flags).bits() & O_SYNC
        };
        assert_eq!(bits(false, false), 0);
        assert_eq!(bits(true, false), 0o10000);
        assert_eq!(bits(false, true), O_SYNC);
        assert_eq!(bits(true, true), O_SYNC);
    }

    #[test]
    fn the_files_of_a_phase_are_opened_as_durable_as_asked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (dsync, bits) in [(false, 0), (true, 0o10000)] {
            let target = IoTarget {
                path: file.path().into(),
                bytes: 4096,
            };
            let mut spec = Spec::reads(vec![target], 4096);
            spec.read_share = 0.0;
            spec.durability.open_dsync = dsync;
            let opened = open_all(&spec).unwrap();
            let flags = rustix::fs::fcntl_getfl(&opened[0]).unwrap();
            assert_eq!(flags.bits() & 0o4_010_000, bits, "{flags:?}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let target = IoTarget {
            path: "/nonexistent/file".into(),
            bytes: 1,
        };
        let error = open(&target, OFlags::RDONLY).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot open /nonexistent/file: No such file or directory"
        );
    }
}
