//! The error rates, powers and coverages of the rules, as tables for `bench/results/rules.md`.
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
    decisions(seed + 5_000, studies);
    projections(seed + 6_000, studies);
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
            percent(row.false_none),
        ]
    };
    table(
        "**Two treatments, up to 30 rounds. The rule allows at most 5 %.** *False claim*: studies \
         without a difference that claim one at any look (margin 0.1 %). *Any missed*: studies with a \
         difference of 10 % in which the interval of any round from the third on misses it. *Missed at \
         stop*: the same for the interval at the stop alone (margin 5 %). *False \"none\"*: studies with a \
         difference of 5.01 % that say \"no difference larger than 5 %\". The noise of one difference is \
         3 %. The promise does not hold where one of the two alone is both much noisier and lopsided (rare, \
         very slow trials): no statement from a few rounds can know what is that rare.",
        &[
            "noise",
            "false claim",
            "any missed, 10 %",
            "missed at stop",
            "false \"none\"",
        ],
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
        "**What is found, and how many rounds it takes**, margin 1 %, up to 30 rounds. The last two \
         columns are studies with a fixed number of rounds and one plain 95 % interval: how often 30 \
         rounds find the difference, and how many rounds find it nine times of ten. That number can \
         be chosen only if difference and noise are known beforehand.",
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

fn decisions(seed: u64, studies: u32) {
    let row = |row: pair::Decided| {
        vec![
            format!("{:.0} %", 100.0 * row.deviation),
            format!("{:.0} %", -100.0 * f64::exp_m1(-row.carried)),
            format!("{:.2}", row.ratio),
            format!("{:.1}", row.rounds),
            percent(row.by_12),
            percent(row.by_20),
            format!("{:.1}", row.five_looks.0),
            percent(row.five_looks.1),
        ]
    };
    table(
        "**Rounds to a decision**, margin 5 %, a single comparison with the whole error; studies end after \
         20 rounds. *Order*: how much slower the second of a round is, whichever it is. *Before*: five \
         planned looks (3, 5, 8, 12, 20) that share the error, one interval for both questions, and the \
         order left in.",
        &[
            "noise",
            "order",
            "ratio",
            "mean rounds",
            "decided by 12",
            "by 20",
            "before: mean rounds",
            "before: by 12",
        ],
        pair::decisions(seed, studies)
            .into_iter()
            .map(row)
            .collect(),
    );
}

fn projections(seed: u64, studies: u32) {
    let of = |count: u32, all: u32| match all {
        0 => "-".to_owned(),
        _ => percent(world::share(count, all)),
    };
    let row = |row: pair::Projected| {
        vec![
            row.after.to_string(),
            format!("{:.0} %", 100.0 * row.deviation),
            format!("{:.2}", row.ratio),
            row.undecided.to_string(),
            of(row.not_told, row.undecided),
            row.median.to_string(),
            of(row.came_true, row.undecided - row.not_told),
        ]
    };
    table(
        "**Do projections come true?** Studies that are undecided after so many rounds say how many more \
         are enough with a probability of 80 %. *Came true*: decided within them. A quarter as \
         many studies are behind each row. The probability holds on average over what the truth may \
         be; for a ratio halfway into the margin it is lower.",
        &[
            "after",
            "noise",
            "ratio",
            "undecided",
            "cannot tell yet",
            "median of further rounds",
            "came true",
        ],
        pair::projections(seed, studies / 4)
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
        "**The table of effects**, 2 × 4 treatments, 12 rounds, noise of a trial 2 %, a machine that \
         drifts by 10 % and fluctuates by 3 %. The rule allows any wrong row, at any look, in at most \
         5 % of studies.",
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
        "**Changes within a trial**, steps of 100 ms. *False alarm*: a change found where there is \
         none. *−30 %*, *−60 %*: a drop in the middle, and one after a quarter, found within a \
         twentieth of the trial of its place. Last: how often constant trials, and trials that fall \
         steadily by 30 %, are called steady.",
        &[
            "steps",
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
        "**The mean of one trial of 300 steps**: how often its 95 % interval contains the truth, \
         computed from ten batches, and from steps as if they were independent.",
        &["correlation", "batches", "plain"],
        trial::within(seed, studies).into_iter().map(row).collect(),
    );
}
