//! `stackrace run --lab` in virtual time: the drives are models, and the clock counts instructions.
//!
//! What is on record follows from the study, its seed, the image and this program alone: the same
//! again gives the same log, byte for byte. What depends on this machine (how long it took, its QEMU)
//! is in a file of its own beside the log.

mod build;
pub mod made_on;
pub mod plan;
pub mod turns;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use crate::place::lab_guests::{
    self, CONTENT, Guest, IMAGE, Images, MEMORY, SystemImage, guests, unable, with_postgresql,
};
use crate::place::lab_options::LabOptions;
use crate::place::power::source::{self, PowerSource};
use crate::place::virtual_lab::made_on::{MadeOn, ServingCost, hash_of, qemu, seconds, served};
use crate::place::virtual_lab::turns::{VirtualExecutor, VirtualPlace, environments};
use crate::place::workers::{assignment, merged};
use stackrace_base::event::{Event, Fact, LeftBehind, RunPlace};
use stackrace_base::failure::{Failure, FailureKind};
use stackrace_base::time::{Clock, GivenClock, SystemClock};
use stackrace_base::unit;
use stackrace_layers::stack::Stack;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::journal::{self, Journal};
use stackrace_remote::agent::message::{Assignment, WorkerReply};
use stackrace_remote::lab::image::{Image, wants_zfs};
use stackrace_remote::lab::machine::MachineSite;
use stackrace_remote::lab::virtual_guest::{PROCESSOR, VirtualLab};
use stackrace_results::record::{Record, Store};
use stackrace_run::execute::resume::Stopped;
use stackrace_run::execute::virtual_clock;
use stackrace_run::execute::{self, FinishedRun};
use stackrace_run::prepare::context::{Context, unjournalled, unrecorded};
use stackrace_run::prepare::observer::Observer;
use stackrace_run::prepare::temporary;
use stackrace_run::run::{Ledger, SharedLedger};
use stackrace_study::study::{self, Provision, RoundOrder, Study};

/// Tasks that are left after a second Ctrl-C.
const LEFT: LeftBehind = LeftBehind {
    clean: &["clean"],
    told: "removes the guests",
    resumes: true,
};

/// Directory in which a guest keeps its journal.
const STORE: &str = "/run/store";

/// Beginning of the ids of such runs.
const ID: &str = "virtual";

/// Memory that is left to this machine when guests are started side by side, bytes.
const LEFT_OVER: u64 = 1 << 30;

/// Warning for a reader of these figures.
const CAUTION: &str = "every figure here comes from models of drives, in virtual time: kernel and file systems are real, \
     service times are computed from the drives' cards, and the processor is one of 1 GIPS; \
     intervals are over the accidents modelled (data, offsets, platter, head, start)";

/// Further warning for a reader of figures of two machines.
const CAUTION_ONE_KERNEL: &str = "both machines of a stack are in one kernel: they share its processor and its memory, and the line between \
     them is as declared";

/// Returns true if a study has stacks of two machines, which are then in one kernel.
fn has_second(study: &Study) -> bool {
    let mut stacks = study.configurations.iter().map(|each| &each.stack);
    stacks.any(|stack| stack.nodes() > 1)
}

/// Kind of disks of the lab that a study asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabDrives {
    /// No disk, or QEMU's.
    Emulated,
    /// Modelled ones alone, in every configuration.
    Modelled,
    /// Both.
    Mixed,
}

/// Returns the kind of disks that the configurations of a study have.
pub fn disks(study: &Study) -> LabDrives {
    let all = study.configurations.iter().map(|each| {
        let disks = each.stack.lab_disks();
        let some = disks.iter().any(|disk| disk.model.is_some());
        (some, each.stack.is_modelled())
    });
    let all: Vec<(bool, bool)> = all.collect();
    match (all.iter().any(|one| one.0), all.iter().all(|one| one.1)) {
        (false, _) => LabDrives::Emulated,
        (true, true) => LabDrives::Modelled,
        (true, false) => LabDrives::Mixed,
    }
}

