//! One trial: prepare, settle, measure, observe.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use stackrace_engine::{ContentLedger, Control, PhaseOutcome, residency};

use super::executor::TrialStart;
use super::local_executor::LocalExecutor;
use super::observation::{phase_observation, read_bytes};
use super::phases::PeerPhases;
use stackrace_base::event::{Counted, Ended, Observation, Settled};
use stackrace_base::owned::held::with_real_names;
use stackrace_base::unit;
use stackrace_layers::stack::{Site, StandingStack};
use stackrace_load::workload::{BareDevices, KeptData, Place, Workload, together};
use stackrace_machine::host::Host;
use stackrace_machine::observe::{self, Pulse, Snapshot};
use stackrace_remote::agent::message::PhaseOrder;
use stackrace_study::study::Configuration;

/// Number of files of a trial's data that are looked at to tell whether it starts cold.
const RESIDENCY_FILES_MAX: usize = 512;

/// A note on a trial that was to work on the data of another one.
pub(super) const LAID_OUT_ANEW: &str =
    "its data were laid out anew: those of the workload before it were not there";

/// Data are warm if more than one byte of so many is in memory.
const WARM_ONE_OF: u64 = 100;

/// One workload on one standing stack.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub executor: &'a LocalExecutor<'a>,
    pub site: &'a Site<'a>,
    pub standing: &'a StandingStack,
    /// Data that lie on the stack from earlier trials, by workload.
    pub data: &'a RefCell<BTreeMap<usize, KeptData>>,
    /// True if the stack stays up, so that data left there can serve another trial.
    pub keeps: bool,
    pub round: u32,
    pub position: usize,
    pub configuration: usize,
    pub workload: usize,
    /// Work that is to be done before.
    pub before: Before,
}

/// Place of a trial, and what it works with.
pub(super) struct TrialSite<'a> {
    directory: &'a Path,
    bare: Option<BareDevices<'a>>,
    cold: bool,
    ledger: OnceLock<ContentLedger>,
    elsewhere: Option<&'a dyn Host>,
    seed: u64,
}

impl TrialSite<'_> {
    pub(super) fn place<'b>(&'b self, control: &'b Control) -> Place<'b> {
        Place {
            directory: self.directory,
            bare: self.bare,
            existing: None,
            cold: self.cold,
            ledger: &self.ledger,
            elsewhere: self.elsewhere,
            seat: None,
            seed: self.seed,
            control,
        }
    }
}

/// Work that is done to a stack before a trial.
#[derive(Clone, Copy)]
pub(super) enum Before {
    /// The trial begins as the one before has left the stack.
    Nothing,
    /// The stack is written over from beginning to end if no earlier trial had that done, then used
    /// until it is steady.
    Preconditioning {
        /// Bytes to write over; 0: it was done.
        capacity: u64,
    },
    /// The stack is being used until it is steady, and this is the pass of that number, from 1:
    /// nothing of it is kept but its figure.
    Pass(u32),
}

/// A trial that could not begin.
pub(super) fn failed(
    round: u32,
    position: usize,
    configuration: usize,
    workload: usize,
    today: &str,
    error: String,
) -> Observation {
    Observation {
        round,
        position,
        configuration,
        workload,
        started_at: today.to_owned(),
        ..Observation::unmeasured(Ended::Failed { error })
    }
}

