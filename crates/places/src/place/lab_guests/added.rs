//! Systems that the user added, as places of a study. Nothing of this program runs in their guests: each is a machine
//! that has nothing but a shell, which is started for the run and gone with it.

use super::{ACCELERATOR, Guest, Images, LEFT, MEMORY, caution, outcome, unable, up_in};
use crate::place::lab_options::LabOptions;
use crate::place::shell;
use crate::place::shell::worker::ShellWorker;
use crate::place::workers::{self, PlacesRun, ReadyPlace, assignment, interrupted};
use stackrace_base::event::{Fact, RunPlace};
use stackrace_base::failure::Failure;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::{self, InWords};
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::{Host, Needs};
use stackrace_remote::agent::connection::Connection;
use stackrace_remote::agent::router::Router;
use stackrace_remote::agent::shell::{SYSTEM_FACT, ShellHost};
use stackrace_remote::agent::ssh::StopAsked;
use stackrace_remote::agent::worker;
use stackrace_remote::lab::added::{
    self, AboutAdded, AddedError, AddedSystem, Keeping, LookedImage,
};
use stackrace_remote::lab::added_guest::{AddedGuest, GuestGround, GuestWanted};
use stackrace_remote::lab::machine::{Accelerator, accelerator_found};
use stackrace_remote::lab::{LabError, QEMU, QEMU_IMG, kvm_probe};
use stackrace_results::record::Store;
use stackrace_run::execute::FinishedRun;
use stackrace_run::execute::resume::Stopped;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::observer::Observer;
use stackrace_run::prepare::study_file::part;
use stackrace_run::prepare::{preflight, temporary};
use stackrace_study::plan::Plan;
use stackrace_study::study::Study;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Programs that such guests need here.
const NEEDS: Needs = Needs {
    tools: &[QEMU, QEMU_IMG, "ssh"],
    ..NOTHING
};

/// Needs of nothing.
const NOTHING: Needs = Needs {
    root: false,
    ..Needs::as_root(&[], &[])
};

/// Commands that every measurement over a shell needs there.
const OF_GUESTS: Needs = Needs {
    tools: &[
        "cat", "dd", "df", "find", "head", "ls", "mkdir", "rm", "rmdir", "sleep", "sync", "tail",
    ],
    ..NOTHING
};

/// Directory of a run in a guest, as a plan names it.
const PLANNED: &str = "/tmp/.stackrace-{id}";

/// Guests of a study.
pub enum AskedGuests {
    /// Their systems are made by the lab.
    Made(Vec<Guest>),
    /// The user added their systems.
    Added(AddedGuests),
}

/// Guests whose systems the user added.
pub struct AddedGuests {
    guests: Vec<(Guest, AddedSystem)>,
}

/// Finds out what the guests of a study are made of.
///
/// # Errors
/// Some are made by the lab and others were added; an image is damaged; the clock is virtual.
pub fn asked(
    guests: Vec<Guest>,
    virtual_time: bool,
    images: Images<'_>,
) -> Result<AskedGuests, Failure> {
    let is_added = |guest: &&Guest| images.added_names.contains(&guest.system);
    // Most studies know the lab's own systems alone.
    let Some(one) = guests.iter().find(is_added) else {
        return Ok(AskedGuests::Made(guests));
    };
    let name = &one.system;
    if virtual_time {
        return Err(Failure::refused(format!(
            "{name} was added, and such a system runs in real time alone: modelled drives are served by this program inside the guest"
        ))
        .next("measure directories of it (dir), or what it makes itself (native)"));
    }
    if let Some(made) = guests.iter().find(|guest| !is_added(guest)) {
        return Err(Failure::refused(format!(
            "{name} was added and is measured over its own shell, {} by this program inside the guest: their figures cannot be compared",
            made.system
        ))
        .next("compare systems that were added with each other (stackrace lab add), or leave one kind out"));
    }
    let mut found = Vec::new();
    for guest in guests {
        let system = (images.added)(&guest.system)?;
        // Its directory may have been removed since the names were read.
        let system = system.ok_or_else(|| Failure::internal("a system is gone meanwhile"))?;
        found.push((guest, system));
    }
    Ok(AskedGuests::Added(AddedGuests { guests: found }))
}

