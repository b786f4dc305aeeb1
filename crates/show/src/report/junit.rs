//! The answer of a gate as JUnit XML, which CI systems show beside the tests.

use stackrace_base::unit;
use stackrace_judge::verdict::{Enough, FigureAnswer, GateAnswer, GateOutcome, Verdict};

/// The file; each figure is a test case. `strict`: an undecided one failed, else it was skipped.
pub fn junit(gate: &GateAnswer, strict: bool) -> Vec<u8> {
    let suite = format!(
        "{} against {}, {}",
        gate.compared.configuration,
        gate.baseline.configuration,
        gate.compared.runs.join(" ")
    );
    let cases: Vec<Case> = match &gate.failed {
        // A failed trial leaves no other answer.
        Some(failure) => vec![Case {
            name: format!("the trials of {}", failure.configuration),
            result: Some(("error", failure.error.clone())),
        }],
        None => gate
            .answers
            .iter()
            .map(|answer| case(gate, answer, strict))
            .collect(),
    };
    let told = [std::slice::from_ref(&gate.sentence), &gate.notes].concat();
    file(&suite, &cases, &told)
}

/// The file of a run that is asked what it requires, each requirement a test case. `failed`: the first error of a
/// trial, if one failed; `strict` as for [`junit`].
pub fn junit_required(run: &str, verdict: &Verdict, failed: Option<&str>, strict: bool) -> Vec<u8> {
    let cases: Vec<Case> = match failed {
        Some(error) => vec![Case {
            name: "the trials of the run".to_owned(),
            result: Some(("error", error.to_owned())),
        }],
        None => verdict
            .required
            .iter()
            .map(|row| Case {
                name: format!("{}, {}: {}", row.name, row.workload, row.metric.name),
                // As for a comparison: skipped is not red.
                result: match (row.enough, strict) {
                    (Enough::Meets, _) => None,
                    (Enough::Fails, _) | (Enough::Open, true) => Some(("failure", row.words())),
                    (Enough::Open, false) => Some(("skipped", row.words())),
                },
            })
            .collect(),
    };
    // The whole answer, for a person who opens the file.
    let told = [std::slice::from_ref(&verdict.sentence), &verdict.notes].concat();
    file(&format!("what {run} requires"), &cases, &told)
}

fn file(suite: &str, cases: &[Case], told: &[String]) -> Vec<u8> {
    let count = |kind: &str| {
        let of_kind = |case: &&Case| case.result.as_ref().is_some_and(|(is, _)| *is == kind);
        cases.iter().filter(of_kind).count()
    };
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\"",
        cases.len(),
        count("failure"),
        count("error")
    );
    // Jenkins' schema (xunit-plugin, junit-10.xsd) allows the number of skipped ones here and not above.
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"stackrace\" {counts}>\n  \
         <testsuite name=\"{}\" {counts} skipped=\"{}\">\n",
        escaped(suite),
        count("skipped")
    );
    for case in cases {
        let name = escaped(&case.name);
        text.push_str(&format!(
            "    <testcase classname=\"stackrace\" name=\"{name}\""
        ));
        text.push_str(&match &case.result {
            None => "/>\n".to_owned(),
            Some((kind, why)) => {
                format!(
                    ">\n      <{kind} message=\"{}\"/>\n    </testcase>\n",
                    escaped(why)
                )
            }
        });
    }
    text.push_str(&format!(
        "    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>\n",
        escaped(&told.join("\n"))
    ));
    text.into_bytes()
}

struct Case {
    name: String,
    /// The element and what it says; `None` if it passed.
    result: Option<(&'static str, String)>,
}

fn case(gate: &GateAnswer, answer: &FigureAnswer, strict: bool) -> Case {
    let workload = match answer.workload.as_str() {
        "" => "over all workloads",
        name => name,
    };
    let metric = answer.metric.as_ref();
    // As the sentence says it.
    let limit = unit::percent(gate.worse_than).replace(".0 ", " ");
    let ratio = answer.ratio.as_ref().map_or_else(
        || "there is no interval yet".to_owned(),
        |ratio| {
            format!(
                "ratio {:.3}, {} interval {:.3} to {:.3}",
                ratio.estimate,
                unit::percent(gate.confidence),
                ratio.low,
                ratio.high
            )
        },
    );
    let more = answer.more.map_or(String::new(), |more| {
        let what = match (gate.paired, more) {
            (true, 1) => "round",
            (true, _) => "rounds",
            (false, 1) => "run of each",
            (false, _) => "runs of each",
        };
        format!("; {more} more {what} would decide")
    });
    Case {
        name: metric.map_or_else(
            || format!("{workload}: not more than {limit} worse"),
            |metric| format!("{workload}, {}: not more than {limit} worse", metric.name),
        ),
        // JUnit has no word for undecided. Skipped is not red, which is what CI should do unless
        // asked.
        result: match (answer.outcome, strict) {
            (GateOutcome::Passed, _) => None,
            (GateOutcome::Worse, _) => {
                Some(("failure", format!("more than {limit} worse: {ratio}")))
            }
            (GateOutcome::Undecided, true) => {
                Some(("failure", format!("undecided: {ratio}{more}")))
            }
            (GateOutcome::Undecided, false) => {
                Some(("skipped", format!("undecided: {ratio}{more}")))
            }
        },
    }
}

/// A text as XML has it, in an attribute too; signs that XML cannot have become U+FFFD.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(letter),
            // XML 1.0 has no way to write most control characters, U+FFFE and U+FFFF, not even
            // escaped.
            letter if letter.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&letter) => {
                safe.push(char::REPLACEMENT_CHARACTER);
            }
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attributes that Jenkins' schema allows (xunit-plugin, junit-10.xsd), of the elements that are written here.
    const ALLOWED: &[(&str, &[&str])] = &[
        (
            "testsuites",
            &["name", "time", "tests", "failures", "errors"],
        ),
        (
            "testsuite",
            &["name", "time", "tests", "failures", "errors", "skipped"],
        ),
        ("testcase", &["name", "classname", "time"]),
        ("failure", &["message", "type"]),
        ("error", &["message", "type"]),
        ("skipped", &["message", "type"]),
        ("system-out", &[]),
    ];

    #[test]
    fn jenkins_allows_every_attribute() {
        let endings = [None, Some("failure"), Some("error"), Some("skipped")];
        let cases = endings.map(|ending| Case {
            name: "one".to_owned(),
            result: ending.map(|kind| (kind, "why".to_owned())),
        });
        let text = String::from_utf8(file("suite", &cases, &["told".to_owned()])).unwrap();
        for element in text.split('<').skip(2).filter(|it| !it.starts_with('/')) {
            let element = element.split('>').next().unwrap().trim_end_matches('/');
            let (name, attributes) = element.split_once(' ').unwrap_or((element, ""));
            let (_, allowed) = ALLOWED.iter().find(|(known, _)| *known == name).unwrap();
            for attribute in attributes.split_whitespace() {
                let (attribute, _) = attribute.split_once('=').unwrap();
                assert!(allowed.contains(&attribute), "{name}: {attribute}");
            }
        }
    }

    #[test]
    fn what_xml_cannot_have_is_not_in_it() {
        assert_eq!(
            escaped("a<b> & \"c\"\u{1}\u{1b}"),
            "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}\u{fffd}"
        );
    }
}
