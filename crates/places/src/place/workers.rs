//! A run whose turns are executed by workers: what is common to lab machines and machines over SSH.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stackrace_base::event::{Fact, LeftBehind, RunPlace};
use stackrace_base::failure::{Failure, FailureKind, INTERRUPTED};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_machine::journal::Journal;
use stackrace_remote::agent::connection::{Connection, ConnectionError};
use stackrace_remote::agent::message::{
    Assignment, COORDINATOR, PeerAddress, TurnReply, TurnRequest, WorkerReply, WorkerRequest,
};
use stackrace_remote::agent::ssh::{SshError, StopAsked};
use stackrace_results::record::Store;
use stackrace_run::execute::resume::Stopped;
use stackrace_run::execute::{self, FinishedRun};
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::observer::Observer;
use stackrace_run::run::{Interrupt, RemoteExecutor, RemoteWorker, SharedLedger};
use stackrace_study::study::Study;

/// A place whose worker waits for its first turn.
pub struct ReadyPlace {
    /// Its environment, for the record.
    pub facts: Vec<Fact>,
    /// Worker of which its turns are asked.
    pub worker: RemoteWorker,
}

/// A study as a worker is told of it.
pub fn assignment(
    study: &Study,
    place: Option<&str>,
    store: &std::path::Path,
    peers: Vec<PeerAddress>,
    wipe: &[String],
) -> Assignment {
    Assignment {
        store: store.to_path_buf(),
        called: None,
        named_by: Vec::new(),
        peers,
        name: study.file_name().to_owned(),
        text: study.text.clone(),
        seed: study.seed,
        decide: None,
        place: place.map(str::to_owned),
        wipe: wipe.to_vec(),
        clients: None,
        one_kernel: false,
        cut: None,
    }
}

impl ReadyPlace {
    /// Hands a study over and waits until the worker is ready: everything that can be checked before
    /// anything is touched has been. `called` says where, and `advice` what can be done from here
    /// about what is missing there.
    ///
    /// # Errors
    /// What was refused there, with its exit code.
    pub fn open(
        connection: &Arc<Connection>,
        assignment: Assignment,
        called: &str,
        advice: &dyn Fn(String) -> String,
        stop: &StopAsked,
    ) -> Result<Self, Failure> {
        let place = assignment.place.clone();
        let request = WorkerRequest::Turn(TurnRequest::Open(Box::new(assignment)));
        let opened = connection.open(COORDINATOR, &request);
        // A worker that is there may still refuse: it has read the study and looked at its disks by now.
        let unable = |error: ConnectionError| Failure::unable(error.to_string()).next(error.next);
        let conversation = opened.map_err(unable)?;
        let reply = loop {
            if let Some(reply) = conversation.receive_within(MOMENT).map_err(unable)? {
                break reply;
            }
            if stop.asked() {
                // What is asked of it next would wait for a machine that does not listen.
                connection.give_up_unless_answered(PATIENCE);
                let text = format!("stopped before {called} was ready: nothing was begun there");
                return Err(interrupted(text));
            }
        };
        match reply {
            WorkerReply::Turn(TurnReply::Ready { environment }) => Ok(Self {
                facts: environment,
                worker: RemoteWorker {
                    place: place.unwrap_or_else(|| called.to_owned()),
                    conversation,
                },
            }),
            WorkerReply::Refused { code, text, next } => {
                let text = advice(text);
                // There it was a message of its own, here it is part of one.
                let text = format!("{called}: {}", text.trim_start_matches("error: "));
                Err(Failure::new(FailureKind::Remote(code), text).next(advice(next)))
            }
            other => Err(Failure::internal(format!(
                "{called}: an unexpected answer: {other:?}"
            ))),
        }
    }
}

/// Time for which a place is listened to before it is checked whether it is still wanted.
const MOMENT: Duration = Duration::from_millis(50);

/// Time in which a place that is not wanted any more must say that it is there, so that it is tidied.
const PATIENCE: Duration = Duration::from_secs(2);

/// The failure of what the user stopped.
pub fn interrupted(text: String) -> Failure {
    Failure::new(FailureKind::Remote(INTERRUPTED), text)
}

/// The failure of a machine that was not reached.
pub fn not_reached(error: &SshError) -> Failure {
    match error {
        SshError::Stopped { .. } => interrupted(error.to_string()),
        _ => Failure::unable(error.to_string()).next(error.next()),
    }
}

/// Returns all places or not one: where one is not ready, the others are told that they are not needed.
pub fn all(
    places: impl Iterator<Item = Result<ReadyPlace, Failure>>,
) -> Result<Vec<ReadyPlace>, Failure> {
    let mut ready: Vec<ReadyPlace> = Vec::new();
    for place in places {
        match place {
            Ok(place) => ready.push(place),
            Err(failure) => {
                dismiss(&ready);
                return Err(failure);
            }
        }
    }
    Ok(ready)
}

