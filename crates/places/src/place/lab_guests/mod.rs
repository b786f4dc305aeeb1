//! `stackrace run --lab` and `stackrace resume` of such a run: machines started, one for each system
//! the study is tried on, and the run made in them.

pub mod added;
pub mod needs;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::place::lab_options::LabOptions;
use crate::place::workers::{self, PlacesRun, ReadyPlace, assignment};
use stackrace_base::event::{Event, Fact, FactFigure, LeftBehind, RunPlace};
use stackrace_base::failure::Failure;
use stackrace_base::setting::{Refusal, unknown_word};
use stackrace_base::unit;
use stackrace_layers::stack;
use stackrace_machine::host::{Host, LabDisk, local::LocalHost};
use stackrace_machine::journal::Journal;
use stackrace_remote::agent::ssh::StopAsked;
use stackrace_remote::lab::added::AddedSystem;
use stackrace_remote::lab::description::Description;
use stackrace_remote::lab::image::Image;
use stackrace_remote::lab::machine::{self, Accelerator, LabMachine, MachineSite, SCRATCH_DIR};
use stackrace_remote::lab::system::{self, System};
use stackrace_remote::lab::{LabError, fault, postgresql};
use stackrace_results::record::Store;
use stackrace_run::execute::FinishedRun;
use stackrace_run::execute::resume::Stopped;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::observer::Observer;
use stackrace_run::prepare::study_file::part;
use stackrace_run::prepare::temporary;
use stackrace_run::run::SharedLedger;
use stackrace_study::study::{self, SYSTEM, Study, StudyError};

/// Entry of the store that says which accelerator works here.
pub const ACCELERATOR: &str = "lab-accelerator";

/// This program, whatever became of its file.
const PROGRAM: &str = "/proc/self/exe";

/// Parts from which the guests of a system are made.
pub struct SystemImage {
    /// System of the image: says how to build what is missing.
    pub system: &'static System,
    /// Kernel and root file system.
    pub image: Image,
    /// Its ZFS modules, where they were built.
    pub zfs: Option<Image>,
    /// PostgreSQL for it, where it was built.
    pub postgresql: Option<Image>,
}

/// Returns true if the workloads of a study need PostgreSQL.
///
/// # Errors
/// They do, and it was not built for one of the systems: how to.
pub fn with_postgresql(study: &Study, images: &[SystemImage]) -> Result<bool, Failure> {
    let configurations = study.configurations.iter();
    let mut workloads = configurations.flat_map(|each| &each.workloads);
    if !workloads.any(|workload| postgresql::wanted(&workload.needs())) {
        return Ok(false);
    }
    let mut images = images.iter();
    let Some(without) = images.find(|each| each.postgresql.is_none()) else {
        return Ok(true);
    };
    let system = without.system;
    let text = format!("the study needs PostgreSQL, which the lab does not have for {system}");
    let build = system.build();
    Err(Failure::unable(text).next(format!("build it once: {build} --postgresql")))
}

/// What guests can be made of here.
#[derive(Clone, Copy)]
pub struct Images<'a> {
    /// Finds the image of a system that the lab makes, by its name.
    pub made: &'a dyn Fn(&str) -> Result<SystemImage, Failure>,
    /// Finds a system that the user added, by its name; `None` if there is none of this name.
    pub added: &'a dyn Fn(&str) -> Result<Option<AddedSystem>, Failure>,
    /// Names of those.
    pub added_names: &'a [String],
}

/// A failure of the lab, as the user is told of it.
pub fn unable(error: LabError) -> Failure {
    Failure::unable(error.to_string()).next(error.next())
}

