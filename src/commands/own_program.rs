//! Compares existing directories with a command that the user gives.
//!
//! The user typed the command: it needs no permission. As for every comparison, a study is written and
//! run. The command is first tried once in the first directory. So a command that fails is refused
//! before the run, and its time is known.

use std::path::PathBuf;
use std::sync::Arc;

use super::probe::probe;
use crate::commands::compare::{
    CompareRequest, ComparedPath, comparable, names, reach_clients, rooms, sides, study_of, typed,
    watched, workload,
};
use crate::commands::room::{self, RoomAt};
use crate::commands::warned::first_impression;
use crate::sizes::shape::{MEASURING_SHARE, with_time};
use stackrace_base::event::{LeftBehind, shell};
use stackrace_base::failure::Failure;
use stackrace_base::setting::{GivenSetting, Settings, Value, advised_size};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::{self, ShownPath};
use stackrace_load::programs::fio::{CONTENT, FIO, JOB};
use stackrace_load::programs::{PREPARE, RUN, WORDS};
use stackrace_load::workload::{find_rate, replay};
use stackrace_machine::host::local::LocalHost;
use stackrace_places::place::clients;
use stackrace_run::execute::{self, FinishedRun};
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::first_round;
use stackrace_run::prepare::observer::{Caught, Observer};
use stackrace_run::prepare::permission;
use stackrace_run::prepare::preflight;
use stackrace_run::prepare::study_file;
use stackrace_stats::FIRST_LOOK;
use stackrace_study::study::{Study, StudyTable, literal};

/// A command, or one workload, to compare with, as it was typed.
#[derive(Clone, Default)]
pub(crate) struct OwnProgram {
    /// A workload with its settings; `None` if it is a command.
    pub(crate) workload: Option<Settings>,
    /// The directory where a replayed trace was recorded; `None` if it is not among them, or nothing is replayed.
    pub(crate) home: Option<PathBuf>,
    /// The workloads that are measured at the same time; empty if it is alone.
    pub(crate) beside: Vec<Settings>,
    /// A job for fio; `None` if it is a workload or a command.
    pub(crate) fio: Option<OwnJob>,
    /// The command: one word is a line for sh, more are the program and its arguments.
    pub(crate) command: Vec<String>,
    /// A line for sh before each trial.
    pub(crate) prepare: Option<String>,
    /// A line for sh after each trial.
    pub(crate) cleanup: Option<String>,
    /// `NAME=PATTERN`, `NAME=json:/POINTER`, or the name of a metric of the tool.
    pub(crate) metrics: Vec<String>,
    /// The metric that a workload or a job is judged by; none: its first.
    pub(crate) judged_by: Option<String>,
    /// Units of the metrics.
    pub(crate) units: Vec<String>,
    /// Directions of the metrics.
    pub(crate) better: Vec<String>,
    /// The tool whose output it prints.
    pub(crate) parse: Option<String>,
    /// Longest time of a trial, as it was typed.
    pub(crate) trial_time: Option<String>,
    /// True if what it wrote is not made durable inside the clock.
    pub(crate) no_sync: bool,
    /// Room that it needs, as it was typed.
    pub(crate) disk: Option<String>,
}

/// A job file that was named, and its text.
#[derive(Clone)]
pub(crate) struct OwnJob {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
}

impl OwnProgram {
    /// Its name in reports: that of the program.
    pub(super) fn name(&self) -> String {
        if let Some(workload) = &self.workload {
            return workload.owner.clone();
        }
        if let Some(job) = &self.fio {
            let stem = job.file.file_stem().unwrap_or_default();
            return stem.to_string_lossy().into_owned();
        }
        command_name(&self.command)
    }

    /// Its name, with the metric that it is judged by where that was chosen.
    fn judged_name(&self) -> String {
        match &self.judged_by {
            Some(metric) => format!("{}, {metric}", self.name()),
            None => self.name(),
        }
    }

