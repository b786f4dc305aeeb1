//! Processor time of one check between rounds of a run with many configurations, as a table: with what is kept of the
//! checks before, as in a run, and with nothing kept, as for a report.
//!
//! `check [CONFIGURATIONS]`, 200 unless said, prints Markdown; bench/results/many-runs.md has its figures.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose output is its table"
)]

use std::process::ExitCode;

use stackrace_base::event::Event;
use stackrace_judge::verdict::{self, KeptEvidence};
use stackrace_results::record::Record;
use stackrace_results::record::sample::{self, SampleShape};

/// Rounds after which a check is timed.
const ROUNDS: [u32; 3] = [10, 30, 100];
/// Checks of which the mean is taken: the system counts the time in steps of some milliseconds.
const TIMES: u32 = 20;

/// A made-up run: a baseline, and configurations up to 20 % faster than it.
fn made_up(configurations: usize, rounds: u32, comparison: Option<&'static str>) -> Record {
    let name = |at: usize| (format!("c{at}"), vec![format!("c{at}")]);
    let mut shape = SampleShape {
        factors: vec!["setting"],
        configurations: (0..configurations).map(name).collect(),
        comparison: comparison.map(|_| "setting"),
        rounds,
        speed: |at, _| 1e8 * (1.0 + 0.2 * (at % 20) as f64 / 20.0),
        ..sample::sweep()
    };
    shape.workloads.truncate(1);
    sample::record(&shape)
}

/// The same without its last round.
fn before(record: &Record) -> Record {
    let mut before = record.clone();
    let begins = |event: &Event| matches!(event, Event::RoundStarted { .. });
    let last = before.lines.iter().rposition(|line| begins(&line.event));
    before.lines.truncate(last.unwrap_or(0));
    before
}

/// Everything that the coordinator asks after a round.
fn check(kept: &mut KeptEvidence, record: &Record) -> usize {
    let evidence = kept.of(record);
    let ended = verdict::end_slices(&evidence).len();
    let look = kept.look(&evidence);
    let decide = &record.head.decide;
    let dropped = match look.may_stop(decide) {
        true => 0,
        false => look.to_drop(decide).len(),
    };
    ended + dropped + look.answer().sentence.len()
}

/// Processor time of this thread so far, ns: whatever else the machine does.
fn used_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next();
    first.and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// Mean processor time of a check of a record, ms, with what `kept` gives.
fn mean_ms(record: &Record, kept: impl Fn() -> KeptEvidence) -> f64 {
    // All of them before the clock runs.
    let all: Vec<KeptEvidence> = (0..TIMES).map(|_| kept()).collect();
    let began_ns = used_ns();
    for mut kept in all {
        std::hint::black_box(check(&mut kept, record));
    }
    (used_ns() - began_ns) as f64 / f64::from(TIMES) / 1e6
}

fn main() -> ExitCode {
    let configurations = match std::env::args().nth(1).map(|word| word.parse()) {
        None => 200,
        Some(Ok(number @ 2..)) => number,
        Some(_) => {
            eprintln!("check [CONFIGURATIONS]: a whole number from 2");
            return ExitCode::from(2);
        }
    };
    println!("| {configurations} configurations | rounds | one check, ms | nothing kept |");
    println!("|---|--:|--:|--:|");
    for (name, comparison) in [("each with a baseline", Some("")), ("which is best", None)] {
        for rounds in ROUNDS {
            let record = made_up(configurations, rounds, comparison);
            let before = before(&record);
            let after_round_before = || {
                let mut kept = KeptEvidence::default();
                check(&mut kept, &before);
                kept
            };
            let one = mean_ms(&record, after_round_before);
            let anew = mean_ms(&record, KeptEvidence::default);
            println!("| {name} | {rounds} | {one:.1} | {anew:.1} |");
        }
    }
    ExitCode::SUCCESS
}