/// Refuses a study that virtual time cannot serve, before anything is started.
///
/// # Errors
/// What it would need instead.
pub fn check(study: &Study) -> Result<(), Failure> {
    source::check(study, PowerSource::Modelled)?;
    let refused = |text: &str, next: &str| Err(Failure::refused(text).next(next));
    if disks(study) != LabDrives::Modelled {
        return refused(
            "virtual time needs modelled drives in every configuration",
            "write lab-disks = { model = \"NAME\" } (stackrace show drives), or leave --clock virtual out",
        );
    }
    let stacks = || study.configurations.iter().map(|each| &each.stack);
    if let Some(why) = stacks().find_map(Stack::apart) {
        return refused(
            &format!("{why}; in virtual time there is one"),
            "declare the disks without a model, by size, rate and latency, and run it in real time: --clock real",
        );
    }
    if stacks().any(|stack| stack.disk_needed().iter().any(|(_, bytes)| *bytes > 0)) {
        return refused(
            "a guest in virtual time has modelled drives and no other disk, and this study keeps files on one",
            "build its stacks on lab-disks = { model = \"NAME\" } alone",
        );
    }
    Ok(())
}

/// Gives each turn a guest of its own: stacks stand for one turn.
pub fn in_turns(study: &mut Study) {
    study.policy.order = RoundOrder::Turns;
    study.policy.provision = Provision::EachRound;
    study.policy.slices = None;
}

/// Makes a run in virtual time, of a study that [`check`] lets pass, or continues one on the same image.
///
/// # Errors
/// The study cannot run there, a guest does not come up, the image is another by now, or nothing can be recorded.
pub fn run(
    context: &Context,
    (study, store): (&Study, &Store),
    stopped: Option<Stopped>,
    options: LabOptions<'_>,
    observer: &dyn Observer,
    images: Images<'_>,
) -> Result<FinishedRun, Failure> {
    let run = VirtualRun {
        context,
        study,
        store,
        observer,
        options,
        guests: guests(study, options.system, images.added_names)?,
    };
    let images = run.images(images)?;
    if let Some(stopped) = &stopped {
        check_images(
            study,
            &stopped.record.head.environment,
            &run.guests,
            &images,
        )?;
        build::check(study, &stopped.record.head.environment, &build::of_this())?;
    }
    run.make(&images, stopped)
}

/// Refuses to continue on other images than those that the record knows.
///
/// # Errors
/// Which one is another by now.
fn check_images(
    study: &Study,
    known: &[Fact],
    guests: &[Guest],
    images: &[SystemImage],
) -> Result<(), Failure> {
    // An image may have more beside it by now than when the run began.
    let needed = Needed::by(study, images)?;
    for (guest, made_of) in guests.iter().zip(images) {
        guest.same_image(known, &made_of.image.name(), study)?;
        let (zfs, postgresql) = (made_of.zfs.as_ref(), made_of.postgresql.as_ref());
        let found = content([
            Some(&made_of.image),
            zfs.filter(|_| needed.zfs),
            postgresql.filter(|_| needed.postgresql),
        ]);
        // Runs from before this was recorded go on.
        if guest
            .known(known, CONTENT)
            .is_some_and(|begun| begun != found)
        {
            let text = "the run was begun on another build of this image: the log would not go on as it began";
            return Err(Failure::refused(text).next(format!(
                "begin anew: {}",
                study::command("run", &study.name, &["--lab"])
            )));
        }
    }
    Ok(())
}

/// Makes guests of a configuration of a run that is over once more, to find out how a result came about.
///
/// # Errors
/// They cannot be made here, or those of `work`.
pub fn again<T>(
    context: &Context,
    study: &Study,
    record: &Record,
    configuration: usize,
    images: Images<'_>,
    work: impl FnOnce(&VirtualPlace<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let on_record = record.head.place();
    let RunPlace::Virtual(lab) = &*on_record else {
        return Err(Failure::internal("the run was not made in virtual time"));
    };
    let guests = guests(study, lab.system.as_deref(), images.added_names)?.into_iter();
    let place = study.place_of(configuration);
    let guests: Vec<Guest> = guests
        .filter(|guest| guest.place.as_deref() == place)
        .collect();
    let images = guests.iter().map(|guest| (images.made)(&guest.system));
    let images: Vec<SystemImage> = images.collect::<Result<_, Failure>>()?;
    temporary::work(context, &host, |journal, id| {
        let sites = sites(
            &host,
            journal,
            &temporary::dir(context, id)?,
            &images,
            study,
        )?;
        let places = places(&sites, &guests, study, lab.memory_bytes)?;
        let first = places.first();
        work(first.ok_or_else(|| Failure::internal("the configuration has no place"))?)
    })
}

/// A site for each image; with the ZFS modules and PostgreSQL only where the study needs them: they
/// take memory, and a guest with them is another one.
///
/// # Errors
/// Its directory cannot be made, or PostgreSQL was not built.
fn sites<'a>(
    host: &'a LocalHost,
    journal: &'a Journal,
    dir: &Path,
    images: &'a [SystemImage],
    study: &Study,
) -> Result<Vec<MachineSite<'a>>, Failure> {
    let needed = Needed::by(study, images)?;
    let mut sites = lab_guests::sites(host, journal, dir, images, &lab_guests::carried(study))?;
    for site in &mut sites {
        site.zfs = site.zfs.filter(|_| needed.zfs);
        site.postgresql = site.postgresql.filter(|_| needed.postgresql);
    }
    Ok(sites)
}

