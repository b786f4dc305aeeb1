//! What the command line says for every command.

use stackrace_base::event::LeftBehind;
use std::path::PathBuf;
use std::sync::Arc;

use super::events::EventCopy;
use super::failure::Failure;
use super::interrupt::catch_interrupt;
use super::progress::{Preparing, Progress};
use super::terminal::error;
use super::variable::{base_dir, home};
use stackrace_base::failure::next_line;
use stackrace_places::place::options::TypedOptions;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::observer::Observer;
use stackrace_run::prepare::observer::Preparation;
use stackrace_run::prepare::observer::WatchedRun;
use stackrace_run::run::{Interrupt, Watcher};
use stackrace_show::report::{Screen, on_one_line};

/// Settings that the command line gives for every command.
pub(super) struct Setting {
    /// Directory of the runs, and whatever else a session needs.
    pub(super) session: Context,
    /// The options that were typed.
    pub(super) typed: TypedOptions,
    /// Destination of a copy of the lines of a run's log.
    pub(super) events: EventCopy,
    /// Only the verdict is shown.
    pub(super) quiet: bool,
    /// Properties of standard output.
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
        error(&format!("warning: {text}\n{}", next_line(2, &next)));
    }

    fn doing(&self) -> Box<dyn Preparation> {
        Box::new(Preparing::new(self.quiet))
    }

    fn catch_interrupt(&self, left: LeftBehind) -> Result<Arc<Interrupt>, Failure> {
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

/// Directory of the runs unless the command line names another.
pub(super) fn default_store() -> Option<PathBuf> {
    match (base_dir("XDG_STATE_HOME"), home()) {
        (Some(state), _) => Some(state.join("stackrace")),
        (None, Some(home)) => Some(home.join(".local/state/stackrace")),
        // Not refused here: some commands keep nothing and need no place.
        (None, None) => None,
    }
}
