//! elbencho: its CSV and its JSON.

use super::*;

/// The CSV was shown without its last columns, among them the version.
fn without_version(mut results: Vec<Imported>) -> Vec<Imported> {
    for phase in &mut results {
        assert_eq!(phase.version.take().as_deref(), Some("3.1-1"));
    }
    results
}

/// The CSV has whole MiB, and the JSON bytes.
fn without_steps(mut results: Vec<Imported>) -> Vec<Imported> {
    let figures = results.iter_mut().flat_map(|it| &mut it.values);
    figures.flatten().for_each(|figure| figure.step = 0.0);
    results
}

#[test]
fn elbencho_json_is_the_same_run_as_its_csv() {
    let json = from("elbencho/elbencho-3.1-1_from-csv.json");
    let csv = from("elbencho/elbencho-3.1-1.csv");
    let throughput = |of: &[Imported]| of[1].values[0].map(|figure| figure.step);
    assert_eq!(throughput(&json), Some(1.0));
    assert_eq!(throughput(&csv), Some(MIB));
    assert_eq!(without_steps(without_version(json)), without_steps(csv));
}

#[test]
fn elbencho_tells_the_reads_of_a_mixed_phase_apart() {
    let csv: Vec<String> = golden("elbencho/elbencho-3.1-1.csv")
        .lines()
        .zip([
            "IOPS [last],MiB/s [last],MiB [last],IO lat us [min],IO lat us [avg],IO lat us [max]"
                .split(',')
                .map(|name| format!(",rwmix read {name}"))
                .collect(),
            ",,,,,,".to_owned(),
            ",1260,1260,3509,900,5000,70000".to_owned(),
        ])
        .map(|(line, more)| format!("{line}{more}\n"))
        .collect();
    let json = golden("elbencho/elbencho-3.1-1_from-csv.json")
        .replace(
            "\"cpu%\":\"9\"",
            "\"rwmix_read\":{\"iops\":\"1260\",\"bytes\\/s\":\"1321205760\",\
             \"bytes\":\"3679453184\"},\"cpu%\":\"9\"",
        )
        .replace(
            "\"max_us\":\"120903\"",
            "\"max_us\":\"120903\",\"rwmix_read\":{\"min_us\":\"900\",\"avg_us\":\"5000\",\
             \"max_us\":\"70000\"},\"histogram\":{\"buckets\":[{\"range\":\"1024-2048us\",\
             \"count\":\"3\"}],\"rwmix_read\":{\"buckets\":\"\"}}",
        );
    let from_json = without_version(read(&json, None).unwrap());
    let from_csv = read(&csv.concat(), None).unwrap();
    assert_eq!(without_steps(from_json.clone()), without_steps(from_csv));
    let mixed = &from_json[1];
    has(mixed, "throughput", "B/s", 2941.0 * MIB);
    has(mixed, "read throughput", "B/s", 1260.0 * MIB);
    has(mixed, "read latency mean", "ns", 5_000_000.0);
    assert!(mixed.notes[0].contains("of the writes alone"), "{mixed:?}");
}

/// One phase of a real run, of a variant that counts errors: refused for the keys the original does
/// not write, and without them read as it stands.
#[test]
fn elbencho_json_of_a_real_run_has_the_keys_of_the_source() {
    let text = golden("elbencho/elbencho-3.1-12_variant.json");
    let what = refused(&text).what;
    assert!(what.contains("first_done.ios is not known"), "{what}");
    let of_the_original = text
        .replace(",\"ios\":\"8\"", "")
        .replace(",\"errors\":{\"total\":\"8\"}", "")
        .replace(
            ",\"errors\":{\"total\":\"8\",\"by_kind\":{\"http_404\":\"8\"}}",
            "",
        );
    let phase = &read(&of_the_original, None).unwrap()[0];
    assert_eq!(
        phase.workload,
        "elbencho read, files of 4k in blocks of 4k, 2 thread(s)"
    );
    assert_eq!(phase.version.as_deref(), Some("3.1-12"));
    has(phase, "throughput", "B/s", 749_288.0);
    has(phase, "operations", "op/s", 2069.0);
    lacks(phase, "latency mean");
}

#[test]
fn elbencho_json_that_is_not_known_is_refused() {
    let text = golden("elbencho/elbencho-3.1-1_from-csv.json");
    let (first, second) = text.split_once('\n').unwrap();
    let settings = second.find(",\"config\"").unwrap()..second.find(",\"first_done\"").unwrap();
    let mut bare = second.to_owned();
    bare.replace_range(settings, "");
    let changed = |from: &str, to: &str| {
        assert_eq!(second.matches(from).count(), 1, "{from}");
        second.replacen(from, to, 1)
    };
    let iops = "\"iops\":\"2941\"";
    for (wrong, what) in [
        (bare, "it has no threads"),
        (changed("\"3.1-1\"", "\"4.0-1\""), "it is of version 4.0-1"),
        (
            changed(iops, "\"IOPS\":\"2941\""),
            "the key last_done.IOPS is not known",
        ),
        (
            changed(iops, "\"iops\":\"2941\",\"iops\":\"1\""),
            "last_done.iops is there twice",
        ),
        (
            changed(iops, "\"iops\":2941"),
            "expected a text or an object",
        ),
        (changed(iops, "\"iops\":\"2.9e3\""), "is not understood"),
        (
            changed(
                "\"first_done\":{",
                "\"last_done.iops\":\"1\",\"first_done\":{",
            ),
            "a key with a dot",
        ),
        (
            changed("\"direct_io\":\"true\"", "\"direct_io\":\"yes\""),
            "config.direct_io is neither true nor false",
        ),
        (
            format!("{} {{}}\n", second.trim_end()),
            "trailing characters",
        ),
        (golden("elbencho/elbencho-3.1-1.csv"), "expected value"),
    ] {
        let misread = refused(&format!("{first}\n{wrong}"));
        assert!(misread.what.contains(what), "{what}: {misread:?}");
        assert_eq!(misread.line, 2, "{what}");
    }
}

#[test]
fn elbencho_csv_is_read_by_names() {
    let results = from("elbencho/elbencho-3.1-1.csv");
    let [made, written] = results.as_slice() else {
        panic!("{results:?}");
    };
    has(made, "entries", "op/s", 1466.0);
    lacks(made, "throughput");
    assert_eq!(
        written.workload,
        "elbencho write, files of 256M in blocks of 1M, 8 thread(s), depth 4"
    );
    has(written, "throughput", "B/s", 2941.0 * MIB);
    has(written, "operations", "op/s", 2941.0);
    has(written, "elapsed", "s", 2.784);
    has(written, "latency mean", "ns", 9_383_000.0);
}
