//! Power cuts of a real machine: commands of the user's cut it and bring it back.
//!
//! The ledger is kept here, where the power stays. Each cut is a trial of its own, cut when a drawn
//! number of operations was acknowledged. When the machine has been started again, its stack is
//! brought back, and every promise is checked. The trial that is measured for speed comes after the
//! cuts of its turn: a run that was interrupted goes on with the first cut that is not on record.

pub mod source;

mod command;
mod listening;
mod stop;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use command::{commanded, since};
use listening::{Listening, MOMENT};
use stop::{Stop, lost};

use crate::place::machine_options::{MachineOptions, PowerOptions};
use crate::place::power::source::{cuts_of_trial, seed_of_trial};
use crate::place::ssh::machines::{self, ConnectedMachine, LEFT, MachineWay};
use crate::place::worker_store::cleaned;
use crate::place::workers::{PlacesRun, ReadyPlace};
use stackrace_base::event::{Event, OperationsOf, Promised, RunPlace};
use stackrace_base::failure::Failure;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_machine::host::Host;
use stackrace_machine::journal;
use stackrace_remote::agent::message::{
    CutOrder, RealCut, RecoverOrder, Turn, TurnReply, TurnRequest, WorkerReply,
};
use stackrace_remote::agent::remote_host::RemoteHost;
use stackrace_remote::agent::ssh::StopAsked;
use stackrace_results::record::Store;
use stackrace_run::execute::resume::Stopped;
use stackrace_run::execute::{self, FinishedRun};
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::observer::Observer;
use stackrace_run::run::{Broken, Executor, RemoteExecutor, TrialStart, Turned};
use stackrace_study::study::Study;

/// Pause between two attempts to reach a machine that starts.
const AGAIN: Duration = Duration::from_secs(1);

/// The machine whose power is to be cut.
///
/// # Errors
/// It is not one machine that can be cut and reached again.
pub fn asked_for(study: &Study, machines: &MachineOptions<'_>) -> Result<MachineWay, Failure> {
    // A shell cannot report each operation as it is acknowledged: what was promised would not be known.
    if machines.agentless {
        let refused = Failure::usage("--cut is for a machine with this program on it");
        return Err(refused.next("leave --agent out"));
    }
    only(machines::asked_for(study, machines)?.unwrap_or_default())
}

/// The machine whose power is cut, of all of a run.
///
/// # Errors
/// There are more, or none.
pub fn only(mut machines: Vec<MachineWay>) -> Result<MachineWay, Failure> {
    match (machines.pop(), machines.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(one_machine()),
    }
}

/// Error for a cut of no machine or of several: the power of one is cut, no more and no less.
pub fn one_machine() -> Failure {
    Failure::usage("--cut cuts the power of one other machine").next("name it: --on HOST")
}

