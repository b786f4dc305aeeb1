//! What was really measured: judgements on trials, each with its evidence.
//!
//! Wording is graded: a judgement says what the reader must know. Nothing is ever left out of a
//! verdict because of what is said here. Every check looks at one trial alone and says nothing
//! where its counters are missing; a new one is one file and one line in [`ALL`]. Users read
//! `docs/audit.md`.

mod behind;
mod cached;
mod cold;
mod compressed;
mod device;
mod durable;
mod generator;
mod heat;
mod impossible;
mod judgement;
mod limit;
mod line;
mod memory;
mod neighbours;
mod processor;
mod reading;
#[cfg(test)]
mod sample;
mod short;
mod steady;
mod stolen;
mod whole;

pub(crate) use behind::not_achieved;
pub(crate) use judgement::{Grade, Judgement, LimitedBy};
pub(crate) use limit::{Limit, limits};
pub(crate) use steady::course;
pub(crate) use whole::{Audit, Cell, TrialAudit, notes};

use judgement::Finding;
use reading::Reading;

/// One check.
#[derive(Debug)]
pub(crate) struct Check {
    /// Its name, as a heading of a column.
    pub(crate) name: &'static str,
    /// What it answers, as a question.
    pub(crate) question: &'static str,
    /// Whether it looks for what sets the pace, not for what spoils a figure.
    pub(crate) limits: bool,
    /// Judges one trial; none: its counters are missing, or it does not apply.
    judge: fn(&Reading<'_>) -> Option<Finding>,
}

/// Every check, alphabetical by file. Where a trial has several limits, the first of these is named.
pub(crate) const ALL: &[Check] = &[
    behind::CHECK,
    cached::CHECK,
    cold::CHECK,
    compressed::CHECK,
    device::CHECK,
    durable::CHECK,
    generator::CHECK,
    heat::CHECK,
    impossible::CHECK,
    line::CHECK,
    memory::CHECK,
    neighbours::CHECK,
    processor::CHECK,
    short::CHECK,
    steady::CHECK,
    stolen::CHECK,
];