    /// The same with the name of the configuration where it was recorded, if that was said.
    ///
    /// # Errors
    /// That directory is not compared.
    fn at_home(&self, sides: &[ComparedPath]) -> Result<Self, Failure> {
        let mut own = self.clone();
        let (Some(home), Some(settings)) = (&self.home, &mut own.workload) else {
            return Ok(own);
        };
        // Its name may be another one: a link, or a relative path.
        let path = home.canonicalize().unwrap_or_else(|_| home.clone());
        let names = names::of(sides.iter().map(|side| side.path.as_path()));
        let named = names.into_iter().zip(sides);
        let mut named = named.filter(|(_, side)| side.path == path);
        let (name, _) = named.next().ok_or_else(|| {
            Failure::usage(format!("--home {} is not compared", home.shown())).next(
                "name one of the directories that are compared, on the storage where the trace was recorded",
            )
        })?;
        let home = GivenSetting::new(replay::HOME, name.as_str());
        settings.settings.push(home);
        Ok(own)
    }

    /// Returns true if it is a recorded application.
    fn replays(&self) -> bool {
        let workload = self.workload.as_ref();
        workload.is_some_and(|workload| workload.owner == replay::REPLAY)
    }

    /// What to do where it failed when it was tried.
    fn remedy(&self) -> String {
        match (&self.workload, &self.fio) {
            (Some(_), _) if self.replays() => "mend what it says".to_owned(),
            (Some(settings), _) => {
                let name = &settings.owner;
                format!(
                    "mend what it says, or change its settings: --with \"{name} SETTING=VALUE\" (stackrace show \
                     workload {name})"
                )
            }
            (None, Some(job)) => format!("mend what it says in {}", job.file.shown()),
            (None, None) => {
                "mend what it says; a command must end with exit status 0 in an empty directory"
                    .to_owned()
            }
        }
    }

    /// What to do where there is too little room for it.
    fn smaller(&self, at: &[RoomAt<'_>]) -> String {
        match &self.workload {
            None if self.fio.is_none() => {
                return "free space there, or say what the command needs: --disk 1MiB".to_owned();
            }
            Some(_) if self.replays() => {
                return "free space there: a replay needs all files of the application".to_owned();
            }
            // Not all have one size of everything: `files` has a number, `sqlite` has rows.
            Some(settings) if settings.docs.iter().all(|doc| doc.name != "size") => {
                let name = &settings.owner;
                return format!(
                    "free space there, or give it less data by its settings: stackrace show workload {name}"
                );
            }
            _ => {}
        }
        let free = at.iter().map(|one| one.free).min().unwrap_or(0);
        let size = unit::bytes(advised_size(free)).replace(' ', "");
        format!("free space there, or give it less data, such as size={size}")
    }

    /// The name of one beside it: of several of a kind, each has a number.
    fn name_beside(&self, at: usize) -> String {
        let kind = &self.beside[at].owner;
        let before = self.beside[..at].iter().chain(&self.workload);
        match before.filter(|other| other.owner == *kind).count() {
            0 => kind.clone(),
            more => format!("{kind} {}", more + 1),
        }
    }

    fn comment(&self) -> &'static str {
        match (&self.workload, &self.fio) {
            (Some(_), _) if !self.beside.is_empty() => "# Workloads at the same time\n",
            (Some(_), _) => "# One workload\n",
            (None, Some(_)) => "# A job of fio\n",
            (None, None) => "# A command of your own\n",
        }
    }

    /// Returns it as a workload of a study.
    fn table(&self) -> StudyTable {
        let named = StudyTable::default()
            .value("name", self.judged_name())
            .optional("metric", self.judged_by.clone());
        if let Some(settings) = &self.workload {
            return workload(named, settings);
        }
        let text = |text: &String| literal(text.as_str().into());
        let list = |words: &[String]| literal(words.iter().cloned().collect());
        let some = |words: &[String]| (!words.is_empty()).then(|| list(words));
        let settings = StudyTable::default();
        // What runs comes first; the rest follows in the order of the help.
        let (kind, settings) = match (&self.fio, self.command.as_slice()) {
            (Some(job), _) => {
                let file = job.file.to_string_lossy().into_owned();
                let named = settings.value(JOB, text(&file));
                (FIO, named.value(CONTENT, text(&job.text)))
            }
            (None, [line]) => ("command", settings.value(RUN, text(line))),
            (None, words) => ("command", settings.value(WORDS, list(words))),
        };
        let settings = settings
            .optional(PREPARE, self.prepare.as_ref().map(text))
            .optional("cleanup", self.cleanup.as_ref().map(text))
            .optional("metrics", some(&self.metrics))
            .optional("units", some(&self.units))
            .optional("better", some(&self.better))
            .optional("parse", self.parse.as_ref().map(text))
            .optional("time-limit", self.trial_time.as_ref().map(text))
            .optional("sync-at-end", self.no_sync.then_some(false))
            .optional("disk", self.disk.as_ref().map(text));
        // Lines of a shell are long: each has a line of its own.
        named.headed(kind, settings)
    }
}

