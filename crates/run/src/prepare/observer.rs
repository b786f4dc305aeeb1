//! What a session reports while it works, and what it asks.

use stackrace_base::event::LeftBehind;
use std::sync::Arc;

use crate::run::{Interrupt, SharedLedger, Watcher};
use stackrace_base::failure::Failure;
use stackrace_results::record::NowFile;

/// An observer that is told what a session does. It alone decides what of it is shown, and how.
pub trait Observer {
    /// Tells something worth a line, unless the user asked for silence.
    fn remark(&self, text: &str);

    /// Tells something the user has to act on: what, and what to do.
    fn warn(&self, text: &str, next: &str);

    /// Tells that something is done before a run begins. It is shown until what this returns is dropped.
    fn doing(&self) -> Box<dyn Preparation>;

    /// Ctrl-C ends what follows cleanly. A second one ends the program at once; `left` says what is
    /// then to be done.
    ///
    /// # Errors
    /// Ctrl-C cannot be caught.
    fn catch_interrupt(&self, left: LeftBehind) -> Result<Arc<Interrupt>, Failure>;

    /// A run begins or goes on. It is watched until what this returns is dropped.
    fn watch(&self, run: WatchedRun) -> Box<dyn Watcher>;
}

/// Shows what is done before a run begins.
pub trait Preparation {
    /// `step` is under way, and how far it is: `finding sizes: write (2 of 4)`. `at` says where.
    fn now(&self, step: &str, at: &str);
    /// Something that the reader has to know was found meanwhile: a sentence without its end.
    fn note(&self, text: &str);
}

/// An observer whose Ctrl-C is caught already: it can be caught once only.
pub struct Caught<'a> {
    /// Told of everything.
    pub inner: &'a dyn Observer,
    /// Set by Ctrl-C.
    pub interrupt: Arc<Interrupt>,
}

impl Observer for Caught<'_> {
    fn remark(&self, text: &str) {
        self.inner.remark(text);
    }

    fn warn(&self, text: &str, next: &str) {
        self.inner.warn(text, next);
    }

    fn doing(&self) -> Box<dyn Preparation> {
        self.inner.doing()
    }

    fn catch_interrupt(&self, _left: LeftBehind) -> Result<Arc<Interrupt>, Failure> {
        Ok(Arc::clone(&self.interrupt))
    }

    fn watch(&self, run: WatchedRun) -> Box<dyn Watcher> {
        self.inner.watch(run)
    }
}

/// A run that begins or goes on.
pub struct WatchedRun {
    /// Everything that happened so far, and happens.
    pub ledger: SharedLedger,
    /// Names of the configurations.
    pub configurations: Vec<String>,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Rounds the study allows.
    pub rounds_max: u32,
    /// Time it allows, s; `None` if there is no limit.
    pub time_max_s: Option<f64>,
    /// The file that tells other programs what the run is doing; `None` if it cannot be written.
    pub now: Option<NowFile>,
}
