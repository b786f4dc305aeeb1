//! Real output comes back byte for byte, and damaged output does not pass.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use super::parse::parse;
use super::print::size;
use super::print::{head, intermediate, results, started};
use super::report::*;

fn golden() -> BTreeMap<String, String> {
    let folder =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/golden/sysbench");
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// Returns the outputs that hold a whole run.
fn whole() -> Vec<(String, String)> {
    let incomplete = ["prepare", "cleanup", "help", "FATAL"];
    let texts = golden().into_iter();
    texts
        .filter(|(name, _)| !incomplete.iter().any(|word| name.contains(word)))
        .collect()
}

fn printed(report: &SysbenchReport) -> String {
    let steps: String = report.intermediate.iter().map(intermediate).collect();
    head(&report.head) + started(report.head.layout) + &steps + &results(report)
}

#[test]
fn what_sysbench_printed_comes_back_byte_for_byte() {
    let mut texts = whole();
    // Layouts between ours, which are read and never printed.
    texts.retain(|(name, _)| !name.contains("-0.5_") && !name.contains("-2016_"));
    assert_eq!(texts.len(), 15);
    for (name, text) in texts {
        let reports = parse(&text).unwrap_or_else(|misread| panic!("{name}: {misread}"));
        assert_eq!(reports.len(), 1, "{name}");
        let printed = printed(&reports[0]);
        for (ours, theirs) in printed.lines().zip(text.lines()) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!(printed, text, "{name}");
    }
}

#[test]
fn the_figures_are_those_printed() {
    let texts = golden();
    let values = |name: &str| {
        let report = &parse(&texts[name]).unwrap()[0];
        let named = metrics().into_iter().map(|head| head.name);
        let values = values(report).into_iter();
        let values = values.map(|figure| figure.map(|figure| figure.value));
        named.zip(values).collect::<BTreeMap<_, _>>()
    };
    let new = values("sysbench-1.0.20_rndrw.txt");
    assert_eq!(new["reads"], Some(2263.82));
    assert_eq!(new["fsyncs"], Some(4864.98));
    assert_eq!(new["write throughput"], Some(23.58 * 1_048_576.0));
    assert_eq!(new["event latency mean"], Some(230_000.0));
    assert_eq!(new["request latency mean"], None);
    let old = values("sysbench-0.4.12_rndrw.txt");
    let rate = |count: f64| Some((count / 0.3834).round());
    assert_eq!(old["operations"], Some(5216.65));
    assert_eq!(old["fsyncs"].map(f64::round), rate(2_560.0));
    assert_eq!(old["request latency p95"], Some(10_000.0));
    assert_eq!(old["event latency p95"], None);
}

#[test]
fn a_text_without_a_run_is_refused_with_its_line() {
    let whole = whole();
    for (name, text) in golden() {
        if whole.iter().any(|(other, _)| *other == name) {
            continue;
        }
        let misread = parse(&text).unwrap_err();
        assert!(
            misread.line >= 1 && !misread.what.is_empty(),
            "{name}: {misread}"
        );
    }
    let two: String = whole.into_iter().take(2).map(|it| it.1).collect();
    assert_eq!(parse(&two).unwrap().len(), 2);
}

/// Version 0.5 says some things differently.
#[test]
fn version_0_5_is_read_too() {
    let old = &golden()["sysbench-0.4.12_rndrw.txt"];
    let seed = "Number of threads: 1\nRandom number generator seed is 0 and will be ignored\n\n";
    let text = old
        .replace("sysbench 0.4.12:", "sysbench 0.5:")
        .replace("Number of threads: 1\n", seed)
        .replace(
            "Number of random requests for random IO",
            "Number of IO requests",
        )
        .replace("1200 Read, 800 Write,", "1200 reads, 800 writes,")
        .replace("Test execution summary:", "General statistics:")
        .replace("execution: 0.0107", "execution: 0.0107s")
        .replace("per-request statistics:", "response time:");
    let (new, old) = (parse(&text).unwrap(), parse(old).unwrap());
    assert_eq!(new[0].results, old[0].results);
}

/// Rates, bytes, block size, events and time say the same thing in several ways: the line that is at odds with the
/// others is named.
#[test]
fn figures_that_contradict_each_other_are_refused_at_the_line_that_does() {
    let new = &golden()["sysbench-1.0.20_rndrw.txt"];
    let old = &golden()["sysbench-0.4.12_rndrw.txt"];
    let of_old = |label: &str| {
        let line = old.lines().find(|line| line.trim().starts_with(label));
        line.unwrap().to_owned()
    };
    let (sum, avg) = (
        of_old("total time taken by event execution:"),
        of_old("avg:"),
    );
    for (text, right, wrong, why) in [
        (new, "2263.82", "22638.20", "block size"),
        (new, "35.37", "353.70", "block size"),
        (new, "23.58\n", "235.80\n", "block size"),
        (new, "Block size 16KiB", "Block size 4KiB", "block size"),
        (new, "4.0282s", "40.282s", "over the time"),
        (new, "4.0282s", "0.4028s", "over the time"),
        (
            new,
            "              34543",
            "              94543",
            "over the time",
        ),
        (new, "17271.5000", "27271.5000", "events"),
        (new, "3.9885", "9.9885", "threads"),
        (new, "7977.06", "17977.06", "threads"),
        (new, " 0.23\n", " 2.23\n", "mean"),
        (
            new,
            "                                   23.58",
            "                                    0.18",
            "mean",
        ),
        (new, " 0.47\n", " 30.47\n", "percentile"),
        (
            old,
            sum.as_str(),
            "    total time taken by event execution: 99.5",
            "threads",
        ),
        (
            old,
            avg.as_str(),
            "         avg:                                  9.99ms",
            "mean",
        ),
    ] {
        let changed = text.replacen(right, wrong, 1);
        assert_ne!(changed, *text, "{right}");
        let refused = parse(&changed).unwrap_err();
        assert!(refused.what.contains(why), "{wrong}: {refused}");
        // A rate and its block stand in two lines, and either may be wrong.
        if why != "block size" {
            let at = changed.find(wrong).unwrap();
            let line = changed[..at].matches('\n').count() + 1;
            assert_eq!(refused.line, line, "{wrong}: {refused}");
        } else {
            let line = changed.lines().nth(refused.line - 1).unwrap();
            assert!(line.contains(", MiB/s:"), "{wrong}: {refused}");
        }
    }
}

#[test]
fn files_and_their_size_are_the_total_size() {
    for (name, each) in [
        ("sysbench-1.0.20_rndrw.txt", "4MiB"),
        ("sysbench-0.4.12_rndrw.txt", "2Mb"),
    ] {
        let text = &golden()[name];
        let changed = text.replacen(
            &format!("128 files, {each}"),
            &format!("128 files, 1{each}"),
            1,
        );
        assert_ne!(changed, *text);
        let refused = parse(&changed).unwrap_err();
        assert!(refused.what.contains("128 files"), "{refused}");
    }
}

/// The line itself is shown, and not the one behind it.
#[test]
fn a_rate_in_another_unit_is_shown() {
    let text = &golden()["sysbench-1.0.20_rndrw.txt"];
    for name in ["read", "written"] {
        let changed = text.replacen(&format!("{name}, MiB/s:"), &format!("{name}, MB/s: "), 1);
        let refused = parse(&changed).unwrap_err();
        assert!(
            refused.what.contains(&format!("\"{name}, MB/s:")),
            "{refused}"
        );
        let line = changed.lines().nth(refused.line - 1).unwrap();
        assert!(line.contains("MB/s"), "{refused}");
    }
}

#[test]
fn sizes_have_five_digits() {
    for (bytes, text) in [
        (1_500_000.0, "1.4305MiB"),
        (375_000.0, "366.21KiB"),
        (0.0, "0B"),
        (1e15, "909.49TiB"),
    ] {
        assert_eq!(size(SysbenchLayout::V1_0, bytes), text);
    }
    assert_eq!(
        size(SysbenchLayout::V0_4, 4.1565 * 1024f64.powi(3)),
        "4.1565Gb"
    );
}

proptest! {
    /// A report that has lost a line or has one twice is refused, unless the figures are untouched by
    /// that. One that was cut off says so, and has no other figure than the whole one.
    #[test]
    fn a_damaged_report_is_refused_or_says_the_same(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        what in 0..3,
    ) {
        let texts = whole();
        let text = &texts[which.index(texts.len())].1;
        let mut lines: Vec<&str> = text.lines().collect();
        let at = at.index(lines.len());
        match what {
            0 => lines.truncate(at),
            1 => { lines.remove(at); }
            _ => lines.insert(at, lines[at]),
        }
        if let Ok(reports) = parse(&lines.join("\n")) {
            let sound = &parse(text).unwrap()[0];
            if reports[0].cut_off {
                for (figure, whole) in values(&reports[0]).into_iter().zip(values(sound)) {
                    prop_assert!(figure.is_none() || figure == whole);
                }
            } else {
                prop_assert_eq!(&reports[0].results, &sound.results);
            }
        }
    }
}
