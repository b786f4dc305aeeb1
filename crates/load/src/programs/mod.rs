//! Workloads that other programs carry out: a command that the user gives, or a built-in one.
//!
//! A program runs in the trial's directory and is watched from outside: its time, its processor time,
//! its bytes, what it prints. If a study names the command, it runs only with the user's
//! permission.

mod build;
mod command;
mod command_promises;
mod figure_unit;
#[cfg(test)]
mod figure_unit_tests;
pub mod fio;
mod generated;
mod git;
mod number;
mod postgresql;
mod ran;
mod reported;
mod same_work;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "testing"))]
pub mod written;

pub use command::{PREPARE, RUN, WORDS};
pub use reported::{FoundFigures, Printed, found_in};
pub use same_work::other_work;

use std::sync::LazyLock;

use crate::tools;
use crate::workload::{self, WorkloadKind};

/// Every kind of workload that is a program of others, alphabetical.
const ALL: &[WorkloadKind] = &[
    build::KIND,
    command::KIND,
    command_promises::KIND,
    fio::KIND,
    git::KIND,
    postgresql::KIND,
    #[cfg(feature = "sqlite")]
    sqlite::KIND,
];

/// The kind of workload of a name; `None` if there is none.
pub fn kind(name: &str) -> Option<&'static WorkloadKind> {
    workloads().iter().find(|kind| kind.name == name)
}

/// Every kind of workload, alphabetical: those of the room `workload`, those of the classic tools, and
/// those of this room.
pub fn workloads() -> &'static [WorkloadKind] {
    static KINDS: LazyLock<Vec<WorkloadKind>> = LazyLock::new(|| {
        let tools = tools::ALL.iter().filter_map(|tool| tool.workload);
        let own = workload::ALL.iter().chain(ALL).copied();
        let mut kinds: Vec<WorkloadKind> = own.chain(tools).collect();
        // Listed by name, wherever they live.
        kinds.sort_by_key(|kind| kind.name);
        kinds
    });
    &KINDS
}
