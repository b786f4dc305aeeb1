//! Printed as PostMark prints, read back, and refused where it was damaged.

use proptest::prelude::*;
use stackrace_base::printed::PrintedFigure;

use super::language::{self, Answer, From, PostmarkSettings};
use super::parse::parse;
use super::report::*;

/// Outputs of PostMark: version and case.
const PRINTED: [(&str, &str); 6] = [
    (
        "151_default",
        include_str!("../../../../../tests/golden/postmark/151_default.txt"),
    ),
    (
        "deb153_default",
        include_str!("../../../../../tests/golden/postmark/deb153_default.txt"),
    ),
    (
        "151_phoronix",
        include_str!("../../../../../tests/golden/postmark/151_phoronix.txt"),
    ),
    (
        "deb153_phoronix",
        include_str!("../../../../../tests/golden/postmark/deb153_phoronix.txt"),
    ),
    (
        "151_terse",
        include_str!("../../../../../tests/golden/postmark/151_terse.txt"),
    ),
    (
        "deb153_terse",
        include_str!("../../../../../tests/golden/postmark/deb153_terse.txt"),
    ),
];

/// The counts of the default configuration, over so many seconds of transactions and in all.
fn default_run(seconds: u64) -> Tally {
    Tally {
        began_ns: 1_000_000_000,
        creation_ns: 0,
        transactions_ns: seconds * 1_000_000_000,
        deletion_ns: 0,
        transactions: 500,
        created_alone: 500,
        created_mixed: 264,
        read: 243,
        appended: 257,
        deleted_mixed: 236,
        deleted_alone: 528,
        bytes_read: 1_424_000,
        bytes_written: 4_666_000,
        read_as_float: 1_424_000.0,
        written_as_float: 4_666_000.0,
    }
}

/// The counts of the larger configuration.
fn large_run(seconds: u64) -> Tally {
    Tally {
        transactions: 20_000,
        created_mixed: 10_019,
        read: 9915,
        appended: 10_040,
        deleted_mixed: 9981,
        deleted_alone: 538,
        bytes_read: 449_313_728,
        bytes_written: 472_100_000,
        read_as_float: 449_313_728.0,
        written_as_float: 472_100_000.0,
        ..default_run(seconds)
    }
}

#[test]
fn reports_are_printed_byte_for_byte() {
    for (name, seconds) in [
        ("151_default", 1),
        ("151_phoronix", 3),
        ("deb153_phoronix", 11),
    ] {
        let printed = PRINTED.iter().find(|(case, _)| *case == name).unwrap().1;
        let tally = match name {
            "151_default" => default_run(seconds),
            _ => large_run(seconds),
        };
        let report = tally.verbose(Version::V1_51);
        assert!(printed.contains(&report), "{name} is not\n{report}");
        assert_eq!(report, tally.verbose(Version::V1_53), "nothing failed");
    }
    for (name, version, seconds) in [
        ("151_terse", Version::V1_51, 2),
        ("deb153_terse", Version::V1_53, 13),
    ] {
        let printed = PRINTED.iter().find(|(case, _)| *case == name).unwrap().1;
        let report = large_run(seconds).terse(version);
        assert!(printed.contains(&report), "{name} has not {report}");
    }
}

#[test]
fn versions_differ_in_two_numbers() {
    let mut tally = large_run(4);
    tally.creation_ns = 2_000_000_000;
    tally.deletion_ns = 5_000_000_000;
    let delete_alone = |version| {
        let line = tally.terse(version);
        line.split(' ').nth(9).map(str::to_owned)
    };
    assert_eq!(delete_alone(Version::V1_51).as_deref(), Some("269.00"));
    assert_eq!(delete_alone(Version::V1_53).as_deref(), Some("107.60"));
    tally.deleted_alone -= 3;
    let deleted = |version| tally.verbose(version).contains("\t10519 deleted");
    assert!(deleted(Version::V1_51) && !deleted(Version::V1_53));
}

