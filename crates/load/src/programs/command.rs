//! Any command as a workload.
//!
//! The command runs in the trial's empty directory, once a trial. `{dir}` in it, and `$STACKRACE_DIR`
//! in its environment, are that directory. What `prepare` makes there is made cold before the clock
//! starts; the clock stops when the command has ended and, unless asked otherwise, everything it wrote
//! is durable. An exit status other than 0 is a failed trial.

use stackrace_base::printed::PrintedFigure;
use std::ffi::OsString;

use stackrace_engine::PhaseOutcome;

use super::ran;
use super::reported::{Printed, ReportedFigure, results_in, told_in};
use super::same_work::{SameWork, trial_names};
use crate::tools::importers;
use crate::workload::{Cost, OverShell, Place, Workload, WorkloadError, WorkloadKind, trouble};
use stackrace_base::event::{Better, MetricHead, OperationsOf};
use stackrace_base::owned::held::with_real_names;
use stackrace_base::setting::{Refusal, SettingDoc, Settings, unknown_word};
use stackrace_base::unit;
use stackrace_machine::host::argv;
use stackrace_machine::host::program::PRINTED_MAX;

/// The setting with a command for the shell.
pub const RUN: &str = "run";
/// The setting with a command word by word.
pub const WORDS: &str = "words";
/// The setting with what is done before the clock starts.
pub const PREPARE: &str = "prepare";
/// Placeholder for the trial's directory.
const DIR: &str = "{dir}";

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "command",
    summary: "a command of your own: its time, its processor time, its bytes, figures it prints",
    source: "the command, once a trial, as hyperfine runs it; a study's command needs --allow-commands",
    settings: &[
        SettingDoc::text(
            RUN,
            "",
            "The command, for sh; $STACKRACE_DIR, {{dir}} in a study, is its directory.",
        ),
        SettingDoc::texts(
            WORDS,
            "",
            "The command word by word, without a shell, in place of run.",
        ),
        SettingDoc::text(
            PREPARE,
            "",
            "Command for sh before each trial, outside the clock; caches are dropped after it.",
        ),
        SettingDoc::text(
            "cleanup",
            "",
            "Command for sh after each trial, outside the clock.",
        ),
        SettingDoc::texts(
            "metrics",
            "",
            "Figures it prints: NAME=PATTERN, NAME=json:/POINTER, or with parse NAME; the first is primary.",
        ),
        SettingDoc::texts("units", "", "Unit of each of the metrics, or one for all."),
        SettingDoc::texts(
            "better",
            "",
            "higher or lower, for each of the metrics, or one for all.",
        )
        .computed("higher"),
        SettingDoc::text(
            "parse",
            "",
            "Known tool whose output it prints: fio, bonnie++, sysbench, postmark …",
        ),
        SettingDoc::time(
            "time-limit",
            "10 min",
            "A trial that takes longer is ended, and has failed.",
        ),
        SettingDoc::flag(
            "sync-at-end",
            "true",
            "Make what it wrote durable before the clock stops.",
        ),
        SettingDoc::bytes("disk", "64 MiB", "Room that it needs."),
    ],
    example: "command = { run = \"head -c 1000000 /dev/zero > file\" }",
    over_shell: OverShell::Runs,
    parse: |settings| Ok(Box::new(OwnCommand::parse(settings)?)),
    operations: OperationsOf::Command,
    ..WorkloadKind::PLAIN
};

/// A command as it is given.
#[derive(Debug)]
enum Given {
    /// A line for sh.
    Line(String),
    /// A program and its arguments, with no shell in between.
    Words(Vec<String>),
}

#[derive(Debug)]
struct OwnCommand {
    run: Given,
    prepare: Option<String>,
    cleanup: Option<String>,
    figures: Vec<ReportedFigure>,
    parse: Option<String>,
    work: SameWork,
    time_max_ns: u64,
    durable: bool,
    disk: u64,
}

