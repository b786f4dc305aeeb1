//! The plan of a study on a machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use stackrace_stats::{PASSES_MAX, WINDOW, detectable, two_sided_level};

use super::content::{
    DiskNeed, FILLS, Lint, LintWeight, MachineFacts, MovedBytes, NOISES, Plan,
    PlannedConfiguration, PlannedLook, PlannedPlaces, PlannedPrecondition, PlannedSlices,
    PlannedWorkload, seconds,
};
use super::costs::Costs;
use super::order::order;
use super::{duration, lint};
use crate::study::{Configuration, Provision, RoundOrder, Study};
use stackrace_base::event::Decide;
use stackrace_load::workload::{Cost, Slicing};

impl Plan {
    /// The plan of a study on a machine.
    pub fn of(study: &Study, machine: &MachineFacts<'_>) -> Self {
        let mut lints = Vec::new();
        let configurations = configurations(study, machine, &mut lints);
        let costs = Costs::of(study);
        let everyone: Vec<usize> = (0..study.configurations.len()).collect();
        let comparisons = comparisons(study);
        let looks = looks(&study.decide, comparisons, study.workload_heads.len());
        let time = duration::time(study, &costs, &configurations, &looks, machine);
        let disk = room(study, machine, 1);
        let mut plan = Self {
            title: study.title.clone(),
            question: study.question.clone(),
            study_name: study.name.clone(),
            seed: study.seed,
            decide: study.decide.clone(),
            places: study.places().map(|factor| PlannedPlaces {
                factor: factor.name.clone(),
                levels: factor.levels.iter().map(|l| l.label.clone()).collect(),
            }),
            configurations,
            workloads: workloads(study, &costs),
            first_order: order(study.seed, &study.hash(), 1, &everyone),
            workload_by_workload: study.policy.order == RoundOrder::Adjacent,
            moved: moved(study, &costs),
            disk,
            time,
            virtual_time: None,
            comparisons,
            looks,
            lints: Vec::new(),
        };
        lints.extend(lint::lints(study, &plan, &costs, machine.memory_bytes));
        plan.lints = lints;
        plan
    }
}

fn configurations(
    study: &Study,
    machine: &MachineFacts<'_>,
    lints: &mut Vec<Lint>,
) -> Vec<PlannedConfiguration> {
    let mut planned = Vec::new();
    // What is missing is a finding of the plan, not its end: a plan may be made on a laptop for a
    // server.
    lints.extend((machine.missing)().into_iter().map(|text| Lint {
        weight: LintWeight::Problem,
        text,
    }));
    for (index, configuration) in study.configurations.iter().enumerate() {
        // One configuration that cannot be set up must not hide the plan of the others.
        let commands = (machine.commands)(index, configuration).unwrap_or_else(|error| {
            lints.push(Lint {
                weight: LintWeight::Problem,
                text: format!("{} cannot be set up: {error}", configuration.name),
            });
            Vec::new()
        });
        planned.push(PlannedConfiguration {
            name: configuration.name.clone(),
            layers: configuration
                .stack
                .layers
                .iter()
                .map(|layer| layer.describe_asked())
                .collect(),
            commands,
        });
    }
    planned
}

fn workloads(study: &Study, costs: &Costs) -> Vec<PlannedWorkload> {
    study
        .workload_heads
        .iter()
        .enumerate()
        .map(|(index, head)| {
            let times: Option<Vec<u64>> = costs
                .of_workload(index)
                .map(|cost| cost.measured_ns)
                .collect();
            PlannedWorkload {
                head: head.clone(),
                // The longest of all configurations: one of them may have more data, or more
                // threads.
                measured_seconds: times.and_then(|times| times.into_iter().max()).map(seconds),
                slices: slices(study, index),
            }
        })
        .collect()
}

fn slices(study: &Study, workload: usize) -> Option<PlannedSlices> {
    let slices = study.policy.slices?;
    let slicing = study.slicing(workload);
    (slicing != Slicing::Never).then_some(PlannedSlices {
        slice_ns: slices.ns,
        on_trial: slicing == Slicing::Writes,
    })
}

