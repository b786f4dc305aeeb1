//! `stackrace verdict`: what stored results say to any question, at any later time.

use super::args::Ask;
use super::failure::Failure;
use super::setting::Setting;
use super::terminal::{print_data, print_styled};
use super::words::{self, confidence, share};
use stackrace_base::setting::nearest;
use stackrace_judge::verdict::{self, Question, Sought};
use stackrace_show::report;

pub(super) fn exec(setting: &Setting, verb: Ask) -> Result<u8, Failure> {
    let question = Question {
        margin: share("--margin", verb.margin.as_ref(), 0.0..1.0)?,
        confidence: confidence(verb.confidence.as_ref())?,
        sought: match (verb.compare, verb.factor) {
            // A comparison is the narrower question.
            (Some(words), _) => Some(Sought::Comparison(words)),
            (None, Some(name)) => Some(Sought::Factor(name)),
            (None, None) => None,
        },
        metric: verb.metric,
        workload: verb.workload,
    };
    let store = setting.session.look_into_store()?;
    let records = words::runs(&store, &verb.runs)?;
    let answers = verdict::ask(&records, &question).map_err(|missing| {
        let what = format!("{} in run {} named", missing.what, missing.run);
        let valid: Vec<&str> = missing.valid.iter().map(String::as_str).collect();
        // A name that is there is not proposed instead of itself.
        let alike = || valid.iter().copied().filter(|valid| *valid != missing.name);
        words::no_such(
            &what,
            &missing.name,
            nearest(&missing.name, alike()),
            &valid,
        )
    })?;
    if verb.json {
        let json = serde_json::to_value(&answers).unwrap_or_default();
        print_data(format!("{json:#}\n").as_bytes());
    } else {
        print_styled(&report::answers(&answers, setting.screen), setting.colour);
    }
    Ok(0)
}
