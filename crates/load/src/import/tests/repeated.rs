//! Results that are there twice count once.

use super::*;
use stackrace_base::printed::{Design, ImportSource, find};

fn dd(name: &str, file: &str, seconds: &str) -> ImportSource {
    let text = format!(
        "1000+0 records in\n1000+0 records out\n1000000000 bytes (1.0 GB, 954 MiB) copied, {seconds} s, 100 MB/s\n"
    );
    source(Some(name.to_owned()), file, text, None).unwrap()
}

#[test]
fn a_text_counts_once_whatever_it_is_called() {
    let mut copy = dd("old", "copy.txt", "10.1");
    copy.text = copy.text.replace('\n', "\r\n");
    let sources = [
        dd("old", "a.txt", "10.1"),
        dd("old", "b.txt", "10.2"),
        copy,
        dd("new", "c.txt", "10.2"),
    ];
    let design = Design::of(&sources, "2026-11-22T00:00:00Z");
    assert_eq!(design.trials.len(), 2);
    assert_eq!(design.configurations.len(), 1, "c.txt is b.txt");
    assert_eq!(design.warnings.len(), 2, "{:?}", design.warnings);
    assert!(design.warnings[0].starts_with("old (copy.txt) repeats a.txt"));
    assert!(design.warnings[1].starts_with("new (c.txt) repeats b.txt"));
}

/// Two figures may agree by chance; all of three do not.
#[test]
fn one_run_in_two_texts_counts_once() {
    let mut a = dd("old", "a.txt", "10.1");
    let mut b = dd("old", "b.txt", "10.1");
    b.text.push_str("saved later\n");
    let count = |a: &ImportSource, b: &ImportSource| {
        let found = find(&[a.clone(), b.clone()]);
        found.counts[1][0]
    };
    assert!(count(&a, &b), "too few figures");
    for source in [&mut a, &mut b] {
        let result = &mut source.results[0];
        let metric = result.metrics[0].clone();
        for value in [1.25, 1.5, 1.75] {
            result.metrics.push(metric.clone());
            result.values.push(Some(value));
        }
    }
    assert!(!count(&a, &b));
    b.results[0].values[0] = Some(10.100_000_1);
    assert!(count(&a, &b), "one digit differs");
}
