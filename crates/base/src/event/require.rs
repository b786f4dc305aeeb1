//! What a storage must do to be enough: a bound on one metric of one workload.

use serde::{Deserialize, Serialize};

use super::head::{MetricHead, WorkloadHead};
use crate::unit::{self, UnitError};

/// A bound that a metric must keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// Workload by index.
    pub workload: usize,
    /// Metric of the workload by index.
    pub metric: usize,
    /// Side of the bound on which it must stay.
    pub limit: BoundSide,
    /// The bound, in the unit of the metric; above 0.
    pub bound: f64,
}

/// Side of a requirement's figure on which a value is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundSide {
    /// The bound or less.
    AtMost,
    /// The bound or more.
    AtLeast,
}

/// Signs of a limit. The longer ones come first, so that no sign is taken for a part of it.
const SIGNS: [(&str, BoundSide); 6] = [
    ("<=", BoundSide::AtMost),
    (">=", BoundSide::AtLeast),
    ("≤", BoundSide::AtMost),
    ("≥", BoundSide::AtLeast),
    // Figures are never exactly at a bound: there is no other meaning to tell from "<=".
    ("<", BoundSide::AtMost),
    (">", BoundSide::AtLeast),
];

/// Words that a metric is called by elsewhere.
const ALSO: [(&str, &str); 3] = [
    ("iops", "operations"),
    ("rate", "operations"),
    ("bandwidth", "throughput"),
];

/// Metrics that are listed where none fits.
const LISTED_MAX: usize = 12;

impl BoundSide {
    /// The words in front of a bound.
    pub fn words(self) -> &'static str {
        match self {
            Self::AtMost => "at most",
            Self::AtLeast => "at least",
        }
    }

    /// Returns true if a value is on the side of the bound that is asked for.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::AtMost => value <= bound,
            Self::AtLeast => value >= bound,
        }
    }
}

/// Takes `fsync latency p99 <= 10 ms` apart: what is bounded, and the bound with its sign.
///
/// # Errors
/// It has no sign, or nothing before it.
pub fn split(text: &str) -> Result<(&str, &str), UnitError> {
    let at = text.find(['<', '>', '≤', '≥']);
    match at.map(|at| text.split_at(at)) {
        Some((what, bound)) if !what.trim().is_empty() => Ok((what.trim(), bound.trim())),
        _ => Err(UnitError {
            what: format!("\"{text}\" requires nothing"),
            next: "write a metric, a sign and a bound: \"fsync latency p99 <= 10 ms\"".to_owned(),
        }),
    }
}

/// A quantile of the latencies of a trial, as the name of a metric says it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedQuantile<'a> {
    /// Kind of the operations: `read`, `write`, `fsync` …
    pub op: &'a str,
    /// Last word of the metric: `p99`.
    pub word: &'a str,
    /// Operations that it takes in a trial: ten beyond it.
    pub needed: u64,
}

impl<'a> NamedQuantile<'a> {
    /// The quantile that a metric is; `None` if it is another figure.
    pub fn of(metric: &'a str) -> Option<Self> {
        let (op, (_, word)) = (metric.split(' ').next()?, metric.rsplit_once(' ')?);
        let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
        let beyond = 1.0 - percent / 100.0;
        let needed = (percent > 0.0 && beyond > 0.0).then(|| (10.0 / beyond).round() as u64)?;
        Some(Self { op, word, needed })
    }
}

impl Requirement {
    /// The requirements that `bound` (`<= 10 ms`) of `what` (`fsync latency p99`) means: one for each workload that has
    /// the metric, or of the workload that is named before it.
    ///
    /// # Errors
    /// No workload has such a metric, there is no sign, or the unit does not fit.
    pub fn read(
        what: &str,
        bound: &str,
        workloads: &[WorkloadHead],
    ) -> Result<Vec<Self>, UnitError> {
        let each = workloads.iter();
        let each: Vec<_> = each
            .map(|head| (head.name.as_str(), head.metrics.as_slice()))
            .collect();
        let found = metrics_named(what, &each)?;
        let (limit, amount) = signed(bound)?;
        let of = |(workload, metric): (usize, usize)| {
            let head = &workloads[workload].metrics[metric];
            Ok(Self {
                workload,
                metric,
                limit,
                bound: unit::parse_of_metric(&head.unit, amount)?,
            })
        };
        found.into_iter().map(of).collect()
    }

    /// Returns true if nothing can keep both.
    pub fn excludes(&self, other: &Self) -> bool {
        (self.workload, self.metric) == (other.workload, other.metric)
            && self.limit != other.limit
            && !self.limit.holds(other.bound, self.bound)
    }
}