/// A guest whose shell answers. The connection ends before the guest does.
struct Reached {
    connection: Arc<Connection>,
    shell: Arc<ShellHost>,
    facts: Vec<Fact>,
    guest: AddedGuest,
}

impl AddedGuests {
    /// Refuses a study that such guests cannot carry out, before one is started.
    ///
    /// # Errors
    /// What it asks for, and the nearest that can be had; what this machine lacks.
    pub fn check(&self, study: &Study) -> Result<(), Failure> {
        check_here()?;
        for (guest, system) in &self.guests {
            let wrong = shell::study::wrong(&part(study, guest.place.as_deref())?);
            if !wrong.is_empty() {
                let name = &system.about.name;
                return Err(Failure::refused(format!(
                    "{name} was added and has nothing but a shell; there this study cannot be run:\n  {}",
                    wrong.join("\n  ")
                ))
                .next("change the study, or take a system that the lab makes: --system debian-13"));
            }
        }
        Ok(())
    }

    /// Plans what a study would do in them: the names of systems, and the plan; one for all where their commands are the
    /// same. No guest is started, so that what its directories hold is not known.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn plans(&self, study: &Study) -> Result<Vec<(String, Plan)>, Failure> {
        self.check(study)?;
        let planned = |kernel: &str, study: &Study| {
            preflight::plan_unasked(kernel, Path::new(PLANNED), study)
        };
        // Of a whole study the plan says what is compared; a part of it has one system.
        let systems = || self.guests.iter().map(|(_, system)| &system.about);
        let first = systems().next().map(|about| &about.kernel);
        if let Some(kernel) = first.filter(|kernel| systems().all(|about| about.kernel == **kernel))
        {
            let names: Vec<&str> = systems().map(|about| &*about.name).collect();
            return Ok(vec![(names.join(" and "), planned(kernel, study))]);
        }
        let plans = self.guests.iter().map(|(guest, system)| {
            let part = part(study, guest.place.as_deref())?;
            let about = &system.about;
            Ok((about.name.clone(), planned(&about.kernel, &part)))
        });
        plans.collect()
    }

    /// Makes a run in such guests, or continues one on the same images.
    ///
    /// # Errors
    /// A guest is not reached or not ready, an image is another one by now, or nothing can be recorded.
    pub fn run(
        &self,
        context: &Context,
        (study, store): (&Study, &Store),
        stopped: Option<Stopped>,
        options: LabOptions<'_>,
        observer: &dyn Observer,
    ) -> Result<FinishedRun, Failure> {
        self.check(study)?;
        if let Some(stopped) = &stopped {
            let known = &stopped.record.head.environment;
            for (guest, system) in &self.guests {
                guest.same_image(known, &system.image_name(), study)?;
            }
        }
        // As any run in the lab: that nothing of this program was there is in the environment.
        let place = RunPlace::Lab(options.on_record());
        let run = PlacesRun::new(context, (study, store), place, observer, LEFT)?;
        let stop = run.stop();
        let mut finished = None;
        let ended = in_guests(context, options.memory_bytes, |started| {
            // All are up before any begins: where one is not, none has done anything.
            let reached = (1..).zip(&self.guests).map(|(number, (guest, system))| {
                let (machine, shell, up_ns) = started.reach(number, system, &stop)?;
                let up = up_in(machine.boot_ns(up_ns), started.wanted.accelerator);
                observer.remark(&format!("{up}, {}", system.about.name));
                let mut facts = machine.facts(started.host, up_ns).map_err(unable)?;
                facts.push(Fact::new(MEMORY, unit::bytes(options.memory_bytes)));
                facts.extend(guest.fact());
                Reached::of(machine, shell, facts)
            });
            let reached: Vec<Reached> = reached.collect::<Result<_, Failure>>()?;
            let places = self.guests.iter().zip(&reached);
            let places = places.map(|((guest, _), there)| there.place(study, guest, &stop));
            let places = workers::all(places)?;
            let mut warnings: Vec<String> = reached.iter().map(|it| it.shell.warning()).collect();
            if stopped.is_none() {
                warnings.push(caution(started.wanted.accelerator).to_owned());
            }
            finished = Some(run.make(places, stopped, &warnings)?);
            Ok(())
        });
        outcome(finished, ended)
    }
}

