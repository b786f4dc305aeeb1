//! Turns of several configurations at once on this machine: their trials are measured in slices.

use super::executor::{ATTEMPTS, Broken, Turned};
use super::local_executor::{KeptStack, LocalExecutor};
use super::local_turn::{Going, not_watched};
use super::stack_trial::run_in_slices;
use super::trial::{Before, Trial};
use stackrace_base::event::{Ended, Event, Observation};
use stackrace_remote::agent::message::Turn;

impl LocalExecutor<'_> {
    /// Executes turns of one workload each, in slices.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn execute_sliced(&mut self, turns: &[Turn], slice_ns: u64) -> Result<Turned, Broken> {
        if let Some(why) = self.tear_down_leftovers()? {
            return Ok(Turned::Lost(why));
        }
        let mut up: Vec<(&Turn, KeptStack)> = Vec::new();
        for turn in turns {
            match self.stack_for(turn) {
                Ok(Some((stack, _))) => up.push((turn, stack)),
                Ok(None) => {}
                Err(broken) => {
                    // What stands is torn down with the rest at the end of the run.
                    self.standing.extend(up.into_iter().map(|(_, stack)| stack));
                    return Err(broken);
                }
            }
        }
        let goings = match self.sliced_trials(&up, slice_ns) {
            Ok(goings) => goings,
            Err(broken) => {
                self.standing.extend(up.into_iter().map(|(_, stack)| stack));
                return Err(broken);
            }
        };
        let mut ended = Ok(true);
        for ((turn, stack), going) in up.into_iter().zip(goings) {
            // Every stack is put back, whatever became of the one before.
            let back = self.put_back(turn, stack, Ok(going));
            ended = ended.and_then(|on| Ok(on && back? != Going::Interrupted));
        }
        Ok(self.turned(ended?))
    }

    /// The trials of the turns; measured again where the program did not run all the time one of them
    /// measured. How each went.
    fn sliced_trials(
        &self,
        up: &[(&Turn, KeptStack)],
        slice_ns: u64,
    ) -> Result<Vec<Going>, Broken> {
        let sites: Vec<_> = up.iter().map(|(turn, _)| self.site_of(turn)).collect();
        let trials = up.iter().zip(&sites).map(|((turn, stack), site)| Trial {
            executor: self,
            site,
            standing: &stack.stack,
            data: &stack.data,
            keeps: turn.keep,
            round: turn.round,
            position: turn.position,
            configuration: turn.configuration,
            workload: turn.missing[0],
            before: Before::Nothing,
        });
        let trials: Vec<Trial<'_>> = trials.collect();
        self.all_or_none(&|| run_in_slices(&trials, slice_ns))
    }

    /// Trials that are measured at once, and again where the program did not run all the time. How each went.
    pub(super) fn all_or_none(
        &self,
        measured: &dyn Fn() -> Vec<Observation>,
    ) -> Result<Vec<Going>, Broken> {
        // All of them again, also those that were watched: what they share is the time.
        let mut attempt = 1;
        loop {
            let observations = measured();
            let Some(why) = observations.iter().find_map(not_watched) else {
                let each = observations.into_iter();
                return each.map(|observation| self.told(observation)).collect();
            };
            // One that failed is not tried again, and the others not without it.
            let mut all = observations.iter();
            if all.any(|observation| observation.ended != Ended::Complete) {
                attempt = ATTEMPTS;
            }
            let goings = self.tell_not_counted(observations, &why, attempt)?;
            if attempt == ATTEMPTS {
                return Ok(goings);
            }
            attempt += 1;
        }
    }

    /// They count together or not at all.
    fn tell_not_counted(
        &self,
        observations: Vec<Observation>,
        why: &str,
        attempt: u32,
    ) -> Result<Vec<Going>, Broken> {
        let mut goings = Vec::new();
        let mut warned = None;
        for mut observation in observations {
            if observation.ended != Ended::Complete {
                goings.push(self.told(observation)?);
                continue;
            }
            warned = Some(self.not_counted(&mut observation, why, attempt));
            (self.tell)(Event::Trial(Box::new(observation)))?;
            goings.push(Going::On);
        }
        if let Some(text) = warned {
            self.watcher.warned(&text);
            (self.tell)(Event::Warned { text })?;
        }
        Ok(goings)
    }
}
