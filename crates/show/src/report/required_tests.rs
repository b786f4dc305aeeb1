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
