//! Storage that was exchanged: a trial counts only if its configuration lay on the same all the time.
//!
//! It is compared when a stack is set up (with what the configuration lay on first, or when the run began), and right
//! before and right after each trial. In between, a private directory that is held open stays the same one.

use super::executor::Broken;
use super::local_executor::LocalExecutor;
use super::replied::MachineTrouble;
use super::runner::failed;
use super::trial::Trial;
use stackrace_base::event::{Ended, ExchangedStorage, Observation, StorageIdentity};
use stackrace_layers::stack::{self as stacks, StandingStack};
use stackrace_machine::host::Host;
use stackrace_remote::agent::message::Turn;
use stackrace_study::study::Study;
use std::time::Duration;

/// Number of looks, with a pause between two of them, before a trial fails.
const LOOKS: usize = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(30);

impl LocalExecutor<'_> {
    /// Looks at what the configurations of a study lie on, before any of them is set up.
    pub fn first_look(study: &Study, host: &dyn Host) -> Vec<Vec<StorageIdentity>> {
        let all = study.configurations.iter();
        stacks::first_look(all.map(|configuration| &configuration.stack), host)
    }

    /// Returns what the configuration of a turn has to lie on: as it was first set up, in this execution or an
    /// earlier one; before that, as it was when this one began.
    pub fn has_to_lie_on<'a>(&'a self, turn: &'a Turn) -> &'a [StorageIdentity] {
        if !turn.lies_on.is_empty() {
            return &turn.lies_on;
        }
        let seen = self.first_look.get(turn.configuration);
        seen.map(Vec::as_slice).unwrap_or_default()
    }

    /// Tears down a stack that lies on something else than in the rounds before.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn set_up_elsewhere(
        &self,
        turn: &Turn,
        stack: StandingStack,
        exchanged: ExchangedStorage,
    ) -> Result<Option<StandingStack>, Broken> {
        let exchanged = exchanged.seen_by(self.machine.as_deref());
        // Nothing of it is measured: its facts would look like those of the configuration.
        self.tear_down(turn.round, turn.configuration, stack)?;
        self.cannot_begin(
            turn,
            (exchanged.told(), String::new(), None),
            Some(exchanged),
        )?;
        Ok(None)
    }

    /// Returns what a configuration lay on that cannot be set up any more, if that is not there.
    pub fn gone(&self, turn: &Turn) -> Option<ExchangedStorage> {
        let stack = &self.study.configurations[turn.configuration].stack;
        // A machine that does not answer says so in the error of the layer.
        let exchanged = stacks::exchanged_below(stack, self.host, self.has_to_lie_on(turn)).ok()?;
        Some(exchanged?.seen_by(self.machine.as_deref()))
    }
}

impl Trial<'_> {
    /// Fails a trial that would begin on something else than its stack was set up on.
    ///
    /// # Errors
    /// It was exchanged.
    pub(super) fn lies_where_it_lay(&self, observation: &mut Observation) -> Result<(), Ended> {
        let host = self.executor.host;
        // What a machine held that was started again is gone: nothing else is looked at, which might wait for it.
        self.standing.is_whole(host).map_err(failed)?;
        let look = || {
            let exchanged = self.standing.exchanged(host);
            exchanged.map_err(failed)
        };
        let mut exchanged = look()?;
        // One that is away for a moment (an automounter, another user's rename) was not worked in: the
        // trial's own directory is held.
        for _ in 1..LOOKS {
            if exchanged.is_none() {
                break;
            }
            host.pause(BETWEEN_LOOKS);
            exchanged = look()?;
        }
        let Some(exchanged) = exchanged else {
            return match self.standing.changed(host) {
                Some(why) => Err(failed(why)),
                None => Ok(()),
            };
        };
        let exchanged = exchanged.seen_by(self.executor.machine.as_deref());
        Err(self.exchanged(exchanged, None, observation))
    }

    /// The end of a trial whose storage was exchanged, with what failed because of that.
    pub(super) fn exchanged(
        &self,
        exchanged: ExchangedStorage,
        effect: Option<String>,
        observation: &mut Observation,
    ) -> Ended {
        let error = exchanged.told();
        observation.exchanged = Some(Box::new(exchanged));
        // What failed is most likely the effect; both are said.
        let error = match effect {
            Some(effect) => format!("{error} ({effect})"),
            None => error,
        };
        failed(error)
    }

    /// The end of a trial because of a peer.
    pub(super) fn peer_trouble(
        &self,
        trouble: MachineTrouble,
        observation: &mut Observation,
    ) -> Ended {
        match trouble {
            MachineTrouble::Exchanged(storage, effect) => {
                self.exchanged(*storage, effect, observation)
            }
            MachineTrouble::Failed(trouble) => {
                observation.cause = trouble.cause;
                observation.advice = trouble.next;
                failed(trouble.said)
            }
            MachineTrouble::Lost(error) => failed(error),
        }
    }
}
