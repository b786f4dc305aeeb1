//! `--on HOST`: a study on other machines, over SSH.
//!
//! This program there takes the turns it is told to ([`super::places`]), with a store of its own for
//! what it makes; nothing measured is kept in it. It is removed when the run has ended, or, where the
//! line broke, by `stackrace clean --on HOST`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::Setting;
use super::args::{AgentVerb, Clean, Output, Plan, Reach, Run, There};
use super::clean::NOTHING;
use super::execute::{self, Asked, Stopped};
use super::failure::{self, Failure};
use super::places::{self, Kit, Place};
use crate::agent::program::Program;
use crate::agent::serve;
use crate::agent::ssh::{Destination, Remote, SshError, Way};
use crate::agent::{AgentError, Heard};
use crate::event::Fact;
use crate::host::verb::Verb;
use crate::host::{HostError, argv};
use crate::record::{Record, Store};
use crate::run::Interrupt;
use crate::setting::Refusal;
use crate::study::{HOST, Study};

/// Name of the fact that says which machine, as seen from this one, a run was made on.
const OVER_SSH: &str = "over ssh";

/// How long a command there is listened to at a time.
const MOMENT: Duration = Duration::from_millis(100);

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

/// A machine, and which level of the study's factor of places it is; none: it is the only place.
pub(super) struct Machine {
    place: Option<String>,
    way: Way,
}

/// The way to a machine that is named like this.
fn way(on: &str, reach: &Reach) -> Result<Way, String> {
    let ssh: Vec<String> = reach.ssh.split_whitespace().map(str::to_string).collect();
    if ssh.is_empty() {
        return Err("--ssh names no command".to_string());
    }
    Ok(Way {
        to: Destination::parse(on)?,
        ssh,
        sudo: reach.sudo,
    })
}

/// The only machine a command line names.
fn only(on: &str, reach: &Reach) -> Result<Machine, Failure> {
    let way = way(on, reach).map_err(|why| Failure::usage(format!("--on: {why}")))?;
    Ok(Machine { place: None, way })
}

/// The machines that the levels of a study's factor `host` name; none: it has no such factor.
fn levels(study: &Study, reach: &Reach) -> Result<Option<Vec<Machine>>, Failure> {
    let Some(factor) = study.places().filter(|factor| factor.name == HOST) else {
        return Ok(None);
    };
    let machines = factor.levels.iter().map(|level| {
        let way = way(&level.value.as_words(), reach).map_err(|why| {
            let help = "name a machine as ssh does: \"root@server\"";
            let refusal = study.refusal(Refusal::at(&level.span, why, help));
            Failure::refused(refusal.render(false))
        })?;
        Ok(Machine {
            place: Some(level.label.clone()),
            way,
        })
    });
    machines.collect::<Result<_, Failure>>().map(Some)
}

/// The machines a study is to be tried on; none: this one, or the lab.
pub(super) fn hosts(study: &Study, there: &There) -> Result<Option<Vec<Machine>>, Failure> {
    match (levels(study, &there.reach)?, there.on.first()) {
        (Some(machines), _) => Ok(Some(machines)),
        (None, Some(on)) => Ok(Some(vec![only(on, &there.reach)?])),
        (None, None) => Ok(None),
    }
}

/// The machines a run was made on; none: they were not over SSH.
pub(super) fn made(
    study: &Study,
    record: &Record,
    reach: &Reach,
) -> Result<Option<Vec<Machine>>, Failure> {
    let mut facts = record.head.environment.iter();
    let fact = facts.find(|fact| fact.name == OVER_SSH);
    match (levels(study, reach)?, fact) {
        (Some(machines), _) => Ok(Some(machines)),
        (None, Some(fact)) => Ok(Some(vec![only(&fact.value, reach)?])),
        (None, None) => Ok(None),
    }
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

/// A machine that is connected to, and a store there for what is done now.
struct Connected<'a> {
    machine: &'a Machine,
    remote: Remote,
    store: PathBuf,
}

impl<'a> Connected<'a> {
    fn to(machine: &'a Machine) -> Result<Self, Failure> {
        let remote = Remote::connect(&machine.way).map_err(unreachable)?;
        let store = remote.store(&format!("{:016x}", execute::entropy()));
        Ok(Self {
            machine,
            remote,
            store,
        })
    }

