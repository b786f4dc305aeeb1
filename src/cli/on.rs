//! `--on HOST`: a study on another machine, over SSH.
//!
//! The program there keeps the run in a store of its own, which is removed when everything in it is
//! on record here; what the line breaks off stays there until `stackrace clean --on HOST`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Setting;
use super::args::{AgentVerb, Clean, Plan, Run, There};
use super::clean::NOTHING;
use super::execute;
use super::failure::{self, Failure};
use super::lab::{self, Relay};
use crate::agent::program::Program;
use crate::agent::serve;
use crate::agent::ssh::{Destination, Remote, SshError, Way};
use crate::agent::{Agent, AgentError};
use crate::event::{Ended, Fact, Line};
use crate::host::verb::Verb;
use crate::host::{HostError, Output, argv};
use crate::record::{Record, RecordError, Store};
use crate::run::{Interrupt, Ledger};
use crate::study::Study;
use crate::time::Clock;

/// Name of the fact that says on which machine, from this one, a run was made.
pub(super) const OVER_SSH: &str = "over ssh";

/// `stackrace agent`: the part on the other machine.
pub(super) fn there(verb: AgentVerb) -> Result<u8, Failure> {
    match verb {
        AgentVerb::Serve => serve::stdio().map_err(Failure::internal)?,
        AgentVerb::Hash => {
            let program = Program::own().map_err(|error| Failure::internal(error.to_string()))?;
            super::print(&format!("{}\n", program.hash));
        }
    }
    Ok(0)
}

/// How another machine is reached; none: this one is meant.
pub(super) fn way(there: &There) -> Result<Option<Way>, Failure> {
    let Some(on) = &there.on else {
        return Ok(None);
    };
    let to = Destination::parse(on).map_err(|why| Failure::usage(format!("--on: {why}")))?;
    let ssh: Vec<String> = there.ssh.split_whitespace().map(str::to_string).collect();
    if ssh.is_empty() {
        return Err(Failure::usage("--ssh names no command").next("--ssh \"ssh -i KEY\""));
    }
    let sudo = there.sudo;
    Ok(Some(Way { to, ssh, sudo }))
}

fn unreachable(error: SshError) -> Failure {
    Failure::new(failure::CANNOT, error.to_string()).next(error.next())
}

/// A failure of the agent; where the line has broken, in ssh's words.
fn failed(remote: &Remote, error: AgentError) -> Failure {
    match error {
        AgentError::Ended => unreachable(remote.broken()),
        other => Failure::new(failure::CANNOT, other.to_string()).next(other.next()),
    }
}

/// Where a study is carried out by this program on another machine.
struct Place<'a> {
    agent: &'a Agent,
    /// The file the program there runs from.
    program: &'a Path,
    /// The store there, for one run.
    store: PathBuf,
}

impl Place<'_> {
    /// A command of the program there with that store.
    fn command(&self, words: &[&OsStr]) -> Vec<OsString> {
        let begin = [
            self.program.as_os_str(),
            "--store".as_ref(),
            self.store.as_os_str(),
        ];
        argv(begin.iter().chain(words))
    }

    /// Puts a study there; the path of its file.
    fn put(&self, study: &Study) -> Result<String, AgentError> {
        let name = Path::new(&study.name).file_name().unwrap_or_default();
        let path = self.store.join(name).to_string_lossy().into_owned();
        self.agent.write(&path, &study.text)?;
        Ok(path)
    }

    /// Runs a command there with every line of the log of the only run in the store.
    fn follow(
        &self,
        command: &[OsString],
        stop: &dyn Fn() -> bool,
        each: &mut dyn FnMut(&str) -> Result<(), String>,
    ) -> Result<Output, AgentError> {
        let store = self.store.to_string_lossy();
        self.agent.follow(command, &store, stop, each)
    }
}

fn place<'a>(remote: &'a Remote, run: &str) -> Place<'a> {
    Place {
        agent: remote.agent(),
        program: remote.program(),
        store: remote.store(run),
    }
}

/// `stackrace run --on`.
pub(super) fn run(setting: &Setting, study: &Study, verb: &Run, way: &Way) -> Result<u8, Failure> {
    let remote = Remote::connect(way).map_err(unreachable)?;
    let interrupt = Arc::new(Interrupt::default());
    execute::catch_interrupt(
        &interrupt,
        "the machine lowers what stands, then the verdict so far",
        "`stackrace clean --on HOST` removes what is left",
    )?;
    let store = setting.open_store()?;
    let mut relay = Relay::new(setting, study, &store, &format!("on {}", remote.to()));
    relay.facts.push(Fact::new(OVER_SSH, remote.to()));
    let place = place(&remote, &relay.run);
    let followed = place.put(study).and_then(|path| {
        let words = ["--quiet", "run", &path, "--attended"].map(OsStr::new);
        let mut command = place.command(&words);
        command.extend(lab::asked(verb));
        let stop = || interrupt.raised();
        place.follow(&command, &stop, &mut |text| relay.line(text))
    });
    let ended = match followed {
        Ok(output) => {
            put_away(&remote, &place)?;
            match output.status {
                Some(_) => Ok(output),
                None => Err(Failure::new(
                    failure::CANNOT,
                    "the program there was ended by a signal",
                )),
            }
        }
        Err(error) => Err(failed(&remote, error)),
    };
    let lost = ended.is_err();
    let code = relay.finish(ended.map(|output| for_ssh(output, way)), verb)?;
    if lost && !setting.quiet {
        let to = remote.to();
        super::error(&format!(
            "what stood on {to} is lowered there as soon as this machine is missed\n  next: stackrace clean --on {to} says whether anything is left\n"
        ));
    }
    Ok(code)
}

