//! What was really measured: judgements on trials, each with its evidence.
//!
//! Wording is graded: a judgement says what the reader must know. Nothing is ever left out of a
//! verdict because of what is said here. Every check of `list.rs` looks at one trial alone
//! and says nothing where its counters are missing; those of `across` look at a whole run and name what
//! differs between its configurations. A new one is one file, its `mod` and one line in the list.
//! Users read `docs/audit.md`.

mod across;
mod behind;
mod cached;
mod cell;
mod check;
mod cold;
mod commanded;
mod compressed;
mod device;
mod durable;
mod generator;
mod group;
mod heat;
mod holes;
mod impossible;
mod judgement;
mod limit;
mod line;
mod list;
mod memory;
mod neighbours;
mod pause;
mod processor;
mod promised;
mod reading;
#[cfg(test)]
pub(crate) mod sample;
mod set_ups;
mod short;
mod squeezed;
mod steady;
mod stolen;
mod trial;
mod whole;

pub use behind::not_achieved;
pub use cell::AuditCell;
pub use check::AuditCheck;
pub use judgement::{Grade, Judgement, LimitedBy};
pub use limit::{Limit, limits};
pub use list::checks;
pub use promised::promised;
pub use set_ups::SetUps;
pub use steady::course;
pub use trial::{AuditedTrial, TrialAudit, trial_audit};
pub use whole::{Audit, notes};
