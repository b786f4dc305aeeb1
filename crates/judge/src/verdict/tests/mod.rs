//! The whole rule on made-up observations: planted truth in, words out.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::statement::VerdictWord;
use super::*;
use crate::verdict::evidence::Evidence;
use stackrace_base::event::{
    Better, ConfigurationHead, Decide, Ended, MetricHead, Observation, Precision, RunStarted,
    Settled, Until, WorkloadHead,
};

mod enough;
mod fidelity;
mod kept;
mod lacking;
mod order;
mod rule;
mod slices;

fn may_stop(proof: &Evidence<'_>) -> bool {
    Look::at(proof).may_stop(&proof.head.decide)
}

fn to_drop(proof: &Evidence<'_>) -> Vec<usize> {
    Look::at(proof).to_drop(&proof.head.decide)
}

/// A head with the given configurations (name, levels) and number of workloads.
pub(super) fn head(
    factors: &[&str],
    configurations: &[&[&str]],
    workloads: usize,
    comparison: Option<&str>,
) -> RunStarted {
    RunStarted {
        format: 1,
        run: "r".into(),
        stackrace: "0".into(),
        command: Vec::new(),
        study: String::new(),
        study_name: String::new(),
        study_hash: String::new(),
        title: String::new(),
        factors: factors.iter().map(|f| (*f).to_owned()).collect(),
        configurations: configurations
            .iter()
            .map(|levels| ConfigurationHead {
                cost: None,
                name: levels.join(", "),
                levels: levels.iter().map(|l| (*l).to_owned()).collect(),
            })
            .collect(),
        workloads: (0..workloads)
            .map(|w| WorkloadHead {
                name: format!("w{w}"),
                kind: "random".into(),
                summary: String::new(),
                weight: 1.0,
                drawn_sizes: None,
                level: None,
                operations: None,
                gives_commands: false,
                imported: None,
                recorded: None,
                // Every second one is a time: smaller is better.
                metrics: vec![MetricHead {
                    name: "m".into(),
                    unit: "op/s".into(),
                    better: if w % 2 == 0 {
                        Better::Higher
                    } else {
                        Better::Lower
                    },
                }],
            })
            .collect(),
        decide: Decide {
            comparison: comparison.map(str::to_owned),
            margin: 0.05,
            confidence: 0.95,
            rounds_max: 20,
            time_max_ns: 0,
            until: Until::Overall,
            precision: Precision::Size,
            required: Vec::new(),
        },
        seed: 0,
        place: None,
        environment: Vec::new(),
    }
}

fn observation(round: u32, configuration: usize, workload: usize, value: f64) -> Observation {
    Observation {
        round,
        configuration,
        workload,
        settled: Settled::default(),
        elapsed_ns: 1,
        metrics: vec![Some(value)],
        ..Observation::unmeasured(Ended::Complete)
    }
}

pub(super) fn evidence<'a>(
    head: &'a RunStarted,
    trials: &'a [Observation],
    rounds: u32,
) -> Evidence<'a> {
    Evidence {
        set_ups: crate::audit::SetUps::default(),
        head,
        trials: trials.iter().collect(),
        failures: trials
            .iter()
            .filter(|trial| trial.ended.error().is_some())
            .collect(),
        rounds: (1..=rounds).collect(),
        dropped: Vec::new(),
        sliced: trials
            .iter()
            .filter(|trial| trial.sliced.is_some())
            .map(|trial| trial.workload)
            .collect(),
        slices_ended: Vec::new(),
        cuts: Vec::new(),
        round_seconds: Some(10.0),
        imported: false,
        ended: false,
        in_memory: Vec::new(),
    }
}

