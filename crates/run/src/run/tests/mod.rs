//! The order of things, on an imagined machine, with a clock that is made up and a workload that
//! only tells that it was called.

mod adjacent;
mod conditioning;
mod ends;
mod left;
mod lies;
mod places;
mod slices;
mod stages;
mod standing_data;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use stackrace_engine::PhaseOutcome;

use super::*;
use stackrace_base::event::{
    Better, ConfigurationHead, Ended, Event, MetricHead, Observation, RunStarted,
};
use stackrace_base::setting::SettingDoc;
use stackrace_base::time::Clock;
use stackrace_judge::verdict::CheckAnswer;
use stackrace_load::workload::{Cost, Place, Workload, WorkloadError, WorkloadKind, trouble};
use stackrace_machine::host::plan::{Fault, PlanHost};
use stackrace_machine::journal::Journal;
use stackrace_results::record::{Record, Store};
use stackrace_study::study::{Kinds, Study};

thread_local! {
    /// Events, in order.
    static STORY: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Step that is to fail: `prepare b`, `measure b`, or to interrupt: `interrupt b`; once.
    static FAILS: RefCell<String> = const { RefCell::new(String::new()) };
    /// Factor of the figures, and by how much that changes from one to the next.
    static SHRINKS: RefCell<(f64, f64)> = const { RefCell::new((1.0, 1.0)) };
    /// Interrupt that an `interrupt` raises.
    static INTERRUPT: RefCell<Option<Arc<Interrupt>>> = const { RefCell::new(None) };
}

fn tell(what: impl Into<String>) {
    STORY.with_borrow_mut(|story| story.push(what.into()));
}

fn fails(what: &str) -> bool {
    FAILS.with_borrow_mut(|fails| {
        let now = fails == what;
        if now {
            fails.clear();
        }
        now
    })
}

/// Time of day at which the made-up clocks begin, ms: a machine whose clock is far from ours is not believed.
static BEGAN_MS: std::sync::LazyLock<i64> =
    std::sync::LazyLock::new(|| jiff::Timestamp::now().as_millisecond());

/// Time passes by a millisecond at every look.
#[derive(Default)]
struct MadeUp(AtomicU64);

impl Clock for MadeUp {
    fn now_ns(&self) -> u64 {
        self.0.fetch_add(1_000_000, Ordering::SeqCst)
    }

    fn today(&self) -> String {
        let ms = i64::try_from(self.now_ns() / 1_000_000).unwrap();
        let today = jiff::Timestamp::from_millisecond(*BEGAN_MS + ms);
        today.unwrap().to_string()
    }

    fn sleep(&self, _duration: Duration) {}
}

/// A workload that tells what is asked of it.
struct Told {
    level: String,
}

const TOLD: WorkloadKind = WorkloadKind {
    name: "told",
    summary: "",
    source: "",
    settings: &[SettingDoc::text("level", "", "").required()],
    example: "",
    parse: |settings| {
        Ok(Box::new(Told {
            level: settings.text("level")?,
        }))
    },
    ..WorkloadKind::PLAIN
};

impl Told {
    fn does(&self, what: &str) -> Result<(), WorkloadError> {
        let what = format!("{what} {}", self.level);
        tell(format!("  {what}"));
        if fails(&what) {
            return Err(trouble("told to fail".to_owned()));
        }
        Ok(())
    }
}

impl Workload for Told {
    fn summary(&self) -> String {
        String::new()
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![MetricHead {
            name: "throughput".to_owned(),
            unit: "B/s".to_owned(),
            better: Better::Higher,
        }]
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["first", "second"]
    }

    fn prepare(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        match fails(&format!("disk of {}", self.level)) {
            true => Err(trouble(std::io::Error::from_raw_os_error(28))),
            false => self.does("prepare"),
        }
    }

    fn measure(&self, phase: usize, _place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        self.does("measure")?;
        let mut ended = stackrace_engine::PhaseEnd::Complete;
        if phase == 0 && fails(&format!("interrupt {}", self.level)) {
            INTERRUPT.with_borrow(|interrupt| interrupt.as_ref().unwrap().raise());
            ended = stackrace_engine::PhaseEnd::Stopped;
        }
        Ok(PhaseOutcome {
            ended,
            ..PhaseOutcome::of_program("none", String::new(), 1_000_000, 1)
        })
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        let place = ["a", "b", "c"].iter().position(|l| *l == self.level);
        let shrunk = SHRINKS.with_borrow_mut(|(now, by)| {
            *now *= *by;
            *now
        });
        vec![Some((outcomes.len() << place.unwrap()) as f64 * shrunk)]
    }
}

