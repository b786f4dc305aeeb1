//! Where a run takes place: named once, by the options or by the log of a run that goes on, and then carried
//! out in one way.

use crate::place::clients;
use crate::place::clients::{AskedClients, claimed};
use crate::place::lab_guests::added::{self, AskedGuests};
use crate::place::lab_guests::needs;
use crate::place::lab_guests::{self, Images};
use crate::place::lab_options::LabOptions;
use crate::place::machine_options::{MachineOptions, PowerOptions, SshOptions};
use crate::place::options::{AskedPlace, TypedOptions};
use crate::place::power;
use crate::place::power::source::{self, PowerSource};
use crate::place::ssh::machines;
use crate::place::ssh::machines::{MachineWay, Permitted};
use crate::place::taken::{self, TakenDirs};
use crate::place::virtual_lab;
use crate::place::virtual_lab::plan;
use stackrace_base::event::RunPlace;
use stackrace_base::failure::Failure;
use stackrace_results::record::Store;
use stackrace_run::execute::resume::Stopped;
use stackrace_run::execute::{self, FinishedRun};
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::first_round;
use stackrace_run::prepare::observer::Observer;
use stackrace_run::prepare::permission;
use stackrace_run::prepare::preflight;
use stackrace_run::prepare::study_file;
use stackrace_study::study::Study;

/// What the command line says of the place of a new run.
#[derive(Debug, Clone, Copy)]
pub struct PlaceOptions<'a> {
    /// The options that were typed: each is used at the place, or refused.
    pub typed: &'a TypedOptions,
    /// Options of the lab; `None` on real machines.
    pub lab: Option<LabOptions<'a>>,
    /// Machines that it names.
    pub machines: MachineOptions<'a>,
    /// Disks that may be wiped although they carry something.
    pub wipe: &'a [String],
    /// True if the user permits the commands that the study gives.
    pub allow_commands: bool,
    /// True if it starts even where another run measures in the same directories.
    pub anyway: bool,
    /// Commands that cut the power of the machine; `None` if it is not cut.
    pub power: Option<PowerOptions<'a>>,
}

/// Place of a study's run, with all that is known of it before anything is touched.
#[derive(Debug)]
enum AskedRun<'a> {
    Here,
    Machines(Vec<MachineWay>),
    Clients(AskedClients),
    Lab(LabOptions<'a>),
    RealCut(Box<MachineWay>, PowerOptions<'a>),
}

impl<'a> PlaceOptions<'a> {
    /// The place that they name for a study.
    fn place(&self, study: &Study) -> AskedPlace {
        let lab = self.lab.map(|lab| lab.virtual_time);
        AskedPlace::of(study, &self.machines, lab, self.power.is_some())
    }

    /// Says in words what a run of the study would be made with.
    ///
    /// # Errors
    /// As [`Self::asked`].
    #[cfg(any(test, feature = "testing"))]
    pub fn described(&self, study: &Study) -> Result<String, Failure> {
        let asked = self.asked(study)?;
        let rights = (self.wipe, self.allow_commands, self.anyway);
        Ok(format!("{asked:?} {rights:?}"))
    }

    /// Checks what they come to for a study; nothing is reached or touched.
    ///
    /// # Errors
    /// An option would be ignored, something is not permitted, or the options make no sense for this study.
    fn asked(&self, study: &Study) -> Result<AskedRun<'a>, Failure> {
        let place = self.place(study);
        self.typed.check(place)?;
        study_file::check_wipe(study, self.wipe)?;
        permission::check(study, self.allow_commands)?;
        claimed::check(study, self.machines.clients.started)?;
        source::check(
            study,
            match place {
                AskedPlace::RealCut => PowerSource::Commands,
                AskedPlace::Virtual => PowerSource::Modelled,
                _ => PowerSource::None,
            },
        )?;
        // Where nothing of this program is there, the record that says how to take things down is here.
        if ![AskedPlace::Here, AskedPlace::Shell].contains(&place) {
            permission::check_here(study)?;
        }
        if let Some(power) = self.power {
            let there = power::asked_for(study, &self.machines)?;
            return Ok(AskedRun::RealCut(Box::new(there), power));
        }
        if let Some(lab) = self.lab {
            return Ok(AskedRun::Lab(lab));
        }
        if let Some(asked) = clients::asked_for(study, &self.machines)? {
            return Ok(AskedRun::Clients(asked));
        }
        if let Some(there) = machines::asked_for(study, &self.machines)? {
            return Ok(AskedRun::Machines(there));
        }
        // A study for the lab would fail at its first disk; here the refusal names `--lab`.
        study_file::check_not_in_the_lab(study)?;
        Ok(AskedRun::Here)
    }
}

