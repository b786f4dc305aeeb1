//! When the question is answered, what is said while it is not, and how often that is wrong.

use super::*;

fn failed(trial: &mut Observation) {
    trial.ended = Ended::Failed {
        error: "write of /x failed: No space left on device".into(),
    };
}

/// The realised error of the whole rule: any false claim, overall or for a workload, after any round
/// from the third on, with the stop rule applied, over four workloads and a drift of 2 % a round.
#[test]
fn the_error_rate_of_the_whole_rule_is_kept() {
    let head = head(&["fs"], &[&["a"], &["b"]], 4, Some("fs"));
    let studies: u64 = 1000;
    let mut wrong = 0;
    for study in 0..studies {
        let data = trials(&head, 20, 0.03, 90_000 + study, |_, _| 1.0);
        for look in 3..=20 {
            let proof = evidence(&head, &data, look);
            let verdict = judge(&proof);
            let claims = |c: &Comparison| {
                matches!(
                    c.word,
                    VerdictWord::Better { .. } | VerdictWord::Worse { .. }
                )
            };
            if verdict.overall.iter().chain(&verdict.workloads).any(claims) {
                wrong += 1;
                break;
            }
            if may_stop(&proof) {
                break;
            }
        }
    }
    let rate = f64::from(wrong) / studies as f64;
    // Three standard errors above the stated 5 %.
    assert!(
        rate <= 0.05 + 3.0 * (0.05_f64 * 0.95 / studies as f64).sqrt(),
        "{rate}"
    );
}

/// What waiting for the size costs, and that it adds no error: intervals hold at all looks.
#[test]
fn a_comparison_stops_when_the_size_is_known_and_the_error_is_kept() {
    let mut head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let studies: u64 = 200;
    // The median of the rounds and of the widths (upper over lower end), the shares of false claims and missed truths.
    let mut simulated = |precision, truth: f64, noise: f64| {
        head.decide.precision = precision;
        let (mut rounds, mut widths, mut wrong, mut missed) = (Vec::new(), Vec::new(), 0, 0);
        for study in 0..studies {
            let data = trials(&head, 30, noise, 70_000 + study, |t, _| [1.0, truth][t]);
            let looks = (3..=30).map(|look| {
                let proof = evidence(&head, &data, look);
                (judge(&proof), may_stop(&proof))
            });
            let mut looks = looks.inspect(|(verdict, _)| {
                let ratio = verdict.overall[0].ratio.unwrap();
                missed += u32::from(ratio.low > truth || ratio.high < truth);
            });
            let stopped = |(verdict, stops): &(Verdict, bool)| verdict.rounds == 30 || *stops;
            let (verdict, _) = looks.find(stopped).unwrap();
            let claims = verdict.overall[0].word;
            wrong += u32::from(truth == 1.0 && claims.decides() && !claims.is_tie());
            let ratio = verdict.overall[0].ratio.unwrap();
            rounds.push(f64::from(verdict.rounds));
            widths.push(ratio.high / ratio.low);
        }
        let median = |values: &[f64]| stackrace_stats::median(values).unwrap();
        let share = |count: u32| f64::from(count) / studies as f64;
        (
            median(&rounds),
            median(&widths),
            share(wrong),
            share(missed),
        )
    };
    for (truth, noise) in [
        (1.0, 0.03),
        (1.0, 0.1),
        (1.1, 0.03),
        (1.25, 0.07),
        (1.25, 0.1),
        (6.0, 0.3),
    ] {
        let before = simulated(Precision::Direction, truth, noise);
        let now = simulated(Precision::Size, truth, noise);
        println!("{truth} x, noise {noise}: direction {before:?}, size {now:?}");
        // Three standard errors above the stated 5 %.
        assert!(
            now.2 <= 0.05 + 3.0 * (0.05_f64 * 0.95 / studies as f64).sqrt(),
            "{now:?}"
        );
        assert!(now.0 >= before.0 && now.1 <= before.1, "{before:?} {now:?}");
        if now.0 < 30.0 && truth != 1.0 {
            assert!(now.1 <= stackrace_stats::widest(truth) * 1.01, "{now:?}");
        }
    }
}

#[test]
fn a_direction_alone_ends_a_quick_run_and_a_narrower_interval_is_asked_for_by_its_width() {
    let mut head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 60, 0.06, 3, |t, _| [1.0, 1.5][t]);
    let mut stops = |precision| {
        head.decide.precision = precision;
        let stops = |look: &u32| may_stop(&evidence(&head, &data, *look));
        (3..=60).find(stops).unwrap()
    };
    let rounds = [
        Precision::Direction,
        Precision::Size,
        Precision::Within(0.1),
    ]
    .map(&mut stops);
    assert!(
        rounds.is_sorted() && rounds[0] < rounds[1] && rounds[1] < rounds[2],
        "{rounds:?}"
    );
}

