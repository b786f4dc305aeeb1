//! One trial: prepare, settle, measure, observe.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use stackrace_engine::{Control, Op, OpOutcome, PhaseOutcome, Timing, residency};

use super::LocalExecutor;
use super::phases::PeerPhases;
use crate::agent::message::PhaseOrder;
use crate::event::{
    Counted, Ended, Observation, OperationObservation, PhaseObservation, Settled, ThreadOperation,
    TimingObservation,
};
use crate::observe::{self, Snapshot};
use crate::stack::{Site, StandingStack};
use crate::unit;
use crate::workload::{Bare, Place, Workload, together};

/// Below this many operations a 99.9th percentile rests on fewer than ten of them.
const OPERATIONS_FOR_P999: u64 = 10_000;

/// So many files of a trial's data are looked at to tell a cold start from a warm one.
const RESIDENCY_FILES_MAX: usize = 512;

/// A part of a trial that begins, for the one who watches.
pub(crate) struct TrialStart<'a> {
    /// From 1.
    pub(crate) round: u32,
    /// Configuration by index.
    pub(crate) configuration: usize,
    /// Workload by index; none while a stack is raised.
    pub(crate) workload: Option<usize>,
    /// `raise`, `precondition`, `prepare`, `settle`, or the name of the phase, after `pass 3: ` where
    /// it is a pass of preconditioning.
    pub(crate) part: &'a str,
    /// Counts what the phase does; none where nothing is counted.
    pub(crate) control: Option<Arc<Control>>,
}

/// One workload on one raised stack.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) executor: &'a LocalExecutor<'a>,
    pub(super) site: &'a Site<'a>,
    pub(super) raised: &'a StandingStack,
    pub(super) round: u32,
    pub(super) position: usize,
    pub(super) configuration: usize,
    pub(super) workload: usize,
    /// What is to be done before.
    pub(super) before: Before,
}

/// What is done to a stack before a trial.
#[derive(Clone, Copy)]
pub(super) enum Before {
    /// Nothing.
    Nothing,
    /// It is written over from beginning to end if no earlier trial had that done, then used until
    /// it is steady.
    Preconditioning {
        /// Bytes to write over; 0: it was done.
        capacity: u64,
    },
    /// It is being used until it is steady, and this is the pass of that number, from 1: nothing of
    /// it is kept but its figure.
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
        ended: Ended::Failed { error },
        started_at: today.to_owned(),
        prepare_ns: 0,
        settle_ns: 0,
        settled: Settled::default(),
        preconditioned: None,
        elapsed_ns: 0,
        counted: Counted::default(),
        phases: Vec::new(),
        metrics: Vec::new(),
        notes: Vec::new(),
        others: Vec::new(),
    }
}

