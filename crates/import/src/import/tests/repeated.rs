//! Results that are there twice count once.

use super::*;
use stackrace_base::printed::PrintedFigure;
use stackrace_base::printed::{Design, ImportSource, find};

fn dd(name: &str, file: &str, seconds: &str) -> ImportSource {
    let text = format!(
        "1000+0 records in\n1000+0 records out\n1000000000 bytes (1.0 GB, 954 MiB) copied, {seconds} s, 100 MB/s\n"
    );
    source(Some(name.to_owned()), file, text, None).unwrap()
}

#[test]
fn a_text_counts_once_whatever_it_is_called() {
    let mut copy = dd("old", "copy.txt", "10.1234");
    copy.text = copy.text.replace('\n', "\r\n");
    let sources = [
        dd("old", "a.txt", "10.1234"),
        dd("old", "b.txt", "10.2345"),
        copy,
    ];
    let design = Design::of(&sources, "2026-11-22T00:00:00Z");
    assert_eq!(design.trials.len(), 2);
    assert_eq!(design.warnings.len(), 1, "{:?}", design.warnings);
    assert!(design.warnings[0].starts_with("old (copy.txt) repeats a.txt"));
}

/// Two configurations that are named were both measured; only the same moment is there twice.
#[test]
fn equal_texts_of_two_configurations_both_count() {
    let both = [dd("a", "a.txt", "10.1234"), dd("b", "b.txt", "10.1234")];
    let design = Design::of(&both, "2026-11-22T00:00:00Z");
    assert_eq!((design.configurations.len(), design.trials.len()), (2, 2));
    let [warning, ..] = design.warnings.as_slice() else {
        panic!("nothing is said of it");
    };
    assert!(warning.contains("has the same text as a"), "{warning}");
    let dated = both.map(|mut source| {
        source.text.push_str("Sat Nov 21 11:30:41 2026\n");
        source
    });
    let design = Design::of(&dated, "2026-11-22T00:00:00Z");
    assert_eq!(design.trials.len(), 1, "{:?}", design.warnings);
}

#[test]
fn a_clock_of_few_digits_shows_the_same_of_several_runs() {
    let time = |name: &str, seconds: &[&str]| {
        let texts = seconds
            .iter()
            .map(|it| format!("real {it}\nuser 0.10\nsys 0.20\n\n"));
        source(Some(name.to_owned()), name, texts.collect(), None).unwrap()
    };
    let rounds =
        |sources: &[ImportSource]| Design::of(sources, "2026-11-22T00:00:00Z").trials.len();
    assert_eq!(rounds(&[time("a", &["1.50", "1.50", "1.50", "3.00"])]), 4);
    assert_eq!(rounds(&[time("a", &["1.50", "1.50", "1.50"])]), 3);
    let (a, b) = (["0.01", "0.02", "0.01"], ["0.02", "0.03", "0.02"]);
    assert_eq!(rounds(&[time("a", &a), time("b", &b)]), 6);
}

/// Two figures may agree by chance; all of three do not.
#[test]
fn one_run_in_two_texts_counts_once() {
    let mut a = dd("old", "a.txt", "10.1");
    let mut b = dd("old", "b.txt", "10.1");
    for source in [&mut a, &mut b] {
        // Of three digits, as toybox prints them.
        for figure in source.results[0].values.iter_mut().flatten() {
            figure.step = figure.value / 100.0;
        }
    }
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
            result.values.push(Some(PrintedFigure::in_full(value)));
        }
    }
    assert!(!count(&a, &b));
    b.results[0].values[0] = Some(PrintedFigure::in_full(10.100_000_1));
    assert!(count(&a, &b), "one digit differs");
}

/// Whatever the tool: what was pasted twice is there once, and no run is lost that was not.
#[test]
fn every_output_pasted_twice_into_one_text_counts_once() {
    for (_, texts) in goldens() {
        for (name, text) in texts {
            let again = format!("{}\n{text}", text.trim_end());
            let all = [
                source(None, &name, text, None),
                source(None, &name, again, None),
            ];
            // Formats that have one document in a file are refused twice.
            let [Ok(once), Ok(twice)] = all else { continue };
            let trials =
                |one: ImportSource| Design::of(&[one], "2026-11-22T00:00:00Z").trials.len();
            // Of few digits, several runs may print the same.
            if !stackrace_base::printed::is_telling(&once.text, &once.results) {
                continue;
            }
            let (once, twice_as_many) = (trials(once), twice.results.len());
            assert_eq!(trials(twice), once, "{name}: {twice_as_many} results");
        }
    }
}