/// First words of lines that say little of what runs: those of a shell, and programs that run another one.
const SAY_LITTLE: [&str; 23] = [
    "bash", "case", "cd", "command", "dash", "env", "eval", "exec", "export", "for", "if",
    "ionice", "nice", "set", "sh", "source", "sudo", "test", "time", "timeout", "trap", "until",
    "while",
];

/// Letters of a line that are its name: a table has no room for more.
const NAME_MAX: usize = 32;

/// The name of a command: its program, or what was typed, shortened, where a program does not stand first.
fn command_name(command: &[String]) -> String {
    // Several words have the quotes that they were typed with: without them they are another command.
    let line = match command {
        [line] => line.clone(),
        words => shell(words),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let first = words.first().copied().unwrap_or_default();
    let program = first.rsplit('/').next().unwrap_or(first);
    let plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
    let names = program.contains(char::is_alphanumeric) && program.chars().all(plain);
    if names && !SAY_LITTLE.contains(&program) {
        return program.to_owned();
    }
    let mut typed = String::new();
    for word in words {
        if typed.chars().count() + word.chars().count() >= NAME_MAX {
            let room = NAME_MAX.saturating_sub(typed.chars().count() + 2);
            // A word that is cut in its middle is still known where it is the first one.
            if typed.is_empty() {
                typed.extend(word.chars().take(room));
            }
            typed.push_str(" …");
            // One that is open would take in whatever stands behind the name.
            if typed.matches('\'').count() % 2 == 1 {
                typed.push('\'');
            }
            break;
        }
        if !typed.is_empty() {
            typed.push(' ');
        }
        typed.push_str(word);
    }
    match typed.is_empty() {
        true => "command".to_owned(),
        // In a study, braces hold what is varied.
        false => unit::signs(&typed.replace('{', "(").replace('}', ")")),
    }
}

/// The study that compares these directories with the program, and what is measured beside it.
fn study(request: &CompareRequest, sides: &[ComparedPath], own: &OwnProgram) -> StudyTable {
    let names: Vec<String> = (0..own.beside.len())
        .map(|at| own.name_beside(at))
        .collect();
    let beside = names.iter().zip(&own.beside).map(|(name, settings)| {
        workload(StudyTable::default().value("name", name.as_str()), settings)
    });
    let tables: Vec<StudyTable> = std::iter::once(own.table()).chain(beside).collect();
    let first = std::iter::once(own.judged_name());
    let all: Vec<String> = first.chain(names.iter().cloned()).collect();
    let asked = match own.beside.is_empty() {
        true => own.name(),
        false => all.join(" beside "),
    };
    let study = study_of(request, sides, (&asked, own.comment()), tables);
    let together = (!own.beside.is_empty()).then(|| all.into_iter().collect::<Value>());
    request
        .overrides
        .written(study.optional("together", together.map(literal)))
}

/// Returns what `compare --print-study` prints, with a command.
///
/// # Errors
/// The directories cannot be compared, or the options contradict each other.
pub(crate) fn printed(request: &CompareRequest, own: &OwnProgram) -> Result<String, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let sides = sides(&host, &request.directories)?;
    let table = study(request, &sides, &own.at_home(&sides)?);
    let mut study = typed::made(table.clone())?;
    if let Some(asked) = &request.clients {
        asked.join(&mut study)?;
    }
    Ok(request.overrides.written_with_limits(table).text())
}

