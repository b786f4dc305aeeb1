//! A made-up run of two configurations, ext4 and xfs, whose places have these facts.

use super::difference::RunReading;
use crate::audit::set_ups::SetUps;
use crate::audit::whole::Audit;
use stackrace_base::event::{Event, Fact, LayerFacts, LogLine, Observation};
use stackrace_results::record::{Record, sample};

pub(super) struct Run {
    pub(super) record: Record,
}

impl Run {
    pub(super) fn of<'a>(facts: impl Fn(usize) -> Vec<(&'a str, &'a str)>) -> Self {
        let mut record = sample::record(&sample::small());
        let layer = |layer: &str, facts: Vec<Fact>| LayerFacts {
            layer: layer.to_owned(),
            facts,
        };
        for configuration in 0..2 {
            let stays = [("mounted", "before the run")];
            let facts = stays.into_iter().chain(facts(configuration));
            let place = facts
                .map(|(name, value)| Fact::of_older_log(name, value))
                .collect();
            record.lines.push(LogLine {
                at: String::new(),
                since_ns: None,
                event: Event::StackSetUp {
                    round: 9,
                    configuration,
                    layers: vec![layer("place", place)],
                    lies_on: Vec::new(),
                    elapsed_ns: 0,
                },
            });
        }
        Self { record }
    }

    pub(super) fn each_trial(&mut self, change: impl Fn(&mut Observation)) {
        for line in &mut self.record.lines {
            if let Event::Trial(trial) = &mut line.event {
                change(trial);
            }
        }
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&RunReading<'_>) -> T) -> T {
        let trials: Vec<&Observation> = self.record.trials().collect();
        let set_ups = SetUps::of(&self.record.lines);
        let audit = Audit::of(&self.record.head, &trials, &set_ups);
        read(&RunReading {
            head: &self.record.head,
            trials: &trials,
            set_ups: &set_ups,
            cells: &audit.cells,
        })
    }
}
