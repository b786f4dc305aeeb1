//! `stackrace run --lab` and `stackrace resume` of such a run: machines started, one for each system
//! the study is tried on, and the run made in them.

use std::sync::{Arc, OnceLock};

use super::{Failure, LAB, Setting, cannot, in_the_lab, memory, tell, up};
use crate::agent::Agent;
use crate::cli::args::Run;
use crate::cli::places::{self, Kit, Place};
use crate::event::{Event, Fact};
use crate::host::{LabDisk, argv};
use crate::lab::machine::{Accelerator, Description, Machine, SCRATCH_DIR, Site};
use crate::lab::{fault, system};
use crate::record::{Record, Store};
use crate::run::SharedLedger;
use crate::session::study_file::part;
use crate::session::{FinishedRun, Observer, Stopped};
use crate::setting::{Refusal, unknown_word};
use crate::study::{Provision, SYSTEM, Study, StudyError};

/// Names of the facts that say what a machine was started with.
const IMAGE: &str = "lab image";
const MEMORY: &str = "lab memory";
const RUNS: &str = "lab system";

/// What a second Ctrl-C leaves to do.
const LEFT: &str = "`stackrace clean` removes the machines, `stackrace resume` continues the run";

/// What a guest's scratch disk holds besides what the study asks for, bytes.
const SCRATCH_OVER: u64 = 1 << 30;

/// What a place of one machine is called where there is no other.
const ALONE: &str = "in the lab";

/// One place: a level of the study's factor, and the system its machine runs.
struct Guest {
    place: Option<String>,
    system: String,
}

/// A run in the lab, new or resumed.
struct LabRun<'a> {
    setting: &'a Setting,
    study: &'a Study,
    store: &'a Store,
    guests: Vec<Guest>,
    /// Of each guest, as it was asked for.
    memory: &'a str,
    /// What the machines were when the run began; none: it begins now.
    known: Option<&'a [Fact]>,
}

/// `stackrace run --lab`.
pub(in crate::cli) fn run(
    setting: &Setting,
    study: &Study,
    verb: &Run,
) -> Result<FinishedRun, Failure> {
    let store = setting.session.open_store()?;
    let lab = LabRun {
        setting,
        study,
        store: &store,
        guests: guests(study, verb.systems.first())?,
        memory: &verb.memory,
        known: None,
    };
    lab.make(|run, places, accelerator| run.begin(places, &[caution(accelerator).to_owned()]))
}

/// Whether a run was made in the lab.
pub(in crate::cli) fn made(record: &Record) -> bool {
    let mut facts = record.head.environment.iter();
    facts.any(|fact| fact.name == LAB)
}

/// `stackrace resume` of such a run: on the same images, in machines of their own.
pub(in crate::cli) fn resume(
    setting: &Setting,
    study: &Study,
    store: &Store,
    stopped: Stopped,
) -> Result<FinishedRun, Failure> {
    let known = stopped.record.head.environment.clone();
    let fact = |name: &str| known.iter().find(|fact| fact.name == name);
    let system = fact(RUNS).map(|fact| fact.value.clone());
    let lab = LabRun {
        setting,
        study,
        store,
        guests: guests(study, system.as_ref())?,
        memory: fact(MEMORY).map_or("1 GiB", |fact| &fact.value),
        known: Some(&known),
    };
    lab.make(|run, places, _| run.resume(places, stopped))
}

/// The places of a study in the lab; `system` is that of the only one.
fn guests(study: &Study, system: Option<&String>) -> Result<Vec<Guest>, Failure> {
    let Some(factor) = study.places() else {
        return Ok(vec![Guest {
            place: None,
            system: system.map_or(system::DEFAULT, |system| system).to_owned(),
        }]);
    };
    let refused = |error: StudyError| Failure::refused(error.render(false));
    if factor.name != SYSTEM {
        let message = format!(
            "the levels of \"{}\" are no systems of the lab",
            factor.name
        );
        let names: Vec<&str> = system::ALL.iter().map(|system| system.name).collect();
        let help = format!("leave --lab out, or name systems: {SYSTEM} = {names:?}");
        return Err(refused(study.refusal(Refusal::at(
            &factor.span,
            message,
            help,
        ))));
    }
    let mut guests = Vec::new();
    for level in &factor.levels {
        let name = level.value.as_words();
        if system::named(&name).is_none() {
            let message = format!("there is no system \"{name}\" in the lab");
            let names = system::ALL.iter().map(|system| system.name);
            let refusal = unknown_word(&level.span, &message, &name, names, "systems");
            return Err(refused(study.refusal(refusal)));
        }
        guests.push(Guest {
            place: Some(level.label.clone()),
            system: name,
        });
    }
    Ok(guests)
}

