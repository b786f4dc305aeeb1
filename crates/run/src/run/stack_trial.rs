//! A trial on a standing stack, as the runner carries it out: measured by this machine, by this one and its peers, by
//! clients, or in turns with other trials.

use std::sync::Arc;

use stackrace_engine::{AlternationSeat, Control, PhaseOutcome};

use super::clients::Conductor;
use super::observation::{note_phase_of, read_bytes};
use super::phases::PeerPhases;
use super::runner::{Observed, Stages, carry_out, failed};
use super::sliced::{self, SlicedPart};
use super::together::{self, AtOnce, TogetherPart};
use super::trial::{Before, Trial, TrialSite};
use stackrace_base::event::histogram::OPERATIONS_FOR_P999;
use stackrace_base::event::{Counted, Ended, Observation};
use stackrace_base::owned::held::with_real_names;
use stackrace_base::unit;
use stackrace_load::workload::{
    KeptData, Workload, WorkloadError, cause_of_operation, together as all_nodes, trouble,
};

/// A note on a trial that was to work on the data of another one.
pub(super) const LAID_OUT_ANEW: &str =
    "its data were laid out anew: those of the workload before it were not there";

/// The machines that measure a trial.
enum MeasuredBy<'a> {
    /// This machine, and the other ones that load the stack in step with it.
    Machines(Vec<PeerPhases<'a>>),
    /// Clients, in its place.
    Clients(Conductor<'a>),
    /// This machine, in turns with other trials.
    Slices(SlicedPart),
    /// This machine, while it measures other workloads on the same stack.
    Together(TogetherPart),
}

/// A trial under way.
struct StackTrial<'a> {
    trial: Trial<'a>,
    site: TrialSite<'a>,
    by: MeasuredBy<'a>,
    /// True if its directory exists.
    made: bool,
    /// Data that were found, and then those that may stay for the next trial.
    data: Option<KeptData>,
    observation: Observation,
}

impl Trial<'_> {
    /// Runs it to whatever end.
    pub(super) fn run(self) -> Observation {
        let by = match &self.executor.clients {
            Some(reached) => MeasuredBy::Clients(Conductor::new(self, reached)),
            None => MeasuredBy::Machines(Vec::new()),
        };
        let mut trial = StackTrial::new(self, by);
        carry_out(std::slice::from_mut(&mut trial), &self.executor.interrupt);
        trial.observation
    }
}

