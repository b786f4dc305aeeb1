//! `--on HOST`: a study on other machines, over SSH.
//!
//! The program there takes turns, and has for them a store of its own, in which nothing is but the
//! journal of what stands; what the line breaks off is lowered there, and whatever is left all the
//! same `stackrace clean --on HOST` removes.

mod leftovers;

pub(super) use leftovers::clean;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::args::{AgentVerb, Plan, Reach, Resume, Run, There};
use super::failure::Failure;
use super::peers::{self, Asked, Peer};
use super::places::{self, Kit, Place};
use super::setting::Setting;
use super::terminal::{error, print};
use crate::agent::program::Program;
use crate::agent::relay::{Far, Relay};
use crate::agent::serve;
use crate::agent::ssh::{Destination, Remote, SshError, Way};
use crate::agent::{Agent, AgentError, Heard};
use crate::event::Fact;
use crate::host::verb::Verb;
use crate::host::{HostError, Output, argv};
use crate::record::{Record, Store};
use crate::session::{FinishedRun, Observer, Stopped, clean, entropy, execute, temporary};
use crate::setting::Refusal;
use crate::study::{HOST, Study};

/// Name of the fact that says on which machine, from this one, a run was made.
const OVER_SSH: &str = "over ssh";

/// What this machine is called among hosts.
const HERE: &str = "here";

/// This program, whatever became of its file.
const OURSELVES: &str = "/proc/self/exe";

/// How often a command there is listened to.
const MOMENT: Duration = Duration::from_secs(1);

/// `stackrace agent`: the part on the other machine.
pub(super) fn there(verb: AgentVerb) -> Result<u8, Failure> {
    match verb {
        AgentVerb::Serve => serve::stdio().map_err(Failure::internal)?,
        AgentVerb::Hash => {
            let program = Program::own().map_err(|error| Failure::internal(error.to_string()))?;
            print(&format!("{}\n", program.hash));
        }
    }
    Ok(0)
}

/// How another machine is reached; `word` is the option that names it.
pub(super) fn way(word: &str, on: &str, reach: &Reach) -> Result<Way, Failure> {
    let to = Destination::parse(on).map_err(|why| Failure::usage(format!("{word}: {why}")))?;
    let ssh: Vec<String> = reach.ssh.split_whitespace().map(str::to_string).collect();
    if ssh.is_empty() {
        return Err(Failure::usage("--ssh names no command").next("--ssh \"ssh -i KEY\""));
    }
    let sudo = reach.sudo;
    Ok(Way { to, ssh, sudo })
}

pub(super) fn unreachable(error: SshError) -> Failure {
    Failure::unable(error.to_string()).next(error.next())
}

/// A failure of the agent; where the line has broken, in ssh's words.
fn failed(remote: &Remote, error: AgentError) -> Failure {
    match error {
        AgentError::Ended => unreachable(remote.broken()),
        other => Failure::unable(other.to_string()).next(other.next()),
    }
}

/// One machine of a run.
pub(super) struct Host {
    /// Its level of the study's factor of hosts; none: it is the only one.
    place: Option<String>,
    /// How it is reached; none: it is this one.
    way: Option<Way>,
    /// Its peers, from number 2 on.
    peers: Vec<Asked>,
}

/// The machines a study is to be tried on; none: this one alone.
pub(super) fn hosts(study: &Study, there: &There) -> Result<Option<Vec<Host>>, Failure> {
    peers::check(study, there)?;
    if let Some(hosts) = of_study(study, &there.reach)? {
        return Ok(Some(hosts));
    }
    let on = there.on.first();
    if study.places().is_some() || (on.is_none() && there.peers.is_empty()) {
        return Ok(None);
    }
    Ok(Some(vec![only(on, &there.peers, &there.reach)?]))
}

