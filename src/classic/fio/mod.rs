//! fio's job files and reports: the language read into jobs, and what a run printed as fio 3.33
//! prints it.
//!
//! The semantics are those of fio's manual and of its behaviour; no code is its. What is read here
//! is resolved as far as words go; which files there are, and how large, is not known here.

mod job;
mod json;
mod language;
mod normal;
mod options;
mod report;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use job::{Access, Content, Engine, Extent, Files, Job, Pace, Reserve, jobs};
pub(crate) use json::json;
pub(crate) use language::{Sections, Switch};
pub(crate) use normal::{announced, normal};
pub(crate) use options::is_flag;
pub(crate) use report::{CLASSES, JobReport, Latency, Moved, Own, Report};

/// Percentiles that are reported unless a job lists others.
pub(crate) const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Who printed a report, in the place where fio names itself.
pub(crate) const VERSION: &str = concat!(
    "stackrace-",
    env!("CARGO_PKG_VERSION"),
    " (fio-3.33 layout)"
);

/// Where an option stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a job file.
    Line {
        /// As it was named.
        file: String,
        /// From 1.
        line: usize,
    },
    /// On the command line.
    Argument,
}

/// Why a job cannot be done as it is written; nothing was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Where.
    pub(crate) place: Place,
    /// What is wrong there.
    pub(crate) what: String,
    /// What to do.
    pub(crate) next: String,
}

impl Refusal {
    /// A refusal of what stands at a place.
    pub(crate) fn at(place: &Place, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            place: place.clone(),
            what: what.into(),
            next: next.into(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Place::Line { file, line } => write!(f, "{file}:{line}: {}", self.what),
            Place::Argument => write!(f, "command line: {}", self.what),
        }
    }
}
