//! `stackrace gate`: an exit code from a verdict.

use super::args::{Gate, Undecided};
use super::failure::{self, Failure};
use super::output;
use super::setting::Setting;
use super::terminal::{print, print_data, print_styled};
use super::words::{self, confidence, named, share, unknown};
use stackrace_base::event::Observation;
use stackrace_base::unit;
use stackrace_judge::verdict::{
    self, Enough, Evidence, GateAnswer, GateError, GateOutcome, RequiredRow, Threshold, judge,
};
use stackrace_results::record::Record;
use stackrace_show::report;

pub(super) fn exec(setting: &Setting, verb: &Gate) -> Result<u8, Failure> {
    let Some(limit) = &verb.worse_than else {
        return required(setting, verb);
    };
    // Exactly nothing is a limit, too: any loss that is certain.
    let worse_than = match unit::parse_share(limit) {
        Ok(0.0) => 0.0,
        _ => share("--worse-than", Some(limit), 0.0..1.0)?.unwrap_or_default(),
    };
    let question = Threshold {
        worse_than,
        confidence: confidence(verb.confidence.as_ref())?,
        workloads: verb.workload.clone(),
        metric: verb.metric.clone(),
        anyway: verb.anyway,
    };
    // Runs of one side are further repetitions. Without a baseline it is open which of them would be
    // the other side.
    if verb.runs.len() > 1 && verb.baseline.is_empty() {
        return Err(
            Failure::usage("several runs are compared only with runs of a baseline")
                .next("name those too: --baseline RUN, once for each"),
        );
    }
    check_junit(verb)?;
    let store = setting.session.look_into_store()?;
    let records = words::runs(&store, &verb.runs)?;
    let mut others = Vec::new();
    for word in &verb.baseline {
        let (run, name) = word
            .split_once('/')
            .map_or((word.as_str(), None), |(run, name)| (run, Some(name)));
        others.push((words::run(&store, run)?, name));
    }
    let (baseline, compared) = sides(&records, &others, verb)?;
    let gate = verdict::gate(&baseline, &compared, &question).map_err(explain)?;
    if let Some(path) = &verb.junit {
        output::write(
            path,
            &report::junit(&gate, verb.undecided == Undecided::Fail),
        )?;
    }
    tell(setting, &gate, verb);
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

/// Whether what a run requires is met, where no limit of a comparison is given.
fn required(setting: &Setting, verb: &Gate) -> Result<u8, Failure> {
    let record = match verb.runs.as_slice() {
        [run] => words::run(&setting.session.look_into_store()?, run)?,
        _ => {
            return Err(Failure::usage("what is required is asked of one run")
                .next("name one, or compare them: --baseline RUN --worse-than 5%"));
        }
    };
    check_junit(verb)?;
    let mut verdict = judge(&Evidence::of(&record));
    let names = names(&record);
    let asked = match &verb.configuration {
        Some(name) => verdict.enough_of(named("configuration", name, &names)?),
        None => verdict.enough(),
    };
    let Some(enough) = asked else {
        let text = format!(
            "{} requires nothing, and no limit is given",
            record.head.run
        );
        return Err(Failure::usage(text).next("say how much worse is too much: --worse-than 5%"));
    };
    // One configuration was asked for: what others miss, and where they failed, is no part of the answer.
    if let Some(name) = &verb.configuration {
        verdict.required.retain(|row| row.name == *name);
        let rows = verdict.required.iter().map(RequiredRow::words);
        let rows: Vec<String> = rows.collect();
        verdict.sentence = format!("{name}: {}: {}.", enough.words(), rows.join("; "));
        verdict.details.clear();
    }
    let asked = |trial: &&Observation| {
        let name = &record.head.configurations[trial.configuration].name;
        verb.configuration
            .as_ref()
            .is_none_or(|asked| asked == name)
    };
    let failed = record.failures().find(asked);
    let error = failed.and_then(|trial| trial.ended.error());
    if let Some(path) = &verb.junit {
        let strict = verb.undecided == Undecided::Fail;
        let run = &record.head.run;
        output::write(path, &report::junit_required(run, &verdict, error, strict))?;
    }
    if verb.markdown {
        print_styled(
            &report::required(&verdict, error, setting.screen),
            setting.colour,
        );
    } else if verb.json {
        let rows = serde_json::to_value(&verdict.required).unwrap_or_default();
        let json =
            serde_json::json!({"enough": enough, "sentence": verdict.sentence, "required": rows});
        print_data(format!("{json:#}\n").as_bytes());
    } else {
        let details = verdict.details.iter().filter(|_| !setting.quiet);
        let all = std::iter::once(&verdict.sentence).chain(details);
        let columns = setting.screen.columns();
        let lines = all.flat_map(|text| report::wrap(text, columns));
        print(&lines.map(|line| line + "\n").collect::<String>());
    }
    Ok(match enough {
        _ if failed.is_some() => failure::TRIAL_FAILED,
        Enough::Meets => 0,
        Enough::Fails => failure::WORSE,
        Enough::Open => match verb.undecided {
            Undecided::Pass => 0,
            Undecided::Fail => failure::UNDECIDED,
        },
    })
}

/// Prints the answer.
fn tell(setting: &Setting, gate: &GateAnswer, verb: &Gate) {
    if verb.json {
        let json = serde_json::to_value(gate).unwrap_or_default();
        print_data(format!("{json:#}\n").as_bytes());
        return;
    }
    let form = match verb.markdown {
        true => "markdown",
        false => "terminal",
    };
    let mut page = report::gate(gate, form, setting.screen);
    if setting.quiet && !verb.markdown {
        // The first paragraph is the answer.
        page = page.first_paragraph();
    }
    print_styled(&page, setting.colour);
}

/// Refuses a file that the answer cannot be written to, before anything is read.
fn check_junit(verb: &Gate) -> Result<(), Failure> {
    let Some(path) = &verb.junit else {
        return Ok(());
    };
    output::check(path)?;
    if output::is_standard_output(path) {
        return Err(
            Failure::usage("--junit: the answer is printed to standard output").next("name a file"),
        );
    }
    Ok(())
}

/// Runs of one side, each with its configuration.
type Side<'a> = Vec<(&'a Record, usize)>;