impl Trial<'_> {
    /// Runs it to whatever end.
    pub(super) fn run(&self) -> Observation {
        let today = self.executor.clock.today();
        let mut observation = failed(
            self.round,
            self.position,
            self.configuration,
            self.workload,
            &today,
            String::new(),
        );
        observation.ended = Ended::Complete;
        if let Before::Preconditioning { capacity } = self.before {
            match self.precondition(capacity) {
                Ok(done) => observation.preconditioned = Some(done),
                Err(ended) => {
                    observation.ended = ended;
                    return observation;
                }
            }
        }
        let directory = self
            .raised
            .directory()
            .join(format!(".stackrace-{}", self.workload));
        if let Err(error) = self.executor.host.create_dir(&directory) {
            observation.ended = Ended::Failed {
                error: error.to_string(),
            };
            return observation;
        }
        if let Err(ended) = self.measure(&directory, &mut observation) {
            observation.ended = ended;
        }
        // The stack's own journal entry covers the directory: a failure here is undone with it.
        if let Err(error) = self.executor.host.remove_tree(&directory) {
            observation.notes.push(format!(
                "the trial's files could not be removed right after it: {error}"
            ));
        }
        observation
    }

    /// Measures, on every machine the stack is loaded from.
    fn measure(&self, directory: &Path, observation: &mut Observation) -> Result<(), Ended> {
        let mut peers = Vec::new();
        let measured = self
            .prepare_peers(&mut peers)
            .map_err(|error| Ended::Failed { error })
            .and_then(|()| self.measure_with(directory, observation, &mut peers));
        for peer in peers {
            if let Err(why) = peer.end() {
                let note = format!("the trial's files on another machine: {why}");
                observation.notes.push(note);
            }
        }
        measured
    }

    fn workload(&self) -> &dyn Workload {
        self.executor.study.configurations[self.configuration].workloads[self.workload].as_ref()
    }

    /// Has every other machine that loads the stack prepare the same workload.
    fn prepare_peers<'a>(&'a self, peers: &mut Vec<PeerPhases<'a>>) -> Result<(), String> {
        let executor = self.executor;
        for (node, root) in self.raised.others() {
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
            };
            peers.push(PeerPhases::prepare(host, peer, order)?);
        }
        Ok(())
    }

    fn measure_with(
        &self,
        directory: &Path,
        observation: &mut Observation,
        others: &mut [PeerPhases<'_>],
    ) -> Result<(), Ended> {
        let workload = self.workload();
        let seed = self.seed();
        let bare = self.raised.bare().map(|bare| Bare {
            host: self.executor.host,
            devices: &bare.devices,
            pools: &bare.pools,
        });
        let clock = &self.executor.clock;
        let began = clock.now_ns();
        let ledger = OnceLock::new();
        let control = self.begins("prepare");
        workload
            .prepare(&Place {
                directory,
                bare,
                existing: None,
                ledger: &ledger,
                seed,
                control: &control,
            })
            .map_err(|trouble| self.ended(&control, trouble.0))?;
        self.stopped(&control)?;
        let stopped = || self.executor.interrupt.raised();
        let prepared = others.iter().try_for_each(|other| other.prepared(&stopped));
        prepared.map_err(|error| self.elsewhere(&control, error))?;
        observation.prepare_ns = clock.now_ns().saturating_sub(began);
        let mut outcomes = Vec::new();
        for (phase, name) in workload.phases().into_iter().enumerate() {
            if workload.settles(phase) {
                self.settle(directory, observation)?;
            }
            let control = self.begins(name);
            if phase == 0 {
                observation.started_at = clock.today();
            }
            let before = Snapshot::take(self.raised.devices());
            let released = others.iter().try_for_each(PeerPhases::start);
            released.map_err(|error| self.elsewhere(&control, error))?;
            let outcome = workload.measure(
                phase,
                &Place {
                    directory,
                    bare,
                    existing: None,
                    ledger: &ledger,
                    seed,
                    control: &control,
                },
            );
            let after = Snapshot::take(self.raised.devices());
            let mut counted = before.until(&after);
            let outcome = outcome.map_err(|trouble| self.ended(&control, trouble.0))?;
            observe::asked_by_workload(&mut counted, read_bytes(&outcome));
            observe::add(&mut observation.counted, &counted);
            observation.elapsed_ns += outcome.elapsed_ns;
            let offered = workload.offered_per_s(phase);
            observation
                .phases
                .push(phase_observation(name, &outcome, offered));
            self.accept(&control, &outcome)?;
            outcomes.push(outcome);
            let mut each = others.iter_mut();
            let measured = each.try_for_each(|other| other.measured(&stopped));
            measured.map_err(|error| self.elsewhere(&control, error))?;
        }
        self.all_there(&control)?;
        observation.counted.line = self.raised.line();
        observation.metrics = workload.evaluate(&outcomes);
        self.add_up(workload, observation, others);
        Ok(())
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

    /// What was measured is of this stack only if all its machines were there until the end.
    fn all_there(&self, control: &Control) -> Result<(), Ended> {
        let whole = self.raised.is_whole(self.executor.host);
        whole.map_err(|error| self.elsewhere(control, error.to_string()))
    }

    /// What a phase's end means for the trial.
    fn accept(&self, control: &Control, outcome: &PhaseOutcome) -> Result<(), Ended> {
        match (&outcome.error, outcome.ended) {
            (Some(error), _) => Err(self.ended(control, error.to_string())),
            (None, stackrace_engine::PhaseEnd::Complete) => Ok(()),
            (None, _) => Err(Ended::Interrupted),
        }
    }

    /// Empties caches as the study's policy says and finds out whether it worked.
    fn settle(&self, directory: &Path, observation: &mut Observation) -> Result<(), Ended> {
        let policy = &self.executor.study.policy;
        self.begins("settle");
        let began = self.executor.clock.now_ns();
        let mut settled = self
            .raised
            .settle(self.site, policy.drop_caches, policy.remount)
            .map_err(|error| Ended::Failed {
                error: format!("cannot settle: {error}"),
            })?;
        if policy.drop_caches
            && settled.caches == "none"
            && residency::evict_tree(directory).is_ok()
        {
            settled.caches = "advice".to_owned();
        }
        let resident = residency::resident_bytes_below(directory, RESIDENCY_FILES_MAX).ok();
        let first = observation.phases.is_empty();
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
        observation.settled = settled;
        observation.settle_ns += self.executor.clock.now_ns().saturating_sub(began);
        Ok(())
    }

    /// The same for every configuration of a round, different for each round, workload and pass.
    pub(super) fn seed(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.executor.study.seed.to_le_bytes());
        hasher.update(&self.round.to_le_bytes());
        hasher.update(&(self.workload as u64).to_le_bytes());
        if let Before::Pass(number) = self.before {
            hasher.update(&number.to_le_bytes());
        }
        first_bytes(&hasher)
    }

    pub(super) fn begins(&self, part: &str) -> Arc<Control> {
        let control = self.executor.interrupt.control();
        let part = &match self.before {
            Before::Pass(number) => format!("pass {number}: {part}"),
            _ => part.to_owned(),
        };
        self.executor.watcher.begins(&TrialStart {
            round: self.round,
            configuration: self.configuration,
            workload: Some(self.workload),
            part,
            control: Some(Arc::clone(&control)),
        });
        control
    }

    /// An error after an interrupt is the interrupt's doing. Where several machines work, it is said
    /// that it was the first.
    pub(super) fn ended(&self, control: &Control, error: String) -> Ended {
        match self.raised.others().is_empty() {
            true => self.elsewhere(control, error),
            false => self.elsewhere(control, format!("node1: {error}")),
        }
    }

    /// The same of an error that says which machine it comes from.
    fn elsewhere(&self, control: &Control, error: String) -> Ended {
        if control.stopped() {
            Ended::Interrupted
        } else {
            Ended::Failed { error }
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

/// Bytes the workload read, by whatever call.
fn read_bytes(outcome: &PhaseOutcome) -> u64 {
    let reads = |op: &&OpOutcome| matches!(op.op, Op::Read | Op::Open);
    outcome.ops.iter().filter(reads).map(|op| op.bytes).sum()
}

fn first_bytes(hasher: &blake3::Hasher) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

pub(super) fn phase_observation(
    name: &str,
    outcome: &PhaseOutcome,
    offered: Option<f64>,
) -> PhaseObservation {
    let engine = if outcome.engine_why.is_empty() {
        outcome.engine.to_owned()
    } else {
        format!("{}: {}", outcome.engine, outcome.engine_why)
    };
    PhaseObservation {
        name: name.to_owned(),
        elapsed_ns: outcome.elapsed_ns,
        cpu_user_ns: Some(outcome.cpu_user_ns),
        cpu_system_ns: Some(outcome.cpu_system_ns),
        engine,
        clock: if outcome.clock == "tsc" {
            format!(
                "tsc, {:.0} ppm off the monotonic clock",
                outcome.clock_error * 1e6
            )
        } else {
            outcome.clock.to_owned()
        },
        depth_achieved: outcome.depth_achieved,
        offered_per_s: offered,
        operations: outcome
            .ops
            .iter()
            .filter(|op| op.count > 0)
            .map(operation)
            .collect(),
        slice_ns: outcome.slice_ns,
        series: outcome
            .series
            .iter()
            .map(|slice| (slice.ops, slice.bytes))
            .collect(),
        lateness: outcome.lateness.as_ref().map(timing),
        // Only an open loop has a schedule to fall behind.
        unissued: outcome.lateness.as_ref().map(|_| outcome.unissued),
        threads: outcome
            .threads
            .iter()
            .map(|thread| thread.ops.iter().map(thread_operation).collect())
            .collect(),
    }
}

fn thread_operation(op: &OpOutcome) -> ThreadOperation {
    ThreadOperation {
        op: op.op.name().to_owned(),
        count: op.count,
        bytes: op.bytes,
        latency_ns_p50: op.latency.value_at_quantile(0.50),
        latency_ns_p99: op.latency.value_at_quantile(0.99),
        latency_ns_max: op.latency.max(),
    }
}

fn timing(timing: &Timing) -> TimingObservation {
    TimingObservation {
        ns_mean: timing.sum_ns as f64 / timing.histogram.len().max(1) as f64,
        ns_p50: timing.histogram.value_at_quantile(0.50),
        ns_p99: timing.histogram.value_at_quantile(0.99),
        ns_max: timing.histogram.max(),
        histogram: encode(&timing.histogram),
    }
}

fn operation(op: &OpOutcome) -> OperationObservation {
    let at = |quantile: f64| op.latency.value_at_quantile(quantile);
    OperationObservation {
        op: op.op.name().to_owned(),
        count: op.count,
        bytes: op.bytes,
        latency_ns_min: op.latency.min(),
        latency_ns_mean: op.latency_sum_ns as f64 / op.count.max(1) as f64,
        latency_ns_p50: at(0.50),
        latency_ns_p95: at(0.95),
        latency_ns_p99: at(0.99),
        latency_ns_p999: (op.count >= OPERATIONS_FOR_P999).then(|| at(0.999)),
        latency_ns_max: op.latency.max(),
        histogram: encode(&op.latency),
        service: op.service.as_ref().map(timing),
    }
}

/// HdrHistogram V2, deflated, base64. Writing into memory cannot fail; an empty text would say it
/// did.
fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => base64::engine::general_purpose::STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_engine::spec::{Content, IoEngine, IoTarget, Pacing, Spec, Stop};

    /// An open loop of two threads, or a closed one of one, that does no I/O.
    fn observed(pacing: Pacing, threads: u32) -> serde_json::Value {
        let target = IoTarget {
            path: "none".into(),
            bytes: 1 << 20,
        };
        let spec = Spec {
            threads,
            pacing,
            content: Content::Zero,
            stop: Stop {
                ops: Some(100),
                time_ns: None,
            },
            engine: IoEngine::Null,
            ..Spec::reads(vec![target], 4096)
        };
        let outcome = stackrace_engine::run(&spec, &Control::default()).unwrap();
        let phase = phase_observation("measure", &outcome, None);
        let json = serde_json::to_value(&phase).unwrap();
        // What is written is what is read.
        let read: PhaseObservation = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), json);
        json
    }

    #[test]
    fn an_open_loop_leaves_its_service_times_and_its_threads() {
        let open = observed(Pacing::Fixed(100_000.0), 2);
        assert!(open["operations"][0]["service"]["ns_p99"].is_u64());
        assert!(open["lateness"]["ns_max"].is_u64());
        assert_eq!(open["unissued"], 0);
        let counts: Vec<_> = (0..2)
            .map(|t| open["threads"][t][0]["count"].clone())
            .collect();
        assert_eq!(counts, [50, 50]);
    }

    /// A closed loop of one thread is recorded as it was before open loops were.
    #[test]
    fn a_closed_loop_has_none_of_it() {
        let closed = observed(Pacing::Closed { think_time_ns: 0 }, 1);
        for word in ["lateness", "unissued", "threads"] {
            assert!(closed.get(word).is_none(), "{word}");
        }
        assert!(closed["operations"][0].get("service").is_none());
    }
}
