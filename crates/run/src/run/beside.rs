//! A machine that measures beside the first one, as it is asked: a peer that loads the same stack in step with it, or a
//! client that measures in its place.
//!
//! A peer begins each phase when it is told to. A client sets the phase up, says so, and begins at an instant.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stackrace_engine::{ContentLedger, Control, PhaseOutcome, START_IS_TOLD, residency};

use super::held_ground::{GroundTrouble, HeldGround, KnownGrounds};
use super::observation::{phase_observation, read_bytes};
use super::runner::{Observed, Stages, carry_out, failed};
use stackrace_base::event::{Counted, Ended, FailureCause};
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_load::workload::{Place, Seat, Workload, WorkloadError, trouble};
use stackrace_machine::host::{Host, local::LocalHost};
use stackrace_machine::observe;
use stackrace_remote::agent::connection::Task;
use stackrace_remote::agent::message::{
    PhaseOrder, PhaseReply, PhaseRequest, WorkerReply, WorkerRequest,
};
use stackrace_study::study::{self, Kinds, Study};

/// Writing `3` there drops clean pages, dentries and inodes (proc_sys_vm(5)).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Interval at which it is looked whether a phase is set up.
const LOOK: Duration = Duration::from_micros(200);

/// Measures a trial as it is told, with or without a seat among clients.
pub fn serve(order: &PhaseOrder, grounds: &KnownGrounds, task: Task) {
    let Task { replies, requests } = task;
    let interrupt = Arc::new(Interrupt::default());
    let asked = asked(requests, Arc::clone(&interrupt));
    let say = |reply| {
        let sent = replies.send(&WorkerReply::Phase(reply));
        sent.map_err(|error| error.to_string())
    };
    let worked = study::parse(&order.name, order.text.as_bytes(), &Kinds::real())
        .map_err(|_| "the study is not understood here".into())
        .and_then(|study| work(order, &study, grounds, &interrupt, &asked, &say));
    if let Err(trouble) = worked {
        // A machine that is lost has interrupted all of this already.
        let _ = say(trouble.into());
    }
    let _ = say(PhaseReply::Ended);
}

/// Passes on what is asked next. Without the machine that asks nothing is to go on: it is interrupted.
fn asked(requests: Receiver<WorkerRequest>, interrupt: Arc<Interrupt>) -> Receiver<PhaseRequest> {
    let (sender, asked) = channel();
    // A thread of its own: the end of a trial has to reach a phase that is under way.
    std::thread::spawn(move || {
        for request in requests {
            match request {
                WorkerRequest::Phase(PhaseRequest::Stop) => break,
                WorkerRequest::Phase(request) => {
                    // What asks has ended already.
                    if sender.send(request).is_err() {
                        break;
                    }
                }
                _ => break,
            }
        }
        interrupt.raise();
    });
    asked
}

/// Function that answers the machine that asks.
pub(super) type Say<'a> = dyn Fn(PhaseReply) -> Result<(), String> + 'a;

/// Does its part of a trial of a study.
///
/// # Errors
/// The reason why it did not go on, unless it was stopped.
pub(super) fn work(
    order: &PhaseOrder,
    study: &Study,
    grounds: &KnownGrounds,
    interrupt: &Interrupt,
    asked: &Receiver<PhaseRequest>,
    say: &Say<'_>,
) -> Result<(), GroundTrouble> {
    let configuration = study.configurations.get(order.configuration);
    let workload = configuration.and_then(|each| each.workloads.get(order.workload));
    let (Some(configuration), Some(workload)) = (configuration, workload) else {
        return Err("the study has no such trial".into());
    };
    let seat = order.seat.map(|seat| Seat {
        rank: seat.rank,
        of: seat.of,
        shared: &order.directory,
        seed: order.seed,
    });
    let mut trial = BesideTrial {
        order,
        workload: workload.as_ref(),
        cold: order
            .seat
            .map_or(study.policy.drop_caches, |seat| seat.cold),
        seat,
        // The files of each client lie beside those of the others.
        own: seat.map_or(order.directory.clone(), |seat| seat.directory_of(seat.rank)),
        // Each client has mounted the storage by itself.
        named: seat.and_then(|_| configuration.stack.existing_directory()),
        grounds,
        ground: None,
        host: LocalHost::new(Arc::new(|_| ())),
        ledger: OnceLock::new(),
        asked,
        say,
        interrupt,
        counted: Counted::default(),
        began_ns: 0,
        cause: None,
        trouble: None,
    };
    carry_out(std::slice::from_mut(&mut trial), interrupt);
    trial.trouble.map_or(Ok(()), Err)
}

