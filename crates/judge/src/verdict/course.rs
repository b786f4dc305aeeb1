//! What the time series of the trials say about them together: a change midway, and how much of their
//! difference is sampling noise, because they are short.
//!
//! Trials of one configuration, workload and phase are taken together, because a single one may look
//! like anything: what at least half of them show, and at least two, is said. Nothing is left out
//! of a figure because of it.

use serde::Serialize;
use stackrace_stats::Course;

use super::evidence::Evidence;
use crate::audit::course;
use stackrace_base::event::{Ended, PhaseObservation};
use stackrace_base::unit;

/// Trials that must show the same.
const TRIALS_MIN: usize = 2;

/// Number of phases with too short trials above which one sentence speaks of all.
const PHASES_APART_MAX: usize = 2;

/// Course of the trials of one configuration on one phase of a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseCourse {
    /// Configuration by index.
    pub configuration: usize,
    /// Workload by index.
    pub workload: usize,
    /// Name of the phase.
    pub phase: String,
    /// Complete trials with a time series.
    pub trials: usize,
    /// Typical half-width (median) of the 95 % interval of a trial's mean rate, a share of it: how
    /// much of their difference is sampling noise.
    pub uncertainty: Option<f64>,
    /// The change midway that most of the trials show.
    pub change: Option<RateChange>,
}

/// A change midway; medians over the trials that show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RateChange {
    /// Trials that show it.
    pub trials: usize,
    /// Time from the start of the phase, s.
    pub after_s: f64,
    /// Bytes moved until then.
    pub after_bytes: f64,
    /// Rate after it over the rate before it.
    pub ratio: f64,
    /// Number of changes a trial has, of which this is the largest.
    pub times: f64,
}

/// A phase of a trial with its course, if it has one.
type CoursedPhase<'a> = (&'a PhaseObservation, Option<Course>);

