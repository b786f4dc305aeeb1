//! What can be seen to be wrong, or easily misread, before anything is measured.

use stackrace_base::unit::ShownPath;
use std::collections::{BTreeMap, HashMap};

use crate::study::Study;
use stackrace_base::unit;

use super::content::{Lint, LintWeight, Plan};
use super::costs::Costs;

/// Rounds the first check needs: fewer show no spread to judge by.
const FIRST_LOOK: u32 = 3;

/// Everything found; `memory_bytes`: size of the machine's memory, where known.
pub(super) fn lints(
    study: &Study,
    plan: &Plan,
    costs: &Costs,
    memory_bytes: Option<u64>,
) -> Vec<Lint> {
    let mut lints = Vec::new();
    lints.extend(too_few_rounds(study, plan));
    lints.extend(too_little_room(plan));
    lints.extend(too_small_a_stack(study));
    lints.extend(one_configuration(study));
    lints.extend(same_twice(study));
    lints.extend(unbalanced(study));
    lints.extend(in_memory(study, costs, memory_bytes));
    lints
}

fn problem(text: String) -> Lint {
    Lint {
        weight: LintWeight::Problem,
        text,
    }
}

fn note(text: String) -> Lint {
    Lint {
        weight: LintWeight::Note,
        text,
    }
}

/// Fewer rounds than a verdict needs: allowed, for a user who wants figures alone.
fn too_few_rounds(study: &Study, plan: &Plan) -> Option<Lint> {
    // Nothing is compared, so no number of rounds is too small.
    if plan.comparisons == 0 {
        return None;
    }
    if study.decide.rounds_max < FIRST_LOOK {
        return Some(note(format!(
            "rounds-at-most is {}: the first check needs {FIRST_LOOK} rounds",
            study.decide.rounds_max
        )));
    }
    let (slow, fast) = plan.time.rounds;
    let allowed = unit::long_time(study.decide.time_max_ns as f64 / 1e9);
    if fast < FIRST_LOOK {
        return Some(note(format!(
            "only {} into {allowed}: the first check needs {FIRST_LOOK}",
            fit(fast)
        )));
    }
    // Only a note: storage of ordinary speed gets there.
    (slow < FIRST_LOOK).then(|| {
        note(format!(
            "on slow storage only {} into {allowed}: the first check needs {FIRST_LOOK}",
            fit(slow)
        ))
    })
}

fn fit(rounds: u32) -> String {
    match rounds {
        0 => "part of a round fits".to_owned(),
        1 => "1 round fits".to_owned(),
        _ => format!("{rounds} rounds fit"),
    }
}

fn too_little_room(plan: &Plan) -> Vec<Lint> {
    plan.disk
        .iter()
        .filter_map(|need| {
            let free = need.free_bytes?;
            (need.needed_bytes > free).then(|| {
                problem(format!(
                    "{} must be free in {}; {} are free",
                    unit::bytes(need.needed_bytes),
                    need.path.shown(),
                    unit::bytes(free)
                ))
            })
        })
        .collect()
}

fn too_small_a_stack(study: &Study) -> Option<Lint> {
    study.configurations.iter().find_map(|configuration| {
        let sizes: Vec<u64> = configuration
            .stack
            .disk_needed()
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect();
        // A place without a size of its own grows with the data.
        if sizes.is_empty() || sizes.contains(&0) {
            return None;
        }
        let size = sizes.into_iter().fold(0_u64, u64::saturating_add);
        let needed = configuration.data_bytes();
        // What is laid out, read back or moved in fixed work is needed for sure; the rest is an estimate, which
        // may be far from what a command does.
        let surely = configuration.costs().map(|cost| {
            let used = cost.prepare_bytes.max(cost.working_set_bytes);
            used.max(cost.measured_bytes.unwrap_or(0))
                .min(cost.disk_bytes)
        });
        let said = |verb: &str| {
            format!(
                "the workloads {verb} {}, and the stack of {} has {}",
                unit::bytes(needed),
                configuration.name,
                unit::bytes(size)
            )
        };
        (needed > size).then(|| match surely.max() > Some(size) {
            true => problem(said("need")),
            false => note(said("may need")),
        })
    })
}

fn one_configuration(study: &Study) -> Option<Lint> {
    (study.configurations.len() == 1).then(|| {
        note("only one configuration: it is measured, and compared with nothing".to_owned())
    })
}

/// Two configurations alike in everything: meant as a check of the method, or a slip in a `when`.
fn same_twice(study: &Study) -> Vec<Lint> {
    let mut seen: HashMap<_, &str> = HashMap::new();
    let mut lints = Vec::new();
    for (index, configuration) in study.configurations.iter().enumerate() {
        // All that is written of them, not how they are described: a description may leave out what differs.
        let written = format!("{:?}", configuration.written);
        match seen.get(&(written.clone(), study.place_of(index))) {
            Some(first) => lints.push(note(format!(
                "{first} and {} are the same: a difference between them is noise",
                configuration.name
            ))),
            None => {
                seen.insert((written, study.place_of(index)), &configuration.name);
            }
        }
    }
    lints
}

/// A level is compared where all levels have been tried with the same other levels.
fn unbalanced(study: &Study) -> Option<Lint> {
    let comparison = study.decide.comparison.as_ref()?;
    let factor = study
        .factors
        .iter()
        .position(|factor| factor.name == *comparison)?;
    // A level is compared within each combination of the other factors; only a combination that has
    // all levels can be.
    let mut groups: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for configuration in &study.configurations {
        let others = configuration.levels.iter().enumerate();
        let others = others
            .filter(|(index, _)| *index != factor)
            .map(|(_, label)| label.as_str())
            .collect();
        *groups.entry(others).or_default() += 1;
    }
    let levels = study.factors[factor].levels.len();
    let incomplete = groups.values().filter(|count| **count < levels).count();
    let complete = groups.len() - incomplete;
    match (incomplete, complete) {
        (0, _) => None,
        (_, 0) => Some(problem(format!(
            "no combination has every level of {comparison}: [[exclude]] leaves nothing to compare"
        ))),
        _ => Some(note(format!(
            "{incomplete} of {} combinations lack a level of {comparison} and are left out of its \
             comparison",
            groups.len()
        ))),
    }
}

fn in_memory(study: &Study, costs: &Costs, memory_bytes: Option<u64>) -> Option<Lint> {
    let memory = memory_bytes?;
    let small: Vec<&str> = study
        .workload_heads
        .iter()
        .enumerate()
        .filter(|(index, _)| {
            costs
                .of_workload(*index)
                .any(|cost| (1..memory).contains(&cost.working_set_bytes))
        })
        .map(|(_, head)| head.name.as_str())
        .collect();
    (!small.is_empty()).then(|| {
        note(format!(
            "data smaller than memory ({}): {}. Unless the workload bypasses the page cache or waits \
             for the disk, part of what is measured is memory",
            unit::bytes(memory),
            small.join(", ")
        ))
    })
}
