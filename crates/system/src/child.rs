//! A child process that has ended: how it ended, and the processor time it took.

use std::io;
use std::mem::MaybeUninit;

use crate::cpu::nanoseconds;
use crate::wait4;

/// A child that was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReapedChild {
    /// Status as `wait(2)` gives it; `std::os::unix::process::ExitStatusExt::from_raw` takes it apart.
    pub status: i32,
    /// Processor time in user mode, its own and that of children it waited for, ns.
    pub cpu_user_ns: u64,
    /// The same in the kernel.
    pub cpu_system_ns: u64,
}

/// A program that a signal stopped for a second or more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedProgram {
    /// For how long, at least, ns.
    pub ns: u64,
    /// Its name for people, `fio (process 4711)`; `None` where it is not told.
    pub who: Option<String>,
}

/// Waits for the end of a child and forgets it: its number may be another process's from then on.
///
/// # Errors
/// It is no child of this process, or was waited for already.
pub fn reap_child(pid: u32) -> io::Result<ReapedChild> {
    let number = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: `status` and `usage` are room for what the call writes; it keeps no pointer to them.
        let waited = unsafe { wait4(number, &mut status, 0, usage.as_mut_ptr()) };
        if waited == number {
            break;
        }
        let error = io::Error::last_os_error();
        // A signal to this process says nothing about the child.
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: all bytes of it are zero since it was made, or what the kernel wrote; a `rusage` is
    // numbers only, so that either is a valid one.
    let usage = unsafe { usage.assume_init() };
    Ok(ReapedChild {
        status,
        cpu_user_ns: nanoseconds(usage.ru_utime),
        cpu_system_ns: nanoseconds(usage.ru_stime),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus};

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a child is needed, and this crate has no room that starts one"
    )]
    #[expect(
        clippy::zombie_processes,
        reason = "the function that is tested waits for it"
    )]
    fn a_child_is_waited_for_once_with_its_time_and_status() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3";
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let reaped = reap_child(child.id()).unwrap();
        assert_eq!(ExitStatus::from_raw(reaped.status).code(), Some(3));
        assert!(reaped.cpu_user_ns + reaped.cpu_system_ns > 0);
        reap_child(child.id()).unwrap_err();
    }
}
