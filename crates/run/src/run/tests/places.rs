//! Turns executed at places: what is lost, interrupted or fails there.

use std::collections::VecDeque;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::run::executor::Turned;
use crate::run::turns::{TurnReporter, asked_for, execute_all};
use stackrace_remote::agent::connection::{Closing, Connection, ConnectionError, Service, Task};
use stackrace_remote::agent::frame::WireFrame;
use stackrace_remote::agent::message::Turn;
use stackrace_remote::agent::message::{COORDINATOR, TurnReply, TurnRequest, WorkerRequest};
use stackrace_remote::agent::router::Router;

/// Two workloads on three levels, each at two places.
const PLACES: &str = r#"title = "Told at two places"
seed = 7
[factors]
level = ["a", "b", "c"]
system = ["x", "y"]
[[stack]]
tmpfs = { size = "16 MiB" }
[[workload]]
name = "one"
told = { level = "{level}" }
[[workload]]
name = "two"
told = { level = "{level}" }
[decide]
rounds-at-most = 3
at-most = "1 h"
until = "never"
"#;

/// A worker on an imagined machine.
struct ImaginedWorker {
    text: String,
    /// Failure that happens there.
    fail: String,
    interrupt: Arc<Interrupt>,
    /// Sender that is told what it leaves standing.
    left: Mutex<Sender<Vec<String>>>,
}

impl Service for ImaginedWorker {
    fn serve(&self, _connection: &Arc<Connection>, _first: WorkerRequest, task: Task) {
        FAILS.set(self.fail.clone());
        INTERRUPT.set(Some(Arc::clone(&self.interrupt)));
        let (study, host) = (
            parsed(&self.text),
            stackrace_layers::stack::imagined(Fault::Never),
        );
        let reporter = TurnReporter(task.replies);
        let tell = |event| {
            let said = lies::told(&self.fail, event);
            said.into_iter()
                .try_for_each(|event| reporter.happened(event))
        };
        let mut here = here(&study, &host, &tell, &reporter, Arc::clone(&self.interrupt));
        let turns = asked_for(task.requests, Arc::clone(&self.interrupt), None);
        // Some tests are about a coordinator that is lost.
        let _ = execute_all(&mut here, turns, &reporter);
        let _ = reporter.say(TurnReply::Closed);
        self.left.lock().unwrap().send(host.left()).unwrap();
    }
}

/// Reads so many frames, and then no more.
struct FramesAtMost {
    stream: UnixStream,
    left: usize,
    bytes: VecDeque<u8>,
}

impl Read for FramesAtMost {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.bytes.is_empty() && self.left > 0 {
            self.left -= 1;
            if let Some(frame) = WireFrame::read(&mut self.stream)? {
                frame.write(&mut self.bytes)?;
            }
        }
        self.bytes.read(buffer)
    }
}

/// A worker at a place, which is lost after so many replies; its interrupt, and what it leaves
/// standing.
fn imagined(
    text: &str,
    place: &str,
    fail: &str,
    left: usize,
) -> (RemoteWorker, Arc<Interrupt>, Receiver<Vec<String>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (sender, stands) = channel();
    let interrupt = Arc::new(Interrupt::default());
    let service = ImaginedWorker {
        text: text.to_owned(),
        fail: fail.to_owned(),
        interrupt: Arc::clone(&interrupt),
        left: Mutex::new(sender),
    };
    let reader = theirs.try_clone().unwrap();
    let worker = Connection::to_coordinator(Closing(theirs), Arc::new(service));
    std::thread::spawn(move || worker.listen(reader));
    let reader = FramesAtMost {
        stream: ours.try_clone().unwrap(),
        left,
        bytes: VecDeque::new(),
    };
    let router = Router::new(Duration::ZERO);
    let why = |_: Option<&str>| ConnectionError::new("gone");
    let connection = router.connect(1, reader, Closing(ours), Box::new(why));
    let request = WorkerRequest::Turn(TurnRequest::Open(Box::default()));
    // A place may be lost before anything is asked of it.
    let Ok(conversation) = connection.open(COORDINATOR, &request) else {
        return imagined(text, place, fail, left);
    };
    let place = place.to_owned();
    let worker = RemoteWorker {
        place,
        conversation,
    };
    (worker, interrupt, stands)
}

