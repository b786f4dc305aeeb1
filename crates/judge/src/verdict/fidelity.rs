//! How like the recorded application a replay is: judged by the trials on the storage where it was recorded. No verdict
//! about the application rests on a replay that is not like it.

use stackrace_stats::FIRST_LOOK;

use super::evidence::Evidence;
use super::table::ComparedFigure;
use stackrace_base::event::{
    DeviceCounted, Ended, NotByElapsed, Observation, OperationObservation, RecordedApplication,
    RecordedDevice, WorkloadHead,
};
use stackrace_base::unit::{self, Rounded, counted};

/// Time of a replay as a multiple of the recorded one, or its inverse, above which it is not like the application.
const TIME_MAX: f64 = 1.15;
/// The same for bytes and flushes of the devices; smaller differences are those of a journal, which is
/// written now or later.
const DEVICE_MAX: f64 = 0.1;
const BYTES_MIN: u64 = 1 << 20;
const FLUSHES_MIN: u64 = 10;
const FLUSHED: &str = "flushed";
/// Kinds of calls that are named, those with the most time.
const NAMED: usize = 4;

/// A replay on the storage where it was recorded. Pairs are recorded, replayed; what was replayed is the median of the
/// trials, as one alone may be disturbed.
struct Fidelity<'a> {
    recorded: &'a RecordedApplication,
    trials: Vec<&'a Observation>,
}

/// A figure of the devices: its verb, the recorded one and the replayed one, and the difference that does not matter.
type DeviceFigure = (&'static str, [u64; 2], u64);

/// The trials of a workload on the storage where it was recorded; `None` if it replays nothing, that storage is not
/// compared, or they are fewer than the first look needs.
fn of<'a>(evidence: &Evidence<'a>, workload: usize) -> Option<Fidelity<'a>> {
    let recorded = evidence.head.workloads.get(workload)?.recorded.as_deref()?;
    let home = recorded.home?;
    let all = evidence.trials.iter().copied();
    let trials = all.filter(|trial| {
        (trial.configuration, trial.workload) == (home, workload) && trial.ended == Ended::Complete
    });
    let trials: Vec<&Observation> = trials.collect();
    (trials.len() >= FIRST_LOOK as usize).then_some(Fidelity { recorded, trials })
}

/// Returns true if a figure rests on a replay that is not like its application.
pub(super) fn is_unlike(evidence: &Evidence<'_>, figure: ComparedFigure) -> bool {
    let parts = figure.parts(evidence.head).into_iter();
    parts
        .filter_map(|(workload, _)| of(evidence, workload))
        .any(|found| found.unlike().is_some())
}

/// Why no verdict over all workloads can be given, as a clause; `None` if no replay is in the way.
pub fn withheld(evidence: &Evidence<'_>) -> Option<String> {
    let parts = ComparedFigure::Overall.parts(evidence.head).into_iter();
    let mut unlike = parts.filter_map(|(workload, _)| {
        let head = &evidence.head.workloads[workload];
        let why = of(evidence, workload)?.unlike()?;
        let home = home_name(evidence, head);
        Some(format!(
            "the replay of {} on {home} is not like the application: {why}",
            head.name
        ))
    });
    unlike.next()
}

/// What to do where no verdict is given for that.
pub const RECORD_AGAIN: &str = "record the application again, on a machine with nothing else to do, with the caches as cold as they are here";

fn home_name<'a>(evidence: &Evidence<'a>, head: &WorkloadHead) -> &'a str {
    let recorded = head.recorded.as_ref();
    let home = recorded.and_then(|recorded| evidence.head.configurations.get(recorded.home?));
    home.map_or("", |home| &home.name)
}

/// For the reader: how like its application each replay is, and what it is judged by.
pub(super) fn notes(evidence: &Evidence<'_>) -> Vec<String> {
    let heads = evidence.head.workloads.iter().enumerate();
    let mut notes = Vec::new();
    for (workload, head) in heads {
        let Some(recorded) = &head.recorded else {
            continue;
        };
        let name = &head.name;
        match (recorded.home, of(evidence, workload)) {
            (None, _) => notes.push(format!(
                "{name}: how like the application this replay is, is not known: the storage where it was recorded is not \
                 among those that are measured (home)"
            )),
            (Some(_), Some(found)) => {
                let home = home_name(evidence, head);
                notes.push(format!("{name}: fidelity on {home}, {}", found.words()));
            }
            // Too few trials for anything: the verdict says so.
            (Some(_), None) => {}
        }
        notes.extend(judged_by(head, recorded));
    }
    notes
}

/// What is judged in place of the elapsed time, and why.
fn judged_by(head: &WorkloadHead, recorded: &RecordedApplication) -> Option<String> {
    let because = recorded.not_by_elapsed.as_ref()?;
    let first = head
        .metrics
        .first()
        .filter(|first| first.name != "elapsed")?;
    let why = match because {
        NotByElapsed::Waits => "the recorded application mostly waits for others".to_owned(),
        NotByElapsed::Arrivals => "what it is asked for arrives when it did".to_owned(),
        NotByElapsed::Joins { shared, syncs } => format!(
            "{} of {} syncs of the recorded application were shared by several threads, as many as the storage was slow, \
             and a replay makes the same ones everywhere",
            unit::count(*shared),
            unit::count(*syncs)
        ),
    };
    Some(format!(
        "{}: {why}, so {} is compared, and not the elapsed time",
        head.name, first.name
    ))
}

