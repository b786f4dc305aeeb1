//! One question with a threshold, for programs that must go on or stop: is it worse by more than so
//! much?
//!
//! The answer follows from the interval, not from the estimate: passed where the whole interval is
//! above what is allowed, worse where the whole of it is below, undecided where it holds both. Two
//! configurations of a run are compared round by round at its last planned look, and the error
//! probability is shared over the looks and over what is asked at once, as in every verdict
//! (`docs/methodology.md`); what is not asked costs nothing, so the interval may be narrower than
//! the report's. Configurations of two runs have Welch's interval, and the notes say what that is worth.

use serde::Serialize;

use super::fragment::range;
use super::statement::Interval;
use super::table::{Evidence, ObservationTable};
use super::unpaired;
use crate::event::{Ended, MetricHead, RunStarted};
use crate::record::Record;
use crate::unit;
use stackrace_stats::{FIRST_LOOK, Ratio, two_sided_level};

/// Fewer values on a side (or fewer pairs) have no interval.
const VALUES_MIN: usize = 3;
/// Differing facts that are named in the notes.
const FACTS_MAX: usize = 8;

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct Threshold {
    /// Worse by more than this share is too much (0.05: 5 %).
    pub(crate) worse_than: f64,
    /// Everything said holds together with at least this probability; none: as the run was asked.
    pub(crate) confidence: Option<f64>,
    /// Workloads by name; empty: the overall figure, or all that have the metric.
    pub(crate) workloads: Vec<String>,
    /// A metric by name; none: the primary ones.
    pub(crate) metric: Option<String>,
}

/// Why there can be no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GateError {
    /// Something named is not there.
    Unknown {
        /// `workload`, `metric`.
        what: &'static str,
        /// As it was named.
        name: String,
        /// What there is.
        valid: Vec<String>,
    },
    /// The two runs have no overall figure in common.
    NothingInCommon,
}

/// The answer to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GateOutcome {
    /// Shown not to be worse by more than what is allowed.
    Passed,
    /// Neither can be excluded.
    Undecided,
    /// Shown to be worse by more than that.
    Worse,
}

/// One of the two that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct GateSide {
    /// Its run.
    pub(crate) run: String,
    /// Its name.
    pub(crate) configuration: String,
}

/// The answer on one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FigureAnswer {
    /// Name of the workload; empty: over all workloads.
    pub(crate) workload: String,
    /// The metric; none: the overall figure.
    pub(crate) metric: Option<MetricHead>,
    /// Over the baseline, oriented so that above 1 is better; none: too few values.
    pub(crate) ratio: Option<Interval>,
    /// Values used of the baseline and of what is compared with it.
    pub(crate) values: (usize, usize),
    /// What follows.
    pub(crate) outcome: GateOutcome,
    /// Further rounds that would decide, if all stayed as it is; none: decided, or more than
    /// anyone would wait for.
    pub(crate) more_rounds: Option<u32>,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct GateAnswer {
    /// The worst of the answers.
    pub(crate) outcome: GateOutcome,
    /// In plain words.
    pub(crate) sentence: String,
    /// What is compared.
    pub(crate) compared: GateSide,
    /// With what.
    pub(crate) baseline: GateSide,
    /// The share that is too much.
    pub(crate) worse_than: f64,
    /// All answers hold together with at least this probability.
    pub(crate) confidence: f64,
    /// Compared round by round.
    pub(crate) paired: bool,
    /// One per figure asked about.
    pub(crate) answers: Vec<FigureAnswer>,
    /// Error of the first failed trial of what is compared: no verdict counts then.
    pub(crate) failed: Option<String>,
    /// What the reader must know.
    pub(crate) notes: Vec<String>,
}

/// A figure on both sides: workload and metric by index, baseline first; none: the overall figure.
type GatedFigure = Option<[(usize, usize); 2]>;