/// Continues a run at two places, of which `x` is lost after so many replies.
fn race_at_places(study: &Study, ledger: &SharedLedger, fail: &str, left: usize) -> Reason {
    let (x, _, x_left) = imagined(&study.text, "x", fail, left);
    let (y, _, y_left) = imagined(&study.text, "y", fail, usize::MAX);
    let race = Coordinator {
        study,
        ledger: ledger.clone(),
        watcher: &Unwatched,
    };
    let mut places = RemoteExecutor {
        study,
        ledger: ledger.clone(),
        watcher: &Unwatched,
        interrupt: Arc::default(),
        workers: vec![x, y],
    };
    let reason = race.run(&mut places).unwrap();
    drop(places);
    assert_eq!(x_left.recv().unwrap(), [""; 0]);
    assert_eq!(y_left.recv().unwrap(), [""; 0]);
    reason
}

/// Order of a round, and those within its workloads.
type Orders = (Option<Vec<usize>>, Option<Vec<Vec<usize>>>);

/// Orders of the rounds, and the figures of every trial that counts, by its place in the design.
type Outcomes = (Vec<Orders>, Vec<(u32, usize, usize, String)>);

fn result(record: &Record) -> Outcomes {
    let orders = (1..=3).map(|round| (record.order_of(round), record.orders_of(round)));
    let orders = orders.collect();
    let complete = record.trials().filter(|t| t.ended == Ended::Complete);
    let mut figures: Vec<_> = complete
        .map(|t| {
            (
                t.round,
                t.configuration,
                t.workload,
                format!("{:?}", t.metrics),
            )
        })
        .collect();
    figures.sort();
    (orders, figures)
}

/// The order, the trials and their figures are those of a run at one place; each place is asked
/// for its own configurations alone.
#[test]
fn where_turns_are_executed_changes_nothing_of_the_run() {
    for text in [PLACES.to_owned(), adjacent()] {
        the_same_at_places(&text);
    }
}

/// The study whose rounds go workload by workload.
fn adjacent() -> String {
    format!("{PLACES}[trial]\nprovision = \"once\"\n")
}

fn the_same_at_places(text: &str) {
    let here = run_study(text, Fault::Never, "");
    let (_base, study, ledger) = begin(text);
    assert_eq!(
        race_at_places(&study, &ledger, "", usize::MAX),
        Reason::Rounds
    );
    let record = ledger.lock().record().clone();
    assert_eq!(result(&record), result(&here.record));
    assert_eq!(result(&record).1.len(), 3 * 6 * 2);
    let kinds = |record: &Record| -> Vec<_> {
        let lines = record
            .lines
            .iter()
            .map(|line| std::mem::discriminant(&line.event));
        lines.collect()
    };
    assert_eq!(kinds(&record), kinds(&here.record));
}

/// However far a place had come when it was lost, the run goes on to the same result.
#[test]
fn a_run_that_lost_a_place_is_resumed_to_the_same_result() {
    for text in [PLACES.to_owned(), adjacent()] {
        resumed_to_the_same_result(&text);
    }
}

fn resumed_to_the_same_result(text: &str) {
    let whole = run_study(text, Fault::Never, "").record;
    let mut lost = 0;
    for left in (0..).step_by(11) {
        let (_base, study, ledger) = begin(text);
        let reason = race_at_places(&study, &ledger, "", left);
        if reason == Reason::Rounds {
            break;
        }
        assert_eq!(reason, Reason::Lost, "{left}");
        lost += 1;
        let record = ledger.lock().record().clone();
        let detail = record.ended().unwrap().detail;
        assert!(detail.starts_with("x: gone"), "{detail}");
        let reason = race_at_places(&study, &ledger, "", usize::MAX);
        assert_eq!(reason, Reason::Rounds, "{left}");
        assert_eq!(result(ledger.lock().record()), result(&whole), "{left}");
    }
    assert!(lost > 10, "lost {lost} times only");
}