/// Makes a run on a machine whose power is cut, or continues one that stopped.
///
/// # Errors
/// The machine is not reached or not ready, or nothing can be recorded.
pub fn run(
    context: &Context,
    (study, store): (&Study, &Store),
    stopped: Option<Stopped>,
    (machine, power): (&MachineWay, PowerOptions<'_>),
    wipe: &[String],
    observer: &dyn Observer,
) -> Result<FinishedRun, Failure> {
    let place = RunPlace::RealCut(machine.on_log());
    let run = PlacesRun::new(context, (study, store), place, observer, LEFT)?;
    let there = ConnectedMachine::connect(context, machine, &run.stop())?;
    let boot = boot(&there).map_err(Failure::unable)?;
    // Two names may mean one machine; the number of its start cannot be the same for two.
    if std::fs::read_to_string(journal::BOOT).is_ok_and(|own| own.trim() == boot) {
        there.put_away(context, observer);
        return Err(Failure::refused(format!(
            "{} is this machine, which keeps the ledger: its power must stay on",
            there.called()
        ))
        .next("name another machine: --on HOST"));
    }
    let place = there.place(study, wipe, Some(RealCut::Before));
    let place = place.inspect_err(|_| there.put_away(context, observer))?;
    let known = [(place.worker.place.clone(), place.facts.clone())];
    let (ledger, _journal) = run.begin(&known, stopped, &[])?;
    let watcher = execute::watch(study, store, &ledger, observer);
    let mut executor = CutMachine {
        context,
        machine,
        power,
        wipe,
        observer,
        there: Some(there),
        inner: RemoteExecutor {
            study,
            ledger: ledger.clone(),
            watcher: &*watcher,
            interrupt: Arc::clone(&run.interrupt),
            workers: vec![place.worker],
        },
    };
    Ok(execute::race(
        study,
        store,
        &ledger,
        &*watcher,
        &mut executor,
    ))
}

/// Returns what tells this start of a machine from any other.
fn boot(there: &ConnectedMachine<'_>) -> Result<String, String> {
    let read = there.host().read_text(std::path::Path::new(journal::BOOT));
    let read = read.map(|text| text.trim().to_owned());
    read.map_err(|error| error.to_string())
}

/// Asks a machine whether it is there, on a thread of its own: one that is off never answers.
fn question(host: RemoteHost) -> Receiver<bool> {
    let (sender, answer) = channel();
    // Without a thread it cannot be asked, and the sender goes. A late answer is not awaited.
    let _ = std::thread::Builder::new().spawn(move || sender.send(host.answers().is_ok()));
    answer
}

/// A machine whose power is cut, turn by turn.
struct CutMachine<'a> {
    context: &'a Context,
    machine: &'a MachineWay,
    power: PowerOptions<'a>,
    wipe: &'a [String],
    observer: &'a dyn Observer,
    /// The machine; `None` if it is off, or its connection was given up.
    there: Option<ConnectedMachine<'a>>,
    /// Does what is measured; it has a worker while there is a connection.
    inner: RemoteExecutor<'a>,
}

impl Executor for CutMachine<'_> {
    fn execute(&mut self, turn: &Turn) -> Result<Turned, Broken> {
        let done = self.cuts(turn).and_then(|failed| {
            // A configuration that could not be set up for a cut has failed: that is on record.
            if failed {
                return Ok(Turned::Done);
            }
            self.connected()?;
            Ok(self.inner.execute(turn)?)
        });
        match done {
            Ok(turned) | Err(Stop::Turned(turned)) => Ok(turned),
            Err(Stop::Broken(broken)) => Err(broken),
        }
    }

    fn end(&mut self) -> Result<(), Broken> {
        let ended = match self.there.is_some() {
            true => self.inner.end(),
            false => Ok(()),
        };
        // Their connection ends with the machine's; a worker without one would be waited for.
        self.inner.workers.clear();
        if let Some(there) = self.there.take() {
            there.put_away(self.context, self.observer);
        }
        ended
    }
}

