//! How long a study takes, as far as that can be known before: an interval, its assumptions said.

use crate::study::{Provision, Study};
use stackrace_base::event::Until;
use stackrace_load::workload::Cost;

use stackrace_stats::{PASSES_MAX, WINDOW};

use super::content::{
    Bounds, FILLS, MachineFacts, PlannedConfiguration, PlannedLook, StorageSpeed, TimeEstimate,
    seconds,
};
use super::costs::Costs;

/// Bytes per second assumed where the storage has not been measured: a hard disk, a fast SSD.
const RATES_ASSUMED: Bounds = Bounds {
    least: 100e6,
    most: 1000e6,
};
/// A measured rate may fall to this share of itself: file systems, small files, full disks.
const RATE_KEPT: f64 = 0.25;
/// Seconds assumed for each command that sets up a stack, its share of the tear-down included.
const COMMAND_SECONDS: Bounds = Bounds {
    least: 0.02,
    most: 0.5,
};
/// Seconds assumed for settling before one trial.
const SETTLE_SECONDS: Bounds = Bounds {
    least: 0.1,
    most: 2.0,
};

/// Estimates how long the rounds and the run take.
pub(super) fn time(
    study: &Study,
    costs: &Costs,
    configurations: &[PlannedConfiguration],
    looks: &[PlannedLook],
    machine: &MachineFacts<'_>,
) -> TimeEstimate {
    let (rates, of_rates) = rates(machine.speed);
    let (mut round, mut once) = (Bounds::default(), Bounds::default());
    for ((costs, planned), configuration) in costs
        .0
        .iter()
        .zip(configurations)
        .zip(&study.configurations)
    {
        let trials = costs.iter().enumerate();
        let trials = trials.fold(Bounds::default(), |sum, (workload, cost)| {
            let trial = match study.ends_with_another(workload) {
                // Its clock is that of the one it ends with.
                true => moved(cost.prepare_bytes, rates),
                false => trial_seconds(cost, rates),
            };
            sum.plus(SETTLE_SECONDS).plus(trial)
        });
        let mut raising = COMMAND_SECONDS.times(planned.commands.len());
        if study.policy.precondition {
            let fill = moved(configuration.data_bytes(), rates).times(FILLS as usize);
            raising = raising.plus(fill).plus(Bounds {
                least: trials.least * WINDOW as f64,
                most: trials.most * PASSES_MAX as f64,
            });
        }
        // A stack that stands for the whole run is set up once, so its time does not grow with the
        // rounds.
        let raised = match study.policy.provision {
            Provision::EachRound => &mut round,
            Provision::Once => &mut once,
        };
        *raised = raised.plus(raising);
        round = round.plus(trials);
    }
    let time_max = seconds(study.decide.time_max_ns);
    let fit = |once: f64, round: f64| {
        // A round without any known time would divide by zero.
        let rounds = ((time_max - once) / round.max(1e-3)).max(0.0);
        rounds.min(f64::from(study.decide.rounds_max)) as u32
    };
    let rounds = (fit(once.most, round.most), fit(once.least, round.least));
    // A clear difference can end the run at its first check.
    let shortest = match (study.decide.until, looks.first()) {
        (Until::Never, _) | (_, None) => study.decide.rounds_max,
        (_, Some(look)) => look.rounds,
    };
    TimeEstimate {
        round_seconds: round,
        run_seconds: Bounds {
            least: (once.least + round.least * f64::from(shortest)).min(time_max),
            most: (once.most + round.most * f64::from(study.decide.rounds_max)).min(time_max),
        },
        rounds,
        unknown: unknown(study, costs),
        assumed: format!(
            "{of_rates}; a command of a stack takes 0.02 to 0.5 s, a trial settles in 0.1 to 2 s"
        ),
    }
}

/// Returns how fast data move, B/s, and in words what that is based on.
fn rates(speed: StorageSpeed) -> (Bounds, String) {
    match speed {
        // Small blocks, seeks and what a layout writes twice cost as much as they do on real disks.
        StorageSpeed::Modelled(rates) => (
            Bounds {
                least: rates.least * RATE_KEPT,
                most: rates.most,
            },
            format!(
                "data move at a quarter of what the model of one drive streams, {}, up to what all stream, {}",
                stackrace_base::unit::bytes_per_second(rates.least * RATE_KEPT),
                stackrace_base::unit::bytes_per_second(rates.most)
            ),
        ),
        // From a slow hard disk to a SATA SSD; without a measurement nothing narrower is honest.
        StorageSpeed::Unknown => (
            RATES_ASSUMED,
            "data move at 100 MB/s to 1 GB/s (not measured)".to_owned(),
        ),
    }
}

/// Workloads of which nothing says how long they take.
fn unknown(study: &Study, costs: &Costs) -> Vec<String> {
    let heads = study.workload_heads.iter().enumerate();
    let unknown = heads.filter(|(index, _)| {
        costs
            .of_workload(*index)
            .any(|cost| cost.measured_ns.is_none() && cost.measured_bytes.is_none())
    });
    unknown.map(|(_, head)| head.name.clone()).collect()
}

/// Seconds of one trial: its data laid out, then moved, for no longer than the clock allows.
fn trial_seconds(cost: &Cost, rates: Bounds) -> Bounds {
    let clock = cost.measured_ns.map(seconds);
    let measured = match (cost.measured_bytes.map(|bytes| moved(bytes, rates)), clock) {
        (None, None) => Bounds::default(),
        (Some(moved), None) => moved,
        (None, Some(clock)) => Bounds {
            least: clock,
            most: clock,
        },
        // It ends with its data or its time, whichever comes first.
        (Some(moved), Some(clock)) => Bounds {
            least: moved.least.min(clock),
            most: moved.most.min(clock),
        },
    };
    moved(cost.prepare_bytes, rates).plus(measured)
}

/// Seconds it takes to move so many bytes.
fn moved(bytes: u64, rates: Bounds) -> Bounds {
    Bounds {
        least: bytes as f64 / rates.most,
        most: bytes as f64 / rates.least,
    }
}

impl Bounds {
    fn plus(self, other: Self) -> Self {
        Self {
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }

    fn times(self, count: usize) -> Self {
        Self {
            least: self.least * count as f64,
            most: self.most * count as f64,
        }
    }
}
