//! Configurations whose figures drift over the rounds: the ratio then depends on which rounds were
//! done.

use libm::{exp, log1p as ln_1p};

use super::difference::{RunReading, Unlike};
use stackrace_base::event::{Better, Ended};
use stackrace_base::unit;

/// Fewer rounds show no trend.
const ROUNDS_MIN: usize = 6;
/// A trend is named where chance would show it in fewer than one of a thousand configurations.
const ALPHA: f64 = 0.001;
/// Smaller changes from the first round to the last are not named.
const CHANGE: f64 = 0.10;

/// Change of the figure of a configuration from the first round to the last.
#[derive(Clone, Copy)]
struct Trend {
    /// Logarithm of last over first, oriented so that above 0 it becomes better.
    change: f64,
    /// True if it is more than chance, and large enough.
    clear: bool,
}

pub(super) fn judge(run: &RunReading<'_>) -> Vec<Unlike> {
    let mut found = Vec::new();
    for (at, workload) in run.head.workloads.iter().enumerate() {
        let trends = run.each(|configuration| trend(&values(run, configuration, at)));
        // One sentence per workload: the configuration that drifts most, with others beside it,
        // because a drift of all alike hardly changes a ratio.
        let by_change = |a: &&(usize, Trend), b: &&(usize, Trend)| {
            a.1.change.abs().total_cmp(&b.1.change.abs())
        };
        let clear = trends.iter().filter(|(_, trend)| trend.clear);
        let Some(most) = clear.max_by(by_change) else {
            continue;
        };
        let others: Vec<String> = trends
            .iter()
            .filter(|(other, _)| *other != most.0)
            .take(2)
            .map(|(other, trend)| format!("{} {}", run.name(*other), changed(trend.change)))
            .collect();
        let beside = match others.is_empty() {
            true => String::new(),
            false => format!(" ({})", others.join("; ")),
        };
        found.push(Unlike {
            check: "drift",
            sentence: format!(
                "{}: {} {} from the first round to the last{beside}; the ratio depends on how many rounds were done",
                workload.name,
                run.name(most.0),
                changed(most.1.change)
            ),
        });
    }
    found
}

/// `became 23 % slower`
fn changed(change: f64) -> String {
    let word = if change < 0.0 { "worse" } else { "better" };
    let part = match change < 0.0 {
        true => 1.0 - exp(change),
        false => exp(change) - 1.0,
    };
    format!("became {} {word}", unit::percent(part))
}

/// Round and oriented logarithm of the primary metric, in the order of the rounds.
fn values(run: &RunReading<'_>, configuration: usize, workload: usize) -> Vec<(f64, f64)> {
    let Some(metric) = run.head.workloads[workload].metrics.first() else {
        return Vec::new();
    };
    let mine = run.trials.iter().filter(|trial| {
        trial.ended == Ended::Complete
            && (trial.configuration, trial.workload) == (configuration, workload)
    });
    let values = mine.filter_map(|trial| {
        let value = trial.metrics.first().copied().flatten()?;
        let better: Better = metric.better;
        // Logarithms: a drift is a factor, and a verdict is a ratio.
        let log = better.oriented_ln(value);
        log.is_finite().then_some((f64::from(trial.round), log))
    });
    values.collect()
}

/// A straight line through the logarithms; `None` if there are too few rounds.
fn trend(values: &[(f64, f64)]) -> Option<Trend> {
    let n = values.len();
    if n < ROUNDS_MIN {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| values.iter().map(of).sum::<f64>() / n as f64;
    let (x, y) = (mean(|v| v.0), mean(|v| v.1));
    let xx: f64 = values.iter().map(|v| (v.0 - x).powi(2)).sum();
    let xy: f64 = values.iter().map(|v| (v.0 - x) * (v.1 - y)).sum();
    // Least squares over the rounds.
    let slope = xy / xx;
    let rest: f64 = values
        .iter()
        .map(|v| (v.1 - y - slope * (v.0 - x)).powi(2))
        .sum();
    let freedom = (n - 2) as f64;
    // Standard error of the slope; its ratio to the slope follows Student's t.
    let error = (rest / freedom / xx).sqrt();
    let last = values.iter().map(|v| v.0).fold(f64::MIN, f64::max);
    let first = values.iter().map(|v| v.0).fold(f64::MAX, f64::min);
    let change = slope * (last - first);
    let critical = stackrace_stats::t_quantile(1.0 - ALPHA / 2.0, freedom);
    Some(Trend {
        change,
        // Both: in a long run a drift too small to matter becomes certain, and in a noisy one a
        // large slope is chance.
        clear: slope.abs() > critical * error && change.abs() > ln_1p(CHANGE),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::Run;
    use super::*;
    use stackrace_results::record::sample;

    fn found(factor: impl Fn(usize, u32) -> f64) -> Vec<Unlike> {
        let mut run = Run::of(|_| Vec::new());
        let mut shape = sample::small();
        shape.rounds = 8;
        run.record = sample::record(&shape);
        run.each_trial(|trial| {
            let factor = factor(trial.configuration, trial.round);
            trial.metrics[0] = trial.metrics[0].map(|value| value * factor);
        });
        run.read(judge)
    }

    #[test]
    fn a_configuration_that_becomes_slower_is_named_and_noise_is_not() {
        let slower = found(|at, round| {
            if at == 1 {
                0.94_f64.powf(f64::from(round))
            } else {
                1.0
            }
        });
        assert_eq!(slower.len(), 3, "{slower:?}");
        assert!(
            slower[0].sentence.contains("import: xfs became 3"),
            "{slower:?}"
        );
        assert!(slower[0].sentence.contains("ext4 became"), "{slower:?}");
        assert_eq!(found(|_, _| 1.0), []);
        // A step that one round shows is no trend.
        assert_eq!(
            found(|at, round| if at == 1 && round == 4 { 0.8 } else { 1.0 }),
            []
        );
    }
}