#[test]
fn one_fine_figure_tells_a_copy_and_a_coarse_one_does_not() {
    let report = |seconds: &str| {
        format!(
            "1000+0 records in\n1000+0 records out\n1000000000 bytes (1.0 GB, 954 MiB) copied, {seconds} s, 100 MB/s\n"
        )
    };
    let kept = |texts: [String; 3]| {
        let source = source(None, "log.txt", texts.concat(), None).unwrap();
        let design = Design::of(&[source], "2026-11-22T00:00:00Z");
        (design.trials.len(), design.warnings.len())
    };
    assert_eq!(
        kept([report("10.1001"), report("10.2002"), report("10.1001")]),
        (2, 1)
    );
    assert_eq!(
        kept([report("10.1001"), report("10.2002"), report("10.1003")]),
        (3, 0)
    );
}

/// Lists each workload of a design with what its configurations have of it, in rounds.
fn rounds(sources: &[ImportSource]) -> Vec<(String, Vec<(String, usize)>)> {
    let design = Design::of(sources, "2026-11-22T00:00:00Z");
    let of = |(workload, head): (usize, &stackrace_base::event::WorkloadHead)| {
        let counts = design.configurations.iter().enumerate();
        let counts = counts.map(|(configuration, named)| {
            let mine = design
                .trials
                .iter()
                .filter(|trial| trial.workload == workload && trial.configuration == configuration);
            (named.name.clone(), mine.count())
        });
        (head.name.clone(), counts.collect())
    };
    design.workloads.iter().enumerate().map(of).collect()
}

fn of_golden(name: &str, file: &str) -> ImportSource {
    source(Some(name.to_owned()), file, golden(file), None).unwrap()
}

#[test]
fn what_dd_wrote_and_what_it_read_are_two_workloads() {
    let sources = [
        of_golden("a", "dd/coreutils-8_opposite-a.txt"),
        of_golden("b", "dd/coreutils-8_opposite-b.txt"),
    ];
    let each = vec![("a".to_owned(), 1), ("b".to_owned(), 1)];
    assert_eq!(
        rounds(&sources),
        [
            (
                "dd write 1G in blocks of 1M, oflag=direct".to_owned(),
                each.clone()
            ),
            ("dd read 1G in blocks of 1M, iflag=direct".to_owned(), each)
        ]
    );
}

/// Repetitions that differ in a setting which the workload's name does not have are told apart by it, in
/// every configuration; what differs between configurations alone stays one.
#[test]
fn results_of_other_settings_are_no_repetitions() {
    let text = golden("fio/fio-3.33_bs-4k.json");
    let of = |name: &str, file: &str, option: &str, iops: &str| {
        let options = format!("\"bs\" : \"4k\",\n        {option},");
        let text = text
            .replace("\"bs\" : \"4k\",", &options)
            .replace("13837.837838", iops);
        source(Some(name.to_owned()), file, text, None).unwrap()
    };
    let (direct, cached) = ("\"direct\" : \"1\"", "\"direct\" : \"0\"");
    let apart = rounds(&[
        of("a", "1", direct, "13837.1"),
        of("a", "2", cached, "13837.2"),
        of("b", "3", direct, "13837.3"),
    ]);
    assert_eq!(
        apart,
        [
            (
                "fio randread 4k, direct=1".to_owned(),
                vec![("a".to_owned(), 1), ("b".to_owned(), 1)]
            ),
            (
                "fio randread 4k, direct=0".to_owned(),
                vec![("a".to_owned(), 1), ("b".to_owned(), 0)]
            )
        ]
    );
    let compared = rounds(&[
        of("a", "1", direct, "13837.1"),
        of("a", "2", "\"direct\" : \"true\"", "13837.2"),
        of("b", "3", cached, "13837.3"),
    ]);
    assert_eq!(
        compared,
        [(
            "fio randread 4k".to_owned(),
            vec![("a".to_owned(), 2), ("b".to_owned(), 1)]
        )]
    );
}

/// Runs that follow each other in one text are rounds, whatever tool printed them.
#[test]
fn every_output_twice_is_two_rounds_of_the_same() {
    for (_, texts) in goldens() {
        for (name, text) in texts {
            let Ok(one) = source(None, &name, text, None) else {
                continue;
            };
            let before = rounds(std::slice::from_ref(&one)).len();
            let mut twice = one.clone();
            twice.text.push('.');
            // Another figure: the same would be the same run.
            for value in twice
                .results
                .iter_mut()
                .flat_map(|it| it.values.iter_mut().flatten())
            {
                *value = *value * 1.01;
            }
            assert_eq!(rounds(&[one, twice]).len(), before, "{name}");
        }
    }
}
