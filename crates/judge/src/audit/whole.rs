//! All judgements of a run: of each configuration on each workload, and across configurations.

use std::collections::BTreeSet;

use serde::Serialize;

use super::across::{self, RunReading, Unlike, named};
use super::cell::AuditCell;
use super::check::AuditCheck;
use super::group;
use super::judgement::{CheckFinding, Grade, Judgement, LimitedBy};
use super::limit::{Limit, limits};
use super::list::{checks, checks_of};
use super::reading::TrialReading;
use super::set_ups::SetUps;
use super::trial::{
    AuditedTrial, Findings, TrialAudit, TrialPace, findings, memory_bytes, pace, trial_audit,
};
use stackrace_base::event::{Ended, Observation, RunStarted};

/// Trials that must show the same where one may by chance.
const TRIALS_MIN: usize = 2;

/// More workloads than this with the same note share one.
const WORKLOADS_APART_MAX: usize = 2;

/// Everything that is said about what a run measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// Physical limits on record.
    pub limits: Vec<Limit>,
    /// Each configuration on each workload that has a complete trial, workload by workload.
    pub cells: Vec<AuditCell>,
    /// Differences between the configurations that were not asked about, bottlenecks first.
    pub unlike: Vec<Unlike>,
}

/// A trial with what each check found.
struct Judged {
    workload: usize,
    configuration: usize,
    round: u32,
    findings: Findings,
}

impl Audit {
    /// Judges complete trials; those of other tools, of which nothing was counted, are left out.
    pub fn of(head: &RunStarted, trials: &[&Observation], set_ups: &SetUps<'_>) -> Self {
        Self::by(
            &checks_of(head.place().in_virtual_time()),
            head,
            trials,
            set_ups,
        )
    }

