//! Clients that measured one storage together: a client that is slow again and again, shares that
//! differ, clients that ended early, starts and clocks that differ.

use std::collections::BTreeMap;

use libm::{exp, log as ln};

use super::difference::{RunReading, Unlike};
use stackrace_base::event::{ClientsTogether, Ended};
use stackrace_base::unit;

/// Fewer trials say nothing of a client.
const TRIALS_MIN: usize = 4;
/// A client is named where chance would name any of them in fewer than one of a hundred runs.
const ALPHA: f64 = 0.01;
/// A client that does more than this share of what the median one does is not named.
const SLOW: f64 = 0.9;
/// Operations counted for a client that finished none.
const NOTHING: f64 = 0.5;
/// The busiest client does so many times as much as the idlest: their shares differ.
const UNEVEN: f64 = 2.0;
/// All were at work for a smaller share of the time: what is told of the whole time has a long tail.
const OVERLAP: f64 = 0.8;
/// Starts that are further apart, ns.
const SKEW_NS: u64 = 5_000_000;
/// Wall clocks that are further apart, ns.
const CLOCKS_NS: u64 = 1_000_000_000;

pub(super) fn judge(run: &RunReading<'_>) -> Vec<Unlike> {
    let mut found = Vec::new();
    for (at, workload) in run.head.workloads.iter().enumerate() {
        let complete = run
            .trials
            .iter()
            .filter(|trial| trial.ended == Ended::Complete && trial.workload == at);
        let trials: Vec<&ClientsTogether> = complete
            .filter_map(|trial| trial.clients.as_ref())
            .collect();
        // One that is slow makes shares uneven, too: it is said once.
        let slow = slow(&trials);
        let uneven = uneven(&trials).filter(|_| slow.is_empty());
        let sentences = slow.into_iter().chain(uneven).chain(early(&trials));
        found.extend(sentences.map(|sentence| Unlike {
            check: "clients",
            sentence: format!("{}: {sentence}", workload.name),
        }));
    }
    let all = run.trials.iter().filter_map(|trial| trial.clients.as_ref());
    let all: Vec<&ClientsTogether> = all.collect();
    found.extend(
        starts(&all)
            .into_iter()
            .chain(clocks(&all))
            .map(|sentence| Unlike {
                check: "clocks",
                sentence,
            }),
    );
    found
}

/// Work of each client while all were at work, as a share of what the median one did.
fn shares(trial: &ClientsTogether) -> BTreeMap<&str, f64> {
    let mut done: BTreeMap<&str, f64> = BTreeMap::new();
    for part in &trial.each {
        let operations: f64 = part
            .phases
            .iter()
            .map(|phase| phase.window_operations)
            .sum();
        *done.entry(&part.client).or_default() += operations;
    }
    let middle = median(done.values().copied());
    if middle <= 0.0 {
        return BTreeMap::new();
    }
    // Nothing has no logarithm, and who did nothing is the slowest of all: less than one operation.
    done.values_mut()
        .for_each(|done| *done = done.max(NOTHING) / middle);
    done
}

/// The middle of some numbers; 0 of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    stackrace_stats::median(&values.collect::<Vec<_>>()).unwrap_or(0.0)
}

/// Clients that did clearly less than the median one, trial after trial.
fn slow(trials: &[&ClientsTogether]) -> Vec<String> {
    // Logarithms: half and twice are equally far from usual.
    let mut logs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        for (client, share) in shares(trial) {
            logs.entry(client).or_default().push(ln(share));
        }
    }
    let clients = logs.len();
    // Of two, neither is the one that differs.
    if clients < 3 {
        return Vec::new();
    }
    let mut slow = Vec::new();
    for (client, logs) in logs {
        let n = logs.len();
        if n < TRIALS_MIN {
            continue;
        }
        let mean = logs.iter().sum::<f64>() / n as f64;
        let square: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let error = (square / (n - 1) as f64 / n as f64).sqrt();
        // Every client is looked at, so each gets its part of the error.
        let critical = stackrace_stats::t_quantile(1.0 - ALPHA / clients as f64, (n - 1) as f64);
        if mean + critical * error < ln(SLOW) {
            let below = logs.iter().filter(|log| **log < ln(SLOW)).count();
            slow.push(format!(
                "{client} did {} of what the median client did, and less than {} in {below} of {n} trials",
                unit::percent(exp(mean)),
                unit::percent(SLOW),
            ));
        }
    }
    slow
}

