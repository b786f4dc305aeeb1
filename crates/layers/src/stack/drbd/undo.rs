//! Takes down a replicated device whose name stackrace chose.

use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::{Param, UndoKind, text};
use std::ffi::OsString;
use std::time::Duration;

/// Takes the resource of a name down.
pub(super) const DOWN: UndoKind = UndoKind::new("drbd", "take-down", &[Param::OurName], down);

/// Number of times, and pause between them, that a device that is open is tried again.
const BUSY_TRIES: usize = 30;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Answers of drbdsetup to a name it does not know, and where its driver is not loaded.
const NO_REPLICA: [&str; 4] = [
    "Unknown resource",
    "does not exist",
    "No such",
    "Could not connect to 'drbd' generic netlink family",
];

/// Takes down a replicated device; none of that name is fine.
///
/// # Errors
/// When it stays in use, or the tool fails.
fn down(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let name = text(of, 0);
    let command = argv(["drbdsetup", "down", name]);
    let mut tries = 1;
    loop {
        let output = host.exec(&command)?;
        let said = |word: &str| output.stderr.contains(word) || output.stdout.contains(word);
        if output.status == Some(0) || NO_REPLICA.iter().any(|words| said(words)) {
            return Ok(());
        }
        // udev opens devices for a moment when they change; anything else stays as it is.
        if tries == BUSY_TRIES || !said("open") {
            return Err(HostError::failed(&command, output));
        }
        tries += 1;
        host.pause(BUSY_PAUSE);
    }
}