/// Has the workers remove their journals: they are not needed.
fn dismiss(places: &[ReadyPlace]) {
    for place in places {
        place.worker.close(|_| ());
    }
}

/// Merges the facts of places: what all have in common once, everything else with the name of its place.
pub fn merged(places: &[(String, Vec<Fact>)]) -> Vec<Fact> {
    // Ten equal machines are described once; only what tells them apart bears a name.
    let common = |fact: &&Fact| places.iter().all(|(_, facts)| facts.contains(fact));
    let first = places.first().map_or(&[][..], |(_, facts)| facts);
    let mut merged: Vec<Fact> = first.iter().filter(common).cloned().collect();
    for (place, facts) in places {
        let own = facts.iter().filter(|fact| !common(fact));
        merged.extend(own.map(|fact| Fact {
            name: format!("{} on {place}", fact.name),
            ..fact.clone()
        }));
    }
    merged
}

/// A run to be made at places.
pub struct PlacesRun<'a> {
    context: &'a Context,
    study: &'a Study,
    store: &'a Store,
    /// Its place, for the record.
    place: RunPlace,
    /// Interrupt that stops it.
    pub interrupt: Arc<Interrupt>,
    observer: &'a dyn Observer,
    /// Ledger of the run, filled as soon as it is on record, for what is to be put on record besides.
    pub on_record: OnceLock<SharedLedger>,
    /// Start of the waiting for its places, ns of the monotonic clock.
    began_ns: u64,
}

impl<'a> PlacesRun<'a> {
    /// A run that Ctrl-C ends; `left` then says what is there still, and what to do about it.
    ///
    /// # Errors
    /// Ctrl-C cannot be caught.
    pub fn new(
        context: &'a Context,
        (study, store): (&'a Study, &'a Store),
        place: RunPlace,
        observer: &'a dyn Observer,
        left: LeftBehind,
    ) -> Result<Self, Failure> {
        Ok(Self {
            context,
            study,
            store,
            place,
            interrupt: observer.catch_interrupt(left)?,
            observer,
            on_record: OnceLock::new(),
            began_ns: SystemClock.now_ns(),
        })
    }

    /// Returns what ends the waiting for places, before anything is set up at one of them.
    pub fn stop(&self) -> StopAsked {
        self.interrupt.may_stand(false);
        let interrupt = Arc::clone(&self.interrupt);
        StopAsked::when(move || interrupt.raised())
    }

    /// Begins a new run at places that are ready, or continues one that stopped, to its end.
    ///
    /// # Errors
    /// Nothing can be recorded.
    pub fn make(
        &self,
        places: Vec<ReadyPlace>,
        stopped: Option<Stopped>,
        warnings: &[String],
    ) -> Result<FinishedRun, Failure> {
        let known = places.iter();
        let known = known.map(|place| (place.worker.place.clone(), place.facts.clone()));
        let begun = self.begin(&known.collect::<Vec<_>>(), stopped, warnings);
        // They wait for a first turn that never comes.
        if begun.is_err() {
            dismiss(&places);
        }
        // The journal is locked as long as the run goes on: `clean` then leaves it alone.
        let (ledger, _journal) = begun?;
        // The user who waits for machines to start waits for the run.
        let before = SystemClock.now_ns().saturating_sub(self.began_ns);
        ledger.lock().spend(before);
        let _ = self.on_record.set(ledger.clone());
        let watcher = execute::watch(self.study, self.store, &ledger, self.observer);
        let mut executor = RemoteExecutor {
            study: self.study,
            ledger: ledger.clone(),
            watcher: &*watcher,
            interrupt: Arc::clone(&self.interrupt),
            workers: places.into_iter().map(|place| place.worker).collect(),
        };
        Ok(execute::race(
            self.study,
            self.store,
            &ledger,
            &*watcher,
            &mut executor,
        ))
    }

    /// Puts on record that a run begins at places of which this is known, or goes on.
    ///
    /// # Errors
    /// Nothing can be recorded, or what stood cannot be removed.
    pub fn begin(
        &self,
        known: &[(String, Vec<Fact>)],
        stopped: Option<Stopped>,
        warnings: &[String],
    ) -> Result<(SharedLedger, Journal), Failure> {
        self.interrupt.may_stand(true);
        if let Some(stopped) = stopped {
            // What stood is removed before the record says that the run goes on.
            let (journal, leftovers) = stopped.take_over(self.store)?;
            let ledger = stopped.resumed(self.store, leftovers, warnings, self.observer)?;
            return Ok((ledger, journal));
        }
        let of = (self.study, self.store);
        let known = (self.place.clone(), merged(known));
        execute::begin(self.context, of, known, warnings)
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
