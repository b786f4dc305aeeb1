//! `stackrace in-step`: the part of a run that is done at one of its places.
//!
//! It is started by the one who keeps the run, and told over standard input which trials to do; what
//! happens goes to standard output. Nothing is kept here: what was made is undone when it ends.

use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use super::args::InStep;
use super::failure::Failure;
use super::setting::Setting;
use crate::event::Event;
use crate::host::Host;
use crate::journal::{GROUND, Journal, Undo};
use crate::observe;
use crate::run::{Broken, Here, Interrupt, Order, Said, Say, Teller, in_step};
use crate::session::{entropy, preflight, study_file, temporary};
use crate::time::SystemClock;

pub(super) fn exec(setting: &Setting, verb: InStep) -> Result<u8, Failure> {
    let mut study = study_file::read(&verb.study, false)?;
    study.seed = verb.seed;
    let part = study_file::part(&study, verb.place.as_deref())?;
    preflight::check(&setting.session, &part, &verb.wipe)?;
    let interrupt = Arc::new(Interrupt::default());
    let raised = Arc::clone(&interrupt);
    // However often it is asked to: it ends when nothing stands any more.
    ctrlc::set_handler(move || raised.raise())
        .map_err(|error| Failure::internal(format!("cannot be interrupted: {error}")))?;
    let output = Mutex::new(std::io::stdout());
    let say = move |said: &Said| {
        let mut text = serde_json::to_vec(said).map_err(|error| Broken(error.to_string()))?;
        text.push(b'\n');
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        let written = output.write_all(&text).and_then(|()| output.flush());
        written.map_err(|error| Broken(error.to_string()))
    };
    let say: Arc<Say<'static>> = Arc::new(say);
    let told = Arc::clone(&say);
    let happened = move |event: Event| {
        let event = Box::new(event);
        told(&Said::Happened { event })
    };
    let commands = happened.clone();
    let host = setting.session.host(Arc::new(move |command| {
        // That nobody listens is found out at the next result.
        let _ = commands(Event::Command(command));
    }));
    temporary::work(&setting.session, &host, |journal, id| {
        ground(setting, &host, journal)?;
        let environment = observe::environment();
        say(&Said::Ready { environment }).map_err(gone)?;
        let mut here = Here {
            study: &study,
            tell: &happened,
            host: &host,
            journal,
            scratch: temporary::dir(&setting.session, id)?.join("mnt"),
            clock: Arc::new(SystemClock),
            watcher: &Teller(&*say),
            interrupt: Arc::clone(&interrupt),
            execution: format!("{id}-{:04x}", entropy() & 0xffff),
            wipe: verb.wipe,
            standing: Vec::new(),
        };
        in_step(&mut here, orders(setting.told(), interrupt), &*say).map_err(gone)?;
        Ok(0)
    })
}

/// Says in the journal what the run will have on its peers.
fn ground(setting: &Setting, host: &dyn Host, journal: &Journal) -> Result<(), Failure> {
    for (node, line) in (2..).zip(&setting.session.peers) {
        let peer = host
            .peer(node)
            .map_err(|error| Failure::internal(error.to_string()))?;
        let undo = Undo::RemoveTree(line.of.directory.clone());
        journal
            .will(GROUND, Undo::on(node, peer, undo))
            .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    }
    Ok(())
}

fn gone(broken: Broken) -> Failure {
    Failure::internal(format!("nobody listens any more: {}", broken.0))
}

/// The orders as they come. When standard input ends without the order to, nobody is left to want
/// what is being done: it is interrupted.
fn orders(
    told: impl Iterator<Item = String> + Send + 'static,
    interrupt: Arc<Interrupt>,
) -> impl Iterator<Item = Order> {
    let (sender, orders) = channel();
    std::thread::spawn(move || {
        for text in told {
            let Ok(order) = serde_json::from_str::<Order>(&text) else {
                break;
            };
            let end = order == Order::End;
            if sender.send(order).is_err() || end {
                return;
            }
        }
        interrupt.raise();
    });
    orders.into_iter()
}