#[test]
fn a_run_that_ended_before_the_size_was_known_says_so_and_how_to_go_on() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 4, 0.1, 3, |t, _| [1.0, 3.0][t]);
    let ended = Evidence {
        ended: true,
        ..evidence(&head, &data, 4)
    };
    let verdict = judge(&ended);
    assert_eq!(verdict.state, State::Decided, "{}", verdict.sentence);
    assert!(!may_stop(&ended));
    let words =
        "How much faster is known only roughly; `stackrace resume r --until-decided` takes about";
    assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
}

#[test]
fn after_two_rounds_there_is_an_estimate_and_no_interval() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 2, 0.01, 3, |t, _| [1.0, 1.3][t]);
    let verdict = judge(&evidence(&head, &data, 2));
    let said = "So far, as a rough estimate: b 1.30 x as fast as a in w0 (a ";
    assert!(verdict.sentence.contains(said), "{}", verdict.sentence);
    let row = verdict.configurations[1].overall.unwrap();
    assert!((row.estimate - 1.3).abs() < 0.05 && row.low.is_nan() && row.high.is_nan());
}

#[test]
fn every_round_from_the_third_on_is_a_check() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 4, 0.01, 3, |_, _| 1.0);
    let checked = |rounds: u32| judge(&evidence(&head, &data, rounds)).checked_at;
    assert_eq!([2, 3, 4].map(checked), [None, Some(3), Some(4)]);
}

#[test]
fn while_a_run_goes_on_it_says_how_many_rounds_would_decide() {
    let mut head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 6, 0.04, 3, |t, _| if t == 1 { 1.06 } else { 1.0 });
    const HOUR_NS: u64 = 3_600_000_000_000;
    // 47 more rounds of 10 s each. What they are too many for is no promise.
    for (rounds_max, time_max_ns, end) in [
        (1000, HOUR_NS, " would decide."),
        (20, HOUR_NS, " would decide; the run's limit comes first."),
        (
            1000,
            HOUR_NS / 8,
            " would decide; the run's limit comes first.",
        ),
    ] {
        (head.decide.rounds_max, head.decide.time_max_ns) = (rounds_max, time_max_ns);
        let verdict = judge(&evidence(&head, &data, 6));
        let sentence = &verdict.sentence;
        assert_eq!(verdict.state, State::Undecided, "{sentence}");
        assert!(sentence.contains(end), "{sentence}");
        assert!(!sentence.contains("resume"), "{sentence}");
        // What is on record is read when the run has ended, too: without what more rounds would do.
        let proof = evidence(&head, &data, 6);
        let answer = Look::at(&proof).answer();
        assert!(answer.sentence.starts_with(&*answer.found));
        assert!(!answer.found.contains("would decide"), "{}", answer.found);
    }
}

#[test]
fn a_run_that_ended_undecided_names_the_command_that_goes_on_and_its_time() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 6, 0.04, 3, |t, _| if t == 1 { 1.06 } else { 1.0 });
    let ended = Evidence {
        ended: true,
        ..evidence(&head, &data, 6)
    };
    let verdict = judge(&ended);
    assert!(
        verdict
            .sentence
            .contains("`stackrace resume r --until-decided` would take about "),
        "{}",
        verdict.sentence
    );
}

