//! The tables of `bench/results/rules.md` in short, held to what they promise.
//!
//! The same code as `examples/validate` with fewer studies. What is promised may be exceeded by
//! three standard errors of the simulation; what is known not to hold is named with its limit.

use crate::{coarse, factorial, pair, trial};

const STUDIES: u32 = 1_000;

/// A rate promised to be at most this, with three standard errors.
fn limit(promised: f64) -> f64 {
    promised + 3.0 * (promised * (1.0 - promised) / f64::from(STUDIES)).sqrt()
}

#[test]
fn the_promises_hold_on_every_machine() {
    for row in pair::promises(501, STUDIES) {
        // Noise that is lopsided in one treatment alone is the known weak side of Student's t with
        // few rounds: a symmetric difference is what protects it, and only equals give that.
        let promised = match row.machine {
            "B three times as noisy, and skewed" => 0.13,
            alone if alone.ends_with("B alone") => 0.07,
            _ => pair::ALPHA,
        };
        let machine = row.machine;
        let rates = [
            row.false_claims,
            row.missed_ten,
            row.missed_at_stop,
            row.false_none,
        ];
        for rate in rates {
            assert!(rate <= limit(promised), "{machine}: {rate}");
        }
        assert!(
            row.missed_ten > 0.005,
            "{machine}: the intervals are far too wide"
        );
    }
}

/// What is said to be enough is enough in 80 % of cases, over differences as they usually are.
#[test]
fn projections_come_true() {
    let (mut told, mut came_true) = (0, 0);
    for row in pair::projections(506, STUDIES / 4) {
        let made = row.undecided - row.not_told;
        told += made;
        came_true += row.came_true;
        let what = format!("{} rounds, {}, {}", row.after, row.deviation, row.ratio);
        // A promise lies ahead, and no further than is told.
        assert!(
            made == 0 || (1..20 * row.after).contains(&row.median),
            "{what}"
        );
        if row.deviation <= 0.03 && made >= 50 {
            let rate = f64::from(row.came_true) / f64::from(made);
            assert!(rate >= 0.8, "{what}: {rate}");
        }
    }
    let rate = f64::from(came_true) / f64::from(told);
    assert!(rate >= 0.8 - 0.02, "{rate}");
}

/// The rule decides no later than five looks at one interval did, and far sooner where coming first matters.
#[test]
fn a_look_at_every_round_decides_sooner() {
    for row in pair::decisions(507, STUDIES / 2) {
        let what = format!(
            "noise {}, order {}, ratio {}",
            row.deviation, row.carried, row.ratio
        );
        if row.carried > 0.1 {
            assert!(row.by_20 >= 0.95, "{what}");
            assert!(row.rounds < row.five_looks.0 - 5.0, "{what}");
        }
        assert!(
            row.rounds <= row.five_looks.0 + 0.2,
            "{what}: {}",
            row.rounds
        );
        assert!(row.by_12 <= row.by_20);
    }
}

#[test]
fn stopping_early_costs_little_power_and_saves_rounds() {
    for row in pair::powers(502, STUDIES, 0.01) {
        let what = format!("noise {}, difference {}", row.deviation, row.difference);
        assert!(row.called_none <= limit(0.05), "{what}: called none");
        // It can find less than all thirty rounds do, by what its looks cost.
        assert!(
            row.found <= row.fixed_found + 0.05,
            "{what}: found {}",
            row.found
        );
        assert!(
            row.found >= row.fixed_found - 0.30,
            "{what}: found {}",
            row.found
        );
        if row.fixed_rounds.is_some_and(|n| n <= 10) {
            assert!(row.found >= 0.99, "{what}: found {}", row.found);
            assert!(row.rounds <= 10.0, "{what}: {} rounds", row.rounds);
        }
    }
}

#[test]
fn the_table_of_effects_holds_at_once() {
    let tables = factorial::tables(503, STUDIES);
    for table in &tables {
        let (name, rate) = (table.name, table.missed_any);
        assert!(rate <= limit(0.05), "{name}: {rate}");
        assert!(table.missed_row <= table.missed_any, "{name}");
        assert_eq!(table.rows, 17);
    }
    let found: Vec<f64> = tables.iter().map(|table| table.interaction_found).collect();
    assert!(
        found[0] <= 0.01 && found[1] <= 0.01 && found[2] >= 0.7,
        "{found:?}"
    );
}

#[test]
fn changes_are_found_where_they_are_and_rarely_elsewhere() {
    for row in trial::findings(504, STUDIES / 5) {
        let what = format!("{}, {} s", row.kind, row.seconds);
        // What wanders for half of a trial is no level: a short trial cannot tell it from one.
        let wanders = row.seconds == 10 && (row.kind.contains("0.9") || row.kind.contains("0.8"));
        let alarms = if wanders { 0.15 } else { 0.03 };
        assert!(
            row.false_alarms <= alarms,
            "{what}: {} false",
            row.false_alarms
        );
        assert!(row.drop_60 >= 0.80, "{what}: {} of −60 %", row.drop_60);
        if row.seconds == 300 {
            assert!(row.drop_30 >= 0.80, "{what}: {} of −30 %", row.drop_30);
            assert!(row.steady >= 0.90 && row.slide <= 0.30, "{what}");
        }
    }
}

/// The design's figures for steps taken for independent: 0.740, 0.485, 0.330, 0.240.
#[test]
fn steps_are_no_replicates() {
    let design = [0.95, 0.740, 0.485, 0.330, 0.240];
    for (row, plain) in trial::within(505, 2 * STUDIES).into_iter().zip(design) {
        assert!(
            (row.plain - plain).abs() < 0.035,
            "{}: {}",
            row.rho,
            row.plain
        );
        assert!(
            row.batches >= if row.rho > 0.9 { 0.75 } else { 0.87 },
            "{}",
            row.batches
        );
    }
}

/// Figures of one, two and three digits: no more false claims than of exact ones, and no interval that knows
/// more than the digits do. Taken as exact, nearly all studies of the coarsest would claim something.
#[test]
fn coarse_figures_are_never_known_better_than_their_digits() {
    const STUDIES: u32 = 200;
    let limit = 0.05 + 3.0 * (0.05 * 0.95 / f64::from(STUDIES)).sqrt();
    let rows = coarse::rows(508, STUDIES);
    assert_eq!(rows.len(), 18);
    for row in &rows {
        let what = format!("{row:?}");
        assert!(row.false_claims <= limit, "{what}");
        assert!(row.missed <= limit, "{what}");
        assert!(row.false_none <= limit, "{what}");
        assert!(row.narrowest >= 1.0 - 1e-9, "{what}");
        // A step of one digit is above any such margin; one of three digits is below it.
        match row.digits {
            1 => assert!(row.too_coarse > 0.99, "{what}"),
            3 => assert!(row.too_coarse < 0.01, "{what}"),
            _ => {}
        }
    }
    let cut_off = |row: &&coarse::CoarseRow| row.shortened == coarse::Shortened::CutOff;
    let least = rows.iter().filter(cut_off).map(|row| row.noise);
    assert!(
        least.fold(1.0, f64::min) < 0.01,
        "noise below every step is among them"
    );
    let wrong = rows.iter().map(|row| row.taken_as_exact);
    assert!(wrong.fold(0.0, f64::max) > 0.9);
}
