//! Every kind of trial, failed and interrupted at every stage: nothing is left behind, such a trial never counts, and
//! its error says what was tried.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;
use std::sync::mpsc::channel;

use parking_lot::Mutex;
use stackrace_engine::spec::{Content, IoEngine, IoTarget, Spec, Stop};

use super::*;
use crate::run::beside;
use stackrace_base::event::{Counted, LedgerLine, OperationKind, Promise};
use stackrace_base::setting::Settings;
use stackrace_load::workload::Slicing;
use stackrace_remote::agent::message::{ClientSeat, PhaseOrder, PhaseReply, PhaseRequest};

/// Stages of a trial at which something happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    SetUp,
    Prepare,
    Settle,
    First,
    Between,
    Second,
    Observe,
    TearDown,
}

use Stage::{Between, First, Observe, Prepare, Second, SetUp, Settle, TearDown};

/// Things that happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Fails,
    Interrupted,
}

use Fate::{Fails, Interrupted};

/// The fate of the trials of configuration `b`, and what came of it.
struct Case {
    stage: Stage,
    fate: Fate,
    interrupt: Arc<Interrupt>,
    /// Trials whose workload was prepared and not finished.
    open: AtomicI64,
}

/// Phases may run in threads of their own: a case is found by its name.
static CASES: Mutex<BTreeMap<String, Arc<Case>>> = Mutex::new(BTreeMap::new());

impl Case {
    fn of(name: &str, stage: Stage, fate: Fate) -> Arc<Self> {
        let case = Arc::new(Self {
            stage,
            fate,
            interrupt: Arc::default(),
            open: AtomicI64::new(0),
        });
        CASES.lock().insert(name.to_owned(), Arc::clone(&case));
        case
    }

    /// Lets happen what is to happen at this stage.
    fn comes_to(&self, stage: Stage) -> Result<(), WorkloadError> {
        match self.fate {
            _ if self.stage != stage => Ok(()),
            Fails => Err(trouble(format!("{stage:?} was told to fail"))),
            Interrupted => {
                self.interrupt.raise();
                Ok(())
            }
        }
    }
}

/// A workload without I/O to which something happens where its level is `b`.
struct Staged {
    level: String,
    phases: u64,
    case: Arc<Case>,
}

pub(super) const STAGED: WorkloadKind = WorkloadKind {
    name: "staged",
    summary: "",
    source: "",
    settings: &[
        SettingDoc::text("level", "", "").required(),
        SettingDoc::text("case", "", "").required(),
        SettingDoc::count("phases", "2", ""),
    ],
    example: "",
    parse: |settings: &Settings| {
        let name = settings.text("case")?;
        let case = Arc::clone(CASES.lock().get(&name).expect("a case of that name"));
        Ok(Box::new(Staged {
            level: settings.text("level")?,
            phases: settings.count("phases")?,
            case,
        }))
    },
    ..WorkloadKind::PLAIN
};

impl Staged {
    fn comes_to(&self, stage: Stage) -> Result<(), WorkloadError> {
        match self.level.as_str() {
            "b" => self.case.comes_to(stage),
            _ => Ok(()),
        }
    }
}

impl Workload for Staged {
    fn summary(&self) -> String {
        String::new()
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![MetricHead {
            name: "phases".to_owned(),
            unit: "1".to_owned(),
            better: Better::Higher,
        }]
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn phases(&self) -> Vec<&'static str> {
        ["first", "second"][..self.phases as usize].to_vec()
    }

    fn slicing(&self) -> Slicing {
        match self.phases {
            1 => Slicing::Reads,
            _ => Slicing::Never,
        }
    }

    fn prepare(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        self.case.open.fetch_add(1, Ordering::SeqCst);
        self.comes_to(Prepare)
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        assert!(
            !self.case.interrupt.raised() || self.phases == 1,
            "a phase begins after the interrupt"
        );
        self.comes_to([First, Second][phase])?;
        let target = IoTarget {
            path: "none".into(),
            bytes: 1 << 20,
        };
        let spec = Spec {
            content: Content::Zero,
            engine: IoEngine::Null,
            stop: Stop {
                ops: Some(2000),
                time_ns: None,
            },
            ..Spec::reads(vec![target], 4096)
        };
        let outcome = stackrace_engine::run(&spec, place.control);
        if phase == 0 {
            self.comes_to(Between)?;
        }
        outcome.map_err(|error| trouble(error.to_string()))
    }

