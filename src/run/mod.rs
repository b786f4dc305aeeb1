//! A study in execution: rounds, trials, looks, and when to stop.
//!
//! Everything that happens becomes an event in the ledger, and nothing else leaves this room. One
//! loop ([`Race`]) draws the order of a round, looks, and says when to stop; it hands each turn, the
//! trials of one configuration in one round, to a [`Venue`]: this machine ([`Here`]) or others
//! ([`Elsewhere`], which speaks with [`in_step`] there). The order of one trial is: raise the stack, prepare, settle, measure, observe, lower. Whatever
//! fails is recorded with what was measured until then; a configuration that failed leaves the race,
//! because a race in which one side sometimes does not arrive has no fair result.

mod elsewhere;
mod here;
mod interrupt;
mod ledger;
mod other;
mod precondition;
mod step;
#[cfg(test)]
mod tests;
mod trial;

pub(crate) use elsewhere::{Elsewhere, Heard, Messenger};
pub(crate) use here::Here;
pub(crate) use interrupt::Interrupt;
pub(crate) use ledger::{Ledger, SharedLedger};
pub(crate) use other::carry_out;
pub(crate) use step::{Order, Said, Say, Teller, in_step};
pub(crate) use trial::TrialStart;

use serde::{Deserialize, Serialize};

use crate::event::{Ended, Event};
use crate::plan;
use crate::study::Study;
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
    /// Too few configurations are left to compare, or the record cannot be written.
    Failed,
    /// A place is gone.
    Lost,
}

impl Reason {
    /// As it stands on record.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Rounds => "rounds",
            Self::Time => "time",
            Self::Interrupted => "interrupted",
            Self::Failed | Self::Lost => "failed",
        }
    }
}

/// The missing trials of one configuration in one round: what a place does at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    /// From 1.
    pub(crate) round: u32,
    /// Position in the round's order, from 0.
    pub(crate) position: usize,
    /// Configuration by index.
    pub(crate) configuration: usize,
    /// Workloads by index that have no complete trial in this round yet.
    pub(crate) missing: Vec<usize>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Turned {
    /// Its trials were done, well or not.
    Done,
    /// Somebody stopped it.
    Interrupted,
    /// The place is gone: what happened.
    Lost(String),
}

/// Where turns are taken: this machine, or others that are told to.
///
/// Every event of a turn is on record before the turn is over.
pub(crate) trait Venue {
    /// Takes one turn.
    ///
    /// # Errors
    /// The record cannot be written.
    fn take(&mut self, turn: &Turn) -> Result<Turned, Broken>;

    /// Lowers what still stands.
    ///
    /// # Errors
    /// As for [`Venue::take`].
    fn end(&mut self) -> Result<(), Broken>;
}

/// The loop: who takes a turn when, and when it is over.
pub(crate) struct Race<'a> {
    /// The question.
    pub(crate) study: &'a Study,
    /// Where results go.
    pub(crate) ledger: SharedLedger,
    /// Who watches.
    pub(crate) watcher: &'a dyn Watcher,
}

/// Why a race could not go on.
#[derive(Debug)]
pub(crate) struct Broken(pub(crate) String);

impl Race<'_> {
    /// Runs, or goes on, until a reason to end; the stacks are lowered whatever happens.
    ///
    /// # Errors
    /// The record cannot be written: nothing measured after that would survive.
    pub(crate) fn run(&self, place: &mut dyn Venue) -> Result<Reason, Broken> {
        let ended = self.rounds(place);
        let lowered = place.end();
        let (reason, detail) = ended?;
        lowered?;
        self.append(Event::RunEnded {
            reason: reason.word().to_owned(),
            detail,
        })?;
        Ok(reason)
    }

    fn rounds(&self, place: &mut dyn Venue) -> Result<(Reason, String), Broken> {
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
            let enough = if self.study.configurations.len() > 1 {
                2
            } else {
                1
            };
            if live.len() < enough {
                let detail = match live.len() {
                    0 => "no configuration is left: all failed, see their errors",
                    _ => "one configuration is left: the others failed, see their errors",
                };
                return Ok((Reason::Failed, detail.to_owned()));
            }
            match self.round(done + 1, &live, place)? {
                Turned::Done => {}
                Turned::Interrupted => {
                    let detail = format!("stopped by the user in round {}", done + 1);
                    return Ok((Reason::Interrupted, detail));
                }
                Turned::Lost(why) => {
                    let detail = format!("{why}; what was measured until then is kept");
                    return Ok((Reason::Lost, detail));
                }
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

    /// Configurations still in the race.
    fn live(&self) -> Vec<usize> {
        let ledger = self.ledger.lock();
        let dropped = Evidence::of(ledger.record()).dropped;
        (0..self.study.configurations.len())
            .filter(|t| !dropped.iter().any(|(gone, _)| gone == t))
            .collect()
    }

    /// One round, up to the turn that was not done.
    fn round(&self, round: u32, live: &[usize], place: &mut dyn Venue) -> Result<Turned, Broken> {
        let order = match self.ledger.lock().record().order_of(round) {
            Some(order) => order,
            None => plan::order(self.study.seed, &self.study.hash(), round, live),
        };
        self.append(Event::RoundStarted {
            round,
            order: order.clone(),
        })?;
        for (position, configuration) in order.iter().copied().enumerate() {
            if !live.contains(&configuration) {
                continue;
            }
            let turn = Turn {
                round,
                position,
                configuration,
                missing: self.missing(round, configuration),
            };
            if turn.missing.is_empty() {
                continue;
            }
            match place.take(&turn)? {
                Turned::Done => {}
                ended => return Ok(ended),
            }
        }
        self.append(Event::RoundFinished { round })?;
        Ok(Turned::Done)
    }

    /// Workloads of a configuration that have no complete trial in a round yet.
    fn missing(&self, round: u32, configuration: usize) -> Vec<usize> {
        let ledger = self.ledger.lock();
        let record = ledger.record();
        let have = |workload: usize| {
            record.trials().any(|trial| {
                trial.round == round
                    && trial.configuration == configuration
                    && trial.workload == workload
                    && trial.ended == Ended::Complete
            })
        };
        (0..self.study.workload_heads.len())
            .filter(|workload| !have(*workload))
            .collect()
    }

    fn append(&self, event: Event) -> Result<(), Broken> {
        self.ledger.tell(event)
    }
}
