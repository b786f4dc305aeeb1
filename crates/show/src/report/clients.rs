//! Clients that measured one storage together: what each did, and how well they did it at the same time.

use std::collections::BTreeMap;

use super::content::{self, TextRow, TextTable};
use super::figure;
use stackrace_base::event::{ClientsTogether, Ended};
use stackrace_base::unit;
use stackrace_results::record::Record;

/// Title of [`table`].
pub(super) const CLIENTS: &str = "Clients";
/// Clients that are listed where room is short: those with the smallest shares.
pub(super) const CLIENTS_FEW: usize = 8;

/// Work of one client in the trials it took part in.
#[derive(Debug, Default)]
struct ClientTrials {
    processes: usize,
    /// Share of all operations while all were at work, for each trial.
    shares: Vec<f64>,
    /// Delay after the first one at which it began each phase, ns.
    began_ns: Vec<f64>,
    /// For how much of each phase it was at work.
    at_work: Vec<f64>,
    /// 99th percentile of its latency in each phase that has one, ns.
    latency_ns: Vec<f64>,
}

impl ClientTrials {
    /// Its row, with its name and its share in the median trial.
    fn cells(&self, client: &str, share: f64) -> Vec<String> {
        let median = |values: &[f64], written: fn(f64) -> String| {
            let median = stackrace_stats::median(values);
            median.map_or(figure::MISSING.to_owned(), written)
        };
        let range = |pick: fn(f64, f64) -> f64| self.shares.iter().copied().reduce(pick);
        vec![
            client.to_owned(),
            self.processes.to_string(),
            content::share(share),
            match (range(f64::min), range(f64::max)) {
                (Some(low), Some(high)) => {
                    format!("{} to {}", content::share(low), content::share(high))
                }
                _ => figure::MISSING.to_owned(),
            },
            median(&self.began_ns, unit::time_ns),
            median(&self.at_work, unit::percent),
            median(&self.latency_ns, unit::time_ns),
        ]
    }
}

fn complete(record: &Record) -> Vec<&ClientsTogether> {
    let complete = record
        .trials()
        .filter(|trial| trial.ended == Ended::Complete);
    complete
        .filter_map(|trial| trial.clients.as_ref())
        .collect()
}

/// A sentence on how far apart they began, how long all were at work, and how well the starts are known. `None` if the
/// run has no clients.
pub(super) fn sentence(record: &Record) -> Option<String> {
    let trials = complete(record);
    let phases: Vec<_> = trials.iter().flat_map(|trial| &trial.phases).collect();
    let of = |value: &dyn Fn(usize) -> f64| (0..phases.len()).map(value).collect::<Vec<_>>();
    let skews = of(&|at| phases[at].skew_ns as f64);
    let overlaps = of(&|at| phases[at].overlap());
    let most = skews.iter().copied().reduce(f64::max)?;
    let doubt = trials.iter().flat_map(|trial| &trial.each);
    let doubt = doubt.map(|part| part.round_trip_ns / 2).max().unwrap_or(0);
    Some(format!(
        "They began within {} of each other in the median phase, within {} in all; all were at work for {} of the median phase. Starts are known to {}.",
        unit::time_ns(stackrace_stats::median(&skews)?),
        unit::time_ns(most),
        unit::percent(stackrace_stats::median(&overlaps)?),
        unit::time_ns(doubt as f64),
    ))
}

/// A row for each client, the smallest share first; `most`: the number of rows. `None` if the run has no clients.
pub(super) fn table(record: &Record, most: usize) -> Option<TextTable> {
    let note = sentence(record)?;
    let trials = complete(record);
    let mut clients: BTreeMap<&str, ClientTrials> = BTreeMap::new();
    for trial in &trials {
        add(trial, &mut clients);
    }
    let mut rows: Vec<(f64, &str, ClientTrials)> = clients
        .into_iter()
        .map(|(client, did)| {
            // One that never worked beside the others has the smallest share there is.
            let share = stackrace_stats::median(&did.shares).unwrap_or(0.0);
            (share, client, did)
        })
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    let mut note = format!("{note} Share: of all operations while all were at work");
    // Where their number is a factor, no share is the even one of all trials.
    let all_in_all = rows
        .iter()
        .all(|(.., did)| did.shares.len() == trials.len());
    if all_in_all {
        let even = content::share(1.0 / rows.len().max(1) as f64);
        note.push_str(&format!("; an even one is {even}"));
    }
    note.push('.');
    if rows.len() > most {
        let more = rows.len() - most;
        note.push_str(&format!(" {more} more are in the HTML report."));
    }
    Some(TextTable {
        title: CLIENTS.to_owned(),
        note,
        head: [
            "client",
            "processes",
            "share",
            "in trials",
            "began after",
            "at work",
            "latency p99",
        ]
        .map(str::to_owned)
        .to_vec(),
        text: Vec::new(),
        rows: rows
            .iter()
            .take(most)
            .map(|row| TextRow::of(row.2.cells(row.1, row.0)))
            .collect(),
    })
}