/// Both sides, their records and what is asked.
struct GatePair<'a> {
    baseline: (&'a Record, usize),
    compared: (&'a Record, usize),
}

/// Answers the question for a configuration by index against another, of the same run or another.
///
/// # Errors
/// What is asked about is not in both.
pub(crate) fn gate(
    baseline: (&Record, usize),
    compared: (&Record, usize),
    question: &Threshold,
) -> Result<GateAnswer, GateError> {
    let pair = GatePair { baseline, compared };
    let figures = pair.figures(question)?;
    let confidence = question
        .confidence
        .unwrap_or(compared.0.head.decide.confidence);
    let alpha = (1.0 - confidence) / figures.len() as f64;
    let answers: Vec<FigureAnswer> = figures
        .iter()
        .map(|figure| pair.answer(*figure, alpha, question.worse_than))
        .collect();
    let outcome = if answers.iter().any(|a| a.outcome == GateOutcome::Worse) {
        GateOutcome::Worse
    } else if answers.iter().any(|a| a.outcome == GateOutcome::Undecided) {
        GateOutcome::Undecided
    } else {
        GateOutcome::Passed
    };
    let mut gate = GateAnswer {
        outcome,
        sentence: String::new(),
        compared: side(compared),
        baseline: side(baseline),
        worse_than: question.worse_than,
        confidence,
        paired: pair.paired(),
        answers,
        failed: failed(compared),
        notes: pair.notes(),
    };
    gate.sentence = sentence(&gate);
    Ok(gate)
}

fn side((record, configuration): (&Record, usize)) -> GateSide {
    GateSide {
        run: record.head.run.clone(),
        configuration: record.head.configurations[configuration].name.clone(),
    }
}

fn failed((record, configuration): (&Record, usize)) -> Option<String> {
    let mut trials = record
        .trials()
        .filter(|trial| trial.configuration == configuration);
    trials.find_map(|trial| match &trial.ended {
        Ended::Failed { error } => Some(error.clone()),
        Ended::Complete | Ended::Interrupted => None,
    })
}

impl GatePair<'_> {
    fn paired(&self) -> bool {
        self.baseline.0.head.run == self.compared.0.head.run && !self.compared.0.imported()
    }

    fn heads(&self) -> [&RunStarted; 2] {
        [&self.baseline.0.head, &self.compared.0.head]
    }

    fn figures(&self, question: &Threshold) -> Result<Vec<GatedFigure>, GateError> {
        let [head_a, head_b] = self.heads();
        let workloads: Vec<usize> = match (&*question.workloads, &question.metric, head_b) {
            ([], None, head) if head.workloads.len() > 1 => return self.overall(),
            ([], Some(metric), head) => {
                let has = |w: &usize| head.workloads[*w].metrics.iter().any(|m| m.name == *metric);
                (0..head.workloads.len()).filter(has).collect()
            }
            ([], None, head) => (0..head.workloads.len()).collect(),
            (names, _, head) => names
                .iter()
                .map(|name| workload(head, name))
                .collect::<Result<_, _>>()?,
        };
        let figure = |w: usize| -> Result<GatedFigure, GateError> {
            let other = match self.paired() {
                true => w,
                false => workload(head_a, &head_b.workloads[w].name)?,
            };
            let name = match &question.metric {
                Some(name) => name,
                None => head_b.workloads[w].metrics.first().map_or("", |m| &m.name),
            };
            Ok(Some([
                (other, metric(head_a, other, name)?),
                (w, metric(head_b, w, name)?),
            ]))
        };
        if workloads.is_empty() {
            let all = head_b.workloads.iter().flat_map(|w| &w.metrics);
            return Err(GateError::Unknown {
                what: "metric",
                name: question.metric.clone().unwrap_or_default(),
                valid: distinct(all.map(|m| m.name.clone())),
            });
        }
        workloads.into_iter().map(figure).collect()
    }

    /// The overall figure, if it is made of the same on both sides.
    fn overall(&self) -> Result<Vec<GatedFigure>, GateError> {
        let parts = self.heads().map(|head| {
            let weighed = head.workloads.iter().filter(|w| w.weight > 0.0);
            let parts = weighed.map(|w| (&w.name, &w.kind, w.weight, w.metrics.first()));
            parts.collect::<Vec<_>>()
        });
        match parts[0] == parts[1] && !parts[0].is_empty() {
            true => Ok(vec![None]),
            false => Err(GateError::NothingInCommon),
        }
    }

    /// The answer on one figure, `alpha` being what it may spend.
    fn answer(&self, figure: GatedFigure, alpha: f64, worse_than: f64) -> FigureAnswer {
        let found = match self.paired() {
            true => self.round_by_round(figure, alpha),
            false => self.side_by_side(figure, alpha),
        };
        let allowed = 1.0 - worse_than;
        let outcome = match found.ratio {
            Some(ratio) if ratio.low > allowed => GateOutcome::Passed,
            Some(ratio) if ratio.high < allowed => GateOutcome::Worse,
            _ => GateOutcome::Undecided,
        };
        let more_rounds = match outcome {
            GateOutcome::Undecided => found.more(allowed),
            GateOutcome::Passed | GateOutcome::Worse => None,
        };
        let head = &self.compared.0.head;
        let place = figure.map(|[_, (w, m)]| (&head.workloads[w], m));
        FigureAnswer {
            workload: place.map_or(String::new(), |(w, _)| w.name.clone()),
            metric: place.map(|(w, m)| w.metrics[m].clone()),
            ratio: found.ratio.map(Interval::from),
            values: found.values,
            outcome,
            more_rounds,
        }
    }

    fn round_by_round(&self, figure: GatedFigure, alpha: f64) -> Found {
        let evidence = Evidence::of(self.compared.0);
        let table = ObservationTable::new(&evidence);
        let [a, b] = [self.baseline.1, self.compared.1];
        let rounds = table.rounds_of(a).min(table.rounds_of(b));
        let differences: Vec<f64> = (0..rounds)
            .filter_map(|at| {
                let value =
                    |side: usize, configuration| oriented(&table, configuration, side, figure, at);
                Some(value(1, b)? - value(0, a)?)
            })
            .collect();
        let rounds = u32::try_from(differences.len()).unwrap_or(u32::MAX);
        let alpha = two_sided_level(alpha, rounds.max(1));
        let enough = differences.len() >= VALUES_MIN;
        Found {
            ratio: enough
                .then(|| stackrace_stats::paired_ratio(&differences, alpha))
                .flatten(),
            effect: stackrace_stats::mean(&differences),
            deviation: stackrace_stats::variance(&differences).sqrt(),
            alpha,
            values: (differences.len(), differences.len()),
            first: FIRST_LOOK,
        }
    }

    fn side_by_side(&self, figure: GatedFigure, alpha: f64) -> Found {
        let sides = [self.baseline, self.compared];
        let values = [0, 1].map(|side| {
            let (record, configuration) = sides[side];
            let evidence = Evidence::of(record);
            let table = ObservationTable::new(&evidence);
            (0..table.rounds.len())
                .filter_map(|at| oriented(&table, configuration, side, figure, at))
                .collect::<Vec<f64>>()
        });
        let [a, b] = &values;
        let spread = stackrace_stats::variance(a) + stackrace_stats::variance(b);
        Found {
            ratio: (a.len().min(b.len()) >= VALUES_MIN)
                .then(|| stackrace_stats::welch_ratio(a, b, alpha))
                .flatten(),
            effect: stackrace_stats::mean(b) - stackrace_stats::mean(a),
            deviation: spread.sqrt(),
            alpha,
            values: (a.len(), b.len()),
            first: VALUES_MIN as u32,
        }
    }

    fn notes(&self) -> Vec<String> {
        if self.paired() {
            return Vec::new();
        }
        let mut notes = vec![format!(
            "unpaired: the two were not measured in turn. Any other change between them (time, machine, versions) is in the ratio and counts against or for {}",
            self.compared.0.head.configurations[self.compared.1].name
        )];
        let [a, b] = self.heads();
        if a.study_hash != b.study_hash {
            notes.push("the two studies differ in their text".to_owned());
        }
        let difference = unpaired::difference(self.baseline, self.compared);
        for pair in &difference.workloads {
            if pair.a.1 != pair.b.1 {
                notes.push(format!(
                    "{} does different work: {}; in the baseline {}",
                    pair.b.0, pair.b.1, pair.a.1
                ));
            }
        }
        let facts: Vec<&str> = difference
            .environment
            .iter()
            .map(|f| f.0.as_str())
            .collect();
        if !facts.is_empty() {
            let named = facts[..facts.len().min(FACTS_MAX)].join(", ");
            let others = match facts.len().saturating_sub(FACTS_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            notes.push(format!(
                "other known differences: {named}{others} (see stackrace diff)"
            ));
        }
        notes
    }
}

/// A value's logarithm, oriented so that larger is better.
fn oriented(
    table: &ObservationTable<'_>,
    configuration: usize,
    side: usize,
    figure: GatedFigure,
    at: usize,
) -> Option<f64> {
    match figure {
        None => table.overall_ln(configuration, at),
        Some(places) => {
            let (w, m) = places[side];
            let metric = &table.evidence.head.workloads[w].metrics[m];
            let value = table.value(configuration, w, m, at)?;
            Some(metric.better.oriented_ln(value))
        }
    }
}

fn workload(head: &RunStarted, name: &str) -> Result<usize, GateError> {
    let found = head.workloads.iter().position(|w| w.name == name);
    found.ok_or_else(|| GateError::Unknown {
        what: "workload",
        name: name.to_owned(),
        valid: head.workloads.iter().map(|w| w.name.clone()).collect(),
    })
}

fn metric(head: &RunStarted, workload: usize, name: &str) -> Result<usize, GateError> {
    let metrics = &head.workloads[workload].metrics;
    let found = metrics.iter().position(|metric| metric.name == name);
    found.ok_or_else(|| GateError::Unknown {
        what: "metric",
        name: name.to_owned(),
        valid: metrics.iter().map(|metric| metric.name.clone()).collect(),
    })
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// What the values of a figure say.
struct Found {
    ratio: Option<Ratio>,
    /// Mean log difference and its standard deviation per round.
    effect: f64,
    deviation: f64,
    alpha: f64,
    values: (usize, usize),
    /// Rounds the first interval needs.
    first: u32,
}

impl Found {
    /// Further rounds until the interval no longer holds what is allowed.
    fn more(&self, allowed: f64) -> Option<u32> {
        let have = u32::try_from(self.values.0.min(self.values.1)).unwrap_or(u32::MAX);
        if self.ratio.is_none() {
            return Some(self.first.saturating_sub(have).max(1));
        }
        stackrace_stats::rounds_to_exclude(self.effect, self.deviation, self.alpha, allowed)
            .filter(|total| *total < stackrace_stats::equivalence::ROUNDS_MAX)
            .map(|total| total.saturating_sub(have).max(1))
    }
}

fn sentence(gate: &GateAnswer) -> String {
    let name = |side: &GateSide| match gate.compared.run == gate.baseline.run {
        true => side.configuration.clone(),
        false => format!("{} of {}", side.configuration, side.run),
    };
    let (b, a) = (name(&gate.compared), name(&gate.baseline));
    let by = share(gate.worse_than);
    // One of those that made the outcome what it is stands for all.
    let of_outcome = || gate.answers.iter().filter(|a| a.outcome == gate.outcome);
    let Some(answer) = of_outcome().min_by(|x, y| estimate(x).total_cmp(&estimate(y))) else {
        return String::new();
    };
    let place = match of_outcome().count() {
        1 => on(answer),
        n => format!("{}, the worst of {n}", on(answer)),
    };
    let range = match answer.ratio {
        Some(ratio) => format!("{} {place}", range(ratio)),
        None => format!("too few rounds for an interval {place}"),
    };
    let told = match gate.outcome {
        GateOutcome::Passed => format!("{b} is not more than {by} worse than {a}: {range}"),
        GateOutcome::Worse => format!("{b} is more than {by} worse than {a}: {range}"),
        GateOutcome::Undecided => {
            let most = of_outcome().map(|answer| answer.more_rounds);
            // One that no number of rounds would decide leaves the whole undecided.
            let most = most
                .reduce(|x, y| x.zip(y).map(|(x, y)| x.max(y)))
                .flatten();
            let outlook = match most {
                Some(1) => "1 more round might decide".to_owned(),
                Some(rounds) => format!("about {rounds} more rounds would decide"),
                None => "too close to the limit for any number of rounds".to_owned(),
            };
            format!("{b} may be more than {by} worse than {a}: {range}; {outlook}")
        }
    };
    let paired = if gate.paired { "" } else { ", unpaired" };
    format!(
        "{told} ({} confidence{paired}).",
        unit::percent(gate.confidence)
    )
}

/// A share that is mostly a round number: `5 %`.
fn share(value: f64) -> String {
    unit::percent(value).replace(".0 ", " ")
}

fn estimate(answer: &FigureAnswer) -> f64 {
    answer.ratio.map_or(0.0, |ratio| ratio.estimate)
}

/// `over all workloads`, `on copy: throughput`.
pub(crate) fn on(answer: &FigureAnswer) -> String {
    match &answer.metric {
        None => "over all workloads".to_owned(),
        Some(metric) => format!("on {}: {}", answer.workload, metric.name),
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::event::Event;
    use crate::record::sample;

    fn question(worse_than: f64) -> Threshold {
        Threshold {
            worse_than,
            confidence: None,
            workloads: Vec::new(),
            metric: None,
        }
    }

    fn on_workload(name: &str, worse_than: f64) -> Threshold {
        Threshold {
            workloads: vec![name.to_owned()],
            ..question(worse_than)
        }
    }

    fn asked(record: &Record, question: &Threshold) -> GateAnswer {
        gate((record, 0), (record, 1), question).unwrap()
    }

    /// Planted: xfs is better by 18 % at importing, worse by 1 % at browsing, by 14 % at copying;
    /// the noise is 2 % per trial.
    #[test]
    fn the_interval_decides_and_not_the_estimate() {
        let record = sample::record(&sample::small());
        let import = asked(&record, &on_workload("import", 0.05));
        assert_eq!(import.outcome, GateOutcome::Passed);
        assert!(
            import
                .sentence
                .starts_with("xfs is not more than 5 % worse than ext4: ")
        );
        let copy = asked(&record, &on_workload("copy", 0.05));
        assert_eq!(copy.outcome, GateOutcome::Worse);
        assert_eq!(copy.answers[0].more_rounds, None);
        // Better than allowed as far as the estimate goes, and not shown to be.
        let browse = asked(&record, &on_workload("browse", 0.03));
        let ratio = browse.answers[0].ratio.unwrap();
        assert!(ratio.low < 0.97 && ratio.estimate > 0.97, "{ratio:?}");
        assert_eq!(browse.outcome, GateOutcome::Undecided);
        assert!(
            browse.answers[0]
                .more_rounds
                .is_some_and(|rounds| rounds > 0)
        );
        assert!(
            browse.sentence.contains("would decide"),
            "{}",
            browse.sentence
        );
        assert_eq!(
            asked(&record, &on_workload("browse", 0.3)).outcome,
            GateOutcome::Passed
        );
    }

    /// One that is worse decides for all, and what is asked at once is paid for.
    #[test]
    fn asking_more_is_paid_for() {
        let record = sample::record(&sample::small());
        let alone = asked(&record, &on_workload("import", 0.05));
        let mut three = question(0.05);
        three.workloads = ["import", "browse", "copy"].map(str::to_owned).to_vec();
        let three = asked(&record, &three);
        assert_eq!(
            (three.answers.len(), three.outcome),
            (3, GateOutcome::Worse)
        );
        let width = |gate: &GateAnswer| {
            let ratio = gate.answers[0].ratio.unwrap();
            ratio.high / ratio.low
        };
        assert!(width(&three) > width(&alone));
        let overall = asked(&record, &question(0.05));
        assert_eq!(overall.answers[0].workload, "");
        let mut latency = question(0.05);
        latency.metric = Some("read latency p99".to_owned());
        assert_eq!(asked(&record, &latency).answers.len(), 3);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let record = sample::record(&sample::small());
        let wrong = on_workload("browsing", 0.05);
        let unknown = gate((&record, 0), (&record, 1), &wrong).unwrap_err();
        let GateError::Unknown { what, valid, .. } = unknown else {
            panic!("{unknown:?}");
        };
        assert_eq!((what, valid.len()), ("workload", 3));
        let mut other = record.clone();
        other.head.run = "other".to_owned();
        other.head.workloads[0].weight = 7.0;
        let different = gate((&other, 0), (&record, 1), &question(0.05));
        assert_eq!(different.unwrap_err(), GateError::NothingInCommon);
    }

    #[test]
    fn two_runs_are_never_pairs() {
        let record = sample::record(&sample::small());
        let mut kept = record.clone();
        kept.head.run = "kept".to_owned();
        let gate = gate((&kept, 1), (&record, 1), &on_workload("copy", 0.2)).unwrap();
        assert!(!gate.paired && gate.notes[0].starts_with("unpaired"));
        assert_eq!(gate.outcome, GateOutcome::Passed);
        assert_eq!(gate.answers[0].values, (5, 5));
        assert!(gate.sentence.contains("xfs of 2026-11-21T1405-k3f9"));
    }

    #[test]
    fn too_few_rounds_and_failures_pass_nothing() {
        let mut shape = sample::small();
        shape.rounds = 2;
        let few = asked(&sample::record(&shape), &question(0.5));
        assert_eq!(few.outcome, GateOutcome::Undecided);
        assert_eq!(few.answers[0].more_rounds, Some(1));
        assert!(
            asked(&sample::with_failure(), &question(0.5))
                .failed
                .is_some()
        );
    }

    /// With the truth exactly at what is allowed, either word is wrong in at most 5 % of studies.
    #[test]
    fn the_error_is_kept_where_it_is_hardest() {
        let mut shape = sample::small();
        shape.workloads.truncate(1);
        let mut record = sample::record(&shape);
        let mut dice = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut unit = || (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let studies = 600;
        let mut wrong = 0;
        for _ in 0..studies {
            for line in &mut record.lines {
                if let Event::Trial(trial) = &mut line.event {
                    let noise: f64 = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
                    let level = if trial.configuration == 1 { 0.95 } else { 1.0 };
                    trial.metrics[0] = Some(1e8 * level * (0.03 * noise).exp());
                }
            }
            let outcome = asked(&record, &question(0.05)).outcome;
            wrong += usize::from(outcome != GateOutcome::Undecided);
        }
        assert!(wrong * 20 <= studies, "{wrong} of {studies}");
    }
}
