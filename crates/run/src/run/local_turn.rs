//! Turns executed on this machine: stacks set up, tried and torn down.

use std::cell::RefCell;

use super::crash::{Capture, recover};
use super::executor::{ATTEMPTS, Broken, Executor, TrialStart, Turned};
use super::local_executor::{KeptStack, LocalExecutor};
use super::stack_trial::run_together;
use super::trial::{Before, Trial};
use stackrace_base::event::{
    AWAY_SHARE, Ended, Event, ExchangedStorage, FailureCause, Observation, Promised,
};
use stackrace_layers::stack::{self as stacks, Site, StandingStack};
use stackrace_machine::host::drives;
use stackrace_machine::journal::{EntryId, Undo};
use stackrace_remote::agent::message::{RecoverOrder, Turn};

/// Result of the trials of a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Going {
    /// Every trial is complete.
    On,
    /// A trial failed: its configuration is not tried again.
    Failed,
    /// A trial was interrupted.
    Interrupted,
}

impl Executor for LocalExecutor<'_> {
    fn execute(&mut self, turn: &Turn) -> Result<Turned, Broken> {
        if let Some(why) = self.tear_down_leftovers()? {
            return Ok(Turned::Lost(why));
        }
        let Some((up, fresh)) = self.stack_for(turn)? else {
            return Ok(self.turned(true));
        };
        let going = self.trials(&self.site_of(turn), turn, &up, fresh);
        if self.study.crash.is_some() {
            // Before it is torn down: that would be written, too.
            self.crash.captured = Some(Capture::now(up.stack.mark()));
        }
        let going = self.put_back(turn, up, going)?;
        Ok(self.turned(going != Going::Interrupted))
    }

    fn slices(&self) -> bool {
        true
    }

    fn recover(&mut self, order: &RecoverOrder) -> Result<(), Broken> {
        let missing = || Broken("there is nothing whose power was cut".to_owned());
        recover(
            self,
            order,
            self.crash.package.as_ref().ok_or_else(missing)?,
        )
    }

    fn execute_until_cut(&mut self, turn: &Turn) -> Result<Turned, Broken> {
        self.crash.telling = self.crash.told.is_some();
        let turned = self.execute(turn);
        self.crash.telling = false;
        turned
    }

    fn keep(&mut self, mark: String, promised: Promised) {
        let package = self.crash.package.get_or_insert_default();
        package.capture.mark = mark;
        let workload = promised.workload;
        let mut known = package.promised.iter_mut();
        match known.find(|known| known.workload == workload) {
            // It comes in pieces.
            Some(known) => known.lines.extend(promised.lines),
            None => package.promised.push(promised),
        }
    }

    fn execute_in_slices(&mut self, turns: &[Turn], slice_ns: u64) -> Result<Turned, Broken> {
        self.execute_sliced(turns, slice_ns)
    }

    fn end(&mut self) -> Result<(), Broken> {
        let mut ended = self.tear_down_leftovers().map(|_| ());
        let mut standing = std::mem::take(&mut self.standing);
        // In the study's order, so that the ends of two runs read alike.
        standing.sort_by_key(|up| up.configuration);
        for up in standing {
            // Also where the coordinator is lost and nothing can be reported any more.
            let torn_down = self.tear_down(0, up.configuration, up.stack);
            ended = ended.and(torn_down);
        }
        ended
    }
}