impl LabRun<'_> {
    /// Starts the machines and calls with the places in them.
    fn make(
        &self,
        then: impl FnOnce(&places::Run<'_>, Vec<Place<'_>>, Accelerator) -> Result<FinishedRun, Failure>,
    ) -> Result<FinishedRun, Failure> {
        let interrupt = self.setting.catch_interrupt(LEFT)?;
        let mut finished = None;
        let descriptions: Vec<Description> = self
            .guests
            .iter()
            .map(|guest| self.description(guest))
            .collect::<Result<_, Failure>>()?;
        let systems: Vec<&str> = self.guests.iter().map(|guest| &*guest.system).collect();
        let ended = in_the_lab(self.setting, &systems, |sites, accelerator| {
            for (guest, site) in self.guests.iter().zip(sites) {
                self.same_image(guest, site)?;
            }
            let mut machines = Vec::new();
            for ((guest, description), site) in self.guests.iter().zip(&descriptions).zip(sites) {
                let machine = Machine::start(site, description, accelerator).map_err(cannot)?;
                tell(self.setting, &format!("{}, {}", up(&machine), guest.system));
                machines.push(machine);
            }
            let first = machines.iter().map(|machine| machine.node(1)?.agent());
            let agents: Vec<Arc<Agent>> = first.collect::<Result<_, _>>().map_err(cannot)?;
            let places = self.guests.iter().zip(&machines).zip(&agents);
            let places = places.map(|((guest, machine), agent)| self.place(guest, machine, agent));
            let on_record = OnceLock::new();
            let run = places::Run {
                setting: self.setting,
                study: self.study,
                store: self.store,
                interrupt: &interrupt,
                on_record: &on_record,
            };
            let places = places::all(places)?;
            let machines = machines.iter().zip(sites).zip(&descriptions);
            let open: Vec<fault::Open<'_>> = machines
                .zip(&self.guests)
                .map(|(((machine, site), description), guest)| fault::Open {
                    machine,
                    site,
                    description,
                    name: guest.place.as_deref(),
                })
                .collect();
            let told = |text: &str| warn(&on_record, text);
            let run = || then(&run, places, accelerator);
            finished = Some(fault::while_open_to(&open, &told, run).map_err(cannot)??);
            Ok(())
        });
        match (finished, ended) {
            // What was found is not lost with a machine that could not be removed.
            (Some(mut finished), Err(failure)) => {
                finished.ended = finished.ended.and(Err(failure));
                Ok(finished)
            }
            (Some(finished), Ok(())) => Ok(finished),
            (None, ended) => {
                let failure = ended.err();
                Err(failure.unwrap_or_else(|| Failure::internal("the run did not begin")))
            }
        }
    }

    /// The machine of one place.
    fn description(&self, guest: &Guest) -> Result<Description, Failure> {
        let part = part(self.study, guest.place.as_deref())?;
        let nodes = part.configurations.iter().map(|t| t.stack.nodes());
        Ok(Description {
            nodes: nodes.max().unwrap_or(1),
            memory_bytes: memory(self.memory)?,
            disks: disks(&part)?,
            scratch_bytes: scratch(&part),
            ..Description::default()
        })
    }

    /// Refuses to go on with a run on another image than it was begun on.
    fn same_image(&self, guest: &Guest, site: &Site<'_>) -> Result<(), Failure> {
        let Some(known) = self.known else {
            return Ok(());
        };
        let of_place = guest
            .place
            .as_ref()
            .map(|place| format!("{IMAGE} on {place}"));
        let name = |fact: &&Fact| fact.name == IMAGE || Some(&fact.name) == of_place.as_ref();
        let begun = known.iter().find(name).map(|fact| fact.value.as_str());
        let found = site.image.name();
        if begun == Some(&found) {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "the run was begun on the image {}, and this program has {found}",
            begun.unwrap_or("of another program")
        ))
        .next(format!(
            "begin anew: stackrace run {} --lab",
            self.study.name
        )))
    }

    /// Hands the study over to a machine and waits until it is ready.
    fn place<'m>(
        &self,
        guest: &Guest,
        machine: &Machine,
        agent: &'m Agent,
    ) -> Result<Place<'m>, Failure> {
        let part = part(self.study, guest.place.as_deref())?;
        let store = if scratch(&part).is_some() {
            for number in 1..=machine.nodes() {
                let node = machine.node(number).map_err(cannot)?;
                node.make_scratch().map_err(cannot)?;
            }
            format!("{SCRATCH_DIR}/store")
        } else {
            "/run/store".to_string()
        };
        let kit = Kit {
            program: argv(["/kit/stackrace", "--store", &store]),
            study: &format!("/run/study/{}", self.study.file_name()),
            wipe: &[],
            called: guest.place.as_deref().unwrap_or(ALONE),
            advice: &|said| said,
            relay: None,
        };
        let (speaks, mut facts) = places::ready(agent, self.study, guest.place.as_deref(), &kit)?;
        facts.extend(machine.facts().iter().cloned());
        facts.push(Fact::new(MEMORY, self.memory));
        if guest.place.as_ref() != Some(&guest.system) {
            facts.push(Fact::new(RUNS, &*guest.system));
        }
        Ok(Place {
            name: guest.place.clone().unwrap_or_else(|| ALONE.to_owned()),
            facts,
            speaks,
        })
    }
}