/// The machines a run was made on; none: not over SSH.
pub(super) fn known(
    study: &Study,
    record: &Record,
    reach: &Reach,
) -> Result<Option<Vec<Host>>, Failure> {
    if let Some(hosts) = of_study(study, reach)? {
        return Ok(Some(hosts));
    }
    let mut facts = record.head.environment.iter();
    let over = facts.find(|fact| fact.name == OVER_SSH);
    let peers = peers::known(record);
    if over.is_none() && peers.is_empty() {
        return Ok(None);
    }
    let on = over.map(|fact| &fact.value);
    Ok(Some(vec![only(on, &peers, reach)?]))
}

fn only(on: Option<&String>, peers: &[String], reach: &Reach) -> Result<Host, Failure> {
    Ok(Host {
        place: None,
        way: on
            .filter(|on| *on != HERE)
            .map(|on| way("--on", on, reach))
            .transpose()?,
        peers: peers::asked(peers, reach)?,
    })
}

/// The levels of a study's factor of hosts, if it has one.
fn of_study(study: &Study, reach: &Reach) -> Result<Option<Vec<Host>>, Failure> {
    let Some(factor) = study.places().filter(|factor| factor.name == HOST) else {
        return Ok(None);
    };
    let mut hosts = Vec::new();
    for level in &factor.levels {
        let to = level.value.as_words();
        if let Err(why) = Destination::parse(&to) {
            let help = "write it like \"root@server\", or \"here\" for this machine";
            let error = study.refusal(Refusal::at(&level.span, why, help));
            return Err(Failure::refused(error.render(false)));
        }
        hosts.push(Host {
            place: Some(level.label.clone()),
            way: match to == HERE {
                true => None,
                false => Some(way("--on", &to, reach)?),
            },
            peers: Vec::new(),
        });
    }
    Ok(Some(hosts))
}

/// A machine that is reached, with a directory of its own for a run.
struct Reached<'a> {
    host: &'a Host,
    line: Line,
    /// This program there.
    program: PathBuf,
    /// The store of the program there.
    store: PathBuf,
    /// Where the study is written there.
    study: PathBuf,
    /// Its peers, from number 2 on.
    peers: Vec<Arc<Peer>>,
}

enum Line {
    Here(Arc<Agent>),
    There(Box<Remote>),
}

impl Line {
    fn agent(&self) -> &Arc<Agent> {
        match self {
            Self::Here(agent) => agent,
            Self::There(remote) => remote.agent(),
        }
    }
}

impl<'a> Reached<'a> {
    fn new(setting: &Setting, study: &Study, host: &'a Host) -> Result<Self, Failure> {
        let id = format!("{:016x}", entropy());
        let name = study.file_name();
        let (line, program, store, directory) = match &host.way {
            None => {
                let agent = serve::here().map_err(|error| Failure::internal(error.to_string()))?;
                let line = Line::Here(Arc::new(agent));
                let directory = temporary::dir(&setting.session, &id)?;
                (
                    line,
                    PathBuf::from(OURSELVES),
                    setting.session.store_dir()?,
                    directory,
                )
            }
            Some(way) => {
                let remote = Remote::connect(way).map_err(unreachable)?;
                let store = remote.store(&id);
                let program = remote.program().to_path_buf();
                (Line::There(Box::new(remote)), program, store.clone(), store)
            }
        };
        let peers = Peer::connect(&host.peers, line.agent(), &id)?;
        Ok(Self {
            host,
            line,
            program,
            store,
            study: directory.join(name),
            peers,
        })
    }

    fn agent(&self) -> &Arc<Agent> {
        self.line.agent()
    }

    /// What it is called.
    fn called(&self) -> String {
        match &self.line {
            Line::Here(_) => HERE.to_owned(),
            Line::There(remote) => remote.to(),
        }
    }

    /// What the program there said, with what can be done from here.
    fn advice(&self, said: String) -> String {
        let Some(way) = &self.host.way else {
            return said;
        };
        let root = format!(
            "log in as root: --on {}; or --sudo, where sudo asks no password",
            way.to.as_root()
        );
        said.replace(&HostError::NeedsRoot.next(), &root)
    }

