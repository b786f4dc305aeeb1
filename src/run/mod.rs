//! A study in execution: rounds, trials, looks, and when to stop.
//!
//! Everything that happens becomes an event in the ledger, and nothing else leaves this room. The
//! order of one trial is: raise the stack, prepare, settle, measure, observe, lower. Whatever
//! fails is recorded with what was measured until then; a treatment that failed leaves the race,
//! because a race in which one side sometimes does not arrive has no fair result.

mod interrupt;
mod ledger;
mod other;
mod precondition;
#[cfg(test)]
mod tests;
mod trial;

pub(crate) use interrupt::Interrupt;
pub(crate) use ledger::{Ledger, Shared};
pub(crate) use other::carry_out;
pub(crate) use trial::TrialStart;

use trial::Before;

use std::path::PathBuf;
use std::sync::Arc;

use crate::event::{Ended, Event};
use crate::host::Host;
use crate::journal::Journal;
use crate::plan;
use crate::stack::{RaisedStack, Site};
use crate::study::{Provision, Study};
use crate::time::Clock;
use crate::verdict::{self, Evidence, State, Verdict};
use stackrace_stats::Looks;

/// Told what happens, as it happens; draws the live view.
pub(crate) trait Watcher: Send + Sync {
    /// A trial's next part begins.
    fn begins(&self, start: &TrialStart<'_>);
    /// The data were looked at.
    fn looked(&self, verdict: &Verdict);
    /// The reader should know.
    fn warned(&self, text: &str);
}

/// Why an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// What was asked is answered.
    Decided,
    /// All rounds the study allows are done.
    Rounds,
    /// Another round, or the rounds up to the next look, would end too late.
    Time,
    /// Somebody stopped it.
    Interrupted,
    /// Too few treatments are left to compare, or the record cannot be written.
    Failed,
}

impl Reason {
    fn word(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Rounds => "rounds",
            Self::Time => "time",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

/// What a race needs.
pub(crate) struct Race<'a> {
    /// The question.
    pub(crate) study: &'a Study,
    /// Where results go.
    pub(crate) ledger: Shared,
    /// Where stacks live.
    pub(crate) host: &'a dyn Host,
    /// What exists because of us.
    pub(crate) journal: &'a Journal,
    /// Where mount points are made.
    pub(crate) scratch: PathBuf,
    /// Where time comes from.
    pub(crate) clock: Arc<dyn Clock>,
    /// Who watches.
    pub(crate) watcher: &'a dyn Watcher,
    /// How to stop it.
    pub(crate) interrupt: Arc<Interrupt>,
    /// Distinguishes the stacks of this execution from those of an earlier one of the same run.
    pub(crate) execution: String,
    /// Ids of devices that may be wiped, repeated on the command line.
    pub(crate) wipe: Vec<String>,
}

/// Why a race could not go on.
#[derive(Debug)]
pub(crate) struct Broken(pub(crate) String);

impl Race<'_> {
    /// Runs, or goes on, until a reason to end; the stacks are lowered whatever happens.
    ///
    /// # Errors
    /// The record cannot be written: nothing measured after that would survive.
    pub(crate) fn run(&self) -> Result<Reason, Broken> {
        let mut standing: Vec<Option<RaisedStack>> =
            self.study.treatments.iter().map(|_| None).collect();
        let ended = self.rounds(&mut standing);
        for (treatment, raised) in standing.iter_mut().enumerate() {
            if let Some(raised) = raised.take() {
                self.lower(0, treatment, raised)?;
            }
        }
        let (reason, detail) = ended?;
        self.append(Event::RunEnded {
            reason: reason.word().to_owned(),
            detail,
        })?;
        Ok(reason)
    }

    fn rounds(&self, standing: &mut [Option<RaisedStack>]) -> Result<(Reason, String), Broken> {
        let decide = &self.study.decide;
        let looks = Looks::plan(decide.rounds_max);
        loop {
            let done = self.ledger.lock().record().complete_rounds().len() as u32;
            if let Some(end) = self.look(&looks, done)? {
                return Ok(end);
            }
            if done >= decide.rounds_max {
                return Ok((
                    Reason::Rounds,
                    format!("all {done} rounds the study allows are done"),
                ));
            }
            if let Some(detail) = self.too_late(&looks, done) {
                return Ok((Reason::Time, detail));
            }
            let live = self.live();
            let enough = if self.study.treatments.len() > 1 {
                2
            } else {
                1
            };
            if live.len() < enough {
                let detail = match live.len() {
                    0 => "no treatment is left: all failed, see their errors",
                    _ => "one treatment is left: the others failed, see their errors",
                };
                return Ok((Reason::Failed, detail.to_owned()));
            }
            if !self.round(done + 1, &live, standing)? {
                return Ok((
                    Reason::Interrupted,
                    format!("stopped by the user in round {}", done + 1),
                ));
            }
        }
    }