impl LocalExecutor<'_> {
    fn site(&self) -> Site<'_> {
        Site {
            host: self.host,
            journal: self.journal,
            scratch: self.scratch.clone(),
            tag: String::new(),
            seed: 0,
            wipe: &[],
            undo: stacks::undo_kinds(),
            interrupt: Some(&*self.interrupt),
        }
    }

    /// Returns the site at which the stack of a turn lives.
    pub fn site_of(&self, turn: &Turn) -> Site<'_> {
        let (round, configuration) = (turn.round, turn.configuration);
        Site {
            tag: format!("{}-r{round}-t{configuration}", self.execution),
            seed: self.study.seed ^ u64::from(round),
            wipe: &self.wipe,
            ..self.site()
        }
    }

    /// Returns the stack of a turn, and whether it is fresh; `None` if it could not be set up, which is on record.
    pub fn stack_for(&mut self, turn: &Turn) -> Result<Option<(KeptStack, bool)>, Broken> {
        let configuration = turn.configuration;
        let mut standing = self.standing.iter();
        let stands = standing.position(|up| up.configuration == configuration);
        if let Some(at) = stands {
            return Ok(Some((self.standing.swap_remove(at), false)));
        }
        let stack = self.set_up(&self.site_of(turn), turn)?;
        let kept = stack.map(|stack| KeptStack {
            configuration,
            since: turn.round,
            stack,
            data: RefCell::default(),
        });
        Ok(kept.map(|kept| (kept, true)))
    }

    /// Keeps the stack of a turn for the next one, or tears it down.
    pub fn put_back(
        &mut self,
        turn: &Turn,
        up: KeptStack,
        going: Result<Going, Broken>,
    ) -> Result<Going, Broken> {
        if turn.keep && matches!(going, Ok(Going::On)) {
            self.standing.push(up);
        } else {
            // Also where nothing more can be told: what stands must not outlive this.
            let torn_down = self.tear_down(turn.round, turn.configuration, up.stack);
            going.as_ref().map_or(Ok(()), |_| torn_down)?;
        }
        going
    }

    /// End of the turn: lost with the place, done, or interrupted before all of it was done (`going` is false).
    pub fn turned(&self, going: bool) -> Turned {
        if let Some(why) = self.lost.borrow_mut().take() {
            return Turned::Lost(why);
        }
        match going && !self.interrupt.raised() {
            true => Turned::Done,
            false => Turned::Interrupted,
        }
    }

    /// The trials of a turn, on a stack that is `fresh` or stood before.
    fn trials(
        &self,
        site: &Site<'_>,
        turn: &Turn,
        up: &KeptStack,
        fresh: bool,
    ) -> Result<Going, Broken> {
        // Every workload of the round in which a stack was set up wears it in.
        let wears_in = up.since == turn.round && self.study.policy.precondition;
        let mut capacity = match fresh {
            true => self.study.configurations[turn.configuration].data_bytes(),
            false => 0,
        };
        let trial = |workload, capacity| Trial {
            executor: self,
            site,
            standing: &up.stack,
            data: &up.data,
            keeps: turn.keep,
            round: turn.round,
            position: turn.position,
            configuration: turn.configuration,
            workload,
            before: match wears_in {
                true => Before::Preconditioning { capacity },
                false => Before::Nothing,
            },
        };
        let mut done = Vec::new();
        for workload in turn.missing.iter().copied() {
            let at_once = self.study.at_once(workload);
            if at_once.len() > 1 {
                // The first one that is missing brings the others with it.
                if !done.contains(&workload) {
                    let trials = at_once.iter().map(|one| trial(*one, 0));
                    let trials: Vec<Trial<'_>> = trials.collect();
                    let goings = self.all_or_none(&|| run_together(&trials))?;
                    done = at_once;
                    if let Some(ended) = goings.into_iter().find(|going| *going != Going::On) {
                        return Ok(ended);
                    }
                }
                continue;
            }
            let trial = trial(workload, capacity);
            // It is written over once for all workloads of this stack.
            capacity = 0;
            // Left out of this round alone.
            let Some(observation) = self.measured(trial)? else {
                continue;
            };
            match self.told(observation)? {
                Going::On => {}
                ended => return Ok(ended),
            }
        }
        Ok(Going::On)
    }

    /// Puts a trial on record; how it went.
    pub fn told(&self, mut observation: Observation) -> Result<Going, Broken> {
        if let Ended::Failed { error } = &observation.ended
            && self.host.lost().is_some()
        {
            // The machine is gone, and not the storage at fault: the trial may be measured again.
            let text = self.of(observation.configuration, error);
            observation.notes.push(error.clone());
            observation.ended = Ended::Interrupted;
            // Nothing of it can be seen from here, which is no sign that it was exchanged.
            observation.exchanged = None;
            self.lost.replace(Some(text));
        }
        if let Ended::Failed { error } = &observation.ended
            && self.journal.in_place().is_err()
        {
            // The store was moved away under the stack, which is no fault of the configuration.
            observation.notes.push(error.clone());
            observation.ended = Ended::Interrupted;
            observation.exchanged = None;
        }
        let ended = observation.ended.clone();
        if let Ended::Failed { error } = &ended {
            let text = self.of(observation.configuration, error);
            self.watcher.warned(&text);
        }
        (self.tell)(Event::Trial(Box::new(observation)))?;
        Ok(match ended {
            Ended::Complete => Going::On,
            // An error after Ctrl-C is most likely its effect.
            Ended::Failed { .. } if !self.interrupt.raised() => Going::Failed,
            Ended::Failed { .. } | Ended::Interrupted => Going::Interrupted,
        })
    }

    /// Measures a trial, and again where the program did not run all the time it measured: such a
    /// trial is on record and does not count. `None` if it was so each time.
    fn measured(&self, mut trial: Trial<'_>) -> Result<Option<Observation>, Broken> {
        for attempt in 1..=ATTEMPTS {
            let mut observation = trial.run();
            let Some(why) = not_watched(&observation) else {
                return Ok(Some(observation));
            };
            let text = self.not_counted(&mut observation, &why, attempt);
            self.watcher.warned(&text);
            (self.tell)(Event::Trial(Box::new(observation)))?;
            (self.tell)(Event::Warned { text })?;
            // It is written over by now.
            if let Before::Preconditioning { capacity } = &mut trial.before {
                *capacity = 0;
            }
        }
        Ok(None)
    }

    /// Marks a trial as one that does not count; what is to be said of it.
    pub fn not_counted(&self, observation: &mut Observation, why: &str, attempt: u32) -> String {
        let then = match attempt < ATTEMPTS {
            true => "it is measured again",
            false => "it is left out of this round",
        };
        let name = &self.study.workload_heads[observation.workload].name;
        let round = observation.round;
        let text = format!("{name} in round {round} does not count: {why}; {then}");
        observation.ended = Ended::Interrupted;
        observation.notes.push(text.clone());
        self.of(observation.configuration, &text)
    }

    /// Sets up a configuration's stack; a failure is recorded as a failed trial of its first workload.
    fn set_up(&self, site: &Site<'_>, turn: &Turn) -> Result<Option<StandingStack>, Broken> {
        let (round, configuration) = (turn.round, turn.configuration);
        self.watcher.begins(&TrialStart {
            round,
            configuration,
            workload: None,
            part: "set up",
            control: None,
        });
        let began = self.clock.now_ns();
        match self.study.configurations[configuration].stack.set_up(site) {
            Ok(stack) => {
                if let Some(exchanged) = stack.exchanged_since(self.host, self.has_to_lie_on(turn))
                {
                    return self.set_up_elsewhere(turn, stack, exchanged);
                }
                let elapsed_ns = self.clock.now_ns().saturating_sub(began);
                let told = (self.tell)(Event::StackSetUp {
                    round,
                    configuration,
                    layers: stacks::facts(self.host, &stack),
                    lies_on: stack.lies_on().to_vec(),
                    elapsed_ns,
                });
                match told {
                    Ok(()) => Ok(Some(stack)),
                    // What cannot be put on record must not stand.
                    Err(broken) => self.tear_down(round, configuration, stack).and(Err(broken)),
                }
            }
            // It was stopped, or ended by the same Ctrl-C as this program: no trial has failed.
            Err(_) if self.interrupt.raised() => Ok(None),
            Err(error) => {
                // Where the store was moved, no configuration is at fault.
                let kept = self.journal.in_place();
                kept.map_err(|moved| Broken(moved.to_string()))?;
                let (advice, cause) = (error.next(), error.cause.cause());
                let error = format!("cannot set up the stack: {error}");
                // The layer says that a directory is gone; the record says what it was, too.
                let gone = self.gone(turn);
                let error = match &gone {
                    Some(gone) => format!("{}; {error}", gone.told()),
                    None => error,
                };
                self.cannot_begin(turn, (error, advice, cause), gone)?;
                Ok(None)
            }
        }
    }

    /// Puts on record that a turn cannot begin: a failed trial of its first workload, with advice that may be empty.
    pub fn cannot_begin(
        &self,
        turn: &Turn,
        (error, advice, cause): (String, String, Option<FailureCause>),
        exchanged: Option<ExchangedStorage>,
    ) -> Result<(), Broken> {
        let configuration = turn.configuration;
        let workload = turn.missing.first().copied().unwrap_or(0);
        self.watcher.warned(&self.of(configuration, &error));
        let failed = Observation {
            round: turn.round,
            configuration,
            workload,
            started_at: self.clock.today(),
            exchanged: exchanged.map(Box::new),
            advice,
            cause,
            ..Observation::unmeasured(Ended::Failed { error })
        };
        (self.tell)(Event::Trial(Box::new(failed)))
    }

    /// Tries again what earlier turns could not take down: it would be in the way of the next stack.
    /// A machine that had lost its power may be back. Returns what still stands, and why: each further stack would
    /// only be added to it.
    pub fn tear_down_leftovers(&self) -> Result<Option<String>, Broken> {
        // Groups are the tags that `site_of` makes.
        let begin = format!("{}-r", self.execution);
        let stands = |group: &str| {
            let mut standing = self.standing.iter();
            standing.any(|up| group.ends_with(&format!("-t{}", up.configuration)))
        };
        let mut left = self.journal.pending();
        left.retain(|entry| entry.group.starts_with(&begin) && !stands(&entry.group));
        let left: Vec<EntryId> = left.iter().map(|entry| entry.id).collect();
        let report = stacks::undo_entries(self.host, self.journal, &left);
        let report = report.map_err(|error| Broken(error.to_string()))?;
        // A directory that is left, or that another program took away, is in the way of nothing: `clean` names it. A mount,
        // a device or a process is.
        let is_dir = |undo: &Undo| matches!(undo, Undo::RemoveDir(_) | Undo::RemoveTree(_));
        let first = report.failed.iter().find(|(undo, _)| !is_dir(undo));
        Ok(first.map(|(what, why)| {
            format!("the stack of an earlier trial cannot be torn down ({what}): {why}")
        }))
    }

    /// Takes a stack down. A failure is a warning on record: the next trial tries again.
    pub fn tear_down(
        &self,
        round: u32,
        configuration: usize,
        stack: StandingStack,
    ) -> Result<(), Broken> {
        // Before the drives are let go: a stack in virtual time says what serving them has cost.
        let served = drives::served();
        match stack.tear_down(&self.site()) {
            Ok(()) => (self.tell)(Event::StackTornDown {
                round,
                configuration,
                served,
            }),
            Err(error) => {
                let text = format!(
                    "cannot tear down the stack: {error}. It is tried again before the next trial. If that fails, the run ends: then end what holds it, and: {}",
                    self.host.cleaned_by()
                );
                let text = self.of(configuration, &text);
                self.watcher.warned(&text);
                (self.tell)(Event::Warned { text })
            }
        }
    }

    /// Names a configuration before what is to be said of it.
    fn of(&self, configuration: usize, what: &str) -> String {
        format!("{}: {what}", self.study.configurations[configuration].name)
    }
}

