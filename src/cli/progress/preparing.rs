//! One line that shows what is done before a run begins, and moves: a blank screen looks like a program
//! that hangs.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use super::super::terminal::{columns, draws, error, set_view};
use stackrace_run::prepare::observer::Preparation;
use stackrace_show::report::{columns_of, on_one_line};

/// Pause between two steps of the line.
const TICK: Duration = Duration::from_millis(250);

/// Columns before the step: the sign that moves, and the time.
const BEFORE: usize = 8;
/// Stands between the step and the place.
const IN: &str = " in ";

/// The end of a name that fits so many columns: where directories differ.
fn end(name: &str, columns: usize) -> String {
    let mut shown = name;
    while columns_of(shown) + usize::from(shown.len() < name.len()) > columns {
        let mut letters = shown.chars();
        if letters.next().is_none() {
            break;
        }
        shown = letters.as_str();
    }
    match shown.len() < name.len() {
        true => format!("…{shown}"),
        false => name.to_owned(),
    }
}

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
            let view = super::view::new();
            set_view(Some(&view));
            let line = view.add(ProgressBar::new_spinner());
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

impl Preparing {
    /// Returns true if there is a line that moves, which small steps do not fill the terminal with.
    pub(in crate::cli) fn is_drawn(&self) -> bool {
        self.line.is_some()
    }
}

impl Preparation for Preparing {
    fn now(&self, step: &str, at: &str) {
        if let Some(line) = &self.line {
            let text = match at {
                "" => step.to_owned(),
                at => {
                    let room = columns(&std::io::stderr()).saturating_sub(BEFORE + IN.len());
                    let room = room.saturating_sub(columns_of(step));
                    // Names of directories may hold anything.
                    format!("{step}{IN}{}", end(&on_one_line(at), room))
                }
            };
            line.set_message(text);
            return;
        }
        let mut said = self.said.lock();
        if self.plain && *said != step {
            step.clone_into(&mut said);
            error(&format!("{step}\n"));
        }
    }

    fn note(&self, text: &str) {
        if self.plain || self.line.is_some() {
            error(&format!("{}\n", on_one_line(text)));
        }
    }
}

impl Drop for Preparing {
    /// Leaves a clean line for what is printed next.
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
            set_view(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_name_the_end_is_seen() {
        assert_eq!(end("/mnt/a", 6), "/mnt/a");
        assert_eq!(end("/mnt/a", 5), "…nt/a");
        assert_eq!(end("/日本/a", 5), "…本/a");
        assert_eq!(end("/mnt/a", 0), "…");
    }
}
