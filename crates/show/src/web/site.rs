//! What is served, and what may be done from a page.

use std::sync::Arc;

use super::cache::RunCache;
use super::guard::Guard;
use super::limits::Limits;
use stackrace_base::printed::{ImportError, ImportSource};
use stackrace_base::time::Clock;
use stackrace_results::record::RunSource;

/// Actions that may be taken from the page.
pub trait RunControl: Send + Sync {
    /// Studies that may be started, by the names of their files.
    fn studies(&self) -> Vec<String>;
    /// Starts one of them.
    ///
    /// # Errors
    /// Why not, for the visitor.
    fn start(&self, study: &str) -> Result<(), String>;
    /// Goes on with a run.
    ///
    /// # Errors
    /// Why not, for the visitor.
    fn resume(&self, run: &str) -> Result<(), String>;
    /// Asks a run to stop, as Ctrl-C does.
    ///
    /// # Errors
    /// Why not, for the visitor.
    fn stop(&self, run: &str) -> Result<(), String>;
    /// Keeps imported results as a run, and gives back its id.
    ///
    /// # Errors
    /// Why not, for the visitor.
    fn keep(&self, sources: &[ImportSource], title: String) -> Result<String, String>;
    /// Runs that were started from the page, oldest first.
    fn begun(&self) -> Vec<Begun>;
}

/// Reads what other tools printed.
#[derive(Debug, Clone, Copy)]
pub struct TextReader {
    /// The tools whose results can be read.
    pub tools: fn() -> Vec<&'static str>,
    /// Reads a text under this name.
    pub read: fn(&str, String) -> Result<ImportSource, ImportError>,
}

/// A command that was started from the page.
#[derive(Debug, Clone)]
pub struct Begun {
    /// `run demo.toml`.
    pub what: String,
    /// Its processes: of which one tells what the run does; none if it has ended.
    pub pids: Vec<u32>,
    /// Outcome, in words; `None` if it goes on.
    pub ended: Option<String>,
    /// The end of what it said.
    pub said: String,
}

/// All that a server needs to answer requests.
pub struct WebSite {
    /// The runs.
    pub(super) cache: RunCache,
    /// Guard that decides who is let in.
    pub(super) guard: Guard,
    /// Actions that may be taken; `None` if nothing.
    pub(super) control: Option<Arc<dyn RunControl>>,
    /// Reads what other tools printed.
    pub(super) reader: TextReader,
    /// Clock that tells the time.
    pub(super) clock: Arc<dyn Clock>,
    /// Resources that visitors take.
    pub(super) limits: Arc<Limits>,
}

impl WebSite {
    /// Runs, for those the guard lets in; without control they can only read.
    pub fn new(
        source: Arc<dyn RunSource>,
        guard: Guard,
        control: Option<Arc<dyn RunControl>>,
        reader: TextReader,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            cache: RunCache::new(source),
            guard,
            control,
            reader,
            clock,
            limits: Arc::default(),
        }
    }
}