/// A difference of the clock's seconds, not a duration rounded: 0.2 s may be 1, 1.8 s may be 1.
#[test]
fn seconds_are_those_the_clock_passed() {
    let mut tally = default_run(0);
    tally.transactions_ns = 1_800_000_000;
    assert!(tally.verbose(Version::V1_53).contains("\t1 seconds total"));
    tally.began_ns += 300_000_000;
    assert!(tally.verbose(Version::V1_53).contains("\t2 seconds total"));
}

#[test]
fn what_postmark_printed_is_read() {
    for (name, text) in PRINTED {
        let reports = parse(text).unwrap_or_else(|misread| panic!("{name}: {misread}"));
        let [report] = reports.as_slice() else {
            panic!("{name}: {reports:?}");
        };
        let setting = |name: &str| {
            let fact = report.settings.iter().find(|fact| fact.name == name);
            fact.map(|fact| fact.value.clone())
        };
        let transactions = setting("transactions").unwrap();
        let expected = if name.contains("default") {
            "500"
        } else {
            "20000"
        };
        assert_eq!(transactions, expected, "{name}");
        assert_eq!(setting("seed").as_deref(), Some("42"));
        assert_eq!(metrics().len(), values(report).len());
        assert!(values(report).iter().all(Option::is_some), "{name}");
    }
    let text = PRINTED[3].1;
    let report = &parse(text).unwrap()[0];
    let times = [report.elapsed_s, report.transactions_s];
    assert_eq!(times, [PrintedFigure::whole(11); 2]);
    assert_eq!(
        report.rates[1].value,
        10_519.0 / 11.0,
        "not what was cut off"
    );
    assert_eq!(report.rates[2].value, 500.0);
    assert_eq!(report.rates[9].value, 428.50 * 1_048_576.0 / 11.0);
}

/// "Transactions: 500" in 1 s are no 5000 per second.
#[test]
fn the_transactions_of_a_report_are_those_of_its_configuration() {
    for (name, text) in PRINTED {
        let at = text.find("Transactions: ").unwrap() + "Transactions: ".len();
        let changed = format!("{}9{}", &text[..at], &text[at..]);
        let refused = parse(&changed).unwrap_err();
        assert!(refused.contradiction, "{name}: {refused}");
        assert!(
            refused.what.contains("transactions per second"),
            "{name}: {refused}"
        );
    }
}

#[test]
fn a_run_without_files_says_so() {
    for text in [
        include_str!("../../../../../tests/golden/postmark/151_bias.txt"),
        include_str!("../../../../../tests/golden/postmark/deb153_bias.txt"),
    ] {
        let misread = parse(text).unwrap_err();
        assert!(misread.what.contains("out of files"), "{misread}");
    }
    let help = include_str!("../../../../../tests/golden/postmark/151_help.txt");
    assert!(parse(help).is_err());
}

#[test]
fn real_time_is_not_rounded() {
    let mut tally = default_run(0);
    tally.creation_ns = 10_000_000;
    tally.transactions_ns = 20_000_000;
    tally.deletion_ns = 5_000_000;
    let report = tally.report();
    assert_eq!(report.rates[0].value, 25_000.0);
    assert_eq!(report.rates[2].value, 50_000.0);
    assert_eq!(report.rates[7].value, 105_600.0);
    assert_eq!(report.elapsed_s.value, 0.035);
}

#[test]
fn help_and_show_are_those_of_the_original() {
    let golden = include_str!("../../../../../tests/golden/postmark/151_help.txt");
    let Answer::Say(help) = PostmarkSettings::default().obey("help", From::File) else {
        panic!("help says something");
    };
    assert!(golden.contains(&help));
    assert_eq!(help.lines().count(), 17);
    for (name, text) in [PRINTED[0], PRINTED[2], PRINTED[4]] {
        let mut configuration = PostmarkSettings::default();
        for line in text.lines() {
            if let Some(set) = line.strip_prefix("#   set ") {
                let answer = configuration.obey(&format!("set {set}"), From::File);
                assert_eq!(answer, Answer::Done, "{set}");
            }
        }
        let shown = configuration.shown("/srv/test");
        assert!(text.contains(&shown), "{name} is not\n{shown}");
    }
}