#[test]
fn a_trial_that_fails_at_a_place_takes_its_configuration_out_and_no_other() {
    let (_base, study, ledger) = begin(PLACES);
    // Each place fails at its own first trial of the level.
    assert_eq!(
        race_at_places(&study, &ledger, "measure b", usize::MAX),
        Reason::Rounds
    );
    let record = ledger.lock().record().clone();
    let failed = record
        .trials()
        .filter(|t| matches!(t.ended, Ended::Failed { .. }));
    let mut failed: Vec<usize> = failed.map(|trial| trial.configuration).collect();
    failed.sort_unstable();
    let names = |configuration: &usize| study.configurations[*configuration].name.as_str();
    assert_eq!(
        failed.iter().map(names).collect::<Vec<_>>(),
        ["b, x", "b, y"]
    );
    assert_eq!(record.order_of(3).unwrap().len(), 4);
}

/// A run on one machine that is not this one.
pub(super) fn race_on_another_machine(text: &str, fail: &str, left: usize) -> (Reason, Record) {
    let (_base, study, ledger) = begin(text);
    let (there, _, stands) = imagined(text, "liar", fail, left);
    let race = Coordinator {
        study: &study,
        ledger: ledger.clone(),
        watcher: &Unwatched,
    };
    let mut executor = RemoteExecutor {
        study: &study,
        ledger: ledger.clone(),
        watcher: &Unwatched,
        interrupt: Arc::default(),
        workers: vec![there],
    };
    let reason = race.run(&mut executor).unwrap();
    drop(executor);
    assert_eq!(stands.recv().unwrap(), [""; 0]);
    let record = ledger.lock().record().clone();
    (reason, record)
}

#[test]
fn configurations_take_turns_in_slices_on_another_machine_as_on_this_one() {
    let sliced = |record: &Record| -> Vec<_> {
        let trials = record.trials();
        let trials = trials.map(|t| {
            (
                t.round,
                t.configuration,
                t.ended.clone(),
                t.sliced.is_some(),
            )
        });
        trials.collect()
    };
    let text = slices::study("nothing", "");
    let here = run_study(&text, Fault::Never, "");
    let (reason, there) = race_on_another_machine(&text, "", usize::MAX);
    assert_eq!(reason, Reason::Rounds);
    assert_eq!(sliced(&there), sliced(&here.record));
    assert!(there.trials().all(|trial| trial.sliced.is_some()));
    let (reason, there) = race_on_another_machine(&slices::study("fail b", ""), "", usize::MAX);
    assert_eq!(reason, Reason::Rounds);
    assert_eq!(there.failures().count(), 1);
    let (reason, _) = race_on_another_machine(&text, "", 6);
    assert_eq!(reason, Reason::Lost);
}

#[test]
fn a_run_at_several_places_says_once_why_it_has_no_slices() {
    let warned = |text: &str| -> Vec<String> {
        let (_base, study, ledger) = begin(text);
        race_at_places(&study, &ledger, "", usize::MAX);
        let ledger = ledger.lock();
        let warnings = ledger.record().warnings().into_iter();
        warnings.map(str::to_owned).collect()
    };
    let places = "level = [\"a\", \"b\", \"c\"]\nsystem = [\"x\", \"y\"]";
    let could = slices::study("nothing", "").replace(r#"level = ["a", "b", "c"]"#, places);
    let said = warned(&could);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("on several machines") && said[0].ends_with("in one go, not in slices")
    );
    // Where none were asked for, and where no workload could have any, there is nothing to explain.
    assert_eq!(warned(&format!("{could}\nslice = \"off\"")), [""; 0]);
    assert_eq!(warned(PLACES), [""; 0]);
}

#[test]
fn an_interrupt_reaches_the_place_that_is_at_work() {
    let (_base, study, ledger) = begin(PLACES);
    let reason = race_at_places(&study, &ledger, "interrupt b", usize::MAX);
    assert_eq!(reason, Reason::Interrupted);
    let (_base, study, ledger) = begin(PLACES);
    let (x, there, left) = imagined(PLACES, "x", "", usize::MAX);
    let interrupt = Arc::new(Interrupt::default());
    interrupt.raise();
    let mut places = RemoteExecutor {
        study: &study,
        ledger,
        watcher: &Unwatched,
        interrupt,
        workers: vec![x],
    };
    let turn = Turn {
        round: 1,
        position: 0,
        configuration: 0,
        missing: vec![0, 1],
        keep: false,
        lies_on: Vec::new(),
    };
    assert_eq!(places.execute(&turn).unwrap(), Turned::Interrupted);
    assert!(there.raised());
    places.end().unwrap();
    drop(places);
    assert_eq!(left.recv().unwrap(), [""; 0]);
}
