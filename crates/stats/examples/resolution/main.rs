//! How often verdicts about figures of few digits are wrong, as a table.
//!
//! `resolution [STUDIES [SEED]]`, 2000 and 1 unless said, prints Markdown; `bench/resolution` runs it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose output is its table"
)]

#[path = "../validate/coarse.rs"]
mod coarse;
#[path = "../validate/pair.rs"]
#[expect(dead_code, reason = "of its rules only the words are used here")]
mod pair;
#[path = "../validate/world.rs"]
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let mut number = |default: u64| match words.next() {
        None => Some(default),
        Some(word) => word.parse().ok(),
    };
    let (Some(studies), Some(seed)) = (number(2_000), number(1)) else {
        eprintln!("resolution [STUDIES [SEED]]: both are whole numbers");
        return ExitCode::from(2);
    };
    let Ok(studies @ 1..) = u32::try_from(studies) else {
        eprintln!(
            "resolution [STUDIES [SEED]]: at least one study, at most {}",
            u32::MAX
        );
        return ExitCode::from(2);
    };
    println!(
        "{studies} studies behind each figure, seed {seed}, 3 to 20 rounds, a check after each.\n"
    );
    println!(
        "| digits | noise | false claim | 1 missed | false \"none\" | too coarse | narrowest | taken as exact |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    for row in coarse::rows(seed, studies) {
        let how = match row.shortened {
            coarse::Shortened::Rounded => "rounded",
            coarse::Shortened::CutOff => "cut off",
        };
        println!(
            "| {}, {how} | {} | {} | {} | {} | {} | {:.2} | {} |",
            row.digits,
            percent(row.noise),
            percent(row.false_claims),
            percent(row.missed),
            percent(row.false_none),
            percent(row.too_coarse),
            row.narrowest,
            percent(row.taken_as_exact),
        );
    }
    ExitCode::SUCCESS
}
