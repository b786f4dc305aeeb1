//! One line that shows what is done before a run begins, and moves: a blank screen looks like a program
//! that hangs.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use super::super::terminal::{draws, error};
use crate::session::Preparation;
use stackrace_show::report::harmless;

/// How often the line moves.
const TICK: Duration = Duration::from_millis(250);

/// The line, until it is dropped.
pub(in crate::cli) struct Preparing {
    /// None: there is nothing to draw on.
    line: Option<ProgressBar>,
    /// Steps are said in plain lines.
    plain: bool,
    said: Mutex<String>,
}

impl Preparing {
    /// A line on a terminal; elsewhere a plain one for each step.
    pub(in crate::cli) fn new(quiet: bool) -> Self {
        let mut new = Self::drawn(quiet);
        new.plain = !quiet && !draws();
        new
    }

    /// A line on a terminal, and nothing elsewhere: for what takes a few seconds.
    pub(in crate::cli) fn drawn(quiet: bool) -> Self {
        let line = (!quiet && draws()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
            let line = ProgressBar::new_spinner();
            line.set_style(style.tick_chars("|/-\\ "));
            line.enable_steady_tick(TICK);
            line
        });
        Self {
            line,
            plain: false,
            said: Mutex::default(),
        }
    }
}

impl Preparation for Preparing {
    fn now(&self, step: &str, at: &str) {
        if let Some(line) = &self.line {
            let text = match at {
                "" => step.to_owned(),
                at => format!("{step} in {at}"),
            };
            // Names of directories may hold anything.
            line.set_message(harmless(&text).into_owned());
            return;
        }
        let mut said = self.said.lock();
        if self.plain && *said != step {
            step.clone_into(&mut said);
            error(&format!("{step}\n"));
        }
    }
}

impl Drop for Preparing {
    /// Leaves a clean line for what is printed next.
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}
