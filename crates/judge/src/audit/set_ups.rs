//! The stacks of a run as they were set up: what each layer got, and what stood beside them.

use std::sync::OnceLock;

use stackrace_base::event::{Event, Fact, FactFigure, LayerFacts, LogLine};

/// Name under which the facts of the place are on record, beside those of the layers.
const PLACE: &str = "place";

/// Every set-up of a run, first to last.
#[derive(Debug, Clone, Default)]
pub struct SetUps<'a> {
    lines: &'a [LogLine],
    /// Collected when they are first asked for: a check between rounds never does.
    all: OnceLock<Vec<SetUp>>,
}

/// One set-up.
#[derive(Debug, Clone)]
struct SetUp {
    configuration: usize,
    /// Its line, by number: a reference would be fixed to the lifetime of the first question.
    line: usize,
    /// Configurations that stood at that moment.
    beside: Vec<usize>,
}

impl<'a> SetUps<'a> {
    /// The set-ups among the lines of a run.
    pub fn of(lines: &'a [LogLine]) -> Self {
        Self {
            lines,
            all: OnceLock::new(),
        }
    }

    fn collected(&self) -> Vec<SetUp> {
        let (mut all, mut standing) = (Vec::new(), Vec::new());
        for (at, line) in self.lines.iter().enumerate() {
            match &line.event {
                Event::StackSetUp { configuration, .. } => {
                    // Set up again without a tear-down between: a run that was killed and continued.
                    standing.retain(|known| known != configuration);
                    all.push(SetUp {
                        configuration: *configuration,
                        line: at,
                        beside: standing.clone(),
                    });
                    standing.push(*configuration);
                }
                // What stood when the run was killed was removed before it went on.
                Event::RunResumed { .. } => standing.clear(),
                Event::StackTornDown { configuration, .. } => {
                    standing.retain(|known| known != configuration);
                }
                _ => {}
            }
        }
        all
    }

    fn of_configuration(&self, configuration: usize) -> impl Iterator<Item = &SetUp> {
        let mine = move |set_up: &&SetUp| set_up.configuration == configuration;
        let all = self.all.get_or_init(|| self.collected());
        all.iter().filter(mine)
    }

    /// The facts of the layers of a configuration at its last set-up.
    fn last_layers(&self, configuration: usize) -> Option<&'a [LayerFacts]> {
        let last = self.of_configuration(configuration).last()?;
        match &self.lines[last.line].event {
            Event::StackSetUp { layers, .. } => Some(layers),
            _ => None,
        }
    }

    /// A fact of the place a configuration's data lie on, from its last set-up: what it says of the
    /// space in use is then what the trials left.
    pub(super) fn place(&self, configuration: usize, name: &str) -> Option<&'a Fact> {
        let mut layers = self.last_layers(configuration)?.iter();
        let place = layers.find(|layer| layer.layer == PLACE)?;
        place.facts.iter().find(|fact| fact.name == name)
    }

    /// Returns true if two configurations are measured in one directory of the user's: one storage under two settings.
    pub(super) fn one_directory(&self, a: usize, b: usize) -> bool {
        let of = |configuration| {
            let layers = self.last_layers(configuration)?.iter();
            let mut facts = layers.flat_map(|layer| &layer.facts);
            facts.find(|fact| fact.name == "directory")
        };
        of(a).is_some_and(|one| of(b) == Some(one))
    }

    /// Returns true if a layer of a configuration had a fact with this figure, at its last set-up.
    pub(super) fn has(&self, configuration: usize, figure: &FactFigure) -> bool {
        let layers = self.last_layers(configuration).unwrap_or_default();
        let mut facts = layers.iter().flat_map(|layer| &layer.facts);
        facts.any(|fact| fact.figure.as_ref() == Some(figure))
    }

    /// Returns true if two configurations were there at the same time: both stood, or one lies on a file system that is
    /// always there.
    pub(super) fn together(&self, a: usize, b: usize) -> bool {
        let beside = |one: usize, other: usize| {
            let mut mine = self.of_configuration(one);
            mine.any(|set_up| set_up.beside.contains(&other))
        };
        // A directory of the user's is there the whole time.
        self.stays(a) || self.stays(b) || beside(a, b) || beside(b, a)
    }

    fn stays(&self, configuration: usize) -> bool {
        let mounted = self.place(configuration, "mounted");
        mounted.is_some_and(|fact| fact.figure == Some(FactFigure::BeforeTheRun(true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_up(configuration: usize) -> Event {
        Event::StackSetUp {
            round: 1,
            configuration,
            layers: Vec::new(),
            lies_on: Vec::new(),
            elapsed_ns: 0,
        }
    }

    #[test]
    fn what_stood_when_a_run_was_killed_stands_beside_nothing_after_it() {
        let resumed = || Event::RunResumed {
            stackrace: "1".into(),
            rounds: 0,
        };
        for (between, together) in [(None, true), (Some(resumed()), false)] {
            let events = [set_up(0)].into_iter().chain(between).chain([set_up(1)]);
            let lines = events.map(|event| LogLine {
                at: String::new(),
                since_ns: None,
                event,
            });
            let lines: Vec<LogLine> = lines.collect();
            assert_eq!(SetUps::of(&lines).together(0, 1), together);
        }
    }
}
