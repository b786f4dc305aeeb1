//! The same workload on another machine at the same time.
//!
//! The other machine runs this same program, which is told by files in a directory of the trial's
//! own there, and answers in the same way: it prepares and says so; each phase waits until it is
//! released and says what it measured. The first machine releases a phase and begins its own, so
//! that both begin within one message between them. What is said once is never changed, and a file
//! gets its name when it is whole: nobody reads half of one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Scope;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Interrupt;
use super::trial::phase_observation;
use crate::event::{OtherNode, PhaseObservation};
use crate::host::{Filling, Host, HostError, Output, argv};
use crate::journal::{EntryId, Journal, Undo};
use crate::stack::undo_entries;
use crate::study::{self, Kinds, Study};
use crate::time::{Clock, SystemClock};
use crate::workload::{Place, Workload};
use stackrace_engine::{ContentLedger, Control};

/// How often the other machine looks whether a phase is released.
const RELEASED: Duration = Duration::from_millis(1);

/// How often it is looked whether it is to stop, and here whether it has said something.
const LOOK: Duration = Duration::from_millis(50);

/// What the other machine is told, and where.
const ORDER: &str = "order.json";
const STUDY: &str = "study.toml";
const STOP: &str = "stop";

/// Allows a phase, from 0, to begin.
fn release(phase: usize) -> String {
    format!("release-{phase}")
}

/// What was said after so many phases; after 0: of preparing.
fn said(phases: usize) -> String {
    format!("said-{phases}")
}

/// What is to be done.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    /// Name of the study.
    pub(super) name: String,
    /// Configuration by index.
    pub(super) configuration: usize,
    /// Workload by index.
    pub(super) workload: usize,
    /// The trial's directory there.
    pub(super) directory: PathBuf,
    /// What its data and offsets follow from: others than those of the first machine.
    pub(super) seed: u64,
}

impl Order {
    /// Where its workload works there.
    fn place<'a>(&'a self, ledger: &'a OnceLock<ContentLedger>, control: &'a Control) -> Place<'a> {
        Place {
            directory: &self.directory,
            bare: None,
            existing: None,
            ledger,
            seed: self.seed,
            control,
        }
    }
}

/// What came of a part.
#[derive(Serialize, Deserialize)]
enum Said {
    /// It was done.
    Prepared,
    /// It was measured; the metrics come with the last one.
    Measured(Box<PhaseObservation>, Vec<Option<f64>>),
    /// It was asked to stop.
    Stopped,
    /// It failed.
    Failed(String),
}

/// Another machine that has an order. Dropping it stops what it does.
pub(super) struct Other<'a> {
    host: &'a dyn Host,
    /// Where it is told and answers.
    desk: PathBuf,
    /// How its program ended; none: it runs.
    ended: Arc<OnceLock<Result<Output, HostError>>>,
    measured: Vec<PhaseObservation>,
    metrics: Vec<Option<f64>>,
}

/// Where another machine is told: in the journal with all it holds.
pub(super) struct Desk {
    /// A directory there.
    pub(super) path: PathBuf,
    /// The trial's directory there.
    directory: PathBuf,
    node: usize,
    entry: EntryId,
}

impl Desk {
    /// Lays an order out on another machine.
    ///
    /// # Errors
    /// Words.
    pub(super) fn lay_out(
        host: &dyn Host,
        journal: &Journal,
        node: usize,
        path: PathBuf,
        study: &Study,
        order: &Order,
    ) -> Result<Self, String> {
        let words = |error: HostError| error.to_string();
        let undo = Undo::on(node, host, Undo::RemoveTree(path.clone()));
        let entry = journal
            .will("order", undo)
            .map_err(|error| error.to_string())?;
        host.create_dir(&order.directory).map_err(words)?;
        host.create_dir(&path).map_err(words)?;
        let text = serde_json::to_string(order).map_err(|error| error.to_string())?;
        for (name, text) in [(STUDY, &study.text), (ORDER, &text)] {
            let file = path.join(name);
            host.create_file(&file, 0, Filling::Sparse).map_err(words)?;
            host.write_text(&file, text).map_err(words)?;
        }
        Ok(Self {
            path,
            directory: order.directory.clone(),
            node,
            entry,
        })
    }