/// A ratio of 1.36 whose interval holds 1: a hint is given, and said to be no more.
#[test]
fn what_is_probable_is_said_to_be_no_certainty() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 4, 0.12, 2, |t, _| if t == 1 { 1.3 } else { 1.0 });
    let verdict = judge(&evidence(&head, &data, 4));
    assert_eq!(verdict.state, State::Undecided);
    assert_eq!(
        verdict.overall[0].word,
        VerdictWord::Probably { better: true }
    );
    assert_eq!(verdict.grade(), "probably");
    assert!(
        verdict.sentence.starts_with("b is probably 1.")
            && verdict.sentence.contains("; not certain"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn an_interval_that_excludes_nothing_is_in_no_sentence() {
    let head = head(&["fs"], &[&["a"], &["b"]], 2, Some("fs"));
    let data = trials(&head, 3, 0.8, 4, |_, _| 1.0);
    let verdict = judge(&evidence(&head, &data, 3));
    let all = format!("{} {}", verdict.sentence, verdict.details.join(" "));
    assert_eq!(verdict.state, State::Undecided);
    assert!(
        !all.contains("times as fast") && !all.contains("er;") && !all.contains("slower"),
        "{all}"
    );
}

#[test]
fn the_best_of_many_is_found_and_the_worst_is_dropped() {
    let head = head(&["x"], &[&["a"], &["b"], &["c"], &["d"]], 2, None);
    let data = trials(&head, 8, 0.01, 11, |t, _| [1.0, 1.3, 0.5, 0.9][t]);
    let proof = evidence(&head, &data, 8);
    let verdict = judge(&proof);
    assert_eq!(verdict.state, State::Decided);
    assert_eq!(verdict.configurations[0].name, "b");
    assert!(
        verdict
            .sentence
            .starts_with("b is fastest over all 2 workloads; b is 1.3"),
        "{}",
        verdict.sentence
    );
    assert!(to_drop(&proof).contains(&2));
    assert!(!to_drop(&proof).contains(&1));
}

/// "Every round" is asked of every configuration.
#[test]
fn nothing_is_dropped_from_a_study_that_wants_every_round() {
    let mut head = head(&["x"], &[&["a"], &["b"], &["c"]], 2, None);
    let data = trials(&head, 8, 0.01, 11, |t, _| [1.0, 1.3, 0.5][t]);
    assert_eq!(to_drop(&evidence(&head, &data, 8)), [2]);
    head.decide.until = Until::Never;
    assert_eq!(to_drop(&evidence(&head, &data, 8)), [0; 0]);
}

/// "At least 1.4 times as fast" is no good answer where it is 3.5 times.
#[test]
fn a_level_is_measured_until_its_difference_is_known() {
    let levels: [&[&str]; 3] = [&["none"], &["near"], &["far"]];
    let head = head(&["replication"], &levels, 1, Some("replication"));
    let data = trials(&head, 12, 0.07, 3, |t, _| [1.0, 1.0, 0.5][t]);
    let decided = |rounds| {
        judge(&evidence(&head, &data, rounds)).overall[1]
            .word
            .decides()
    };
    let dropped = |rounds| to_drop(&evidence(&head, &data, rounds)).contains(&2);
    let first = |so: &dyn Fn(u32) -> bool| (3..=12).find(|rounds| so(*rounds)).unwrap();
    let (decided, dropped) = (first(&decided), first(&dropped));
    assert!(decided < dropped, "{decided} {dropped}");
}

/// Against a baseline nothing is beaten: what is answered leaves the rounds to what is open.
#[test]
fn rounds_go_to_the_levels_that_are_not_answered() {
    let levels: [&[&str]; 3] = [&["none"], &["near"], &["far"]];
    let mut head = head(&["replication"], &levels, 2, Some("replication"));
    let data = trials(&head, 8, 0.01, 11, |t, _| [1.0, 0.97, 0.7][t]);
    let open = |rounds| !judge(&evidence(&head, &data, rounds)).settled;
    let rounds = (3..=8).find(|rounds| !to_drop(&evidence(&head, &data, *rounds)).is_empty());
    let rounds = rounds.unwrap();
    assert_eq!(to_drop(&evidence(&head, &data, rounds)), [2]);
    assert!(open(rounds), "the other one is open");
    // It is measured no more, and what was said of it stands.
    let mut rest = data.clone();
    rest.retain(|trial| trial.configuration != 2 || trial.round <= rounds);
    let mut proof = evidence(&head, &rest, 8);
    proof.dropped = vec![(2, rounds)];
    let verdict = judge(&proof);
    assert!(verdict.overall[1].word.decides(), "{}", verdict.sentence);
    assert_eq!(verdict.overall[1].rounds.len(), rounds as usize);
    let left = verdict.configurations[2].left().unwrap().to_string();
    assert_eq!(left, format!("answered after round {rounds}"));
    assert_eq!(verdict.configurations[1].left(), None);
    let notes = verdict.notes.join("; ");
    assert!(!notes.contains("lacks"), "{notes}");
    head.decide.until = Until::Never;
    assert!(to_drop(&evidence(&head, &data, rounds)).is_empty());
}

#[test]
fn a_tie_is_named_as_one() {
    let head = head(&["x"], &[&["a"], &["b"], &["c"]], 1, None);
    let data = trials(&head, 20, 0.005, 11, |t, _| [1.0, 1.0, 0.5][t]);
    let verdict = judge(&evidence(&head, &data, 20));
    assert_eq!(verdict.state, State::Decided, "{}", verdict.sentence);
    assert!(
        verdict
            .sentence
            .contains(" are tied: no difference larger than "),
        "{}",
        verdict.sentence
    );
}

/// Comparisons that are with the first configuration at the start are with it in the end.
#[test]
fn the_baseline_never_moves_and_is_never_dropped() {
    let head = head(&["x"], &[&["a"], &["b"], &["c"]], 1, None);
    let data = trials(&head, 8, 0.01, 11, |t, _| [0.5, 1.0, 1.3][t]);
    for rounds in 3..=8 {
        let verdict = judge(&evidence(&head, &data, rounds));
        assert!(verdict.overall.iter().all(|c| c.a == "a"), "{rounds}");
        assert!(verdict.ranking.iter().all(|c| c.a == "c"), "{rounds}");
        assert!(!to_drop(&evidence(&head, &data, rounds)).contains(&0));
    }
}

#[test]
fn none_is_dropped_after_the_last_round() {
    let mut head = head(&["x"], &[&["a"], &["b"], &["c"]], 1, None);
    let data = trials(&head, 8, 0.01, 11, |t, _| [1.0, 1.3, 0.5][t]);
    assert_eq!(to_drop(&evidence(&head, &data, 8)), [2]);
    head.decide.rounds_max = 8;
    assert_eq!(to_drop(&evidence(&head, &data, 8)), [0; 0]);
}

/// One that failed is neither beaten nor dropped: the answer says it failed, and stays open.
#[test]
fn one_that_failed_makes_no_other_the_winner() {
    let head = head(&["x"], &[&["a"], &["b"], &["c"]], 1, None);
    let mut data = trials(&head, 8, 0.01, 11, |t, _| [1.0, 1.3, 2.0][t]);
    data.retain(|trial| trial.configuration != 2 || trial.round == 1);
    failed(
        data.iter_mut()
            .find(|trial| trial.configuration == 2)
            .unwrap(),
    );
    let mut proof = evidence(&head, &data, 8);
    proof.dropped = vec![(2, 0)];
    let verdict = judge(&proof);
    assert_eq!(verdict.state, State::Undecided);
    assert!(
        verdict.sentence.starts_with("c failed in round 1: ")
            && verdict.sentence.contains("Without it: b is fastest"),
        "{}",
        verdict.sentence
    );
    // Nothing more can be found out about the others.
    assert!(may_stop(&proof));
}

#[test]
fn one_of_two_that_failed_leaves_what_was_found_before() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let mut data = trials(&head, 8, 0.01, 11, |t, _| [1.0, 1.3][t]);
    failed(data.last_mut().unwrap());
    let sentence = |before: u32| {
        let mut proof = evidence(&head, &data, 8);
        proof.dropped = vec![(1, before)];
        let verdict = judge(&proof);
        assert_eq!(verdict.state, State::Undecided);
        verdict.sentence
    };
    let late = sentence(7);
    assert!(
        late.starts_with("b failed in round 8: ")
            && late.contains("In the rounds before: b is 1.3"),
        "{late}"
    );
    let early = sentence(1);
    assert!(
        early.starts_with("No verdict: b failed in round 8: "),
        "{early}"
    );
}

/// Its values are those of its own rounds: without their number one configuration would have two figures.
#[test]
fn a_comparison_that_was_answered_earlier_says_of_how_many_rounds_it_is() {
    let levels: [&[&str]; 3] = [&["none"], &["few"], &["many"]];
    let head = head(&["sync"], &levels, 1, Some("sync"));
    let mut data = trials(&head, 8, 0.01, 11, |t, _| [1.0, 0.5, 0.1][t]);
    data.retain(|trial| trial.configuration != 2 || trial.round <= 5);
    let mut proof = evidence(&head, &data, 8);
    proof.dropped = vec![(2, 5)];
    let sentence = judge(&proof).sentence;
    assert_eq!(sentence.matches(", in 5 rounds").count(), 1, "{sentence}");
    assert!(sentence.contains("confidence, 8 rounds"), "{sentence}");
    let all = evidence(&head, &data, 5);
    let sentence = judge(&all).sentence;
    assert!(!sentence.contains(", in 5 rounds"), "{sentence}");
}

/// The error is that of all checks together: what one was certain of is not taken back, and not forgotten.
#[test]
fn a_direction_that_was_certain_is_said_after_rounds_that_leave_it_open() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let mut data = trials(&head, 9, 0.01, 11, |t, _| [1.0, 1.3][t]);
    let sentence = |data: &[Observation]| judge(&evidence(&head, data, 9)).sentence;
    assert!(!sentence(&data).contains("was certain after"));
    let later = data
        .iter_mut()
        .filter(|trial| trial.round > 4 && trial.configuration == 1);
    for trial in later {
        let factor = match trial.round.is_multiple_of(2) {
            true => 0.6,
            false => 1.3,
        };
        for value in trial.metrics.iter_mut().flatten() {
            *value *= factor;
        }
    }
    let said = sentence(&data);
    assert!(
        said.contains("b is probably 1.2")
            && said.contains("that it is faster was certain after round "),
        "{said}"
    );
    // Those who follow the run are told so, too.
    let proof = evidence(&head, &data, 9);
    let under_way = Look::at(&proof).answer().sentence;
    assert!(
        under_way.contains("that it is faster was certain after round "),
        "{under_way}"
    );
}