/// Shares that differ, where it is not one client that is slow.
fn uneven(trials: &[&ClientsTogether]) -> Option<String> {
    let spread = trials.iter().filter_map(|trial| {
        let shares = shares(trial);
        let most = shares.values().copied().reduce(f64::max)?;
        let least = shares.values().copied().reduce(f64::min)?;
        Some(most / least)
    });
    // The median: one trial with a hiccup says nothing of the others.
    let spread = median(spread);
    (spread > UNEVEN).then(|| {
        format!(
            "while all were at work, the busiest client did {spread:.1} times as much as the idlest, in the median trial; which one it is changes"
        )
    })
}

/// An end at which only some were at work.
fn early(trials: &[&ClientsTogether]) -> Option<String> {
    let phases = || trials.iter().flat_map(|trial| &trial.phases);
    // Of each phase apart: a short one has little time to be shared.
    let overlap = median(phases().map(|phase| phase.overlap()));
    // In which trials whom the others had to wait for.
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for trial in trials {
        let ended = trial.each.iter().max_by_key(|part| {
            let phases = part.phases.iter();
            phases.fold(0_u64, |sum, phase| {
                // A log may say anything.
                let ended = phase.began_ns.saturating_add(phase.elapsed_ns);
                sum.saturating_add(ended)
            })
        });
        if let Some(part) = ended {
            *last.entry(&part.client).or_default() += 1;
        }
    }
    let (client, times) = last.into_iter().max_by_key(|(_, times)| *times)?;
    (overlap < OVERLAP).then(|| {
        format!(
            "all clients were at work in only {} of the time, in the median phase; {client} ended last in {times} of {} trials",
            unit::percent(overlap),
            trials.len()
        )
    })
}

/// Starts that are too far apart, or not known well enough.
fn starts(trials: &[&ClientsTogether]) -> Option<String> {
    let phases = trials.iter().flat_map(|trial| &trial.phases);
    let most = phases.map(|phase| phase.skew_ns).max()?;
    let parts = trials.iter().flat_map(|trial| &trial.each);
    // The middle of a round trip is wrong by half of it at most.
    let doubt = parts.map(|part| part.round_trip_ns / 2).max().unwrap_or(0);
    (most.max(doubt) > SKEW_NS).then(|| {
        format!(
            "the starts of the clients were up to {} apart, and are known to {}",
            unit::time_ns(most as f64),
            unit::time_ns(doubt as f64)
        )
    })
}