impl CutMachine<'_> {
    /// Makes the cuts of a turn that are not on record; whether its configuration has failed.
    fn cuts(&mut self, turn: &Turn) -> Result<bool, Stop> {
        for workload in turn.missing.iter().copied() {
            let study = self.inner.study;
            if study.workload_heads[workload].operations() != OperationsOf::Promised {
                continue;
            }
            for number in cuts_of_trial(study, turn.round, workload) {
                // Between two cuts nothing stands and nothing is owed: the run can stop here and go on later.
                if self.inner.interrupt.raised() {
                    return Err(Stop::Turned(Turned::Interrupted));
                }
                let known = self.on_record(turn.configuration, number);
                if !known && self.cut(turn, workload, number)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn on_record(&self, configuration: usize, number: u32) -> bool {
        let ledger = self.inner.ledger.lock();
        let mut cuts = ledger.record().cuts();
        cuts.any(|cut| (cut.configuration, cut.number) == (configuration, number))
    }

    /// Makes one cut, from its trial to what was found; returns true if the trial could not even begin.
    fn cut(&mut self, turn: &Turn, workload: usize, number: u32) -> Result<bool, Stop> {
        self.begins(turn, workload, &format!("power cut {number}"));
        self.connected()?;
        let Some(there) = self.there.as_ref() else {
            return Err(lost("there is no connection"));
        };
        // Afterwards it must be another start, or the power was not cut.
        let before = boot(there).map_err(lost)?;
        let store = there.store().to_path_buf();
        let worker = &self.inner.workers[0];
        let turn_until_cut = Turn {
            missing: vec![workload],
            // It must not be torn down before the power goes.
            keep: true,
            ..turn.clone()
        };
        let asked = TurnRequest::ExecuteUntilCut(turn_until_cut);
        worker.send(asked).map_err(lost)?;
        let seed = seed_of_trial(self.inner.study, turn.round, workload) ^ u64::from(number);
        let asked = || question(there.host());
        let heard = Listening::to(&self.inner, worker, &asked).until_cut(self.power, seed)?;
        // What was not heard by now never will be.
        self.inner.workers.clear();
        self.there = None;
        let Some(heard) = heard else {
            return Ok(true);
        };
        self.begins(turn, workload, &format!("start after power cut {number}"));
        let there = self.restored(&before)?;
        self.begins(turn, workload, &format!("checks after power cut {number}"));
        let mark = heard.mark.clone();
        let (promised, at_ns) = heard.at_cut();
        let order = RecoverOrder {
            round: turn.round,
            configuration: turn.configuration,
            cuts: vec![CutOrder {
                workload,
                number,
                seed,
                at_ns,
                stratum: "anywhere".to_owned(),
            }],
        };
        self.recovered(&there, (mark, promised), order)?;
        self.tidied(&there, &store)?;
        Ok(false)
    }

    fn begins(&self, turn: &Turn, workload: usize, part: &str) {
        self.inner.watcher.begins(&TrialStart {
            round: turn.round,
            configuration: turn.configuration,
            workload: Some(workload),
            part,
            control: None,
        });
    }

    /// Returns what ends the waiting for the machine.
    fn stop(&self) -> StopAsked {
        let interrupt = Arc::clone(&self.inner.interrupt);
        StopAsked::when(move || interrupt.raised())
    }

    /// Makes sure that there is a connection and a worker that measures.
    fn connected(&mut self) -> Result<(), Stop> {
        if self.there.is_some() {
            return Ok(());
        }
        let failed = |failure: Failure| lost(failure.into_parts().0);
        let there =
            ConnectedMachine::connect(self.context, self.machine, &self.stop()).map_err(failed)?;
        let place = there.place(self.inner.study, self.wipe, Some(RealCut::Before));
        let place = place.map_err(|failure| {
            there.put_away(self.context, self.observer);
            failed(failure)
        })?;
        self.inner.workers = vec![place.worker];
        self.there = Some(there);
        Ok(())
    }

    /// Has the machine started again, and waits until it answers.
    fn restored(&self, before: &str) -> Result<ConnectedMachine<'_>, Stop> {
        let PowerOptions {
            restore, within, ..
        } = self.power;
        commanded("--restore", restore, within).map_err(lost)?;
        let began = SystemClock.now_ns();
        loop {
            // It may refuse connections while it starts; only time tells that from a machine that stays away.
            // Ctrl-C does not end it: what stands on the machine is to be removed, and the time is limited.
            let unstopped = StopAsked::default();
            let why = match ConnectedMachine::connect(self.context, self.machine, &unstopped) {
                Ok(there) => match boot(&there) {
                    Ok(now) if now != before => return Ok(there),
                    Ok(_) => {
                        return Err(lost(format!(
                            "{} was not started again: it says the boot id it had before. \
                             Its power was not cut: mend the command of --cut",
                            there.called()
                        )));
                    }
                    Err(why) => why,
                },
                Err(failure) => failure.into_parts().0,
            };
            if since(began) >= within {
                return Err(lost(format!(
                    "the machine does not answer {} after --restore: {why}. Start it, then resume",
                    unit::time_ns(within.as_nanos() as f64)
                )));
            }
            SystemClock.sleep(AGAIN);
        }
    }

    /// Has the stack brought back and its promises checked.
    fn recovered(
        &self,
        there: &ConnectedMachine<'_>,
        (mark, promised): (String, Promised),
        order: RecoverOrder,
    ) -> Result<(), Stop> {
        let after = there.place(self.inner.study, self.wipe, Some(RealCut::After));
        let ReadyPlace { worker, .. } = after.map_err(|failure| lost(failure.into_parts().0))?;
        // One message has a limit of length, and a run may have promised a million operations.
        for piece in promised.pieces() {
            let (mark, promised) = (mark.clone(), Box::new(piece));
            worker
                .send(TurnRequest::Keep { mark, promised })
                .map_err(lost)?;
        }
        worker.send(TurnRequest::Recover(order)).map_err(lost)?;
        loop {
            match worker.conversation.receive_within(MOMENT).map_err(lost)? {
                None => {}
                Some(WorkerReply::Turn(TurnReply::Executed { .. })) => break,
                Some(WorkerReply::Turn(TurnReply::Happened(event))) => match *event {
                    Event::Cut(mut cut) => {
                        cut.of = there.called();
                        self.inner.ledger.tell(Event::Cut(cut))?;
                    }
                    event => self.inner.ledger.tell(event)?,
                },
                Some(WorkerReply::Turn(_)) => {}
                Some(WorkerReply::Refused { text, .. }) => return Err(lost(text)),
                Some(_) => return Err(lost("an unexpected answer")),
            }
        }
        worker.close(|_| ());
        Ok(())
    }

    /// Removes what the trial had made before the cut, and what checking has.
    fn tidied(&self, there: &ConnectedMachine<'_>, store: &std::path::Path) -> Result<(), Stop> {
        // The power went while this stood, so its journal there is that of a dead run.
        let before = cleaned(&there.host(), store, Vec::new(), false).map_err(lost)?;
        if before.left {
            return Err(lost(before.lines.join("\n")));
        }
        there.host().remove_tree(store).map_err(lost)?;
        there.put_away(self.context, self.observer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::power::source::{self, PowerSource};
    use stackrace_study::study::{Kinds, parse};

    fn study(stack: &str, crash: &str) -> Study {
        let text = format!(
            "{stack}\n[[workload]]\npromises = {{ idiom = \"create\", operations = 10 }}\n{crash}\n"
        );
        parse("t.toml", text.as_bytes(), &Kinds::real())
            .unwrap_or_else(|errors| panic!("{}", errors[0]))
    }

    const DIR: &str = "[[stack]]\ndir = { path = \"/srv\" }";
    const CRASH: &str = "[crash]\ncuts = 3";

    #[test]
    fn power_is_cut_where_study_command_line_and_stack_agree() {
        let said = |stack: &str, crash: &str, power| {
            let checked = source::check(&study(stack, crash), power);
            checked.map_err(|failure| failure.into_parts().0)
        };
        let (modelled, real) = (PowerSource::Modelled, PowerSource::Commands);
        let lab = "[[stack]]\nlab-disks = { model = \"seagate-st3000dm001\", size = \"1 GiB\" }\n\
                   [[stack]]\next4 = {}";
        for (stack, crash, power, words) in [
            (DIR, CRASH, real, None),
            (DIR, "", PowerSource::None, None),
            (lab, CRASH, modelled, None),
            (
                DIR,
                "",
                real,
                Some("--cut is for studies that cut the power"),
            ),
            (
                DIR,
                CRASH,
                PowerSource::None,
                Some("nothing says whose power"),
            ),
            (
                DIR,
                CRASH,
                modelled,
                Some("dir has no drive whose power could be cut"),
            ),
            (lab, CRASH, real, Some("lab-disks are modelled")),
            (
                "[[stack]]\ntmpfs = { size = \"64 MiB\" }",
                CRASH,
                real,
                Some("tmpfs has no drive whose power could be cut"),
            ),
        ] {
            match (said(stack, crash, power), words) {
                (Ok(()), None) => {}
                (Err(said), Some(words)) => assert!(said.contains(words), "{said}"),
                (said, words) => panic!("{said:?}, not {words:?}"),
            }
        }
    }

    #[test]
    fn each_trial_has_numbers_of_its_own_for_its_cuts() {
        let study = study(DIR, CRASH);
        let of_round = |round| cuts_of_trial(&study, round, 0).collect::<Vec<u32>>();
        assert_eq!([of_round(1), of_round(2)], [[1, 2, 3], [4, 5, 6]]);
    }
}
