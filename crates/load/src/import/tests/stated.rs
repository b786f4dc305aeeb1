//! Figures that a text states more than once, or in few digits: the statement with most digits counts, and
//! how finely it is known goes with it.

use super::*;

/// How finely a figure is known.
#[track_caller]
fn step(result: &Imported, metric: &str) -> f64 {
    let at = result.metrics.iter().position(|head| head.name == metric);
    let at = at.unwrap_or_else(|| panic!("no {metric} in {:?}", result.metrics));
    result.resolution[at].unwrap_or_else(|| panic!("nothing is told of {metric}"))
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
    assert!(refused(&other).what.contains("contradicts"), "the count itself");
}

#[test]
fn fio_s_percentiles_are_classes_and_times_have_units() {
    let slow = &from("fio/fio-3.33_slower-than-one_normal.txt")[0];
    // 1336 usec, in whole microseconds and classes of 1/64.
    assert_eq!(step(slow, "write latency p50"), 1_336_000.0 / 64.0);
    assert!((step(slow, "write latency mean") - 10.0).abs() < 1e-9, "2485.12 usec");
    assert_eq!(step(slow, "write latency max"), 1000.0, "3487 usec");
    let json = &from("fio/fio-3.39_randrw_jsonplus.json")[0];
    assert!(step(json, "read latency p50") < 242_688.0 / 63.0);
    assert!(step(json, "operations") < 36_792.0 / 1000.0);
}