/// Tells what begins, after what the host did until then.
struct Storyteller<'a> {
    host: &'a PlanHost,
    told: AtomicUsize,
    ledger: SharedLedger,
    log: PathBuf,
}

impl Storyteller<'_> {
    /// Tells what the host did since the last time; making and removing directories is left out.
    fn steps(&self) {
        let steps = self.host.steps();
        for step in &steps[self.told.swap(steps.len(), Ordering::SeqCst)..] {
            let tool = step.argv[0].to_string_lossy();
            if ["mount", "umount", "sync"].contains(&&*tool) {
                tell(format!("    {tool}"));
            }
        }
    }
}

impl Watcher for Storyteller<'_> {
    fn begins(&self, start: &TrialStart<'_>) {
        self.steps();
        if start.part == "set up" {
            let text = std::fs::read_to_string(&self.log).unwrap();
            let order = self.ledger.lock().record().order_of(start.round).unwrap();
            let order = format!(
                "\"round-started\",\"round\":{},\"order\":{order:?}",
                start.round
            );
            let order = order.replace(", ", ",");
            assert!(
                text.contains(&order),
                "{order} is not in the log yet\n{text}"
            );
        }
        let ledger = self.ledger.lock();
        let configuration = &ledger.record().head.configurations[start.configuration];
        tell(format!("{} {}", start.part, configuration.levels[0]));
    }

    fn looked(&self, _answer: &CheckAnswer) {}

    fn warned(&self, text: &str) {
        self.steps();
        tell(format!("warned {text}"));
    }
}

/// Watches nothing.
struct Unwatched;

impl Watcher for Unwatched {
    fn begins(&self, _start: &TrialStart<'_>) {}
    fn looked(&self, _answer: &CheckAnswer) {}
    fn warned(&self, _text: &str) {}
}

const STUDY: &str = r#"title = "Told"
seed = 7
[factors]
level = ["a", "b", "c"]
[[stack]]
tmpfs = { size = "16 MiB" }
[[workload]]
told = { level = "{level}" }
[decide]
rounds-at-most = 2
at-most = "1 h"
until = "never"
"#;

/// Things that a race left behind.
struct Run {
    reason: Reason,
    story: Vec<String>,
    record: Record,
    left: Vec<String>,
    steps: Vec<stackrace_machine::host::plan::Step>,
}

/// Runs the study on an imagined machine.
fn run(fault: Fault, fail: &str) -> Run {
    run_study(STUDY, fault, fail)
}

fn parsed(text: &str) -> Study {
    let kinds = Kinds {
        layers: stackrace_layers::stack::ALL,
        workloads: &[TOLD, slices::TURNING, stages::STAGED],
    };
    stackrace_study::study::parse("told.toml", text.as_bytes(), &kinds).unwrap()
}

/// A study, and a run of it in a store of its own.
fn begin(text: &str) -> (tempfile::TempDir, Study, SharedLedger) {
    let base = tempfile::tempdir().unwrap();
    let study = parsed(text);
    let store = Store::open(base.path()).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(MadeUp::default());
    let (log, line) = store.create_run(head(&study), clock).unwrap();
    let record = Record::begin(line).unwrap();
    let ledger = SharedLedger::new(Ledger::new(log, store.index(), record));
    (base, study, ledger)
}

fn run_study(text: &str, fault: Fault, fail: &str) -> Run {
    let (base, study, ledger) = begin(text);
    let host = stackrace_layers::stack::imagined(fault);
    let interrupt = Arc::new(Interrupt::default());
    STORY.take();
    FAILS.set(fail.to_owned());
    INTERRUPT.set(Some(Arc::clone(&interrupt)));
    let watcher = Storyteller {
        host: &host,
        told: AtomicUsize::new(0),
        ledger: ledger.clone(),
        log: base.path().join("runs/told/log.jsonl"),
    };
    let race = Coordinator {
        study: &study,
        ledger: ledger.clone(),
        watcher: &watcher,
    };
    let tell = |event| ledger.tell(event);
    let reason = race.run(&mut here(&study, &host, &tell, &watcher, interrupt));
    let reason = reason.unwrap();
    watcher.steps();
    // Without SQLite there is no index, and a run says so.
    assert_eq!(
        ledger.lock().index_trouble().is_none(),
        cfg!(feature = "sqlite")
    );
    let record = ledger.lock().record().clone();
    let text = std::fs::read(&watcher.log).unwrap();
    let kept = Record::parse(&text, Path::new("log")).unwrap();
    assert_eq!(
        kept.lines.len(),
        record.lines.len(),
        "not all is in the log"
    );
    Run {
        reason,
        story: STORY.take(),
        record,
        left: host.left(),
        steps: host.steps(),
    }
}

fn here<'a>(
    study: &'a Study,
    host: &'a dyn stackrace_machine::host::Host,
    tell: &'a dyn Fn(Event) -> Result<(), Broken>,
    watcher: &'a dyn Watcher,
    interrupt: Arc<Interrupt>,
) -> LocalExecutor<'a> {
    LocalExecutor {
        study,
        tell,
        host,
        peers: &[],
        clients: None,
        machine: None,
        journal: Box::leak(Box::new(Journal::nowhere())),
        // Of this machine, which the imagined one knows, so that it is not made.
        scratch: PathBuf::from("/tmp"),
        clock: Arc::new(MadeUp::default()),
        watcher,
        interrupt,
        execution: "told".to_owned(),
        wipe: Vec::new(),
        first_look: LocalExecutor::first_look(study, host),
        standing: Vec::new(),
        crash: crash::CrashSide::default(),
        lost: RefCell::default(),
    }
}