/// Calls with what the machine of each system is made with, `carried` among it, and the accelerator that works;
/// whatever is made is gone when this returns.
///
/// # Errors
/// There is no accelerator or no room; those of `work`.
pub fn in_the_lab<T>(
    context: &Context,
    images: &[SystemImage],
    carried: &[PathBuf],
    work: impl FnOnce(&[MachineSite<'_>], Accelerator) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut all = images.iter().map(|each| &each.image);
    if let Some(image) = all.find(|image| image.hypervisor().is_some()) {
        let text = format!(
            "{} runs in virtual time alone: the disks of a guest in real time are not for a kernel under a hypervisor",
            image.name()
        );
        return Err(Failure::refused(text).next(
            "take modelled drives, lab-disks = { model = \"NAME\" }, or another system: --system debian-13",
        ));
    }
    let host = LocalHost::new(Arc::new(|_| ()));
    let known = context.store_dir()?.join(ACCELERATOR);
    temporary::work(context, &host, |journal, id| {
        let sites = sites(
            &host,
            journal,
            &temporary::dir(context, id)?,
            images,
            carried,
        )?;
        let accelerator = machine::accelerator(&sites[0], &known, stack::undo_kinds());
        let accelerator = accelerator.map_err(unable)?;
        work(&sites, accelerator)
    })
}

/// A site below `dir` for each of the images, whose guests have copies of the files `carried`.
///
/// # Errors
/// Its directory cannot be made.
pub fn sites<'a>(
    host: &'a LocalHost,
    journal: &'a Journal,
    dir: &Path,
    images: &'a [SystemImage],
    carried: &[PathBuf],
) -> Result<Vec<MachineSite<'a>>, Failure> {
    let mut sites = Vec::new();
    for (number, made_of) in (1..).zip(images) {
        let dir = dir.join(format!("place-{number}"));
        host.create_dir(&dir)
            .map_err(|error| unable(error.into()))?;
        sites.push(MachineSite {
            host,
            journal,
            dir,
            image: &made_of.image,
            zfs: made_of.zfs.as_ref(),
            postgresql: made_of.postgresql.as_ref(),
            program: Path::new(PROGRAM),
            carried: carried.to_vec(),
        });
    }
    Ok(sites)
}

/// Files of this machine that the workloads of a study read: its guests are given them.
pub fn carried(study: &Study) -> Vec<PathBuf> {
    let all = study.configurations.iter().flat_map(|each| &each.workloads);
    // Configurations share most of them, and a guest has each once.
    let files: BTreeSet<PathBuf> = all.flat_map(|work| work.reads()).collect();
    files.into_iter().collect()
}

/// The memory of a machine, as the command line says it.
///
/// # Errors
/// It is no number of bytes.
pub fn memory(text: &str) -> Result<u64, Failure> {
    unit::parse_bytes(text).map_err(|why| Failure::usage(format!("--memory: {why}")))
}

/// `up in 4.1 s (kvm)`.
pub fn up(machine: &LabMachine) -> String {
    up_in(machine.boot_ns(), machine.accelerator())
}

fn up_in(boot_ns: u64, accelerator: Accelerator) -> String {
    let how = match accelerator {
        Accelerator::Kvm => "kvm",
        // Else the user wonders for minutes why it takes so long.
        Accelerator::Tcg => {
            "emulated, many times slower: KVM does not work here, see `stackrace doctor`"
        }
    };
    let time = unit::time_ns(boot_ns as f64);
    format!("lab: up in {time} ({how})")
}

/// Names of the facts that say what a machine was started with.
pub const IMAGE: &str = "lab image";
/// Name of the fact that says what its files hold.
pub const CONTENT: &str = "lab image content";
/// Name of the fact that has the memory of a guest.
pub const MEMORY: &str = "lab memory";
/// Name of the fact that has the system of a guest.
pub const RUNS: &str = "lab system";

/// Tasks that are left after a second Ctrl-C.
const LEFT: LeftBehind = LeftBehind {
    clean: &["clean"],
    told: "removes the machines",
    resumes: true,
};

/// Content of a guest's scratch disk besides what the study asks for, bytes.
const SCRATCH_OVER: u64 = 1 << 30;

/// Name of a place of one machine where there is no other.
const ALONE: &str = "in the lab";

/// One place: a level of the study's factor, and the system its machine runs.
pub struct Guest {
    /// The level; `None` if there is one place.
    pub place: Option<String>,
    /// Name of the system.
    pub system: String,
}

/// The run that was made in guests, with the failure to remove one: what was found is not lost with it.
fn outcome(
    finished: Option<FinishedRun>,
    ended: Result<(), Failure>,
) -> Result<FinishedRun, Failure> {
    match finished {
        Some(mut finished) => {
            if let Err(failure) = ended {
                finished.ended = finished.ended.and(Err(failure));
            }
            Ok(finished)
        }
        None => {
            ended?;
            Err(Failure::internal("the run did not begin"))
        }
    }
}

impl Guest {
    /// The fact that names the system, unless the place is called after it.
    pub fn fact(&self) -> Option<Fact> {
        let says_it = self.place.as_ref() == Some(&self.system);
        (!says_it).then(|| Fact::new(RUNS, &*self.system))
    }