#[test]
fn a_direction_that_was_certain_is_said_where_not_even_a_hint_of_it_is_left() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let mut data = trials(&head, 16, 0.01, 11, |t, _| [1.0, 1.3][t]);
    let later = data
        .iter_mut()
        .filter(|trial| trial.round > 6 && trial.configuration == 1);
    for trial in later {
        // As far to the other side: the mean of all rounds is near 1.
        let factor = [0.4, 0.8][trial.round as usize % 2];
        for value in trial.metrics.iter_mut().flatten() {
            *value *= factor;
        }
    }
    let said = judge(&evidence(&head, &data, 16)).sentence;
    assert!(
        said.contains("cannot be told apart yet")
            && said.contains("; that b is faster was certain after round "),
        "{said}"
    );
}

/// The round of the failure was finished, and holds nothing of what failed.
#[test]
fn the_rounds_before_a_failure_are_counted_alike_while_the_run_goes_on_and_when_it_ended() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let mut data = trials(&head, 8, 0.01, 11, |t, _| [1.0, 1.3][t]);
    failed(data.last_mut().unwrap());
    let mut proof = evidence(&head, &data, 8);
    proof.dropped = vec![(1, 7)];
    let under_way = Look::at(&proof).answer().sentence;
    assert!(under_way.contains(", 7 rounds"), "{under_way}");
    assert_eq!(judge(&proof).sentence, under_way);
}

