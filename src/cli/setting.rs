//! What the command line says for every command.

use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::events::EventCopy;
use super::failure::Failure;
use super::interrupt::catch_interrupt;
use super::progress::Progress;
use super::terminal::error;
use super::variable::variable;
use crate::run::{Interrupt, Watcher};
use crate::session::{Context, Observer, Start, WatchedRun};
use stackrace_show::report::Screen;

/// Most bytes of an answer that are read.
const ANSWER_BYTES: u64 = 64;

/// What the command line says for every command.
pub(super) struct Setting {
    /// Where runs are kept, and what else a session needs.
    pub(super) session: Context,
    /// Where the lines of a run's log are copied to.
    pub(super) events: EventCopy,
    /// Only the verdict is shown.
    pub(super) quiet: bool,
    /// What standard output is like.
    pub(super) screen: Screen,
}

impl Observer for Setting {
    fn remark(&self, text: &str) {
        if !self.quiet {
            error(&format!("{text}\n"));
        }
    }

    fn warn(&self, text: &str, next: &str) {
        error(&format!("warning: {text}\n  next: {next}\n"));
    }

    fn wait_or_start(&self, text: &str) -> Start {
        // A script, or a user who wants nothing but the verdict, is not to be kept waiting.
        if self.quiet || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            self.remark(&format!("{text} Going on; more time: --time TIME"));
            return Start::Now;
        }
        error(&format!(
            "{text}\nWait for a quieter time (w), or go on now (Enter)? "
        ));
        let mut answer = String::new();
        // Where nothing can be read there is no answer.
        let read = std::io::stdin()
            .lock()
            .take(ANSWER_BYTES)
            .read_line(&mut answer);
        match (read, answer.trim().to_lowercase().as_str()) {
            (Ok(_), "w" | "wait") => {
                error("waiting; looking again in 30 s; Ctrl-C gives up\n");
                Start::Later
            }
            _ => Start::Now,
        }
    }

    fn catch_interrupt(&self, left: &'static str) -> Result<Arc<Interrupt>, Failure> {
        let interrupt = Arc::new(Interrupt::default());
        let then = "what stands is torn down, then the verdict so far follows";
        catch_interrupt(&interrupt, then, left)?;
        Ok(interrupt)
    }

    fn watch(&self, run: WatchedRun) -> Box<dyn Watcher> {
        self.events.begin(&mut run.ledger.lock());
        Box::new(Progress::new(run, self.quiet, self.screen.colour))
    }
}

/// Where runs are kept unless the command line says so.
pub(super) fn default_store() -> Option<PathBuf> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty());
    match (named("XDG_STATE_HOME"), named("HOME")) {
        (Some(state), _) => Some(PathBuf::from(state).join("stackrace")),
        (None, Some(home)) => Some(PathBuf::from(home).join(".local/state/stackrace")),
        // Not refused here: some commands keep nothing and need no place.
        (None, None) => None,
    }
}
