//! A run whose trials are done elsewhere: what is common to lab machines and machines over SSH.
//!
//! At each place this program takes turns (`stackrace in-step`); here is the run: the order of its
//! rounds, its record, its looks and its end.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::failure::Failure;
use super::setting::Setting;
use crate::agent::relay::Relay;
use crate::agent::ssh::Remote;
use crate::agent::{Agent, AgentError, Heard as Came, Talk};
use crate::event::Fact;
use crate::record::Store;
use crate::run::{Elsewhere, Heard, Interrupt, Messenger, Order, Said, SharedLedger};
use crate::session::{FailureKind, FinishedRun, Stopped, execute};
use crate::study::Study;

/// How long a place is listened to before somebody looks whether it is to stop.
const MOMENT: Duration = Duration::from_millis(100);

/// A place that waits for its first turn.
pub(super) struct Place<'a> {
    /// Its level of the study's factor of places, or what it is called where there is one place.
    pub(super) name: String,
    /// What it is.
    pub(super) facts: Vec<Fact>,
    /// How it is spoken with.
    pub(super) speaks: Speaks<'a>,
}

/// Speaks with `in-step` at the other end of an agent's line.
pub(super) struct Speaks<'a> {
    talk: Talk<'a>,
    /// Who says why the line has broken; none: nobody knows more than that.
    pub(super) broken: Option<&'a Remote>,
    /// Who carries what is asked of its peers; none: it has none, or reaches them itself.
    relay: Option<Relay>,
}

impl Speaks<'_> {
    fn carries(&self, text: &str) -> bool {
        let relay = self.relay.as_ref();
        relay.is_some_and(|relay| relay.takes(self.talk.program(), text))
    }

    fn words(&self, error: &AgentError) -> String {
        match (error, self.broken) {
            (AgentError::Ended, Some(remote)) => remote.broken().to_string(),
            _ => error.to_string(),
        }
    }
}

impl Messenger for Speaks<'_> {
    fn tell(&mut self, order: &Order) -> Result<(), String> {
        let text = serde_json::to_string(order).map_err(|error| error.to_string())?;
        self.talk.tell(&text).map_err(|error| self.words(&error))
    }

    fn hear(&mut self) -> Result<Heard, String> {
        let heard = self.talk.hear(MOMENT);
        match heard.map_err(|error| self.words(&error))? {
            None => Ok(Heard::Nothing),
            Some(Came::Line(text)) if self.carries(&text) => Ok(Heard::Nothing),
            Some(Came::Line(text)) => serde_json::from_str(&text)
                .map(Heard::Said)
                .map_err(|error| format!("what was said there is not understood: {error}")),
            Some(Came::Ended(output)) => Ok(Heard::Ended {
                status: output.status,
                stderr: output.stderr,
            }),
        }
    }

    fn interrupt(&mut self) {
        // One who is gone is heard of at once.
        let _ = self.talk.interrupt();
    }
}

/// How this program is started at a place.
pub(super) struct Kit<'a> {
    /// This program there, with what stands before its verb.
    pub(super) program: Vec<OsString>,
    /// Where the study is written there.
    pub(super) study: &'a str,
    /// Ids of disks that may be wiped there.
    pub(super) wipe: &'a [String],
    /// Begins what is said of it: `on server`.
    pub(super) called: &'a str,
    /// What it says, with what can be done from here.
    pub(super) advice: &'a dyn Fn(String) -> String,
    /// What carries between it and its peers.
    pub(super) relay: Option<Relay>,
}

/// Hands the study over and waits until the place is ready, which it is when everything that can be
/// checked before anything is touched has been.
///
/// # Errors
/// What was refused there, with the exit code it was refused with.
pub(super) fn ready<'a>(
    agent: &'a Agent,
    study: &Study,
    place: Option<&str>,
    kit: &Kit<'_>,
) -> Result<(Speaks<'a>, Vec<Fact>), Failure> {
    agent.write(kit.study, &study.text).map_err(cannot)?;
    let mut command = kit.program.clone();
    let seed = study.seed.to_string();
    command.extend(["in-step", kit.study, "--seed", &seed].map(OsString::from));
    if let Some(place) = place {
        command.extend(["--place", place].map(OsString::from));
    }
    for id in kit.wipe {
        command.extend(["--wipe", id].map(OsString::from));
    }
    let mut speaks = Speaks {
        talk: agent.follow(&command).map_err(cannot)?,
        broken: None,
        relay: kit.relay.clone(),
    };
    loop {
        match speaks.hear() {
            Ok(Heard::Nothing) => {}
            Ok(Heard::Said(Said::Ready { environment })) => return Ok((speaks, environment)),
            Ok(Heard::Said(_)) => {
                return Err(Failure::internal("a place began without being told"));
            }
            Ok(Heard::Ended { status, stderr }) => {
                let code = status.and_then(|status| u8::try_from(status).ok());
                let said = (kit.advice)(stderr);
                let said = said.trim_start_matches("error: ");
                return Err(Failure::new(
                    code.map_or(FailureKind::Unable, FailureKind::Remote),
                    format!("{}: {said}", kit.called),
                ));
            }
            Err(why) => return Err(Failure::unable(why)),
        }
    }
}