/// Says why a complete trial does not count: on one of its machines the program did not run while
/// it measured.
pub(super) fn not_watched(trial: &Observation) -> Option<String> {
    let away = trial.away();
    if trial.ended != Ended::Complete || away.share() <= AWAY_SHARE {
        return None;
    }
    Some(format!("{} while it measured", away.said()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::OtherNode;

    #[test]
    fn a_pause_on_any_machine_of_a_trial_keeps_it_from_counting() {
        let mut trial = Observation::unmeasured(Ended::Complete);
        trial.elapsed_ns = 4_000_000_000;
        trial.counted.paused_ns = Some(0);
        let peer = |paused_ns, suspended_ns| OtherNode {
            host: "node2".to_owned(),
            elapsed_ns: 16_000_000_000,
            paused_ns,
            suspended_ns,
            ..OtherNode::default()
        };
        trial.others = vec![peer(0, 0)];
        assert_eq!(not_watched(&trial), None);
        trial.others = vec![peer(12_000_000_000, 0)];
        let why = "the program was stopped on node2 for 12.0 s while it measured";
        assert_eq!(not_watched(&trial).as_deref(), Some(why));
        trial.others = vec![peer(0, 12_000_000_000)];
        let why = "the machine was suspended on node2 for 12.0 s while it measured";
        assert_eq!(not_watched(&trial).as_deref(), Some(why));
        trial.ended = Ended::Interrupted;
        assert_eq!(not_watched(&trial), None);
    }
}