/// Both sides: the baseline's runs and those that are asked about, each with its configuration.
fn sides<'a>(
    records: &'a [Record],
    others: &'a [(Record, Option<&str>)],
    verb: &Gate,
) -> Result<(Side<'a>, Side<'a>), Failure> {
    let configuration = verb.configuration.as_deref();
    let record = &records[0];
    if others.is_empty() {
        let (a, b) = pair(record, configuration, verb.against.as_deref())?;
        return Ok((vec![(record, a)], vec![(record, b)]));
    }
    let own = names(record);
    let b = match (configuration, own.len()) {
        (Some(name), _) => named("configuration", name, &own)?,
        (None, 1) => 0,
        (None, _) => return Err(name_one(record, "--configuration", &own)),
    };
    let place = |other: &Record, name: Option<&str>, option: &str| {
        let theirs = names(other);
        if let Some(name) = name {
            return named("configuration", name, &theirs);
        }
        // A baseline usually has the configuration under the same name.
        let same = theirs.iter().position(|name| *name == own[b]);
        same.or((theirs.len() == 1).then_some(0))
            .ok_or_else(|| name_one(other, option, &theirs))
    };
    let compared = records.iter().map(|record| {
        let option = "--configuration NAME, which every run must have";
        Ok((record, place(record, configuration, option)?))
    });
    let compared: Vec<(&Record, usize)> = compared.collect::<Result<_, Failure>>()?;
    let baseline = others
        .iter()
        .map(|(record, name)| Ok((record, place(record, *name, "--baseline RUN/NAME")?)));
    let baseline: Vec<(&Record, usize)> = baseline.collect::<Result<_, Failure>>()?;
    if let ([(a, at)], [(b, other)]) = (baseline.as_slice(), compared.as_slice())
        // Only where both sides are one run: several runs may share a configuration.
        && a.head.run == b.head.run
        && at == other
    {
        return Err(with_itself(own[*at], &own));
    }
    Ok((baseline, compared))
}

/// Two configurations of one run by index: the baseline and the one that is asked about.
fn pair(
    record: &Record,
    configuration: Option<&str>,
    base: Option<&str>,
) -> Result<(usize, usize), Failure> {
    let names = names(record);
    let b = match (configuration, names.len()) {
        (Some(name), _) => named("configuration", name, &names)?,
        (None, 2) => match base {
            // Of two, the one that is not the baseline.
            Some(base) => 1 - named("configuration", base, &names)?,
            None => 1,
        },
        _ => return Err(name_one(record, "--configuration", &names)),
    };
    let a = match base {
        Some(name) => named("configuration", name, &names)?,
        None if names.len() == 2 => 1 - b,
        None => return Err(name_one(record, "--against", &names)),
    };
    match a == b {
        true => Err(with_itself(names[a], &names)),
        false => Ok((a, b)),
    }
}

fn with_itself(name: &str, names: &[&str]) -> Failure {
    Failure::usage(format!("{name} is compared with itself"))
        .next(format!("there are: {}", names.join("; ")))
}

fn names(record: &Record) -> Vec<&str> {
    let configurations = record.head.configurations.iter();
    configurations
        .map(|configuration| configuration.name.as_str())
        .collect()
}

fn name_one(record: &Record, option: &str, names: &[&str]) -> Failure {
    if let [only] = names {
        return Failure::usage(format!(
            "{} has one configuration, {only}, and nothing to compare it with",
            record.head.run
        ))
        .next("name runs to compare it with: --baseline RUN");
    }
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
        GateError::OtherWork(differing) => Failure::refused(format!(
            "the runs did other work or ran on another machine, so their ratio is not one of the storage:\n       {}",
            differing.join("\n       ")
        ))
        .next("repeat the baseline with this work on this machine, or compare all the same with --anyway"),
        GateError::SameResults(run) => Failure::refused(format!(
            "the results of {run} are there more than once: they would count as independent ones"
        ))
        .next("name each run once, and import each text into one run"),
    }
}
