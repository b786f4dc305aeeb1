//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::failure::{self, Failure};
use super::terminal::error;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_engine::waits::{StorageWait, storage_waits};

/// Time between two looks at what is waited for. A call that both find has not returned in between.
const LOOK: Duration = Duration::from_secs(1);

/// The same where the program is about to end.
const SHORT_LOOK: Duration = Duration::from_millis(200);

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
            // The kernel does not end every call: the process then stays, and does nothing any more.
            let before = storage_waits();
            SystemClock.sleep(SHORT_LOOK);
            for wait in storage_waits().iter().filter(|wait| before.contains(wait)) {
                error(&format!(
                    "the process goes when the kernel gives up its {wait}; nothing more is done\n"
                ));
            }
            // The journal is on disk, so that ending here loses nothing but time.
            std::process::exit(i32::from(failure::INTERRUPTED));
        }
        let then = match interrupt.nothing_stands() {
            true => "nothing stands yet",
            false => then,
        };
        error(&format!("\nstopping: {then} (again: stop at once)\n"));
        // Where no thread can be had, less is said.
        let _ = std::thread::Builder::new().spawn(say_waits);
    })
    .map_err(|error| Failure::internal(format!("cannot catch Ctrl-C: {error}")))
}

/// Says which calls to storage do not return, each once, for as long as the program goes on.
fn say_waits() {
    let mut said: Vec<StorageWait> = Vec::new();
    let mut before = storage_waits();
    loop {
        SystemClock.sleep(LOOK);
        let now = storage_waits();
        for wait in now.iter().filter(|wait| before.contains(wait)) {
            if !said.contains(wait) {
                error(&format!(
                    "waiting for storage: {wait} does not return (Ctrl-C again: stop at once)\n"
                ));
                said.push(wait.clone());
            }
        }
        before = now;
    }
}