impl Reached {
    fn of(guest: AddedGuest, shell: ShellHost, facts: Vec<Fact>) -> Result<Self, Failure> {
        let shell = Arc::new(shell);
        let worker = ShellWorker {
            host: Arc::clone(&shell),
        };
        // No other machine is asked on its behalf, so that none is waited for.
        let connection = worker::here(worker, &Router::new(Duration::ZERO));
        Ok(Self {
            connection: connection.map_err(|error| Failure::internal(error.in_words()))?,
            shell,
            facts,
            guest,
        })
    }

    /// Hands the study over and waits until the guest is ready.
    fn place(&self, study: &Study, guest: &Guest, stop: &StopAsked) -> Result<ReadyPlace, Failure> {
        let name = guest.place.as_deref();
        let called = format!("on {}", self.shell.to());
        // What stands in a guest goes with it, and so does the list of it.
        let store = self.guest.store();
        let assignment = assignment(study, name, &store, Vec::new(), &[]);
        let mut place =
            ReadyPlace::open(&self.connection, assignment, &called, &|said| said, stop)?;
        place.facts.extend(self.facts.iter().cloned());
        Ok(place)
    }
}

/// The means to start guests, for as long as they are wanted.
struct Guests<'a> {
    host: &'a LocalHost,
    journal: &'a stackrace_machine::journal::Journal,
    /// Directory for all of them, which is removed.
    dir: PathBuf,
    /// Id of this work.
    id: &'a str,
    wanted: GuestWanted,
}

impl Guests<'_> {
    /// Directory of the guest of a number, from 1.
    fn place(&self, number: usize) -> PathBuf {
        self.dir.join(format!("place-{number}"))
    }

    /// Starts a guest and waits until its shell answers; also when that was, ns of the monotonic clock.
    fn reach(
        &self,
        number: usize,
        system: &AddedSystem,
        stop: &StopAsked,
    ) -> Result<(AddedGuest, ShellHost, u64), Failure> {
        let dir = self.place(number);
        let made = self.host.create_dir(&dir);
        made.map_err(|error| unable(error.into()))?;
        let ground = GuestGround {
            host: self.host,
            journal: self.journal,
            dir,
        };
        let guest = AddedGuest::start(&ground, system, self.wanted).map_err(unable)?;
        let shell = guest.reach(stop).map_err(|error| told(error, system))?;
        Ok((guest, shell, SystemClock.now_ns()))
    }
}

/// What the user is told where a system is not reached.
fn told(error: LabError, system: &AddedSystem) -> Failure {
    match error {
        LabError::Interrupted => {
            interrupted(format!("stopped before {} was up", system.about.name))
        }
        error => unable(error),
    }
}

/// Calls with the means to start guests; whatever is made is gone when this returns.
fn in_guests<T>(
    context: &Context,
    memory_bytes: u64,
    work: impl FnOnce(&Guests<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let known = context.store_dir()?.join(ACCELERATOR);
    temporary::work(context, &host, |journal, id| {
        // What guests of the lab's own systems found to work, works; else three instructions are tried.
        let accelerator =
            accelerator_found(&host, &known).unwrap_or_else(|| match kvm_probe::executes(&host) {
                Some(true) => Accelerator::Kvm,
                _ => Accelerator::Tcg,
            });
        work(&Guests {
            host: &host,
            journal,
            dir: temporary::dir(context, id)?,
            id,
            wanted: GuestWanted {
                memory_bytes,
                accelerator,
            },
        })
    })
}

/// Refuses to begin where a program is missing here.
fn check_here() -> Result<(), Failure> {
    let missing = LocalHost::new(Arc::new(|_| ())).missing(&NEEDS);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(unable(LabError::Lacks(missing))),
    }
}