/// Wall clocks that differ: times of day in logs of the clients do not fit together.
fn clocks(trials: &[&ClientsTogether]) -> Option<String> {
    let parts = trials.iter().flat_map(|trial| &trial.each);
    let most = parts.max_by_key(|part| part.wall_clock_ahead_ns.unsigned_abs())?;
    // Measuring does not need wall clocks; reading logs side by side does.
    let ns = most.wall_clock_ahead_ns;
    (ns.unsigned_abs() > CLOCKS_NS).then(|| {
        format!(
            "the wall clock of {} is {} {} that of the first client",
            most.client,
            unit::time_ns(ns.unsigned_abs() as f64),
            if ns > 0 { "ahead of" } else { "behind" }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::Run;
    use super::*;
    use stackrace_base::event::{ClientPart, ClientPhase, CommonPhase};

    /// A run of eight rounds by so many clients, each of which does so much of what is usual.
    fn run(clients: usize, seed: u64, noise: f64, does: impl Fn(usize, u64) -> f64) -> Vec<String> {
        let mut run = Run::of(|_| Vec::new());
        let mut shape = stackrace_results::record::sample::small();
        shape.rounds = 8;
        run.record = stackrace_results::record::sample::record(&shape);
        let count = std::cell::Cell::new(seed);
        run.each_trial(|trial| {
            count.set(count.get() + 1);
            let part = |client: usize| {
                // An even spread is enough: what counts is the mean over trials.
                let drawn = blake3::hash(format!("{client} {}", count.get()).as_bytes());
                let drawn = f64::from(drawn.as_bytes()[0]) / 255.0 - 0.5;
                let share = does(client, count.get()) * (1.0 + noise * drawn);
                ClientPart {
                    client: format!("c{client}"),
                    process: 1,
                    round_trip_ns: 200_000,
                    phases: vec![ClientPhase {
                        elapsed_ns: (1e9 / share) as u64,
                        window_operations: 1000.0 * share,
                        ..ClientPhase::default()
                    }],
                    ..ClientPart::default()
                }
            };
            trial.clients = Some(ClientsTogether {
                each: (0..clients).map(part).collect(),
                phases: vec![CommonPhase {
                    window_ns: 950_000_000,
                    elapsed_ns: 1_000_000_000,
                    skew_ns: 100_000,
                    ..CommonPhase::default()
                }],
            });
        });
        run.read(judge).into_iter().map(|it| it.sentence).collect()
    }

    #[test]
    fn a_slow_client_is_named_in_every_run_and_no_other_one_is() {
        for seed in 0..50 {
            let slow = |client, _| if client == 3 { 0.6 } else { 1.0 };
            let named = run(16, seed * 1000, 0.3, slow);
            // One sentence for each of the three workloads.
            assert_eq!(named.len(), 3, "{named:?}");
            for sentence in named {
                assert!(
                    sentence.contains("c3 did 6") || sentence.contains("c3 did 5"),
                    "{sentence}"
                );
            }
        }
    }

    #[test]
    fn a_client_that_did_nothing_is_named() {
        let named = run(16, 7, 0.3, |client, _| if client == 3 { 0.0 } else { 1.0 });
        assert_eq!(named.len(), 3, "{named:?}");
        assert!(
            named.iter().all(|said| said.contains("c3 did 0")),
            "{named:?}"
        );
    }

    #[test]
    fn clients_that_are_alike_are_not_named_however_noisy_they_are() {
        let named = (0..100).map(|seed| run(16, seed * 1000, 0.4, |_, _| 1.0).len());
        // Three workloads each; one of a hundred runs may be chance.
        assert!(named.sum::<usize>() <= 3);
    }

    #[test]
    fn of_two_clients_neither_is_the_slow_one_but_their_shares_differ() {
        let named = run(2, 0, 0.0, |client, _| if client == 0 { 0.4 } else { 1.0 });
        assert_eq!(named.len(), 3, "{named:?}");
        assert!(
            named[0].contains("2.5 times as much as the idlest"),
            "{named:?}"
        );
    }

    #[test]
    fn clients_that_end_early_and_clocks_that_differ_are_told() {
        let mut trial = ClientsTogether {
            each: vec![ClientPart {
                client: "c0".to_owned(),
                wall_clock_ahead_ns: -3_000_000_000,
                round_trip_ns: 30_000_000,
                ..ClientPart::default()
            }],
            phases: vec![CommonPhase {
                window_ns: 300_000_000,
                elapsed_ns: 1_000_000_000,
                skew_ns: 1_000_000,
                ..CommonPhase::default()
            }],
        };
        assert!(early(&[&trial]).unwrap().contains("only 30"));
        let told = starts(&[&trial]).unwrap();
        assert!(
            told.contains("1.00 ms apart, and are known to 15.0 ms"),
            "{told}"
        );
        assert!(clocks(&[&trial]).unwrap().contains("c0 is 3.00 s behind"));
        trial.each[0].wall_clock_ahead_ns = 0;
        trial.each[0].round_trip_ns = 100_000;
        trial.phases[0].window_ns = 900_000_000;
        assert_eq!(
            (early(&[&trial]), starts(&[&trial]), clocks(&[&trial])),
            (None, None, None)
        );
    }
}
