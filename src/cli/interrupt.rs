//! Ctrl-C.

use stackrace_base::event::LeftBehind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::failure::{self, Failure};
use super::terminal::error;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_engine::front;
use stackrace_engine::waits::{StorageWait, storage_waits, storage_waits_of};
use stackrace_machine::host::process;

/// Time between two looks at what is waited for. A call that both find has not returned in between.
const LOOK: Duration = Duration::from_secs(1);

/// The same where the program is about to end.
const SHORT_LOOK: Duration = Duration::from_millis(200);

/// The first Ctrl-C ends what is under way cleanly and says `then`; the second ends the program at
/// once and says what is `left` to do.
pub(super) fn catch_interrupt(
    interrupt: &Arc<Interrupt>,
    then: &'static str,
    left: LeftBehind,
) -> Result<(), Failure> {
    let interrupt = Arc::clone(interrupt);
    let times = AtomicU32::new(0);
    let ignored = front::hangup_is_ignored();
    ctrlc::set_handler(move || {
        interrupt.raise();
        if times.fetch_add(1, Ordering::SeqCst) >= 1 {
            error(&format!("\nstopped at once; {}\n", left.words()));
            // The kernel does not end every call: the process then stays, and does nothing any more.
            let before = waits();
            SystemClock.sleep(SHORT_LOOK);
            for (wait, by) in waits().iter().filter(|wait| before.contains(wait)) {
                error(&match by {
                    None => format!(
                        "the process goes when the kernel gives up its {wait}; nothing more is done\n"
                    ),
                    Some(command) => format!("{command} goes on until its {wait} returns\n"),
                });
            }
            // Who waits for this program waits no longer, whatever the kernel still keeps of it.
            let _ = front::let_go(failure::INTERRUPTED);
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
    .map_err(|error| uncaught(&error))?;
    if ignored {
        // Under nohup a run goes on when its terminal is gone.
        front::ignore_hangup();
    }
    Ok(())
}

/// The failure of a machine that gives this process no thread to wait for Ctrl-C in.
fn uncaught(error: &ctrlc::Error) -> Failure {
    match error {
        ctrlc::Error::System(why) => Failure::unable(format!(
            "cannot start a thread that waits for Ctrl-C: {why}"
        ))
        .next(failure::THREADS),
        // A second handler is a fault of ours, and no limit of the system's.
        _ => Failure::internal(format!("cannot wait for Ctrl-C: {error}")),
    }
}

/// Calls to storage of this process, and of the commands that it started, each of those with the command.
fn waits() -> Vec<(StorageWait, Option<String>)> {
    let own = storage_waits().into_iter().map(|wait| (wait, None));
    let commands = process::below().into_iter().flat_map(|(number, line)| {
        let by = format!("`{line}` (process {number})");
        let waits = storage_waits_of(number).into_iter();
        waits.map(move |wait| (wait, Some(by.clone())))
    });
    own.chain(commands).collect()
}

/// Says which calls to storage do not return, each once, for as long as the program goes on.
fn say_waits() {
    let mut said = Vec::new();
    let mut before = waits();
    loop {
        SystemClock.sleep(LOOK);
        let now = waits();
        for one in now.iter().filter(|one| before.contains(one)) {
            if said.contains(one) {
                continue;
            }
            let (wait, by) = one;
            let by = by
                .as_ref()
                .map_or_else(String::new, |by| format!(" in {by}"));
            error(&format!(
                "waiting for storage: {wait}{by} does not return (Ctrl-C again: stop at once)\n"
            ));
            said.push(one.clone());
        }
        before = now;
    }
}
