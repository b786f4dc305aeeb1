//! One question with a threshold, for programs that must go on or stop: is it worse by more than so
//! much?
//!
//! The answer follows from the interval, not from the estimate: passed if the whole interval is
//! above the limit, worse if all of it is below, undecided if it contains the limit. Two
//! configurations of a run are compared round by round at its last planned look, and the error
//! probability is shared over the looks and over what is asked at once, as in every verdict
//! (`docs/methodology.md`); questions that are not asked cost nothing, so the interval may be
//! narrower than the report's. Separate runs have Welch's interval over runs, three or more on
//! each side, and are compared only if they did the same work on the same machine.

mod answer;
mod words;

use super::evidence::Evidence;
use super::lacking::Lacking;
use super::separate::{self, RUNS_MIN, Side};
use super::sides::{Sides, factor_sides};
use super::statement::Interval;
use super::table::{ComparedFigure, ObservationTable};
use super::{fidelity, unpaired, work};
use crate::published::distinct;
use libm::{exp, log as ln};
use stackrace_base::event::RunStarted;
use stackrace_results::record::Record;
use stackrace_stats::resolution;
use stackrace_stats::{FIRST_LOOK, Ratio, two_sided_level};

pub use answer::{FigureAnswer, GateAnswer, GateError, GateOutcome, Threshold};
pub(crate) use answer::{GateFailure, GateSide};
pub use words::{figure_of, on};

/// Fewer pairs have no interval.
const PAIRS_MIN: usize = 3;
/// Differing facts that are named in the notes.
const FACTS_MAX: usize = 8;

/// A figure by workload and metric, as the first run that is asked about has them; `None` for the overall figure.
type GatedFigure = Option<(usize, usize)>;

/// Both sides; each has one run at least.
struct GatePair<'a> {
    baseline: &'a Side<'a>,
    compared: &'a Side<'a>,
}

/// Answers the question for a configuration by index against another, of the same run or of others.
///
/// # Errors
/// What is asked about is not in both, or they cannot be compared.
pub fn gate(
    baseline: &Side<'_>,
    compared: &Side<'_>,
    question: &Threshold,
) -> Result<GateAnswer, GateError> {
    let pair = GatePair { baseline, compared };
    pair.check_apart()?;
    let figures = pair.figures(question)?;
    let differing = pair.differing(&figures)?;
    if !differing.is_empty() && !question.anyway {
        return Err(GateError::OtherWork(differing));
    }
    let asked = question.confidence;
    let confidence = asked.unwrap_or(pair.head().decide.confidence);
    // Bonferroni over the figures asked about at once.
    let alpha = (1.0 - confidence) / figures.len() as f64;
    let failed = compared.iter().chain(baseline).find_map(failed);
    let mut answers: Vec<FigureAnswer> = figures
        .iter()
        .map(|figure| pair.answer(*figure, alpha, question.worse_than))
        .collect();
    if failed.is_some() {
        // No number of rounds takes a failure back.
        answers.iter_mut().for_each(|answer| answer.more = None);
    }
    let mut gate = GateAnswer {
        outcome: worst(&answers),
        sentence: String::new(),
        compared: side(compared),
        baseline: side(baseline),
        worse_than: question.worse_than,
        confidence,
        paired: pair.paired(),
        answers,
        undeclared: pair.undeclared(question),
        failed,
        notes: pair.notes(differing),
    };
    if !gate.undeclared.is_empty() {
        gate.notes.push(format!(
            "not declared before the results were there: {}. The answer holds only if they were chosen without looking at the results",
            gate.undeclared.join(", ")
        ));
    }
    gate.sentence = words::sentence(&gate);
    Ok(gate)
}

fn worst(answers: &[FigureAnswer]) -> GateOutcome {
    // One figure that is worse fails the gate, whatever the others say. Passing takes all of them.
    let any = |outcome| answers.iter().any(|answer| answer.outcome == outcome);
    if any(GateOutcome::Worse) {
        GateOutcome::Worse
    } else if any(GateOutcome::Undecided) {
        GateOutcome::Undecided
    } else {
        GateOutcome::Passed
    }
}

fn side(side: &Side<'_>) -> GateSide {
    let (first, configuration) = side[0];
    GateSide {
        runs: side
            .iter()
            .map(|(record, _)| record.head.run.clone())
            .collect(),
        configuration: first.head.configurations[configuration].name.clone(),
    }
}