impl Trial<'_> {
    /// Runs it to whatever end.
    pub(super) fn run(&self) -> Observation {
        let mut observation = self.begun();
        if let Err(ended) = self.lies_where_it_lay(&mut observation) {
            observation.ended = ended;
            return observation;
        }
        if let Before::Preconditioning { capacity } = self.before {
            match self.precondition(capacity) {
                Ok(done) => observation.preconditioned = Some(done),
                Err(ended) => {
                    observation.ended = ended;
                    return observation;
                }
            }
        }
        let directory = self.directory();
        let found = match self.find_data(&directory) {
            Ok(found) => found,
            Err(ended) => {
                observation.ended = ended;
                return observation;
            }
        };
        let mut data = None;
        match self.measure(&directory, found, &mut observation) {
            Ok(laid_out) => data = laid_out,
            Err(ended) => observation.ended = ended,
        }
        self.has_lain_there(&mut observation);
        self.leave(&directory, data, &mut observation);
        observation
    }

    /// A trial of which nothing is known yet.
    pub(super) fn begun(&self) -> Observation {
        let today = self.executor.clock.today();
        let (configuration, workload) = (self.configuration, self.workload);
        let error = String::new();
        let begun = failed(
            self.round,
            self.position,
            configuration,
            workload,
            &today,
            error,
        );
        Observation {
            ended: Ended::Complete,
            ..begun
        }
    }

    /// The data an earlier trial left; without them, an empty directory is made.
    pub(super) fn find_data(&self, directory: &Path) -> Result<Option<KeptData>, Ended> {
        let found = self.take_data();
        if found.is_none() {
            let made = self.executor.host.create_dir(directory);
            made.map_err(|error| Ended::Failed {
                error: with_real_names(&error.to_string()),
            })?;
        }
        Ok(found)
    }

    /// Keeps the data for the next trial, or removes the directory.
    pub(super) fn leave(
        &self,
        directory: &Path,
        data: Option<KeptData>,
        observation: &mut Observation,
    ) {
        let site = self.trial_site(directory);
        // A control of its own: what a stopped trial has begun must come to its end, too.
        if let Err(trouble) = self.workload().finish(&site.place(&Control::default())) {
            let note = format!("after the trial: {trouble}");
            observation.notes.push(with_real_names(&note));
        }
        let whole = observation.ended == Ended::Complete;
        if whole && let Some(data) = self.data_left(directory, data) {
            self.data.borrow_mut().insert(self.data_of(), data);
            return;
        }
        // The stack's own journal entry covers the directory: a failure here is undone with it.
        if let Err(error) = self.executor.host.remove_tree(directory) {
            let note = format!("the trial's files could not be removed right after it: {error}");
            observation.notes.push(with_real_names(&note));
        }
    }

    /// Measures, on every machine the stack is loaded from. Returns the data that may stay for the
    /// next trial.
    fn measure(
        &self,
        directory: &Path,
        found: Option<KeptData>,
        observation: &mut Observation,
    ) -> Result<Option<KeptData>, Ended> {
        if let Some(reached) = &self.executor.clients {
            // Each client lays out data of its own: nothing stays for the next trial.
            let measured = self.measure_by_clients(reached, directory, observation);
            return measured.map(|()| None);
        }
        let mut peers = Vec::new();
        let measured = self
            .prepare_peers(&mut peers)
            .map_err(|error| Ended::Failed { error })
            .and_then(|()| self.measure_with(directory, found, observation, &mut peers));
        // Whatever came of it, a peer must not go on alone.
        for peer in peers {
            let exchanged = peer.exchanged();
            observation.exchanged = observation.exchanged.take().or(exchanged);
            if let Err(why) = peer.end() {
                let note = format!("the trial's files on another machine: {why}");
                observation.notes.push(note);
            }
        }
        measured
    }

    pub(super) fn configured(&self) -> &Configuration {
        &self.executor.study.configurations[self.configuration]
    }

    pub(super) fn workload(&self) -> &dyn Workload {
        self.configured().workloads[self.workload].as_ref()
    }

    pub(super) fn trial_site<'a>(&'a self, directory: &'a Path) -> TrialSite<'a> {
        TrialSite {
            directory,
            bare: self.standing.bare().map(|bare| BareDevices {
                host: self.executor.host,
                devices: &bare.devices,
                pools: &bare.pools,
            }),
            cold: self.executor.study.policy.drop_caches,
            ledger: OnceLock::new(),
            elsewhere: Some(self.executor.host).filter(|host| !host.is_here()),
            seed: self.seed(),
        }
    }

    /// Has every other machine that loads the stack prepare the same workload.
    fn prepare_peers<'a>(&'a self, peers: &mut Vec<PeerPhases<'a>>) -> Result<(), String> {
        let executor = self.executor;
        for (node, root) in self.standing.others() {
            let host = executor
                .host
                .peer(*node)
                .map_err(|error| error.to_string())?;
            let mut known = executor.peers.iter();
            let peer = known.find(|peer| peer.machine as usize == *node);
            let peer = peer.ok_or_else(|| format!("there is no machine of number {node}"))?;
            // Data of their own: the same blocks on two machines could be cached as one.
            let mut hasher = blake3::Hasher::new();
            hasher.update(&self.seed().to_le_bytes());
            hasher.update(&(*node as u64).to_le_bytes());
            let order = PhaseOrder {
                name: executor.study.name.clone(),
                text: executor.study.text.clone(),
                configuration: self.configuration,
                workload: self.workload,
                directory: root.join(format!(".stackrace-{}", self.workload)),
                seed: first_bytes(&hasher),
                seat: None,
            };
            peers.push(PeerPhases::prepare(host, peer, order)?);
        }
        Ok(())
    }

    fn measure_with(
        &self,
        directory: &Path,
        found: Option<KeptData>,
        observation: &mut Observation,
        others: &mut [PeerPhases<'_>],
    ) -> Result<Option<KeptData>, Ended> {
        let workload = self.workload();
        let site = self.trial_site(directory);
        let data = self.prepare(&site, found, observation, others)?;
        let stopped = || self.executor.interrupt.raised();
        let mut outcomes = Vec::new();
        for (phase, name) in workload.phases().into_iter().enumerate() {
            if workload.settles(phase) {
                self.settle(directory, observation)?;
            }
            let control = self.begins(name);
            // A trial starts with its first phase: preparing is outside of the clock.
            if phase == 0 {
                observation.started_at = self.executor.clock.today();
            }
            // As close around the phase as can be: all that lies between is counted as the
            // workload's.
            let before = Snapshot::take(self.standing.devices());
            let released = others.iter().try_for_each(PeerPhases::start);
            released.map_err(|error| self.elsewhere(&control, error))?;
            let pulse = Pulse::begin();
            let outcome = self.measured_phase(phase, &site.place(&control));
            let after = Snapshot::take(self.standing.devices());
            let mut counted = before.until(&after);
            pulse.end(&mut counted);
            if site.elsewhere.is_some() {
                // What this machine counts meanwhile says nothing of another one.
                counted = Counted::default();
            }
            let outcome = outcome.map_err(|trouble| self.ended(&control, trouble.0))?;
            self.note(phase, &outcome, counted, observation);
            self.tell_promised(&site.place(&control), &outcome)?;
            self.accept(&control, &outcome)?;
            outcomes.push(outcome);
            let mut each = others.iter_mut();
            let measured = each.try_for_each(|other| other.measured(&stopped));
            measured.map_err(|error| self.elsewhere(&control, error))?;
        }
        self.conclude(&outcomes, observation)?;
        self.add_up(workload, observation, others);
        Ok(data)
    }

    /// Writes down what a phase measured and what was counted meanwhile.
    pub(super) fn note(
        &self,
        phase: usize,
        outcome: &PhaseOutcome,
        mut counted: Counted,
        observation: &mut Observation,
    ) {
        let workload = self.workload();
        observe::asked_by_workload(&mut counted, read_bytes(outcome));
        observe::add(&mut observation.counted, &counted);
        observation.elapsed_ns += outcome.elapsed_ns;
        let offered = workload.offered_per_s(phase);
        let name = workload.phases()[phase];
        let observed = phase_observation(name, outcome, offered);
        observation.phases.push(observed);
    }

    /// The figures of a trial whose phases are done.
    pub(super) fn conclude(
        &self,
        outcomes: &[PhaseOutcome],
        observation: &mut Observation,
    ) -> Result<(), Ended> {
        self.all_there()?;
        observation.counted.line = self.standing.line();
        let workload = self.workload();
        observation.metrics = workload.evaluate(outcomes);
        observation.resolution = workload.resolution(outcomes, &observation.metrics);
        Ok(())
    }

    /// Lays out the data where they were not found, here and on the other machines. Returns what may
    /// stay for the next trial.
    pub(super) fn prepare(
        &self,
        site: &TrialSite<'_>,
        found: Option<KeptData>,
        observation: &mut Observation,
        others: &[PeerPhases<'_>],
    ) -> Result<Option<KeptData>, Ended> {
        let clock = &self.executor.clock;
        let began = clock.now_ns();
        let control = self.begins("prepare");
        let data = match found {
            Some(data) => Some(data),
            None => {
                if self.workload().uses_data_before() {
                    observation.notes.push(LAID_OUT_ANEW.to_owned());
                }
                let prepared = self.workload().prepare(&site.place(&control));
                prepared.map_err(|trouble| self.ended(&control, trouble.0))?;
                self.data_to_keep(site.directory)
            }
        };
        self.stopped(&control)?;
        let stopped = || self.executor.interrupt.raised();
        // The others prepare at the same time, and are waited for last.
        let prepared = others.iter().try_for_each(|other| other.prepared(&stopped));
        prepared.map_err(|error| self.elsewhere(&control, error))?;
        observation.prepare_ns = clock.now_ns().saturating_sub(began);
        Ok(data)
    }

    /// Adds what all machines did together, where the study asks for it, and says what each of the
    /// others did.
    fn add_up(
        &self,
        workload: &dyn Workload,
        observation: &mut Observation,
        others: &mut [PeerPhases<'_>],
    ) {
        observation.others = others.iter_mut().map(PeerPhases::node).collect();
        let own = workload.metrics();
        // Sums over all machines are more metrics than the workload itself has.
        if self.executor.study.workload_heads[self.workload]
            .metrics
            .len()
            > own.len()
        {
            let others = observation.others.iter().map(|other| &*other.metrics);
            let each: Vec<&[Option<f64>]> = std::iter::once(&*observation.metrics)
                .chain(others)
                .collect();
            let sums = together::values(&own, &each);
            observation.metrics.extend(sums);
        }
        for other in &observation.others {
            let head = own.first().zip(other.metrics.first().copied().flatten());
            let figure = head.map_or(String::new(), |(head, value)| {
                let value = match head.unit.as_str() {
                    "B/s" => unit::bytes_per_second(value),
                    unit => format!("{value:.1} {unit}"),
                };
                format!(": {} {value}", head.name)
            });
            let [here, there] = [observation.elapsed_ns, other.elapsed_ns];
            observation.notes.push(format!(
                "{} did the same at the same time, in {} where this machine took {}{figure}",
                other.host,
                unit::time_ns(there as f64),
                unit::time_ns(here as f64),
            ));
        }
    }

    /// Checks that all machines of the stack are there: what was measured is of this stack only if they were until the
    /// end.
    pub(super) fn all_there(&self) -> Result<(), Ended> {
        let whole = self.standing.is_whole(self.executor.host);
        let control = self.executor.interrupt.control();
        whole.map_err(|error| self.elsewhere(&control, error.to_string()))
    }

    /// Returns what a phase's end means for the trial.
    pub(super) fn accept(&self, control: &Control, outcome: &PhaseOutcome) -> Result<(), Ended> {
        match (&outcome.error, outcome.ended) {
            (Some(error), _) => Err(self.ended(control, error.to_string())),
            (None, stackrace_engine::PhaseEnd::Complete) => Ok(()),
            (None, _) => Err(Ended::Interrupted),
        }
    }

    /// Empties caches as the study's policy says and finds out whether it worked.
    pub(super) fn settle(
        &self,
        directory: &Path,
        observation: &mut Observation,
    ) -> Result<(), Ended> {
        let policy = &self.executor.study.policy;
        self.begins("settle");
        let began = self.executor.clock.now_ns();
        let everything = policy.drop_caches && !self.own_files_suffice();
        let (mut settled, mut resident) = self.make_cold(directory, everything, policy.remount)?;
        let warm = |(resident, total): (u64, u64)| resident.saturating_mul(WARM_ONE_OF) > total;
        // Dropping the files' own pages did not do: everything is dropped after all.
        if policy.drop_caches && !everything && resident.is_none_or(warm) {
            let remounted = settled.remounted;
            (settled, resident) = self.make_cold(directory, true, false)?;
            settled.remounted = remounted;
        }
        let first = observation.phases.is_empty();
        // What any phase found in memory adds up; once unknown, the sum is.
        let plus = |sum: Option<u64>, more: Option<u64>| {
            if first {
                more
            } else {
                sum.zip(more).map(|(a, b)| a + b)
            }
        };
        settled.resident_bytes = plus(
            observation.settled.resident_bytes,
            resident.map(|(resident, _)| resident),
        );
        settled.prepared_bytes = plus(
            observation.settled.prepared_bytes,
            resident.map(|(_, total)| total),
        );
        if self.executor.host.is_here() {
            settled.stored = observe::stored_below(directory, RESIDENCY_FILES_MAX);
        }
        observation.settled = settled;
        observation.settle_ns += self.executor.clock.now_ns().saturating_sub(began);
        Ok(())
    }

    /// Empties the system's caches, or else those of the trial's own files. Returns what was done, and
    /// how many bytes of them all are in memory still.
    fn make_cold(
        &self,
        directory: &Path,
        everything: bool,
        remount: bool,
    ) -> Result<(Settled, Option<(u64, u64)>), Ended> {
        let settled = self.standing.settle(self.site, everything, remount);
        let mut settled = settled.map_err(|error| Ended::Failed {
            error: with_real_names(&format!("cannot settle: {error}")),
        })?;
        // The files of another machine cannot be looked at from here.
        if !self.executor.host.is_here() {
            return Ok((settled, None));
        }
        // Without the rights to drop all caches, the kernel takes advice about single files.
        if self.executor.study.policy.drop_caches
            && settled.caches == "none"
            && residency::evict_tree(directory).is_ok()
        {
            settled.caches = "advice".to_owned();
        }
        let resident = residency::resident_bytes_below(directory, RESIDENCY_FILES_MAX).ok();
        Ok((settled, resident))
    }

    /// Returns the seed: the same for every configuration of a round, different for each round, workload and pass.
    pub(super) fn seed(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.executor.study.seed.to_le_bytes());
        hasher.update(&self.round.to_le_bytes());
        hasher.update(&(self.workload as u64).to_le_bytes());
        // Each pass has data of its own: storage that keeps equal blocks once must not know them.
        if let Before::Pass(number) = self.before {
            hasher.update(&number.to_le_bytes());
        }
        first_bytes(&hasher)
    }

    pub(super) fn begins(&self, part: &str) -> Arc<Control> {
        let control = self.executor.interrupt.control();
        self.begins_with(part, &control);
        control
    }

    /// Says that a part begins that this control watches.
    pub(super) fn begins_with(&self, part: &str, control: &Arc<Control>) {
        let part = &match self.before {
            Before::Pass(number) => format!("pass {number}: {part}"),
            _ => part.to_owned(),
        };
        self.executor.watcher.begins(&TrialStart {
            round: self.round,
            configuration: self.configuration,
            workload: Some(self.workload),
            part,
            control: Some(Arc::clone(control)),
        });
    }

    /// An error after an interrupt is the interrupt's doing. Where several machines work, it is said
    /// that it was the first.
    pub(super) fn ended(&self, control: &Control, error: String) -> Ended {
        match self.standing.others().is_empty() {
            true => self.elsewhere(control, error),
            false => self.elsewhere(control, format!("node1: {error}")),
        }
    }

    /// Returns the same of an error that says which machine it comes from.
    pub(super) fn elsewhere(&self, control: &Control, error: String) -> Ended {
        if control.stopped() {
            Ended::Interrupted
        } else {
            Ended::Failed {
                error: with_real_names(&error),
            }
        }
    }

    pub(super) fn stopped(&self, control: &Control) -> Result<(), Ended> {
        if control.stopped() {
            Err(Ended::Interrupted)
        } else {
            Ok(())
        }
    }
}

fn first_bytes(hasher: &blake3::Hasher) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}