fn ratio([recorded, replayed]: [f64; 2]) -> f64 {
    replayed / recorded.max(1.0)
}

fn times(pair: [f64; 2]) -> String {
    format!("{} x", unit::decimals(ratio(pair), 2, Rounded::Nearest))
}

impl Fidelity<'_> {
    /// The median of a figure of the trials; `None` if one has none.
    fn median(&self, figure: impl Fn(&Observation) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> = self.trials.iter().map(|trial| figure(trial)).collect();
        stackrace_stats::median(&values?)
    }

    fn elapsed_ns(&self) -> [f64; 2] {
        let replayed = self.median(|trial| Some(trial.elapsed_ns as f64));
        [self.recorded.elapsed_ns as f64, replayed.unwrap_or(0.0)]
    }

    /// What the replay is unlike the application in; none: it is like it.
    fn unlike(&self) -> Option<String> {
        let elapsed = self.elapsed_ns();
        if !(1.0 / TIME_MAX..=TIME_MAX).contains(&ratio(elapsed)) {
            return Some(format!("it takes {} the time", times(elapsed)));
        }
        let differs = |(_, [recorded, replayed], least): &DeviceFigure| {
            let most = (*recorded as f64 * DEVICE_MAX).max(*least as f64);
            recorded.abs_diff(*replayed) as f64 > most
        };
        let differing = self.device_figures().into_iter().find(differs);
        differing.map(|(verb, [recorded, replayed], _)| {
            let shown = |number| match verb {
                FLUSHED => format!("{} times", unit::count(number)),
                _ => unit::bytes(number),
            };
            format!(
                "the device {verb} {}, recorded were {} (whatever else uses the device counts, too)",
                shown(replayed),
                shown(recorded)
            )
        })
    }

    fn device_figures(&self) -> Vec<DeviceFigure> {
        let Some(recorded) = self.recorded.device else {
            return Vec::new();
        };
        let figure = |verb,
                      before: fn(&RecordedDevice) -> Option<u64>,
                      after: fn(&DeviceCounted) -> Option<u64>,
                      least| {
            let replayed = self.median(|trial| {
                let counted = trial.counted.storage()?;
                Some(after(&counted)? as f64)
            });
            Some((verb, [before(&recorded)?, replayed? as u64], least))
        };
        [
            figure(
                "read",
                |it| Some(it.read_bytes),
                |it| Some(it.read_bytes),
                BYTES_MIN,
            ),
            figure(
                "wrote",
                |it| Some(it.written_bytes),
                |it| Some(it.written_bytes),
                BYTES_MIN,
            ),
            figure(FLUSHED, |it| it.flushes, |it| it.flushes, FLUSHES_MIN),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn device_words(&self) -> String {
        let figures = self.device_figures();
        if figures.is_empty() {
            return "what the device did is not known".to_owned();
        }
        let each = figures.iter().map(|(verb, [recorded, replayed], _)| {
            // Nothing of nothing is no ratio.
            match (*recorded, *replayed) {
                (0, 0) => format!("{verb} nothing, as recorded"),
                (0, _) => format!("{verb}, which was not recorded"),
                (recorded, replayed) => {
                    format!("{verb} {}", times([recorded as f64, replayed as f64]))
                }
            }
        });
        format!("the device {}", each.collect::<Vec<_>>().join(", "))
    }

    /// Kinds of calls, with their times.
    fn operation_words(&self) -> Option<String> {
        // The others hardly add to the time.
        let operations = self.recorded.operations.iter().take(NAMED);
        let each = operations.filter_map(|recorded| {
            let figure = |of: fn(&OperationObservation) -> f64| {
                self.median(|trial| {
                    let mut all = trial.phases.iter().flat_map(|phase| &phase.operations);
                    all.find(|found| found.op == recorded.op).map(of)
                })
            };
            // A kind that was never replayed has no time to compare.
            let replayed = figure(|it| it.latency_ns_mean * it.count as f64)?;
            Some(format!(
                "{} {} (p99 {}, recorded {})",
                recorded.op,
                times([recorded.ns as f64, replayed]),
                unit::time_ns(figure(|it| it.latency_ns_p99 as f64)?),
                unit::time_ns(recorded.ns_p99 as f64)
            ))
        });
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| each.join(", "))
    }

    /// How many results differ, of the worst trial.
    fn result_words(&self) -> Option<String> {
        let phases = self.trials.iter().flat_map(|trial| &trial.phases);
        let worst = phases.filter_map(|phase| phase.replayed);
        let worst = worst.max_by_key(|replayed| replayed.differing)?;
        Some(format!(
            "{} of {} results differ",
            unit::count(worst.differing),
            unit::count(worst.calls)
        ))
    }

    /// All of it, in sentences.
    fn words(&self) -> String {
        let recorded = self.recorded;
        let time = format!(
            "where it was recorded ({}; the middle of {}): time {} of the recorded one (without what recording took)",
            recorded.file_system,
            counted(self.trials.len(), "trial"),
            times(self.elapsed_ns()),
        );
        let covered = format!(
            "{} of events lost, recording cost about {}, {} of the time on storage is replayed",
            unit::percent(recorded.lost),
            unit::percent(recorded.cost),
            unit::percent(recorded.covered),
        );
        let parts = [
            Some(time),
            self.operation_words(),
            Some(self.device_words()),
            self.result_words(),
            Some(covered),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}
