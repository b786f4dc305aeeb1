//! What a run prints is a report, with the counts that must be.

use std::path::Path;

use stackrace_engine::Control;

use super::options::SysbenchOptions;
use super::parse::parse;
use super::{measured, print};

/// The options of a command line; its files are made in a directory.
fn prepared(line: &str, directory: &Path) -> SysbenchOptions {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let mut options = SysbenchOptions::read(&words).unwrap();
    options.plan.directory = directory.to_owned();
    let plan = &options.plan;
    plan.prepare(&Control::default(), &mut |_, _| ()).unwrap();
    options
}

/// Output of a run can be read, and says the counts that must be.
#[test]
fn what_is_printed_is_a_report_in_the_layout_asked_for() {
    let base = tempfile::tempdir().unwrap();
    let ours = |line: &str| {
        let options = prepared(line, base.path());
        let run = options.plan.run(&Control::default(), None).unwrap();
        let report = measured::report(&options, &run);
        let text = print::head(&report.head)
            + print::started(report.head.layout)
            + &print::results(&report);
        let mut read = parse(&text).unwrap_or_else(|misread| panic!("{misread}\n{text}"));
        (read.remove(0), text)
    };
    let size = "--file-total-size=32M --file-test-mode=rndrw";
    let (old, text) = ours(&format!("--test=fileio {size} --max-requests=2000 run"));
    assert!(
        text.contains("1200 Read, 800 Write, 2560 Other = 4560 Total"),
        "{text}"
    );
    assert_eq!(old.results.events, 2_000);
    let words = "--events=320 --time=0 --histogram --threads=2 --file-extra-flags=dsync run";
    let (new, text) = ours(&format!("fileio {size} {words}"));
    assert_eq!((new.results.events, new.head.threads), (320, 2));
    assert_eq!(new.histogram.iter().map(|row| row.1).sum::<u64>(), 320);
    assert!(text.contains("Extra file open flags: dsync \n"), "{text}");
}

/// Two kinds of event in one histogram: the rank is that of all of them.
#[test]
fn the_percentile_is_that_of_all_events() {
    let words = "fileio --file-num=2 --file-total-size=1M --file-test-mode=rndwr --time=0 --events=300 --percentile=100 run";
    let base = tempfile::tempdir().unwrap();
    let options = prepared(words, base.path());
    let run = options.plan.run(&Control::default(), None).unwrap();
    let latency = measured::report(&options, &run).results.latency;
    let (rank, value) = latency.percentile.unwrap();
    assert_eq!(rank, 100);
    // A bucket is 1.8 % wide.
    assert!(
        (value.value / latency.max - 1.0).abs() < 0.02,
        "{value:?} {}",
        latency.max
    );
}
