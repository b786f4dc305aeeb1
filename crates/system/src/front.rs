//! A process in front of this one, which the shell waits for, and which only waits itself.
//!
//! The kernel does not end every call: a process with a thread in a request that a FUSE server has taken, in a frozen file
//! system or on a suspended device stays a zombie until the storage answers, even after SIGKILL, and who waits for it
//! waits as long. Such a thread is never in the process in front, so that it can always end for the one who waits. And
//! a process that is killed can say nothing; the one in front says it.

use std::io;

/// An end that this program did not choose: the process that worked was ended by a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Killed {
    /// The signal: 9 is SIGKILL.
    pub signal: i32,
    /// Processes that the kernel ended for want of memory while it worked, this one or others; 0 where it does not tell.
    pub out_of_memory: u64,
    /// The words that were [left](leave_word) last; empty if none were.
    pub last_words: String,
}

/// Puts a process in front of this one, where the system and the moment allow it: this returns in the process that
/// works. To be called before anything else, while there is one thread; else nothing is done.
///
/// Both are of one process group, so that the keys of a terminal reach both. What is sent to the one in front alone
/// (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT) is passed on, the end of a terminal too; what is sent to the group so arrives twice, once
/// [passed on](passed_on). It ends as this one ends, by the same status or signal, after `explain` was told of the signal. If it is killed, this
/// one is killed, too.
pub fn put_in_front(explain: fn(&Killed)) {
    #[cfg(target_os = "linux")]
    linux::put_in_front(explain);
    #[cfg(not(target_os = "linux"))]
    let _ = explain;
}

/// Number of signals that the process in front has passed on so far: of those that arrive, so many came by that way, and
/// may have come by the other one, too. 0 without a process in front.
pub fn passed_on() -> u64 {
    #[cfg(target_os = "linux")]
    return linux::passed_on();
    #[cfg(not(target_os = "linux"))]
    0
}