/// Parts that a guest has beside its image. What was built and is not needed is not in it.
struct Needed {
    zfs: bool,
    postgresql: bool,
}

impl Needed {
    /// Returns what the guests of a study need.
    ///
    /// # Errors
    /// PostgreSQL is needed and was not built.
    fn by(study: &Study, images: &[SystemImage]) -> Result<Self, Failure> {
        let stacks = study.configurations.iter().map(|each| &each.stack);
        let mut needs = stacks.flat_map(|stack| stack.needs());
        Ok(Self {
            // One configuration with ZFS is enough: all guests of a study are alike.
            zfs: needs.any(|(_, _, needs)| wants_zfs(&needs)),
            postgresql: with_postgresql(study, images)?,
        })
    }
}

/// Prepares what guests are made of at each site, each guest with so much memory.
///
/// # Errors
/// The program does not run there, or a directory cannot be made.
fn places<'a>(
    sites: &'a [MachineSite<'a>],
    guests: &[Guest],
    study: &Study,
    memory_bytes: u64,
) -> Result<Vec<VirtualPlace<'a>>, Failure> {
    let each = sites.iter().zip(guests).map(|(site, guest)| {
        let place = guest.place.as_deref();
        Ok(VirtualPlace {
            lab: VirtualLab::begin(site, memory_bytes).map_err(unable)?,
            assignment: Assignment {
                one_kernel: has_second(study),
                ..assignment(study, place, Path::new(STORE), Vec::new(), &[])
            },
        })
    });
    each.collect()
}

struct VirtualRun<'a> {
    context: &'a Context,
    study: &'a Study,
    store: &'a Store,
    observer: &'a dyn Observer,
    options: LabOptions<'a>,
    /// The systems it is made on.
    guests: Vec<Guest>,
}