    /// Looks at the data if this is a planned look that was not taken yet.
    fn look(&self, looks: &Looks, done: u32) -> Result<Option<(Reason, String)>, Broken> {
        if !looks.is_look(done) {
            return Ok(None);
        }
        let (verdict, dropped, before) = {
            let ledger = self.ledger.lock();
            let record = ledger.record();
            let evidence = Evidence::of(record);
            let before = record.looked_at(done);
            (
                verdict::judge(&evidence),
                verdict::to_drop(&evidence),
                before,
            )
        };
        if !before {
            self.append(Event::Looked {
                rounds: done,
                sentence: verdict.sentence.clone(),
                dropped,
            })?;
        }
        self.watcher.looked(&verdict);
        let one_left = self.live().len() == 1 && verdict.state != State::TooFew;
        let ledger = self.ledger.lock();
        let record = ledger.record();
        // The last one of those that failed has beaten nobody.
        let winner = one_left && !record.dropped().is_empty();
        let decided = verdict::may_stop(&verdict, &record.head) || winner;
        Ok(decided.then_some((Reason::Decided, verdict.sentence)))
    }

    /// Says why the next round must not begin, if the time allowed would not do.
    fn too_late(&self, looks: &Looks, done: u32) -> Option<String> {
        let ledger = self.ledger.lock();
        let record = ledger.record();
        let left = self.study.decide.time_max_ns as f64 / 1e9 - record.elapsed_seconds();
        let Some(mean) = Evidence::of(record).round_seconds else {
            // How long a round takes is not known before one is done.
            return (left <= 0.0).then(|| "the time allowed is over".to_owned());
        };
        let next = looks.next_after(done)?;
        // A verdict comes only at a look. Rounds that cannot reach one would be spent for nothing.
        let needed = f64::from(next - done) * mean;
        (needed > left).then(|| {
            format!(
                "the next verdict comes after {next} rounds, {} more; that takes about {}, and {} of the time allowed are left",
                next - done,
                crate::unit::long_time(needed),
                crate::unit::long_time(left)
            )
        })
    }

    /// Treatments still in the race.
    fn live(&self) -> Vec<usize> {
        let ledger = self.ledger.lock();
        let dropped = Evidence::of(ledger.record()).dropped;
        (0..self.study.treatments.len())
            .filter(|t| !dropped.iter().any(|(gone, _)| gone == t))
            .collect()
    }

    /// One round. False: it was interrupted.
    fn round(
        &self,
        round: u32,
        live: &[usize],
        standing: &mut [Option<RaisedStack>],
    ) -> Result<bool, Broken> {
        let order = match self.ledger.lock().record().order_of(round) {
            Some(order) => order,
            None => plan::order(self.study.seed, &self.study.hash(), round, live),
        };
        self.append(Event::RoundStarted {
            round,
            order: order.clone(),
        })?;
        for (position, treatment) in order.iter().copied().enumerate() {
            if !live.contains(&treatment) {
                continue;
            }
            let missing = self.missing(round, treatment);
            if missing.is_empty() {
                continue;
            }
            if !self.treatment(round, position, treatment, &missing, standing)? {
                return Ok(false);
            }
        }
        self.append(Event::RoundFinished { round })?;
        Ok(true)
    }

    /// Workloads of a treatment that have no complete trial in a round yet.
    fn missing(&self, round: u32, treatment: usize) -> Vec<usize> {
        let ledger = self.ledger.lock();
        let record = ledger.record();
        let have = |workload: usize| {
            record.trials().any(|trial| {
                trial.round == round
                    && trial.treatment == treatment
                    && trial.workload == workload
                    && trial.ended == Ended::Complete
            })
        };
        (0..self.study.workload_heads.len())
            .filter(|workload| !have(*workload))
            .collect()
    }