    /// Takes it away with the trial's files there, when the other machine's program has ended.
    ///
    /// # Errors
    /// Words.
    pub(super) fn clear(self, first: &dyn Host, journal: &Journal) -> Result<(), String> {
        first
            .peer(self.node)
            .and_then(|host| host.remove_tree(&self.directory))
            .map_err(|error| error.to_string())?;
        let report =
            undo_entries(first, journal, &[self.entry]).map_err(|error| error.to_string())?;
        match report.failed.first() {
            Some((what, why)) => Err(format!("could not {what}: {why}")),
            None => Ok(()),
        }
    }
}

/// The command that carries out an order.
pub(super) fn command(desk: &Path) -> Vec<std::ffi::OsString> {
    let mut words = argv(["/proc/self/exe", "lab", "load"]);
    words.push(desk.into());
    words
}

impl<'a> Other<'a> {
    /// Lets the other machine begin; `carry_out` runs there until the order is done.
    pub(super) fn begin<'s>(
        scope: &'s Scope<'s, '_>,
        host: &'a dyn Host,
        desk: &Path,
        carry_out: impl FnOnce() -> Result<Output, HostError> + Send + 's,
    ) -> Self {
        let ended = Arc::new(OnceLock::new());
        let end = Arc::clone(&ended);
        scope.spawn(move || end.set(carry_out()));
        Self {
            host,
            desk: desk.to_path_buf(),
            ended,
            measured: Vec::new(),
            metrics: Vec::new(),
        }
    }

    /// Waits until it is prepared.
    ///
    /// # Errors
    /// Why it is not, with its name; when `stopped` says so.
    pub(super) fn prepared(&self, stopped: &dyn Fn() -> bool) -> Result<(), String> {
        match self.hear(0, stopped)? {
            Said::Prepared => Ok(()),
            other => Err(self.unexpected(other)),
        }
    }

    /// Lets it begin a phase.
    ///
    /// # Errors
    /// When it cannot be told.
    pub(super) fn release(&self, phase: usize) -> Result<(), String> {
        let file = self.desk.join(release(phase));
        self.host
            .create_file(&file, 0, Filling::Sparse)
            .map_err(|error| error.to_string())
    }

    /// Waits for the end of a phase.
    ///
    /// # Errors
    /// As [`Other::prepared`].
    pub(super) fn measured(
        &mut self,
        phase: usize,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        match self.hear(phase + 1, stopped)? {
            Said::Measured(observed, metrics) => {
                self.measured.push(*observed);
                self.metrics = metrics;
                Ok(())
            }
            other => Err(self.unexpected(other)),
        }
    }

    /// What it measured until now.
    pub(super) fn node(&mut self) -> OtherNode {
        OtherNode {
            host: self.host.name().to_owned(),
            elapsed_ns: self.measured.iter().map(|phase| phase.elapsed_ns).sum(),
            phases: std::mem::take(&mut self.measured),
            metrics: std::mem::take(&mut self.metrics),
        }
    }

    fn unexpected(&self, said: Said) -> String {
        let name = self.host.name();
        match said {
            Said::Failed(error) => format!("{name}: {error}"),
            Said::Stopped => format!("{name}: stopped"),
            Said::Prepared | Said::Measured(..) => format!("{name}: answers out of turn"),
        }
    }

    fn hear(&self, phases: usize, stopped: &dyn Fn() -> bool) -> Result<Said, String> {
        let file = self.desk.join(said(phases));
        let name = self.host.name();
        loop {
            // Asked before it is looked: what was said until its end is then not missed.
            let ended = self.ended.get();
            if self.host.exists(&file) {
                let text = self.host.read_text(&file);
                let text = text.map_err(|error| error.to_string())?;
                return serde_json::from_str(&text)
                    .map_err(|error| format!("{name}: not understood: {error}"));
            }
            match ended {
                Some(Ok(output)) => {
                    let said = output.stderr.trim();
                    return Err(format!("{name}: the workload ended there: {said}"));
                }
                Some(Err(error)) => return Err(error.to_string()),
                None if stopped() => return Err(format!("{name}: stopped")),
                None => SystemClock.sleep(LOOK),
            }
        }
    }
}