impl VirtualRun<'_> {
    /// Returns what the guests of each system are made of.
    fn images(&self, images: Images<'_>) -> Result<Vec<SystemImage>, Failure> {
        let each = self.guests.iter().map(|guest| (images.made)(&guest.system));
        each.collect()
    }

    fn make(
        &self,
        images: &[SystemImage],
        stopped: Option<Stopped>,
    ) -> Result<FinishedRun, Failure> {
        let interrupt = self.observer.catch_interrupt(LEFT)?;
        let host = LocalHost::new(Arc::new(|_| ()));
        let (wall, began) = (SystemClock.now_ns(), SystemClock.today());
        temporary::work(self.context, &host, |journal, id| {
            let dir = temporary::dir(self.context, id)?;
            let sites = sites(&host, journal, &dir, images, self.study)?;
            let bytes = self.options.memory_bytes;
            let places = places(&sites, &self.guests, self.study, bytes)?;
            let jobs = self.jobs(&places)?;
            let made_of: Vec<(Fact, String)> = sites.iter().map(made_of).collect();
            let parts = made_of
                .iter()
                .flat_map(|(image, content)| [&*image.value, content]);
            let images = parts.collect::<Vec<&str>>().join(" and ");
            let facts = self.environment(&places, &made_of, jobs)?;
            let first_guest = SystemClock.now_ns() - wall;
            let clock = self.clock(stopped.as_ref())?;
            let epoch = clock.now_ns();
            // The journal is locked as long as the run goes on: `clean` then leaves it alone.
            let (ledger, _journal) = match stopped {
                Some(stopped) => {
                    let (journal, leftovers) = stopped.take_over(self.store)?;
                    let ledger = stopped.resumed(self.store, leftovers, &[], self.observer)?;
                    (ledger, journal)
                }
                None => self.begin(facts, &images, &clock)?,
            };
            let systems = self.guests.iter().map(|guest| &*guest.system);
            let systems: Vec<&str> = systems.collect();
            self.observer.remark(&format!(
                "virtual time: a first guest was up in {}, {jobs} side by side, {}",
                unit::time_ns(first_guest as f64),
                unit::listed(&systems)
            ));
            let watcher = execute::watch(self.study, self.store, &ledger, self.observer);
            let mut executor = VirtualExecutor {
                places: &places,
                study: self.study,
                ledger: ledger.clone(),
                clock: Arc::clone(&clock),
                watcher: &*watcher,
                interrupt,
                jobs,
                turns: VecDeque::new(),
                started: 0,
            };
            let finished = execute::race(self.study, self.store, &ledger, &*watcher, &mut executor);
            self.keep_made_on(&ledger, |log| MadeOn {
                stackrace: env!("CARGO_PKG_VERSION"),
                program: hash_of(Path::new(build::PROGRAM)),
                qemu: qemu(&host),
                kernel: stackrace_machine::observe::kernel(),
                jobs,
                began,
                first_guest_s: seconds(first_guest),
                wall_s: seconds(SystemClock.now_ns() - wall),
                virtual_s: seconds(clock.now_ns() - epoch),
                cost: self.say_cost(&ledger),
                log,
            })?;
            Ok(finished)
        })
    }

    /// Says what serving the drives has cost.
    fn say_cost(&self, ledger: &SharedLedger) -> ServingCost {
        let (requests, busy_ns) = served(ledger);
        let request_cost_ns = busy_ns as f64 / requests.max(1) as f64;
        // A run that failed before its first stack was torn down has nothing to say.
        if requests > 0 {
            let each = unit::time_ns(request_cost_ns);
            self.observer.remark(&format!(
                "the drives answered {requests} requests; serving one took {each} of a guest's processor"
            ));
        }
        ServingCost {
            requests,
            request_cost_ns,
        }
    }

    /// Writes beside the log what depends on this machine; `made_on` is given the log's hash.
    fn keep_made_on(
        &self,
        ledger: &SharedLedger,
        made_on: impl FnOnce(String) -> MadeOn,
    ) -> Result<(), Failure> {
        let run = ledger.lock().record().head.run.clone();
        let made_on = made_on(hash_of(&self.store.run_dir(&run).join("log.jsonl")));
        let text = serde_json::to_string_pretty(&made_on).unwrap_or_default();
        self.store.write_made_on(&run, &text).map_err(unrecorded)
    }

    /// The clock of the run: a new one, or the one that stopped.
    fn clock(&self, stopped: Option<&Stopped>) -> Result<Arc<GivenClock>, Failure> {
        let given = stopped.and_then(|stopped| stopped.given.clone());
        let clock = given.or_else(virtual_clock::begin);
        clock.ok_or_else(|| Failure::internal("no such time of day"))
    }

    /// Returns the environments of the systems, found in a guest of each.
    fn environment(
        &self,
        places: &[VirtualPlace<'_>],
        made_of: &[(Fact, String)],
        jobs: usize,
    ) -> Result<Vec<Fact>, Failure> {
        let mut known = Vec::new();
        let found = environments(places, self.study, jobs).map_err(unable)?;
        for ((found, guest), (image, content)) in found.into_iter().zip(&self.guests).zip(made_of) {
            let mut facts = found.map_err(refused_there)?;
            facts.push(image.clone());
            facts.push(Fact::new(CONTENT, &**content));
            facts.extend(guest.fact());
            known.push((guest.place.clone().unwrap_or_default(), facts));
        }
        Ok(merged(&known))
    }

    /// Returns the number of guests that run side by side.
    fn jobs(&self, places: &[VirtualPlace<'_>]) -> Result<usize, Failure> {
        let guests = places.iter().map(|place| place.lab.guest_bytes());
        let guest_bytes = guests.max().unwrap_or(1);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let available = stackrace_machine::observe::memory_available().unwrap_or(u64::MAX);
        let fit = available.saturating_sub(LEFT_OVER) / guest_bytes;
        let fit = usize::try_from(fit).unwrap_or(usize::MAX);
        let guest = unit::bytes(guest_bytes);
        if fit == 0 {
            return Err(Failure::unable(format!(
                "a guest takes {guest} of memory, and this machine has {} to spare",
                unit::bytes(available)
            ))
            .next("give each guest less: --memory \"512 MiB\""));
        }
        match self.options.jobs {
            Some(0) => Err(Failure::usage("--jobs 0 would never end").next("write at least 1")),
            Some(jobs) if jobs > fit => Err(Failure::usage(format!(
                "--jobs {jobs}: a guest takes {guest} of memory, and there is room for {fit}"
            ))
            .next(format!("write --jobs {fit}"))),
            Some(jobs) => Ok(jobs),
            None => Ok(cores.min(fit)),
        }
    }

    /// Begins the record, with an id that follows from what is run.
    fn begin(
        &self,
        mut facts: Vec<Fact>,
        image: &str,
        clock: &Arc<GivenClock>,
    ) -> Result<(SharedLedger, Journal), Failure> {
        let memory = unit::bytes(self.options.memory_bytes);
        facts.push(Fact::new("lab", format!("virtual time, {PROCESSOR}")));
        facts.push(Fact::new(MEMORY, &*memory));
        facts.push(Fact::new(build::BUILD, build::of_this()));
        for disk in lab_guests::disks(self.study)? {
            facts.push(Fact::new(
                "lab disk",
                format!("{}: {}", disk.serial, disk.described()),
            ));
        }
        // What the log follows from, so that the same run has the same id anywhere.
        let mut hash = blake3::Hasher::new();
        for word in [self.study.hash().as_str(), image, &memory] {
            // The 0 keeps words apart: two that border elsewhere are others.
            hash.update(word.as_bytes()).update(&[0]);
        }
        hash.update(&self.study.seed.to_le_bytes());
        let name = hash.finalize().to_hex()[..8].to_string();
        for again in 1_u32.. {
            let run = match again {
                1 => format!("{ID}-{name}"),
                again => format!("{ID}-{name}-{again}"),
            };
            // The same run once more: its log is kept beside the first one.
            if self.store.run_dir(&run).exists() {
                continue;
            }
            let mut head = {
                let place = RunPlace::Virtual(self.options.on_record());
                execute::head(self.context, self.study, &run, (place, facts.clone()))
            };
            // Where the study lies and how many guests run side by side are this machine's.
            head.study_name = self.study.file_name();
            head.command = ["stackrace", "run", &head.study_name, "--lab"]
                .map(str::to_owned)
                .to_vec();
            let made = self.store.create_run(head, Arc::<GivenClock>::clone(clock));
            let (log, line) = made.map_err(unrecorded)?;
            let record = Record::begin(line)
                .ok_or_else(|| Failure::internal("the run's first line is not its head"))?;
            let ledger = SharedLedger::new(Ledger::new(log, self.store.index(), record));
            let path = self.store.run_dir(&run).join(journal::FILE);
            let journal = Journal::create(&path).map_err(unjournalled)?;
            let second = has_second(self.study).then_some(CAUTION_ONE_KERNEL);
            for caution in [Some(CAUTION), second].into_iter().flatten() {
                let text = caution.to_owned();
                ledger
                    .tell(Event::Warned { text })
                    .map_err(execute::unwritten)?;
            }
            return Ok((ledger, journal));
        }
        Err(Failure::internal("no id is left for the run"))
    }
}

/// The image with what comes with it, and what their files hold.
fn made_of(site: &MachineSite<'_>) -> (Fact, String) {
    let parts = [Some(site.image), site.zfs, site.postgresql];
    let names: Vec<String> = parts.into_iter().flatten().map(Image::name).collect();
    (Fact::images(IMAGE, names), content(parts))
}

/// Describes the content of the files of an image, and of what comes with it.
fn content(parts: [Option<&Image>; 3]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().map(Image::content).collect();
    parts.join(" with ")
}

/// Returns the refusal of a guest as an error.
fn refused_there(reply: WorkerReply) -> Failure {
    match reply {
        WorkerReply::Refused { code, text, next } => {
            let text = text.trim_start_matches("error: ").to_owned();
            Failure::new(FailureKind::Remote(code), format!("in the guest: {text}")).next(next)
        }
        other => Failure::internal(format!("in the guest: an unexpected answer: {other:?}")),
    }
}
