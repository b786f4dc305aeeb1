//! What is kept from check to check, against the same worked out anew.

use super::*;
use crate::verdict::KeptEvidence;
use stackrace_base::event::{Event, FailureCause, LogLine, Sliced, SlicesEnded};
use stackrace_results::record::Record;

/// A run that grows by anything that can come: trials of both kinds, failed ones, rounds that never end, resumes.
struct Growing {
    record: Record,
    random: Xoshiro256PlusPlus,
    since_ns: u64,
}

impl Growing {
    fn of(seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        // A ranking, a baseline, and a factor with others.
        let configurations: [&[&str]; 4] = [&["a", "1"], &["b", "1"], &["a", "2"], &["b", "2"]];
        let comparison = [None, Some("fs")][seed as usize % 2];
        let mut head = head(&["fs", "n"], &configurations, 2, comparison);
        head.decide.until = [Until::Overall, Until::Each, Until::Never][seed as usize % 3];
        let metric = head.workloads[0].metrics[0].clone();
        head.workloads[0].metrics.push(metric);
        let begins = LogLine {
            at: String::new(),
            since_ns: Some(0),
            event: Event::RunStarted(Box::new(head)),
        };
        Self {
            record: Record::begin(begins).unwrap(),
            random,
            since_ns: 0,
        }
    }

    /// True once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.random.next_u64().is_multiple_of(times)
    }

    fn push(&mut self, event: Event) {
        self.since_ns += 1_000_000_000 + self.random.next_u64() % 1_000_000_000;
        self.record.push(LogLine {
            at: String::new(),
            since_ns: Some(self.since_ns),
            event,
        });
    }

    fn trial(&mut self, round: u32, configuration: usize, workload: usize) -> Observation {
        let value = 1000.0 * (0.02 * normal(&mut self.random)).exp();
        let mut trial = observation(round, configuration, workload, value);
        trial.metrics.push(Some(value / 7.0));
        trial.position = (configuration + round as usize) % 4;
        if self.once_in(12) {
            trial.metrics[0] = None;
        }
        if workload == 0 && self.once_in(2) {
            trial.sliced = Some(Sliced::default());
        }
        if self.once_in(30) {
            trial.ended = Ended::Interrupted;
        }
        if self.once_in(90) {
            let full = self.once_in(2);
            trial.cause = full.then_some(FailureCause::Errno(28));
            let error = "it failed".to_owned();
            trial.ended = Ended::Failed { error };
        }
        trial
    }

    /// One round with a check behind it, or what a run that was killed leaves of it; `look` is called after each line.
    fn round(&mut self, round: u32, mut look: impl FnMut(&Record)) {
        self.push(Event::RoundStarted {
            round,
            order: Vec::new(),
            orders: Vec::new(),
        });
        for (configuration, workload) in [0, 1, 2, 3].into_iter().flat_map(|c| [(c, 0), (c, 1)]) {
            let times = if self.once_in(8) { 2 } else { 1 };
            for _ in 0..times {
                let trial = self.trial(round, configuration, workload);
                self.push(Event::Trial(Box::new(trial)));
                look(&self.record);
            }
            if self.once_in(60) {
                self.push(Event::RunResumed {
                    stackrace: "1".to_owned(),
                    rounds: 20,
                });
                look(&self.record);
                return;
            }
        }
        self.push(Event::RoundFinished {
            round,
            trials: None,
        });
        look(&self.record);
        let ends = self.once_in(9);
        let why = "of this test".to_owned();
        let whole = ends.then_some(SlicesEnded { workload: 0, why });
        let dropped = if self.once_in(12) {
            vec![2]
        } else {
            Vec::new()
        };
        self.push(Event::Checked {
            rounds: u32::try_from(self.record.complete_rounds().len()).unwrap(),
            sentence: String::new(),
            dropped,
            whole: whole.into_iter().collect(),
        });
        look(&self.record);
    }
}

/// Everything that a look says, to the last bit.
fn said(look: &Look<'_>, decide: &Decide) -> String {
    format!(
        "{:?}",
        (
            look.answer(),
            look.may_stop(decide),
            look.to_drop(decide),
            look.undecided_workloads(),
            (look.overall(), look.configurations()),
            (&look.workloads, &look.ranking, &look.more),
        )
    )
}

#[test]
fn what_is_kept_from_check_to_check_says_the_same_as_all_that_is_on_record() {
    for seed in 0..24 {
        let mut growing = Growing::of(seed);
        let mut kept = KeptEvidence::default();
        let mut line = 0;
        let mut check = |record: &Record| {
            line += 1;
            let anew = Evidence::of(record);
            let evidence = kept.of(record);
            assert_eq!(
                format!("{evidence:?}"),
                format!("{anew:?}"),
                "seed {seed}, line {line}"
            );
            assert_eq!(kept.dropped(record), anew.dropped);
            // Not after each line: several may have come since.
            if line % 3 == 0 || matches!(record.lines.last().unwrap().event, Event::Checked { .. })
            {
                let decide = &record.head.decide;
                let undecided = kept.undecided_workloads(record);
                let whole = Look::at(&anew);
                assert_eq!(undecided, whole.undecided_workloads());
                let look = kept.look(&evidence);
                assert_eq!(
                    said(&look, decide),
                    said(&whole, decide),
                    "seed {seed}, line {line}"
                );
            }
        };
        for _ in 0..9 {
            let round = growing.record.next_round();
            growing.round(round, &mut check);
        }
    }
}

#[test]
fn what_was_kept_of_one_run_is_not_taken_for_another_ones() {
    let mut kept = KeptEvidence::default();
    for (seed, run) in [(1, "one"), (3, "other"), (1, "one")] {
        let mut growing = Growing::of(seed);
        growing.record.head.run = run.to_owned();
        for round in 1..=4 {
            growing.round(round, |_| ());
        }
        let record = &growing.record;
        let (evidence, anew) = (kept.of(record), Evidence::of(record));
        let decide = &record.head.decide;
        assert_eq!(
            said(&kept.look(&evidence), decide),
            said(&Look::at(&anew), decide)
        );
    }
}