    /// A command of the program there with that store.
    fn command(&self, words: &[&OsStr]) -> Vec<OsString> {
        program(&self.program, &self.store, &self.peers, words)
    }

    /// Hands the study over and waits until the machine is ready.
    fn place(&self, study: &Study, wipe: &[String]) -> Result<Place<'_>, Failure> {
        let to = self.called();
        let kit = Kit {
            program: self.command(&[]),
            study: &self.study.to_string_lossy(),
            wipe,
            called: &format!("on {to}"),
            advice: &|said| self.advice(said),
            relay: Some(relay(self.agent(), &self.peers)),
        };
        let place = self.host.place.as_deref();
        let ready = places::ready(self.agent(), study, place, &kit);
        let (mut speaks, mut facts) = ready?;
        match &self.line {
            Line::There(remote) => {
                facts.push(Fact::new(OVER_SSH, remote.to()));
                speaks.broken = Some(&**remote);
            }
            // As of any run of this machine's own.
            Line::Here(_) if place.is_none() => facts.extend(execute::begun_in()),
            Line::Here(_) => {}
        }
        for (node, peer) in (2..).zip(&self.peers) {
            facts.extend(peer.facts(node));
        }
        Ok(Place {
            name: self.host.place.clone().unwrap_or(to),
            facts,
            speaks,
        })
    }

    /// Lowers what was left standing there, if anything was, and removes what the run had there.
    fn put_away(&self, setting: &Setting) {
        let Line::There(remote) = &self.line else {
            if let Some(directory) = self.study.parent() {
                // It holds a copy of the study, and nothing of value.
                let _ = std::fs::remove_dir_all(directory);
            }
            let names = self.peers.iter().map(|peer| &*peer.introduced.name);
            let names: Vec<&str> = names.collect();
            // A store that cannot be read was told of before.
            if clean::is_left_on(&setting.session, &names).unwrap_or(false) {
                let (names, peers) = (names.join(" or "), self.said_again());
                setting.warn(
                    &format!("something is left on {names}"),
                    &format!("stackrace clean{peers}"),
                );
            }
            return;
        };
        let cleaned = collected(
            self.agent(),
            &self.peers,
            &self.command(&["clean".as_ref()]),
        )
        .and_then(|output| match output.status {
            Some(0) => remote.does::<()>(Verb::RemoveTree {
                path: self.store.clone(),
            }),
            _ => Err(AgentError::Refused(output.stdout)),
        });
        if let Err(why) = cleaned {
            let (to, store, peers) = (remote.to(), self.store.display(), self.said_again());
            setting.warn(
                &format!("{store} is left on {to}: {why}"),
                &format!("stackrace clean --on {to}{peers}"),
            );
        }
    }

    /// The peers as words of a command line.
    fn said_again(&self) -> String {
        let peers = self.peers.iter();
        peers
            .map(|peer| format!(" --peer {}", peer.introduced.name))
            .collect()
    }
}

/// A command of this program where it is, with a store and peers.
fn program(path: &Path, store: &Path, peers: &[Arc<Peer>], words: &[&OsStr]) -> Vec<OsString> {
    let mut command = argv([path.as_os_str(), "--store".as_ref(), store.as_os_str()]);
    let introduced: Vec<_> = peers.iter().map(|peer| &peer.introduced).collect();
    if !introduced.is_empty() {
        // Names, addresses and paths can be written in JSON.
        let text = serde_json::json!(introduced).to_string();
        command.extend(argv(["--introduced", &text]));
    }
    command.extend(argv(words));
    command
}

/// What carries between a program at a machine and its peers.
fn relay(first: &Arc<Agent>, peers: &[Arc<Peer>]) -> Relay {
    let far = peers
        .iter()
        .map(|peer| -> Arc<dyn Far> { Arc::<Peer>::clone(peer) });
    Relay::new(Arc::clone(first), far.collect())
}