/// Courses of the trials of each configuration, workload and phase, in this order.
pub(super) fn courses(evidence: &Evidence<'_>) -> Vec<PhaseCourse> {
    let head = evidence.head;
    let mut all = Vec::new();
    // In one pass: each configuration would go through the trials of all others.
    let mut of_each = vec![Vec::new(); head.workloads.len() * head.configurations.len()];
    for trial in evidence.trials.iter().copied() {
        let (t, w) = (trial.configuration, trial.workload);
        if trial.ended == Ended::Complete
            && t < head.configurations.len()
            && w < head.workloads.len()
        {
            of_each[w * head.configurations.len() + t].push(trial);
        }
    }
    for w in 0..head.workloads.len() {
        for t in 0..head.configurations.len() {
            let mut phases: Vec<(&str, Vec<CoursedPhase<'_>>)> = Vec::new();
            let mine = &of_each[w * head.configurations.len() + t];
            for phase in mine.iter().flat_map(|trial| &trial.phases) {
                let course = course(phase);
                match phases.iter_mut().find(|(name, _)| *name == phase.name) {
                    Some((_, known)) => known.push((phase, course)),
                    None => phases.push((&phase.name, vec![(phase, course)])),
                }
            }
            all.extend(phases.into_iter().filter_map(|(name, phases)| {
                let mut found = together(phases)?;
                (found.configuration, found.workload) = (t, w);
                found.phase = name.to_owned();
                Some(found)
            }));
        }
    }
    all
}

/// Trials of one phase; `None` if not one has a course.
fn together(phases: Vec<CoursedPhase<'_>>) -> Option<PhaseCourse> {
    let trials: Vec<(&PhaseObservation, Course)> = phases
        .into_iter()
        .filter_map(|(phase, course)| Some((phase, course?)))
        .collect();
    let widths = trials.iter().filter_map(|(_, course)| course.uncertainty);
    // The caller knows configuration, workload and phase, and fills them in.
    (!trials.is_empty()).then(|| PhaseCourse {
        configuration: 0,
        workload: 0,
        phase: String::new(),
        trials: trials.len(),
        uncertainty: stackrace_stats::median(&widths.collect::<Vec<_>>()),
        change: change(&trials),
    })
}

/// The change that most of the trials show, in the same direction.
fn change(trials: &[(&PhaseObservation, Course)]) -> Option<RateChange> {
    let mut up = Vec::new();
    let mut down = Vec::new();
    for (phase, course) in trials {
        let Some((before, after)) = course.change() else {
            continue;
        };
        let bytes = phase.series[..after.start].iter().map(|step| step.1 as f64);
        let shown = RateChange {
            trials: 1,
            after_s: after.start as f64 * phase.step_ns as f64 / 1e9,
            after_bytes: bytes.sum(),
            ratio: after.level / before.level,
            times: course.segments.len() as f64 - 1.0,
        };
        if shown.ratio > 1.0 {
            &mut up
        } else {
            &mut down
        }
        .push(shown);
    }
    let most = if up.len() > down.len() { up } else { down };
    // One trial alone may look like anything, and what a minority shows is not how the phase goes.
    if most.len() < TRIALS_MIN || 2 * most.len() < trials.len() {
        return None;
    }
    let middle = |of: fn(&RateChange) -> f64| {
        stackrace_stats::median(&most.iter().map(of).collect::<Vec<_>>())
    };
    Some(RateChange {
        trials: most.len(),
        after_s: middle(|shown| shown.after_s)?,
        after_bytes: middle(|shown| shown.after_bytes)?,
        ratio: middle(|shown| shown.ratio)?,
        times: middle(|shown| shown.times)?,
    })
}

/// Sentences for the reader: one for each phase that changes midway, and one for all configurations
/// whose trials of a phase are too short.
pub(super) fn notes(evidence: &Evidence<'_>, courses: &[PhaseCourse]) -> Vec<String> {
    let head = evidence.head;
    let (mut notes, mut shorts) = (Vec::new(), Vec::new());
    let same = |a: &PhaseCourse, b: &PhaseCourse| (a.workload, &a.phase) == (b.workload, &b.phase);
    let mut phases: Vec<&PhaseCourse> = Vec::new();
    for course in courses {
        if !phases.iter().any(|known| same(known, course)) {
            phases.push(course);
        }
    }
    for phase in &phases {
        let workload = &head.workloads[phase.workload].name;
        let several = phases.iter().filter(|p| p.workload == phase.workload);
        let place = match several.count() {
            1 => workload.clone(),
            _ => format!("{workload} ({})", phase.phase),
        };
        let mine = courses.iter().filter(|course| same(course, phase));
        let mine: Vec<&PhaseCourse> = mine.collect();
        notes.extend(mine.iter().filter_map(|course| {
            let change = changed(course.change.as_ref()?, course.trials);
            let configuration = &head.configurations[course.configuration].name;
            Some(format!("{place}, {configuration}: {change}"))
        }));
        shorts.extend(short(&mine, head.decide.margin, place));
    }
    notes.extend(too_short(&shorts, head.decide.margin));
    notes
}

/// `the rate falls by 62 % after about 41 s (12 GiB) in 5 of 5 trials: …`
fn changed(change: &RateChange, trials: usize) -> String {
    let (word, size, why) = if change.ratio < 1.0 {
        (
            "falls",
            1.0 - change.ratio,
            "a full cache, throttling or garbage collection",
        )
    } else {
        (
            "rises",
            change.ratio - 1.0,
            "a cache that fills, or a cold start",
        )
    };
    // Phases that only create, stat or remove files move no bytes.
    let moved = match change.after_bytes {
        bytes if bytes > 0.0 => format!(" ({})", unit::bytes(bytes as u64)),
        _ => String::new(),
    };
    let fall = format!(
        "{word} by {} after about {}{moved} in {} of {trials} trials",
        unit::percent(size),
        unit::time_ns(change.after_s * 1e9),
        change.trials
    );
    // Up to two changes are a step or a plateau. More have no single cause that could be named.
    if change.times > 2.0 {
        return format!(
            "the rate swings about {:.0} times in a trial: at most it {fall}; the figure is a mean of fast and slow",
            change.times
        );
    }
    format!("the rate {fall}: {why}; the figure averages both states")
}

/// A phase whose trials are too short: sampling noise alone exceeds the margin.
struct Short {
    /// Workload, and phase where it has several.
    place: String,
    /// `trials`, or `trials of 1 of 4 configurations`.
    whose: String,
    /// Number of configurations it is of.
    configurations: usize,
    /// The largest noise of them, as a share.
    widest: f64,
}

/// Returns the reason if the trials of a phase are too short. Where the rate changes midway, that is the reason, and is
/// said instead.
fn short(courses: &[&PhaseCourse], margin: f64, place: String) -> Option<Short> {
    let wide = courses
        .iter()
        // Where the rate changes, the wide interval comes from the change and not from short
        // trials.
        .filter(|c| c.change.is_none() && c.trials >= TRIALS_MIN);
    let wide: Vec<f64> = wide
        .filter_map(|course| course.uncertainty.filter(|width| *width > margin))
        .collect();
    let widest = wide.iter().copied().reduce(f64::max)?;
    let whose = match (wide.len(), courses.len()) {
        (n, all) if n == all => "trials".to_owned(),
        (n, all) => format!("trials of {n} of {all} configurations"),
    };
    Some(Short {
        place,
        whose,
        configurations: wide.len(),
        widest,
    })
}

/// A sentence for each, or one for all of many.
fn too_short(shorts: &[Short], margin: f64) -> Vec<String> {
    let margin = unit::percent(margin);
    if shorts.len() > PHASES_APART_MAX {
        let each = |short: &Short| format!("{} (±{})", short.place, unit::percent(short.widest));
        let all: Vec<String> = shorts.iter().map(each).collect();
        let all = all.join("; ");
        return vec![format!(
            "trials are too short, and their sampling noise is more than the margin of {margin}, in {all}. Longer trials need fewer rounds"
        )];
    }
    let one = |short: &Short| {
        let most = if short.configurations > 1 {
            "up to "
        } else {
            ""
        };
        let (place, whose) = (&short.place, &short.whose);
        let widest = unit::percent(short.widest);
        format!(
            "{place}: {whose} are too short: {most}±{widest} is sampling noise, more than the margin of {margin}; longer trials need fewer rounds"
        )
    };
    shorts.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::Observation;
    use stackrace_results::record::{Record, sample};

    /// The sample run with a series for every trial of a workload, from the bytes of each step.
    fn noted(series: impl Fn(&Observation, usize) -> f64) -> Vec<String> {
        let record: Record = sample::record(&sample::small());
        let mut trials: Vec<Observation> = record.trials().cloned().collect();
        for trial in &mut trials {
            let steps = (0..200).map(|at| {
                let wobble = 1.0 + 0.02 * f64::from((at * 7 % 5) as u8) - 0.04;
                (1, (1e6 * wobble * series(trial, at)) as u64)
            });
            let series = steps.collect();
            trial.phases[0].series = series;
            trial.phases[0].elapsed_ns = 20_000_000_000;
        }
        let mut evidence = Evidence::of(&record);
        evidence.trials = trials.iter().collect();
        let courses = courses(&evidence);
        assert_eq!(
            courses.len(),
            6,
            "two configurations, three workloads, a phase each"
        );
        notes(&evidence, &courses)
    }

    #[test]
    fn level_trials_need_no_note() {
        assert_eq!(noted(|_, _| 1.0), Vec::<String>::new());
    }

    #[test]
    fn a_change_midway_is_said_with_its_time_size_and_bytes() {
        let full = |trial: &Observation, at: usize| {
            let here = (trial.configuration, trial.workload) == (1, 0);
            if here && at >= 120 { 0.4 } else { 1.0 }
        };
        let notes = noted(full);
        assert_eq!(notes.len(), 1, "{notes:?}");
        let expected = "import, xfs: the rate falls by 60 % after about 12.0 s (114.4 MiB) in 5 of 5 trials: a full cache";
        assert!(notes[0].starts_with(expected), "{}", notes[0]);
    }

    #[test]
    fn what_one_trial_in_five_shows_is_not_said() {
        let once = |trial: &Observation, at: usize| {
            if trial.round == 2 && at >= 120 {
                0.4
            } else {
                1.0
            }
        };
        assert_eq!(noted(once), Vec::<String>::new());
    }

    #[test]
    fn a_wave_is_no_single_change() {
        let waves = noted(|_, at| if at / 20 % 2 == 0 { 1.2 } else { 0.8 });
        assert_eq!(waves.len(), 6, "{waves:?}");
        for note in waves {
            assert!(note.contains("swings about 9 times in a trial"), "{note}");
        }
    }

    /// Steps anywhere between a tenth and nearly twice the mean, another draw in every trial.
    #[test]
    fn trials_that_scatter_by_more_than_the_margin_are_too_short() {
        let anywhere = |trial: &Observation, at: usize| {
            let place = [
                trial.round as usize,
                trial.configuration,
                trial.workload,
                at,
            ];
            // FNV-1a, then its high bits: neighbours have nothing in common.
            let mixed = place.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, part| {
                (hash ^ *part as u64).wrapping_mul(0x0100_0000_01b3)
            });
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            0.1 + 1.8 * ((mixed >> 40) as f64 / f64::from(1_u32 << 24))
        };
        let notes = noted(anywhere);
        // One for all three workloads, each with its noise.
        let short = notes.iter().filter(|note| note.contains("sampling noise"));
        let [note] = short.collect::<Vec<_>>()[..] else {
            panic!("{notes:?}");
        };
        assert!(note.contains("more than the margin of 5.0 %"), "{note}");
        assert_eq!(note.matches("(±").count(), 3, "{note}");
    }
}
