//! Time of one check between rounds of a run with many configurations, as a table.
//!
//! `check [CONFIGURATIONS]`, 200 unless said, prints Markdown; bench/results/many-runs.md has its figures.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a program whose output is its table"
)]

use std::process::ExitCode;

use stackrace_base::event::Event;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_judge::verdict::{self, CourseMemory, Evidence};
use stackrace_results::record::Record;
use stackrace_results::record::sample::{self, SampleShape};

/// Rounds after which a check is timed.
const ROUNDS: [u32; 3] = [10, 30, 100];
/// Times that each is taken; the fastest counts, because others use the processor, too.
const TIMES: u32 = 5;

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
fn check(record: &Record, courses: &CourseMemory) -> usize {
    let evidence = Evidence {
        courses: Some(courses),
        ..Evidence::of(record)
    };
    let ended = verdict::end_slices(&evidence).len();
    let verdict = verdict::judge(&evidence);
    let decide = &record.head.decide;
    let dropped = match verdict::may_stop(&verdict, decide) {
        true => 0,
        false => verdict::to_drop(&evidence, decide).len(),
    };
    let open = verdict::can_compare(&Evidence::of(record));
    ended + dropped + usize::from(open) + verdict.sentence.len()
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
            let whole = made_up(configurations, rounds, comparison);
            let mut before = whole.clone();
            let begins = |event: &Event| matches!(event, Event::RoundStarted { round, .. } if *round == rounds);
            let at = whole.lines.iter().position(|line| begins(&line.event));
            before.lines.truncate(at.expect("the last round begins"));
            let one = || {
                // As in a run: the rounds before were checked already.
                let courses = CourseMemory::default();
                check(&before, &courses);
                let began_ns = SystemClock.now_ns();
                std::hint::black_box(check(&whole, &courses));
                SystemClock.now_ns() - began_ns
            };
            let fastest = (0..TIMES).map(|_| one()).min().unwrap_or_default();
            println!("| {name} | {rounds} | {:.0} |", fastest as f64 / 1e6);
        }
    }
    ExitCode::SUCCESS
}