/// Standard normal (Box and Muller).
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let unit = |random: &mut Xoshiro256PlusPlus| {
        ((random.next_u64() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
    };
    let (u, v) = (unit(random), unit(random));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Trials where `factor(configuration, workload)` is how much better than 1 each is, with noise.
pub(super) fn trials(
    head: &RunStarted,
    rounds: u32,
    noise: f64,
    seed: u64,
    factor: impl Fn(usize, usize) -> f64,
) -> Vec<Observation> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut all = Vec::new();
    for round in 1..=rounds {
        let drift = 1.0 - 0.02 * f64::from(round);
        for t in 0..head.configurations.len() {
            for (w, workload) in head.workloads.iter().enumerate() {
                let speed = factor(t, w) * drift * (noise * normal(&mut random)).exp();
                let value = match workload.metrics[0].better {
                    Better::Higher => 1000.0 * speed,
                    Better::Lower => 10.0 / speed,
                };
                all.push(observation(round, t, w, value));
            }
        }
    }
    all
}

#[test]
fn a_planted_difference_is_found_and_its_size_is_inside_the_interval() {
    let head = head(&["fs"], &[&["a"], &["b"]], 4, Some("fs"));
    let data = trials(&head, 8, 0.01, 1, |t, _| if t == 1 { 1.20 } else { 1.0 });
    let verdict = judge(&evidence(&head, &data, 8));
    assert_eq!(verdict.state, State::Decided);
    let ratio = verdict.overall[0].ratio.unwrap();
    assert!(ratio.low < 1.20 && 1.20 < ratio.high, "{ratio:?}");
    assert!(matches!(
        verdict.overall[0].word,
        VerdictWord::Better { .. }
    ));
    assert!(
        verdict.sentence.starts_with("b is 1.2"),
        "{}",
        verdict.sentence
    );
    assert!(
        verdict
            .sentence
            .contains(" x as fast as a over all 4 workloads (1."),
        "{}",
        verdict.sentence
    );
}

#[test]
fn the_faster_one_is_the_subject_whichever_was_named_first() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 8, 0.01, 1, |t, _| if t == 1 { 0.5 } else { 1.0 });
    let verdict = judge(&evidence(&head, &data, 8));
    assert!(
        verdict
            .sentence
            .starts_with("a is 1.99 x as fast as b in w0 (1.94 to 2.04): 904/s against 455/s; "),
        "{}",
        verdict.sentence
    );
}

#[test]
fn equal_configurations_are_said_to_be_equal_within_the_margin() {
    let head = head(&["fs"], &[&["a"], &["b"]], 2, Some("fs"));
    let data = trials(&head, 20, 0.01, 7, |_, _| 1.0);
    let verdict = judge(&evidence(&head, &data, 20));
    assert!(
        matches!(verdict.overall[0].word, VerdictWord::NoDifference { larger_than } if larger_than < 0.05),
        "{:?}",
        verdict.overall[0]
    );
    assert!(
        verdict.sentence.starts_with("No difference larger than "),
        "{}",
        verdict.sentence
    );
}

#[test]
fn two_rounds_give_figures_and_no_verdict() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 2, 0.01, 3, |_, _| 1.0);
    let verdict = judge(&evidence(&head, &data, 2));
    assert_eq!(verdict.state, State::TooFew);
    assert_eq!(verdict.overall[0].word, VerdictWord::TooFew);
    assert_eq!(verdict.overall[0].rounds.len(), 2);
    assert!(verdict.configurations[0].cells[0].value.is_some());
}

#[test]
fn effects_within_the_levels_of_another_factor_are_told_apart() {
    let head = head(
        &["fs", "size"],
        &[&["a", "4k"], &["a", "1m"], &["b", "4k"], &["b", "1m"]],
        1,
        Some("fs"),
    );
    // b is 44 % faster on 4k only.
    let data = trials(&head, 8, 0.01, 5, |t, _| if t == 2 { 1.44 } else { 1.0 });
    let verdict = judge(&evidence(&head, &data, 8));
    let main = verdict.overall[0].ratio.unwrap();
    assert!((main.estimate - 1.2).abs() < 0.02, "{main:?}");
    let within: Vec<(&str, bool)> = verdict
        .workloads
        .iter()
        .filter(|c| !c.within.is_empty())
        .map(|c| {
            (
                c.within.as_str(),
                matches!(c.word, VerdictWord::Better { .. }),
            )
        })
        .collect();
    assert!(
        within.contains(&("4k", true)) && within.contains(&("1m", false)),
        "{within:?}"
    );
}

#[test]
fn an_incomplete_or_failed_trial_is_never_judged() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let mut data = trials(&head, 5, 0.01, 3, |_, _| 1.0);
    // Absurd values that would move any interval, marked as not complete.
    for trial in data.iter_mut().filter(|trial| trial.round == 2) {
        trial.metrics = vec![Some(1e9)];
        trial.ended = Ended::Interrupted;
    }
    let verdict = judge(&evidence(&head, &data, 5));
    assert_eq!(verdict.overall[0].rounds.len(), 4);
    assert!(
        verdict.overall[0]
            .rounds
            .iter()
            .all(|(_, ratio)| (0.8..1.25).contains(ratio))
    );
    assert!(
        verdict
            .notes
            .iter()
            .any(|note| note.contains("lacks a complete trial 2 times")),
        "{:?}",
        verdict.notes
    );
}