fn cannot(error: AgentError) -> Failure {
    Failure::unable(error.to_string()).next(error.next())
}

/// All places, or none: where one is not ready, the others are told that they are not needed.
pub(super) fn all<'a>(
    places: impl Iterator<Item = Result<Place<'a>, Failure>>,
) -> Result<Vec<Place<'a>>, Failure> {
    let mut ready = Vec::new();
    for place in places {
        match place {
            Ok(place) => ready.push(place),
            Err(failure) => {
                ready.iter_mut().for_each(Place::dismiss);
                return Err(failure);
            }
        }
    }
    Ok(ready)
}

impl Place<'_> {
    fn dismiss(&mut self) {
        // One that is gone does not have to be told.
        let mut there = self.speaks.tell(&Order::End).is_ok();
        while there {
            there = !matches!(self.speaks.hear(), Ok(Heard::Ended { .. }) | Err(_));
        }
    }
}

/// What places are: what all have in common once, everything else with the name of its place.
fn merged(places: &[(String, Vec<Fact>)]) -> Vec<Fact> {
    let common = |fact: &&Fact| places.iter().all(|(_, facts)| facts.contains(fact));
    let first = places.first().map_or(&[][..], |(_, facts)| facts);
    let mut merged: Vec<Fact> = first.iter().filter(common).cloned().collect();
    for (place, facts) in places {
        let own = facts.iter().filter(|fact| !common(fact));
        merged.extend(own.map(|fact| Fact::new(format!("{} on {place}", fact.name), &*fact.value)));
    }
    merged
}

/// A run to be made at places.
pub(super) struct Run<'a> {
    pub(super) setting: &'a Setting,
    pub(super) study: &'a Study,
    pub(super) store: &'a Store,
    pub(super) interrupt: &'a Arc<Interrupt>,
    /// Filled as soon as the run is on record: whoever has something else to say says it there.
    pub(super) on_record: &'a OnceLock<SharedLedger>,
}

impl Run<'_> {
    /// Begins a new run at places that are ready, and goes on until it ends.
    pub(super) fn begin(
        &self,
        places: Vec<Place<'_>>,
        warnings: &[String],
    ) -> Result<FinishedRun, Failure> {
        let known: Vec<(String, Vec<Fact>)> = places
            .iter()
            .map(|place| (place.name.clone(), place.facts.clone()))
            .collect();
        let session = &self.setting.session;
        let (shared, _journal) =
            execute::begin(session, self.study, self.store, merged(&known), warnings)?;
        Ok(self.go_on(places, &shared))
    }

    /// Goes on with a run that stopped, at places that are ready.
    pub(super) fn resume(
        &self,
        places: Vec<Place<'_>>,
        stopped: Stopped,
    ) -> Result<FinishedRun, Failure> {
        let (_journal, leftovers) = stopped.take_over(self.store)?;
        let shared = stopped.resumed(self.store, leftovers, self.setting)?;
        Ok(self.go_on(places, &shared))
    }

    fn go_on(&self, places: Vec<Place<'_>>, shared: &SharedLedger) -> FinishedRun {
        let _ = self.on_record.set(shared.clone());
        let watcher = execute::watch(self.study, self.store, shared, self.setting);
        let places = places.into_iter().map(|place| {
            let speaks: Box<dyn Messenger + '_> = Box::new(place.speaks);
            (place.name, speaks)
        });
        let mut elsewhere = Elsewhere {
            study: self.study,
            ledger: shared.clone(),
            watcher: &*watcher,
            interrupt: Arc::clone(self.interrupt),
            places: places.collect(),
        };
        execute::race(self.study, self.store, shared, &*watcher, &mut elsewhere)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Nothing known of a place is lost, and what is known of one is not said of another.
        #[test]
        fn every_fact_of_every_place_is_told_once(
            known in proptest::collection::vec(
                proptest::collection::btree_map("[abc]", "[12]", 0..4), 1..4)
        ) {
            let known: Vec<(String, Vec<Fact>)> = known
                .iter()
                .enumerate()
                .map(|(at, facts)| {
                    let facts = facts.iter().map(|(name, value)| Fact::new(name, value));
                    (format!("place{at}"), facts.collect())
                })
                .collect();
            let told = merged(&known);
            for (place, facts) in &known {
                for fact in facts {
                    let of_all = known.iter().all(|(_, facts)| facts.contains(fact));
                    let name = match of_all {
                        true => fact.name.clone(),
                        false => format!("{} on {place}", fact.name),
                    };
                    let found = told.iter().filter(|told| told.name == name);
                    prop_assert_eq!(found.collect::<Vec<_>>(), [&Fact::new(name, &*fact.value)]);
                }
            }
            let distinct: usize = told.len();
            prop_assert!(distinct <= known.iter().map(|(_, facts)| facts.len()).sum());
        }
    }
}
