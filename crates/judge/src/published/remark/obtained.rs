//! How the figures were obtained: how often, on what, and whether they agree with each other.

use super::figures::{cpu_bound, is_brief};
use crate::published::card::Card;
use crate::published::ratio::comparisons;
use crate::published::table::{PublishedTable, distinct};
use stackrace_base::unit;
use stackrace_stats::median;

/// An elapsed time times its rate may be off by this factor from its peers': rates leave out what
/// elapsed times hold (start, end), and trees are not copied at one speed.
const CONTRADICTION: f64 = 1.2;

/// Only plots: nothing to recompute.
pub(super) fn no_figures(_: &Card, table: &PublishedTable) -> Vec<String> {
    if !table.figures.is_empty() {
        return Vec::new();
    }
    vec![
        "no figures were published, only plots: nothing can be recomputed, and what is read off a \
         logarithmic axis is no figure"
            .to_owned(),
    ]
}

/// Every figure published once: nothing to tell chance by.
pub(super) fn single_run(_: &Card, table: &PublishedTable) -> Vec<String> {
    let cells = distinct(
        table
            .figures
            .iter()
            .map(|figure| (&figure.workload, &figure.metric.name, &figure.levels)),
    );
    // Fewer cells than figures: some cell was measured more than once.
    if cells.is_empty() || cells.len() < table.figures.len() {
        return Vec::new();
    }
    vec![format!(
        "each of the {} figures was published once: chance and effect cannot be told apart, and \
         no interval can be given",
        table
            .figures
            .iter()
            .filter(|figure| !figure.derived())
            .count()
    )]
}

/// An elapsed time and a rate of the same trial that cannot both be right.
pub(super) struct Contradiction {
    pub(super) figures: [usize; 2],
    /// The elapsed time that the rate implies, seconds.
    implied_s: f64,
    factor: f64,
}

/// The work of a load is the same in every configuration: elapsed times rate must be, too.
pub(super) fn contradictions(table: &PublishedTable) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for workload in table.workloads() {
        let pairs = elapsed_and_rate(table, workload);
        // The median, because one wrong pair would move a mean.
        let amounts: Vec<f64> = pairs.iter().map(|(_, s, rate)| s * rate).collect();
        let Some(work) = median(&amounts) else {
            continue;
        };
        for (figures, seconds, rate) in pairs {
            let factor = seconds * rate / work;
            // Which of the two is wrong cannot be known, so both are named.
            if factor.max(1.0 / factor) > CONTRADICTION {
                let implied_s = work / rate;
                found.push(Contradiction {
                    figures,
                    implied_s,
                    factor,
                });
            }
        }
    }
    found
}

/// Elapsed times of a load with the rate published beside each: places, seconds, B/s.
fn elapsed_and_rate(table: &PublishedTable, workload: &str) -> Vec<([usize; 2], f64, f64)> {
    let figures = || {
        table
            .figures
            .iter()
            .enumerate()
            .filter(|(_, f)| f.workload == workload)
    };
    figures()
        .filter(|(_, figure)| figure.metric.name == "elapsed")
        .filter_map(|(at, elapsed)| {
            let (rate_at, rate) = figures().find(|(_, other)| {
                // A rate that was computed from this very time agrees by construction.
                other.levels == elapsed.levels && other.metric.unit == "B/s" && !other.derived()
            })?;
            Some(([at, rate_at], elapsed.value()?, rate.value()?))
        })
        .collect()
}

/// The contradictions, in words.
pub(super) fn contradiction(card: &Card, table: &PublishedTable) -> Vec<String> {
    contradictions(table)
        .into_iter()
        .map(|odd| {
            let [elapsed, rate] = odd.figures.map(|at| &table.figures[at]);
            format!(
                "{} of {}: an elapsed time of {:.1} s and a rate of {} contradict each other by a \
                 factor of {:.2}: by the rate, and the work of the other configurations, it took \
                 {:.0} s. Both are left out of the conclusions",
                elapsed.workload,
                card.configuration(&elapsed.levels),
                elapsed.value().unwrap_or(f64::NAN),
                unit::bytes_per_second(rate.value().unwrap_or(f64::NAN)),
                odd.factor.max(1.0 / odd.factor),
                odd.implied_s,
            )
        })
        .collect()
}

/// Bytes stated for a load, against its elapsed times times its rates.
pub(super) fn stated_size(card: &Card, table: &PublishedTable) -> Vec<String> {
    let mut texts = Vec::new();
    for (workload, stated) in card.stated.bytes {
        let pairs = elapsed_and_rate(table, workload);
        let amounts: Vec<f64> = pairs.iter().map(|(_, s, rate)| s * rate).collect();
        let Some(ratio) = median(&amounts).map(|work| work / *stated as f64) else {
            continue;
        };
        // 3 %: rounding of the stated size is less, the step from 10^9 to 2^30 is 7 %.
        if ratio.max(1.0 / ratio) > 1.03 {
            texts.push(format!(
                "{workload}: {:.1} GB are stated; elapsed times and rates make {:.2} GB, {ratio:.2} \
                 times that (a unit of 2^30 instead of 10^9 bytes would be {:.2})",
                *stated as f64 / 1e9,
                ratio * *stated as f64 / 1e9,
                (1_u64 << 30) as f64 / 1e9
            ));
        }
    }
    texts
}

/// Two levels measured on different machines, or on different amounts of data.
pub(super) fn confounded(card: &Card, table: &PublishedTable) -> Vec<String> {
    let mut texts = Vec::new();
    for comparison in comparisons(card, table) {
        let [a, b] = comparison.figures.map(|at| &table.figures[at]);
        let what = format!(
            "{} {} against {}",
            card.factors[comparison.factor].name, comparison.b, comparison.a
        );
        // Both may be valid figures; only their ratio is not one of the factor alone.
        if a.machine != b.machine {
            texts.push(format!(
                "{what}: measured on two machines ({} and {}), so that the ratio is theirs too",
                b.machine, a.machine
            ));
        }
        if let (Some(x), Some(y)) = (a.data_bytes, b.data_bytes)
            && x != y
        {
            texts.push(format!(
                "{what}: measured on {} and {} of data",
                unit::bytes(y),
                unit::bytes(x)
            ));
        }
    }
    // Every metric of a pair of levels would say the same.
    distinct(texts.into_iter())
}

/// Figures, by their places, that say nothing of storage: the processor was the limit, the phase
/// was too brief, or the figure contradicts another.
pub fn unfit(table: &PublishedTable) -> Vec<usize> {
    let odd = contradictions(table);
    table
        .figures
        .iter()
        .enumerate()
        .filter(|(at, figure)| {
            cpu_bound(figure) || is_brief(figure) || odd.iter().any(|odd| odd.figures.contains(at))
        })
        .map(|(at, _)| at)
        .collect()
}