/// Rounds go where something is open: all workloads while the overall question is, then the open ones.
#[test]
fn rounds_go_to_the_workloads_that_are_not_decided() {
    let mut head = head(&["fs"], &[&["a"], &["b"]], 3, Some("fs"));
    head.decide.until = Until::Each;
    let data = trials(&head, 6, 0.01, 5, |t, w| {
        if t == 1 { [1.3, 1.3, 1.035][w] } else { 1.0 }
    });
    let open = |rounds| Look::at(&evidence(&head, &data, rounds)).undecided_workloads();
    assert_eq!(open(2), [0, 1, 2]);
    assert_eq!(open(6), [2]);
    // The rounds without the others are no gap, and no claim on them is lost.
    let mut rest = data.clone();
    rest.retain(|trial| trial.round < 6 || trial.workload == 2);
    let verdict = judge(&evidence(&head, &rest, 6));
    assert!(
        verdict.notes.iter().all(|note| !note.contains("lacks")),
        "{:?}",
        verdict.notes
    );
    assert_eq!(verdict.workloads[0].rounds.len(), 5);
    assert!(verdict.workloads[0].word.decides());
    head.decide.until = Until::Overall;
    let proof = evidence(&head, &data, 6);
    assert_eq!(Look::at(&proof).undecided_workloads(), [0, 1, 2]);
}

/// A configuration that failed before a round was complete was never out of a race, and a baseline is no measurement of
/// itself.
#[test]
fn a_row_says_why_it_has_no_figure() {
    let levels: [&[&str]; 3] = [&["none"], &["near"], &["far"]];
    let head = head(&["replication"], &levels, 1, Some("replication"));
    let mut data = trials(&head, 2, 0.01, 11, |_, _| 1.0);
    data.retain(|trial| trial.configuration != 2);
    let mut proof = evidence(&head, &data, 2);
    proof.dropped = vec![(2, 0)];
    let rows = judge(&proof).configurations;
    let said = |row: usize| {
        (
            rows[row].baseline,
            rows[row].lacking.is_some(),
            rows[row].left(),
        )
    };
    assert_eq!(said(0), (true, false, None));
    assert_eq!(said(1), (false, true, None));
    assert!(!rows[2].baseline && rows[2].lacking.is_none());
    let left = rows[2].left().unwrap();
    assert_eq!(left.to_string(), "failed in the first round");
    assert_eq!(left.short(), "failed");
}
