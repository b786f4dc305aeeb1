//! Where a run takes place: in the lab, on machines over SSH, or on this one.

use super::asked_place::{AskedPlace, TypedOptions};
use super::clients::AskedClients;
use super::context::Context;
use super::crash::{self, PowerSource};
use super::execute::{self, FinishedRun};
use super::lab_needs;
use super::lab_run::{self, Images};
use super::machine_options::{MachineOptions, PowerOptions, SshOptions};
use super::machines::MachineWay;
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
    /// What was typed: each option is used at the place, or refused.
    pub(crate) typed: &'a TypedOptions,
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

/// Where a study runs, with all that is known of it before anything is touched.
#[derive(Debug)]
enum AskedRun<'a> {
    Here,
    Machines(Vec<MachineWay>),
    Clients(AskedClients),
    Lab(LabOptions<'a>),
    RealCut(MachineWay, PowerOptions<'a>),
}

impl<'a> PlaceOptions<'a> {
    /// The place that they name for a study.
    fn place(&self, study: &Study) -> AskedPlace {
        let lab = self.lab.map(|lab| lab.virtual_time);
        AskedPlace::of(study, &self.machines, lab, self.power.is_some())
    }

    /// In words, what a run of the study would be made with.
    ///
    /// # Errors
    /// As [`Self::asked`].
    #[cfg(test)]
    pub(crate) fn described(&self, study: &Study) -> Result<String, Failure> {
        let asked = self.asked(study)?;
        let rights = (self.wipe, self.allow_commands, self.anyway);
        Ok(format!("{asked:?} {rights:?}"))
    }

    /// What they come to for a study; nothing is reached or touched.
    ///
    /// # Errors
    /// An option would be ignored, something is not permitted, or the options make no sense for this study.
    fn asked(&self, study: &Study) -> Result<AskedRun<'a>, Failure> {
        let place = self.place(study);
        self.typed.check(place)?;
        study_file::check_wipe(study, self.wipe)?;
        permission::check(study, self.allow_commands)?;
        crash::check(
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
            let there = real_cuts::asked_for(study, &self.machines)?;
            return Ok(AskedRun::RealCut(there, power));
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

/// What the command line says of the place of a run that goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResumeOptions<'a> {
    /// What was typed: each option is used at the place, or refused.
    pub(crate) typed: &'a TypedOptions,
    /// How its machines are reached.
    pub(crate) ssh: &'a SshOptions<'a>,
    /// The nodes of the Slurm allocation that this runs in; none: it runs in none.
    pub(crate) allocation: Option<&'a str>,
    /// Disks that may be wiped although they carry something.
    pub(crate) wipe: &'a [String],
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
    let asked = place.asked(study)?;
    // In virtual time a limit is one of the clock that is simulated: no user waits for it.
    let at = place.place(study);
    if !matches!(at, AskedPlace::Virtual | AskedPlace::RealCut) {
        let plan = preflight::plan(context, study, false)?;
        // Here all of it is looked at below, what the machine lacks first.
        if at != AskedPlace::Here {
            preflight::check_plan(&plan)?;
        }
        first_round::warn(&study.decide, plan.time.round_seconds.least, observer);
    }
    match asked {
        AskedRun::RealCut(there, power) => {
            let of = (&*study, &context.open_store()?);
            real_cuts::run(context, of, None, (&there, power), place.wipe, observer)
        }
        AskedRun::Lab(lab) => in_the_lab(context, study, lab, observer, images),
        AskedRun::Clients(asked) => {
            study_file::by_clients(study, &asked.clients);
            let store = context.open_store()?;
            clients::run(context, (study, &store), None, &asked, observer, &[])
        }
        AskedRun::Machines(there) => {
            let store = context.open_store()?;
            machines::run(context, study, &store, None, &there, place.wipe, observer)
        }
        AskedRun::Here => {
            let directories = taken::directories(study).unwrap_or_default();
            let (_taken, warnings) = TakenDirs::of_study(&directories, place.anyway)?;
            execute::start(context, study, &warnings, place.wipe, observer)
        }
    }
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
        typed,
        ssh,
        allocation,
        wipe,
        power,
    } = options;
    // A run in virtual time was made in the lab, too: the narrower question first.
    if virtual_clock::made(&stopped.record) {
        typed.check(AskedPlace::Virtual)?;
        return virtual_run::resume(context, study, store, stopped, observer, images);
    }
    if lab_run::made(&stopped.record) {
        typed.check(AskedPlace::Lab)?;
        return lab_run::resume(context, study, store, stopped, observer, images);
    }
    if let Some(asked) = clients::on_record(&stopped.record, ssh, allocation)? {
        typed.check(AskedPlace::Clients)?;
        study_file::by_clients(study, &asked.clients);
        return clients::run(
            context,
            (study, store),
            Some(stopped),
            &asked,
            observer,
            &[],
        );
    }
    let there = machines::on_record(study, &stopped.record, ssh)?;
    let shells = there
        .as_ref()
        .is_some_and(|there| machines::agentless(there));
    typed.check(match (&there, power) {
        _ if shells => AskedPlace::Shell,
        (None, None) => AskedPlace::Here,
        (_, Some(_)) => AskedPlace::RealCut,
        (Some(_), None) => AskedPlace::Ssh,
    })?;
    let source = power.map_or(PowerSource::None, |_| PowerSource::Commands);
    crash::check(study, source)?;
    // Relative paths of the study mean what they meant when the run began.
    stopped.enter_directory()?;
    match (there, power) {
        (Some(there), Some(power)) => {
            let [there] = &there[..] else {
                return Err(real_cuts::one_machine());
            };
            let of = (&*study, store);
            real_cuts::run(context, of, Some(stopped), (there, power), wipe, observer)
        }
        (Some(there), None) => {
            let stopped = Some(stopped);
            machines::run(context, study, store, stopped, &there, wipe, observer)
        }
        (None, None) => stopped.resume(context, study, store, wipe, observer),
        // Nothing of that run was on a machine whose power could be cut.
        (None, Some(_)) => Err(real_cuts::one_machine()),
    }
}
