//! Guests that keep to a processor of the host.
//!
//! The threads of a guest in virtual time hand over to each other thousands of times a second and never
//! work at the same time. On one processor that is a switch between two threads; on two it wakes a
//! processor each time (measured: a guest takes 13 % less time on one).

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Processors that this program may use.
fn allowed() -> Option<(CpuSet, Vec<usize>)> {
    let set = sched_getaffinity(None).ok()?;
    let all = (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number));
    Some((set, all.collect()))
}

/// Has a program that `start` starts keep to a processor: that of its `place` among `guests` which run
/// side by side. Where the guests are not given all processors, others need some, and the
/// kernel decides.
pub(super) fn keeping_to_one<T>(place: usize, guests: usize, start: impl FnOnce() -> T) -> T {
    let Some((before, all)) = allowed() else {
        return start();
    };
    let Some(own) = all.get(place).filter(|_| guests == all.len()) else {
        return start();
    };
    let mut only = CpuSet::new();
    only.set(*own);
    // A program inherits the processors of the thread that starts it.
    let moved = sched_setaffinity(None, &only).is_ok();
    let started = start();
    if moved {
        // It was allowed a moment ago.
        let _ = sched_setaffinity(None, &before);
    }
    started
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_keeps_to_its_own_processor_and_this_program_to_none() {
        let (_, all) = allowed().unwrap();
        let within = |place, guests| keeping_to_one(place, guests, || allowed().unwrap().1);
        for (place, processor) in all.iter().enumerate() {
            assert_eq!(within(place, all.len()), [*processor]);
        }
        assert_eq!(within(0, all.len() + 1), all, "more guests than processors");
        assert_eq!(within(all.len(), all.len()), all, "no such place");
        assert_eq!(allowed().unwrap().1, all, "as it was before");
    }
}