/// What the program there said, with what can be done from here.
fn for_ssh(mut output: Output, way: &Way) -> Output {
    let root = format!(
        "log in as root: --on root@{}; or --sudo, where sudo asks no password",
        way.to.host()
    );
    output.stderr = output.stderr.replace(&HostError::NeedsRoot.next(), &root);
    output
}

/// Lowers what a run that has ended there left standing, if it did, and removes its store: everything
/// in it is on record here.
fn put_away(remote: &Remote, place: &Place<'_>) -> Result<(), Failure> {
    let cleaned = place
        .agent
        .exec(&place.command(&["clean"].map(OsStr::new)))
        .and_then(|output| match output.status {
            Some(0) => remote.does(Verb::RemoveTree {
                path: place.store.clone(),
            }),
            _ => Err(AgentError::Refused(output.stdout)),
        });
    cleaned.or_else(|error| {
        let (to, store) = (remote.to(), place.store.display());
        super::error(&format!(
            "warning: {store} is left on {to}: {error}\n  next: stackrace clean --on {to}\n"
        ));
        Ok(())
    })
}

/// `stackrace plan --on`.
pub(super) fn plan(
    setting: &Setting,
    study: &Study,
    verb: &Plan,
    way: &Way,
) -> Result<u8, Failure> {
    let remote = Remote::connect(way).map_err(unreachable)?;
    let place = place(&remote, &format!("plan-{:016x}", execute::entropy()));
    let planned = place.put(study).and_then(|path| {
        let mut command = place.command(&["plan".as_ref(), path.as_ref()]);
        for (asked, option) in [(verb.lab, "--lab"), (verb.json, "--json")] {
            if asked {
                command.push(option.into());
            }
        }
        let output = place.follow(&command, &|| false, &mut |_| Ok(()))?;
        remote.does::<()>(Verb::RemoveTree {
            path: place.store.clone(),
        })?;
        Ok(output)
    });
    let output = planned.map_err(|error| failed(&remote, error))?;
    if !setting.quiet && !verb.json {
        super::print(&format!("on {}\n\n", remote.to()));
    }
    let output = for_ssh(output, way);
    super::print(&output.stdout);
    super::error(&output.stderr);
    Ok(output
        .status
        .and_then(|status| u8::try_from(status).ok())
        .unwrap_or(1))
}

/// `stackrace clean --on`.
pub(super) fn clean(setting: &Setting, verb: &Clean, way: &Way) -> Result<u8, Failure> {
    let remote = Remote::connect(way).map_err(unreachable)?;
    let store = setting.open_store()?;
    let mut text = String::new();
    let mut left = 0;
    let words = |error| failed(&remote, error);
    for (run, path) in remote.runs().map_err(words)? {
        let leftover = Leftover {
            remote: &remote,
            place: place(&remote, &run),
            run,
        };
        let (said, gone) = leftover.clean(&store, verb.list)?;
        text.push_str(&said);
        let path_shown = path.display();
        match (gone, verb.list) {
            (true, true) => text.push_str(&format!("would remove: {path_shown}\n")),
            (true, false) => {
                remote
                    .does::<()>(Verb::RemoveTree { path: path.clone() })
                    .map_err(words)?;
                text.push_str(&format!("removed: {path_shown}\n"));
            }
            (false, _) => left += 1,
        }
    }
    for path in remote.copies().map_err(words)? {
        let shown = path.display().to_string();
        if verb.list {
            text.push_str(&format!("would remove: the program's copy {shown}\n"));
            continue;
        }
        let removed = remote.does::<()>(Verb::RemoveTree { path });
        removed.map_err(words)?;
        text.push_str(&format!("removed: the program's copy {shown}\n"));
    }
    super::print(&text);
    Ok(if left > 0 { failure::CANNOT } else { 0 })
}

/// What a run that was made from here, or from elsewhere, left on a machine.
struct Leftover<'a> {
    remote: &'a Remote,
    place: Place<'a>,
    /// Its id where it was begun.
    run: String,
}