/// Its part of a trial.
struct BesideTrial<'a> {
    order: &'a PhaseOrder,
    workload: &'a dyn Workload,
    cold: bool,
    /// The place of a client among the others; `None` for a peer.
    seat: Option<Seat<'a>>,
    own: PathBuf,
    /// The directory that the user named, of a client.
    named: Option<PathBuf>,
    /// Storage that the directories of the run lay on until now.
    grounds: &'a KnownGrounds,
    /// Storage of this trial; `None` before it has begun.
    ground: Option<HeldGround>,
    host: LocalHost,
    ledger: OnceLock<ContentLedger>,
    asked: &'a Receiver<PhaseRequest>,
    say: &'a Say<'a>,
    interrupt: &'a Interrupt,
    /// Counters of the last phase, and the time at which it began, by this machine's clock, ns.
    counted: Counted,
    began_ns: u64,
    /// Cause of what failed in it, as the system gave it.
    cause: Option<FailureCause>,
    /// The reason why it did not go on; `None` if it did, or was stopped.
    trouble: Option<GroundTrouble>,
}

impl BesideTrial<'_> {
    fn place<'p>(&'p self, control: &'p Control) -> Place<'p> {
        let seed = self.order.seed;
        let seed = self.seat.map_or(seed, |seat| seat.seed_of(seat.rank));
        Place {
            cold: self.cold,
            seat: self.seat,
            ..Place::alone(&self.own, seed, &self.ledger, control)
        }
    }

    fn says(&self, reply: PhaseReply) -> Result<(), Ended> {
        (self.say)(reply).map_err(failed)
    }

    /// The end of the trial; what was exchanged is kept for the machine that asks.
    fn ends(&mut self, trouble: GroundTrouble) -> Ended {
        match trouble {
            GroundTrouble::Failed(trouble) => {
                self.cause.clone_from(&trouble.cause);
                failed(trouble)
            }
            GroundTrouble::Exchanged(storage, effect) => {
                let ended = failed(storage.told());
                self.trouble = Some(GroundTrouble::Exchanged(storage, effect));
                ended
            }
        }
    }

    /// Looks at its storage after a part of the trial, whatever came of it.
    fn after<T>(&mut self, done: Result<T, WorkloadError>) -> Result<T, Ended> {
        let done = done.map_err(|trouble| {
            self.cause.clone_from(&trouble.cause);
            trouble.to_string()
        });
        let looked = match &self.ground {
            Some(ground) => ground.after(&self.host, done),
            None => done.map_err(GroundTrouble::from),
        };
        let cause = self.cause.take();
        looked.map_err(|trouble| {
            let ended = self.ends(trouble);
            self.cause = self.cause.take().or(cause);
            ended
        })
    }

    /// Measures a phase that begins when it is told.
    fn in_step(
        &self,
        control: &Control,
        measure: &(dyn Fn() -> Result<PhaseOutcome, WorkloadError> + Sync),
    ) -> Result<PhaseOutcome, WorkloadError> {
        control.start_at_ns.store(START_IS_TOLD, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let measuring = scope.spawn(measure);
            while !control.set_up.load(Ordering::Relaxed) && !measuring.is_finished() {
                SystemClock.sleep(LOOK);
            }
            // What ended without waiting has failed, and says so below.
            let told = match measuring.is_finished() {
                true => Ok(()),
                false => self.told_start(control),
            };
            if told.is_err() {
                control.stop.store(true, Ordering::SeqCst);
            }
            let measured = measuring
                .join()
                .map_err(|_| trouble("the engine failed: this is a bug"))?;
            told.map_err(trouble).and(measured)
        })
    }

    /// Says that everything is set up, and passes the start on as soon as it is told.
    fn told_start(&self, control: &Control) -> Result<(), String> {
        (self.say)(PhaseReply::SetUp)?;
        match self.asked.recv() {
            Ok(PhaseRequest::StartAt { at_ns }) => {
                control.start_at_ns.store(at_ns, Ordering::Relaxed);
                Ok(())
            }
            _ => Err("it was called off".to_owned()),
        }
    }
}