fn head(study: &Study) -> RunStarted {
    RunStarted {
        format: stackrace_base::event::FORMAT,
        run: "told".to_owned(),
        stackrace: String::new(),
        command: Vec::new(),
        study: study.text.clone(),
        study_name: study.name.clone(),
        study_hash: study.hash(),
        title: study.title.clone(),
        factors: study.factors.iter().map(|f| f.name.clone()).collect(),
        configurations: study
            .configurations
            .iter()
            .map(|configuration| ConfigurationHead {
                cost: None,
                name: configuration.name.clone(),
                levels: configuration.levels.clone(),
            })
            .collect(),
        workloads: study.workload_heads.clone(),
        decide: study.decide.clone(),
        seed: study.seed,
        place: None,
        environment: Vec::new(),
    }
}

impl Run {
    /// The order of a round, by letters.
    fn order(&self, round: u32) -> Vec<&'static str> {
        let order = self.record.order_of(round).unwrap();
        order.into_iter().map(|t| ["a", "b", "c"][t]).collect()
    }

    /// Kinds of the events, without those of single commands.
    fn events(&self) -> Vec<String> {
        let kind = |event: &Event| {
            let value = serde_json::to_value(event).unwrap();
            value["event"].as_str().unwrap().to_owned()
        };
        self.record
            .lines
            .iter()
            .map(|line| kind(&line.event))
            .collect()
    }

    /// Returns how the trials of a configuration ended.
    fn ended(&self, level: &str) -> Vec<&'static str> {
        let configuration = ["a", "b", "c"].iter().position(|l| *l == level).unwrap();
        let of = self
            .record
            .trials()
            .filter(|trial| trial.configuration == configuration);
        of.map(|trial| match trial.ended {
            Ended::Complete => "complete",
            Ended::Failed { .. } => "failed",
            Ended::Interrupted => "interrupted",
        })
        .collect()
    }
}

/// One whole trial of a level.
fn whole(level: &str) -> Vec<String> {
    let words = [
        "set up *",
        "    mount",
        "prepare *",
        "  prepare *",
        "settle *",
        "    sync",
        "first *",
        "  measure *",
        "settle *",
        "    sync",
        "second *",
        "  measure *",
        "    umount",
    ];
    words.iter().map(|word| word.replace('*', level)).collect()
}

/// The beginning of a trial up to and with one thing.
fn until(level: &str, last: &str) -> Vec<String> {
    let mut story = whole(level);
    let at = story.iter().position(|word| word.trim() == last).unwrap();
    story.truncate(at + 1);
    story
}

#[test]
fn a_trial_sets_up_prepares_settles_measures_and_tears_down() {
    let run = run(Fault::Never, "");
    let orders = [run.order(1), run.order(2)].concat();
    let expected: Vec<String> = orders.iter().flat_map(|level| whole(level)).collect();
    assert_eq!(run.story, expected);
    let trial = ["stack-set-up", "trial", "stack-torn-down"];
    let round = [
        &["round-started"],
        &trial[..],
        &trial,
        &trial,
        &["round-finished"],
    ]
    .concat();
    let head: &[&str] = &["run-started"];
    assert_eq!(
        run.events(),
        [head, &round, &round, &["run-ended"]].concat()
    );
    assert_eq!(run.reason, Reason::Rounds);
    assert_eq!(run.left, [""; 0]);
}

