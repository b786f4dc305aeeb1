//! Where a run takes place: in the lab, on machines over SSH, or on this one.

use super::asked_place::{AskedPlace, PlacedOption, given};
use super::context::Context;
use super::crash::{self, PowerSource};
use super::execute::{self, FinishedRun};
use super::lab_needs;
use super::lab_run::{self, Images};
use super::machine_options::{MachineOptions, PowerOptions, SshOptions};
use super::machines::{MachineWay, Permitted};
use super::observer::Observer;
use super::resume::Stopped;
use super::taken::{self, TakenDirs};
use super::virtual_run::{self, VirtualOptions};
use super::{
    clients, first_round, machines, permission, preflight, real_cuts, study_file, virtual_clock,
    virtual_plan,
};
use stackrace_base::failure::Failure;
use stackrace_results::record::Store;
use stackrace_study::study::Study;

/// The lab, as the command line asks for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LabOptions<'a> {
    /// System of its machines; none: the default, or those of the study.
    pub(crate) system: Option<&'a str>,
    /// Memory of each machine, as it was typed.
    pub(crate) memory: &'a str,
    /// Whether the clock is virtual.
    pub(crate) virtual_time: bool,
    /// How many guests in virtual time run side by side; none: one for each processor.
    pub(crate) jobs: Option<usize>,
}

/// What the command line says of the place of a new run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceOptions<'a> {
    /// In the lab; none: on real machines.
    pub(crate) lab: Option<LabOptions<'a>>,
    /// Machines that it names.
    pub(crate) machines: MachineOptions<'a>,
    /// Disks that may be wiped although they carry something.
    pub(crate) wipe: &'a [String],
    /// Whether the user permits the commands that the study gives.
    pub(crate) allow_commands: bool,
    /// Whether it starts even where another run measures in the same directories.
    pub(crate) anyway: bool,
    /// How the power of the machine is cut; none: it is not.
    pub(crate) power: Option<PowerOptions<'a>>,
}

impl PlaceOptions<'_> {
    /// Refuses options that would be ignored where the study is measured.
    fn check_options(&self, study: &Study) -> Result<(), Failure> {
        let lab = self.lab.map(|lab| lab.virtual_time);
        let place = match (self.power, lab) {
            (Some(_), None) => AskedPlace::RealCut,
            _ => AskedPlace::of(study, &self.machines, lab),
        };
        place.check(&given(&[
            (PlacedOption::Anyway, self.anyway),
            (
                PlacedOption::Clients,
                self.machines.clients.started.is_some(),
            ),
            (PlacedOption::Cut, self.power.is_some()),
            (PlacedOption::Ssh, self.machines.ssh.typed),
            (PlacedOption::Sudo, self.machines.ssh.sudo),
            (PlacedOption::Wipe, !self.wipe.is_empty()),
        ]))
    }
}

/// What the command line says of the place of a run that goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResumeOptions<'a> {
    /// How its machines are reached.
    pub(crate) ssh: &'a SshOptions<'a>,
    /// The nodes of the Slurm allocation that this runs in; none: it runs in none.
    pub(crate) allocation: Option<&'a str>,
    /// Disks that may be wiped although they carry something.
    pub(crate) wipe: &'a [String],
    /// Whether it goes on even where another run measures in the same directories.
    pub(crate) anyway: bool,
    /// How the power of the machine is cut; none: it is not.
    pub(crate) power: Option<PowerOptions<'a>>,
}

/// Runs a study where the command line asks for it, to its end.
///
/// # Errors
/// The study cannot run there, a machine is not reached, or nothing can be recorded.
pub(crate) fn run(
    context: &Context,
    study: &mut Study,
    place: PlaceOptions<'_>,
    observer: &dyn Observer,
    images: Images<'_>,
) -> Result<FinishedRun, Failure> {
    place.machines.check_agent(place.lab.is_some())?;
    place.check_options(study)?;
    study_file::check_wipe(study, place.wipe)?;
    permission::check(study, place.allow_commands)?;
    let power = match (place.power, place.lab) {
        (Some(_), _) => PowerSource::Commands,
        (None, Some(lab)) if lab.virtual_time => PowerSource::Modelled,
        (None, _) => PowerSource::None,
    };
    crash::check(study, power)?;
    if let Some(power) = place.power {
        let there = real_cuts::asked_for(study, &place.machines, place.lab.is_some())?;
        permission::check_here(study)?;
        let of = (&*study, &context.open_store()?);
        return real_cuts::run(context, of, None, (&there, power), place.wipe, observer);
    }
    // In virtual time a limit is one of the clock that is simulated: no user waits for it.
    if !place.lab.is_some_and(|lab| lab.virtual_time) {
        let plan = preflight::plan(context, study, false)?;
        // Here all of it is looked at below, what the machine lacks first.
        let lab = place.lab.map(|lab| lab.virtual_time);
        if AskedPlace::of(study, &place.machines, lab) != AskedPlace::Here {
            preflight::check_anywhere(context, study)?;
        }
        first_round::warn(&study.decide, plan.time.round_seconds.least, observer);
    }
    if place.lab.is_some() {
        permission::check_here(study)?;
    }
    if let Some(lab) = place.lab {
        return in_the_lab(context, study, lab, observer, images);
    }
    if let Some(asked) = clients::asked_for(study, &place.machines)? {
        permission::check_here(study)?;
        study_file::by_clients(study, &asked.clients);
        let store = context.open_store()?;
        let asked = (&asked, place.anyway);
        return clients::run(context, (study, &store), None, asked, observer, &[]);
    }
    if let Some(there) = machines::asked_for(study, &place.machines)? {
        // Where nothing of this program is there, the record that says how to take things down is here.
        if !place.machines.agentless {
            permission::check_here(study)?;
        }
        let store = context.open_store()?;
        let permitted = Permitted {
            wipe: place.wipe,
            anyway: place.anyway,
        };
        return machines::run(context, study, &store, None, &there, permitted, observer);
    }
    // A study for the lab would fail at its first disk; here the refusal names `--lab`.
    study_file::check_not_in_the_lab(study)?;
    let directories = taken::directories(study).unwrap_or_default();
    let (_taken, warnings) = TakenDirs::of_study(&directories, place.anyway)?;
    execute::start(context, study, &warnings, place.wipe, observer)
}