    /// Returns what is on record of this place under a name. Of several places, each has a fact of
    /// its own (`places::merged`).
    pub fn known<'b>(&self, known: &'b [Fact], name: &str) -> Option<&'b str> {
        self.fact_of(known, name).map(|fact| fact.value.as_str())
    }

    fn fact_of<'b>(&self, known: &'b [Fact], name: &str) -> Option<&'b Fact> {
        let of_place = self.place.as_ref();
        let of_place = of_place.map(|place| format!("{name} on {place}"));
        let mut known = known.iter();
        known.find(|fact| fact.name == name || Some(&fact.name) == of_place.as_ref())
    }

    /// Refuses to go on with a run on another image than it was begun on.
    ///
    /// # Errors
    /// `found` is not what `known`, the environment on record, names for this place.
    pub fn same_image(&self, known: &[Fact], found: &str, study: &Study) -> Result<(), Failure> {
        let begun = self.fact_of(known, IMAGE);
        let images = begun.and_then(|fact| fact.figure.as_ref());
        // In virtual time the modules have images of their own.
        if matches!(images, Some(FactFigure::Images(images)) if images.first().is_some_and(|it| it == found))
        {
            return Ok(());
        }
        let begun = begun.map(|fact| fact.value.as_str());
        Err(Failure::refused(format!(
            "the run was begun on the image {}, and there is {found} now",
            begun.unwrap_or("of another program")
        ))
        .next(format!(
            "begin anew: {}",
            study::command("run", &study.name, &["--lab"])
        )))
    }
}

/// A run in the lab, new or resumed.
struct LabRun<'a> {
    context: &'a Context,
    study: &'a Study,
    store: &'a Store,
    observer: &'a dyn Observer,
    images: Images<'a>,
    guests: Vec<Guest>,
    options: LabOptions<'a>,
    /// Facts of the machines when the run began; `None` if it begins now.
    known: Option<&'a [Fact]>,
}