impl Stages for BesideTrial<'_> {
    fn workload(&self) -> &dyn Workload {
        self.workload
    }

    fn begin(&mut self) -> Result<(), Ended> {
        if let Some(named) = &self.named {
            let known = self.grounds.check(&self.host, named);
            known.map_err(|trouble| self.ends(trouble))?;
        }
        if self.seat.is_some() {
            self.host.create_dir(&self.own).map_err(failed)?;
        }
        let ground = HeldGround::of(&self.host, self.named.as_deref(), &self.order.directory);
        self.ground = Some(ground.map_err(failed)?);
        Ok(())
    }

    fn prepare(&mut self, control: &Arc<Control>) -> Result<(), Ended> {
        let prepared = self.workload.prepare(&self.place(control));
        self.after(prepared)?;
        self.says(PhaseReply::Prepared)
    }

    fn settle(&mut self, _phase: usize) -> Result<(), Ended> {
        loop {
            match (self.asked.recv(), self.seat) {
                (Ok(PhaseRequest::Settle), Some(_)) => {
                    let caches =
                        settle(&self.host, &self.own, self.cold, self.interrupt).map_err(failed)?;
                    self.says(PhaseReply::Settled { caches })?;
                }
                (Ok(PhaseRequest::SetUp), Some(_)) | (Ok(PhaseRequest::Start), None) => {
                    return Ok(());
                }
                // No more of them: the trial is over on the first machine.
                _ => return Err(Ended::Interrupted),
            }
        }
    }

    fn observed(&self) -> Observed<'_> {
        // A pause here spoils the trial as much as one there.
        Observed::CountersAndPulse(&[])
    }

    fn measure(&mut self, phase: usize, control: &Arc<Control>) -> Result<PhaseOutcome, Ended> {
        let place = self.place(control);
        let measured = match self.seat {
            Some(_) => self.in_step(control, &|| self.workload.measure(phase, &place)),
            None => self.workload.measure(phase, &place),
        };
        self.began_ns = control.began_ns.load(Ordering::Relaxed);
        let measured = measured.and_then(|outcome| match &outcome.error {
            Some(error) => Err(trouble(error.clone())),
            None => Ok(outcome),
        });
        self.after(measured)
    }

    fn note(
        &mut self,
        _phase: usize,
        outcome: &PhaseOutcome,
        counted: &Counted,
    ) -> Result<(), Ended> {
        self.counted = counted.clone();
        observe::asked_by_workload(&mut self.counted, read_bytes(outcome));
        Ok(())
    }

    fn goes_on(&mut self, phase: usize, outcomes: &[PhaseOutcome]) -> Result<(), Ended> {
        let names = self.workload.phases();
        let whole = outcomes.len() == names.len();
        let offered = self.workload.offered_per_s(phase);
        self.says(PhaseReply::Measured {
            observation: Box::new(phase_observation(names[phase], &outcomes[phase], offered)),
            // The figures of clients are those of all together.
            metrics: match self.seat {
                None if whole => self.workload.evaluate(outcomes),
                _ => Vec::new(),
            },
            paused_ns: self.counted.paused_ns.unwrap_or(0),
            suspended_ns: self.counted.suspended_ns.unwrap_or(0),
            began_ns: self.seat.map_or(0, |_| self.began_ns),
            counted: self.seat.map(|_| Box::new(self.counted.clone())),
        })
    }

    fn leave(&mut self, ended: Ended, _outcomes: Vec<PhaseOutcome>) {
        let mut error = match ended {
            Ended::Failed { error } => Some(error),
            Ended::Complete | Ended::Interrupted => None,
        };
        if self.ground.is_some() {
            // A control of its own: what was begun must come to its end, whatever came of the trial.
            let finished = self.workload.finish(&self.place(&Control::default()));
            if let (None, Err(trouble)) = (&error, finished) {
                self.cause.clone_from(&trouble.cause);
                error = Some(trouble.to_string());
            }
        }
        // What was exchanged says more than what failed because of that.
        let cause = self.cause.take();
        let failed = error.map(|said| {
            GroundTrouble::Failed(WorkloadError {
                cause,
                ..trouble(said)
            })
        });
        self.trouble = self.trouble.take().or(failed);
    }
}

/// Writes back what this machine has of the storage, and empties its caches as far as it may. How it
/// did that.
fn settle(
    host: &LocalHost,
    own: &Path,
    cold: bool,
    interrupt: &Interrupt,
) -> Result<String, String> {
    let synced = host.sync_file_system(own);
    synced.map_err(|error| format!("cannot settle: {error}"))?;
    // Without the rights to drop all caches, the kernel still takes advice about single files.
    let how = match cold {
        false => "none",
        true if host.is_root() && host.write_text(Path::new(DROP_CACHES), "3").is_ok() => {
            "drop_caches"
        }
        true if residency::evict_tree(own, &|| !interrupt.raised()).is_ok() => "advice",
        true => "none",
    };
    Ok(how.to_owned())
}