    /// The program there with a store.
    fn program(&self, store: &Path) -> Vec<OsString> {
        let program = self.remote.program().as_os_str();
        argv([program, "--store".as_ref(), store.as_os_str()])
    }

    /// Where a study's text is put there.
    fn study(&self, study: &Study) -> String {
        let name = Path::new(&study.name).file_name().unwrap_or_default();
        self.store.join(name).to_string_lossy().into_owned()
    }

    /// Hands the study over and waits until the machine is ready.
    fn place(&self, study: &Study, wipe: &[String]) -> Result<Place<'_>, Failure> {
        let to = self.remote.to();
        let place = self.machine.place.as_deref();
        let kit = Kit {
            program: self.program(&self.store),
            study: &self.study(study),
            wipe,
            over: Some(&self.remote),
        };
        let ready = places::ready(self.remote.agent(), study, place, &kit);
        let (speaks, mut facts) = ready.map_err(|failure| {
            failure.reworded(|text| match place {
                Some(_) => self.for_ssh(text),
                None => format!("{to}: {}", self.for_ssh(text)),
            })
        })?;
        facts.push(Fact::new(OVER_SSH, &*to));
        Ok(Place {
            name: place.map_or(to, str::to_owned),
            facts,
            speaks,
        })
    }

    /// What the program there said, with what can be done from here.
    fn for_ssh(&self, text: &str) -> String {
        let root = format!(
            "log in as root (--on root@{}), or add --sudo where sudo asks no password",
            self.machine.way.to.host()
        );
        text.replace(&HostError::NeedsRoot.next(), &root)
    }

    /// Lowers what the program there left standing, if it was killed, and removes the store.
    fn put_away(&self) {
        if let Err(why) = self.cleaned(&self.store, false).and_then(|(said, gone)| {
            let path = self.store.clone();
            match gone {
                true => self.remote.does::<()>(Verb::RemoveTree { path }),
                false => Err(AgentError::Refused(said)),
            }
        }) {
            let (to, store) = (self.remote.to(), self.store.display());
            super::error(&format!(
                "warning: {store} may be left on {to}: {why}\n  next: stackrace clean --on {to}\n"
            ));
        }
    }

    /// Undoes there what the journals in a store name; what is to be said, and whether nothing is
    /// left that needs the store.
    fn cleaned(&self, store: &Path, list: bool) -> Result<(String, bool), AgentError> {
        let mut command = self.program(store);
        command.push("clean".into());
        if list {
            command.push("--list".into());
        }
        let output = self.remote.agent().exec(&command)?;
        let lines = output.stdout.lines().filter(|line| *line != NOTHING);
        let mut text: String = lines.map(|line| format!("{line}\n")).collect();
        if output.status != Some(0) || text.contains("left alone: ") {
            text.push_str(&output.stderr);
            return Ok((text, false));
        }
        let path = store.to_path_buf();
        let holders: Vec<String> = self.remote.does(Verb::Holders { path })?;
        if let Some(holder) = holders.first() {
            let store = store.display();
            text.push_str(&format!("left alone: {store} is in use by {holder}\n"));
            return Ok((text, false));
        }
        Ok((text, true))
    }
}

/// `stackrace run --on`.
pub(super) fn run(
    setting: &Setting,
    study: &Study,
    verb: &Run,
    machines: &[Machine],
) -> Result<u8, Failure> {
    let store = setting.open_store()?;
    let asked = Asked {
        decide: verb.deciding.decide,
        wipe: &verb.wipe,
    };
    let made = OverSsh {
        setting,
        study,
        store: &store,
        asked,
        output: &verb.output,
    };
    made.make(machines, |run, places| run.begin(places, &[]))
}

/// `stackrace resume` of such a run.
pub(super) fn resume(
    setting: &Setting,
    study: &Study,
    store: &Store,
    stopped: Stopped,
    machines: &[Machine],
    wipe: &[String],
    output: &Output,
) -> Result<u8, Failure> {
    let asked = Asked {
        decide: false,
        wipe,
    };
    let made = OverSsh {
        setting,
        study,
        store,
        asked,
        output,
    };
    made.make(machines, |run, places| {
        let (_journal, leftovers) = stopped.take_over(store)?;
        let shared = stopped.resumed(setting, store, leftovers)?;
        run.go_on(places, shared)
    })
}

/// A run over SSH, new or resumed.
struct OverSsh<'a> {
    setting: &'a Setting,
    study: &'a Study,
    store: &'a Store,
    asked: Asked<'a>,
    output: &'a Output,
}