#[test]
fn a_configuration_whose_trial_fails_is_torn_down_and_not_tried_again() {
    for (fail, last) in [("prepare b", "prepare b"), ("measure b", "measure b")] {
        let run = run(Fault::Never, fail);
        let mut expected = Vec::new();
        for level in run.order(1) {
            if level == "b" {
                let told = format!("  {last}");
                let mut broken = whole("b");
                let at = broken.iter().position(|word| *word == told).unwrap();
                broken.truncate(at + 1);
                expected.extend(broken);
                expected.extend(["warned b: told to fail".to_owned(), "    umount".to_owned()]);
            } else {
                expected.extend(whole(level));
            }
        }
        expected.extend(run.order(2).iter().flat_map(|level| whole(level)));
        assert_eq!(run.story, expected, "{fail}");
        assert!(!run.order(2).contains(&"b"), "it is still in the order");
        assert_eq!(run.ended("b"), ["failed"]);
        assert_eq!(run.ended("a"), ["complete", "complete"]);
        assert_eq!(run.reason, Reason::Rounds);
        assert_eq!(run.left, [""; 0]);
    }
}

#[test]
fn a_configuration_that_cannot_be_set_up_is_not_tried_again() {
    let mounts = |run: &Run| -> Vec<usize> {
        let steps = run.steps.iter().enumerate();
        steps
            .filter(|(_, step)| step.argv[0] == "mount")
            .map(|(at, _)| at + 1)
            .collect()
    };
    let at = mounts(&run(Fault::Never, ""));
    // The second configuration of the first round.
    let run = run(Fault::Refused(at[1]), "");
    let order = run.order(1);
    let mut expected = whole(order[0]);
    expected.extend(until(order[1], "mount"));
    let warned = expected.len();
    expected.extend(whole(order[2]));
    expected.extend(run.order(2).iter().flat_map(|level| whole(level)));
    let mut story = run.story.clone();
    let warning = story.remove(warned);
    assert_eq!(story, expected);
    assert!(
        warning.starts_with(&format!("warned {}: cannot set up the stack", order[1])),
        "{warning}"
    );
    assert_eq!(run.ended(order[1]), ["failed"]);
    assert_eq!(run.order(2).len(), 2);
    assert_eq!(run.reason, Reason::Rounds);
    assert_eq!(run.left, [""; 0]);
}

#[test]
fn a_tear_down_that_failed_is_tried_again_before_the_next_trial() {
    let steps = run(Fault::Never, "").steps;
    let at = steps.iter().position(|step| step.argv[0] == "umount");
    let run = run(Fault::Refused(at.unwrap() + 1), "");
    let order = run.order(1);
    let mut expected = whole(order[0]);
    let mut story = run.story.clone();
    let warning = story.remove(expected.len());
    assert!(
        warning.starts_with(&format!("warned {}: cannot tear down the stack", order[0])),
        "{warning}"
    );
    expected.push("    umount".to_owned());
    expected.extend(order[1..].iter().flat_map(|level| whole(level)));
    expected.extend(run.order(2).iter().flat_map(|level| whole(level)));
    assert_eq!(story, expected);
    assert_eq!(run.left, [""; 0]);
}

#[test]
fn an_interrupt_tears_down_what_stands_and_begins_nothing() {
    let run = run(Fault::Never, "interrupt b");
    let order = run.order(1);
    let before = order.iter().take_while(|level| **level != "b");
    let mut expected: Vec<String> = before.flat_map(|level| whole(level)).collect();
    expected.extend(until("b", "measure b"));
    expected.push("    umount".to_owned());
    assert_eq!(run.story, expected);
    assert_eq!(run.ended("b"), ["interrupted"]);
    assert_eq!(run.events().last().unwrap(), "run-ended");
    assert_eq!(run.reason, Reason::Interrupted);
    assert_eq!(run.left, [""; 0]);
}

#[test]
fn stacks_provisioned_once_stand_from_their_first_round_to_the_end() {
    let text = format!("{STUDY}[trial]\nprovision = \"once\"\n");
    let run = run_study(&text, Fault::Never, "");
    let mut expected = Vec::new();
    for round in [1, 2] {
        for level in run.order(round) {
            let mut trial = whole(level);
            trial.pop();
            if round == 2 {
                trial.drain(..2);
            }
            expected.extend(trial);
        }
    }
    expected.extend(["    umount"; 3].map(str::to_owned));
    assert_eq!(run.story, expected);
    assert_eq!(run.left, [""; 0]);
}

/// One configuration's story from set-up to tear-down, with so many passes before the trial.
fn worn_in(level: &str, passes: usize) -> Vec<String> {
    let whole = whole(level);
    let (raised, rest) = whole.split_at(2);
    let (trial, lowered) = rest.split_at(rest.len() - 1);
    let mut story = raised.to_vec();
    for pass in 1..=passes {
        let named = |word: &String| match word.starts_with(' ') {
            true => word.clone(),
            false => format!("pass {pass}: {word}"),
        };
        story.extend(trial.iter().map(named));
    }
    story.extend_from_slice(trial);
    story.extend_from_slice(lowered);
    story
}