/// Workload and metric by index that go by a name, in any order of its words: one of each workload that has it, or of
/// the workload that is named before it. `workloads`: name and metrics of each.
///
/// # Errors
/// No workload has such a metric.
pub fn metrics_named(
    what: &str,
    workloads: &[(&str, &[MetricHead])],
) -> Result<Vec<(usize, usize)>, UnitError> {
    let asked = words(what);
    let mut found = Vec::new();
    for (w, (name, metrics)) in workloads.iter().enumerate() {
        for (m, metric) in metrics.iter().enumerate() {
            let long = || words(&format!("{name} {}", metric.name));
            if asked == words(&metric.name) || asked == long() {
                found.push((w, m));
            }
        }
    }
    match found.is_empty() {
        true => Err(unknown(what, &asked, workloads)),
        false => Ok(found),
    }
}

/// The limit and the amount behind it.
fn signed(bound: &str) -> Result<(BoundSide, &str), UnitError> {
    let bound = bound.trim();
    let sign = SIGNS
        .iter()
        .find_map(|(sign, limit)| Some((*limit, bound.strip_prefix(sign)?)));
    sign.ok_or_else(|| UnitError {
        what: format!("\"{bound}\" does not say on which side of it is enough"),
        next: format!("write \"<= {bound}\" or \">= {bound}\""),
    })
}

/// Returns true if two names mean one metric: `p99 of fsync latency`, `fsync latency p99`.
pub fn is_same_metric(one: &str, other: &str) -> bool {
    words(one) == words(other)
}

/// The words of a name in an order of their own: `p99 of fsync latency` is `fsync latency p99`.
fn words(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    let parts = lower.split(|c: char| c.is_whitespace() || c == ':' || c == ',');
    let parts = parts.filter(|word| !["", "of", "the", "in"].contains(word));
    let known = |word: &str| {
        let also = ALSO.iter().find(|(other, _)| *other == word);
        also.map_or(word, |(_, own)| own).to_owned()
    };
    let mut words: Vec<String> = parts.map(known).collect();
    words.sort_unstable();
    words
}

/// Likeness from which on a metric may be meant: more than half of its words, or all of them misspelt.
const LIKE_LEAST: f64 = 0.6;

/// Likeness of two words (Jaro and Winkler) above which one is the other, misspelt.
const SAME_WORD: f64 = 0.8;

/// How much of what was asked a metric has, misspelt words in part: 1 is all of it.
fn likeness(asked: &[String], own: &[String]) -> f64 {
    let best = |word: &String| {
        let alike = own.iter().map(|other| strsim::jaro_winkler(word, other));
        alike.fold(0.0, f64::max)
    };
    // Words that are less alike have letters in common and nothing else.
    let each = asked.iter().map(best).filter(|alike| *alike > SAME_WORD);
    each.sum::<f64>() / asked.len().max(1) as f64
}

