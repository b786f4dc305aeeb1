//! A trial of several clients, as the first of them conducts it.

use std::path::Path;

use stackrace_engine::PhaseOutcome;

use super::merge::{self, CommonOutcome};
use super::process::{self, ClientProcess, all_replied};
use super::seating::seated;
use crate::run::fits::Since;
use crate::run::local_executor::ClientsReached;
use crate::run::observation::phase_observation;
use crate::run::replied::MachineTrouble;
use crate::run::runner::failed;
use crate::run::trial::Trial;
use stackrace_base::event::{
    ClientPhase, ClientsTogether, CommonPhase, Counted, Ended, Observation, Settled,
};
use stackrace_base::unit;
use stackrace_load::workload::{together, trouble};
use stackrace_remote::agent::message::{ClientSeat, PhaseReply, PhaseRequest};

/// Number of times that the clocks of each client are read before a phase; the shortest round trip counts.
const CLOCK_READINGS: usize = 6;

/// The start of a phase is at least so far ahead that everybody has heard of it, ns; for each process
/// that is told; and so many of the longest round trips.
const LEAD_NS: u64 = 20_000_000;
const LEAD_EACH_NS: u64 = 50_000;
const LEAD_ROUND_TRIPS: u64 = 4;

/// Ways of emptying caches, each with warmer ones behind it.
const WARMER: [&str; 3] = ["drop_caches", "advice", "none"];

/// Leads the processes of a trial through its phases.
pub(crate) struct Conductor<'a> {
    trial: Trial<'a>,
    reached: &'a ClientsReached,
    processes: Vec<ClientProcess>,
    /// Figures of how well each phase was measured at the same time.
    phases: Vec<CommonPhase>,
    /// The reason why all of them were at work at no time of the last such phase.
    apart: Option<String>,
}

impl<'a> Conductor<'a> {
    pub(crate) fn new(trial: Trial<'a>, reached: &'a ClientsReached) -> Self {
        Self {
            trial,
            reached,
            processes: Vec::new(),
            phases: Vec::new(),
            apart: None,
        }
    }

    /// The end of the trial because of a client.
    fn ended(&self, trouble: MachineTrouble, observation: &mut Observation) -> Ended {
        match trouble {
            MachineTrouble::Failed(trouble) => {
                observation.cause = trouble.cause;
                observation.advice = trouble.next;
                failed(trouble.said)
            }
            MachineTrouble::Exchanged(storage, effect) => {
                self.trial.exchanged(*storage, effect, observation)
            }
            // It is no fault of the configuration: the trial is done again when the run is continued.
            MachineTrouble::Lost(why) => {
                observation.notes.push(why.clone());
                self.trial.executor.lost.replace(Some(why));
                Ended::Interrupted
            }
        }
    }

    /// Has every process that takes part prepare.
    ///
    /// # Errors
    /// One failed or was lost, which is said with its name.
    pub(crate) fn prepare(
        &mut self,
        directory: &Path,
        observation: &mut Observation,
    ) -> Result<(), Ended> {
        let prepared = self.begin(directory).and_then(|()| {
            let clock = &self.trial.executor.clock;
            let began = clock.now_ns();
            self.all_say(|reply| matches!(reply, PhaseReply::Prepared))?;
            observation.prepare_ns = clock.now_ns().saturating_sub(began);
            Ok(())
        });
        prepared.map_err(|trouble| self.ended(trouble, observation))
    }

    /// Has every process begin to prepare.
    fn begin(&mut self, directory: &Path) -> Result<(), MachineTrouble> {
        let trial = self.trial;
        let study = trial.executor.study;
        // The others know the directory by its name, and not by what this process holds open.
        let name = directory.file_name().unwrap_or_default();
        let directory = trial.standing.known_directory().join(name);
        let (count, each) = study.clients_of(trial.configuration);
        let clients = &self.reached.clients;
        let count = count.map_or(clients.names.len(), |count| count as usize);
        let seats = seated(
            clients,
            count,
            each.unwrap_or(clients.processes),
            trial.round,
        );
        let of = seats.len() as u32;
        for (rank, seat) in (0..).zip(seats) {
            let seat_there = ClientSeat {
                rank,
                of,
                cold: study.policy.drop_caches,
            };
            let order = trial.order(directory.clone(), trial.seed(), Some(seat_there));
            let request = PhaseRequest::Prepare(Box::new(order));
            let process = ClientProcess::prepare(&self.reached.connection, seat, request)?;
            self.processes.push(process);
        }
        Ok(())
    }

    /// Measures a phase by all of them.
    ///
    /// # Errors
    /// As [`Conductor::prepare`].
    pub(crate) fn measure(
        &mut self,
        phase: usize,
        observation: &mut Observation,
    ) -> Result<PhaseOutcome, Ended> {
        let workload = self.trial.workload();
        let name = workload.phases()[phase];
        let common = self.phase(name);
        let CommonOutcome {
            outcome,
            phase: how,
            each,
        } = common.map_err(|trouble| self.ended(trouble, observation))?;
        let offered = workload.offered_per_s(phase);
        let offered = offered.map(|rate| rate * self.processes.len() as f64);
        observation.elapsed_ns = observation.elapsed_ns.saturating_add(outcome.elapsed_ns);
        observation
            .phases
            .push(phase_observation(name, &outcome, offered));
        if how.window_ns == 0 {
            self.apart = Some(self.apart(name, &each));
        }
        for (process, part) in self.processes.iter_mut().zip(each) {
            process.part.phases.push(part);
        }
        self.phases.push(how);
        Ok(outcome)
    }