impl Drop for Other<'_> {
    fn drop(&mut self) {
        if self.ended.get().is_none() {
            // One that cannot be told is not there any more.
            let stop = self.desk.join(STOP);
            let _ = self.host.create_file(&stop, 0, Filling::Sparse);
        }
    }
}

/// Carries out the order that lies in a directory: the part on the other machine.
///
/// # Errors
/// When the order cannot be understood, or nothing can be answered; what fails in the workload is
/// an answer.
pub(crate) fn carry_out(desk: &Path) -> Result<(), String> {
    let read = |name: &str| {
        let file = desk.join(name);
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
    };
    let order: Order =
        serde_json::from_str(&read(ORDER)?).map_err(|error| format!("{ORDER}: {error}"))?;
    let text = read(STUDY)?;
    let study = study::parse(&order.name, text.as_bytes(), &Kinds::real())
        .map_err(|_| "the study is not understood here".to_owned())?;
    let configuration = study.configurations.get(order.configuration);
    let workload =
        configuration.and_then(|configuration| configuration.workloads.get(order.workload));
    let workload = workload.ok_or("the study has no such trial")?.as_ref();
    let interrupt = Interrupt::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // The desk is taken away last: without it nobody waits for an answer.
                if desk.join(STOP).exists() || !desk.exists() {
                    return interrupt.raise();
                }
                SystemClock.sleep(LOOK);
            }
        });
        let carried_out = work(desk, workload, &order, &interrupt);
        done.store(true, Ordering::Relaxed);
        carried_out
    })
}

fn work(
    desk: &Path,
    workload: &dyn Workload,
    order: &Order,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let ledger = OnceLock::new();
    let prepared = workload.prepare(&order.place(&ledger, &interrupt.control()));
    say(
        desk,
        0,
        &prepared.map_or_else(|trouble| Said::Failed(trouble.0), |()| Said::Prepared),
    )?;
    let mut outcomes = Vec::new();
    let phases = workload.phases();
    for (phase, name) in phases.iter().enumerate() {
        while !desk.join(release(phase)).exists() {
            if interrupt.raised() {
                return Ok(());
            }
            SystemClock.sleep(RELEASED);
        }
        let control = interrupt.control();
        let outcome = match workload.measure(phase, &order.place(&ledger, &control)) {
            Ok(outcome) => outcome,
            Err(trouble) => return say(desk, phase + 1, &Said::Failed(trouble.0)),
        };
        if let Some(error) = &outcome.error {
            return say(desk, phase + 1, &Said::Failed(error.to_string()));
        }
        if outcome.ended != stackrace_engine::PhaseEnd::Complete {
            return say(desk, phase + 1, &Said::Stopped);
        }
        let observed = phase_observation(name, &outcome, workload.offered_per_s(phase));
        outcomes.push(outcome);
        let metrics = match outcomes.len() == phases.len() {
            true => workload.evaluate(&outcomes),
            false => Vec::new(),
        };
        say(
            desk,
            phase + 1,
            &Said::Measured(Box::new(observed), metrics),
        )?;
    }
    Ok(())
}