impl OwnCommand {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let line = settings.optional_text(RUN)?;
        let words = settings.optional_texts(WORDS)?;
        // One of the two: which of them would count is not to be guessed.
        let run = match (line, words) {
            (Some(line), None) if !line.trim().is_empty() => Given::Line(line),
            (None, Some(words)) if words.first().is_some_and(|word| !word.is_empty()) => {
                Given::Words(words)
            }
            (Some(_), Some(_)) => {
                let message = "command has run and words, which say the same thing";
                return Err(settings.refuse(WORDS, message, "leave one out"));
            }
            _ => {
                let message = "command needs \"run\"";
                let help = "write run = \"make -j8\"";
                return Err(Refusal::at(&settings.span, message, help));
            }
        };
        let parse = settings.optional_text("parse")?;
        if let Some(tool) = &parse {
            known(settings, tool)?;
        }
        let figures = figures(settings, parse.as_deref(), &run)?;
        Ok(Self {
            work: SameWork::of(format!("{run:?}\n{parse:?}")),
            run,
            figures,
            prepare: settings.optional_text(PREPARE)?,
            cleanup: settings.optional_text("cleanup")?,
            parse,
            time_max_ns: settings.lasting_ns("time-limit")?,
            durable: settings.flag("sync-at-end")?,
            disk: settings.bytes("disk")?,
        })
    }

    /// The command as it is started in a directory.
    fn argv(&self, place: &Place<'_>) -> Result<Vec<OsString>, WorkloadError> {
        // Paths of this process (`/proc/self/fd/…`) mean another directory in the command.
        let dir = with_real_names(&place.directory.to_string_lossy());
        match &self.run {
            Given::Line(line) => shell(line, &dir),
            Given::Words(words) => Ok(argv(words.iter().map(|word| word.replace(DIR, &dir)))),
        }
    }

    /// Runs a line for sh outside the clock.
    fn aside(
        &self,
        what: &str,
        line: Option<&str>,
        place: &Place<'_>,
    ) -> Result<(), WorkloadError> {
        let Some(line) = line else { return Ok(()) };
        let dir = with_real_names(&place.directory.to_string_lossy());
        let ran = ran::run(place, &shell(line, &dir)?, self.time_max_ns, false);
        ran.map_err(|error| error.while_doing(what)).map(drop)
    }
}

/// Refuses a tool that no importer reads.
fn known(settings: &Settings, tool: &str) -> Result<(), Refusal> {
    let mut names = importers().iter().map(|importer| importer.name);
    if names.any(|name| name == tool) {
        return Ok(());
    }
    if tool.contains('(') {
        let what = format!("\"{tool}\" is a pattern, and parse takes the name of a tool");
        let help = "write it as a metric, --metric 'NAME=PATTERN', and leave out parse";
        return Err(settings.refuse("parse", what, help));
    }
    Err(unknown_word(
        settings.span_of("parse"),
        &format!("the output of \"{tool}\" cannot be read"),
        tool,
        importers().iter().map(|importer| importer.name),
        "tools",
    ))
}

fn figures(
    settings: &Settings,
    parse: Option<&str>,
    command: &Given,
) -> Result<Vec<ReportedFigure>, Refusal> {
    let metrics = settings.optional_texts("metrics")?.unwrap_or_default();
    // One word for all is what most have; a list of another length leaves some without.
    let of_each = |name: &str, fallback: &str| {
        let given = settings.optional_texts(name)?.unwrap_or_default();
        match given.as_slice() {
            [] => Ok(vec![fallback.to_owned(); metrics.len()]),
            [one] => Ok(vec![one.clone(); metrics.len()]),
            _ if given.len() == metrics.len() => Ok(given),
            _ => Err(settings.refuse(
                name,
                format!(
                    "{name} has {} for {}",
                    unit::counted(given.len(), "word"),
                    unit::counted(metrics.len(), "metric")
                ),
                "give one for each, in the order of metrics, or one for all",
            )),
        }
    };
    let (units, better) = (of_each("units", "")?, of_each("better", "")?);
    let mut figures: Vec<ReportedFigure> = Vec::new();
    for (text, (unit, better)) in metrics.iter().zip(units.iter().zip(&better)) {
        let better = match better.as_str() {
            "higher" => Some(Better::Higher),
            "lower" => Some(Better::Lower),
            "" => None,
            other => {
                let message = format!("better cannot be \"{other}\"");
                let help = "it is one of: higher, lower";
                return Err(settings.refuse("better", message, help));
            }
        };
        let refused = |(what, help): (String, String)| settings.refuse("metrics", what, help);
        let figure = ReportedFigure::new(text, unit, better, parse).map_err(refused)?;
        let name = &figure.head().name;
        // Values are found by name: of two equal ones only the first could be asked for.
        let same = |head: &MetricHead| head.name == *name;
        if ran::heads().iter().any(same) || figures.iter().any(|other| same(other.head())) {
            let what = format!("there are two metrics \"{name}\"");
            let help =
                "give it another name; every command has elapsed, its processor time and its bytes";
            return Err(refused((what, help.to_owned())));
        }
        figures.push(figure.of_command(&format!("{command:?}")));
    }
    Ok(figures)
}

