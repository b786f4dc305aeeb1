//! Guests that keep to a processor of the host.
//!
//! The threads of a guest in virtual time hand over to each other thousands of times a second and never
//! work at the same time. On one processor that is a switch between two threads; on two it wakes a
//! processor each time (measured: a guest takes 13 % less time on one).

use stackrace_system::{allowed_processors, keep_to_processors};

/// Has a program that `start` starts keep to a processor: that of its `place` among `guests` which run
/// side by side. Where the guests are not given all processors, others need some, and the
/// kernel decides.
pub(super) fn keeping_to_one<T>(place: usize, guests: usize, start: impl FnOnce() -> T) -> T {
    let Some(all) = allowed_processors() else {
        return start();
    };
    let Some(own) = all.get(place).filter(|_| guests == all.len()) else {
        return start();
    };
    // A program inherits the processors of the thread that starts it.
    let moved = keep_to_processors(&[*own]).is_ok();
    let started = start();
    if moved {
        // It was allowed a moment ago.
        let _ = keep_to_processors(&all);
    }
    started
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_keeps_to_its_own_processor_and_this_program_to_none() {
        let all = allowed_processors().unwrap();
        let within =
            |place, guests| keeping_to_one(place, guests, || allowed_processors().unwrap());
        for (place, processor) in all.iter().enumerate() {
            assert_eq!(within(place, all.len()), [*processor]);
        }
        assert_eq!(within(0, all.len() + 1), all, "more guests than processors");
        assert_eq!(within(all.len(), all.len()), all, "no such place");
        assert_eq!(allowed_processors().unwrap(), all, "as it was before");
    }
}