/// Says something; the file gets its name when it is whole.
fn say(desk: &Path, phases: usize, what: &Said) -> Result<(), String> {
    let words = |error: std::io::Error| format!("{}: {error}", desk.display());
    let text = serde_json::to_vec(what).map_err(|error| error.to_string())?;
    let draft = desk.join("draft");
    std::fs::write(&draft, text).map_err(words)?;
    std::fs::rename(&draft, desk.join(said(phases))).map_err(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::local::LocalHost;

    const STUDY: &str = "[[stack]]\ndir = { path = \"/tmp\" }\n[[workload]]\n\
        files = { count = 10, size-max = \"8 KiB\" }\n[decide]\nrounds-at-most = 1\n";

    /// A machine whose peer it is itself, and an order for the peer.
    fn ordered(base: &Path) -> (LocalHost, Journal, Desk, Order) {
        let here = || LocalHost::new(Arc::new(|_| ()));
        let host = here().with_peers(vec![Box::new(here())]);
        let study = study::parse("s.toml", STUDY.as_bytes(), &Kinds::real()).unwrap();
        let order = Order {
            name: study.name.clone(),
            configuration: 0,
            workload: 0,
            directory: base.join(".stackrace-0"),
            seed: 7,
        };
        let journal = Journal::nowhere();
        let path = base.join(".stackrace-order");
        let desk = Desk::lay_out(
            host.peer(2).unwrap(),
            &journal,
            2,
            path.clone(),
            &study,
            &order,
        )
        .unwrap();
        (host, journal, desk, order)
    }

    fn carried_out(desk: &Path) -> Result<Output, HostError> {
        carry_out(desk).unwrap();
        Ok(Output::default())
    }

    #[test]
    fn another_machine_works_phase_by_phase_when_it_is_told() {
        let base = tempfile::tempdir().unwrap();
        let (host, journal, desk, order) = ordered(base.path());
        let path = desk.path.clone();
        let node = std::thread::scope(|scope| {
            let peer = host.peer(2).unwrap();
            let mut other = Other::begin(scope, peer, &path, || carried_out(&path));
            other.prepared(&|| false).unwrap();
            assert!(!path.join(said(1)).exists(), "it waits");
            let study = study::parse("s.toml", STUDY.as_bytes(), &Kinds::real()).unwrap();
            for phase in 0..study.configurations[0].workloads[0].phases().len() {
                other.release(phase).unwrap();
                other.measured(phase, &|| false).unwrap();
            }
            let heads = study.workload_heads[0].metrics.len();
            let node = other.node();
            assert_eq!(node.metrics.len(), heads);
            node
        });
        assert!(node.metrics.iter().all(Option::is_some));
        assert!(node.elapsed_ns > 0 && !node.phases.is_empty());
        desk.clear(&host, &journal).unwrap();
        assert!(!path.exists() && !order.directory.exists());
        assert!(journal.pending().is_empty());
    }

    #[test]
    fn what_fails_there_is_said_with_its_name_and_who_is_dropped_ends() {
        let base = tempfile::tempdir().unwrap();
        let (host, _journal, desk, order) = ordered(base.path());
        std::fs::remove_dir(&order.directory).unwrap();
        let path = desk.path.clone();
        std::thread::scope(|scope| {
            let peer = host.peer(2).unwrap();
            let mut other = Other::begin(scope, peer, &path, || carried_out(&path));
            let ended = other.prepared(&|| false).and_then(|()| {
                other.release(0)?;
                other.measured(0, &|| false)
            });
            let error = ended.unwrap_err();
            assert!(error.starts_with("local: "), "{error}");
        });
        // One that waits for its release ends with the one who would give it.
        let base = tempfile::tempdir().unwrap();
        let (host, _journal, desk, _order) = ordered(base.path());
        let path = desk.path.clone();
        std::thread::scope(|scope| {
            let peer = host.peer(2).unwrap();
            let other = Other::begin(scope, peer, &path, || carried_out(&path));
            other.prepared(&|| false).unwrap();
            drop(other);
        });
        // One whose program dies is not waited for.
        std::thread::scope(|scope| {
            let dead = || {
                Ok(Output {
                    stderr: "killed".to_owned(),
                    ..Output::default()
                })
            };
            let peer = host.peer(2).unwrap();
            let mut other = Other::begin(scope, peer, &path, dead);
            let error = other.measured(9, &|| false).unwrap_err();
            assert!(error.ends_with("ended there: killed"), "{error}");
        });
    }
}
