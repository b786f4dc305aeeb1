//! How long a study takes, as far as that can be known before: an interval, its assumptions said.

use crate::event::Until;
use crate::study::{Provision, Study};
use crate::workload::Cost;

use super::{Between, Costs, Machine, PlannedLook, PlannedTreatment, TimeEstimate, seconds};

/// Bytes per second assumed where the storage has not been measured: a hard disk, a fast SSD.
const RATES_ASSUMED: Between = Between {
    least: 100e6,
    most: 1000e6,
};
/// A measured rate may fall to this share of itself: file systems, small files, full disks.
const RATE_KEPT: f64 = 0.25;
/// Seconds assumed for each command that raises a stack, its share of lowering included.
const COMMAND_SECONDS: Between = Between {
    least: 0.02,
    most: 0.5,
};
/// Seconds assumed for settling before one trial.
const SETTLE_SECONDS: Between = Between {
    least: 0.1,
    most: 2.0,
};

/// How long the rounds and the run take.
pub(super) fn time(
    study: &Study,
    costs: &Costs,
    treatments: &[PlannedTreatment],
    looks: &[PlannedLook],
    machine: &Machine<'_>,
) -> TimeEstimate {
    let (rates, of_rates) = match machine.write_rate {
        Some(rate) if rate > 0.0 && rate.is_finite() => (
            Between {
                least: rate * RATE_KEPT,
                most: rate,
            },
            format!(
                "data move at {} (measured) down to a quarter of it",
                crate::unit::bytes_per_second(rate)
            ),
        ),
        _ => (
            RATES_ASSUMED,
            "data move at 100 MB/s to 1 GB/s (not measured)".to_owned(),
        ),
    };
    let mut round = Between::default();
    for (costs, treatment) in costs.0.iter().zip(treatments) {
        if study.policy.provision == Provision::EachRound {
            round = round.plus(COMMAND_SECONDS.times(treatment.commands.len()));
        }
        for cost in costs {
            round = round.plus(SETTLE_SECONDS).plus(trial_seconds(cost, rates));
        }
    }
    let time_max = seconds(study.decide.time_max_ns);
    let fit = |round: f64| {
        let rounds = (time_max / round.max(1e-3)).min(f64::from(study.decide.rounds_max));
        rounds as u32
    };
    let rounds = (fit(round.most), fit(round.least));
    let shortest = match (study.decide.until, looks.first()) {
        (Until::Never, _) | (_, None) => study.decide.rounds_max,
        (_, Some(look)) => look.rounds,
    };
    let unknown = study
        .workload_heads
        .iter()
        .enumerate()
        .filter(|(index, _)| {
            costs
                .of_workload(*index)
                .any(|cost| cost.measured_ns.is_none() && cost.measured_bytes.is_none())
        });
    TimeEstimate {
        round_seconds: round,
        run_seconds: Between {
            least: (round.least * f64::from(shortest)).min(time_max),
            most: (round.most * f64::from(study.decide.rounds_max)).min(time_max),
        },
        rounds,
        unknown: unknown.map(|(_, head)| head.name.clone()).collect(),
        assumed: format!(
            "{of_rates}; a command of a stack takes 0.02 to 0.5 s, a trial settles in 0.1 to 2 s"
        ),
    }
}

/// Seconds of one trial: its data laid out, then moved, for no longer than the clock allows.
fn trial_seconds(cost: &Cost, rates: Between) -> Between {
    let moved = |bytes: u64| Between {
        least: bytes as f64 / rates.most,
        most: bytes as f64 / rates.least,
    };
    let clock = cost.measured_ns.map(seconds);
    let measured = match (cost.measured_bytes.map(moved), clock) {
        (None, None) => Between::default(),
        (Some(moved), None) => moved,
        (None, Some(clock)) => Between {
            least: clock,
            most: clock,
        },
        (Some(moved), Some(clock)) => Between {
            least: moved.least.min(clock),
            most: moved.most.min(clock),
        },
    };
    moved(cost.prepare_bytes).plus(measured)
}

impl Between {
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
