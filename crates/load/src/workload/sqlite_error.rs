//! Errors of SQLite, with the number of the system that their code stands for: it does not pass on the system's own.

use rusqlite::ErrorCode;
use rustix::io::Errno;

use super::{WorkloadError, trouble};
use stackrace_base::event::FailureCause;

/// The number of the system that an error stands for; `None` if it is SQLite's alone.
pub(crate) fn errno(error: &rusqlite::Error) -> Option<i32> {
    let errno = match error.sqlite_error_code()? {
        ErrorCode::DiskFull => Errno::NOSPC,
        ErrorCode::SystemIoFailure => Errno::IO,
        ErrorCode::ReadOnly => Errno::ROFS,
        ErrorCode::PermissionDenied => Errno::PERM,
        _ => return None,
    };
    Some(errno.raw_os_error())
}

/// The same as the trouble of a workload.
pub(crate) fn refused(error: rusqlite::Error) -> WorkloadError {
    WorkloadError {
        cause: errno(&error).map(FailureCause::Errno),
        ..trouble(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_under_a_database_is_a_cause_that_can_be_mended() {
        let failed = |code| {
            let error = rusqlite::ffi::Error::new(code);
            refused(rusqlite::Error::SqliteFailure(error, None)).cause
        };
        let full = failed(rusqlite::ffi::SQLITE_FULL);
        assert_eq!(full, Some(FailureCause::Errno(28)));
        assert_eq!(
            failed(rusqlite::ffi::SQLITE_IOERR_FSYNC),
            Some(FailureCause::Errno(5))
        );
        assert_eq!(failed(rusqlite::ffi::SQLITE_CORRUPT), None);
    }
}
