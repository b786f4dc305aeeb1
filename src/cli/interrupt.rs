//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::failure::{self, Failure};
use super::terminal::error;
use stackrace_base::interrupt::Interrupt;

/// The first Ctrl-C ends what is under way cleanly and says `then`; the second ends the program at
/// once and says what is `left` to do.
pub(super) fn catch_interrupt(
    interrupt: &Arc<Interrupt>,
    then: &'static str,
    left: &'static str,
) -> Result<(), Failure> {
    let interrupt = Arc::clone(interrupt);
    let times = AtomicU32::new(0);
    ctrlc::set_handler(move || {
        interrupt.raise();
        if times.fetch_add(1, Ordering::SeqCst) >= 1 {
            error(&format!("\nstopped at once; {left}\n"));
            // The journal is on disk, so that ending here loses nothing but time.
            std::process::exit(i32::from(failure::INTERRUPTED));
        }
        let then = match interrupt.nothing_stands() {
            true => "nothing stands yet",
            false => then,
        };
        error(&format!("\nstopping: {then} (again: stop at once)\n"));
    })
    .map_err(|error| Failure::internal(format!("cannot catch Ctrl-C: {error}")))
}