    fn promised(&self, _place: &Place<'_>, _outcome: &PhaseOutcome) -> Vec<LedgerLine> {
        let line = LedgerLine {
            number: 0,
            worker: 0,
            kind: OperationKind::Append,
            object: "data".to_owned(),
            offset: 0,
            bytes: 1,
            generation: 1,
            promise: Promise::Fsync,
            begun_ns: 0,
            acknowledged_ns: Some(1),
        };
        // What is promised cannot be put on record in these tests.
        self.comes_to(Observe).map_or(vec![line], |()| Vec::new())
    }

    fn finish(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        self.case.open.fetch_sub(1, Ordering::SeqCst);
        self.comes_to(TearDown)
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        vec![Some(outcomes.len() as f64)]
    }
}

/// Raises the interrupt of a case where a part of a trial of `b` begins.
struct AtPart(Arc<Case>);

impl Watcher for AtPart {
    fn begins(&self, start: &TrialStart<'_>) {
        let stage = match start.part {
            "set up" => SetUp,
            "settle" => Settle,
            _ => return,
        };
        if start.configuration == 1 && self.0.fate == Interrupted {
            self.0.comes_to(stage).unwrap();
        }
    }
    fn looked(&self, _answer: &CheckAnswer) {}
    fn warned(&self, _text: &str) {}
}

/// Ways in which a run measures its trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InRun {
    Whole,
    Slices,
}

impl InRun {
    /// The stage after which nothing is left to be stopped.
    fn last(self) -> Stage {
        match self {
            Self::Whole => TearDown,
            // What is observed is that of its only phase.
            Self::Slices => Observe,
        }
    }

    fn study(self, name: &str) -> Study {
        parsed(&self.text(name))
    }

    fn text(self, name: &str) -> String {
        let (phases, trial) = match self {
            Self::Whole => (2, "provision = \"each-round\""),
            Self::Slices => (1, "provision = \"once\"\nslice = \"10 ms\""),
        };
        format!(
            r#"title = "Staged"
seed = 7
[factors]
level = ["a", "b", "c"]
[[stack]]
tmpfs = {{ size = "16 MiB" }}
[[workload]]
staged = {{ level = "{{level}}", case = "{name}", phases = {phases} }}
[decide]
rounds-at-most = 2
at-most = "1 h"
until = "never"
[trial]
{trial}
"#
        )
    }

    /// A run of the study where a step of the machine may fail; its reason, its record, and the imagined machine.
    fn run(self, name: &str, case: &Arc<Case>, fault: Fault) -> (Reason, Record, PlanHost) {
        let (_base, study, ledger) = begin(&self.text(name));
        let host = stackrace_layers::stack::imagined(fault);
        let watcher = AtPart(Arc::clone(case));
        let race = Coordinator {
            study: &study,
            ledger: ledger.clone(),
            watcher: &watcher,
        };
        let tell = |event| match event {
            Event::Promised(_) => Err(Broken("no room".to_owned())),
            event => ledger.tell(event),
        };
        let mut here = here(&study, &host, &tell, &watcher, Arc::clone(&case.interrupt));
        let reason = race.run(&mut here).unwrap();
        drop(here);
        let record = ledger.lock().record().clone();
        (reason, record, host)
    }

    /// The step of the machine at which a stage of `b` in the first round fails.
    fn fault(self, name: &str, stage: Stage) -> Fault {
        // To the workload itself nothing happens when it settles.
        let well = Case::of(name, Settle, Fails);
        let (_, record, host) = self.run(name, &well, Fault::Never);
        let order = record.order_of(1).unwrap();
        let before = order.iter().position(|level| *level == 1).unwrap();
        let (tool, nth) = match (stage, self) {
            (SetUp, _) => ("mount", before),
            (Settle, Self::Whole) => ("sync", 2 * before),
            (Settle, Self::Slices) => ("sync", before),
            _ => return Fault::Never,
        };
        let steps = host.steps();
        let mut of_tool = (1..).zip(&steps).filter(|(_, step)| step.argv[0] == tool);
        Fault::Refused(of_tool.nth(nth).unwrap().0)
    }
}

/// The words with which the error of each stage says what was tried.
fn tried(stage: Stage) -> &'static str {
    match stage {
        SetUp => "cannot set up the stack: ",
        Prepare => "Prepare was told to fail",
        Settle => "cannot settle: ",
        First => "First was told to fail",
        Between => "Between was told to fail",
        Second => "Second was told to fail",
        Observe => "the ledger of what was promised cannot be kept: no room",
        TearDown => "after the trial: TearDown was told to fail",
    }
}