fn moved(study: &Study, costs: &Costs) -> MovedBytes {
    let trial = |cost: &Cost| {
        cost.prepare_bytes
            .saturating_add(cost.measured_bytes.unwrap_or(0))
    };
    let round_bytes = costs
        .all()
        .fold(0_u64, |sum, cost| sum.saturating_add(trial(cost)));
    MovedBytes {
        trial_bytes: costs.all().map(trial).max().unwrap_or(0),
        round_bytes,
        // The most there can be: a run that is decided sooner moves less. What wears a disk must not
        // be understated.
        total_bytes: round_bytes.saturating_mul(study.decide.rounds_max.into()),
        open_ended: costs.all().any(|cost| cost.measured_bytes.is_none()),
        data_bytes: study.trial_disk_bytes(),
        precondition: study.policy.precondition.then(|| {
            // Preconditioning fills the data's place FILLS times, then repeats the workloads until
            // the rates are steady: at the least one window of passes, at the most PASSES_MAX.
            let data = study.configurations.iter().map(Configuration::data_bytes);
            let sequential = data
                .fold(0, u64::saturating_add)
                .saturating_mul(FILLS.into());
            let passes = |n: usize| sequential.saturating_add(round_bytes.saturating_mul(n as u64));
            PlannedPrecondition {
                each_round: study.policy.provision == Provision::EachRound,
                least_bytes: passes(WINDOW),
                most_bytes: passes(PASSES_MAX),
            }
        }),
    }
}

/// Room a study needs at once on a machine of its stacks, from 1, place by place, and what is free
/// there: by the largest configuration, or by all where all stand at once.
pub fn room(study: &Study, machine: &MachineFacts<'_>, node: usize) -> Vec<DiskNeed> {
    let mut places: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for configuration in &study.configurations {
        let mut needs: BTreeMap<PathBuf, u64> = BTreeMap::new();
        for (path, bytes) in configuration.stack.disk_needed_on(node) {
            let path = match path.as_os_str().is_empty() {
                true => machine.scratch.to_owned(),
                false => path,
            };
            // A place without a size of its own (a directory) holds the data themselves.
            let bytes = match bytes {
                0 => study.trial_disk_bytes_of(configuration),
                bytes => bytes,
            };
            let need = needs.entry(path).or_default();
            *need = need.saturating_add(bytes);
        }
        for (path, bytes) in needs {
            let place = places.entry(path).or_default();
            *place = match study.policy.stand_together() {
                // Side by side, configurations share the place; one after the other, the largest of
                // them sets the need.
                true => place.saturating_add(bytes),
                false => (*place).max(bytes),
            };
        }
    }
    places
        .into_iter()
        .map(|(path, needed_bytes)| DiskNeed {
            free_bytes: (machine.free_bytes)(&path),
            path,
            needed_bytes,
        })
        .collect()
}

/// Comparisons the verdict on the overall figure allows for at a check: each level with the first,
/// or, since the leader is chosen by the data, each pair of configurations.
fn comparisons(study: &Study) -> usize {
    match &study.decide.comparison {
        Some(name) => study
            .factors
            .iter()
            .find(|factor| factor.name == *name)
            .map_or(0, |factor| factor.levels.len().saturating_sub(1)),
        None => {
            let configurations = study.configurations.len();
            // Which one is best: every pair is compared.
            configurations * configurations.saturating_sub(1) / 2
        }
    }
}

/// Rounds after which the plan says what can be shown; results are checked after every round.
const SHOWN: [u32; 6] = [3, 5, 8, 12, 20, 30];

fn looks(decide: &Decide, comparisons: usize, workloads: usize) -> Vec<PlannedLook> {
    if comparisons == 0 {
        return Vec::new();
    }
    let overall = decide.overall_share(workloads);
    // All statements hold together, so each comparison gets an equal share of the error.
    let error = (1.0 - decide.confidence) * overall / comparisons as f64;
    let last = Some(decide.rounds_max).filter(|most| !SHOWN.contains(most) && *most > SHOWN[0]);
    let shown = SHOWN.into_iter().chain(last);
    let mut rounds: Vec<u32> = shown.filter(|n| *n <= decide.rounds_max).collect();
    rounds.sort_unstable();
    let look = |rounds| {
        let alpha = two_sided_level(error, rounds);
        PlannedLook {
            rounds,
            alpha,
            detectable: NOISES
                .map(|noise| detectable(noise, rounds, alpha).map(|ratio| ratio - 1.0)),
        }
    };
    rounds.into_iter().map(look).collect()
}
