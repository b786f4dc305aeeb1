//! Processor time of the whole process: what its threads did, and what the kernel did for them.
//!
//! Work of the kernel's own threads (write-back; not `io_uring` workers) belongs to no process and
//! is not included. Units: nanoseconds; the kernel counts in microseconds.

use std::mem::MaybeUninit;

/// Processor time since the process began, or between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Time in the program itself.
    pub user_ns: u64,
    /// Time in the kernel on its behalf.
    pub system_ns: u64,
}

impl Cpu {
    /// Time used until now, including ended threads (`getrusage`, `RUSAGE_SELF`).
    pub fn now() -> Cpu {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is room for one `rusage`, which the call fills and keeps no pointer to.
        let done = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        debug_assert_eq!(done, 0, "RUSAGE_SELF cannot be refused");
        // SAFETY: all bytes of it are zero since it was made, or what the kernel wrote; a `rusage`
        // is numbers only, so that either is a valid one.
        let usage = unsafe { usage.assume_init() };
        Cpu {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
        }
    }

    /// Time used since this moment.
    pub fn spent(self) -> Cpu {
        let now = Cpu::now();
        Cpu {
            user_ns: now.user_ns.saturating_sub(self.user_ns),
            system_ns: now.system_ns.saturating_sub(self.system_ns),
        }
    }
}

/// A time of the kernel's, ns.
pub fn nanoseconds(time: libc::timeval) -> u64 {
    // The two parts have other types on other systems; neither is negative.
    let [seconds, micros] = [
        u64::try_from(time.tv_sec).unwrap_or(0),
        u64::try_from(time.tv_usec).unwrap_or(0),
    ];
    let all = seconds.saturating_mul(1_000_000).saturating_add(micros);
    all.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_told_apart() {
        let begun = Cpu::now();
        // Other tests of this process may add to it, none can take away.
        while begun.spent().user_ns < 1_000_000 {
            std::hint::black_box((0..1000).sum::<u64>());
        }
        let zero = std::fs::File::open("/dev/zero").unwrap();
        let mut room = vec![0; 1 << 20];
        while begun.spent().system_ns < 1_000_000 {
            std::io::Read::read_exact(&mut &zero, &mut room).unwrap();
        }
        let spent = begun.spent();
        assert!(spent.user_ns >= 1_000_000 && spent.system_ns >= 1_000_000);
    }
}
