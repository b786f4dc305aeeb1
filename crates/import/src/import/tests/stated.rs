//! Figures that a text states more than once, or in few digits: the statement with most digits counts, and
//! how finely it is known goes with it.

use super::*;

/// Returns how finely a figure is known.
#[track_caller]
fn step(result: &Imported, metric: &str) -> f64 {
    let at = result.metrics.iter().position(|head| head.name == metric);
    let at = at.unwrap_or_else(|| panic!("no {metric} in {:?}", result.metrics));
    result.values[at]
        .unwrap_or_else(|| panic!("{metric} is missing"))
        .step
}

#[test]
fn fio_s_count_and_time_count_where_it_prints_whole_operations() {
    // IOPS=0: two writes in 2052 ms.
    let slow = &from("fio/fio-3.33_slower-than-one_normal.txt")[0];
    has(slow, "operations", "op/s", 2.0 / 2.052);
    has(slow, "throughput", "B/s", 8.0 * MIB / 2.052);
    // What is not known is the last millisecond.
    let tick = 2.0 / 2.052 / 2052.0;
    assert!((step(slow, "operations") / tick - 1.0).abs() < 1e-9);
    assert_eq!(slow.notes.len(), 1, "{:?}", slow.notes);
}

#[test]
fn fio_before_3_26_drops_digits_and_a_note_names_both() {
    let text = golden("fio/fio-3.25_10.98k_normal.txt");
    let cut = &read(&text, None).unwrap()[0];
    has(cut, "operations", "op/s", 10_240.0 / 0.934);
    let named = |note: &&String| note.contains("IOPS=10.0k") && note.contains("10963.6");
    assert_eq!(cut.notes.iter().filter(named).count(), 1, "{:?}", cut.notes);
    // Where nothing confirms the count, there is no telling which of the two is wrong.
    let mixed = text.replace("(R) 4096B-4096B", "(R) 4096B-8192B");
    let wrong = mixed.replace("IOPS=10.0k", "IOPS=8.0k");
    assert!(refused(&wrong).what.contains("contradicts IOPS=8.0k"));
    let other = text.replace("total=10240,", "total=30240,");
    assert!(
        refused(&other).what.contains("contradicts"),
        "the count itself"
    );
}

#[test]
fn fio_s_percentiles_are_classes_and_times_have_units() {
    let slow = &from("fio/fio-3.33_slower-than-one_normal.txt")[0];
    // 1336 usec, in whole microseconds and classes of 1/64.
    assert_eq!(step(slow, "write latency p50"), 1_336_000.0 / 64.0);
    assert!(
        (step(slow, "write latency mean") - 10.0).abs() < 1e-9,
        "2485.12 usec"
    );
    assert_eq!(step(slow, "write latency max"), 1000.0, "3487 usec");
    let json = &from("fio/fio-3.39_randrw_jsonplus.json")[0];
    assert!(step(json, "read latency p50") < 242_688.0 / 63.0);
    assert!(step(json, "operations") < 36_792.0 / 1000.0);
}

/// mdtest 3.2 says 126072 file stats a second in its summary; 320000 in 7.251 s are 44129, as its own line
/// says.
#[test]
fn mdtest_s_summary_gives_way_to_lines_that_their_times_confirm() {
    let result = &from("mdtest/mdtest-3.2.0_verbose.txt")[0];
    has(result, "file stat", "op/s", 44_129.214);
    has(result, "file removal", "op/s", 74_178.656);
    // Those that agree keep the summary's.
    has(result, "file creation", "op/s", 66_972.954);
    let both = |note: &&String| note.contains("126072.839") && note.contains("44129.214");
    assert_eq!(
        result.notes.iter().filter(both).count(),
        1,
        "{:?}",
        result.notes
    );
    // Without a count, nothing says which is right.
    let text = golden("mdtest/mdtest-3.2.0_verbose.txt");
    let misread = refused(&text.replace("32 tasks, 320000 files", "32 tasks, files"));
    assert!(misread.what.contains("44129.214"), "{misread:?}");
}

