//! What is required, on a screen of few lines.

use super::*;
use stackrace_base::event::{BoundSide, Requirement};
use stackrace_judge::verdict::{Evidence, judge};
use stackrace_results::record::sample;

#[test]
fn what_is_required_of_one_configuration_is_answered_however_small_the_screen_is() {
    let shape = sample::SampleShape {
        configurations: vec![("d".into(), vec!["d".into()])],
        comparison: None,
        ..sample::small()
    };
    let mut record = sample::record(&shape);
    let required = (0..4).map(|metric| Requirement {
        workload: 0,
        metric,
        limit: BoundSide::AtMost,
        bound: 1e15,
    });
    record.head.decide.required = required.collect();
    let verdict = judge(&Evidence::of(&record));
    for (columns, lines) in [(60, 16), (80, 16), (80, 24)] {
        let options = ReportOptions {
            screen: Screen { width: columns },
            lines_max: Some(lines),
            ..ReportOptions::default()
        };
        let text = page(&record, &verdict, &options).plain();
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for metric in &record.head.workloads[0].metrics {
            let said = format!(": {} ", metric.name);
            assert!(flat.contains(&said), "{columns}: {}: {text}", metric.name);
        }
        assert!(!flat.contains("more with the figures"), "{columns}: {text}");
    }
}

/// The rate of the workload is no answer to the one who asked for a latency.
#[test]
fn the_figure_that_is_required_stands_in_the_first_table() {
    let mut record = sample::record(&sample::small());
    record.head.decide.required = vec![Requirement {
        workload: 1,
        metric: 0,
        limit: BoundSide::AtLeast,
        bound: 1.0,
    }];
    let verdict = judge(&Evidence::of(&record));
    let head = &record.head.workloads[1];
    let figure = head.metrics[0].on(&head.name);
    for lines_max in [None, Some(40)] {
        let options = ReportOptions {
            lines_max,
            ..ReportOptions::default()
        };
        let text = page(&record, &verdict, &options).plain();
        let table = text.split("\nRequired\n").nth(1).unwrap_or_default();
        let table = table.split("\n\n").next().unwrap_or_default();
        for part in [
            figure.split(' ').next().unwrap_or_default(),
            "at least",
            "meets it",
        ] {
            assert!(table.contains(part), "{lines_max:?}: {part}: {text}");
        }
    }
    let plain = record_without_requirement();
    assert!(!plain.contains("\nRequired\n"), "{plain}");
}

/// The small picture of a gallery has one group: that of what was asked.
#[test]
fn a_picture_of_one_directory_shows_the_figure_that_is_required() {
    let shape = sample::SampleShape {
        configurations: vec![("d".into(), vec!["d".into()])],
        comparison: None,
        ..sample::small()
    };
    let mut record = sample::record(&shape);
    let head = record.head.workloads[0].clone();
    let picture = |record: &stackrace_results::record::Record| {
        let verdict = judge(&Evidence::of(record));
        small(record, &verdict, "p").map(|drawn| drawn.into_string())
    };
    let of = |metric: usize| figure::metric_on(&head.name, &head.metrics[metric]);
    assert!(picture(&record).unwrap().contains(&of(0)));
    record.head.decide.required = vec![Requirement {
        workload: 0,
        metric: 1,
        limit: BoundSide::AtMost,
        bound: 1e15,
    }];
    let drawn = picture(&record).unwrap();
    assert!(drawn.contains(&of(1)) && !drawn.contains(&of(0)), "{drawn}");
}

fn record_without_requirement() -> String {
    let record = sample::record(&sample::small());
    page(
        &record,
        &judge(&Evidence::of(&record)),
        &ReportOptions::default(),
    )
    .plain()
}

/// Of one configuration alone, each workload is an answer.
#[test]
fn one_configuration_shows_the_figure_of_every_workload_on_a_small_screen() {
    let shape = sample::SampleShape {
        configurations: vec![("d".into(), vec!["d".into()])],
        comparison: None,
        ..sample::small()
    };
    let record = sample::record(&shape);
    let options = ReportOptions {
        lines_max: Some(24),
        ..ReportOptions::default()
    };
    let text = page(&record, &judge(&Evidence::of(&record)), &options).plain();
    for head in &record.head.workloads {
        assert!(
            text.contains(&format!("\n  {}", head.name)),
            "{}: {text}",
            head.name
        );
    }
}

#[test]
fn a_note_on_a_narrow_screen_says_as_much_as_on_a_wide_one() {
    let record = sample::record(&sample::small());
    let mut verdict = judge(&Evidence::of(&record));
    let note = "streaming read: up to 85 % (median 83 %) of the bytes read came from the cache of a file system \
                below, not from a disk";
    verdict.notes = vec![note.to_owned(), "another".to_owned()];
    for width in [60, 80] {
        let options = ReportOptions {
            screen: Screen { width },
            lines_max: Some(24),
            ..ReportOptions::default()
        };
        let text = page(&record, &verdict, &options).plain();
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("below, not from a disk"), "{width}: {text}");
    }
}