/// Compares directories with a program.
///
/// # Errors
/// The directories cannot be compared, the command fails, or it cannot be run.
pub(crate) fn run(
    context: &Context,
    request: &CompareRequest,
    own: &OwnProgram,
    observer: &dyn Observer,
) -> Result<FinishedRun, Failure> {
    let began = SystemClock.now_ns();
    let host = LocalHost::new(Arc::new(|_| ()));
    let (sides, mut warnings, taken) = comparable(&host, request)?;
    let own = &own.at_home(&sides)?;
    let first = first_study(request, &sides, own)?;
    reach_clients(request, &sides, observer)?;
    // One for the first try and for the run: Ctrl-C can be caught once.
    let caught = Caught {
        interrupt: observer.catch_interrupt(LeftBehind::FILES)?,
        inner: observer,
    };
    check_commands(&first, own)?;
    study_file::check_question(&first, request.overrides.until_decided)?;
    preflight::check_machine(context, &first)?;
    let doing = caught.doing();
    // The command may take minutes.
    doing.now(&format!("trying `{}` once", own.name()), &sides[0].text);
    let tried_at = SystemClock.now_ns();
    let asked = (&caught.interrupt, own.remedy());
    let probe = probe(context, &host, &first, &sides[0], asked)?;
    let seconds = SystemClock.now_ns().saturating_sub(tried_at) as f64 / 1e9;
    drop(doing);
    // Its time on another storage says nothing of what is measured.
    watched(&host, &sides).unchanged()?;
    // What the tool prints is known now.
    let (measured, several) = match own.asks_a_tool() {
        true => own.with_found(&probe.printed)?,
        false => (own.clone(), None),
    };
    warnings.extend(several);
    let mut study = typed::made(study(request, &sides, &measured))?;
    request.overrides.apply(&mut study);
    let spent_ns = SystemClock.now_ns().saturating_sub(began);
    study_file::spend(&mut study.decide, spent_ns);
    let round_seconds = seconds * sides.len() as f64;
    caught.remark(&format!(
        "`{}` was tried once in {}: {}",
        own.name(),
        sides[0].text,
        unit::time_ns(probe.elapsed_ns as f64)
    ));
    let longer = |seconds| with_time(&context.command, seconds);
    first_round::check(&study.decide, round_seconds, spent_ns, &longer)?;
    if request.quick {
        warnings.push(first_impression(request.time_ns));
    }
    for warning in &warnings {
        caught.remark(&format!("warning: {warning}"));
    }
    if let Some(asked) = &request.clients {
        asked.join(&mut study)?;
        let store = context.open_store()?;
        // The first client takes the directories, which may be this very machine.
        drop(taken);
        let asked = (asked, request.anyway);
        return clients::run(context, (&study, &store), None, asked, &caught, &warnings);
    }
    let of = (&study, &execute::checked_store(context, &study)?);
    execute::start(context, of, &warnings, &[], &caught)
}

/// Longest time of a search: no longer than the comparison may take as a whole. Shorter ones would find nothing on
/// storage that is slow; how many of them fit is known when one was tried.
///
/// # Errors
/// There is no time for one search to try it, and those of the rounds that a verdict takes.
pub(crate) fn search_ns(time_ns: u64, directories: u64) -> Result<u64, Failure> {
    let searches = u64::from(FIRST_LOOK) * directories + 1;
    let each = (time_ns as f64 * MEASURING_SHARE) as u64 / searches;
    if each < find_rate::LEAST_NS {
        let needed = (find_rate::LEAST_NS * searches) as f64 / MEASURING_SHARE / 1e9;
        let told = format!(
            "--time {} is too short for --find-rate: it takes {searches} searches of {} at least",
            unit::whole_time(time_ns),
            unit::whole_time(find_rate::LEAST_NS)
        );
        let next = format!("write --time {:.0}s or more", (needed / 10.0).ceil() * 10.0);
        return Err(Failure::usage(told).next(next));
    }
    Ok(time_ns.min(find_rate::LIMIT_NS))
}

/// The study as it is first tried. What clients cannot measure together, and what there is no room for, is refused
/// before that.
fn first_study(
    request: &CompareRequest,
    sides: &[ComparedPath],
    own: &OwnProgram,
) -> Result<Study, Failure> {
    // What its figures are is not known before.
    let tried = match own.asks_a_tool() {
        true => &own.without_figures(),
        false => own,
    };
    let mut first = typed::made(study(request, sides, tried))?;
    if let Some(asked) = &request.clients {
        asked.join(&mut first)?;
    }
    let at = rooms(sides);
    room::check_own(&first, &at, &own.smaller(&at))?;
    Ok(first)
}

