//! The memory that a guest in virtual time shares with this program outside: large amounts pass at
//! once, and the guest's clock does not show it.

use stackrace_base::unit::{InWords, ShownPath};
use stackrace_machine::host::shared_memory::shared_memory;
use stackrace_system::window::SharedWindow;

/// Most that the window holds, bytes; it takes no memory until something is put there.
pub const WINDOW_BYTES: u64 = 256 << 20;

/// The window of this guest.
///
/// # Errors
/// The guest has none, or the system refuses.
pub fn open() -> Result<SharedWindow, String> {
    let memory = shared_memory(WINDOW_BYTES)?;
    let memory = memory
        .ok_or("this guest has no memory that it shares: it was not started for power cuts")?;
    SharedWindow::open(&memory)
        .map_err(|error| format!("{}: {error}", memory.shown(), error = error.in_words()))
}