    /// All missing trials of one treatment in one round. False: interrupted.
    fn treatment(
        &self,
        round: u32,
        position: usize,
        treatment: usize,
        missing: &[usize],
        standing: &mut [Option<RaisedStack>],
    ) -> Result<bool, Broken> {
        let tag = format!("{}-r{round}-t{treatment}", self.execution);
        let site = Site {
            host: self.host,
            journal: self.journal,
            scratch: self.scratch.clone(),
            tag,
            seed: self.study.seed ^ u64::from(round),
            wipe: &self.wipe,
        };
        let stands = standing[treatment].take();
        let wears_in = stands.is_none() && self.study.policy.precondition;
        let raised = match stands {
            Some(raised) => raised,
            None => match self.raise(&site, round, treatment, missing)? {
                Some(raised) => raised,
                None => return Ok(!self.interrupt.raised()),
            },
        };
        let mut capacity = self.study.treatments[treatment].data_bytes();
        let mut going = true;
        for workload in missing.iter().copied() {
            let trial = trial::Trial {
                race: self,
                site: &site,
                raised: &raised,
                round,
                position,
                treatment,
                workload,
                before: match wears_in {
                    true => Before::Preconditioning { capacity },
                    false => Before::Nothing,
                },
            };
            capacity = 0;
            let observation = trial.run();
            let complete = observation.ended == Ended::Complete;
            let failed = matches!(observation.ended, Ended::Failed { .. });
            if let Ended::Failed { error } = &observation.ended {
                self.watcher.warned(&format!(
                    "{}: {error}",
                    self.study.treatments[treatment].name
                ));
            }
            self.append(Event::Trial(Box::new(observation)))?;
            if !complete {
                going = failed && !self.interrupt.raised();
                break;
            }
        }
        if self.study.policy.provision == Provision::Once && going {
            standing[treatment] = Some(raised);
        } else {
            self.lower(round, treatment, raised)?;
        }
        Ok(going && !self.interrupt.raised()
            || (going && self.missing(round, treatment).is_empty() && !self.interrupt.raised()))
    }

    /// Raises a treatment's stack; a failure is recorded as a failed trial of its first workload.
    fn raise(
        &self,
        site: &Site<'_>,
        round: u32,
        treatment: usize,
        missing: &[usize],
    ) -> Result<Option<RaisedStack>, Broken> {
        self.watcher.begins(&TrialStart {
            round,
            treatment,
            workload: None,
            part: "raise",
            control: None,
        });
        let began = self.clock.now_ns();
        match self.study.treatments[treatment].stack.raise(site) {
            Ok(raised) => {
                let elapsed_ns = self.clock.now_ns().saturating_sub(began);
                self.append(Event::StackRaised {
                    round,
                    treatment,
                    layers: raised.facts().to_vec(),
                    elapsed_ns,
                })?;
                Ok(Some(raised))
            }
            Err(error) => {
                let next = error.next();
                let advice = if next.is_empty() {
                    String::new()
                } else {
                    format!("; next: {next}")
                };
                let error = format!("cannot raise the stack: {error}{advice}");
                self.watcher.warned(&format!(
                    "{}: {error}",
                    self.study.treatments[treatment].name
                ));
                let workload = missing.first().copied().unwrap_or(0);
                self.append(Event::Trial(Box::new(trial::failed(
                    round,
                    0,
                    treatment,
                    workload,
                    &self.clock.today(),
                    error,
                ))))?;
                Ok(None)
            }
        }
    }

    fn lower(&self, round: u32, treatment: usize, raised: RaisedStack) -> Result<(), Broken> {
        let site = Site {
            host: self.host,
            journal: self.journal,
            scratch: self.scratch.clone(),
            tag: String::new(),
            seed: 0,
            wipe: &[],
        };
        match raised.lower(&site) {
            Ok(()) => self.append(Event::StackLowered { round, treatment }),
            Err(error) => {
                let text = format!(
                    "{}: cannot lower the stack: {error}; `stackrace clean` tries again",
                    self.study.treatments[treatment].name
                );
                self.watcher.warned(&text);
                self.append(Event::Warned { text })
            }
        }
    }

    fn append(&self, event: Event) -> Result<(), Broken> {
        self.ledger
            .lock()
            .append(event)
            .map_err(|error| Broken(error.to_string()))
    }
}