fn failed((record, configuration): &(&Record, usize)) -> Option<GateFailure> {
    let mut failures = record.failures();
    let first = failures.find(|trial| trial.configuration == *configuration)?;
    Some(GateFailure {
        configuration: record.head.configurations[*configuration].name.clone(),
        error: first.ended.error()?.to_owned(),
    })
}

impl GatePair<'_> {
    fn paired(&self) -> bool {
        // An imported run holds runs of its tool that were made one after the other: no pairs.
        let record = self.compared[0].0;
        self.one_run() && !record.imported()
    }

    /// Both are configurations of one run.
    fn one_run(&self) -> bool {
        match (self.baseline, self.compared) {
            ([(a, _)], [(b, _)]) => a.head.run == b.head.run,
            _ => false,
        }
    }

    /// The head that names what is asked about.
    fn head(&self) -> &RunStarted {
        &self.compared[0].0.head
    }

    fn all(&self) -> impl Iterator<Item = &(&Record, usize)> {
        self.compared.iter().chain(self.baseline)
    }

    /// Refuses the same results twice: they would count as independent ones.
    fn check_apart(&self) -> Result<(), GateError> {
        // Two configurations of one run share its rounds on purpose: these are the pairs.
        if self.one_run() {
            return Ok(());
        }
        let all: Vec<&Record> = self.all().map(|(record, _)| *record).collect();
        for (at, record) in all.iter().enumerate() {
            if all[..at]
                .iter()
                .any(|other| work::same_results(record, other))
            {
                return Err(GateError::SameResults(record.head.run.clone()));
            }
        }
        Ok(())
    }

    fn figures(&self, question: &Threshold) -> Result<Vec<GatedFigure>, GateError> {
        let head = self.head();
        let workloads: Vec<usize> = match (&*question.workloads, &question.metric) {
            ([], None) if head.workloads.len() > 1 => return self.overall(),
            ([], Some(metric)) => {
                let has = |w: &usize| head.workloads[*w].metrics.iter().any(|m| m.name == *metric);
                (0..head.workloads.len()).filter(has).collect()
            }
            ([], None) => (0..head.workloads.len()).collect(),
            (names, _) => names
                .iter()
                .map(|name| workload(head, name))
                .collect::<Result<_, _>>()?,
        };
        let figure = |w: usize| -> Result<GatedFigure, GateError> {
            let name = match &question.metric {
                Some(name) => name,
                None => head.workloads[w].metrics.first().map_or("", |m| &m.name),
            };
            // A run without the workload or the metric would drop out of its side's mean unseen.
            for (record, _) in self.all() {
                let other = workload(&record.head, &head.workloads[w].name)?;
                metric(&record.head, other, name)?;
            }
            Ok(Some((w, metric(head, w, name)?)))
        };
        // Only a metric that no workload has leads here.
        if workloads.is_empty() {
            let all = head.workloads.iter().flat_map(|w| &w.metrics);
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
        let parts = |head: &'_ RunStarted| {
            let weighed = head.workloads.iter().filter(|w| w.weight > 0.0);
            let parts = weighed.map(|w| (w.name.clone(), w.weight, w.metrics.first().cloned()));
            parts.collect::<Vec<_>>()
        };
        // With other workloads, weights or metrics, the overall figure is a mean of other things.
        let own = parts(self.head());
        match self.all().all(|(record, _)| parts(&record.head) == own) && !own.is_empty() {
            true => Ok(vec![None]),
            false => Err(GateError::NothingInCommon),
        }
    }

    /// Differences in the work, or in the machine, between the first run and any other: one clause
    /// each.
    fn differing(&self, figures: &[GatedFigure]) -> Result<Vec<String>, GateError> {
        let own = self.compared[0].0;
        let mut asked: Vec<usize> = figures.iter().flatten().map(|(w, _)| *w).collect();
        // The overall figure rests on every workload that has a weight.
        if asked.is_empty() {
            let weighed = |w: &usize| own.head.workloads[*w].weight > 0.0;
            asked = (0..own.head.workloads.len()).filter(weighed).collect();
        }
        asked.dedup();
        let mut differing = Vec::new();
        for (other, _) in self.all().skip(1) {
            let run = &other.head.run;
            for clause in work::other_machine(&own.head, &other.head) {
                differing.push(format!("{run} is of another machine: {clause}"));
            }
            for w in &asked {
                let name = &own.head.workloads[*w].name;
                let at = workload(&other.head, name)?;
                for clause in work::other_work((own, *w), (other, at)) {
                    differing.push(format!("{name} of {run} is other work: {clause}"));
                }
            }
        }
        Ok(distinct(differing.into_iter()))
    }

    /// Parts the study did not ask before its results were there, one name each.
    fn undeclared(&self, question: &Threshold) -> Vec<String> {
        let head = self.head();
        let mut undeclared = Vec::new();
        if !self.paired() {
            undeclared.push("the comparison of separate runs".to_owned());
        } else if !self.pair_declared() {
            undeclared.push("this pair of configurations".to_owned());
        }
        let named = question.workloads.iter();
        undeclared.extend(named.map(|name| format!("the workload {name} alone")));
        undeclared.extend(
            question
                .metric
                .iter()
                .map(|name| format!("the metric {name}")),
        );
        // Both were read from decimal texts, so equal shares may differ in the last bits.
        if (question.worse_than - head.decide.margin).abs() > 1e-9 {
            undeclared.push(format!(
                "the limit of {}",
                words::share(question.worse_than)
            ));
        }
        if question
            .confidence
            .is_some_and(|asked| asked != head.decide.confidence)
        {
            undeclared.push("the confidence".to_owned());
        }
        undeclared
    }

    /// Returns true if the study compares these two.
    fn pair_declared(&self) -> bool {
        let head = self.head();
        let (a, b) = (self.baseline[0].1, self.compared[0].1);
        match &head.decide.comparison {
            Some(factor) => factor_sides(head, factor)
                .iter()
                .any(|sides| sides.a.contains(&a) && sides.b.contains(&b)),
            // Of more than two the study asks for the best one, and this pair was picked out of
            // those.
            None => head.configurations.len() == 2,
        }
    }

    /// The answer on one figure, `alpha` being what it may spend.
    fn answer(&self, figure: GatedFigure, alpha: f64, worse_than: f64) -> FigureAnswer {
        let found = match self.paired() {
            true => self.round_by_round(figure, alpha),
            false => self.run_by_run(figure, alpha),
        };
        let allowed = 1.0 - worse_than;
        let outcome = match found.ratio {
            Some(ratio) if ratio.low > allowed => GateOutcome::Passed,
            Some(ratio) if ratio.high < allowed => GateOutcome::Worse,
            _ => GateOutcome::Undecided,
        };
        let more = match outcome {
            GateOutcome::Undecided => found.more(allowed),
            GateOutcome::Passed | GateOutcome::Worse => None,
        };
        let place = figure.map(|(w, m)| (&self.head().workloads[w], m));
        FigureAnswer {
            workload: place.map_or(String::new(), |(w, _)| w.name.clone()),
            metric: place.map(|(w, m)| w.metrics[m].clone()),
            ratio: found.ratio.map(Interval::from),
            lacking: found.lacking,
            resolution: resolution::share(found.resolution),
            values: found.values,
            outcome,
            more,
        }
    }

    fn round_by_round(&self, figure: GatedFigure, alpha: f64) -> Found {
        let evidence = Evidence::of(self.compared[0].0);
        let table = ObservationTable::new(&evidence);
        let [a, b] = [self.baseline[0].1, self.compared[0].1];
        let figure = figure.map_or(ComparedFigure::Overall, |(workload, metric)| {
            ComparedFigure::Metric { workload, metric }
        });
        // Only rounds that both took part in: one of them may have been dropped or have failed.
        let rounds = table.rounds_of(a).min(table.rounds_of(b));
        let difference = |at: usize| {
            let difference = table.ln(b, figure, at)? - table.ln(a, figure, at)?;
            Some((difference, table.apart(&[a, b], figure, at)))
        };
        let (differences, steps): (Vec<f64>, Vec<f64>) = (0..rounds).filter_map(difference).unzip();
        let resolution = unpaired::coarser(&steps, &[]);
        let pairs = u32::try_from(differences.len()).unwrap_or(u32::MAX);
        // The level of this look: the run could have been stopped and read at each one before it.
        let alpha = two_sided_level(alpha, pairs.max(1));
        // What is not like the application answers nothing, as everywhere.
        let unlike = fidelity::is_unlike(&evidence, figure);
        let enough = differences.len() >= PAIRS_MIN && !unlike;
        let ratio = enough
            .then(|| stackrace_stats::paired_ratio(&differences, alpha))
            .flatten()
            .map(|ratio| ratio.widened(resolution));
        let sides = Sides::of_two(table.evidence.head, a, b);
        let lacking = || Lacking::of(&table, &sides, figure, differences.len());
        Found {
            lacking: ratio.is_none().then(lacking),
            ratio,
            resolution,
            effect: stackrace_stats::mean(&differences),
            deviation: stackrace_stats::variance(&differences).sqrt(),
            alpha,
            values: (differences.len(), differences.len()),
            first: FIRST_LOOK,
        }
    }

    fn run_by_run(&self, figure: GatedFigure, alpha: f64) -> Found {
        let head = self.head();
        let named = figure.map(|(w, m)| {
            let workload = &head.workloads[w];
            (workload.name.as_str(), workload.metrics[m].name.as_str())
        });
        let sides = [self.baseline, self.compared];
        let [runs_a, runs_b] = sides.map(|side| separate::run_logs(side, named));
        let resolution = unpaired::coarser(&runs_a.steps, &runs_b.steps);
        let (a, b) = (runs_a.logs, runs_b.logs);
        // As if each run of one side had a partner on the other: with n runs on each, the error of
        // the difference is this over the square root of n, which is what `Found::more`
        // extrapolates.
        let spread = stackrace_stats::variance(&a) + stackrace_stats::variance(&b);
        let unlike = sides.iter().any(|side| separate::is_unlike(side, named));
        let ratio = (a.len().min(b.len()) >= RUNS_MIN && !unlike)
            .then(|| stackrace_stats::welch_ratio(&a, &b, alpha))
            .flatten()
            .map(|ratio| ratio.widened(resolution));
        let mut of_sides = sides.iter().zip([a.len(), b.len()]);
        let lacking = match of_sides.any(|(side, have)| side.len() >= RUNS_MIN && have < RUNS_MIN) {
            _ if unlike => Lacking::Fidelity,
            true => Lacking::Figure,
            false => Lacking::Rounds,
        };
        Found {
            lacking: ratio.is_none().then_some(lacking),
            ratio,
            resolution,
            effect: stackrace_stats::mean(&b) - stackrace_stats::mean(&a),
            deviation: spread.sqrt(),
            alpha,
            values: (a.len(), b.len()),
            first: RUNS_MIN as u32,
        }
    }

    /// Notes for the reader, what differs in the work first.
    fn notes(&self, differing: Vec<String>) -> Vec<String> {
        if self.paired() {
            return Vec::new();
        }
        let own = self.compared[0];
        let mut notes = differing;
        notes.push(format!(
            "unpaired: the two were not measured in turn. Any other change between them (time, versions, state of the machine) is in the ratio and counts against or for {}. Each run is one value, and an answer needs {RUNS_MIN} runs on each side",
            own.0.head.configurations[own.1].name
        ));
        let mut others = self.all().skip(1);
        if others.any(|(other, _)| other.head.study_hash != own.0.head.study_hash) {
            notes.push("the studies differ in their text".to_owned());
        }
        for warning in self
            .all()
            .filter(|(record, _)| record.imported())
            .flat_map(|(record, _)| record.warnings())
        {
            if !notes.iter().any(|known| known == warning) {
                notes.push(warning.to_owned());
            }
        }
        let facts = unpaired::differing_facts(self.baseline[0], own);
        let facts: Vec<&str> = facts.iter().map(|fact| fact.0.as_str()).collect();
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

/// Result of the values of a figure.
struct Found {
    ratio: Option<Ratio>,
    /// What is missing for a ratio.
    lacking: Option<Lacking>,
    /// Mean log difference and its standard deviation per round.
    effect: f64,
    deviation: f64,
    /// Uncertainty of the ratio because the figures are given in steps, log scale.
    resolution: f64,
    alpha: f64,
    values: (usize, usize),
    /// Rounds the first interval needs.
    first: u32,
}

impl Found {
    /// Further rounds until the interval no longer holds what is allowed.
    fn more(&self, allowed: f64) -> Option<u32> {
        let have = u32::try_from(self.values.0.min(self.values.1)).unwrap_or(u32::MAX);
        if self.lacking.is_some_and(|lacking| !lacking.takes_rounds()) {
            return None;
        }
        if self.ratio.is_none() {
            return Some(self.first.saturating_sub(have).max(1));
        }
        // Nearer to the limit than a step, no number of rounds tells on which side of it the truth is: the
        // limit is as near as the step leaves it.
        let beyond = self.effect - ln(allowed);
        if beyond.abs() <= self.resolution {
            return None;
        }
        let allowed = exp(ln(allowed) + self.resolution * beyond.signum());
        // What lies further ahead cannot be told from so few.
        let ahead = have.saturating_mul(stackrace_stats::equivalence::AHEAD_MAX);
        stackrace_stats::rounds_to_exclude(self.effect, self.deviation, self.alpha, allowed)
            .filter(|total| *total <= ahead)
            .map(|total| total.saturating_sub(have).max(1))
    }
}

#[cfg(test)]
mod tests;
