//! A client's side: it prepares, sets a phase up, begins at the instant it is told, and says what it
//! measured.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stackrace_engine::{ContentLedger, Control, PhaseEnd, PhaseOutcome, START_IS_TOLD, residency};

use crate::run::held_ground::{GroundTrouble, HeldGround, KnownGrounds};
use crate::run::observation::{phase_observation, read_bytes};
use stackrace_base::event::Counted;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_load::workload::{Place, Seat, Workload, WorkloadError};
use stackrace_machine::host::{Host, local::LocalHost};
use stackrace_machine::observe::{self, Pulse, Snapshot};
use stackrace_remote::agent::connection::Task;
use stackrace_remote::agent::message::{
    ClientSeat, PhaseOrder, PhaseReply, PhaseRequest, WorkerReply, WorkerRequest,
};
use stackrace_study::study::{self, Kinds, Study};

/// Writing `3` there drops clean pages, dentries and inodes (proc_sys_vm(5)).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Interval at which it is looked whether a phase is set up.
const LOOK: Duration = Duration::from_micros(200);

/// Measures as one of the clients, as it is told.
pub fn serve(order: &PhaseOrder, seat: ClientSeat, grounds: &KnownGrounds, task: Task) {
    let Task { replies, requests } = task;
    let interrupt = Arc::new(Interrupt::default());
    let asked = asked(requests, Arc::clone(&interrupt));
    let say = |reply| {
        let sent = replies.send(&WorkerReply::Phase(reply));
        sent.map_err(|error| error.to_string())
    };
    let client = Client {
        order,
        seat,
        grounds,
        interrupt: &interrupt,
        asked: &asked,
        say: &say,
    };
    if let Err(trouble) = client.work() {
        // A conductor that is lost has interrupted all of this already.
        let _ = say(trouble.into());
    }
    let _ = say(PhaseReply::Ended);
}

/// Passes on what is asked next. Without a conductor nothing is to go on: it is interrupted.
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

/// One process that measures.
struct Client<'a> {
    order: &'a PhaseOrder,
    seat: ClientSeat,
    /// Storage that the directories of the run lay on until now.
    grounds: &'a KnownGrounds,
    interrupt: &'a Interrupt,
    asked: &'a Receiver<PhaseRequest>,
    say: &'a dyn Fn(PhaseReply) -> Result<(), String>,
}

impl Client<'_> {
    fn work(&self) -> Result<(), GroundTrouble> {
        let study = study::parse(&self.order.name, self.order.text.as_bytes(), &Kinds::real())
            .map_err(|_| "the study is not understood here".to_owned())?;
        let workload = self.workload(&study)?;
        let host = LocalHost::new(Arc::new(|_| ()));
        // Each client has mounted the storage by itself.
        let named = study.configurations[self.order.configuration]
            .stack
            .existing_directory();
        if let Some(named) = &named {
            self.grounds.check(&host, named)?;
        }
        let seat = Seat {
            rank: self.seat.rank,
            of: self.seat.of,
            shared: &self.order.directory,
            seed: self.order.seed,
        };
        // Its own files lie beside those of the others.
        let own = seat.directory_of(seat.rank);
        host.create_dir(&own).map_err(|error| error.to_string())?;
        let paths = named.as_deref().into_iter();
        let ground = HeldGround::of(&host, paths.chain([&*self.order.directory]))?;
        let ledger = OnceLock::new();
        let control = self.interrupt.control();
        let prepared = workload.prepare(&self.place(&own, seat, &ledger, &control));
        ground.after(&host, prepared.map_err(|trouble| trouble.0))?;
        (self.say)(PhaseReply::Prepared)?;
        let mut phases = workload.phases().into_iter().enumerate();
        while let Ok(request) = self.asked.recv() {
            match request {
                PhaseRequest::Settle => {
                    let caches = settle(&host, &own, self.seat.cold)?;
                    (self.say)(PhaseReply::Settled { caches })?;
                }
                PhaseRequest::SetUp => {
                    let (phase, name) = phases.next().ok_or("there is no further phase")?;
                    let control = self.interrupt.control();
                    let here = self.place(&own, seat, &ledger, &control);
                    let measured = self.in_step(&control, &|| workload.measure(phase, &here));
                    let (outcome, counted) = ground.after(&host, measured)?;
                    if outcome.ended != PhaseEnd::Complete {
                        return Ok(());
                    }
                    let offered = workload.offered_per_s(phase);
                    (self.say)(PhaseReply::Measured {
                        observation: Box::new(phase_observation(name, &outcome, offered)),
                        metrics: Vec::new(),
                        paused_ns: counted.paused_ns.unwrap_or(0),
                        suspended_ns: counted.suspended_ns.unwrap_or(0),
                        began_ns: control.began_ns.load(Ordering::Relaxed),
                        counted: Some(Box::new(counted)),
                    })?;
                }
                // Nothing else is asked between two phases.
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Returns the place where the workload works.
    fn place<'p>(
        &self,
        own: &'p Path,
        seat: Seat<'p>,
        ledger: &'p OnceLock<ContentLedger>,
        control: &'p Control,
    ) -> Place<'p> {
        Place {
            directory: own,
            bare: None,
            existing: None,
            cold: self.seat.cold,
            ledger,
            seed: seat.seed_of(seat.rank),
            elsewhere: None,
            seat: Some(seat),
            control,
        }
    }

    fn workload<'s>(&self, study: &'s Study) -> Result<&'s dyn Workload, String> {
        let configuration = study.configurations.get(self.order.configuration);
        let workload = configuration.and_then(|each| each.workloads.get(self.order.workload));
        Ok(workload.ok_or("the study has no such trial")?.as_ref())
    }

    /// A phase that begins when it is told, and what the system counted meanwhile.
    fn in_step(
        &self,
        control: &Control,
        measure: &(dyn Fn() -> Result<PhaseOutcome, WorkloadError> + Sync),
    ) -> Result<(PhaseOutcome, Counted), String> {
        control.start_at_ns.store(START_IS_TOLD, Ordering::Relaxed);
        let (outcome, counted) = std::thread::scope(|scope| {
            let measuring = scope.spawn(|| {
                // From before the start on: nothing is done until then.
                let before = Snapshot::take(&[]);
                let pulse = Pulse::begin();
                let outcome = measure();
                let mut counted = before.until(&Snapshot::take(&[]));
                pulse.end(&mut counted);
                (outcome, counted)
            });
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
                .map_err(|_| "the engine failed: this is a bug")?;
            told.map(|()| measured)
        })?;
        let outcome = outcome.map_err(|trouble| trouble.0)?;
        match &outcome.error {
            Some(error) => Err(error.to_string()),
            None => {
                let mut counted = counted;
                observe::asked_by_workload(&mut counted, read_bytes(&outcome));
                Ok((outcome, counted))
            }
        }
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

/// Writes back what this machine has of the storage, and empties its caches as far as it may. How it
/// did that.
fn settle(host: &LocalHost, own: &Path, cold: bool) -> Result<String, String> {
    let synced = host.sync_file_system(own);
    synced.map_err(|error| format!("cannot settle: {error}"))?;
    // Without the rights to drop all caches, the kernel still takes advice about single files.
    let how = match cold {
        false => "none",
        true if host.is_root() && host.write_text(Path::new(DROP_CACHES), "3").is_ok() => {
            "drop_caches"
        }
        true if residency::evict_tree(own).is_ok() => "advice",
        true => "none",
    };
    Ok(how.to_owned())
}
