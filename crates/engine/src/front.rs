//! A process in front of this one, which the shell waits for, and which only waits itself.
//!
//! The kernel does not end every call: a process with a thread in a request that a FUSE server has taken, in a frozen file
//! system or on a suspended device stays a zombie until the storage answers, even after SIGKILL, and who waits for it
//! waits as long. Such a thread is never in the process in front, so that it can always end for the one who waits.

use std::io;

/// Puts a process in front of this one, where the system and the moment allow it: this returns in the process that
/// works. To be called before anything else, while there is one thread; else nothing is done.
///
/// Both are of one process group, so that the keys of a terminal reach both. What is sent to the one in front alone
/// (SIGINT, SIGTERM, SIGHUP, SIGQUIT) is passed on. It ends as this one ends, by the same status or signal, and if it is
/// killed, this one is killed, too.
pub fn put_in_front() {
    #[cfg(target_os = "linux")]
    linux::put_in_front();
}

/// Has the process in front end now with this status, whatever this one still waits for; without one, nothing is done.
/// What is left of this process is killed, as far as the kernel can.
///
/// # Errors
/// The system refuses.
pub fn let_go(code: u8) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return linux::let_go(code);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = code;
        Ok(())
    }
}

/// Returns true if a hang-up of the terminal is ignored, as nohup(1) has it. To be asked before handlers are set.
pub fn hangup_is_ignored() -> bool {
    #[cfg(target_os = "linux")]
    return linux::hangup_is_ignored();
    #[cfg(not(target_os = "linux"))]
    false
}

/// Ignores a hang-up of the terminal, whatever handler was set.
pub fn ignore_hangup() {
    #[cfg(target_os = "linux")]
    linux::ignore_hangup();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicI32, Ordering};

    use libc::{c_int, pid_t, siginfo_t, sigset_t};

    /// The process in front, by number; 0 if there is none.
    static IN_FRONT: AtomicI32 = AtomicI32::new(0);

    /// Signals that end a program and that it may clean up after.
    const PASSED_ON: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

    pub(super) fn put_in_front() {
        // A fork takes the calling thread alone with it: locks of others would stay locked for ever.
        let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
        if !matches!(threads, Ok(1)) {
            return;
        }
        let Ok(front) = pid_t::try_from(std::process::id()) else {
            return;
        };
        let told = told_set();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are valid for the call, which fills the second.
        let blocked =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const told, before.as_mut_ptr()) };
        if blocked != 0 {
            return;
        }
        // SAFETY: the call was successful, so that the set is filled.
        let before: sigset_t = unsafe { before.assume_init() };
        // SAFETY: there is one thread, so that the new process has everything that it needs.
        let below = unsafe { libc::fork() };
        if below > 0 {
            wait_for(below, &told);
        }
        // SAFETY: the set is valid; no memory is written.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut())
        };
        if below == 0 {
            belong_to(front);
        }
        // Where a limit allows no further process, this one works without.
    }

    /// Ties this process to the one in front.
    fn belong_to(front: pid_t) {
        // SAFETY: the argument is a signal.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        // SAFETY: it has no arguments, and cannot fail.
        if unsafe { libc::getppid() } != front {
            // It ended before it could be tied to it.
            std::process::exit(1);
        }
        IN_FRONT.store(front, Ordering::SeqCst);
    }

    pub(super) fn hangup_is_ignored() -> bool {
        let mut now = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: nothing is set, and what is set now is written to memory that is valid for the call.
        let asked = unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), now.as_mut_ptr()) };
        // SAFETY: zeros are valid for all of it, also where nothing was filled in.
        asked == 0 && unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN
    }

    pub(super) fn ignore_hangup() {
        // SAFETY: to ignore a signal runs no code of ours.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }

    pub(super) fn let_go(code: u8) -> io::Result<()> {
        let front = IN_FRONT.load(Ordering::SeqCst);
        if front == 0 {
            return Ok(());
        }
        let value = libc::sigval {
            sival_ptr: std::ptr::without_provenance_mut(usize::from(code)),
        };
        // SAFETY: the value is carried as a number, and never followed.
        match unsafe { libc::sigqueue(front, libc::SIGRTMIN(), value) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What the process in front is told by signals.
    fn told_set() -> sigset_t {
        let [int, term, hup, quit] = PASSED_ON;
        set_of(&[int, term, hup, quit, libc::SIGCHLD, libc::SIGRTMIN()])
    }

    fn set_of(signals: &[c_int]) -> sigset_t {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the call makes an empty set of whatever is there.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: it was made just now.
        let mut set = unsafe { set.assume_init() };
        for signal in signals {
            // SAFETY: the set is valid; a number that is no signal is refused.
            unsafe { libc::sigaddset(&raw mut set, *signal) };
        }
        set
    }

    /// The life of the process in front.
    fn wait_for(below: pid_t, told: &sigset_t) -> ! {
        loop {
            let mut about = MaybeUninit::<siginfo_t>::zeroed();
            // SAFETY: both are valid; the second is filled.
            let signal = unsafe { libc::sigwaitinfo(told, about.as_mut_ptr()) };
            // SAFETY: zeros are valid for all of it, also where nothing was filled in.
            let about = unsafe { about.assume_init() };
            if signal == libc::SIGCHLD {
                end_as(below);
            } else if signal == libc::SIGRTMIN() && about.si_code == libc::SI_QUEUE {
                // SAFETY: a signal that was queued has a sender.
                let sender = unsafe { about.si_pid() };
                // SAFETY: and a value.
                let value = unsafe { about.si_value() };
                if sender == below {
                    let code = value.sival_ptr.addr();
                    std::process::exit(c_int::try_from(code).unwrap_or(1));
                }
            } else if signal > 0 && about.si_code <= 0 {
                // The kernel's own, from a terminal, went to the other one, too.
                // SAFETY: it is the number of a child that was not waited for, so that it is no other process.
                unsafe { libc::kill(below, signal) };
            }
        }
    }

    /// Ends as the process did that works, if it has ended.
    fn end_as(below: pid_t) {
        let mut status = 0;
        // SAFETY: the status is valid for the call.
        if unsafe { libc::waitpid(below, &raw mut status, libc::WNOHANG) } != below {
            // It was stopped, or goes on.
            return;
        }
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            let own = set_of(&[signal]);
            // SAFETY: one dump of a crash is enough; the argument is a number.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
            // SAFETY: the default runs no code of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            // SAFETY: the set is valid; no memory is written.
            unsafe {
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const own, std::ptr::null_mut())
            };
            // SAFETY: the signal is one that ends a process.
            unsafe { libc::raise(signal) };
        }
        std::process::exit(libc::WEXITSTATUS(status));
    }
}