impl Leftover<'_> {
    /// Lowers what stands and brings home what is not here; what is to be said, and whether nothing
    /// is lost when the store there goes.
    fn clean(&self, store: &Store, list: bool) -> Result<(String, bool), Failure> {
        let words = |error: AgentError| Failure::new(failure::CANNOT, error.to_string());
        let mut command = self.place.command(&["clean"].map(OsStr::new));
        if list {
            command.push("--list".into());
        }
        let output = self.place.agent.exec(&command).map_err(words)?;
        let mut text: String = output
            .stdout
            .lines()
            .filter(|line| *line != NOTHING)
            .map(|line| format!("{line}\n"))
            .collect();
        if output.status != Some(0) || text.contains("left alone: ") {
            text.push_str(&output.stderr);
            return Ok((text, false));
        }
        let path = self.place.store.clone();
        let holders: Vec<String> = self.remote.does(Verb::Holders { path }).map_err(words)?;
        if let Some(holder) = holders.first() {
            let path = self.place.store.display();
            text.push_str(&format!("left alone: {path} is in use by {holder}\n"));
            return Ok((text, false));
        }
        let mut log = String::new();
        let each = &mut |line: &str| {
            log.push_str(line);
            log.push('\n');
            Ok(())
        };
        // Any command will do: its log is what is wanted.
        let followed = self.place.follow(&argv(["true"]), &|| false, each);
        followed.map_err(words)?;
        let there = match log.is_empty() {
            true => None,
            false => {
                Some(Record::parse(log.as_bytes(), &self.place.store).map_err(execute::broken)?)
            }
        };
        let trials = there.as_ref().map_or(0, complete);
        let here = store.read(&self.run).ok();
        let known = here.as_ref().map_or(0, complete);
        let there = match there {
            Some(there) if trials > known => there,
            _ => return Ok((text, true)),
        };
        let path = self.place.store.display();
        if here.is_none() {
            text.push_str(&format!(
                "left alone: {path} holds {trials} trial(s) of a run that was begun with another store\n"
            ));
            return Ok((text, false));
        }
        let run = there.head.run.clone();
        if list {
            text.push_str(&format!("would bring home: {run}, {trials} trial(s)\n"));
        } else {
            bring_home(store, there).map_err(execute::broken)?;
            text.push_str(&format!(
                "brought home: {run}, {trials} trial(s), of which {known} are in {} too\n",
                self.run
            ));
        }
        Ok((text, true))
    }
}

/// How many trials measured what they were to measure.
fn complete(record: &Record) -> usize {
    let trials = record.trials();
    trials
        .filter(|trial| trial.ended == Ended::Complete)
        .count()
}

/// Keeps a run that another store has kept, under its own id and with its own times.
fn bring_home(store: &Store, run: Record) -> Result<(), RecordError> {
    let mut lines = run.lines.into_iter();
    let then = Arc::new(Then::default());
    then.set(&lines.next());
    let (log, line) = store.create_run(run.head, Arc::clone(&then) as Arc<dyn Clock>)?;
    let Some(record) = Record::begin(line) else {
        return Ok(());
    };
    let mut ledger = Ledger::new(log, store.index(), record);
    for line in lines {
        let line = Some(line);
        then.set(&line);
        if let Some(line) = line {
            ledger.append(line.event)?;
        }
    }
    Ok(())
}

/// The clock of events that have happened.
#[derive(Default)]
struct Then(Mutex<String>);

impl Then {
    fn set(&self, line: &Option<Line>) {
        if let Some(line) = line {
            let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            at.clone_from(&line.at);
        }
    }
}

impl Clock for Then {
    fn now_ns(&self) -> u64 {
        0
    }

    fn today(&self) -> String {
        let at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        at.clone()
    }

    fn sleep(&self, _duration: Duration) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{Arguments, Verb as CliVerb};
    use clap::Parser;

    fn parsed(words: &[&str]) -> Arguments {
        Arguments::parse_from([&["stackrace"], words].concat())
    }

    #[test]
    fn what_is_asked_of_a_run_is_asked_of_it_there() {
        let asked = [
            "--at-most",
            "9 min",
            "--margin",
            "3 %",
            "--confidence",
            "90 %",
            "--seed",
            "7",
            "--decide",
            "--wipe",
            "wwn-1",
            "--wipe",
            "wwn-2",
        ];
        let words = [&["run", "study"], &asked[..]].concat();
        let CliVerb::Run(verb) = parsed(&words).verb else {
            panic!("not run");
        };
        assert_eq!(lab::asked(&verb), argv(asked));
    }

    #[test]
    fn a_run_brought_home_has_the_times_it_was_made_at() {
        let dir = tempfile::tempdir().unwrap();
        let [there, here] =
            ["there", "here"].map(|name| Store::open(&dir.path().join(name)).unwrap());
        let record = crate::record::sample::with_failure();
        let run = record.head.run.clone();
        bring_home(&there, record).unwrap();
        let first = there.read(&run).unwrap();
        bring_home(&here, first.clone()).unwrap();
        let again = here.read(&run).unwrap();
        let lines = |record: &Record| -> Vec<String> {
            let lines = record.lines.iter();
            lines
                .map(|line| serde_json::to_string(line).unwrap())
                .collect()
        };
        assert_eq!(lines(&first), lines(&again));
        assert!(!first.lines[0].at.is_empty());
    }
}