/// Lines tried with PostMark 1.53, and what they came to.
#[test]
fn lines_mean_what_they_mean_to_the_original() {
    let obey = |line: &str| {
        let mut configuration = PostmarkSettings::default();
        let answer = configuration.obey(line, From::Prompt);
        (configuration, answer)
    };
    let sizes = |line: &str| {
        let configuration = obey(line).0;
        (configuration.size_low, configuration.size_high)
    };
    for (line, expected) in [
        ("set size 10", (10, 10)),
        ("set size 10 5", (10, 10)),
        ("set size 10 20 30", (10, 20)),
        ("set size 5a 7b", (5, 7)),
        ("set size  5 7", (5, 5)),
        ("set size 5  7", (5, 7)),
        ("set size a", (500, 10_000)),
    ] {
        assert_eq!(sizes(line), expected, "{line}");
    }
    for (line, expected) in [
        ("set number 12x", 12),
        ("set numberx 7", 7),
        ("set number\t7", 7),
        ("set number +7", 7),
        ("set number 1e3", 1),
        ("set number7", 500),
        ("set number -3", 500),
        ("set number 3000000000", 500),
        ("set number 99999999999999999999", 500),
    ] {
        assert_eq!(obey(line).0.number, expected, "{line}");
    }
    let unknown = Answer::Say("Eh?\n".to_owned());
    for line in [
        "",
        " show",
        "set",
        "set num 7",
        "set  number 7",
        "SET number 7",
        "q",
        "exit now",
        "? run",
        "set bias",
        "# comment",
    ] {
        assert_eq!(obey(line).1, unknown, "{line:?}");
    }
    assert_eq!(obey("exit").1, Answer::Quit);
    assert_eq!(obey("quitx").1, Answer::Quit);
    assert_eq!(
        PostmarkSettings::default().obey("exit", From::File),
        unknown
    );
    assert_eq!(obey("runx").1, Answer::Run(Some(String::new())));
    assert_eq!(obey("!sync").1, Answer::Shell("sync".to_owned()));
    assert_eq!(obey("set bias read x").0.bias_read, 0);
    assert!(matches!(obey("set bias read 11").1, Answer::Complain(_)));
    assert!(matches!(
        obey("set buffering falsex").1,
        Answer::Complain(_)
    ));
}

#[test]
fn locations_are_replaced_added_and_taken_away() {
    let mut configuration = PostmarkSettings::default();
    let mut obey = |line: &str| {
        let answer = configuration.obey(line, From::File);
        let at = |it: &language::Location| format!("{} {}", it.path, it.weight);
        let list: Vec<String> = configuration.locations.iter().map(at).collect();
        (list.join(", "), answer)
    };
    let complaint = |text: &str| Answer::Complain(text.to_owned());
    assert_eq!(obey("set location /a").0, "/a 1");
    assert_eq!(obey("set location +/b 3").0, "/a 1, /b 3");
    assert_eq!(obey("set location +/c 7 8").0, "/a 1, /b 3, /c 7 8");
    assert_eq!(obey("set location -/b").0, "/a 1, /c 7 8");
    let (list, answer) = obey("set location -/b 3");
    assert_eq!(list, "/a 1, /c 7 8");
    assert_eq!(answer, complaint("cannot find location '/b 3'"));
    let (list, answer) = obey("set location /d x");
    assert_eq!(list, "/d 1");
    assert_eq!(answer, complaint("ignoring invalid weight 'x'"));
}