fn stopped_in_run(kind: InRun, stage: Stage, fate: Fate) {
    let name = format!("{kind:?}-{stage:?}-{fate:?}");
    let fault = match fate {
        // In a study of the same text: the order of its rounds follows from that.
        Fails => kind.fault(&name, stage),
        Interrupted => Fault::Never,
    };
    let case = Case::of(&name, stage, fate);
    let (reason, record, host) = kind.run(&name, &case, fault);
    assert_eq!(host.left(), [""; 0], "{name}");
    assert_eq!(case.open.load(Ordering::SeqCst), 0, "{name}: not finished");
    let of = |level: usize| {
        record
            .trials()
            .filter(move |trial| trial.configuration == level)
    };
    match (stage, fate) {
        // The figures were there already.
        (TearDown, Fails) => {
            let noted = of(1).all(|trial| trial.notes == [tried(stage)]);
            assert!(noted && of(1).count() == 2, "{name}");
            assert!(of(1).all(|trial| trial.ended == Ended::Complete), "{name}");
        }
        // All that it measures was measured by then; nothing follows it.
        _ if fate == Interrupted && [TearDown, kind.last()].contains(&stage) => {
            let ended: Vec<&Ended> = of(1).map(|trial| &trial.ended).collect();
            assert_eq!(ended, [&Ended::Complete], "{name}: it went on");
        }
        (_, Fails) => {
            let ended: Vec<&Ended> = of(1).map(|trial| &trial.ended).collect();
            let [Ended::Failed { error }] = ended[..] else {
                panic!("{name}: {ended:?}")
            };
            assert!(error.contains(tried(stage)), "{name}: {error}");
        }
        (_, Interrupted) => {
            let none = of(1).all(|trial| trial.ended == Ended::Interrupted);
            assert!(none, "{name}: it counts");
        }
    }
    match fate {
        Fails => {
            assert_eq!(reason, Reason::Rounds, "{name}");
            for other in [0, 2] {
                let whole = of(other).filter(|trial| trial.ended == Ended::Complete);
                assert_eq!(whole.count(), 2, "{name}: the others go on");
            }
        }
        Interrupted => assert_eq!(reason, Reason::Interrupted, "{name}"),
    }
}

#[test]
fn a_trial_of_a_run_stopped_at_any_stage_leaves_nothing_and_does_not_count() {
    for stage in [
        SetUp, Prepare, Settle, First, Between, Second, Observe, TearDown,
    ] {
        for fate in [Fails, Interrupted] {
            stopped_in_run(InRun::Whole, stage, fate);
        }
    }
}

#[test]
fn a_trial_in_slices_stopped_at_any_stage_leaves_nothing_and_does_not_count() {
    // It has one phase, and nothing between phases.
    for stage in [SetUp, Prepare, Settle, First, Observe, TearDown] {
        for fate in [Fails, Interrupted] {
            stopped_in_run(InRun::Slices, stage, fate);
        }
    }
}

/// Hooks of a trial outside of a run, for the stages that its workload does not see.
struct Around<'a>(&'a Case);

impl AroundPhase for Around<'_> {
    fn exchanged(&mut self) -> Option<String> {
        let told = self.0.comes_to(SetUp);
        told.err().map(|trouble| trouble.said)
    }

    fn before(&mut self, _phase: usize) {
        // It can be interrupted there, and not fail.
        let _ = self.0.comes_to(Settle);
    }

    fn after(&mut self, _phase: usize, _outcome: &PhaseOutcome, _counted: &Counted) {
        let _ = self.0.comes_to(Observe);
    }
}

#[test]
fn a_trial_outside_of_a_run_stopped_at_any_stage_is_finished_and_does_not_count() {
    let cases = [SetUp, Prepare, First, Between, Second, TearDown].map(|stage| (stage, Fails));
    let interrupted = [
        SetUp, Prepare, Settle, First, Between, Second, Observe, TearDown,
    ];
    let cases = cases.into_iter();
    for (stage, fate) in cases.chain(interrupted.map(|stage| (stage, Interrupted))) {
        let name = format!("single-{stage:?}-{fate:?}");
        let case = Case::of(&name, stage, fate);
        let study = InRun::Whole.study(&name);
        let directory = tempfile::tempdir().unwrap();
        let done = SingleTrial {
            workload: &*study.configurations[1].workloads[0],
            directory: directory.path(),
            existing: None,
            cold: false,
            seed: 1,
            interrupt: &case.interrupt,
        }
        .run(&mut Around(&case));
        assert_eq!(case.open.load(Ordering::SeqCst), 0, "{name}: not finished");
        let told = format!("{stage:?} was told to fail");
        match (stage, fate) {
            (TearDown, Fails) => {
                assert_eq!(done.ended, Ended::Complete, "{name}");
                assert_eq!(done.left, Some(told), "{name}");
            }
            (_, Fails) => {
                let failed = Ended::Failed { error: told };
                assert_eq!(done.ended, failed, "{name}");
                assert!(done.outcomes.len() < 2, "{name}");
            }
            (_, Interrupted) => assert_eq!(done.ended, Ended::Interrupted, "{name}"),
        }
    }
}