/// Says in the record that a fault was asked for.
fn warn(on_record: &OnceLock<SharedLedger>, text: &str) {
    // Nothing is on record before the run has begun; a ledger that fails ends the run elsewhere.
    if let Some(ledger) = on_record.get() {
        let text = format!("fault on request: {text}");
        let _ = ledger.tell(Event::Warned { text });
    }
}

/// The disks of all configurations, each once.
fn disks(study: &Study) -> Result<Vec<LabDisk>, Failure> {
    let mut disks: Vec<LabDisk> = Vec::new();
    for configuration in &study.configurations {
        for disk in configuration.stack.lab_disks() {
            if !disks.contains(&disk) {
                disks.push(disk);
            } else if study.policy.provision == Provision::Once {
                return Err(Failure::refused(
                    "the stacks of this study stand all at once, and two configurations ask for the same disks of the lab",
                )
                .next("write provision = \"each-round\", or give each configuration disks of another size"));
            }
        }
    }
    Ok(disks)
}

/// Bytes of disk the guest needs for itself; none: its memory will do.
fn scratch(study: &Study) -> Option<u64> {
    let needed = study.configurations.iter().map(|configuration| {
        let needed = configuration.stack.disk_needed();
        needed.iter().map(|(_, bytes)| *bytes).sum::<u64>()
    });
    let needed: u64 = match study.policy.provision {
        Provision::Once => needed.sum(),
        Provision::EachRound => needed.max().unwrap_or(0),
    };
    // A file system keeps a twentieth for itself.
    (needed > 0).then(|| (needed + needed / 10 + SCRATCH_OVER).next_multiple_of(1 << 20))
}

/// What a reader of figures from the lab must know.
fn caution(accelerator: Accelerator) -> &'static str {
    match accelerator {
        Accelerator::Kvm => {
            "measured in the lab, on emulated disks: compare these figures with each other only"
        }
        Accelerator::Tcg => {
            "measured in the lab under software emulation of the processor, on emulated disks: \
             what the processor limits is many times slower than on bare metal; compare these \
             figures with each other only, and best where the disks were the limit"
        }
    }
}
