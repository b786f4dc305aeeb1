//! The room for the data of trials whose sizes are found: what the system shows as free, and less where it refuses that.
//!
//! A quota of a user, a group or a directory does not always show in the free space of a file system. Then the first
//! trial that is refused tells: sizes are found anew with less.

use std::cell::{Cell, RefCell};

use rustix::io::Errno;
use stackrace_base::event::FailureCause;
use stackrace_base::unit;
use stackrace_study::purpose::WorkloadSize;

/// Room for the data of one workload; a copy of them takes as much again.
pub(crate) struct TrialRoom {
    bytes: Cell<u64>,
    workloads: u64,
    refused: RefCell<Option<RefusedRoom>>,
}

/// Bytes that a directory did not take.
struct RefusedRoom {
    /// The directory, as the user called it.
    name: String,
    bytes: u64,
    why: Errno,
}

impl TrialRoom {
    /// Room for each of so many workloads, all of whose data lie in `bytes`.
    pub(crate) fn of(bytes: u64, workloads: usize) -> Self {
        let workloads = workloads as u64;
        Self {
            bytes: Cell::new(each(bytes, workloads)),
            workloads,
            refused: RefCell::default(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Notes the cause of a trial that failed in a directory, and the bytes that it would have taken.
    pub(crate) fn note(&self, name: &str, bytes: u64, cause: Option<&FailureCause>) {
        let is_cause = |why: &Errno| cause == Some(&FailureCause::Errno(why.raw_os_error()));
        let why = [Errno::DQUOT, Errno::NOSPC].into_iter().find(is_cause);
        *self.refused.borrow_mut() = why.map(|why| RefusedRoom {
            name: name.to_owned(),
            bytes,
            why,
        });
    }

    /// Takes less from here on, if what failed last was refused for want of room, and less says anything; with a sentence
    /// about that.
    pub(crate) fn less(&self) -> Option<String> {
        let refused = self.refused.take()?;
        // No trial is smaller than that, whatever the room is.
        if self.bytes.get() <= WorkloadSize::LEAST.bytes {
            return None;
        }
        // How much was there already is not known: half of what did not fit is a guess, and the next one is lower.
        let each = each(refused.bytes / 2, self.workloads);
        self.bytes.set(each.min(self.bytes.get() / 2));
        let limit = match refused.why {
            Errno::DQUOT => "its quota",
            _ => "its file system",
        };
        Some(format!(
            "{limit} refused {} in {}: trials are sized for less",
            unit::bytes(refused.bytes),
            refused.name
        ))
    }
}

/// What the workloads read or write over stays; one more writes or copies.
fn each(bytes: u64, workloads: u64) -> u64 {
    bytes / (workloads + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn room_that_is_refused_shrinks_until_less_says_nothing() {
        let room = TrialRoom::of(4000 * MIB, 2);
        assert_eq!(room.less(), None);
        let quota = FailureCause::Errno(Errno::DQUOT.raw_os_error());
        room.note("/a", 400 * MIB, Some(&quota));
        let said = room.less().unwrap();
        assert_eq!(
            said,
            "its quota refused 400 MiB in /a: trials are sized for less"
        );
        assert_eq!(room.bytes(), 50 * MIB);
        // What is refused for another reason has nothing to do with room.
        let broken = FailureCause::Errno(Errno::IO.raw_os_error());
        room.note("/a", 400 * MIB, Some(&quota));
        room.note("/a", 400 * MIB, Some(&broken));
        assert_eq!(room.less(), None);
        let mut tries = 0;
        loop {
            room.note("/a", 400 * MIB, Some(&quota));
            match room.less() {
                Some(_) => tries += 1,
                None => break,
            }
        }
        assert_eq!(tries, 2);
    }
}