/// Makes a run in guests whose systems the lab makes, or continues one on the same images, in machines of their own.
///
/// # Errors
/// The study cannot run there, a machine does not come up, the images are others by now, or nothing can be
/// recorded.
pub fn run(
    context: &Context,
    (study, store): (&Study, &Store),
    stopped: Option<Stopped>,
    (guests, options): (Vec<Guest>, LabOptions<'_>),
    observer: &dyn Observer,
    images: Images<'_>,
) -> Result<FinishedRun, Failure> {
    let known = stopped
        .as_ref()
        .map(|stopped| stopped.record.head.environment.clone());
    let lab = LabRun {
        context,
        study,
        store,
        observer,
        images,
        guests,
        options,
        known: known.as_deref(),
    };
    lab.make(stopped)
}

/// The places of a study in the lab; `system` is that of the only one.
///
/// # Errors
/// A level of the study's factor of places is no system of the lab, or a file that guests are given is of no use.
pub fn guests(
    study: &Study,
    system: Option<&str>,
    added: &[String],
) -> Result<Vec<Guest>, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let all = study.configurations.iter().flat_map(|each| &each.workloads);
    // Before a guest is up that would say the same.
    let mut reading = all.filter(|work| !work.reads().is_empty());
    if let Some(why) = reading.find_map(|work| work.refused_on(&host)) {
        return Err(Failure::refused(why));
    }
    let Some(factor) = study.places() else {
        return Ok(vec![Guest {
            place: None,
            system: system.unwrap_or(system::DEFAULT).to_owned(),
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
    let added = || added.iter().map(String::as_str);
    for level in &factor.levels {
        let name = level.value.as_words();
        if system::named(&name).is_none() && !added().any(|known| known == name) {
            let message = format!("there is no system \"{name}\" in the lab");
            let names = system::ALL.iter().map(|system| system.name).chain(added());
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
    /// Starts the machines and makes the run in them.
    fn make(&self, stopped: Option<Stopped>) -> Result<FinishedRun, Failure> {
        let place = RunPlace::Lab(self.options.on_record());
        let of = (self.study, self.store);
        let run = PlacesRun::new(self.context, of, place, self.observer, LEFT)?;
        let mut finished = None;
        // What can be refused is, before the first machine starts.
        let descriptions: Vec<Description> = self
            .guests
            .iter()
            .map(|guest| self.description(guest))
            .collect::<Result<_, Failure>>()?;
        let made = self.images.made;
        let images = self.guests.iter().map(|guest| made(&guest.system));
        let images: Vec<SystemImage> = images.collect::<Result<_, Failure>>()?;
        with_postgresql(self.study, &images)?;
        let given = carried(self.study);
        let ended = in_the_lab(self.context, &images, &given, |sites, accelerator| {
            for (guest, site) in self.guests.iter().zip(sites) {
                if let Some(known) = self.known {
                    guest.same_image(known, &site.image.name(), self.study)?;
                }
            }
            let mut machines = Vec::new();
            for ((guest, description), site) in self.guests.iter().zip(&descriptions).zip(sites) {
                let machine = LabMachine::start(site, description, accelerator).map_err(unable)?;
                let remark = format!("{}, {}", up(&machine), guest.system);
                self.observer.remark(&remark);
                machines.push(machine);
            }
            let places = self.guests.iter().zip(&machines);
            let places = places.map(|(guest, machine)| self.place(guest, machine));
            let places = workers::all(places)?;
            let machines = machines.iter().zip(sites).zip(&descriptions);
            let open: Vec<fault::FaultTarget<'_>> = machines
                .zip(&self.guests)
                .map(
                    |(((machine, site), description), guest)| fault::FaultTarget {
                        machine,
                        site,
                        description,
                        name: guest.place.as_deref(),
                    },
                )
                .collect();
            let told = |text: &str| warn(&run.on_record, text);
            let warnings = match stopped {
                Some(_) => Vec::new(),
                None => vec![caution(accelerator).to_owned()],
            };
            let run = || run.make(places, stopped, &warnings);
            finished = Some(fault::while_open_to(&open, &told, run).map_err(unable)??);
            Ok(())
        });
        outcome(finished, ended)
    }

    /// The machine of one place.
    fn description(&self, guest: &Guest) -> Result<Description, Failure> {
        let part = part(self.study, guest.place.as_deref())?;
        let nodes = part.configurations.iter().map(|t| t.stack.nodes());
        Ok(Description {
            nodes: nodes.max().unwrap_or(1),
            memory_bytes: self.options.memory_bytes,
            disks: disks(&part)?,
            scratch_bytes: scratch(&part),
            ..Description::default()
        })
    }

    /// Hands the study over to a machine and waits until it is ready.
    fn place(&self, guest: &Guest, machine: &LabMachine) -> Result<ReadyPlace, Failure> {
        let name = guest.place.as_deref();
        let part = part(self.study, name)?;
        // Where stacks keep files, the store needs a disk; a journal alone fits into memory
        // (`/run`).
        let store = if scratch(&part).is_some() {
            for number in 1..=machine.nodes() {
                let node = machine.node(number).map_err(unable)?;
                node.make_scratch().map_err(unable)?;
            }
            format!("{SCRATCH_DIR}/store")
        } else {
            "/run/store".to_string()
        };
        let first = machine.node(1).map_err(unable)?;
        let connection = first.connection().map_err(unable)?;
        let assignment = assignment(self.study, name, Path::new(&store), machine.peers(), &[]);
        let called = name.unwrap_or(ALONE);
        let mut place = ReadyPlace::open(
            &connection,
            assignment,
            called,
            &|said| said,
            &StopAsked::default(),
        )?;
        let facts = &mut place.facts;
        facts.extend(machine.facts().iter().cloned());
        facts.push(Fact::new(MEMORY, unit::bytes(self.options.memory_bytes)));
        facts.extend(guest.fact());
        Ok(place)
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
pub fn disks(study: &Study) -> Result<Vec<LabDisk>, Failure> {
    let mut disks: Vec<LabDisk> = Vec::new();
    for configuration in &study.configurations {
        for disk in configuration.stack.lab_disks() {
            if !disks.contains(&disk) {
                disks.push(disk);
            } else if study.policy.stand_together() {
                return Err(Failure::refused(
                    "the stacks of this study stand all at once, and two configurations ask for the same disks of the lab",
                )
                .next("write provision = \"each-round\" and order = \"turns\", or give each configuration disks of another size"));
            }
        }
    }
    Ok(disks)
}

/// Bytes of disk the guest needs for itself; `None` if its memory will do.
fn scratch(study: &Study) -> Option<u64> {
    let needed = study.configurations.iter().map(|configuration| {
        let needed = configuration.stack.disk_needed();
        needed.iter().map(|(_, bytes)| *bytes).sum::<u64>()
    });
    // What stands together needs its files together; else the largest stack is the measure.
    let needed: u64 = match study.policy.stand_together() {
        true => needed.sum(),
        false => needed.max().unwrap_or(0),
    };
    // A file system keeps a twentieth for itself.
    (needed > 0).then(|| (needed + needed / 10 + SCRATCH_OVER).next_multiple_of(1 << 20))
}

/// Warns a reader of figures from the lab.
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

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_run::prepare::study_file;

    #[test]
    fn a_file_that_guests_are_given_is_looked_at_before_they_start() {
        let text = b"title = \"t\"\n[[stack]]\ntmpfs = { size = \"1 GiB\" }\n[[workload]]\n\
                     replay = { trace = \"/nowhere/a.trace\" }\n[decide]\nrounds-at-most = 3\n";
        let study = study_file::parse("t.toml", text).unwrap();
        assert_eq!(carried(&study), [Path::new("/nowhere/a.trace")]);
        let refused = guests(&study, None, &[]).err().unwrap().render();
        assert!(
            refused.contains("/nowhere/a.trace: No such file"),
            "{refused}"
        );
    }
}