/// Leaves words with the process in front, for the case that this one is killed; later words take the place of earlier
/// ones. Without a process in front nothing is done.
pub fn leave_word(words: &str) {
    #[cfg(target_os = "linux")]
    linux::leave_word(words);
    #[cfg(not(target_os = "linux"))]
    let _ = words;
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

/// Processes that the kernel has ended for want of memory since it was started, also of a control group; 0 where it
/// does not tell.
pub fn ended_for_memory() -> u64 {
    let all = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = all.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
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
    use std::io::{self, PipeReader, PipeWriter, Read, Write};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

    use libc::{c_int, pid_t, siginfo_t, sigset_t};
    use rustix::event::{EventfdFlags, eventfd};

    use super::{Killed, ended_for_memory};
    use crate::monotonic_ns;

    /// The process in front, by number; 0 if there is none.
    static IN_FRONT: AtomicI32 = AtomicI32::new(0);

    /// Way of the last words to the process in front.
    static WORDS: OnceLock<PipeWriter> = OnceLock::new();

    /// Counts signals that are passed on and that the process that works has not counted yet.
    static PASSED: OnceLock<OwnedFd> = OnceLock::new();

    /// Signals that were passed on and counted.
    static COUNTED: AtomicU64 = AtomicU64::new(0);

    /// Time in which the same signal of one process is one wish: `timeout` sends its own to the process and to its group.
    const SAME_WISH_NS: u64 = 1_000_000_000;

    /// Bytes of last words that are kept: a pipe takes so many in one piece, whatever else is in it.
    const WORDS_BYTES: usize = libc::PIPE_BUF;

    /// Ends the words in the pipe.
    const END: u8 = 0;

    pub(super) fn put_in_front(explain: fn(&Killed)) {
        // A fork takes the calling thread alone with it: locks of others would stay locked for ever.
        let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
        if !matches!(threads, Ok(1)) {
            return;
        }
        let Ok(front) = pid_t::try_from(std::process::id()) else {
            return;
        };
        // Without a pipe (a limit on open files) there are no last words.
        let (reader, writer) = io::pipe().ok().unzip();
        let passed = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
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
            // The other one's end alone keeps the pipe open.
            drop(writer);
            wait_for(
                &told,
                &mut Below {
                    number: below,
                    words: reader,
                    passed,
                    last: None,
                    ended_before: ended_for_memory(),
                    explain,
                },
            );
        }
        // SAFETY: the set is valid; no memory is written.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut())
        };
        if below == 0 {
            belong_to(front);
            writer.map(|writer| WORDS.set(writer));
            passed.map(|passed| PASSED.set(passed));
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

    pub(super) fn passed_on() -> u64 {
        let mut new = [0; 8];
        // Nothing is read where nothing was passed on since.
        if let Some(passed) = PASSED.get()
            && rustix::io::read(passed, &mut new) == Ok(new.len())
        {
            COUNTED.fetch_add(u64::from_ne_bytes(new), Ordering::SeqCst);
        }
        COUNTED.load(Ordering::SeqCst)
    }

    pub(super) fn leave_word(words: &str) {
        let Some(mut pipe) = WORDS.get() else {
            return;
        };
        let mut piece = words.as_bytes().to_vec();
        piece.truncate(WORDS_BYTES - 1);
        piece.push(END);
        // It has room for 16 of them; a command leaves two at most.
        let _ = pipe.write_all(&piece);
    }

    /// What the process in front is told by signals: those that end a program and that it may clean up after, those of
    /// job control, the end of the other process, and its wish to be let go.
    fn told_set() -> sigset_t {
        set_of(&[
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGTSTP,
            libc::SIGCONT,
            libc::SIGCHLD,
            libc::SIGRTMIN(),
        ])
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

    /// The process that works, as the one in front sees it.
    struct Below {
        number: pid_t,
        words: Option<PipeReader>,
        passed: Option<OwnedFd>,
        /// Signal that was passed on last, its sender, and when, ns.
        last: Option<(c_int, pid_t, u64)>,
        /// Processes that the kernel had ended for want of memory when it began.
        ended_before: u64,
        explain: fn(&Killed),
    }

    /// The life of the process in front.
    fn wait_for(told: &sigset_t, below: &mut Below) -> ! {
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
                if sender == below.number {
                    let code = value.sival_ptr.addr();
                    std::process::exit(c_int::try_from(code).unwrap_or(1));
                }
            } else if signal > 0 && (about.si_code <= 0 || tells_this_one_alone(signal)) {
                // The kernel's own, from a terminal, went to the other one, too, but for that.
                // SAFETY: a signal that a process sent has a sender.
                pass_on(below, signal, unsafe { about.si_pid() });
            }
            if signal == libc::SIGTSTP {
                // The shell sees a job that stopped. It goes on here after SIGCONT.
                raise_by_default(signal);
                // SAFETY: the set is valid; no memory is written.
                unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, told, std::ptr::null_mut()) };
            }
        }
    }

    /// Returns true for the end of the terminal where this process leads its session (`ssh -t HOST stackrace …`, a
    /// window of its own): of all processes, the kernel tells the leader alone.
    fn tells_this_one_alone(signal: c_int) -> bool {
        // SAFETY: it takes a number, and writes no memory.
        let leader = unsafe { libc::getsid(0) };
        signal == libc::SIGHUP && u32::try_from(leader) == Ok(std::process::id())
    }

    fn pass_on(below: &mut Below, signal: c_int, sender: pid_t) {
        let now = monotonic_ns();
        let job_control = signal == libc::SIGTSTP || signal == libc::SIGCONT;
        let same = |(last, by, at): (c_int, pid_t, u64)| {
            (last, by) == (signal, sender) && now.saturating_sub(at) < SAME_WISH_NS
        };
        if !job_control {
            if below.last.is_some_and(same) {
                return;
            }
            below.last = Some((signal, sender, now));
            // First, so that who gets the signal finds it counted.
            if let Some(passed) = &below.passed {
                let _ = rustix::io::write(passed, &1_u64.to_ne_bytes());
            }
        }
        // SAFETY: it is the number of a child that was not waited for, so that it is no other process.
        unsafe { libc::kill(below.number, signal) };
    }

    /// Ends as the process did that works, if it has ended.
    fn end_as(below: &mut Below) {
        let mut status = 0;
        // SAFETY: the status is valid for the call.
        if unsafe { libc::waitpid(below.number, &raw mut status, libc::WNOHANG) } != below.number {
            // It was stopped, or goes on.
            return;
        }
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            (below.explain)(&Killed {
                signal,
                out_of_memory: ended_for_memory().saturating_sub(below.ended_before),
                last_words: below.words.take().map(last_words).unwrap_or_default(),
            });
            // SAFETY: one dump of a crash is enough; the argument is a number.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
            raise_by_default(signal);
        }
        std::process::exit(libc::WEXITSTATUS(status));
    }

    /// Does to this process what a signal does to a program that does not know it.
    fn raise_by_default(signal: c_int) {
        let own = set_of(&[signal]);
        // SAFETY: the default runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: it is a signal; this process has no handlers.
        unsafe { libc::raise(signal) };
        // SAFETY: the set is valid; no memory is written.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const own, std::ptr::null_mut()) };
    }

    /// The last whole words in a pipe whose other end is closed.
    fn last_words(mut pipe: PipeReader) -> String {
        // A command that the dead process was about to start may have its end still: what is there is read, no more.
        // SAFETY: the descriptor is open; the call takes numbers.
        unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        let mut all = Vec::new();
        // What was read before an error is kept.
        let _ = pipe.read_to_end(&mut all);
        let mut pieces = all.split(|byte| *byte == END).rev();
        // Behind the last end there is nothing, or a piece.
        let whole = pieces.nth(1).unwrap_or_default();
        String::from_utf8_lossy(whole).into_owned()
    }
}
