//! Turns taken at other places: lab machines, machines over SSH.
//!
//! Each configuration has its place, and one turn is under way at a time: no place works while another
//! is measured, and whatever drifts meets all of them alike.

use std::sync::Arc;

use super::{
    Broken, Interrupt, Order, Said, SharedLedger, TrialStart, Turn, Turned, Venue, Watcher,
};
use crate::event::Event;
use crate::study::Study;

/// Carries what is said between here and one place, where [`super::in_step`] listens.
pub(crate) trait Messenger {
    /// Brings an order there.
    ///
    /// # Errors
    /// The place is gone: why.
    fn tell(&mut self, order: &Order) -> Result<(), String>;

    /// What was said there; waits for it a moment.
    ///
    /// # Errors
    /// As for [`Messenger::tell`].
    fn hear(&mut self) -> Result<Heard, String>;

    /// Asks the turn under way to end, as Ctrl-C would.
    fn interrupt(&mut self);
}

/// What came from a place.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Nothing, for a moment.
    Nothing,
    /// This.
    Said(Said),
    /// The program there has ended.
    Ended {
        /// Exit status; none: by a signal.
        status: Option<i32>,
        /// What it wrote to standard error.
        stderr: String,
    },
}

/// The places of a run.
pub(crate) struct Elsewhere<'a> {
    /// The question.
    pub(crate) study: &'a Study,
    /// Where results go.
    pub(crate) ledger: SharedLedger,
    /// Who watches.
    pub(crate) watcher: &'a dyn Watcher,
    /// How to stop it.
    pub(crate) interrupt: Arc<Interrupt>,
    /// Each place with its name; of several, the name is a level of the study's factor of places.
    pub(crate) places: Vec<(String, Box<dyn Messenger + 'a>)>,
}

impl Venue for Elsewhere<'_> {
    fn take(&mut self, turn: &Turn) -> Result<Turned, Broken> {
        let at = self.place_of(turn.configuration);
        if let Err(why) = self.places[at].1.tell(&Order::Take(turn.clone())) {
            return Ok(self.lost(at, &why));
        }
        let mut stopped = false;
        loop {
            if self.interrupt.raised() && !stopped {
                stopped = true;
                self.places[at].1.interrupt();
            }
            match self.places[at].1.hear() {
                Ok(Heard::Nothing) => {}
                Ok(Heard::Said(Said::Turned { done: true })) => return Ok(Turned::Done),
                Ok(Heard::Said(Said::Turned { done: false })) => return Ok(Turned::Interrupted),
                Ok(Heard::Said(said)) => self.heard(at, said)?,
                Ok(Heard::Ended { stderr, .. }) => {
                    let why = format!("the program there has ended: {}", stderr.trim_end());
                    return Ok(self.lost(at, why.trim_end_matches(": ")));
                }
                Err(why) => return Ok(self.lost(at, &why)),
            }
        }
    }

    fn end(&mut self) -> Result<(), Broken> {
        let mut ended = Ok(());
        for at in 0..self.places.len() {
            // At a place that is gone there is nothing to lower any more.
            let mut there = self.places[at].1.tell(&Order::End).is_ok();
            while there {
                match self.places[at].1.hear() {
                    Ok(Heard::Nothing) => {}
                    Ok(Heard::Said(said)) => ended = ended.and(self.heard(at, said)),
                    Ok(Heard::Ended { .. }) | Err(_) => there = false,
                }
            }
        }
        ended
    }
}

impl Elsewhere<'_> {
    /// Where a configuration is tried.
    fn place_of(&self, configuration: usize) -> usize {
        let name = self.study.place_of(configuration);
        let named = |(place, _): &(String, _)| Some(place.as_str()) == name;
        self.places.iter().position(named).unwrap_or(0)
    }

    fn lost(&self, at: usize, why: &str) -> Turned {
        Turned::Lost(format!("{}: {why}", self.places[at].0))
    }

    /// Passes on what was said at a place.
    fn heard(&self, at: usize, said: Said) -> Result<(), Broken> {
        match said {
            Said::Happened { event } => return self.ledger.tell(self.named(at, *event)),
            Said::Begins {
                round,
                configuration,
                workload,
                part,
            } => self.watcher.begins(&TrialStart {
                round,
                configuration,
                workload,
                part: &part,
                control: None,
            }),
            Said::Remarked { text } => self.watcher.warned(&text),
            Said::Ready { .. } | Said::Turned { .. } => {}
        }
        Ok(())
    }

    /// Of several places each is a host of its own.
    fn named(&self, at: usize, event: Event) -> Event {
        match event {
            Event::Command(mut command) if self.places.len() > 1 => {
                let place = &self.places[at].0;
                command.host = match command.host.as_str() {
                    "local" => place.clone(),
                    peer => format!("{peer} of {place}"),
                };
                Event::Command(command)
            }
            event => event,
        }
    }
}
