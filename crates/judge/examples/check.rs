//! Processor time of one check between rounds of a run with many configurations, as a table.
//!
//! `check [CONFIGURATIONS]`, 200 unless said, prints Markdown; bench/results/many-runs.md has its figures.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose output is its table"
)]

use std::process::ExitCode;

use stackrace_judge::verdict::{self, Evidence, Look};
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

/// Everything that the coordinator asks after a round.
fn check(record: &Record) -> usize {
    let evidence = Evidence::of(record);
    let ended = verdict::end_slices(&evidence).len();
    let look = Look::at(&evidence);
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

fn main() -> ExitCode {
    let configurations = match std::env::args().nth(1).map(|word| word.parse()) {
        None => 200,
        Some(Ok(number @ 2..)) => number,
        Some(_) => {
            eprintln!("check [CONFIGURATIONS]: a whole number from 2");
            return ExitCode::from(2);
        }
    };
    println!("| {configurations} configurations | rounds | one check, ms |\n|---|--:|--:|");
    for (name, comparison) in [("each with a baseline", Some("")), ("which is best", None)] {
        for rounds in ROUNDS {
            let record = made_up(configurations, rounds, comparison);
            let began_ns = used_ns();
            for _ in 0..TIMES {
                std::hint::black_box(check(&record));
            }
            let mean_ns = (used_ns() - began_ns) as f64 / f64::from(TIMES);
            println!("| {name} | {rounds} | {:.1} |", mean_ns / 1e6);
        }
    }
    ExitCode::SUCCESS
}