/// What no workload has, with the metric that shares most words with it, and the others.
fn unknown(what: &str, asked: &[String], workloads: &[(&str, &[MetricHead])]) -> UnitError {
    let mut names: Vec<&str> = Vec::new();
    for metric in workloads.iter().flat_map(|(_, metrics)| *metrics) {
        if !names.contains(&metric.name.as_str()) {
            names.push(&metric.name);
        }
    }
    let likeness = |name: &str| likeness(asked, &words(name));
    // Of equally near ones the shorter: it adds less that was not asked for.
    let shorter = |one: &str, other: &str| words(other).len().cmp(&words(one).len());
    let near = names.iter().rev().max_by(|one, other| {
        let likest = likeness(one).total_cmp(&likeness(other));
        likest.then_with(|| shorter(one, other))
    });
    let near = near.filter(|name| likeness(name) > LIKE_LEAST);
    let listed = match names.len() {
        0..=LISTED_MAX => names.join(", "),
        _ => format!("{} …", names[..LISTED_MAX].join(", ")),
    };
    UnitError {
        what: format!("no workload measures \"{what}\""),
        next: match near {
            Some(near) => format!("did you mean \"{near}\"? There are: {listed}"),
            None => format!("there are: {listed}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Better;

    fn heads() -> Vec<WorkloadHead> {
        let metric = |name: &str, unit: &str, better| MetricHead::new(name, unit, better);
        let head = |name: &str, metrics: Vec<MetricHead>| WorkloadHead {
            name: name.to_owned(),
            kind: "random".to_owned(),
            summary: String::new(),
            weight: 1.0,
            metrics,
            drawn_sizes: None,
            level: None,
            operations: None,
            gives_commands: false,
            imported: None,
            recorded: None,
        };
        vec![
            head(
                "log commit",
                vec![
                    metric("operations", "op/s", Better::Higher),
                    metric("fsync latency p99", "ns", Better::Lower),
                ],
            ),
            head("stream", vec![metric("throughput", "B/s", Better::Higher)]),
        ]
    }

    #[test]
    fn a_requirement_is_read_as_people_write_it() {
        let heads = heads();
        let read = |text: &str| {
            let (what, bound) = split(text).unwrap();
            let found = Requirement::read(what, bound, &heads).unwrap();
            assert_eq!(found.len(), 1, "{text}");
            let one = &found[0];
            (one.workload, one.metric, one.limit, one.bound)
        };
        let p99 = (0, 1, BoundSide::AtMost, 10e6);
        for text in [
            "fsync latency p99 <= 10 ms",
            "p99 of fsync latency ≤ 10ms",
            "log commit: fsync latency p99 < 0.01 s",
        ] {
            assert_eq!(read(text), p99, "{text}");
        }
        let at_least = |w, bound| (w, 0, BoundSide::AtLeast, bound);
        assert_eq!(read("throughput >= 117 MB/s"), at_least(1, 117e6));
        assert_eq!(read("stream bandwidth >= 1 Gbit/s"), at_least(1, 125e6));
        assert_eq!(read("IOPS > 8 k/s"), at_least(0, 8000.0));
        assert_eq!(read("operations ≥ 500/s"), at_least(0, 500.0));
    }

    #[test]
    fn what_cannot_be_required_is_refused_with_the_nearest_choice() {
        let heads = heads();
        for (text, why) in [
            ("fsync latency p99 <= 10 MB/s", "write it like \"10 ms\""),
            ("fsync latency p99 <= 10", "write it like \"10 ms\""),
            ("fsync latency p99 <= 0 ms", "above 0"),
            ("throughput >= 5 ms", "write it like \"100 MB/s\""),
            ("throughput >= 100/s", "write it like \"100 MB/s\""),
            ("operations >= 5 ms", "write it like \"8000 /s\""),
            (
                "fsync latency max <= 10 ms",
                "did you mean \"fsync latency p99\"",
            ),
            ("weather <= 10 ms", "there are: operations, fsync"),
            // A quantile alone makes no metric of another one.
            ("weather p99 <= 10 ms", "there are: operations, fsync"),
            (
                "fsnyc latency p99 <= 10 ms",
                "did you mean \"fsync latency p99\"",
            ),
        ] {
            let (what, bound) = split(text).unwrap();
            let said = Requirement::read(what, bound, &heads)
                .unwrap_err()
                .to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
        let said = Requirement::read("throughput", "5 MB/s", &heads).unwrap_err();
        assert!(said.next.contains("\"<= 5 MB/s\""), "{said}");
        for text in ["", "<= 10 ms", "fsync latency p99"] {
            assert!(split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_metric_is_the_same_in_any_order_of_its_words() {
        assert!(is_same_metric("p99 of fsync latency", "Fsync latency p99"));
        assert!(!is_same_metric("fsync latency p99", "fsync latency p50"));
    }

    #[test]
    fn a_quantile_takes_ten_operations_beyond_it() {
        let needed = |metric| NamedQuantile::of(metric).map(|it| (it.op, it.needed));
        assert_eq!(needed("fsync latency p99"), Some(("fsync", 1000)));
        assert_eq!(needed("write frame time p99.9"), Some(("write", 10_000)));
        assert_eq!(needed("read latency p50"), Some(("read", 20)));
        for other in [
            "throughput",
            "write slowest second",
            "read latency mean",
            "x p100",
        ] {
            assert_eq!(needed(other), None, "{other}");
        }
    }

    #[test]
    fn bounds_that_leave_nothing_exclude_each_other() {
        let heads = heads();
        let of = |bound| {
            Requirement::read("throughput", bound, &heads)
                .unwrap()
                .remove(0)
        };
        assert!(of("<= 5 MB/s").excludes(&of(">= 6 MB/s")));
        assert!(of(">= 6 MB/s").excludes(&of("<= 5 MB/s")));
        assert!(!of("<= 6 MB/s").excludes(&of(">= 5 MB/s")));
        assert!(!of(">= 6 MB/s").excludes(&of(">= 5 MB/s")));
    }
}
