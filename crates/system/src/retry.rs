//! Calls that a signal interrupted, made again.

use rustix::io::{Errno, Result};

use crate::monotonic_ns;

/// Longest time for which one call is made again, ns. Signals go to a thread that does no I/O, so one
/// that interrupts a call here is rare; a file system that always says so is broken, and neither a limit
/// of time nor Ctrl-C would end a loop that does not look at them.
const AGAIN_NS: u64 = 500_000_000;

/// Makes a call, and again while a signal interrupts it, for half a second at most.
///
/// # Errors
/// Those of the call; [`Errno::INTR`] if it was interrupted all the time.
#[inline]
pub fn again<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    match call() {
        Err(Errno::INTR) => interrupted(call),
        done => done,
    }
}

/// The rest of [`again`]: out of the way of calls that are measured.
#[cold]
fn interrupted<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    let began = monotonic_ns();
    loop {
        match call() {
            // Looked at after the call: a program that was stopped in between gets one more try.
            Err(Errno::INTR) if monotonic_ns().saturating_sub(began) < AGAIN_NS => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_interrupted_twice_is_made_again() {
        let mut left = 2;
        let done = again(|| match left {
            0 => Ok(7),
            _ => {
                left -= 1;
                Err(Errno::INTR)
            }
        });
        assert_eq!(done, Ok(7));
    }

    #[test]
    fn a_call_that_is_always_interrupted_ends_with_that_error() {
        assert_eq!(again(|| Err::<(), _>(Errno::INTR)), Err(Errno::INTR));
        assert_eq!(again(|| Err::<(), _>(Errno::IO)), Err(Errno::IO));
    }
}
