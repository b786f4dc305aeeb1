//! `stackrace gate`: an exit code from a verdict.

use super::args::{Gate, Undecided};
use super::failure::{self, Failure};
use super::setting::Setting;
use super::terminal::print_bytes;
use super::words::{named, unknown};
use crate::record::{Record, Store};
use crate::report;
use crate::unit;
use crate::verdict::{self, GateError, GateOutcome, Threshold};

pub(super) fn exec(setting: &Setting, verb: &Gate) -> Result<u8, Failure> {
    let question = Threshold {
        worse_than: share("--worse-than", &verb.worse_than, 0.0..1.0)?,
        confidence: verb
            .confidence
            .as_ref()
            .map(|text| share("--confidence", text, 0.5..1.0))
            .transpose()?,
        workloads: verb.workload.clone(),
        metric: verb.metric.clone(),
    };
    let store = setting.session.open_store()?;
    let record = read(&store, &verb.run)?;
    let (other, base) = match &verb.baseline {
        Some(word) => {
            let (run, name) = word
                .split_once('/')
                .map_or((word.as_str(), None), |(run, name)| (run, Some(name)));
            (Some(read(&store, run)?), name)
        }
        None => (None, verb.against.as_deref()),
    };
    let (a, b) = sides(&record, other.as_ref(), verb.configuration.as_deref(), base)?;
    let baseline = (other.as_ref().unwrap_or(&record), a);
    let gate = verdict::gate(baseline, (&record, b), &question).map_err(explain)?;
    let told = if verb.json {
        format!("{:#}\n", serde_json::to_value(&gate).unwrap_or_default()).into_bytes()
    } else {
        let form = if verb.markdown {
            "markdown"
        } else {
            "terminal"
        };
        let mut page = report::gate(&gate, form, setting.screen);
        if setting.quiet && !verb.markdown {
            // The first paragraph is the answer.
            let end = page.windows(2).position(|two| two == b"\n\n");
            page.truncate(end.map_or(page.len(), |end| end + 1));
        }
        page
    };
    print_bytes(&told);
    Ok(match (&gate.failed, gate.outcome) {
        (Some(_), _) => failure::TRIAL_FAILED,
        (None, GateOutcome::Passed) => 0,
        (None, GateOutcome::Worse) => failure::WORSE,
        (None, GateOutcome::Undecided) => match verb.undecided {
            Undecided::Pass => 0,
            Undecided::Fail => failure::UNDECIDED,
        },
    })
}

fn share(word: &str, text: &str, valid: std::ops::Range<f64>) -> Result<f64, Failure> {
    let value = unit::parse_share(text).map_err(|why| Failure::usage(format!("{word}: {why}")))?;
    if !valid.contains(&value) {
        return Err(
            Failure::usage(format!("{word} {text} makes no sense")).next(format!(
                "choose a share of at least {} and below {}",
                unit::percent(valid.start),
                unit::percent(valid.end)
            )),
        );
    }
    Ok(value)
}

fn read(store: &Store, run: &str) -> Result<Record, Failure> {
    store
        .read(run)
        .map_err(|error| Failure::usage(error.to_string()).next(error.next()))
}

/// The baseline's configuration and the one that is asked about, by index, each of its run.
fn sides(
    record: &Record,
    other: Option<&Record>,
    configuration: Option<&str>,
    base: Option<&str>,
) -> Result<(usize, usize), Failure> {
    let names = names(record);
    let b = match (configuration, other, names.len()) {
        (Some(name), _, _) => named("configuration", name, &names)?,
        (None, Some(_), 1) => 0,
        (None, None, 2) => match base {
            Some(base) => 1 - named("configuration", base, &names)?,
            None => 1,
        },
        _ => return Err(name_one(record, "--configuration", &names)),
    };
    let a = match (base, other) {
        (Some(name), other) => named(
            "configuration",
            name,
            &other.map_or(names.clone(), self::names),
        )?,
        (None, None) if names.len() == 2 => 1 - b,
        (None, None) => return Err(name_one(record, "--against", &names)),
        (None, Some(other)) => {
            let theirs = self::names(other);
            let same = theirs.iter().position(|name| *name == names[b]);
            let only = (theirs.len() == 1).then_some(0);
            same.or(only)
                .ok_or_else(|| name_one(other, "--baseline RUN/NAME", &theirs))?
        }
    };
    if a == b && other.is_none() {
        return Err(
            Failure::usage(format!("{} is compared with itself", names[a]))
                .next(format!("there are: {}", names.join("; "))),
        );
    }
    Ok((a, b))
}

fn names(record: &Record) -> Vec<&str> {
    let configurations = record.head.configurations.iter();
    configurations
        .map(|configuration| configuration.name.as_str())
        .collect()
}

fn name_one(record: &Record, option: &str, names: &[&str]) -> Failure {
    let text = format!("{} has {} configurations", record.head.run, names.len());
    Failure::usage(text).next(format!("name one with {option}: {}", names.join("; ")))
}

fn explain(why: GateError) -> Failure {
    match why {
        GateError::Unknown { what, name, valid } => {
            let valid: Vec<&str> = valid.iter().map(String::as_str).collect();
            unknown(what, &name, &valid)
        }
        GateError::NothingInCommon => {
            Failure::usage("the two have no overall figure in common: their workloads differ")
                .next("name what both have: --workload NAME")
        }
    }
}
