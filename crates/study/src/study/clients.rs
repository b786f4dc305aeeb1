//! How many clients measure one storage at once, as factors of the study.
//!
//! Two names of factors have a meaning: the levels of `clients` are numbers of clients, those of
//! `processes` numbers of processes on each. No layer and no workload has to name them.

use std::collections::HashSet;

use super::design::{Factor, Study};

use stackrace_base::setting::{Refusal, Value};

/// The factor whose levels are numbers of clients.
pub const CLIENTS: &str = "clients";
/// The factor whose levels are numbers of processes on each client.
pub(super) const PROCESSES: &str = "processes";

/// Most processes of a trial: each is a connection.
const MOST: i64 = 10_000;

/// Returns true if a factor of this name says how many clients measure.
pub(super) fn is_number_of_clients(name: &str) -> bool {
    [CLIENTS, PROCESSES].contains(&name)
}

/// Refuses levels that are no numbers of clients; those that a layer or a workload names are its own.
pub(super) fn check(factors: &[Factor], used: &HashSet<usize>, refusals: &mut Vec<Refusal>) {
    for (index, factor) in factors.iter().enumerate() {
        // One that is named by a layer or a workload may mean anything there.
        if !is_number_of_clients(&factor.name) || used.contains(&index) {
            continue;
        }
        for level in &factor.levels {
            if !matches!(level.value, Value::Integer(1..=MOST)) {
                refusals.push(Refusal::at(
                    &level.span,
                    format!(
                        "a level of \"{}\" is a number from 1 to {MOST}",
                        factor.name
                    ),
                    format!("write it like {} = [1, 2, 4]", factor.name),
                ));
            }
        }
    }
}

impl Study {
    /// Number of clients that take part in a configuration, and of processes on each; `None` means
    /// as many as the command line names.
    pub fn clients_of(&self, configuration: usize) -> (Option<u32>, Option<u32>) {
        let level = |name: &str| {
            let at = self.factors.iter().position(|factor| factor.name == name)?;
            let label = self.configurations.get(configuration)?.levels.get(at)?;
            // A configuration knows its levels by their labels.
            let mut levels = self.factors[at].levels.iter();
            match levels.find(|level| level.label == *label)?.value {
                Value::Integer(number) => u32::try_from(number).ok(),
                _ => None,
            }
        };
        (level(CLIENTS), level(PROCESSES))
    }

    /// The most clients, and the most processes on each, that any configuration needs.
    pub fn clients_most(&self) -> (Option<u32>, Option<u32>) {
        // None is less than any number.
        let all = (0..self.configurations.len()).map(|each| self.clients_of(each));
        all.fold((None, None), |most, each| {
            (most.0.max(each.0), most.1.max(each.1))
        })
    }
}
