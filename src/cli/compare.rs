//! `stackrace compare`: existing directories compared with each other, without a study file.

use super::answer;
use super::args::{self, Compare};
use super::check;
use super::failure::Failure;
use super::load;
use super::output;
use super::run::{overrides, time};
use super::setting::Setting;
use super::terminal::print;
use super::variable::variable;
use crate::commands::compare::{self, CompareRequest};
use crate::commands::own_program;
use stackrace_base::event::Price;
use stackrace_base::unit;
use stackrace_load::programs::fio::FIO;
use stackrace_places::place::clients::AskedClients;
use stackrace_places::place::options::AskedPlace;
use stackrace_run::prepare::study_file::Overrides;
use stackrace_study::purpose::Purpose;

/// Time of a first impression, ns.
const QUICK_NS: u64 = 30_000_000_000;

/// Carries out `stackrace compare`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: Compare) -> Result<u8, Failure> {
    let (purpose, required) = check::purpose_asked(&verb.purpose)?;
    let time_asked = time("--time", verb.time.as_ref())?;
    let mut request = request(&verb, purpose, time_asked)?;
    let clients = request.clients.as_ref();
    let place = clients.map_or(AskedPlace::Here, |_| AskedPlace::Clients);
    setting.typed.check(place)?;
    // A page that cannot be written is refused now and not after the measurement.
    output::check_before_run(verb.output.html.as_deref())?;
    setting.events.name(verb.output.events.as_deref())?;
    let typed = |with: Option<&str>, bound: Option<&str>| match (with, bound) {
        (with, Some(bound)) => {
            let time = time_asked.or(verb.quick.then_some(QUICK_NS));
            load::find_rate(with, bound, &request.directories, time).map(Some)
        }
        (Some(with), None) if with.split_whitespace().next() == Some(FIO) => {
            Err(Failure::usage("--with gives fio no job file").next("write --fio JOB.fio"))
        }
        (Some(with), None) => load::workload(with, &request.directories).map(Some),
        (None, None) => Ok(None),
    };
    let replayed = load::replayed(&verb.own)?;
    if let Some(own) = args::own_program(verb.own, replayed, &typed, &variable)? {
        if verb.print_study {
            print(&own_program::printed(&request, &own)?);
            return Ok(0);
        }
        let finished = own_program::run(&setting.session, &request, &own, setting)?;
        return answer::finish(setting, finished, &verb.output, verb.deciding.decide);
    }
    // One alone is asked whether it does what the purpose takes; several only where that was typed.
    if request.directories.len() == 1 || verb.purpose.contains(':') {
        request.required = required;
    }
    let prepared = compare::prepare(&setting.session, &request, setting)?;
    if verb.print_study {
        print(&prepared.printed(&request.overrides));
        return Ok(0);
    }
    let finished = compare::run(&setting.session, &request, prepared, setting)?;
    check::finish(
        setting,
        finished,
        ((&request, None), verb.deciding.decide),
        &verb.output,
    )
}

/// The request as it was typed, of a purpose and in a time; what is required stands apart.
fn request(
    verb: &Compare,
    purpose: &'static Purpose,
    time_asked: Option<u64>,
) -> Result<CompareRequest, Failure> {
    let size = verb.size.as_deref().map(unit::parse_bytes).transpose();
    Ok(CompareRequest {
        directories: verb.directories.clone(),
        purpose,
        time_ns: match (verb.quick, time_asked) {
            // clap refuses --quick together with --time.
            (true, _) => QUICK_NS,
            (false, asked) => asked.unwrap_or(compare::TIME_NS),
        },
        quick: verb.quick,
        costs: costs(&verb.cost, verb.directories.len())?,
        size: size.map_err(|why| Failure::usage(format!("--size: {why}")))?,
        like: verb.like.clone(),
        anyway: verb.anyway,
        warm: verb.warm,
        required: Vec::new(),
        clients: AskedClients::named(args::clients(&verb.clients), &args::ssh(&verb.reach))?,
        overrides: Overrides {
            // None where the default holds: the study then says the time itself.
            time_max_ns: match verb.quick {
                true => Some(QUICK_NS),
                false => time_asked,
            },
            ..overrides(&verb.deciding, &verb.how_long, verb.quick)?
        },
    })
}

/// What each directory's storage costs, as it was typed: one for each of them, in one currency.
fn costs(typed: &[String], directories: usize) -> Result<Vec<Price>, Failure> {
    let read = |text: &String| {
        Price::read(text)
            .map_err(|why| Failure::usage(format!("--cost: {}", why.what)).next(why.next))
    };
    let costs = typed
        .iter()
        .map(read)
        .collect::<Result<Vec<Price>, Failure>>()?;
    if !costs.is_empty() && costs.len() != directories {
        let given = unit::counted(costs.len(), "cost");
        let what = format!("--cost: {given}, and there are {directories} directories");
        return Err(Failure::usage(what).next("give --cost once for each, in their order"));
    }
    match costs.iter().find(|cost| !cost.is_like(&costs[0])) {
        Some(other) => {
            let what = format!(
                "--cost: a cost in {} beside one in {}",
                other.unit(),
                costs[0].unit()
            );
            Err(Failure::usage(what).next("write all of them in one currency, paid alike"))
        }
        None => Ok(costs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_one_for_each_directory_and_alike() {
        let read = |typed: &[&str]| {
            let typed: Vec<String> = typed.iter().map(|&it| it.to_owned()).collect();
            costs(&typed, 2).map_err(|refused| refused.render())
        };
        assert_eq!(read(&[]).unwrap(), []);
        assert_eq!(read(&["73 EUR", "0.5 eur"]).unwrap()[1].words(), "0.50 EUR");
        for (typed, said) in [
            (&["73 EUR"][..], "1 cost, and there are 2 directories"),
            (&["73 EUR", "cheap"], "\"cheap\" is no cost"),
            (&["73 EUR", "8 USD"], "a cost in USD beside one in EUR"),
            (
                &["73 EUR", "8 EUR per month"],
                "a cost in EUR per month beside one in EUR",
            ),
        ] {
            let refused = read(typed).unwrap_err();
            assert!(refused.contains(said), "{typed:?}: {refused}");
        }
    }
}
