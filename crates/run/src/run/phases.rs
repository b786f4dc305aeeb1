//! The same workload on a peer at the same time, as the first machine has it done.
//!
//! The peer prepares and says so; each of its phases begins when the first machine says so, which then
//! begins its own: both begin within one message between them.

use std::path::PathBuf;
use std::time::Duration;

use super::fits::{Since, figures_fit, phase_fits};
use super::replied::{MachineTrouble, replied};
use stackrace_base::event::{OtherNode, PhaseObservation};
use stackrace_load::workload::{Workload, trouble};
use stackrace_machine::host::Host;
use stackrace_remote::agent::connection::Conversation;
use stackrace_remote::agent::message::{PhaseOrder, PhaseReply, PhaseRequest, WorkerRequest};
use stackrace_remote::agent::remote_host::Peer;

/// Time for which a peer is listened to before it is checked whether the trial is to be interrupted.
const MOMENT: Duration = Duration::from_millis(50);

/// A peer that measures in step.
pub(super) struct PeerPhases<'a> {
    host: &'a dyn Host,
    conversation: Conversation,
    /// The trial's directory there.
    directory: PathBuf,
    /// The workload that it was asked for, with which each of its answers is compared.
    workload: &'a dyn Workload,
    /// Start of its last phase; `None` before the first.
    since: Option<Since>,
    measured: Vec<PhaseObservation>,
    metrics: Vec<Option<f64>>,
    paused_ns: u64,
    suspended_ns: u64,
}

impl<'a> PeerPhases<'a> {
    /// Has a peer prepare its part of a trial.
    ///
    /// # Errors
    /// The directory cannot be made, or the peer is lost.
    pub(super) fn prepare(
        host: &'a dyn Host,
        peer: &Peer,
        order: PhaseOrder,
        workload: &'a dyn Workload,
    ) -> Result<Self, String> {
        let directory = order.directory.clone();
        // Whatever happens to it, the journal's entry of the stack covers it.
        host.create_dir(&directory)
            .map_err(|error| error.to_string())?;
        let request = WorkerRequest::Phase(PhaseRequest::Prepare(Box::new(order)));
        let conversation = peer.connection.open(peer.machine, &request);
        Ok(Self {
            host,
            conversation: conversation.map_err(|error| format!("{}: {error}", host.name()))?,
            directory,
            workload,
            since: None,
            measured: Vec::new(),
            metrics: Vec::new(),
            paused_ns: 0,
            suspended_ns: 0,
        })
    }

    /// Waits until it is prepared.
    ///
    /// # Errors
    /// Why it is not, with its name; when `stopped` says so.
    pub(super) fn prepared(&self, stopped: &dyn Fn() -> bool) -> Result<(), MachineTrouble> {
        match self.receive(stopped)? {
            PhaseReply::Prepared => Ok(()),
            other => Err(self.failed(format!("an unexpected answer: {other:?}"))),
        }
    }

    /// Lets it begin its next phase.
    ///
    /// # Errors
    /// The peer is lost.
    pub(super) fn start(&mut self) -> Result<(), MachineTrouble> {
        self.since = Some(Since::now());
        let request = WorkerRequest::Phase(PhaseRequest::Start);
        let sent = self.conversation.send(&request);
        sent.map_err(|error| self.failed(error))
    }

    /// Waits for the end of that phase.
    ///
    /// # Errors
    /// As [`PeerPhases::prepared`].
    pub(super) fn measured(&mut self, stopped: &dyn Fn() -> bool) -> Result<(), MachineTrouble> {
        match self.receive(stopped)? {
            PhaseReply::Measured {
                observation,
                metrics,
                paused_ns,
                suspended_ns,
                ..
            } => {
                self.fits(&observation, &metrics)
                    .map_err(|why| self.failed(why))?;
                self.measured.push(*observation);
                self.metrics = metrics;
                self.paused_ns = self.paused_ns.saturating_add(paused_ns);
                self.suspended_ns = self.suspended_ns.saturating_add(suspended_ns);
                Ok(())
            }
            other => Err(self.failed(format!("an unexpected answer: {other:?}"))),
        }
    }

    /// Looks whether a phase is the one that was begun last, with the figures of the trial if it is the last of all.
    fn fits(&self, phase: &PhaseObservation, metrics: &[Option<f64>]) -> Result<(), String> {
        let names = self.workload.phases();
        let at = self.measured.len();
        let (Some(name), Some(since)) = (names.get(at), self.since) else {
            return Err("a phase that was not begun".to_owned());
        };
        phase_fits(phase, name, since)?;
        match at + 1 == names.len() {
            true => figures_fit(metrics, self.workload.metrics().len()),
            false => figures_fit(metrics, metrics.len().min(self.workload.metrics().len())),
        }
    }

    /// Returns what it measured until now.
    pub(super) fn node(&mut self) -> OtherNode {
        OtherNode {
            host: self.host.name().to_owned(),
            elapsed_ns: self.measured.iter().map(|phase| phase.elapsed_ns).sum(),
            phases: std::mem::take(&mut self.measured),
            metrics: std::mem::take(&mut self.metrics),
            paused_ns: std::mem::take(&mut self.paused_ns),
            suspended_ns: std::mem::take(&mut self.suspended_ns),
        }
    }

    /// Stops what it does, and removes the trial's files there.
    ///
    /// # Errors
    /// The files could not be removed.
    pub(super) fn end(self) -> Result<(), String> {
        // Before that, it may still make files. A peer that is lost has stopped by itself.
        let stopped = self
            .conversation
            .send(&WorkerRequest::Phase(PhaseRequest::Stop));
        // Its last replies: when they end, it has stopped.
        while stopped.is_ok() && self.conversation.receive().is_ok() {}
        let removed = self.host.remove_tree(&self.directory);
        removed.map_err(|error| error.to_string())
    }

