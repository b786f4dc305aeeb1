//! What power cuts took from each configuration: counted by cuts, with exact bounds, in a sentence.
//!
//! The unit is the cut. No broken promise is never "safe": the bound says in how few cuts at most.

use serde::Serialize;
use stackrace_stats::{BrokenCuts, cut_difference_p, cut_look_level, cut_looks};

use super::answer::Verdict;
use stackrace_base::event::{Cut, Event, LossCounts};
use stackrace_base::unit::{self, Rounded};
use stackrace_results::record::Record;

/// Result of the cuts of one configuration, in one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DurabilityRow {
    /// Index of the configuration.
    pub configuration: usize,
    /// Name of that configuration.
    pub name: String,
    /// Index of the workload.
    pub workload: usize,
    /// Name of the workload in the study.
    pub workload_name: String,
    /// Cuts, and after how many of them a promise was broken.
    pub cuts: u32,
    /// See `cuts`.
    pub broken: u32,
    /// Runs of the workload that these cuts are from.
    pub rounds: u32,
    /// The share of cuts that break a promise is above the first and below the second, each with the
    /// run's confidence over all looks.
    pub at_least: f64,
    /// See `at_least`.
    pub at_most: f64,
    /// Acknowledged operations with a promise, over all cuts.
    pub promised: u64,
    /// Broken promises, over all cuts.
    pub counts: LossCounts,
    /// Cuts after which nothing could be mounted.
    pub unmountable: u32,
    /// Cuts after which an operator was needed.
    pub needed_operator: u32,
    /// Most acknowledged operations lost by one cut.
    pub rpo_operations: u64,
    /// Most acknowledged work lost by one cut, ns.
    pub rpo_ns: u64,
    /// Most work lost by one cut that was never promised, ns.
    pub unpromised_ns: u64,
    /// Longest time until it was mounted again, ns; `None` if it never was.
    pub rto_ns: Option<u64>,
    /// The primary metric of the workload; `None` if not measured.
    pub speed: Option<f64>,
    /// `op/s`, `B/s` or another unit of a metric.
    pub speed_unit: String,
    /// The probability of a difference like that to `against` if both lose equally often.
    pub p: Option<f64>,
    /// Name of the configuration this one is compared with; `None` if it is that one.
    pub against: Option<String>,
    /// Number of its first loss in the run, for `crash show`; `None` if there is none.
    pub first_loss: Option<usize>,
    /// All of it in one plain sentence.
    pub sentence: String,
}

impl DurabilityRow {
    fn seen(&self) -> BrokenCuts {
        BrokenCuts {
            broken: self.broken,
            cuts: self.cuts,
        }
    }
}

/// A cut of a run, with the number of its first loss.
struct NumberedCut<'a> {
    cut: &'a Cut,
    first_loss: Option<usize>,
}

/// Every cut of a record. Losses are numbered from 1, in the order of the log; a cut after which
/// nothing could be mounted is one more.
fn numbered(record: &Record) -> Vec<NumberedCut<'_>> {
    let mut next = 1;
    let cuts = record.lines.iter().filter_map(|line| match &line.event {
        Event::Cut(cut) => Some(&**cut),
        _ => None,
    });
    cuts.map(|cut| {
        let found = cut.found.as_ref().map_or(0, |found| found.losses.len());
        let losses = found + usize::from(!cut.recovery.mounted);
        let first_loss = (losses > 0).then_some(next);
        next += losses;
        NumberedCut { cut, first_loss }
    })
    .collect()
}

/// Results of the cuts of a record, configuration by configuration; empty without cuts.
pub fn durability(record: &Record, verdict: &Verdict) -> Vec<DurabilityRow> {
    let cuts = numbered(record);
    let mut rows = Vec::new();
    for workload in 0..record.head.workloads.len() {
        let first = rows.len();
        for configuration in 0..record.head.configurations.len() {
            let of = |each: &&NumberedCut<'_>| {
                (each.cut.configuration, each.cut.workload) == (configuration, workload)
            };
            let here: Vec<&NumberedCut<'_>> = cuts.iter().filter(of).collect();
            if !here.is_empty() {
                rows.push(row(record, verdict, (configuration, workload), &here));
            }
        }
        compare(&mut rows[first..], 1.0 - verdict.confidence);
    }
    rows
}