proptest! {
    /// Printed reports are read back, with all that whole seconds keep.
    #[test]
    fn what_is_printed_is_read_back(
        seconds in prop::array::uniform3(0u64..500),
        counts in prop::array::uniform6(0u64..200_000),
        bytes in prop::array::uniform2(0f32..1e13),
    ) {
        let [created_alone, created_mixed, read, appended, deleted_mixed, extra] = counts;
        let transactions = (created_mixed + deleted_mixed).max(read + appended) + extra % 3;
        let deleted_mixed = deleted_mixed.min(created_alone + created_mixed);
        let tally = Tally {
            began_ns: 7_000_000_000,
            creation_ns: seconds[0] * 1_000_000_000,
            transactions_ns: seconds[1] * 1_000_000_000,
            deletion_ns: seconds[2] * 1_000_000_000,
            transactions,
            created_alone,
            created_mixed,
            read,
            appended,
            deleted_mixed,
            deleted_alone: created_alone + created_mixed - deleted_mixed,
            bytes_read: bytes[0] as u64,
            bytes_written: bytes[1] as u64,
            read_as_float: bytes[0],
            written_as_float: bytes[1],
        };
        let whole = |name, printed: &str| {
            let reports = parse(printed);
            prop_assert!(reports.is_ok(), "{name} {reports:?}\n{printed}");
            let report = &reports.unwrap()[0];
            let total = seconds.iter().sum::<u64>().max(1) as f64;
            let during = seconds[1].max(1) as f64;
            let times = [report.elapsed_s, report.transactions_s];
            prop_assert_eq!(times.map(|time| time.value), [total, during]);
            let close = |rate: f64, count: f64, over: f64, unit: f64| {
                (rate - count / over).abs() <= unit + 1e-6 * rate
            };
            let unit = 0.0051;
            prop_assert!(close(report.rates[1].value, (created_alone + created_mixed) as f64, total, unit));
            prop_assert!(close(report.rates[4].value, read as f64, during, unit));
            prop_assert!(close(report.rates[9].value, f64::from(bytes[0]), total, 5300.0));
            Ok(())
        };
        whole("verbose", &tally.verbose(Version::V1_53))?;
        whole("terse", &tally.terse(Version::V1_53))?;
    }

    /// A report with one digit changed reads as it was in what remains readable, unless PostMark's
    /// own rounding hides the change.
    #[test]
    fn a_changed_count_is_refused(case in 0usize..4, place in 0usize..12, digit in b'0'..=b'9') {
        let text = PRINTED[case].1;
        let counts: Vec<usize> = text
            .match_indices(|c: char| c.is_ascii_digit())
            .map(|(at, _)| at)
            .filter(|at| {
                let line = text[..*at].rfind('\n').map_or(0, |line| line + 1);
                let line = &text[line..];
                let line = &line[..line.find('\n').unwrap_or(line.len())];
                ["created", "read (", "appended", "Mixed"].iter().any(|word| line.contains(word))
                    && !line.contains("bytes")
            })
            .collect();
        let at = counts[place * 5 % counts.len()];
        let mut changed = text.as_bytes().to_vec();
        prop_assume!(changed[at] != digit);
        changed[at] = digit;
        let changed = String::from_utf8(changed).unwrap();
        prop_assert!(parse(&changed).is_err(), "{}", changed);
    }

    /// Cut, repeated or shuffled lines: an error or the same figures, those missing that were cut off.
    #[test]
    fn damaged_texts_never_panic(
        case in 0usize..6,
        cut in 0usize..2000,
        repeat in 0usize..40,
        junk in prop::collection::vec(any::<char>(), 0..4),
    ) {
        let text = PRINTED[case].1;
        let whole = values(&parse(text).unwrap()[0]);
        let cut = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
        let mut lines: Vec<&str> = text[..cut].lines().collect();
        let twice = lines.get(repeat).copied().unwrap_or_default();
        lines.insert(repeat.min(lines.len()), twice);
        let junk: String = junk.into_iter().collect();
        lines.push(&junk);
        if let Ok(reports) = parse(&lines.join("\n")) {
            for report in reports {
                for (figure, whole) in values(&report).into_iter().zip(&whole) {
                    let value = |figure: Option<PrintedFigure>| figure.map(|figure| figure.value);
                    prop_assert!(figure.is_none() || value(figure) == value(*whole));
                }
            }
        }
    }
}