    fn failed(&self, what: impl std::fmt::Display) -> MachineTrouble {
        MachineTrouble::Failed(trouble(format!("{}: {what}", self.host.name())))
    }

    fn receive(&self, stopped: &dyn Fn() -> bool) -> Result<PhaseReply, MachineTrouble> {
        loop {
            match replied(&self.conversation, self.host.name(), MOMENT)? {
                Some(reply) => return Ok(reply),
                None if stopped() => return Err(self.failed("stopped")),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{KnownGrounds, serve};
    use stackrace_machine::host::local::LocalHost;
    use stackrace_remote::agent::connection::{
        Closing, Connection, ConnectionError, Service, Task,
    };
    use stackrace_remote::agent::message::{COORDINATOR, PeerAddress};
    use stackrace_remote::agent::router::Router;
    use stackrace_study::study::{self, Kinds};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::sync::Arc;

    const STUDY: &str = "[[stack]]\ndir = { path = \"/tmp\" }\n[[workload]]\n\
        files = { count = 10, size-max = \"8 KiB\" }\n[decide]\nrounds-at-most = 1\n";

    /// A worker that does nothing but measure in step.
    struct InStep;

    impl Service for InStep {
        fn serve(&self, _: &Arc<Connection>, first: WorkerRequest, task: Task) {
            match first {
                WorkerRequest::Phase(PhaseRequest::Prepare(order)) => {
                    serve(&order, &KnownGrounds::default(), task);
                }
                other => panic!("not asked: {other:?}"),
            }
        }
    }

    /// A peer that is this machine, and its worker's end of the connection.
    fn peer() -> (LocalHost, Peer) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let reader = theirs.try_clone().unwrap();
        let worker = Connection::to_coordinator(Closing(theirs), Arc::new(InStep));
        std::thread::spawn(move || worker.listen(reader));
        let reader = ours.try_clone().unwrap();
        let why = |_: Option<&str>| ConnectionError::new("killed");
        let router = Router::new(Duration::ZERO);
        let connection = router.connect(2, reader, Closing(ours), Box::new(why));
        let address = PeerAddress {
            name: "local".to_owned(),
            address: [127, 0, 0, 1].into(),
            directory: None,
        };
        let peer = Peer {
            connection,
            // Asked by the coordinator itself.
            machine: COORDINATOR,
            address,
        };
        (LocalHost::new(Arc::new(|_| ())), peer)
    }

    fn failed(why: &str) -> MachineTrouble {
        MachineTrouble::Failed(trouble(format!("local: {why}")))
    }

    fn order(base: &Path) -> PhaseOrder {
        PhaseOrder {
            name: "s.toml".to_owned(),
            text: STUDY.to_owned(),
            configuration: 0,
            workload: 0,
            directory: base.join(".stackrace-0"),
            seed: 7,
            seat: None,
        }
    }

    #[test]
    fn a_peer_works_phase_by_phase_as_it_is_told() {
        let base = tempfile::tempdir().unwrap();
        let (host, peer) = peer();
        let study = study::parse("s.toml", STUDY.as_bytes(), &Kinds::real()).unwrap();
        let workload = study.configurations[0].workloads[0].as_ref();
        let mut phases = PeerPhases::prepare(&host, &peer, order(base.path()), workload).unwrap();
        phases.prepared(&|| false).unwrap();
        let waits = phases.conversation.receive_within(MOMENT).unwrap();
        assert!(waits.is_none(), "it began by itself: {waits:?}");
        for _ in study.configurations[0].workloads[0].phases() {
            phases.start().unwrap();
            phases.measured(&|| false).unwrap();
        }
        let node = phases.node();
        assert_eq!(
            node.metrics.len(),
            study.workload_heads[0].metrics.len(),
            "{:?}",
            node.metrics
        );
        assert!(node.metrics.iter().all(Option::is_some));
        assert!(node.elapsed_ns > 0 && !node.phases.is_empty());
        phases.end().unwrap();
        assert!(!base.path().join(".stackrace-0").exists());
    }

    #[test]
    fn what_fails_there_is_told_with_its_name() {
        let base = tempfile::tempdir().unwrap();
        let (host, peer) = peer();
        let mut order = order(base.path());
        order.configuration = 9;
        let study = study::parse("s.toml", STUDY.as_bytes(), &Kinds::real()).unwrap();
        let workload = study.configurations[0].workloads[0].as_ref();
        let phases = PeerPhases::prepare(&host, &peer, order, workload).unwrap();
        let error = phases.prepared(&|| false).unwrap_err();
        assert_eq!(error, failed("the study has no such trial"));
        phases.end().unwrap();
    }

    #[test]
    fn a_peer_ends_with_the_trial_and_with_the_connection() {
        let base = tempfile::tempdir().unwrap();
        let (host, peer) = peer();
        let study = study::parse("s.toml", STUDY.as_bytes(), &Kinds::real()).unwrap();
        let workload = study.configurations[0].workloads[0].as_ref();
        let phases = PeerPhases::prepare(&host, &peer, order(base.path()), workload).unwrap();
        phases.prepared(&|| false).unwrap();
        let stopped = phases.receive(&|| true).unwrap_err();
        assert_eq!(stopped, failed("stopped"));
        // It waits for its first phase, and ends without one.
        phases.end().unwrap();
        let mut phases = PeerPhases::prepare(&host, &peer, order(base.path()), workload).unwrap();
        phases.prepared(&|| false).unwrap();
        // What is not understood ends the connection at the other end.
        let Peer { connection, .. } = &peer;
        connection.break_off();
        let error = phases.measured(&|| false).unwrap_err();
        assert_eq!(error, failed("it stopped"));
        phases.end().unwrap();
    }
}