    /// The same with these checks, in the order of their priority.
    fn by(
        checks: &[&'static AuditCheck],
        head: &RunStarted,
        trials: &[&Observation],
        set_ups: &SetUps<'_>,
    ) -> Self {
        let mut audit = Self {
            limits: limits(&head.environment),
            cells: Vec::new(),
            unlike: Vec::new(),
        };
        let memory_bytes = memory_bytes(&head.environment);
        let processors_allowed = group::processors(&head.environment);
        let mut judged: Vec<Judged> = Vec::new();
        for trial in trials.iter().copied() {
            let known = trial.workload < head.workloads.len()
                && trial.configuration < head.configurations.len();
            if known && trial.ended == Ended::Complete && trial.settled.caches != "unknown" {
                let reading = TrialReading {
                    trial,
                    whose: head.workloads[trial.workload].operations(),
                    level: head.workloads[trial.workload].is_level(),
                    limits: &audit.limits,
                    memory_bytes,
                    processors_allowed,
                };
                judged.push(Judged {
                    workload: trial.workload,
                    configuration: trial.configuration,
                    round: trial.round,
                    findings: findings(checks, &reading),
                });
            }
        }
        judged.sort_by_key(|trial| (trial.workload, trial.configuration, trial.round));
        let place = |trial: &Judged| (trial.workload, trial.configuration);
        let cells = judged.chunk_by(|a, b| place(a) == place(b));
        audit.cells = cells.map(|trials| cell(checks, trials)).collect();
        audit.unlike = unlike(head, &audit.cells);
        let run = RunReading {
            head,
            trials,
            set_ups,
            cells: &audit.cells,
        };
        audit.unlike.extend(across::differences(&run));
        audit
    }

    /// Audit of one trial.
    pub fn trial(&self, head: &RunStarted, trial: &Observation) -> Option<TrialAudit> {
        let workload = head.workloads.get(trial.workload)?;
        let of = AuditedTrial {
            whose: workload.operations(),
            level: workload.is_level(),
            environment: &head.environment,
            in_virtual_time: head.place().in_virtual_time(),
        };
        trial_audit(&of, trial)
    }

    /// One configuration on one workload; `None` if it has no complete trial.
    #[cfg(test)]
    fn cell(&self, configuration: usize, workload: usize) -> Option<&AuditCell> {
        let place =
            |cell: &&AuditCell| (cell.configuration, cell.workload) == (configuration, workload);
        self.cells.iter().find(place)
    }
}

fn cell(checks: &[&'static AuditCheck], trials: &[Judged]) -> AuditCell {
    let judgements = checks.iter().filter_map(|check| {
        let found = trials.iter().filter_map(|trial| {
            let mut all = trial.findings.iter();
            let mine = all.find(|(known, _)| known.name == check.name)?;
            Some((trial.round, &mine.1))
        });
        judgement(check.name, &found.collect::<Vec<_>>())
    });
    let (limited_by, limited_how) = paced(trials);
    AuditCell {
        configuration: trials[0].configuration,
        workload: trials[0].workload,
        trials: trials.len(),
        limited_by,
        limited_how,
        judgements: judgements.collect(),
    }
}

/// The gravest of all trials, shown by the one that shows it most.
fn judgement(check: &'static str, found: &[(u32, &CheckFinding)]) -> Option<Judgement> {
    let chances = found.iter().filter(|(_, finding)| finding.by_chance);
    let chances = chances.count();
    let often = chances >= TRIALS_MIN && 2 * chances >= found.len();
    let counts = |finding: &CheckFinding| often || !finding.by_chance;
    let counted = found.iter().filter(|(_, finding)| counts(finding));
    let grade = counted.map(|(_, finding)| finding.grade).max()?;
    let of_grade = || found.iter().filter(|(_, f)| counts(f) && f.grade == grade);
    let (round, shown) = of_grade().max_by(|a, b| a.1.strength.total_cmp(&b.1.strength))?;
    Some(Judgement {
        check,
        grade,
        sentence: shown.sentence.clone(),
        values: of_grade()
            .filter_map(|(_, finding)| Some(finding.evidence.first()?.value))
            .collect(),
        trials: of_grade().count(),
        of: found.len(),
        round: *round,
        evidence: shown.evidence.clone(),
        strength: shown.strength,
    })
}

/// The limit that set the pace in more than half of the trials, with the words of the middle one of them.
fn paced(trials: &[Judged]) -> (Option<LimitedBy>, String) {
    let paces = trials.iter().filter_map(|trial| pace(&trial.findings));
    let paces: Vec<TrialPace> = paces.collect();
    let count = |by: LimitedBy| paces.iter().filter(|pace| pace.by == by).count();
    let most = paces
        .iter()
        .map(|pace| pace.by)
        .max_by_key(|by| (count(*by), *by));
    let Some(most) = most else {
        return (None, String::new());
    };
    if 2 * count(most) <= paces.len() {
        let kinds: BTreeSet<LimitedBy> = paces.iter().map(|pace| pace.by).collect();
        let words: Vec<&str> = kinds.into_iter().map(LimitedBy::words).collect();
        let how = format!("differs between trials: {}", words.join(", "));
        return (Some(LimitedBy::NoSinglePart), how);
    }
    let mut same: Vec<&TrialPace> = paces.iter().filter(|pace| pace.by == most).collect();
    same.sort_by(|a, b| a.strength.total_cmp(&b.strength));
    (Some(most), same[(same.len() - 1) / 2].how.clone())
}

/// Workloads on which the configurations have definite and different limits.
fn unlike(head: &RunStarted, cells: &[AuditCell]) -> Vec<Unlike> {
    let mut found = Vec::new();
    for same in cells.chunk_by(|a, b| a.workload == b.workload) {
        let definite = same.iter().filter_map(|cell| {
            let by = cell
                .limited_by
                .filter(|by| *by != LimitedBy::NoSinglePart)?;
            Some((by, cell.configuration))
        });
        let definite: Vec<(LimitedBy, usize)> = definite.collect();
        let kinds: BTreeSet<LimitedBy> = definite.iter().map(|(by, _)| *by).collect();
        if kinds.len() < 2 {
            continue;
        }
        let part = |by: &LimitedBy| {
            let mine = definite.iter().filter(|(other, _)| other == by);
            let names: Vec<usize> = mine.map(|(_, configuration)| *configuration).collect();
            format!("{}: {}", named(head, &names), by.words())
        };
        let parts: Vec<String> = kinds.iter().map(part).collect();
        found.push(Unlike {
            check: "bottlenecks",
            sentence: format!(
                "{}: different bottlenecks ({}), so different parts are compared",
                head.workloads[same[0].workload].name,
                parts.join("; ")
            ),
        });
    }
    found
}

/// Sentences about a run's trials: what the reader must know before believing the figures. Limits
/// are not among them, unless they differ.
pub fn notes(head: &RunStarted, trials: &[&Observation], set_ups: &SetUps<'_>) -> Vec<String> {
    let audit = Audit::of(head, trials, set_ups);
    let mut notes = Vec::new();
    for check in checks() {
        let grave: Vec<(&AuditCell, &Judgement)> = audit
            .cells
            .iter()
            .filter_map(|cell| Some((cell, cell.judgement(check.name)?)))
            .filter(|(_, judgement)| judgement.grade > Grade::Ok)
            .filter(|_| !check.limits)
            .collect();
        let by_workload: Vec<_> = grave
            .chunk_by(|a, b| a.0.workload == b.0.workload)
            .collect();
        if by_workload.len() > WORKLOADS_APART_MAX {
            let place = format!(
                "{} of {} workloads",
                by_workload.len(),
                head.workloads.len()
            );
            notes.extend(note(&place, &grave));
        } else {
            notes.extend(
                by_workload
                    .iter()
                    .filter_map(|same| note(&place(head, &audit, same), same)),
            );
        }
    }
    notes.extend(audit.unlike.into_iter().map(|unlike| unlike.sentence));
    notes.extend(failed(head, trials));
    notes
}

/// `browse`, or `browse, xfs` where not all configurations are concerned.
fn place(head: &RunStarted, audit: &Audit, cells: &[(&AuditCell, &Judgement)]) -> String {
    let at = cells[0].0.workload;
    let workload = head.workloads[at].name.as_str();
    let all = audit
        .cells
        .iter()
        .filter(|cell| cell.workload == at)
        .count();
    if cells.len() == all {
        return workload.to_owned();
    }
    let configurations: Vec<usize> = cells.iter().map(|(cell, _)| cell.configuration).collect();
    format!("{workload}, {}", named(head, &configurations))
}

/// The gravest and strongest of some judgements of one check, with the trials all of them count.
fn note(place: &str, same: &[(&AuditCell, &Judgement)]) -> Option<String> {
    let gravest = |a: &Judgement, b: &Judgement| {
        a.grade
            .cmp(&b.grade)
            .then(a.strength.total_cmp(&b.strength))
    };
    let judgements = same.iter().map(|(_, judgement)| *judgement);
    let shown = judgements.clone().max_by(|a, b| gravest(a, b))?;
    let whole = Judgement {
        values: judgements
            .clone()
            .filter(|judgement| judgement.grade == shown.grade)
            .flat_map(|judgement| judgement.values.iter().copied())
            .collect(),
        trials: judgements.clone().map(|judgement| judgement.trials).sum(),
        of: judgements.map(|judgement| judgement.of).sum(),
        ..shown.clone()
    };
    Some(format!("{place}: {}", whole.words()))
}

fn failed(head: &RunStarted, trials: &[&Observation]) -> Vec<String> {
    let failed = trials.iter().filter_map(|trial| match &trial.ended {
        Ended::Failed { error } => Some((trial, error)),
        Ended::Complete | Ended::Interrupted => None,
    });
    failed
        .map(|(trial, error)| {
            let configuration = head
                .configurations
                .get(trial.configuration)
                .map_or("?", |t| &t.name);
            let workload = head.workloads.get(trial.workload).map_or("?", |w| &w.name);
            let next = match trial.next() {
                "" => String::new(),
                next => format!("; next: {next}"),
            };
            format!(
                "{configuration}, {workload}, round {}: failed: {error}{next}",
                trial.round
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::list::{REGISTERED, by_priority};
    use super::*;
    use stackrace_base::event::{Fact, LabGuests, RunPlace};
    use stackrace_results::record::sample;

    /// The made-up run with its trials changed.
    fn run(change: impl Fn(&mut Observation)) -> (RunStarted, Vec<Observation>) {
        let record = sample::record(&sample::small());
        let mut trials: Vec<Observation> = record.trials().cloned().collect();
        trials.iter_mut().for_each(change);
        (record.head, trials)
    }

    fn audit_of(head: &RunStarted, trials: &[Observation]) -> Audit {
        by_checks(&checks(), head, trials)
    }

    fn by_checks(
        checks: &[&'static AuditCheck],
        head: &RunStarted,
        trials: &[Observation],
    ) -> Audit {
        let trials: Vec<&Observation> = trials.iter().collect();
        Audit::by(checks, head, &trials, &SetUps::default())
    }

    fn notes_of(run: &(RunStarted, Vec<Observation>)) -> Vec<String> {
        notes(
            &run.0,
            &run.1.iter().collect::<Vec<_>>(),
            &SetUps::default(),
        )
    }

    #[test]
    fn a_note_counts_trials_and_shows_the_worst() {
        let run = run(|trial| {
            let phase = &mut trial.phases[0];
            phase.elapsed_ns = 1_000_000_000;
            phase.offered_per_s = Some(1000.0);
            phase.operations[0].count = match (trial.workload, trial.configuration, trial.round) {
                (1, 0, 2) => 801,
                (1, 0, 4) => 802,
                _ => 990,
            };
        });
        let notes = notes_of(&run);
        let mine: Vec<&String> = notes
            .iter()
            .filter(|note| note.contains("offered load"))
            .collect();
        assert_eq!(mine.len(), 1, "{notes:?}");
        assert!(
            mine[0].starts_with("browse, ext4: 2 of 5 trials: did not keep up with the offered load: offered 1.00 k/s, achieved 801/s"),
            "{}", mine[0]
        );
    }

    /// Other users of a guest's processor are the stack's own server, or serve its drives.
    #[test]
    fn a_guest_in_virtual_time_has_no_neighbours() {
        let (mut head, trials) = run(|trial| {
            let all = trial.elapsed_ns * u64::from(trial.counted.cpus);
            trial.counted.cpu_machine_busy_ns = all;
            trial.counted.pressure_cpu_ns = Some(trial.elapsed_ns / 2);
            trial.counted.paused_ns = Some(0);
            trial.counted.suspended_ns = Some(0);
            trial.counted.late_ns = Some(trial.elapsed_ns / 2);
        });
        let others = |head: &RunStarted| {
            let notes = notes_of(&(head.clone(), trials.clone()));
            let by = |who: &str| notes.iter().any(|note| note.contains(who));
            [by("other processes"), by("other programs")]
        };
        assert_eq!(others(&head), [true, true]);
        head.place = Some(RunPlace::Virtual(LabGuests {
            system: None,
            memory_bytes: 1 << 30,
        }));
        assert_eq!(others(&head), [false, false]);
    }

    #[test]
    fn what_is_true_of_most_workloads_is_said_once() {
        let run = run(|trial| trial.counted.cpu_steal_ns = 60_000_001 + u64::from(trial.round));
        let notes = notes_of(&run);
        let stolen: Vec<&String> = notes
            .iter()
            .filter(|note| note.contains("hypervisor"))
            .collect();
        assert_eq!(stolen.len(), 1, "{notes:?}");
        assert!(
            stolen[0].starts_with("3 of 3 workloads: disturbed:"),
            "{}",
            stolen[0]
        );
    }

    #[test]
    fn different_limits_are_flagged_and_named() {
        let run = run(|trial| match trial.configuration {
            0 => trial.counted.devices[0].busy_ns = trial.elapsed_ns,
            _ => trial.counted.cpu_system_ns = trial.elapsed_ns,
        });
        let audit = audit_of(&run.0, &run.1);
        assert_eq!(
            audit.cell(0, 1).unwrap().limited_by,
            Some(LimitedBy::DeviceRate)
        );
        assert_eq!(
            audit.cell(1, 1).unwrap().limited_by,
            Some(LimitedBy::OneCpu)
        );
        assert_eq!(audit.unlike.len(), 3);
        assert!(
            audit.unlike[1]
                .sentence
                .starts_with("browse: different bottlenecks (ext4: device rate; xfs: one CPU)"),
            "{:?}",
            audit.unlike[1]
        );
        assert!(notes_of(&run).contains(&audit.unlike[1].sentence));
    }

    #[test]
    fn a_limit_of_half_of_the_trials_is_no_limit_of_the_configuration() {
        let busy = |last: u32| {
            let run = run(move |trial| {
                let full = trial.round <= last;
                trial.counted.devices[0].busy_ns = if full { trial.elapsed_ns } else { 0 };
            });
            audit_of(&run.0, &run.1).cell(0, 0).unwrap().limited_by
        };
        assert_eq!(busy(3), Some(LimitedBy::DeviceRate));
        assert_eq!(busy(2), Some(LimitedBy::NoSinglePart));
    }

    #[test]
    fn imported_failed_and_unknown_trials_are_not_judged() {
        let (head, mut trials) = run(|_| {});
        trials[0].settled.caches = "unknown".to_owned();
        trials[1].ended = Ended::Interrupted;
        trials[2].workload = 99;
        assert!(audit_of(&head, &trials[..3]).cells.is_empty());
        assert_eq!(audit_of(&head, &trials[3..4]).cells.len(), 1);
    }

    #[test]
    fn the_order_of_registration_changes_no_conclusion() {
        // Every limit at once: what is named must follow from the priorities alone.
        let (head, trials) = run(|trial| {
            trial.counted.devices[0].busy_ns = trial.elapsed_ns;
            trial.counted.cpu_user_ns = trial.elapsed_ns;
            trial.counted.cpu_system_ns = trial.elapsed_ns;
            trial.counted.line = Some(Fact::of_older_log("line to the peer", "1 B/s, measured"));
        });
        let audit = audit_of(&head, &trials);
        assert!(
            audit
                .cells
                .iter()
                .all(|cell| cell.limited_by == Some(LimitedBy::DeviceRate))
        );
        let turned = by_priority(REGISTERED.iter().rev());
        assert_eq!(by_checks(&turned, &head, &trials), audit);
        // As files of other names would: any rotation of the list.
        for at in 0..REGISTERED.len() {
            let (front, back) = REGISTERED.split_at(at);
            let rotated = by_priority(back.iter().chain(front));
            assert_eq!(by_checks(&rotated, &head, &trials), audit, "from {at}");
        }
        // Without the device's check the next priority is named.
        let without = checks().into_iter().filter(|check| check.name != "device");
        let rest = by_checks(&without.collect::<Vec<_>>(), &head, &trials);
        assert_eq!(rest.cells[0].limited_by, Some(LimitedBy::Generator));
    }
}