    /// Conducts one phase, from the setting up of everybody to what all of them measured together.
    fn phase(&mut self, name: &str) -> Result<CommonOutcome, MachineTrouble> {
        let since = Since::now();
        self.ask_all(&PhaseRequest::SetUp)?;
        self.all_say(|reply| matches!(reply, PhaseReply::SetUp))?;
        compare_clocks(&mut self.processes)?;
        let slowest = self
            .processes
            .iter()
            .map(|process| process.part.round_trip_ns);
        let told = self.processes.len() as u64 * LEAD_EACH_NS;
        let lead = LEAD_NS + told + slowest.max().unwrap_or(0) * LEAD_ROUND_TRIPS;
        let instant = self.trial.executor.clock.now_ns() + lead;
        let mut each = self.processes.iter();
        each.try_for_each(|process| process.start_at(instant))?;
        let replies = self.all_replied()?;
        let measured = self.processes.iter_mut().zip(replies);
        let measured = measured.map(|(process, reply)| process.measured(reply, (name, since)));
        let measured = measured.collect::<Result<Vec<_>, MachineTrouble>>()?;
        merge::common(name, measured).map_err(|why| MachineTrouble::Failed(trouble(why)))
    }

    fn all_replied(&self) -> Result<Vec<PhaseReply>, MachineTrouble> {
        let stopped = || self.trial.executor.interrupt.raised();
        all_replied(&self.processes, &stopped)
    }

    /// Says why there was no time in which all of them were at work.
    fn apart(&self, name: &str, each: &[ClientPhase]) -> String {
        let each = || self.processes.iter().zip(each);
        let last = each().max_by_key(|(_, part)| part.began_ns);
        let first = each().min_by_key(|(_, part)| part.began_ns.saturating_add(part.elapsed_ns));
        let (Some((late, began)), Some((early, ended))) = (last, first) else {
            return "no client took part".to_owned();
        };
        format!(
            "the clients did not measure {name} at the same time: {} began {} after the first, and {} had ended by then, after {}; give them more to do",
            late.part.client,
            unit::time_ns(began.began_ns as f64),
            early.part.client,
            unit::time_ns(ended.elapsed_ns as f64),
        )
    }

    /// Has all clients write back what they have, and empty their caches.
    ///
    /// # Errors
    /// As [`Conductor::prepare`].
    pub(crate) fn settle(&mut self, observation: &mut Observation) -> Result<(), Ended> {
        let clock = &self.trial.executor.clock;
        let began = clock.now_ns();
        self.trial.begins("settle");
        let asked = self.ask_all(&PhaseRequest::Settle);
        let replies = asked.and_then(|()| self.all_replied());
        let replies = replies.map_err(|trouble| self.ended(trouble, observation))?;
        let mut caches = Vec::new();
        for (at, reply) in replies.into_iter().enumerate() {
            match reply {
                PhaseReply::Settled { caches: how } if WARMER.contains(&how.as_str()) => {
                    caches.push(how.clone());
                    self.processes[at].part.caches = how;
                }
                other => {
                    let why = format!("an unexpected answer: {other:?}");
                    let trouble = self.processes[at].failed(why);
                    return Err(self.ended(trouble, observation));
                }
            }
        }
        // The trial is as warm as its warmest client.
        let warmth = |how: &String| WARMER.iter().position(|known| how == known);
        let worst = caches
            .into_iter()
            .max_by_key(|how| warmth(how).unwrap_or(usize::MAX));
        observation.settled = Settled {
            caches: worst.unwrap_or_default(),
            ..Settled::default()
        };
        observation.settle_ns += clock.now_ns().saturating_sub(began);
        Ok(())
    }

    /// Adds what each of them did to the figures of all together.
    ///
    /// # Errors
    /// They measured no phase at the same time.
    pub(crate) fn conclude(&mut self, observation: &mut Observation) -> Result<(), Ended> {
        if let Some(apart) = self.apart.take() {
            // A short phase may be over before the last has begun: the others still are what was asked.
            if self.phases.iter().all(|how| how.window_ns == 0) {
                return Err(failed(apart));
            }
            observation.notes.push(apart);
        }
        let each = self.processes.iter().map(|process| process.part.clone());
        let clients = ClientsTogether {
            each: each.collect(),
            phases: std::mem::take(&mut self.phases),
        };
        observation.counted = Counted {
            line: observation.counted.line.take(),
            ..merge::counted(&clients.each)
        };
        let own = self.trial.workload().metrics();
        if self.trial.head().metrics.len() > own.len() {
            let values = together::window_values(&own, &clients);
            observation.metrics.extend(values);
        }
        observation.clients = Some(clients);
        Ok(())
    }

    /// Tells all to end what they do; the first that goes on, with its name.
    pub(crate) fn end(&self) -> Option<String> {
        process::end(&self.processes)
    }

    fn ask_all(&self, request: &PhaseRequest) -> Result<(), MachineTrouble> {
        let mut each = self.processes.iter();
        each.try_for_each(|process| process.ask(request.clone()))
    }

    /// Waits until all have said one thing.
    fn all_say(&self, said: impl Fn(&PhaseReply) -> bool) -> Result<(), MachineTrouble> {
        let replies = self.all_replied()?;
        let mut replied = self.processes.iter().zip(replies);
        match replied.find(|(_, reply)| !said(reply)) {
            None => Ok(()),
            Some((process, reply)) => {
                Err(process.failed(format!("an unexpected answer: {reply:?}")))
            }
        }
    }
}

/// Compares the clocks of all processes with ours. The readings of each are spread: what delays one of
/// them does not delay all.
fn compare_clocks(processes: &mut [ClientProcess]) -> Result<(), MachineTrouble> {
    processes.iter_mut().for_each(ClientProcess::forget_clocks);
    for _ in 0..CLOCK_READINGS {
        processes
            .iter_mut()
            .try_for_each(ClientProcess::read_clocks)?;
    }
    Ok(())
}
