//! Reports and command lines of the classic tools.

use stackrace_fio::fio::{self, FioJob};
use stackrace_load::tools::bonnie;
use stackrace_load::tools::postmark::language::{Answer, From, PostmarkSettings};
use stackrace_load::tools::postmark::{metrics, parse, values};
use stackrace_load::tools::sysbench;

/// Reports of PostMark are read into finite figures, or refused with a place. Every line of its
/// commands leaves a configuration that can be run.
pub fn postmark(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text) {
        Ok(reports) => {
            assert!(!reports.is_empty());
            for report in reports {
                let whole = report.transactions_s.value >= 1.0
                    && report.transactions_s.value <= report.elapsed_s.value;
                assert!(whole || report.cut_off);
                let values = values(&report);
                assert_eq!(values.len(), metrics().len());
                for value in values.into_iter().flatten() {
                    assert!(value.value.is_finite() && value.value > 0.0, "{value:?}");
                }
            }
        }
        Err(misread) => {
            assert!((1..=text.lines().count().max(1) + 1).contains(&misread.line));
            assert!(!misread.to_string().is_empty());
        }
    }
    for from in [From::Prompt, From::File] {
        let mut configuration = PostmarkSettings::default();
        for line in text.lines() {
            match configuration.obey(line, from) {
                Answer::Say(text) => assert!(text.ends_with('\n')),
                Answer::Complain(why) => assert!(!why.is_empty() && !why.ends_with('\n')),
                _ => {}
            }
        }
        let counts = [
            configuration.number,
            configuration.seed,
            configuration.transactions,
            configuration.size_low,
            configuration.read_block,
            configuration.write_block,
        ];
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        assert!(configuration.size_high >= configuration.size_low);
        assert!(configuration.locations.iter().all(|it| it.weight > 0));
        for bias in [configuration.bias_read, configuration.bias_create] {
            assert!((-1..=10).contains(&bias));
        }
        let shown = configuration.shown("/");
        assert!(shown.starts_with("Current configuration is:\n") && shown.ends_with(".\n"));
    }
}

/// A report of bonnie++ that was read can be printed as a table and as CSV; a refusal has a place.
pub fn bonnie(data: &[u8]) {
    let Ok(shown) = std::str::from_utf8(data) else {
        return;
    };
    match bonnie::parse(shown) {
        Ok(reports) => {
            assert!(!reports.is_empty());
            for report in reports {
                let values = bonnie::values(&report);
                assert_eq!(values.len(), bonnie::metrics().len());
                assert!(
                    values
                        .iter()
                        .flatten()
                        .all(|value| value.value.is_finite() && value.value >= 0.0)
                );
                assert!(bonnie::notes(&report).iter().all(|note| !note.is_empty()));
                assert!(!bonnie::text(&report, 0).is_empty());
                let line = bonnie::csv(&report, 0);
                if let Ok(again) = bonnie::parse(&line) {
                    assert_eq!(bonnie::csv(&again[0], 0), line, "{shown:?}");
                }
            }
        }
        Err(error) => {
            assert!(
                error.line >= 1 && error.line <= shown.lines().count() + 1,
                "{error}"
            );
            assert!(!error.what.is_empty() && !error.next.is_empty());
        }
    }
}

/// A report of sysbench is refused with a place, or is the same after printing and reading it.
pub fn sysbench(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let reports = match sysbench::parse(&text) {
        Ok(reports) => reports,
        Err(misread) => {
            assert!(
                misread.line >= 1 && misread.line <= text.lines().count() + 2,
                "{misread}"
            );
            assert!(!misread.what.is_empty() && !misread.next.is_empty());
            return;
        }
    };
    for report in reports {
        let values = sysbench::values(&report);
        assert_eq!(values.len(), sysbench::metrics().len());
        assert!(
            values
                .iter()
                .flatten()
                .all(|value| value.value.is_finite() && value.value > 0.0)
        );
        let steps: String = report
            .intermediate
            .iter()
            .map(sysbench::intermediate)
            .collect();
        let printed = sysbench::head(&report.head)
            + sysbench::started(report.head.layout)
            + &steps
            + &sysbench::results(&report);
        // The beginning may have been cut off.
        let begins = printed.starts_with("sysbench ") || report.head.banner.is_empty();
        assert!(begins, "{printed}");
    }
}

/// A job of fio is refused with its lines, or each figure of its report has a name of its own.
pub fn fio(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match FioJob::read(&text) {
        Ok(job) => {
            let mut names: Vec<String> = fio::heads(&job).into_iter().map(|it| it.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{names:?}");
            assert!(fio::figures(&job, &text).is_err(), "a job is no report");
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                assert!(!fault.what.is_empty() && !fault.next.is_empty());
                assert!((1..=text.lines().count().max(1)).contains(&fault.line));
            }
        }
    }
}