/// Options of the command line for the place of a run that goes on.
#[derive(Debug, Clone, Copy)]
pub struct ResumeOptions<'a> {
    /// The options that were typed: each is used at the place, or refused.
    pub typed: &'a TypedOptions,
    /// The way in which its machines are reached.
    pub ssh: &'a SshOptions<'a>,
    /// The nodes of the Slurm allocation that this runs in; `None` if it runs in none.
    pub allocation: Option<&'a str>,
    /// Disks that may be wiped although they carry something.
    pub wipe: &'a [String],
    /// True if it goes on even where another run measures in the same directories.
    pub anyway: bool,
    /// Commands that cut the power of the machine; `None` if it is not cut.
    pub power: Option<PowerOptions<'a>>,
}

impl<'a> ResumeOptions<'a> {
    /// Checks what the place on record comes to; nothing is reached or touched.
    ///
    /// # Errors
    /// An option would be ignored, or the options make no sense there.
    fn asked(&self, study: &Study, place: &'a RunPlace) -> Result<AskedRun<'a>, Failure> {
        let at = match self.power {
            // Whose power is cut is known by its options: older logs have it as a run over SSH.
            Some(_) if matches!(place, RunPlace::Here { .. } | RunPlace::Ssh(_)) => {
                AskedPlace::RealCut
            }
            _ => AskedPlace::on_record(place),
        };
        self.typed.check(at)?;
        let machines = |there, agentless| machines::on_record(study, there, agentless, self.ssh);
        Ok(match (place, self.power) {
            (RunPlace::Virtual(guests) | RunPlace::Lab(guests), _) => AskedRun::Lab(LabOptions {
                system: guests.system.as_deref(),
                memory_bytes: guests.memory_bytes,
                virtual_time: place.in_virtual_time(),
                jobs: None,
            }),
            (RunPlace::Clients { started, processes }, _) => AskedRun::Clients(clients::on_record(
                study,
                (started, *processes),
                self.ssh,
                self.allocation,
            )?),
            (RunPlace::Here { .. }, None) => AskedRun::Here,
            // Nothing of that run was on a machine whose power could be cut.
            (RunPlace::Here { .. }, Some(_)) => return Err(power::one_machine()),
            (RunPlace::Ssh(there) | RunPlace::RealCut(there), Some(power)) => {
                AskedRun::RealCut(Box::new(power::only(machines(there, false)?)?), power)
            }
            (RunPlace::Ssh(there) | RunPlace::RealCut(there), None) => {
                AskedRun::Machines(machines(there, false)?)
            }
            (RunPlace::Shell(there), _) => AskedRun::Machines(machines(there, true)?),
        })
    }
}

/// Runs a study where the command line asks for it, to its end.
///
/// # Errors
/// The study cannot run there, a machine is not reached, or nothing can be recorded.
pub fn run(
    context: &Context,
    study: &mut Study,
    place: PlaceOptions<'_>,
    observer: &dyn Observer,
    images: Images<'_>,
) -> Result<FinishedRun, Failure> {
    let asked = place.asked(study)?;
    let typed = place.typed.has("time");
    // All of it before the store is opened: a study that is refused leaves nothing behind.
    match &asked {
        AskedRun::Here => {
            // One plan for both: the one that is warned of is the one that is checked.
            let plan = preflight::plan(context, study, true)?;
            // Before it is checked: who mends the study should know of both.
            first_round::planned(
                &study.decide,
                plan.time.round_seconds.least,
                typed,
                observer,
            )?;
            preflight::check_planned(context, study, place.wipe, &plan)?;
        }
        // In virtual time a limit is one of the clock that is simulated: no user waits for it.
        AskedRun::Lab(LabOptions {
            virtual_time: true, ..
        })
        | AskedRun::RealCut(..) => {}
        AskedRun::Lab(_) | AskedRun::Clients(_) | AskedRun::Machines(_) => {
            // The machine that measures looks at itself: what this one has says nothing of it.
            let plan = preflight::plan(context, study, false)?;
            preflight::check_plan(&plan)?;
            first_round::planned(
                &study.decide,
                plan.time.round_seconds.least,
                typed,
                observer,
            )?;
        }
    }
    if let AskedRun::Lab(lab) = &asked {
        check_lab(context, study, *lab, images)?;
    }
    let permitted = Permitted {
        wipe: place.wipe,
        anyway: place.anyway,
    };
    carry_out(context, study, None, (asked, permitted), observer, images)
}

/// Refuses what the lab cannot carry out: before a store is made, and before minutes are spent on what fails in
/// the end.
fn check_lab(
    context: &Context,
    study: &Study,
    lab: LabOptions<'_>,
    images: Images<'_>,
) -> Result<(), Failure> {
    if lab.virtual_time {
        // The study before the machine: it is wrong everywhere.
        virtual_lab::check(study)?;
        plan::check(context, study, lab.memory_bytes, lab.jobs)?;
    }
    let guests = lab_guests::guests(study, lab.system, images.added_names)?;
    match added::asked(guests, lab.virtual_time, images)? {
        AskedGuests::Added(guests) => guests.check(study),
        AskedGuests::Made(guests) => needs::check(context, study, &guests, images),
    }
}

/// Continues a run on the machines it was begun on, to its end.
///
/// # Errors
/// As [`run`]; the machines have changed since, or what the run left cannot be removed.
pub fn resume(
    context: &Context,
    (study, store): (&mut Study, &Store),
    stopped: Stopped,
    options: ResumeOptions<'_>,
    observer: &dyn Observer,
    images: Images<'_>,
) -> Result<FinishedRun, Failure> {
    let place = stopped.record.head.place().into_owned();
    let asked = options.asked(study, &place)?;
    if let AskedRun::Here | AskedRun::Machines(_) | AskedRun::RealCut(..) = &asked {
        let source = options
            .power
            .map_or(PowerSource::None, |_| PowerSource::Commands);
        source::check(study, source)?;
    }
    // Relative paths of the study mean what they meant when the run began.
    stopped.enter_directory(&place)?;
    let permitted = Permitted {
        wipe: options.wipe,
        anyway: options.anyway,
    };
    let stopped = Some((stopped, store));
    carry_out(
        context,
        study,
        stopped,
        (asked, permitted),
        observer,
        images,
    )
}

/// Makes a run at its place, or continues the one that stopped in its store, to its end.
fn carry_out(
    context: &Context,
    study: &mut Study,
    stopped: Option<(Stopped, &Store)>,
    (asked, permitted): (AskedRun<'_>, Permitted<'_>),
    observer: &dyn Observer,
    images: Images<'_>,
) -> Result<FinishedRun, Failure> {
    let (taken, warnings) = match asked {
        AskedRun::Here => {
            let directories = taken::directories(study);
            let (taken, warnings) = TakenDirs::of_study(&directories, permitted.anyway)?;
            (Some(taken), warnings)
        }
        _ => (None, Vec::new()),
    };
    let (stopped, store) = match stopped {
        Some((stopped, store)) => (Some(stopped), store.clone()),
        None => (None, context.open_store()?),
    };
    let store = &store;
    let finished = match asked {
        AskedRun::Here => match stopped {
            None => execute::start(
                context,
                (&*study, store),
                &warnings,
                permitted.wipe,
                observer,
            ),
            Some(stopped) => {
                let of = (&*study, store);
                stopped.resume(context, of, &warnings, permitted.wipe, observer)
            }
        },
        AskedRun::Machines(there) => {
            machines::run(context, study, store, stopped, &there, permitted, observer)
        }
        AskedRun::RealCut(there, power) => {
            let of = (&*study, store);
            power::run(
                context,
                of,
                stopped,
                (&there, power),
                permitted.wipe,
                observer,
            )
        }
        AskedRun::Clients(asked) => {
            study_file::by_clients(study, &asked.clients);
            let asked = (&asked, permitted.anyway);
            clients::run(context, (&*study, store), stopped, asked, observer, &[])
        }
        AskedRun::Lab(lab) if lab.virtual_time => {
            virtual_lab::run(context, (&*study, store), stopped, lab, observer, images)
        }
        AskedRun::Lab(lab) => in_the_lab(context, (&*study, store), stopped, lab, observer, images),
    };
    drop(taken);
    finished
}

/// Makes a run in guests in real time, or continues one: in those that the lab makes, or that the user added.
fn in_the_lab(
    context: &Context,
    (study, store): (&Study, &Store),
    stopped: Option<Stopped>,
    lab: LabOptions<'_>,
    observer: &dyn Observer,
    images: Images<'_>,
) -> Result<FinishedRun, Failure> {
    let of = (study, store);
    let guests = lab_guests::guests(study, lab.system, images.added_names)?;
    match added::asked(guests, lab.virtual_time, images)? {
        AskedGuests::Added(guests) => guests.run(context, of, stopped, lab, observer),
        AskedGuests::Made(guests) => {
            lab_guests::run(context, of, stopped, (guests, lab), observer, images)
        }
    }
}
