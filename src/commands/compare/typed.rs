//! The options that the words of the study come from: what is wrong with it is said of them, because the user wrote no
//! study.

use stackrace_base::failure::Failure;
use stackrace_run::prepare::study_file::{self, TypedWord};
use stackrace_study::study::{Study, StudyTable};

/// Name of the study of a comparison.
pub(crate) const COMPARE: &str = "compare";

/// The study of a comparison, checked.
///
/// # Errors
/// What is wrong with what was asked for, under the name of its option.
pub(crate) fn made(table: StudyTable) -> Result<Study, Failure> {
    study_file::made(COMPARE, table, &option)
}

/// The option that a word came from, and what to do where that is not what a study would take; `None` where only the
/// program chose it.
fn option(words: &[&str]) -> Option<TypedWord> {
    if let ["require", metric, ..] = words {
        return Some(TypedWord {
            option: format!("--require \"{metric}\""),
            next: Some(format!(
                "name the workload that is meant before the metric (--require \"WORKLOAD: {metric} …\"), or give more data with --size"
            )),
        });
    }
    Some(TypedWord::from(match words {
        ["seed", ..] => "--seed",
        ["decide", "margin", ..] => "--margin",
        ["decide", "confidence", ..] => "--confidence",
        ["decide", "within", ..] => "--within",
        ["decide", "at-most", ..] => "--time",
        ["decide", "rounds-at-most", ..] => "--rounds",
        ["workload", "metric", ..] => "--metric",
        ["workload", "command" | "fio", word, ..] => match *word {
            "metrics" => "--metric",
            "units" => "--unit",
            "better" => "--better",
            "parse" => "--parse",
            "time-limit" => "--trial-time",
            "disk" => "--disk",
            "prepare" => "--prepare",
            "cleanup" => "--cleanup",
            "job" | "content" => "--fio",
            "run" | "words" => "the command",
            _ => return None,
        },
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::compare::{request_for, sides_of, study_of};
    use stackrace_study::study::literal;

    /// What is said of a comparison with a workload of these words.
    fn said(named: StudyTable, kind: &str, settings: StudyTable) -> String {
        let request = request_for(&["/srv/a".into(), "/srv/b".into()]);
        let sides = sides_of(&request.directories);
        let table = StudyTable::default().value("name", "work");
        let table = named.led_by(table).table(kind, settings);
        let failure = made(study_of(&request, &sides, ("work", ""), [table]));
        failure
            .err()
            .map_or(String::new(), |failure| failure.render())
    }

    #[test]
    fn what_is_wrong_with_a_made_study_is_said_of_the_option_and_of_no_line() {
        let none = StudyTable::default;
        let reads = none().value("mode", "read").value("size", "64MiB");
        let metric = said(none().value("metric", "p99"), "random", reads);
        assert!(
            metric
                .starts_with("error: --metric: no workload measures \"p99\"\n  next: did you mean"),
            "{metric}"
        );
        let list = |word: &str| literal([word.to_owned()].into_iter().collect());
        let command = none().value("run", "true");
        let figure = said(
            none(),
            "command",
            command.clone().value("metrics", list("foo")),
        );
        assert!(
            figure.starts_with("error: --metric: the metric \"foo\""),
            "{figure}"
        );
        let long = said(none(), "command", command.value("time-limit", "soon"));
        assert!(long.starts_with("error: --trial-time: "), "{long}");
        for text in [metric, figure, long] {
            assert!(
                !text.contains("compare:") && !text.contains("-->"),
                "{text}"
            );
        }
    }
}
