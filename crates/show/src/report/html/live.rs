//! A run that goes on: how far it is, where the configurations stand, what runs now.

use maud::{Markup, html};

use super::tables::table;
use crate::report::chart::{spark, swatch};
use crate::report::content::{TextRow, TextTable};
use crate::report::{Standings, figure, standings};
use stackrace_base::unit;
use stackrace_judge::verdict::Verdict;
use stackrace_results::record::{Now, Record};

/// Progress of the race and standings of the configurations; changes with the record.
pub fn race(record: &Record, verdict: &Verdict) -> Markup {
    let done = verdict.rounds;
    let most = record.head.decide.rounds_max;
    let standings = standings(record, &verdict.configurations, &verdict.overall);
    let configurations = standings.rows.iter();
    let live = configurations.filter(|row| row.left.is_none()).count();
    // Even if all have failed, the bar needs a length.
    let all = live.max(1) * record.head.workloads.len();
    let trials = record
        .trials()
        .filter(|trial| trial.round == done + 1)
        .count();
    // A trial that is measured again after a resume is there twice.
    let trials = trials.min(all);
    html! {
        p {
            label for="progress" {
                "Round " (done + 1)
                // Beyond the limit it began with, a run was continued.
                @if done < most { " of at most " (most) }
                ": " (trials) " of " (all) " trials done"
            }
            " "
            // In trials and not in rounds: it also moves within a round.
            progress id="progress" max=(u64::from(most) * all as u64)
                value=(u64::from(done) * all as u64 + trials as u64) {}
        }
        p class="faint" { (standings.of) }
        (table(&standing(&standings)))
    }
}

/// The configurations, those in the race first.
fn standing(standings: &Standings) -> TextTable {
    let rows = standings.rows.iter().map(|row| TextRow {
        configuration: Some(row.configuration),
        dropped: row.left.is_some(),
        ..TextRow::of(vec![
            row.name.clone(),
            row.figure.clone(),
            row.interval.clone(),
            row.left.map_or(String::new(), |left| left.to_string()),
        ])
    });
    TextTable {
        title: "Where the configurations stand".to_owned(),
        head: ["configuration", "so far", &standings.interval, ""]
            .map(str::to_owned)
            .to_vec(),
        text: vec![3],
        rows: rows.collect(),
        ..TextTable::default()
    }
}

/// The work that runs now; changes four times a second.
pub fn doing(record: &Record, now: Option<&Now>) -> Markup {
    let Some(now) = now else {
        return html! { p class="faint" { "The run does not report what it is doing." } };
    };
    let head = &record.head;
    let configuration = head.configurations.get(now.configuration);
    let workload = now.workload.and_then(|at| head.workloads.get(at));
    let rate = now
        .recent
        .last()
        .map(|rate| figure::value(&now.unit, *rate));
    html! {
        p class="doing" {
            (swatch(now.configuration))
            strong { (configuration.map_or("", |configuration| configuration.name.as_str())) }
            @if let Some(workload) = workload.filter(|workload| workload.name != now.part) {
                " · " (workload.name)
            }
            " · " (now.part) " · " (unit::long_time(now.elapsed_ns as f64 / 1e9))
        }
        p class="rate" {
            @if let Some(rate) = &rate {
                span class="figure" { (rate) } " "
                (spark("spark", &spoken(now, rate), &now.recent, now.configuration))
            } @else {
                span class="faint" { "nothing is counted in this part" }
            }
        }
        @if let Some(left) = now.left_s {
            p class="faint" { "At most " (unit::long_time(left)) " left." }
        }
    }
}

/// Content of the little chart, in words.
fn spoken(now: &Now, rate: &str) -> String {
    let most = now.recent.iter().copied().fold(0.0, f64::max);
    format!(
        "Throughput of this part: {rate} now, {} at most of late",
        figure::value(&now.unit, most)
    )
}
