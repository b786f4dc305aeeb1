//! Processes that a measured program left: they come to this program when their parent ends
//! (prctl(2), PR_SET_CHILD_SUBREAPER), whatever they did to their environment, group and session.
//!
//! Children that this program started itself are known, and what was there before the program began is none of it.

use super::process::{self, KnownProcess, known};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, waitpid};
use stackrace_system::{hold_process, signal_held};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

/// Times that orphans are looked for again: one may start another while it is ended.
const LOOKS: usize = 10;

/// Programs under way whose orphans come here.
static UNDER_WAY: Mutex<UnderWay> = Mutex::new(UnderWay {
    programs: 0,
    before: BTreeSet::new(),
});

struct UnderWay {
    /// Number of them. Orphans of several cannot be told apart: the last that ends takes all.
    programs: usize,
    /// Children that were there before the first.
    before: BTreeSet<KnownProcess>,
}

/// A program under way, which may leave processes.
pub(super) struct Orphans {
    /// True if what it leaves is to go on: it is this program's own then.
    kept: bool,
}

impl Orphans {
    /// From here on what is orphaned below this program comes to it.
    pub(super) fn expected(kept: bool) -> Self {
        let mut all = UNDER_WAY.lock();
        if all.programs == 0 {
            all.before = children().map(known).collect();
            // A system without it has none that come here: they are found by their environment alone.
            #[cfg(target_os = "linux")]
            let _ = rustix::process::set_child_subreaper(Some(getpid()));
        }
        all.programs += 1;
        Self { kept }
    }

    /// Ends those that came, and those that come when they end, if no other program is under way. Who they were.
    pub(super) fn end(self) -> Vec<String> {
        let mut names = Vec::new();
        // Held to the end: what a program that begins now leaves must not be taken for this one's.
        let all = UNDER_WAY.lock();
        if self.kept {
            for (id, _) in came(&all.before) {
                process::keep_as_own(id);
                // Nothing else waits for it, and as a zombie it would seem to run: the tool that stops it waits
                // until it is gone.
                std::thread::spawn(move || waitpid(Some(id), WaitOptions::empty()));
            }
            drop(all);
            return names;
        }
        for _ in 0..LOOKS {
            if all.programs > 1 {
                break;
            }
            let found = came(&all.before);
            if found.is_empty() {
                break;
            }
            for (id, held) in &found {
                let name = process::about(*id, "comm");
                if !has_ended(held) {
                    names.push(format!("{} (process {})", name.trim(), id.as_raw_nonzero()));
                }
                // One that ended meanwhile is what was wanted.
                let _ = signal_held(held, Signal::KILL);
            }
            for (id, held) in &found {
                let second = Timespec {
                    tv_sec: 1,
                    tv_nsec: 0,
                };
                let _ = poll(&mut [PollFd::new(held, PollFlags::IN)], Some(&second));
                // Nothing else waits for it. One that cannot be ended (it hangs in a call) stays.
                let _ = waitpid(Some(*id), WaitOptions::NOHANG);
            }
        }
        // Before `self` is dropped, which takes it again.
        drop(all);
        names
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        let mut all = UNDER_WAY.lock();
        all.programs -= 1;
        if all.programs == 0 {
            // Daemons of other commands, a file system in user space for example, are no children of ours any more.
            #[cfg(target_os = "linux")]
            let _ = rustix::process::set_child_subreaper(None);
        }
    }
}

/// Children that were not there before, and that this program did not start.
fn came(before: &BTreeSet<KnownProcess>) -> Vec<(Pid, OwnedFd)> {
    let own = process::own_children();
    let came = children().filter_map(|id| {
        // Held first: what is read then is of this process, or it has ended.
        let held = hold_process(id).ok()?;
        let who = known(id);
        let strange = !before.contains(&who) && !own.contains(&who);
        (strange && process::parent(id) == Some(getpid())).then_some((id, held))
    });
    came.collect()
}

fn children() -> impl Iterator<Item = Pid> {
    process::all().filter(|id| process::parent(*id) == Some(getpid()))
}

fn has_ended(process: &OwnedFd) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}
