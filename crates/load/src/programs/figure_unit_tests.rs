//! Figures whose unit changes from run to run, as a user's pattern catches them.

use super::reported::{Printed, ReportedFigure};
use stackrace_base::event::Better;

fn caught(pattern: &str, unit: &str, text: &str) -> Result<f64, String> {
    let named = format!("x={pattern}");
    let figure = ReportedFigure::new(&named, unit, Some(Better::Lower), None).unwrap();
    let printed = Printed {
        out: text,
        errors: "",
    };
    figure.read(printed, None).map(|figure| figure.value)
}

const ANY: &str = "=([0-9.]+)";

#[test]
fn another_unit_than_the_one_that_was_said_is_refused() {
    for (unit, text, word) in [
        ("ms", "lat=1.2 s", "s"),
        ("ms", "lat=1.2s,", "s"),
        ("ms", "lat=1.2 sec", "sec"),
        ("s", "lat=2 m", "m"),
        ("s", "lat=2m", "m"),
        ("", "took=2m", "m"),
        ("", "took=2 days", "days"),
        ("MB/s", "rate=950 B/s", "B/s"),
        ("MB/s", "rate=950 bytes/s", "bytes/s"),
        ("MB/s", "rate=950 B", "B"),
        ("MB/s", "rate=95 MB/min", "MB/min"),
        ("MB/s", "rate=95 MB per minute", "MB per minute"),
        ("MB/s", "rate=95 MB/h", "MB/h"),
        ("MB/s", "rate=95 Mbit/s", "Mbit/s"),
        ("MB/s", "rate=95 gb/s", "gb/s"),
        ("MB/s", "rate=10.9M", "M"),
        ("MB/s", "rate=95 MiB/s", "MiB/s"),
        ("kops", "rate=950 ops", "ops"),
        ("kops", "rate=950 ops/s", "ops/s"),
        ("ops/s", "rate=950 ops/min", "ops/min"),
        ("", "rate=950 ops/min", "ops/min"),
        ("", "rate=950 files/h", "files/h"),
        ("", "rate=950 mb/s", "mb/s"),
        ("files", "rate=950 s", "s"),
        ("", "rate=950.5 thousand", "thousand"),
        ("", "rate=1.25 million", "million"),
        ("op/s", "rate=1.25 million", "million"),
        ("", "rate=1.25 Mio", "Mio"),
        ("", "rate=1.25 Mrd.", "Mrd"),
    ] {
        let why = caught(ANY, unit, text).unwrap_err();
        let behind = format!("is followed by \"{word}\"");
        assert!(why.contains(&behind), "{unit}: {text}: {why}");
    }
}

#[test]
fn the_unit_that_was_said_is_read_however_it_is_spelled() {
    for (unit, text) in [
        ("ms", "lat=950 ms"),
        ("ms", "lat=950"),
        ("ms", "lat=950 msec"),
        ("ms", "lat=950, 9 max"),
        ("ms", "lat=950 s=x"),
        ("ms", "lat=950 of"),
        ("s", "lat=950s"),
        ("", "lat=950 s"),
        ("", "lat=950 B/s"),
        ("", "lat=950 ops/sec"),
        ("", "lat=950 files"),
        ("files", "lat=950 files"),
        ("files/s", "lat=950 files/s"),
        ("op/s", "lat=950 tps"),
        ("op/s", "lat=950 requests/s"),
        ("us", "lat=950 \u{b5}s"),
        ("us", "lat=950 \u{3bc}s"),
        ("ns/op", "lat=950 ns/op"),
        ("MB/s", "lat=950 MB/s"),
        ("MB/s", "lat=950 MB/sec"),
        ("MB/s", "lat=950 MB per second"),
        ("MB/s", "lat=950 MB"),
        ("MB/s", "lat=950"),
        ("MB/s", "lat=950 mb/s"),
        ("kIOPS", "lat=950k"),
        ("kIOPS", "lat=950 kIOPS"),
        ("kIOPS", "kIOPS: lat=950"),
        ("k", "lat=950k"),
        ("million ops", "lat=950 million ops"),
        ("min", "lat=950 min"),
        ("pages", "lat=950 pages"),
    ] {
        assert_eq!(caught(ANY, unit, text), Ok(950.0), "{unit}: {text}");
    }
    for (pattern, text) in [
        ("=([0-9.]+)M", "rate=950M"),
        ("=([0-9.]+) secs?", "rate=950 secs"),
        ("=([0-9.]+) secs?", "rate=950 sec"),
        (r"=([0-9.]+) MB\/s", "rate=950 MB/s"),
        ("=([0-9.]+) MB/min", "rate=950 MB/min"),
        ("=([0-9.]+) thousand", "rate=950 thousand"),
    ] {
        assert_eq!(
            caught(pattern, "MB/s", text),
            Ok(950.0),
            "{pattern}: {text}"
        );
    }
    // The "?" lets minutes through.
    assert!(caught("=([0-9.]+) ?ms?", "", "lat=2 m").is_err());
}

/// 10.9k, and 950 in the next run.
#[test]
fn a_prefix_that_was_said_stands_behind_every_figure() {
    for (unit, text) in [
        ("kIOPS", "iops=950"),
        ("kIOPS", "iops=950, bw=3"),
        ("kIOPS", "iops=10.9 kIOPS\niops=950"),
        ("k", "iops=950"),
        ("k", "iops=950 files"),
        ("million", "iops=950"),
    ] {
        let why = caught(ANY, unit, text).unwrap_err();
        assert!(why.contains("\" behind it, and"), "{unit}: {text}: {why}");
    }
}