#[test]
fn figures_of_other_tools_are_known_to_the_digits_they_print() {
    let dd = &from("dd/coreutils-two.txt")[0];
    // 0.097739 s: GNU's dd has six digits, and does not print a zero at their end.
    assert!((step(dd, "elapsed") - 1e-7).abs() < 1e-12);
    assert!((step(dd, "throughput") - 67_108_864.0 / 0.097_739 * 1e-7 / 0.097_739).abs() < 1.0);
    let ior = &from("ior/ior-3.3.0.txt")[0];
    assert!(
        (step(ior, "throughput") / MIB - 0.01).abs() < 1e-9,
        "1842.29 MiB/s"
    );
}

/// Every plain number of a text, with the step of its last digit; a comma may be a decimal one.
fn printed(text: &str) -> Vec<(f64, f64)> {
    let digit = |c: char| c.is_ascii_digit() || c == '.';
    let pointed = text.replace(',', ".");
    let words = text
        .split(|c| !digit(c))
        .chain(pointed.split(|c| !digit(c)));
    let words = words.map(|word| word.trim_matches('.'));
    let figures = words.filter_map(stackrace_base::printed::PrintedFigure::read);
    figures.map(|figure| (figure.value, figure.step)).collect()
}

/// Factors with which a printed number is multiplied to be one of ours.
const UNITS: [f64; 16] = [
    1.0,
    1e-9,
    1e-6,
    1e-3,
    1e3,
    1e6,
    1e9,
    60e9,
    1e12,
    1024.0,
    MIB,
    1024.0 * MIB,
    MIB * MIB,
    512.0,
    60.0,
    3600.0,
];

/// Of every importer: no figure is finer than the last digit that it was printed with, times its unit; and one
/// that stands nowhere was computed, and is known no better than what it was computed from.
#[test]
fn no_figure_of_any_tool_is_known_better_than_it_was_printed() {
    for (folder, files) in goldens() {
        let mut some = false;
        for (name, text) in files {
            let Ok(results) = read(&text, None) else {
                continue;
            };
            // dd and sysbench leave out zeros at the end of so many digits.
            let spare = match folder.as_str() {
                "dd" => Some(6),
                "sysbench" => Some(5),
                _ => None,
            };
            let numbers = printed(&text);
            for result in &results {
                for (head, figure) in result.metrics.iter().zip(&result.values) {
                    let Some(figure) = figure.filter(|figure| figure.value > 0.0) else {
                        continue;
                    };
                    some = true;
                    let near =
                        move |found: f64| (found - figure.value).abs() <= 1e-12 * figure.value;
                    let steps = numbers.iter().flat_map(|(value, step)| {
                        let units = UNITS.iter().filter(move |unit| near(value * **unit));
                        units.map(move |unit| step * unit)
                    });
                    // Of several numbers that it may be the one with most digits.
                    let finest = steps.reduce(f64::min);
                    let finest = match (finest, spare) {
                        (Some(step), Some(digits)) => {
                            let last = figure.value / 10f64.powi(digits);
                            Some(step.min(last))
                        }
                        (finest, _) => finest,
                    };
                    // Fifteen digits are those of the quotient, and not of what it was made from.
                    let least = finest.unwrap_or(figure.value * 1e-12);
                    // A quotient may by chance be another number of the text.
                    let quotient = || {
                        let pairs = numbers
                            .iter()
                            .flat_map(|over| numbers.iter().map(move |under| (over, under)));
                        let of = pairs.filter(|(over, under)| {
                            under.0 > 0.0 && UNITS.iter().any(|unit| near(over.0 / under.0 * unit))
                        });
                        let steps = of.map(|(_, under)| figure.value * under.1 / under.0);
                        steps
                            .reduce(f64::min)
                            .is_some_and(|least| figure.step >= least * (1.0 - 1e-9))
                    };
                    assert!(
                        figure.step >= least * (1.0 - 1e-9) || quotient(),
                        "{name}: {} of {} is {figure:?}, printed to {least}",
                        head.name,
                        result.workload
                    );
                }
            }
        }
        assert!(some, "{folder} has no figure");
    }
}
