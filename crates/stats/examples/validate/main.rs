//! The error rates, powers and coverages of the rules, as tables for `docs/methodology.md`.
//!
//! `validate [STUDIES [SEED]]`, 4000 and 1 unless said, prints Markdown; `bench/validate` puts it
//! where it belongs.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose output is its tables"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "it says on standard error how long it took"
)]

mod factorial;
mod pair;
mod trial;
mod world;

use std::process::ExitCode;

/// Margin of the studies whose power is shown.
const MARGIN: f64 = 0.01;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let mut number = |default: u64| match words.next() {
        None => Some(default),
        Some(word) => word.parse().ok(),
    };
    let (Some(studies), Some(seed)) = (number(4_000), number(1)) else {
        eprintln!("validate [STUDIES [SEED]]: both are whole numbers");
        return ExitCode::from(2);
    };
    let Ok(studies @ 1..) = u32::try_from(studies) else {
        eprintln!(
            "validate [STUDIES [SEED]]: at least one study, at most {}",
            u32::MAX
        );
        return ExitCode::from(2);
    };
    let begin = std::time::Instant::now();
    println!("{studies} studies (or trials) behind each figure, seed {seed}.\n");
    promises(seed, studies);
    powers(seed + 1_000, studies);
    effects(seed + 2_000, studies);
    trials(seed + 3_000, studies);
    within(seed + 4_000, studies);
    eprintln!("{:.0} s", begin.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn table(title: &str, head: &[&str], rows: Vec<Vec<String>>) {
    println!("{title}\n");
    println!("| {} |", head.join(" | "));
    println!("|---{}|", "|---:".repeat(head.len() - 1));
    for row in rows {
        println!("| {} |", row.join(" | "));
    }
    println!();
}

fn promises(seed: u64, studies: u32) {
    let row = |row: pair::Promise| {
        vec![
            row.machine.to_owned(),
            percent(row.false_claims),
            percent(row.missed_ten),
            percent(row.missed_at_stop),
        ]
    };
    table(
        "**A pair, up to 30 rounds, promised: at most 5 %.** Studies without a difference that claim \
         one at any look (margin 0.1 %); in which any of the six intervals misses the \
         truth, a difference of 10 %; whose interval at the stop does (margin 5 %). The noise of one \
         difference is 3 %.",
        &["noise", "false claim", "any missed, 10 %", "missed at stop"],
        pair::promises(seed, studies).into_iter().map(row).collect(),
    );
}

fn powers(seed: u64, studies: u32) {
    let row = |row: pair::Power| {
        vec![
            format!("{:.0} %", 100.0 * row.deviation),
            format!("{:.0} %", 100.0 * row.difference),
            percent(row.found),
            percent(row.called_none),
            format!("{:.1}", row.rounds),
            percent(row.fixed_found),
            row.fixed_rounds
                .map_or("over 1000".to_owned(), |n| n.to_string()),
        ]
    };
    table(
        "**What is found, and what it takes**, margin 1 %, up to 30 rounds, beside studies of a fixed \
         number of rounds and one plain 95 % interval: 30 rounds, and the number that finds the \
         difference nine times of ten, which has to be known beforehand together with the noise.",
        &[
            "noise",
            "difference",
            "found",
            "called none",
            "mean rounds",
            "found by 30",
            "fixed for 90 %",
        ],
        pair::powers(seed, studies, MARGIN)
            .into_iter()
            .map(row)
            .collect(),
    );
}

fn effects(seed: u64, studies: u32) {
    let row = |row: factorial::FactorialTable| {
        vec![
            row.name.to_owned(),
            row.rows.to_string(),
            percent(row.missed_any),
            format!("{:.2} %", 100.0 * row.missed_row),
            percent(row.interaction_found),
        ]
    };
    table(
        "**The table of effects**, 2 × 4 treatments, 12 rounds, noise of a trial 2 %, a session that \
         drifts by 10 % and wanders by 3 %, promised: at most 5 % of studies with any wrong row at \
         any look.",
        &[
            "truth",
            "rows",
            "any row wrong",
            "a row wrong, last look",
            "interaction found",
        ],
        factorial::tables(seed, studies)
            .into_iter()
            .map(row)
            .collect(),
    );
}

fn trials(seed: u64, studies: u32) {
    let row = |row: trial::CheckResult| {
        vec![
            row.kind.to_owned(),
            format!("{} s", row.seconds),
            percent(row.false_alarms),
            percent(row.drop_30),
            percent(row.drop_60),
            percent(row.steady),
            percent(row.slide),
        ]
    };
    table(
        "**Changes within a trial**, slices of 100 ms: found where there is none; a drop by 30 % in \
         the middle and one by 60 % after a quarter found within a twentieth of the trial of where \
         they are; trials of one level, and trials that slide by 30 %, called steady.",
        &[
            "slices",
            "length",
            "false alarm",
            "−30 %",
            "−60 %",
            "level: steady",
            "slide: steady",
        ],
        trial::findings(seed, studies)
            .into_iter()
            .map(row)
            .collect(),
    );
}

fn within(seed: u64, studies: u32) {
    let row = |row: trial::Within| {
        vec![
            format!("{}", row.rho),
            percent(row.batches),
            percent(row.plain),
        ]
    };
    table(
        "**The mean of one trial of 300 slices**: how often its 95 % interval holds the truth, from \
         ten batches and from slices taken for independent.",
        &["correlation", "batches", "plain"],
        trial::within(seed, studies).into_iter().map(row).collect(),
    );
}