impl OverSsh<'_> {
    /// Connects to the machines and calls with the places there.
    fn make(
        &self,
        machines: &[Machine],
        then: impl FnOnce(&places::Run<'_>, Vec<Place<'_>>) -> Result<u8, Failure>,
    ) -> Result<u8, Failure> {
        let connected = machines.iter().map(Connected::to);
        let connected = connected.collect::<Result<Vec<_>, Failure>>()?;
        let interrupt = Arc::new(Interrupt::default());
        execute::catch_interrupt(
            &interrupt,
            "what stands is lowered, then the verdict so far",
            "`stackrace clean --on HOST` removes what is left standing, `stackrace resume` goes on",
        )?;
        let run = places::Run {
            setting: self.setting,
            study: self.study,
            store: self.store,
            interrupt: &interrupt,
            asked: self.asked,
            output: self.output,
        };
        let places = connected.iter();
        let places = places.map(|machine| machine.place(self.study, self.asked.wipe));
        let code = places
            .collect::<Result<_, Failure>>()
            .and_then(|places| then(&run, places));
        for machine in &connected {
            machine.put_away();
        }
        code
    }
}

/// `stackrace plan --on`: what each machine says of what would be done there.
pub(super) fn plan(
    setting: &Setting,
    study: &Study,
    verb: &Plan,
    machines: &[Machine],
) -> Result<u8, Failure> {
    let mut code = 0;
    for machine in machines {
        let there = Connected::to(machine)?;
        let planned = there.plan(study, verb);
        there.put_away();
        let (text, ended) = planned?;
        if !setting.quiet && !verb.json {
            super::print(&format!("on {}\n\n", there.remote.to()));
        }
        super::print(&text);
        super::error(&there.for_ssh(&ended.stderr));
        let status = ended.status.and_then(|status| u8::try_from(status).ok());
        code = code.max(status.unwrap_or(1));
    }
    Ok(code)
}

impl Connected<'_> {
    /// What the program there plans, and how it ended.
    fn plan(&self, study: &Study, verb: &Plan) -> Result<(String, crate::host::Output), Failure> {
        let path = self.study(study);
        let mut command = self.program(&self.store);
        command.extend(["plan", &path].map(OsString::from));
        if verb.json {
            command.push("--json".into());
        }
        if let Some(place) = &self.machine.place {
            command.extend(["--place", place].map(OsString::from));
        }
        let words = |error| failed(&self.remote, error);
        let agent = self.remote.agent();
        agent.write(&path, &study.text).map_err(words)?;
        let talk = agent.follow(&command).map_err(words)?;
        let mut text = String::new();
        loop {
            match talk.hear(MOMENT).map_err(words)? {
                Some(Heard::Line(line)) => {
                    text.push_str(&line);
                    text.push('\n');
                }
                Some(Heard::Ended(ended)) => return Ok((text, ended)),
                None => {}
            }
        }
    }
}

/// `stackrace clean --on`.
pub(super) fn clean(verb: &Clean) -> Result<u8, Failure> {
    let mut left = false;
    for on in &verb.there.on {
        let machine = only(on, &verb.there.reach)?;
        let there = Connected::to(&machine)?;
        let cleaned = there.clean(verb.list);
        left |= cleaned.map_err(|error| failed(&there.remote, error))?;
    }
    Ok(if left { failure::CANNOT } else { 0 })
}

impl Connected<'_> {
    /// Removes what is ours there; true: something had to be left.
    fn clean(&self, list: bool) -> Result<bool, AgentError> {
        let mut left = false;
        for store in self.remote.stores()? {
            let (said, gone) = self.cleaned(&store, list)?;
            super::print(&said);
            match gone {
                true => self.remove(store, "", list)?,
                false => left = true,
            }
        }
        for copy in self.remote.copies()? {
            self.remove(copy, "the program's copy ", list)?;
        }
        Ok(left)
    }

    fn remove(&self, path: PathBuf, what: &str, list: bool) -> Result<(), AgentError> {
        let shown = path.display().to_string();
        if list {
            super::print(&format!("would remove: {what}{shown}\n"));
            return Ok(());
        }
        self.remote.does::<()>(Verb::RemoveTree { path })?;
        super::print(&format!("removed: {what}{shown}\n"));
        Ok(())
    }
}