#[test]
fn parts_of_a_time_of_several_units_are_refused() {
    for (pattern, text, whole) in [
        ("([0-9.]+) sec", "took 1 min 2 secs", "1 min 2 secs"),
        ("([0-9.]+) sec", "1 hour 5 seconds", "1 hour 5 seconds"),
        ("([0-9.]+) sec", "1 hour, 5 seconds", "1 hour, 5 seconds"),
        (
            "([0-9.]+) sec",
            "1 hour and 5 seconds",
            "1 hour and 5 seconds",
        ),
        ("([0-9.]+) min", "took 1 min 2 secs", "1 min 2 secs"),
        ("([0-9.]+) ?h", "took 2h 5min", "2h 5min"),
        ("h ([0-9.]+)", "took 2h 5", "2h 5"),
        ("([0-9.]+) ?ms", "took 2s 5ms", "2s 5ms"),
    ] {
        let why = caught(pattern, "", text).unwrap_err();
        let part = format!("is only a part of \"{whole}\": a time");
        assert!(why.contains(&part), "{text}: {why}");
    }
    for (pattern, text) in [
        ("([0-9.]+) ms avg", "3 min 5 ms avg, 9 max"),
        ("avg ([0-9.]+)", "in 3 min avg 5"),
        ("([0-9.]+) MB/s", "copied, 5.02 s, 5 MB/s"),
        ("([0-9.]+) sec", "12 jobs 5 sec"),
        ("([0-9.]+) us", "0.50 ms 5 us"),
    ] {
        let read = caught(pattern, "", text);
        let ambiguous = text.starts_with("3 min");
        assert_eq!(read.is_err(), ambiguous, "{text}: {read:?}");
    }
}

#[test]
fn numbers_that_are_written_in_another_way_are_refused_whole() {
    for (text, whole) in [
        ("r=9.505x10^2 op/s", "9.505x10^2"),
        ("r=9.505 x 10^2", "9.505 x 10^2"),
        ("r=9.505 \u{d7} 10\u{b3}", "9.505 \u{d7} 10\u{b3}"),
        ("r=9.505*10**2", "9.505*10**2"),
        ("r=0x1F", "0x1F"),
        ("r=1\u{202f}234", "1\u{202f}234"),
    ] {
        let why = caught(ANY, "", text).unwrap_err();
        let part = format!("only a part of \"{whole}\": ");
        assert!(why.contains(&part), "{text}: {why}");
    }
    assert_eq!(caught(ANY, "", "r=3x faster"), Ok(3.0));
    assert_eq!(caught(ANY, "", "r=3 x 10 files"), Ok(3.0));
    assert!(
        caught("0x([0-9.]+)", "", "r=0x10")
            .unwrap_err()
            .contains("base 16")
    );
}

#[test]
fn the_advice_names_the_unit_that_was_printed() {
    for (unit, text, advice) in [
        ("MB/s", "r=2 MiB/s", "--unit MiB/s"),
        ("ms", "r=2 us", "--unit us"),
        ("MB/s", "r=2 GB/s", "--unit GB/s"),
        ("IOPS", "r=2k", "--unit kIOPS"),
        ("", "r=2k", "--unit k"),
        ("MB/s", "r=2M", "in the pattern, as in ([0-9.]+) ?M"),
    ] {
        let why = caught(ANY, unit, text).unwrap_err();
        assert!(why.contains(advice), "{unit}: {text}: {why}");
    }
    let dd = "1+0 records in\n1+0 records out\n\
              1073741824 bytes (1.1 GB, 1.0 GiB) copied, 10 s, 107 MB/s\n";
    let figure = ReportedFigure::new("throughput", "", None, Some("dd")).unwrap();
    let printed = Printed {
        out: dd,
        errors: "",
    };
    let why = figure.read(printed, Some("dd")).unwrap_err();
    assert_eq!(
        why,
        "throughput is in B/s, and no unit was said: say --unit B/s"
    );
}

/// "950" of one run and "1.2 MB/s" of the next: nothing tells that the first is in MB/s.
#[test]
fn a_bare_figure_and_one_with_a_unit_are_not_of_one_command() {
    let of = |pattern: &str, unit: &str| {
        let figure = ReportedFigure::new(&format!("x={pattern}"), unit, None, None);
        figure
            .unwrap()
            .of_command(&format!("print {pattern} {unit}"))
    };
    let read = |figure: &ReportedFigure, text: &str| {
        let (out, errors) = (text, "");
        figure
            .read(Printed { out, errors }, None)
            .map(|it| it.value)
    };
    for (unit, bare, with) in [
        ("MB/s", "rate=950", "rate=1.2 MB/s"),
        ("KiB/s", "rate=950", "rate=12KiB/s"),
        ("ms", "lat=5", "lat=5 ms"),
    ] {
        for (first, second) in [(bare, with), (with, bare)] {
            // Of two configurations, too, and of another command nothing is known.
            let (a, b) = (of(ANY, unit), of(ANY, unit));
            read(&a, first).unwrap();
            let why = read(&b, second).unwrap_err();
            assert!(why.contains("may be in another unit"), "{why}");
            assert!(read(&a, first).is_ok());
            assert!(read(&of("=([0-9.]+)", "s"), "t=5").is_ok());
            drop((a, b));
            assert!(read(&of(ANY, unit), second).is_ok(), "another run");
        }
    }
    let plain = of(ANY, "B/s");
    assert!(read(&plain, "rate=950").is_ok() && read(&plain, "rate=950 B/s").is_ok());
    let fixed = of("=([0-9.]+) ?MB/s", "MB/s");
    assert!(read(&fixed, "rate=950 MB/s").is_ok());
}