/// Measures the trials, each of another configuration, in turns of `slice_ns`; the first lap goes in
/// the order of the trials.
pub(super) fn run_in_slices(trials: &[Trial<'_>], slice_ns: u64) -> Vec<Observation> {
    run_all(trials, |trial| {
        let part = SlicedPart::new(slice_ns, trial.standing.devices());
        MeasuredBy::Slices(part)
    })
}

/// Measures the trials, each of another workload on one stack, at the same time; the first one decides when all end.
pub(super) fn run_together(trials: &[Trial<'_>]) -> Vec<Observation> {
    run_all(trials, |_| {
        MeasuredBy::Together(TogetherPart::new(trials.len()))
    })
}

/// Carries out trials as one, to whatever end.
fn run_all<'a>(
    trials: &[Trial<'a>],
    by: impl Fn(&Trial<'a>) -> MeasuredBy<'a>,
) -> Vec<Observation> {
    let Some(first) = trials.first() else {
        return Vec::new();
    };
    let each = trials
        .iter()
        .map(|trial| StackTrial::new(*trial, by(trial)));
    let mut all: Vec<StackTrial<'_>> = each.collect();
    carry_out(&mut all, &first.executor.interrupt);
    all.into_iter().map(|trial| trial.observation).collect()
}

/// Measures a phase of workloads on one stack at the same time, and tells each what was beside it.
fn measured_together(
    trials: &mut [&mut StackTrial<'_>],
    phase: usize,
    controls: &[Arc<Control>],
) -> Vec<Result<PhaseOutcome, WorkloadError>> {
    let of = trials.first().map_or(0, |trial| match &trial.by {
        MeasuredBy::Together(part) => part.of,
        _ => 0,
    });
    if trials.len() < of {
        let why = || trouble("what was to be measured at the same time could not begin");
        return trials.iter().map(|_| Err(why())).collect();
    }
    let works = trials.iter().zip(controls);
    let works = works.map(|(trial, control)| AtOnce {
        name: &trial.trial.head().name,
        workload: trial.workload(),
        place: trial.site.place(control),
    });
    let measured = together::measured(phase, &works.collect::<Vec<_>>());
    let workloads: Vec<usize> = trials.iter().map(|trial| trial.trial.workload).collect();
    for (at, trial) in trials.iter_mut().enumerate() {
        let others = workloads.iter().copied().zip(&measured).enumerate();
        let others = others.filter(|(other, _)| *other != at);
        let others = others.filter_map(|(_, (workload, it))| Some((workload, it.as_ref().ok()?)));
        if let MeasuredBy::Together(part) = &mut trial.by {
            part.beside(others);
        }
    }
    measured
}

impl<'a> StackTrial<'a> {
    fn new(trial: Trial<'a>, by: MeasuredBy<'a>) -> Self {
        Self {
            trial,
            site: trial.trial_site(),
            by,
            made: false,
            data: None,
            observation: trial.ended_as(Ended::Complete),
        }
    }

    /// Lays out the data where they were not found.
    fn lay_out(&mut self, control: &Control) -> Result<(), Ended> {
        if self.data.is_some() {
            return Ok(());
        }
        if self.trial.workload().uses_data_before() {
            self.observation.notes.push(LAID_OUT_ANEW.to_owned());
        }
        let prepared = self.trial.workload().prepare(&self.site.place(control));
        prepared.map_err(|trouble| self.failed_of(trouble))?;
        // Each machine or client lays out data of its own: only those of one alone may stay.
        self.data = self.trial.data_to_keep(&self.site.directory);
        Ok(())
    }

    /// The end of a trial whose workload could not be carried out. What can be mended is measured again by `resume`.
    fn failed_of(&mut self, trouble: WorkloadError) -> Ended {
        self.observation.cause = trouble.cause;
        self.observation.advice = trouble.next;
        failed(self.named(trouble.said))
    }

    /// A trial without the figure that is judged says nothing: a verdict would call it "too few rounds".
    fn has_what_is_judged(&mut self, outcomes: &[PhaseOutcome]) -> Result<(), Ended> {
        let judged = self.trial.head().metrics.first();
        let (Some(metric), Some(None)) = (judged, self.observation.metrics.first()) else {
            return Ok(());
        };
        let all = outcomes.iter().flat_map(|outcome| &outcome.ops);
        let count: u64 = all.map(|op| op.count).sum();
        "let it measure more, or name another metric".clone_into(&mut self.observation.advice);
        Err(failed(format!(
            "there is no {} of {} (a 99.9th percentile takes {} of its kind)",
            metric.name,
            unit::counted(count as usize, "operation"),
            unit::counted(OPERATIONS_FOR_P999 as usize, "operation")
        )))
    }

    /// Adds what all machines did together, where the study asks for it, and says what each of the
    /// others did.
    fn add_up(&mut self) {
        let MeasuredBy::Machines(peers) = &mut self.by else {
            return;
        };
        let observation = &mut self.observation;
        observation.others = peers.iter_mut().map(PeerPhases::node).collect();
        let own = self.trial.workload().metrics();
        // Sums over all machines are more metrics than the workload itself has.
        if self.trial.head().metrics.len() > own.len() {
            let others = observation.others.iter().map(|other| &*other.metrics);
            let each: Vec<&[Option<f64>]> = std::iter::once(&*observation.metrics)
                .chain(others)
                .collect();
            let sums = all_nodes::values(&own, &each);
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

    /// Keeps the data for the next trial, or removes the directory.
    fn leave_directory(&mut self) {
        let directory = &self.site.directory;
        if let Err(error) = self.trial.standing.open(self.trial.executor.host) {
            let note = format!("after the trial: {error}");
            self.observation.notes.push(with_real_names(&note));
        }
        // A control of its own: what a stopped trial has begun must come to its end, too.
        let control = Control::default();
        if let Err(trouble) = self.trial.workload().finish(&self.site.place(&control)) {
            let note = format!("after the trial: {trouble}");
            self.observation.notes.push(with_real_names(&note));
        }
        let whole = self.observation.ended == Ended::Complete;
        if whole && let Some(data) = self.trial.data_left(directory, self.data.take()) {
            let of = self.trial.data_of();
            self.trial.data.borrow_mut().insert(of, data);
            return;
        }
        // The stack's own journal entry covers the directory: a failure here is undone with it.
        if let Err(error) = self.trial.executor.host.remove_tree(directory) {
            let note = format!("the trial's files could not be removed right after it: {error}");
            self.observation.notes.push(with_real_names(&note));
        }
    }
}

impl Stages for StackTrial<'_> {
    fn workload(&self) -> &dyn Workload {
        self.trial.workload()
    }

    fn look(&mut self) -> Result<(), Ended> {
        match self.observation.exchanged {
            // It is known already what was exchanged.
            Some(_) => Ok(()),
            None => self.trial.lies_where_it_lay(&mut self.observation),
        }
    }

    fn begin(&mut self) -> Result<(), Ended> {
        let opened = self.trial.standing.open(self.trial.executor.host);
        opened.map_err(failed)?;
        if let Before::Preconditioning { capacity } = self.trial.before {
            let done = self.trial.precondition(capacity, &mut self.observation)?;
            self.observation.preconditioned = Some(done);
        }
        self.data = self.trial.take_data();
        if self.data.is_none() {
            let made = self.trial.executor.host.create_dir(&self.site.directory);
            made.map_err(failed)?;
        }
        self.made = true;
        Ok(())
    }

    fn prepare(&mut self, control: &Arc<Control>) -> Result<(), Ended> {
        let executor = self.trial.executor;
        let began = executor.clock.now_ns();
        self.trial.begins_with("prepare", control);
        if let MeasuredBy::Clients(conductor) = &mut self.by {
            return conductor.prepare(&self.site.directory, &mut self.observation);
        }
        if let MeasuredBy::Machines(peers) = &mut self.by {
            self.trial.prepare_peers(peers).map_err(failed)?;
        }
        let standing = self.trial.standing;
        standing.while_served(executor.host, || self.lay_out(control))?;
        if let MeasuredBy::Machines(peers) = &self.by {
            let stopped = || executor.interrupt.raised();
            // The others prepare at the same time, and are waited for last.
            let prepared = peers.iter().try_for_each(|peer| peer.prepared(&stopped));
            prepared.map_err(|trouble| self.trial.peer_trouble(trouble, &mut self.observation))?;
        }
        self.observation.prepare_ns = executor.clock.now_ns().saturating_sub(began);
        Ok(())
    }

    fn settle(&mut self, phase: usize) -> Result<(), Ended> {
        if !self.workload().settles(phase) {
            return Ok(());
        }
        match &mut self.by {
            MeasuredBy::Clients(conductor) => conductor.settle(&mut self.observation),
            _ => {
                (self.trial).settle(&self.site.directory, &mut self.observation)?;
                let control = Control::ended_by(self.trial.executor.interrupt.stop_flag());
                let warmed = self.trial.workload().warm(&self.site.place(&control));
                warmed.map_err(|trouble| self.failed_of(trouble))
            }
        }
    }

    fn seats(trials: &mut [&mut Self]) -> Vec<Option<AlternationSeat>> {
        let parts = trials.iter().map(|trial| match &trial.by {
            MeasuredBy::Slices(part) => Some(part),
            _ => None,
        });
        sliced::seats(&parts.collect::<Vec<_>>())
    }

    fn begins(&mut self, phase: usize, control: &Arc<Control>) {
        let name = self.workload().phases()[phase];
        match self.by {
            MeasuredBy::Slices(_) => self
                .trial
                .begins_with(&format!("{name}, in slices"), control),
            _ => self.trial.begins_with(name, control),
        }
        // A trial starts with its first phase: preparing is outside of the clock.
        if phase == 0 {
            self.observation.started_at = self.trial.executor.clock.today();
        }
    }

    fn observed(&self) -> Observed<'_> {
        match self.by {
            // Each client counts on its own machine.
            MeasuredBy::Clients(_) => Observed::Nothing,
            // What this machine counts says nothing of another one.
            _ if self.site.elsewhere.is_some() => Observed::Nothing,
            _ => Observed::CountersAndPulse(self.trial.standing.devices()),
        }
    }

    fn measure(&mut self, phase: usize, control: &Arc<Control>) -> Result<PhaseOutcome, Ended> {
        match &mut self.by {
            MeasuredBy::Clients(conductor) => {
                return conductor.measure(phase, &mut self.observation);
            }
            MeasuredBy::Machines(peers) => {
                let released = peers.iter_mut().try_for_each(PeerPhases::start);
                released
                    .map_err(|trouble| self.trial.peer_trouble(trouble, &mut self.observation))?;
            }
            MeasuredBy::Slices(_) | MeasuredBy::Together(_) => {}
        }
        let (trial, place) = (self.trial, self.site.place(control));
        let measure = || trial.measured_phase(phase, &place);
        let measured = trial.standing.while_served(trial.executor.host, measure);
        measured.map_err(|trouble| self.failed_of(trouble))
    }

    fn measure_all(
        trials: &mut [&mut Self],
        phase: usize,
        controls: &[Arc<Control>],
    ) -> Vec<Result<PhaseOutcome, Ended>> {
        let measured = match trials.first().map(|trial| &trial.by) {
            Some(MeasuredBy::Slices(_)) => {
                let works = trials.iter().zip(controls);
                let works =
                    works.map(|(trial, control)| (trial.workload(), trial.site.place(control)));
                sliced::measured(phase, works.collect())
            }
            Some(MeasuredBy::Together(_)) => {
                let trial = trials[0].trial;
                let measure = || measured_together(trials, phase, controls);
                trial.standing.while_served(trial.executor.host, measure)
            }
            _ => {
                let each = trials.iter_mut().zip(controls);
                return each
                    .map(|(trial, control)| trial.measure(phase, control))
                    .collect();
            }
        };
        let named = trials.iter_mut().zip(measured);
        named
            .map(|(trial, measured)| measured.map_err(|trouble| trial.failed_of(trouble)))
            .collect()
    }

    fn note(
        &mut self,
        phase: usize,
        outcome: &PhaseOutcome,
        counted: &Counted,
    ) -> Result<(), Ended> {
        self.observation.cause = outcome.error.as_ref().and_then(cause_of_operation);
        let own = read_bytes(outcome);
        let sliced;
        let (counted, read) = match &self.by {
            // They have said what each of them measured and counted.
            MeasuredBy::Clients(_) => return Ok(()),
            MeasuredBy::Machines(_) => (counted, own),
            MeasuredBy::Together(part) => {
                part.record(&mut self.observation);
                (counted, part.read_by_all(own))
            }
            MeasuredBy::Slices(part) => {
                self.observation.sliced = Some(part.sums(outcome));
                sliced = part.counted(counted);
                (&sliced, own)
            }
        };
        let (workload, observation) = (self.trial.workload(), &mut self.observation);
        note_phase_of(observation, workload, (phase, outcome), (counted, read));
        let control = Control::default();
        self.trial
            .tell_promised(&self.site.place(&control), outcome)
    }

    fn goes_on(&mut self, _phase: usize, _outcomes: &[PhaseOutcome]) -> Result<(), Ended> {
        let MeasuredBy::Machines(peers) = &mut self.by else {
            return Ok(());
        };
        let stopped = || self.trial.executor.interrupt.raised();
        let measured = peers
            .iter_mut()
            .try_for_each(|peer| peer.measured(&stopped));
        measured.map_err(|trouble| self.trial.peer_trouble(trouble, &mut self.observation))
    }

    fn conclude(&mut self, outcomes: &[PhaseOutcome]) -> Result<(), Ended> {
        let observation = &mut self.observation;
        // The stack's own, which no client counts.
        observation.counted.line = self.trial.standing.line();
        let workload = self.trial.workload();
        observation.metrics = workload.evaluate(outcomes);
        observation.resolution = workload.resolution(outcomes, &observation.metrics);
        match &mut self.by {
            MeasuredBy::Clients(conductor) => conductor.conclude(observation)?,
            MeasuredBy::Machines(_) => self.add_up(),
            MeasuredBy::Slices(_) | MeasuredBy::Together(_) => {}
        }
        self.has_what_is_judged(outcomes)
    }

    fn end_others(&mut self) {
        match &mut self.by {
            MeasuredBy::Machines(peers) => {
                for why in peers.drain(..).filter_map(|peer| peer.end().err()) {
                    let note = format!("the trial's files on another machine: {why}");
                    self.observation.notes.push(note);
                }
            }
            MeasuredBy::Clients(conductor) => self.observation.notes.extend(conductor.end()),
            MeasuredBy::Slices(_) | MeasuredBy::Together(_) => {}
        }
    }

    fn named(&self, error: String) -> String {
        // Where several machines work, it is said that it was the first.
        match self.trial.standing.others().is_empty() || matches!(self.by, MeasuredBy::Clients(_)) {
            true => error,
            false => format!("node1: {error}"),
        }
    }

    fn leave(&mut self, ended: Ended, _outcomes: Vec<PhaseOutcome>) {
        if ended == Ended::Interrupted {
            // It does not count anyway, and what was half done says nothing of the storage.
            self.observation.exchanged = None;
        }
        self.observation.ended = ended;
        if self.made {
            let trial = self.trial;
            trial
                .standing
                .while_served(trial.executor.host, || self.leave_directory());
        }
    }
}