#[test]
fn a_configuration_that_failed_is_the_answer_when_there_is_no_other() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let mut data = trials(&head, 1, 0.01, 3, |_, _| 1.0);
    data[1].ended = Ended::Failed {
        error: "write of /x failed: No space left on device".into(),
    };
    let verdict = judge(&evidence(&head, &data, 0));
    assert!(
        verdict
            .sentence
            .starts_with("No verdict: b failed in round 1: write of /x failed"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn a_baseline_without_a_complete_trial_has_no_ratio() {
    let head = head(&["a"], &[&["x"], &["y"]], 2, Some("a"));
    let mut trials = trials(&head, 3, 0.01, 5, |_, _| 1.0);
    let row = |trials: &[Observation]| {
        let mut evidence = evidence(&head, trials, 3);
        evidence.dropped = evidence.failures.iter().map(|_| (0, 0)).take(1).collect();
        judge(&evidence).configurations[0].overall
    };
    assert_eq!(row(&trials).map(|ratio| ratio.estimate), Some(1.0));
    // It failed in its second workload at once: the first one alone is no overall figure.
    trials.retain(|trial| trial.configuration != 0 || trial.round == 1);
    for trial in &mut trials {
        if trial.configuration == 0 && trial.workload == 1 {
            trial.ended = Ended::Failed {
                error: "out of space".to_owned(),
            };
        }
    }
    assert!(row(&trials).is_none());
}

#[test]
fn a_single_configuration_is_described_and_nothing_is_claimed() {
    let head = head(&["x"], &[&["a"]], 1, None);
    let data = trials(&head, 5, 0.01, 3, |_, _| 1.0);
    let verdict = judge(&evidence(&head, &data, 5));
    assert!(verdict.overall.is_empty());
    assert!(
        verdict
            .sentence
            .contains("5 complete rounds, nothing to compare it with"),
        "{}",
        verdict.sentence
    );
}

/// Imported results: values by (round, configuration), not measured in turn.
fn imported(values: &[(u32, usize, f64)], configurations: &[&[&str]]) -> Verdict {
    let head = head(&["x"], configurations, 1, None);
    let trials: Vec<Observation> = values
        .iter()
        .map(|(round, configuration, value)| observation(*round, *configuration, 0, *value))
        .collect();
    let rounds = values.iter().map(|value| value.0).max().unwrap_or(0);
    judge(&Evidence {
        imported: true,
        ..evidence(&head, &trials, rounds)
    })
}

#[test]
fn one_imported_result_each_gives_a_ratio_and_no_interval() {
    let verdict = imported(&[(1, 0, 100.0), (1, 1, 130.0)], &[&["a"], &["b"]]);
    assert_eq!(verdict.state, State::Unpaired);
    assert_eq!(verdict.checked_at, None);
    let comparison = &verdict.overall[0];
    let ratio = comparison.ratio.unwrap();
    assert!((ratio.estimate - 1.3).abs() < 1e-12 && ratio.low.is_nan() && ratio.high.is_nan());
    assert!(comparison.rounds.is_empty(), "nothing is a pair");
    assert_eq!(
        verdict.sentence,
        "Imported, not measured here: b is 1.30 x as fast as a in w0; one run each, so no interval."
    );
    assert!(verdict.notes[0].contains("nor measured in turn"));
}

/// The figures of both sides drift together: pairing them by number would find a difference that
/// only pairs can show, and these never were pairs.
#[test]
fn imported_results_are_never_paired_by_number() {
    let mut values = Vec::new();
    for round in 1..=5u32 {
        let drift = f64::from(round);
        values.push((round, 0, 100.0 * drift));
        values.push((round, 1, 110.0 * drift));
    }
    let verdict = imported(&values, &[&["a"], &["b"]]);
    let comparison = &verdict.overall[0];
    let ratio = comparison.ratio.unwrap();
    assert!((ratio.estimate - 1.1).abs() < 1e-9);
    assert!(ratio.low < 0.5 && ratio.high > 2.0, "{ratio:?}");
    assert_eq!(
        comparison.word,
        VerdictWord::Unpaired {
            runs: (5, 5),
            differs: false
        }
    );
}

#[test]
fn the_strongest_word_for_imported_results_is_that_they_differ() {
    let near = |base: f64, round: u32| base * (1.0 + 0.001 * f64::from(round));
    let values: Vec<(u32, usize, f64)> = (1..=4)
        .flat_map(|round| {
            [
                (round, 0, near(100.0, round)),
                (round, 1, near(200.0, round)),
            ]
        })
        .collect();
    let verdict = imported(&values, &[&["a"], &["b"]]);
    let text = &verdict.overall[0].text;
    assert!(
        text.starts_with("differs: ") && text.ends_with(", unpaired"),
        "{text}"
    );
    assert!(
        !verdict.sentence.contains("faster than"),
        "{}",
        verdict.sentence
    );
    assert_eq!(verdict.state, State::Unpaired);
    assert_eq!(verdict.more, None);
}

#[test]
fn an_imported_figure_that_never_moves_is_doubted() {
    let values = |b: [f64; 3]| -> Vec<(u32, usize, f64)> {
        let rounds = (1..).zip(b);
        rounds
            .flat_map(|(round, b)| [(round, 0, 100.0 + f64::from(round)), (round, 1, b)])
            .collect()
    };
    let still = imported(&values([7.0123; 3]), &[&["a"], &["b"]]);
    let doubt = "; but b has the same figure to the last digit every time";
    assert!(still.sentence.contains(doubt), "{}", still.sentence);
    let noted = |verdict: &Verdict| {
        verdict
            .notes
            .iter()
            .any(|note| note.contains("same figure"))
    };
    assert!(noted(&still), "{:?}", still.notes);
    let moves = imported(&values([7.0123, 7.1123, 7.0123]), &[&["a"], &["b"]]);
    assert!(!moves.sentence.contains("same figure") && !noted(&moves));
}

#[test]
fn unequal_numbers_of_imported_results_are_all_used() {
    let values = [(1, 0, 100.0), (2, 0, 400.0), (1, 1, 200.0)];
    let verdict = imported(&values, &[&["a"], &["b"]]);
    let ratio = verdict.overall[0].ratio.unwrap();
    assert!((ratio.estimate - 1.0).abs() < 1e-12, "{ratio:?}");
    assert_eq!(
        verdict.overall[0].text,
        "1 and 2 runs, too few for an interval"
    );
    let several = imported(
        &[(1, 0, 100.0), (1, 1, 50.0), (1, 2, 25.0)],
        &[&["a"], &["b"], &["c"]],
    );
    assert!(
        several
            .sentence
            .contains("a is best in w0; relative to it: b 0.50, c 0.25"),
        "{}",
        several.sentence
    );
}

/// Two levels by two; the second level of the first factor helps by 30 % on the second level of
/// the other alone.
#[test]
fn an_effect_that_is_there_on_one_level_alone_is_found_there_alone() {
    let head = head(
        &["ashift", "topology"],
        &[
            &["9", "mirror"],
            &["9", "raidz"],
            &["12", "mirror"],
            &["12", "raidz"],
        ],
        1,
        Some("ashift"),
    );
    let data = trials(&head, 12, 0.01, 3, |t, _| if t == 3 { 1.30 } else { 1.0 });
    let verdict = judge(&evidence(&head, &data, 12));
    assert_eq!(
        verdict.effects.len(),
        1,
        "one workload is the overall figure"
    );
    let rows = &verdict.effects[0].rows;
    let find = |kind: EffectKind, factor: &str, at: &[&str]| {
        let same = |row: &&EffectRow| row.kind == kind && row.factor == factor && row.at == at;
        rows.iter().find(same).unwrap()
    };
    // Two main effects, ashift within both topologies, one interaction.
    assert_eq!(rows.len(), 5);
    let mirror = find(EffectKind::Within, "ashift", &["mirror"]);
    assert!(
        matches!(mirror.word, VerdictWord::NoDifference { .. }),
        "{mirror:?}"
    );
    let raidz = find(EffectKind::Within, "ashift", &["raidz"]);
    assert!(
        matches!(raidz.word, VerdictWord::Better { .. }),
        "{raidz:?}"
    );
    let both = find(EffectKind::Interaction, "ashift", &["mirror", "raidz"]);
    assert!(
        both.text.starts_with("2") && both.text.ends_with(" % larger there"),
        "{}",
        both.text
    );
    assert!((both.ratio.unwrap().estimate - 1.30).abs() < 0.03);
    let main = find(EffectKind::Main, "ashift", &[]);
    assert!((main.ratio.unwrap().estimate - 1.30_f64.sqrt()).abs() < 0.02);
}

#[test]
fn one_factor_and_imported_figures_have_no_table_of_effects() {
    let one = head(&["fs"], &[&["a"], &["b"], &["c"]], 1, None);
    let data = trials(&one, 5, 0.01, 4, |_, _| 1.0);
    assert!(judge(&evidence(&one, &data, 5)).effects.is_empty());
    let constant = head(&["fs", "disk"], &[&["a", "x"], &["b", "x"]], 1, None);
    let data = trials(&constant, 5, 0.01, 4, |_, _| 1.0);
    assert!(judge(&evidence(&constant, &data, 5)).effects.is_empty());
}