/// What the user says of a system to be added.
pub struct AskedSystem<'a> {
    /// Name that studies will have for it.
    pub name: &'a str,
    /// File of its disk.
    pub image: &'a Path,
    /// User who logs in there.
    pub login: &'a str,
    /// The ssh command, words.
    pub ssh: Vec<String>,
    /// Memory of the guest that is tried, bytes.
    pub memory_bytes: u64,
}

/// Adds a system: its image is looked at and copied, a guest is started from the copy, and its shell is tried. Nothing is
/// kept where one of these fails.
///
/// # Errors
/// Why the system is of no use to the lab.
pub fn add(
    context: &Context,
    cache: &Path,
    asked: AskedSystem<'_>,
    stop: &StopAsked,
    observer: &dyn Observer,
) -> Result<AddedSystem, Failure> {
    let failed = |error: AddedError| unable(error.into());
    added::check_name(asked.name).map_err(failed)?;
    if let Some(known) = added::find(cache, asked.name).map_err(unable)? {
        let (name, blake3) = (known.about.name, known.about.blake3);
        return Err(failed(AddedError::Twice { name, blake3 }));
    }
    check_here()?;
    in_guests(context, asked.memory_bytes, |guests| {
        let keeping = Keeping {
            host: guests.host,
            journal: guests.journal,
            cache,
            mark: guests.id,
            stopped: &|| stop.asked(),
        };
        // Before gigabytes are copied that are of no use.
        let look = LookedImage::of(guests.host, asked.image, &guests.dir).map_err(unable)?;
        let work = keeping.begin().map_err(unable)?;
        observer.remark(&format!("{}: its image is copied …", asked.name));
        let about = AboutAdded {
            name: asked.name.to_owned(),
            blake3: String::new(),
            bytes: look.bytes,
            format: look.format.clone(),
            login: asked.login.to_owned(),
            ssh: asked.ssh,
            kernel: String::new(),
            described: String::new(),
        };
        let mut tried = AddedSystem::at(&work, about);
        let blake3 = keeping.copy(&look, &work);
        tried.about.blake3 = blake3.map_err(|error| told(error, &tried))?;
        observer.remark(&format!("{}: a guest is started from it …", asked.name));
        // From the copy: the user's own file may change meanwhile.
        let (guest, shell, up_ns) = guests.reach(1, &tried, stop)?;
        let up = up_in(guest.boot_ns(up_ns), guests.wanted.accelerator);
        observer.remark(&up);
        let about = found(&shell, tried.about)?;
        // Its image gets another name, and is held open as long as it runs.
        drop((shell, guest));
        keeping.name(&work, about).map_err(unable)
    })
}

/// What the shell of a guest says of its system.
///
/// # Errors
/// It lacks commands that every measurement needs.
fn found(shell: &ShellHost, about: AboutAdded) -> Result<AboutAdded, Failure> {
    // Now, and not in the middle of a trial.
    let lacks = shell.missing(&OF_GUESTS);
    if !lacks.is_empty() {
        return Err(unable(LabError::Lacks(lacks)));
    }
    let facts = shell.facts().iter();
    let described = facts
        .filter(|fact| fact.name == SYSTEM_FACT)
        .map(|fact| &fact.value);
    let kernel = shell.system();
    Ok(AboutAdded {
        kernel: kernel.map_err(|error| unable(error.into()))?,
        described: described.cloned().collect(),
        ..about
    })
}
