//! What was typed, as the rooms that carry it out take it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Command, CommandFactory};

use super::failure::Failure;
use crate::commands::own_program::{OwnJob, OwnProgram};
use stackrace_base::setting::Settings;
use stackrace_base::unit;
use stackrace_load::tools;
use stackrace_places::place::machine_options::{
    ClientsOptions, MachineOptions, PowerOptions, SshOptions,
};
use stackrace_places::place::options;
use stackrace_run::prepare::job_file::{self, Variables};
use stackrace_show::export;
use stackrace_show::report;

pub(super) use stackrace_options::options::*;

/// Our own commands; the help says which forms and tables there are.
pub(super) fn command() -> Command {
    let forms = format!(
        "{} [default: by the name of the file, else terminal]",
        report::names()
    );
    let published = report::PUBLISHED_FORMS.join(", ");
    Arguments::command()
        .mut_subcommand("report", |command| {
            command.mut_arg("format", |option| option.help(forms))
        })
        .mut_subcommand("published", |command| {
            command.mut_arg("format", |option| option.help(published))
        })
        .mut_subcommand("export", |command| command.after_help(export_tables()))
}

/// The tables, shown under `stackrace export --help`.
fn export_tables() -> String {
    let lines: Vec<String> = export::ALL
        .iter()
        .map(|kind| format!("  {:<14}{}", kind.name, kind.summary))
        .collect();
    format!("Tables:\n{}", lines.join("\n"))
}

/// The same; the help of an option says where it is used.
fn with_places() -> Command {
    let commands = options::COMMANDS.iter();
    commands.fold(command(), |all, (name, _)| {
        all.mut_subcommand(name, |command| {
            command.mut_args(|option| {
                let words = option
                    .get_long()
                    .map(|long| options::help_words(name, long));
                let help = option.get_help().map(ToString::to_string);
                match (help, words.filter(|words| !words.is_empty())) {
                    (Some(help), Some(words)) => option.help(help + &words),
                    _ => option,
                }
            })
        })
    })
}

/// Everything that can be typed: our own commands, and one for each classic tool.
pub(super) fn whole() -> Command {
    tools::ALL.iter().fold(with_places(), |all, tool| {
        let command = Command::new(tool.name);
        all.subcommand((tool.command.arguments)(command))
    })
}

/// Which clients these are.
pub(super) fn clients(typed: &ClientsArgs) -> ClientsOptions<'_> {
    ClientsOptions {
        started: typed.started.as_deref(),
        processes: typed.processes,
        allocation: typed.allocation.nodes(),
    }
}

/// Which machines these are.
pub(super) fn machines(typed: &There) -> MachineOptions<'_> {
    MachineOptions {
        on: &typed.on,
        peers: &typed.peers,
        clients: clients(&typed.clients),
        agentless: typed.agent.is_none(),
        ssh: ssh(&typed.reach),
    }
}

/// The ssh command and its rights, as the session takes them.
pub(super) fn ssh(typed: &Reach) -> SshOptions<'_> {
    SshOptions {
        command: typed.ssh.words(),
        typed: typed.ssh.ssh.is_some(),
        sudo: typed.sudo,
    }
}

/// Commands that cut the power, as the session takes them; none: no power is really cut.
///
/// # Errors
/// The time is none.
pub(super) fn power(typed: &PowerArgs) -> Result<Option<PowerOptions<'_>>, Failure> {
    let within = unit::parse_lasting_ns(&typed.back_within);
    let within = within.map_err(|why| Failure::usage(format!("--back-within: {why}")))?;
    // clap has them go together.
    let both = typed.cut.as_deref().zip(typed.restore.as_deref());
    Ok(both.map(|(cut, restore)| PowerOptions {
        cut,
        restore,
        within: Duration::from_nanos(within),
    }))
}

/// A workload from the values of --with and --find-rate; `None` if neither was given.
type TypedWorkload<'a> =
    dyn Fn(Option<&str>, Option<&str>) -> Result<Option<Settings>, Failure> + 'a;

/// The workloads beside the first one, each as --with has it.
///
/// # Errors
/// There are several, and nothing says that they are measured at once; or there is only one.
fn beside(typed: &OwnProgramArgs, workload: &TypedWorkload<'_>) -> Result<Vec<Settings>, Failure> {
    match (typed.together, typed.with.len()) {
        (true, 0 | 1) => Err(Failure::usage("--together takes two workloads or more")
            .next("give one --with for each; the first one decides when all end")),
        (false, 2..) => Err(Failure::usage("--with is given several times").next(
            "add --together to measure them at the same time, or compare with one after the other",
        )),
        _ => {
            let others = typed.with.iter().skip(1);
            let others = others.map(|with| workload(Some(with), None));
            Ok(others
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .flatten()
                .collect())
        }
    }
}

/// The workload, job or command; none: the workloads of a purpose are compared. `replayed` is
/// the trace of --replay, `workload` reads the
/// values of --with and --find-rate, `variable` has the environment, which a job may use.
///
/// # Errors
/// There is no such workload, its settings are wrong, or the job file cannot be read.
pub(super) fn own_program(
    typed: OwnProgramArgs,
    replayed: Option<Settings>,
    workload: &TypedWorkload<'_>,
    variable: &Variables<'_>,
) -> Result<Option<OwnProgram>, Failure> {
    let measures = !typed.with.is_empty() || typed.find_rate.is_some();
    let given = measures || replayed.is_some() || typed.fio.is_some() || !typed.command.is_empty();
    let read = |file: PathBuf| {
        let text = job_file::read(&file, variable)?;
        Ok(OwnJob { file, text })
    };
    let beside = beside(&typed, workload)?;
    let first = typed.with.first().map(String::as_str);
    let first = match replayed {
        Some(replayed) => Some(replayed),
        None => workload(first, typed.find_rate.as_deref())?,
    };
    let fio = typed.fio.map(read).transpose()?;
    let (metrics, judged_by) = match typed.command.is_empty() {
        true => (Vec::new(), judged_by(typed.metric)?),
        false => (typed.metric, None),
    };
    Ok(given.then_some(OwnProgram {
        workload: first,
        home: typed.home,
        beside,
        fio,
        command: typed.command,
        prepare: typed.prepare,
        cleanup: typed.cleanup,
        metrics,
        judged_by,
        units: typed.unit,
        better: typed.better,
        parse: typed.parse,
        trial_time: typed.trial_time,
        no_sync: typed.no_sync,
        disk: typed.disk,
    }))
}

/// The metric of a workload or job that decides: the verdict rests on one.
fn judged_by(typed: Vec<String>) -> Result<Option<String>, Failure> {
    let mut typed = typed.into_iter();
    let (first, more) = (typed.next(), typed.next());
    if more.is_some() {
        let told = "a workload is judged by one --metric";
        return Err(Failure::usage(told)
            .next("give the one that decides; the report has them all, and `verdict --metric` asks for another one"));
    }
    if let Some((name, _)) = first.as_deref().and_then(|text| text.split_once('=')) {
        let told = format!("--metric {name}=…: only a command prints figures that are looked for");
        return Err(Failure::usage(told)
            .next("name a metric of the workload: --metric \"read latency p99\""));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_system_that_the_help_names_is_the_one_that_is_taken() {
        assert_eq!(super::SYSTEM, stackrace_remote::lab::system::DEFAULT);
    }
}
