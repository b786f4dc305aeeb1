//! One trial of steps of 100 ms with a known course: is a change found where there is one, and
//! only there?

use stackrace_stats::Course;

use crate::world::{World, share};

/// How the steps of a trial scatter around their level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    pub(crate) name: &'static str,
    /// Correlation of neighbours.
    rho: f64,
    /// Deviation on the log scale.
    deviation: f64,
    /// Whether every value is replaced by one of two: the steps of a device that pauses.
    pauses: bool,
    /// Whether the scatter is to one side: `exp(−|z|)`, re-centred.
    one_sided: bool,
}

/// What trials are made of.
pub(crate) fn kinds() -> Vec<Steps> {
    let kind = |name, rho, deviation| Steps {
        name,
        rho,
        deviation,
        pauses: false,
        one_sided: false,
    };
    vec![
        kind("independent, 10 %", 0.0, 0.10),
        kind("correlation 0.5, 10 %", 0.5, 0.10),
        kind("correlation 0.8, 10 %", 0.8, 0.10),
        kind("correlation 0.9, 10 %", 0.9, 0.10),
        kind("correlation 0.95, 10 %", 0.95, 0.10),
        kind("correlation 0.98, 10 %", 0.98, 0.10),
        Steps {
            one_sided: true,
            ..kind("skewed, correlation 0.8, 20 %", 0.8, 0.20)
        },
        Steps {
            pauses: true,
            ..kind("bimodal: 1 step in 6 at a quarter of the rate", 0.5, 0.05)
        },
    ]
}

impl Steps {
    /// Amounts of the steps of a trial with a level for each.
    fn amounts(&self, world: &mut World, n: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let wandering = world.wandering(n, self.rho);
        let one = |(at, state): (usize, f64)| {
            let state = if self.one_sided {
                0.8 - state.abs()
            } else {
                state
            };
            let pause = if self.pauses && world.uniform() < 1.0 / 6.0 {
                0.25
            } else {
                1.0
            };
            level(at) * pause * (self.deviation * state).exp()
        };
        wandering.into_iter().enumerate().map(one).collect()
    }
}

/// What is found in trials of one kind and length; shares of trials.
pub(crate) struct CheckResult {
    pub(crate) kind: &'static str,
    pub(crate) seconds: usize,
    /// A change is found where there is none.
    pub(crate) false_alarms: f64,
    /// A drop by 30 % in the middle is found within a twentieth of the trial of where it is.
    pub(crate) drop_30: f64,
    /// The same of a drop by 60 % after a quarter.
    pub(crate) drop_60: f64,
    /// A trial of one level is called steady.
    pub(crate) steady: f64,
    /// One that slides by 30 % from end to end is called steady.
    pub(crate) slide: f64,
}

/// What is found, for each kind and length.
pub(crate) fn findings(seed: u64, trials: u32) -> Vec<CheckResult> {
    let mut rows = Vec::new();
    for kind in kinds() {
        for seconds in [10, 60, 300] {
            let mut world = World::new(seed + rows.len() as u64);
            rows.push(finding(&mut world, kind, seconds, trials));
        }
    }
    rows
}

fn finding(world: &mut World, kind: Steps, seconds: usize, trials: u32) -> CheckResult {
    let n = seconds * 10;
    let (mut alarms, mut half, mut quarter, mut steady, mut slide) = (0, 0, 0, 0, 0);
    for _ in 0..trials {
        let course = of(kind.amounts(world, n, |_| 1.0));
        alarms += u32::from(course.change().is_some());
        steady += u32::from(course.steady() == Some(true));
        let dropped = |at: usize, rest: f64| move |here: usize| if here < at { 1.0 } else { rest };
        let course = of(kind.amounts(world, n, dropped(n / 2, 0.7)));
        half += u32::from(found_at(&course, n / 2));
        let course = of(kind.amounts(world, n, dropped(n / 4, 0.4)));
        quarter += u32::from(found_at(&course, n / 4));
        let course = of(kind.amounts(world, n, |at| 1.0 - 0.3 * at as f64 / n as f64));
        slide += u32::from(course.steady() == Some(true));
    }
    CheckResult {
        kind: kind.name,
        seconds,
        false_alarms: share(alarms, trials),
        drop_30: share(half, trials),
        drop_60: share(quarter, trials),
        steady: share(steady, trials),
        slide: share(slide, trials),
    }
}

fn of(amounts: Vec<f64>) -> Course {
    Course::of(&amounts).expect("every step has an amount")
}

/// Whether the largest change is within a twentieth of the trial of where it was made.
fn found_at(course: &Course, at: usize) -> bool {
    let near = course.steps / 20;
    course
        .change()
        .is_some_and(|(_, after)| after.start.abs_diff(at) <= near)
}

/// How often the interval of a trial's mean, from steps, holds the truth.
pub(crate) struct Within {
    pub(crate) rho: f64,
    /// The one from batches.
    pub(crate) batches: f64,
    /// The plain one, that takes steps for independent.
    pub(crate) plain: f64,
}

/// Coverage of intervals of the mean of 300 steps.
pub(crate) fn within(seed: u64, trials: u32) -> Vec<Within> {
    const STEPS: usize = 300;
    let multiplier = stackrace_stats::t_quantile(0.975, STEPS as f64 - 1.0);
    [0.0, 0.5, 0.8, 0.9, 0.95]
        .into_iter()
        .enumerate()
        .map(|(at, rho)| {
            let mut world = World::new(seed + at as u64);
            let (mut batches, mut plain) = (0, 0);
            for _ in 0..trials {
                let values = world.wandering(STEPS, rho);
                let (mean, half) = stackrace_stats::autocorrelation::batch_interval(&values, 0.05)
                    .expect("enough values");
                batches += u32::from(mean.abs() <= half);
                let variance = stackrace_stats::variance(&values);
                plain += u32::from(mean.abs() <= multiplier * (variance / STEPS as f64).sqrt());
            }
            Within {
                rho,
                batches: share(batches, trials),
                plain: share(plain, trials),
            }
        })
        .collect()
}
