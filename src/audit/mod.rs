//! What was really measured: judgements on trials, each with its evidence.
//!
//! Wording is graded: a judgement says what the reader must know. Nothing is ever left out of a
//! verdict because of what is said here. Every check looks at one trial alone and says nothing
//! where its counters are missing; a new one is one file, its `mod` and one line in `list.rs`. Users
//! read `docs/audit.md`.

mod behind;
mod cached;
mod check;
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
mod list;
mod memory;
mod neighbours;
mod pause;
mod processor;
mod reading;
#[cfg(test)]
mod sample;
mod short;
mod steady;
mod stolen;
mod whole;

pub(crate) use behind::not_achieved;
pub(crate) use check::AuditCheck;
pub(crate) use judgement::{Grade, Judgement, LimitedBy};
pub(crate) use limit::{Limit, limits};
pub(crate) use list::checks;
pub(crate) use steady::course;
pub(crate) use whole::{Audit, AuditCell, TrialAudit, notes};