/// Runs a study in the lab, once all that it needs there was found.
fn in_the_lab(
    context: &Context,
    study: &Study,
    lab: LabOptions<'_>,
    observer: &dyn Observer,
    images: Images<'_>,
) -> Result<FinishedRun, Failure> {
    let LabOptions {
        system,
        memory,
        virtual_time,
        jobs,
    } = lab;
    if virtual_time {
        // The study before the machine: it is wrong everywhere.
        virtual_run::check(study)?;
        virtual_plan::check(context, study, memory, jobs)?;
    }
    let guests = lab_run::guests(study, system)?;
    // Before a store is made, and before minutes are spent on what fails in the end.
    lab_needs::check(context, study, &guests, images)?;
    if virtual_time {
        let options = VirtualOptions {
            system,
            memory,
            jobs,
        };
        return virtual_run::run(context, study, observer, images, &options);
    }
    lab_run::run(context, study, observer, images, system, memory)
}

/// Continues a run on the machines it was begun on, to its end.
///
/// # Errors
/// As [`run`]; the machines have changed since, or what the run left cannot be removed.
pub(crate) fn resume(
    context: &Context,
    (study, store): (&mut Study, &Store),
    stopped: Stopped,
    options: ResumeOptions<'_>,
    observer: &dyn Observer,
    images: Images<'_>,
) -> Result<FinishedRun, Failure> {
    let ResumeOptions {
        ssh,
        allocation,
        wipe,
        anyway,
        power,
    } = options;
    let check = |place: AskedPlace| {
        place.check(&given(&[
            (PlacedOption::Anyway, anyway),
            (PlacedOption::Cut, power.is_some()),
            (PlacedOption::Ssh, ssh.typed),
            (PlacedOption::Sudo, ssh.sudo),
            (PlacedOption::Wipe, !wipe.is_empty()),
        ]))
    };
    // A run in virtual time was made in the lab, too: the narrower question first.
    if virtual_clock::made(&stopped.record) {
        check(AskedPlace::Virtual)?;
        return virtual_run::resume(context, study, store, stopped, observer, images);
    }
    if lab_run::made(&stopped.record) {
        check(AskedPlace::Lab)?;
        return lab_run::resume(context, study, store, stopped, observer, images);
    }
    if let Some(asked) = clients::on_record(&stopped.record, ssh, allocation)? {
        check(AskedPlace::Clients)?;
        study_file::by_clients(study, &asked.clients);
        return clients::run(
            context,
            (study, store),
            Some(stopped),
            (&asked, anyway),
            observer,
            &[],
        );
    }
    let there = machines::on_record(study, &stopped.record, ssh)?;
    check(match (&there, power) {
        (None, None) => AskedPlace::Here,
        (None, Some(_)) | (Some(_), Some(_)) => AskedPlace::RealCut,
        (Some(_), None) => AskedPlace::Ssh,
    })?;
    let source = power.map_or(PowerSource::None, |_| PowerSource::Commands);
    crash::check(study, source)?;
    // Relative paths of the study mean what they meant when the run began.
    stopped.enter_directory()?;
    match there {
        Some(there) => resume_there(
            context,
            (study, store),
            stopped,
            (&there, &options),
            observer,
        ),
        None => {
            let directories = taken::directories(study).unwrap_or_default();
            let (_taken, warnings) = TakenDirs::of_study(&directories, anyway)?;
            stopped.resume(context, (study, store), &warnings, wipe, observer)
        }
    }
}

/// Continues a run on other machines.
fn resume_there(
    context: &Context,
    (study, store): (&Study, &Store),
    stopped: Stopped,
    (there, options): (&[MachineWay], &ResumeOptions<'_>),
    observer: &dyn Observer,
) -> Result<FinishedRun, Failure> {
    let ResumeOptions {
        wipe,
        anyway,
        power,
        ..
    } = *options;
    let Some(power) = power else {
        let permitted = Permitted { wipe, anyway };
        let stopped = Some(stopped);
        return machines::run(context, study, store, stopped, there, permitted, observer);
    };
    let [there] = there else {
        return Err(real_cuts::one_machine());
    };
    real_cuts::run(
        context,
        (study, store),
        Some(stopped),
        (there, power),
        wipe,
        observer,
    )
}