/// A line for sh, with the directory in the place of `{dir}`.
///
/// # Errors
/// The directory would need quotes there.
pub(super) fn shell(line: &str, dir: &str) -> Result<Vec<OsString>, WorkloadError> {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    // Where quotes would be needed, only the line's author knows which ones stand around it.
    if line.contains(DIR) && !dir.chars().all(bare) {
        return Err(trouble(format!(
            "{DIR} cannot stand for {dir} in a line for sh: write \"$STACKRACE_DIR\", with the quotes"
        )));
    }
    Ok(argv(["sh", "-c", &line.replace(DIR, dir)]))
}

impl Workload for OwnCommand {
    fn summary(&self) -> String {
        let line = match &self.run {
            Given::Line(line) => line.clone(),
            Given::Words(words) => stackrace_base::event::shell(words),
        };
        let end = if self.durable {
            ", durable before the clock stops"
        } else {
            ""
        };
        format!("the command `{line}`{end}")
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let own = self.figures.iter().map(|figure| figure.head().clone());
        own.chain(ran::heads()).collect()
    }

    fn cost(&self) -> Cost {
        Cost {
            // Not known before it has run: what it needs is what was said.
            measured_bytes: None,
            disk_bytes: self.disk,
            ..Cost::default()
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["command"]
    }

    fn commands(&self) -> Vec<String> {
        let run = match &self.run {
            Given::Line(line) => line.clone(),
            Given::Words(words) => stackrace_base::event::shell(words),
        };
        // What the clock does not count is run with the same rights.
        let aside = self.prepare.iter().chain(&self.cleanup).cloned();
        std::iter::once(run).chain(aside).collect()
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.aside("prepare", self.prepare.as_deref(), place)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let argv = self.argv(place)?;
        let Some(ran) = ran::run(place, &argv, self.time_max_ns, self.durable)? else {
            return Ok(ran::outcome(&argv, None, 0, Vec::new()));
        };
        let elapsed_ns = ran.elapsed_ns;
        ran::fine_enough(&ran, elapsed_ns)?;
        // The figure of a part could pass for that of the whole.
        if ran.stdout_cut && !self.figures.is_empty() {
            let most = unit::bytes(PRINTED_MAX as u64);
            return Err(trouble(format!(
                "it printed more than {most}, and its figures are looked for in what it printed: let it print less"
            )));
        }
        let tool = self.parse.as_deref();
        let printed = Printed {
            out: &ran.stdout,
            errors: &ran.stderr,
        };
        let own = self.figures.iter();
        let own = own.map(|figure| figure.read(printed, tool));
        let own: Vec<PrintedFigure> = own.collect::<Result<_, String>>().map_err(trouble)?;
        let mut reported: Vec<Option<f64>> = own.iter().map(|found| Some(found.value)).collect();
        let mut steps: Vec<Option<f64>> = own.iter().map(|found| Some(found.step)).collect();
        reported.extend(ran::values(&ran, elapsed_ns));
        steps.extend(ran::steps(&ran));
        let parsed = self.figures.iter().any(ReportedFigure::is_imported);
        let (told, work) = match parsed {
            true => {
                let results = results_in(printed, tool).map_err(trouble)?;
                let names = trial_names(place);
                let work = self.work.check(&results, &names).map_err(trouble)?;
                (told_in(&results), work)
            }
            false => (Vec::new(), None),
        };
        Ok(PhaseOutcome {
            reported_steps: steps,
            told,
            work,
            ..ran::outcome(&argv, Some(&ran), elapsed_ns, reported)
        })
    }

    fn finish(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.aside("cleanup", self.cleanup.as_deref(), place)
    }
}