/// Adds the work of each client in a trial: its processes together.
fn add<'a>(trial: &'a ClientsTogether, clients: &mut BTreeMap<&'a str, ClientTrials>) {
    let of = |part: &stackrace_base::event::ClientPart| -> f64 {
        part.phases
            .iter()
            .map(|phase| phase.window_operations)
            .sum()
    };
    let all: f64 = trial.each.iter().map(of).sum();
    let mut done: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for part in &trial.each {
        let (processes, operations) = done.entry(&part.client).or_default();
        *processes += 1;
        *operations += of(part);
        let client = clients.entry(&part.client).or_default();
        for (phase, common) in part.phases.iter().zip(&trial.phases) {
            client.began_ns.push(phase.began_ns as f64);
            // Read from a log, which may say 0.
            let elapsed = (common.elapsed_ns as f64).max(1.0);
            client
                .at_work
                .push((phase.elapsed_ns as f64 / elapsed).min(1.0));
            if phase.latency_ns_p99 > 0 {
                client.latency_ns.push(phase.latency_ns_p99 as f64);
            }
        }
    }
    for (client, (processes, operations)) in done {
        let client = clients.entry(client).or_default();
        // The number of processes may be a factor.
        client.processes = client.processes.max(processes);
        if all > 0.0 {
            client.shares.push(operations / all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{ClientPart, ClientPhase, CommonPhase, Event};
    use stackrace_results::record::sample;

    /// A run of so many clients with two processes each; the third does half of what the others do.
    fn record(clients: usize) -> Record {
        let mut record = sample::record(&sample::small());
        for line in &mut record.lines {
            let Event::Trial(trial) = &mut line.event else {
                continue;
            };
            let part = |rank: usize| ClientPart {
                client: format!("c{}", rank / 2),
                process: (rank % 2) as u32 + 1,
                round_trip_ns: 200_000,
                phases: vec![ClientPhase {
                    began_ns: 1_000_000 * (rank / 2) as u64,
                    elapsed_ns: 500_000_000,
                    window_operations: if rank / 2 == 2 { 50.0 } else { 100.0 },
                    latency_ns_p99: 3_000_000,
                    ..ClientPhase::default()
                }],
                ..ClientPart::default()
            };
            trial.clients = Some(ClientsTogether {
                each: (0..clients * 2).map(part).collect(),
                phases: vec![CommonPhase {
                    skew_ns: 4_000_000,
                    window_ns: 900_000_000,
                    elapsed_ns: 1_000_000_000,
                    ..CommonPhase::default()
                }],
            });
        }
        record
    }

    #[test]
    fn the_smallest_share_is_first_and_processes_count_together() {
        let table = table(&record(5), usize::MAX).unwrap();
        assert_eq!(table.rows.len(), 5);
        assert_eq!(
            table.rows[0].cells,
            [
                "c2",
                "2",
                "11.11 %",
                "11.11 % to 11.11 %",
                "2.00 ms",
                "50 %",
                "3.00 ms"
            ]
        );
        assert_eq!(table.rows[1].cells[..3], ["c0", "2", "22.22 %"]);
        for words in [
            "within 4.00 ms",
            "all were at work for 90 %",
            "known to 100 µs",
            "an even one is 20 %",
        ] {
            assert!(table.note.contains(words), "{words}: {}", table.note);
        }
    }

    #[test]
    fn where_room_is_short_the_smallest_shares_are_shown_and_the_others_counted() {
        let table = table(&record(20), CLIENTS_FEW).unwrap();
        assert_eq!(
            (table.rows.len(), table.rows[0].cells[0].as_str()),
            (CLIENTS_FEW, "c2")
        );
        assert!(table.note.contains("12 more"), "{}", table.note);
    }

    #[test]
    fn a_run_of_one_machine_and_one_of_idle_clients_have_no_figures_made_up() {
        assert!(table(&sample::record(&sample::small()), 8).is_none());
        let mut idle = record(3);
        for line in &mut idle.lines {
            if let Event::Trial(trial) = &mut line.event {
                for part in &mut trial.clients.as_mut().unwrap().each {
                    part.phases.clear();
                }
            }
        }
        let table = table(&idle, 8).unwrap();
        assert_eq!(table.rows[0].cells[3..], [figure::MISSING; 4]);
    }
}