/// A trial on a machine beside the first one, which asks for one thing after the other. Returns what it said.
fn beside_the_first(seat: Option<ClientSeat>, name: &str, case: &Arc<Case>) -> Vec<PhaseReply> {
    let study = InRun::Whole.study(name);
    let base = tempfile::tempdir().unwrap();
    let directory = base.path().join("trial");
    let gone = (case.stage, case.fate) == (SetUp, Fails);
    if !gone {
        std::fs::create_dir(&directory).unwrap();
    }
    if case.fate == Interrupted {
        case.comes_to(SetUp).unwrap();
    }
    let order = PhaseOrder {
        name: "staged.toml".to_owned(),
        text: study.text.clone(),
        configuration: 1,
        workload: 0,
        directory: directory.clone(),
        seed: 7,
        seat,
    };
    let (asks, asked) = channel();
    let asks = Mutex::new(asks);
    let said = Mutex::new(Vec::new());
    let next = match seat {
        Some(_) => vec![PhaseRequest::Settle, PhaseRequest::SetUp],
        None => vec![PhaseRequest::Start],
    };
    let say = |reply: PhaseReply| {
        let asks = asks.lock();
        match reply {
            PhaseReply::Prepared | PhaseReply::Measured { .. } => {
                if case.stage == Settle && case.fate == Fails {
                    std::fs::remove_dir_all(&directory).unwrap();
                }
                next.iter().for_each(|one| asks.send(one.clone()).unwrap());
            }
            PhaseReply::SetUp => asks.send(PhaseRequest::StartAt { at_ns: 0 }).unwrap(),
            PhaseReply::Settled { .. } if case.fate == Interrupted => {
                case.comes_to(Settle).unwrap();
            }
            _ => {}
        }
        said.lock().push(reply);
        Ok(())
    };
    let grounds = KnownGrounds::default();
    let worked = beside::work(&order, &study, &grounds, &case.interrupt, &asked, &say);
    let mut said = said.into_inner();
    said.extend(worked.err().map(PhaseReply::from));
    said
}

#[test]
fn the_part_of_a_client_or_peer_stopped_at_any_stage_is_finished_and_says_why() {
    let seat = ClientSeat {
        rank: 0,
        of: 1,
        cold: true,
    };
    let stages = [SetUp, Prepare, Settle, First, Between, Second, TearDown];
    for (seat, stage) in [Some(seat), None]
        .into_iter()
        .flat_map(|seat| stages.map(|at| (seat, at)))
    {
        for fate in [Fails, Interrupted] {
            if stage == Settle && seat.is_none() {
                // Peers are not asked to settle.
                continue;
            }
            let name = format!("beside-{}-{stage:?}-{fate:?}", seat.is_some());
            let case = Case::of(&name, stage, fate);
            let said = beside_the_first(seat, &name, &case);
            assert_eq!(case.open.load(Ordering::SeqCst), 0, "{name}: not finished");
            let measured = said.iter();
            let measured = measured.filter(|reply| matches!(reply, PhaseReply::Measured { .. }));
            let most = match stage {
                SetUp | Prepare | Settle | First => 0,
                Between if fate == Fails => 0,
                Between | Second => 1,
                Observe | TearDown => 2,
            };
            assert!(measured.count() <= most, "{name}: {said:?}");
            let failed = match said.last() {
                Some(PhaseReply::Failed { said, .. }) => Some(said.as_str()),
                _ => None,
            };
            match (stage, fate) {
                (_, Interrupted) => assert_eq!(failed, None, "{name}"),
                (SetUp, Fails) => assert!(failed.unwrap().contains("trial"), "{name}: {failed:?}"),
                (Settle, Fails) => {
                    assert!(
                        failed.unwrap().contains("cannot settle"),
                        "{name}: {failed:?}"
                    );
                }
                _ => {
                    let told = format!("{stage:?} was told to fail");
                    assert_eq!(failed, Some(told.as_str()), "{name}");
                }
            }
        }
    }
}
