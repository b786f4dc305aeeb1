//! What the command line says for every command.

use std::path::PathBuf;
use std::sync::Arc;

use super::events::EventCopy;
use super::failure::Failure;
use super::interrupt::catch_interrupt;
use super::progress::{Preparing, Progress};
use super::terminal::error;
use super::variable::variable;
use stackrace_places::place::options::TypedOptions;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::observer::Observer;
use stackrace_run::prepare::observer::Preparation;
use stackrace_run::prepare::observer::WatchedRun;
use stackrace_run::run::{Interrupt, Watcher};
use stackrace_show::report::{Screen, on_one_line};

/// What the command line says for every command.
pub(super) struct Setting {
    /// Where runs are kept, and what else a session needs.
    pub(super) session: Context,
    /// The options that were typed.
    pub(super) typed: TypedOptions,
    /// Where the lines of a run's log are copied to.
    pub(super) events: EventCopy,
    /// Only the verdict is shown.
    pub(super) quiet: bool,
    /// What standard output is like.
    pub(super) screen: Screen,
    /// Colours go to standard output.
    pub(super) colour: bool,
    /// Colours go to standard error.
    pub(super) error_colour: bool,
}

impl Observer for Setting {
    fn remark(&self, text: &str) {
        if !self.quiet {
            error(&format!("{}\n", on_one_line(text)));
        }
    }

    fn warn(&self, text: &str, next: &str) {
        let (text, next) = (on_one_line(text), on_one_line(next));
        error(&format!("warning: {text}\n  next: {next}\n"));
    }

    fn doing(&self) -> Box<dyn Preparation> {
        Box::new(Preparing::new(self.quiet))
    }

    fn catch_interrupt(&self, left: &'static str) -> Result<Arc<Interrupt>, Failure> {
        let interrupt = Arc::new(Interrupt::default());
        let then = "what stands is torn down, then the verdict so far follows";
        catch_interrupt(&interrupt, then, left)?;
        Ok(interrupt)
    }

    fn watch(&self, run: WatchedRun) -> Box<dyn Watcher> {
        self.events.begin(&mut run.ledger.lock());
        Box::new(Progress::new(run, self.quiet, self.error_colour))
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