/// Reaches the machines, calls with them when they are ready, and leaves nothing there.
fn made(
    run: &places::Run<'_>,
    hosts: &[Host],
    wipe: &[String],
    then: impl FnOnce(Vec<Place<'_>>) -> Result<FinishedRun, Failure>,
) -> Result<FinishedRun, Failure> {
    let reached = hosts
        .iter()
        .map(|host| Reached::new(run.setting, run.study, host));
    let reached: Vec<Reached<'_>> = reached.collect::<Result<_, Failure>>()?;
    let ended = places::all(reached.iter().map(|there| there.place(run.study, wipe)));
    let ended = ended.and_then(then);
    for there in &reached {
        there.put_away(run.setting);
    }
    ended
}

/// What a second Ctrl-C leaves to do.
const LEFT: &str =
    "`stackrace clean --on HOST` removes what is left, `stackrace resume` continues the run";

/// `stackrace run --on`.
pub(super) fn run(
    setting: &Setting,
    study: &Study,
    verb: &Run,
    hosts: &[Host],
) -> Result<FinishedRun, Failure> {
    let run = places::Run {
        setting,
        study,
        store: &setting.session.open_store()?,
        interrupt: &setting.catch_interrupt(LEFT)?,
        on_record: &OnceLock::new(),
    };
    made(&run, hosts, &verb.wipe, |places| run.begin(places, &[]))
}

/// `stackrace resume` of such a run.
pub(super) fn resume(
    setting: &Setting,
    study: &Study,
    store: &Store,
    stopped: Stopped,
    verb: &Resume,
    hosts: &[Host],
) -> Result<FinishedRun, Failure> {
    let run = places::Run {
        setting,
        study,
        store,
        interrupt: &setting.catch_interrupt(LEFT)?,
        on_record: &OnceLock::new(),
    };
    made(&run, hosts, &verb.wipe, |places| {
        run.resume(places, stopped)
    })
}

/// A command there, with all it prints.
fn collected(
    first: &Arc<Agent>,
    peers: &[Arc<Peer>],
    command: &[OsString],
) -> Result<Output, AgentError> {
    let relay = relay(first, peers);
    let talk = first.follow(command)?;
    let mut printed = String::new();
    loop {
        match talk.hear(MOMENT)? {
            None => {}
            Some(Heard::Line(line)) if relay.takes(talk.program(), &line) => {}
            Some(Heard::Line(line)) => {
                printed.push_str(&line);
                printed.push('\n');
            }
            Some(Heard::Ended(output)) => {
                return Ok(Output {
                    stdout: printed,
                    ..output
                });
            }
        }
    }
}

/// `stackrace plan --on`: what each machine says of what would be done there.
pub(super) fn plan(
    setting: &Setting,
    study: &Study,
    verb: &Plan,
    hosts: &[Host],
) -> Result<u8, Failure> {
    let mut code = 0;
    for host in hosts {
        let there = Reached::new(setting, study, host)?;
        let planned = there.plan(study, verb);
        there.put_away(setting);
        let output = planned?;
        if !setting.quiet && !verb.json {
            print(&format!("on {}\n\n", there.called()));
        }
        print(&output.stdout);
        error(&there.advice(output.stderr));
        let status = output.status.and_then(|status| u8::try_from(status).ok());
        code = code.max(status.unwrap_or(1));
    }
    Ok(code)
}

impl Reached<'_> {
    /// What the program there plans.
    fn plan(&self, study: &Study, verb: &Plan) -> Result<Output, Failure> {
        let mut command = self.command(&["plan".as_ref(), self.study.as_os_str()]);
        if verb.json {
            command.push("--json".into());
        }
        if let Some(place) = &self.host.place {
            command.extend(argv(["--place", place]));
        }
        let path = self.study.to_string_lossy();
        let written = self.agent().write(&path, &study.text);
        let planned = written.and_then(|()| collected(self.agent(), &self.peers, &command));
        planned.map_err(|error| match &self.line {
            Line::There(remote) => failed(remote, error),
            Line::Here(_) => Failure::internal(error.to_string()),
        })
    }
}