/// Returns true if the cuts of a record answer which configurations keep their promises, after a round that made
/// `group` cuts of each: none broke a promise and the bound is `enough`, or what broke some is told from the best. Only
/// where a look was passed, because all looks share the error.
pub fn cuts_decide(record: &Record, verdict: &Verdict, group: u32, enough: f64) -> bool {
    let mut rows = durability(record, verdict);
    // One that failed is cut no more, and would keep the question open for ever.
    rows.retain(|row| !verdict.dropped(&row.name));
    let level = cut_look_level(1.0 - verdict.confidence);
    let passed =
        |row: &DurabilityRow| cut_looks(row.cuts) > cut_looks(row.cuts.saturating_sub(group));
    let told = |row: &DurabilityRow| match row.broken {
        0 => row.at_most <= enough,
        // The best one has nothing to be compared with: it is seen to lose.
        _ => row.p.is_none_or(|p| p <= level),
    };
    !rows.is_empty() && rows.iter().all(|row| passed(row) && told(row))
}

/// One row, not yet compared with the others.
fn row(
    record: &Record,
    verdict: &Verdict,
    (configuration, workload): (usize, usize),
    cuts: &[&NumberedCut<'_>],
) -> DurabilityRow {
    let head = &record.head.workloads[workload];
    let cell = verdict
        .configurations
        .iter()
        .find(|row| row.configuration == configuration)
        .and_then(|row| {
            let mut cells = row.cells.iter();
            cells.find(|cell| cell.workload == workload && cell.primary)
        });
    let mut rounds: Vec<u32> = cuts.iter().map(|each| each.cut.round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let mut row = DurabilityRow {
        configuration,
        name: record.head.configurations[configuration].name.clone(),
        workload,
        workload_name: head.name.clone(),
        cuts: cuts.len() as u32,
        broken: 0,
        rounds: rounds.len() as u32,
        at_least: 0.0,
        at_most: 1.0,
        promised: 0,
        counts: LossCounts::default(),
        unmountable: 0,
        needed_operator: 0,
        rpo_operations: 0,
        rpo_ns: 0,
        unpromised_ns: 0,
        rto_ns: None,
        speed: cell.and_then(|cell| cell.value).map(|value| value.estimate),
        speed_unit: head
            .metrics
            .first()
            .map_or(String::new(), |it| it.unit.clone()),
        p: None,
        against: None,
        first_loss: cuts.iter().find_map(|each| each.first_loss),
        sentence: String::new(),
    };
    for NumberedCut { cut, .. } in cuts {
        add(&mut row, cut);
    }
    // Each look has its share of the error: what is said now must hold with all that was said before.
    let level = cut_look_level(1.0 - verdict.confidence);
    row.at_least = row.seen().lower_bound(level).unwrap_or(0.0);
    row.at_most = row.seen().upper_bound(level).unwrap_or(1.0);
    row
}

fn add(row: &mut DurabilityRow, cut: &Cut) {
    row.broken += u32::from(cut.broke_a_promise());
    row.unmountable += u32::from(!cut.recovery.mounted);
    row.needed_operator += u32::from(cut.recovery.needed_operator);
    if cut.recovery.mounted {
        row.rto_ns = row.rto_ns.max(Some(cut.recovery.mount_ns));
    }
    let Some(found) = &cut.found else { return };
    row.promised += found.promised;
    row.counts.merge(&found.counts);
    row.rpo_operations = row.rpo_operations.max(found.rpo_operations);
    row.rpo_ns = row.rpo_ns.max(found.rpo_ns);
    row.unpromised_ns = row.unpromised_ns.max(found.unpromised_ns);
}

/// Compares the rows of one workload with that which broke fewest promises (of several, the fastest),
/// and says so.
fn compare(rows: &mut [DurabilityRow], alpha: f64) {
    let better = |a: &&DurabilityRow, b: &&DurabilityRow| {
        let seen = |row: &DurabilityRow| row.seen().share().unwrap_or(1.0);
        let slower = b.speed.unwrap_or(0.0).total_cmp(&a.speed.unwrap_or(0.0));
        seen(a).total_cmp(&seen(b)).then(slower)
    };
    let Some(best) = rows.iter().min_by(better).cloned() else {
        return;
    };
    let comparisons = rows.len().saturating_sub(1).max(1) as f64;
    for row in rows {
        if row.configuration != best.configuration {
            row.against = Some(best.name.clone());
            // Bonferroni: each of several comparisons has its share of the error.
            let p = cut_difference_p(row.seen(), best.seen());
            row.p = p.map(|p| (p * comparisons).min(1.0));
        }
        row.sentence = sentence(row, &best, alpha);
    }
}

/// `async is 4.1 x as fast as sync and lost up to 5.2 s of acknowledged work in 31 of 40 cuts`.
fn sentence(row: &DurabilityRow, best: &DurabilityRow, alpha: f64) -> String {
    let name = &row.name;
    let confidence = share(1.0 - alpha, Rounded::Nearest);
    let speed = row.speed.zip(best.speed).filter(|_| row.against.is_some());
    let faster = speed.map_or(String::new(), |(own, other)| {
        format!("is {} as fast as {} and ", factor(own / other), best.name)
    });
    let cuts = unit::counted(row.cuts as usize, "power cut");
    if row.broken == 0 {
        let bound = share(row.at_most, Rounded::Up);
        return format!(
            "{name} {faster}kept every promise in {cuts}: it breaks one in fewer than {bound} of cuts ({confidence})."
        );
    }
    let lost = match (row.rpo_ns, row.counts.collateral, row.unmountable) {
        (0, 0, 0) => "broke a promise".to_owned(),
        (0, 0, _) => "could not be mounted".to_owned(),
        (0, ..) => "damaged data at rest".to_owned(),
        (ns, ..) => format!(
            "lost up to {} of acknowledged work",
            unit::time_ns(ns as f64)
        ),
    };
    let difference = match row.p {
        Some(p) if p > cut_look_level(alpha) => {
            format!(" So far that may be chance, compared with {}.", best.name)
        }
        _ => String::new(),
    };
    format!(
        "{name} {faster}{lost} in {} of {cuts}.{difference}",
        row.broken
    )
}

/// `4.1 x`.
fn factor(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 10.0 => format!("{ratio:.0} x"),
        ratio if ratio >= 0.95 => format!("{ratio:.1} x"),
        ratio => format!("{ratio:.2} x"),
    }
}

/// `7.7 %`.
fn share(value: f64, rounded: Rounded) -> String {
    let percent = unit::decimals(value * 100.0, 1, rounded);
    format!("{} %", percent.trim_end_matches(".0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_results::record::{sample, sample_cuts};

    #[test]
    fn each_configuration_gets_one_plain_sentence() {
        let record = sample_cuts::with_cuts();
        let verdict = super::super::judge(&super::super::Evidence::of(&record));
        let rows = durability(&record, &verdict);
        let said: Vec<&str> = rows.iter().map(|row| row.sentence.as_str()).collect();
        insta::assert_snapshot!(said.join("\n"));
        for row in &rows {
            assert!(row.at_least <= f64::from(row.broken) / f64::from(row.cuts));
            assert!(row.at_most > 0.0, "no loss is never no risk");
            assert!(!row.sentence.contains("safe"), "{}", row.sentence);
            assert_eq!(row.first_loss.is_some(), row.broken > 0);
        }
    }

    #[test]
    fn a_run_of_cuts_is_decided_at_a_look_when_each_is_told() {
        let record = sample_cuts::with_cuts();
        let verdict = super::super::judge(&super::super::Evidence::of(&record));
        // 2 of 40 may be chance, compared with none of 40.
        assert!(!cuts_decide(&record, &verdict, 8, 0.12));
        let mut told = record.clone();
        told.lines.retain(|line| match &line.event {
            Event::Cut(cut) => cut.configuration != 3,
            _ => true,
        });
        assert!(cuts_decide(&told, &verdict, 8, 0.12));
        // No broken promise in 40 cuts: fewer than 11.3 %.
        assert!(!cuts_decide(&told, &verdict, 8, 0.11));
        let mut before = told.clone();
        before.lines.retain(|line| match &line.event {
            Event::Cut(cut) => cut.number < 39,
            _ => true,
        });
        assert!(
            !cuts_decide(&before, &verdict, 8, 0.12),
            "38 cuts are no look"
        );
        assert!(!cuts_decide(
            &sample::record(&sample::small()),
            &verdict,
            8,
            0.12
        ));
    }

    #[test]
    fn a_record_without_cuts_says_nothing_of_durability() {
        let record = sample::record(&sample::small());
        let verdict = super::super::judge(&super::super::Evidence::of(&record));
        assert_eq!(durability(&record, &verdict), []);
    }

    #[test]
    fn shares_and_factors_have_as_many_digits_as_they_are_worth() {
        assert_eq!(share(0.0767, Rounded::Up), "7.7 %");
        assert_eq!(share(0.0141, Rounded::Up), "1.5 %");
        assert_eq!(share(0.95, Rounded::Nearest), "95 %");
        assert_eq!(share(0.113, Rounded::Up), "11.3 %");
        assert_eq!(factor(4.13), "4.1 x");
        assert_eq!(factor(0.12), "0.12 x");
    }
}