/// Refuses the commands of a job file, which were not typed.
fn check_commands(study: &Study, own: &OwnProgram) -> Result<(), Failure> {
    match own.fio {
        Some(_) => permission::check(study, false).map_err(|refused| {
            refused.next(
                "leave them out, or put the job into a study, and run that with --allow-commands",
            )
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::compare::{request_for, sides_of};
    use stackrace_load::programs;

    #[test]
    fn a_search_takes_no_longer_than_the_comparison_and_the_least_time_is_said() {
        let ns = |seconds: u64| seconds * 1_000_000_000;
        assert_eq!(search_ns(ns(70), 2).ok(), Some(ns(70)));
        assert_eq!(search_ns(ns(86_400), 2).ok(), Some(find_rate::LIMIT_NS));
        let refused = search_ns(ns(10), 2).err().unwrap().render();
        assert!(
            refused.contains("--time 10 s is too short for --find-rate"),
            "{refused}"
        );
        assert!(refused.contains("write --time 30s or more"), "{refused}");
        assert!(search_ns(ns(30), 2).is_ok());
    }

    #[test]
    fn a_command_is_known_by_its_program_or_by_what_was_typed() {
        let name = |words: &[&str]| {
            command_name(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
        };
        for (words, expected) in [
            (&["/usr/bin/make", "-C", "/src"][..], "make"),
            (&["g++ -O2 x.cc"], "g++"),
            (&["{ true; }"], "( true; )"),
            (&["cd {dir} && make"], "cd (dir) && make"),
            (&["A=1 make"], "A=1 make"),
            (
                &["sh", "-c", "dd if=/dev/zero of=x"],
                "sh -c 'dd if=/dev/zero of=x'",
            ),
            (
                &["for i in 1 2 3; do cp -r /usr/share/doc copy.$i; done"],
                "for i in 1 2 3; do cp -r …",
            ),
            (
                &["sh", "-c", "cp -r /usr/share/doc/a* ."],
                "sh -c 'cp -r /usr/share/doc/a* …'",
            ),
            (&["(sleep\n1)"], "(sleep 1)"),
            (&[""], "command"),
        ] {
            assert_eq!(name(words), expected, "{words:?}");
        }
    }

    #[test]
    fn advice_about_room_names_a_setting_that_the_workload_has() {
        let advice = |kind: &str| {
            let kind = programs::kind(kind).unwrap();
            let own = OwnProgram {
                workload: Some(Settings {
                    owner: kind.name.to_owned(),
                    span: 0..0,
                    settings: Vec::new(),
                    docs: kind.settings,
                }),
                ..OwnProgram::default()
            };
            own.smaller(&[])
        };
        for kind in programs::workloads() {
            let has_size = kind.settings.iter().any(|doc| doc.name == "size");
            let said = advice(kind.name);
            assert_eq!(said.contains("size="), has_size, "{}: {said}", kind.name);
        }
        assert!(advice(replay::REPLAY).ends_with("all files of the application"));
    }

    #[test]
    fn a_workload_that_is_typed_means_in_the_study_what_it_means_to_load() {
        let phases = ["create", "stat", "unlink"].map(str::to_owned);
        let line = "echo {dir} {{x}} \"y\"\n'z'";
        for (kind, given) in [
            (
                "files",
                vec![
                    GivenSetting::new("count", 7_u64),
                    GivenSetting::new("phases", phases.into_iter().collect::<Value>()),
                ],
            ),
            ("command", vec![GivenSetting::new(RUN, line)]),
        ] {
            let kind = programs::kind(kind).unwrap();
            let settings = Settings {
                owner: kind.name.to_owned(),
                span: 0..0,
                settings: given,
                docs: kind.settings,
            };
            let typed = (kind.parse)(&settings).ok().unwrap();
            let own = OwnProgram {
                workload: Some(settings),
                ..OwnProgram::default()
            };
            let request = request_for(&["/srv/a".into(), "/srv/b".into()]);
            let table = study(&request, &sides_of(&request.directories), &own);
            let text = table.text();
            let made = typed::made(table).ok().unwrap();
            let work = &made.configurations[0].workloads[0];
            assert_eq!(work.summary(), typed.summary(), "{text}");
            assert_eq!(work.phases(), typed.phases(), "{text}");
            assert_eq!(work.commands(), typed.commands(), "{text}");
            assert_eq!(made.text, text);
        }
    }
}
