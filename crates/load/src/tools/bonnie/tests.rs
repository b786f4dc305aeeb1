//! Real reports: read, and printed again the same.

use proptest::prelude::*;
use stackrace_base::printed::PrintedFigure;

use super::parse::parse;
use super::print::{self, csv, csv_header, text};
use super::report::*;

/// A real text in tests/golden/bonnie.
fn golden(name: &str) -> String {
    let path = format!(
        "{}/tests/golden/bonnie/{name}.txt",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
    );
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn names() -> Vec<String> {
    let folder = format!(
        "{}/tests/golden/bonnie",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
    );
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .into_string()
                .ok()?
                .strip_suffix(".txt")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// Progress alone, no report.
fn is_progress(text: &str) -> bool {
    text.starts_with("Using uid") && !text.contains("Version")
}

#[test]
fn every_real_text_is_read_and_printed_again() {
    let mut read = 0;
    for name in names() {
        let text = golden(&name);
        if is_progress(&text) {
            assert!(parse(&text).is_err(), "{name}");
            continue;
        }
        let reports = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        read += reports.len();
        if name.starts_with("1.97") {
            // Nothing prints 1.97 here.
            continue;
        }
        let mut again = String::new();
        if reports.len() > 1 {
            again.push_str(&csv_header(reports[0].layout));
        }
        for report in &reports {
            if text.contains("Version") {
                again.push_str(&print::text(report, TOO_FAST_NS));
            }
            if !name.ends_with("stderr") {
                again.push_str(&csv(report, TOO_FAST_NS));
            }
        }
        assert_eq!(again, text, "{name}");
    }
    assert_eq!(read, 21);
}

/// The expected figures were read by hand from one real text of each version.
#[test]
fn figures_are_those_that_stand_there() {
    let one = |name: &str| parse(&golden(name)).unwrap().remove(0);
    let of = |report: &BonnieReport, name: &str| {
        let at = metrics().iter().position(|head| head.name == name).unwrap();
        values(report)[at].map(|figure| figure.value)
    };
    let old = one("1.03e_full_s1100M_n16.stdout");
    assert_eq!(
        (old.layout, old.program.as_str(), old.name.as_str()),
        (BonnieLayout::V1_03, "1.03e", "testhost")
    );
    assert_eq!(of(&old, "block output"), Some(352_836.0 * 1024.0));
    assert_eq!(of(&old, "rewrite CPU"), Some(50.0));
    assert_eq!(of(&old, "seeks"), None);
    assert_eq!(of(&old, "random create"), Some(28_876.0));
    assert_eq!(of(&old, "block output latency max"), None);
    assert_eq!(
        notes(&old),
        [
            "+++++: under 0.5 s, too short for bonnie++ to tell: block input, seeks, sequential stat, sequential delete, random stat, random delete"
        ]
    );
    let files = one("1.97_s512M_64k_n32.stdout").files.unwrap();
    assert_eq!(
        files,
        BonnieFiles {
            number: 32,
            made: Made::Sizes {
                max: 4096,
                min: 512
            },
            directories: 3
        }
    );
    let new = one("2.00a_chunk64k_seeks.stdout");
    assert_eq!(
        new.data,
        Some(Data {
            size_mib: 1024,
            chunk: None,
            seeks: Some(20_000),
            seekers: Some(8)
        })
    );
    assert_eq!((new.concurrency, new.seed.as_deref()), (2, Some("1")));
    assert_eq!(of(&new, "seeks"), Some(29_658.0));
    assert_eq!(of(&new, "seeks CPU"), Some(207.0));
    assert_eq!(of(&new, "seeks latency max"), Some(89_087_000.0));
    assert_eq!(of(&new, "character output"), None);
    assert_eq!(
        one("2.00a_links.stdout").files.unwrap().made,
        Made::HardLinks
    );
}

/// The text of 2.00 shows anything in the place of file rates; it is no figure.
#[test]
fn rates_of_files_in_a_table_of_2_00_are_not_read() {
    let report = &parse(&golden("2.00a_n64_textUB.stderr")).unwrap()[0];
    let at = |report: &BonnieReport, column| {
        of_column(report, column).map(|figure| figure.map(|figure| figure.value))
    };
    assert_eq!(
        at(report, BonnieColumn::SequentialCreate),
        [None, Some(65.0), Some(28_679_000.0)]
    );
    assert_eq!(notes(report).len(), 2);
    let line = &parse(&golden("2.00a_n64_textUB.stdout")).unwrap()[0];
    assert_eq!(at(line, BonnieColumn::SequentialCreate)[0], Some(9686.0));
}

/// A table and its line are one report; when one of them was changed, it is noticed.
#[test]
fn a_table_and_its_line_must_agree() {
    let text = golden("2.00a_full_s1G_n4.stdout");
    assert_eq!(parse(&text).unwrap().len(), 1);
    for (from, to) in [
        (" 742k", " 743k"),
        ("1G  742", "2G  742"),
        ("40102us ", "40103us "),
        (",742,", ",842,"),
        ("  57 ", "  58 "),
    ] {
        assert!(text.contains(from), "{from}");
        let damaged = text.replacen(from, to, 1);
        let error = parse(&damaged).unwrap_err();
        assert!(error.what.contains("disagree"), "{from} to {to}: {error}");
    }
    // Tables and lines of different runs stay apart.
    let both = golden("2.00a_links.stderr") + &golden("2.00a_full_s1G_n4.stdout");
    assert_eq!(parse(&both).unwrap().len(), 2);
}

#[test]
fn what_cannot_be_understood_has_a_place() {
    let cases = [
        (
            "1.98,2.00a,a,b,1,1,1G,,8192,5,,,+++++,+++,+++++,+++,,,+++++,+++,+++++,+++,,,,,,,,,,,,,,,,,,,,,,,,,,,,,",
            1,
            "51 fields",
        ),
        (
            "\nhost,1G,1,2,3,4,5,6,7,8,9,10,11,x,,,,,,,,,,,,,",
            2,
            "field 14 is \"x\"",
        ),
        (
            "host,1G,+++++,3,3,4,5,6,7,8,9,10,11,12,,,,,,,,,,,,,",
            1,
            "field 4",
        ),
        (
            "host,1G,inf,3,3,4,5,6,7,8,9,10,11,12,,,,,,,,,,,,,",
            1,
            "field 3",
        ),
        (
            "Version 3.00        ------Sequential Output------",
            1,
            "is not known",
        ),
        (
            "Version 2.00a       ------Sequential Output------\n",
            1,
            "is missing from this line",
        ),
        ("nothing at all", 1, "no table"),
        ("", 1, "no table"),
    ];
    for (text, line, what) in cases {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.what.contains(what), "{text}: {error}");
        assert!(!error.next.is_empty());
    }
}

/// A report of our own, of either version.
fn measured(layout: BonnieLayout) -> BonnieReport {
    let figure = |amount, elapsed_ns| {
        Some(BonnieFigure::Measured {
            amount,
            elapsed_ns,
            cpu_ns: elapsed_ns / 4,
        })
    };
    let mut cells = [Cell {
        figure: figure(1_048_576.0, 3_000_000_000),
        latency_ns: Some(PrintedFigure::exact(1_234_567.0)),
    }; 12];
    cells[3] = Cell {
        figure: figure(500.0, 499_999_999),
        latency_ns: Some(PrintedFigure::exact(999.0)),
    };
    cells[5] = Cell {
        figure: figure(8192.0, 10_000_000_000),
        latency_ns: Some(PrintedFigure::exact(250e6)),
    };
    cells[11] = Cell::default();
    BonnieReport {
        layout,
        program: if layout == BonnieLayout::V1_03 {
            "1.03e"
        } else {
            "2.00a"
        }
        .to_owned(),
        name: "a machine with a long name".to_owned(),
        concurrency: 1,
        seed: Some("7".to_owned()),
        data: Some(Data {
            size_mib: 1024,
            chunk: Some(65_536),
            seeks: Some(8192),
            seekers: Some(5),
        }),
        files: Some(BonnieFiles {
            number: 16,
            made: Made::Sizes { max: 100, min: 0 },
            directories: 2,
        }),
        cells,
        left_out: None,
    }
}

#[test]
fn our_reports_look_like_theirs() {
    insta::assert_snapshot!(
        "old",
        text(&measured(BonnieLayout::V1_03), TOO_FAST_NS)
            + &csv(&measured(BonnieLayout::V1_03), TOO_FAST_NS)
    );
    insta::assert_snapshot!(
        "new",
        text(&measured(BonnieLayout::V2_00), TOO_FAST_NS)
            + &csv(&measured(BonnieLayout::V2_00), TOO_FAST_NS)
    );
    let all = csv(&measured(BonnieLayout::V2_00), 0);
    assert!(!all.contains("+++"), "{all}");
    for layout in [BonnieLayout::V1_03, BonnieLayout::V2_00] {
        let report = measured(layout);
        let read = parse(&(text(&report, TOO_FAST_NS) + &csv(&report, TOO_FAST_NS))).unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!(
            (&read[0].data.as_ref().unwrap().size_mib, &read[0].files),
            (&1024, &report.files)
        );
        let rate = |report| {
            of_column(report, BonnieColumn::BlockOutput)[0]
                .unwrap()
                .value
        };
        assert!((rate(&read[0]) - rate(&report)).abs() < 1024.0);
    }
}

#[test]
fn rates_are_in_the_units_of_the_originals() {
    let rate = |per_s| print::text_rate(BonnieLayout::V2_00, BonnieColumn::BlockOutput, per_s);
    let shown = [
        742.0,
        9_999.9,
        10_000.0,
        75_538.0,
        174_914.0,
        591_796.0,
        1_101_525.0,
        1_747_670.0,
    ];
    assert_eq!(
        shown.map(rate),
        [
            " 742k", "9999k", " 9.8m", "73.8m", " 171m", " 578m", " 1.1g", " 1.7g"
        ]
    );
    let seeks = |per_s| print::text_rate(BonnieLayout::V1_03, BonnieColumn::Seeks, per_s);
    assert_eq!(
        [123.44, 999.94, 29_658.2].map(seeks),
        ["123.4", "999.9", "29658"]
    );
}

proptest! {
    /// Damage is refused, or what is read is what stands in the damaged text; nothing panics.
    #[test]
    fn damaged_texts_are_refused_or_read_as_they_stand(
        which in 0usize..21,
        cut in 0usize..4000,
        flips in proptest::collection::vec((0usize..4000, 0u8..=255), 0..4),
        doubled in proptest::option::of(0usize..30),
    ) {
        let names = names();
        let mut bytes = golden(&names[which % names.len()]).into_bytes();
        for (at, byte) in flips {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        bytes.truncate(cut.max(1));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut lines: Vec<&str> = text.lines().collect();
        if let Some(at) = doubled.filter(|at| *at < lines.len()) {
            lines.insert(at, lines[at]);
        }
        let text = lines.join("\n");
        match parse(&text) {
            Ok(reports) => for report in reports {
                let line = csv(&report, 0);
                // Whatever was read prints, and reads the same again.
                if !report.name.contains(',') && report.layout != BonnieLayout::V1_03 {
                    let again = parse(&line).unwrap().remove(0);
                    prop_assert_eq!(csv(&again, 0), line);
                }
                prop_assert_eq!(values(&report).len(), metrics().len());
            },
            Err(error) => {
                prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1) + 1);
                prop_assert!(!error.what.is_empty() && !error.next.is_empty());
            }
        }
    }
}
