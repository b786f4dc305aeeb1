//! What a layer does to every figure of its configuration, so that it says something else than a reader may think.

use super::difference::{RunReading, Unlike, named};
use stackrace_base::event::{FactFigure, LayerEffect};

/// Each effect, and what it does to figures. Sources: cryptsetup(8), dm-integrity.rst, bcache.rst and
/// nbd-server(5).
const EFFECTS: [(LayerEffect, &str); 5] = [
    (
        LayerEffect::SlowCipher,
        "the processor has no instructions for the cipher: its speed is measured, and not the disk's",
    ),
    (
        LayerEffect::WrittenTwice,
        "all data are written twice, to a journal and to their place: writes cost at least half of what the disk can do",
    ),
    (
        LayerEffect::EmptyCache,
        "the cache was empty when the stack was set up: what is read for the first time comes from the slow device",
    ),
    (
        LayerEffect::NoNetwork,
        "client and server are on one machine: no network is measured, and both use one processor and one memory",
    ),
    (
        LayerEffect::FlushesKept,
        "the server takes no flushes and keeps writes in its memory: fsync costs nothing there, and promises nothing",
    ),
];

pub(super) fn judge(run: &RunReading<'_>) -> Vec<Unlike> {
    let found = EFFECTS.iter().filter_map(|(effect, means)| {
        let has = |at| {
            run.set_ups
                .has(at, &FactFigure::Effect(*effect))
                .then_some(())
        };
        let with: Vec<usize> = run.each(has).into_iter().map(|(at, ())| at).collect();
        (!with.is_empty()).then(|| Unlike {
            check: "layers",
            sentence: format!("{}: {means}", named(run.head, &with)),
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::Run;
    use super::*;
    use stackrace_base::event::{Event, Fact};

    /// Each raised in one configuration; the other one is the control.
    #[test]
    fn an_effect_is_told_of_the_configuration_that_has_it_and_of_no_other() {
        for (effect, means) in EFFECTS {
            let mut run = Run::of(|_| Vec::new());
            for line in &mut run.record.lines {
                if let Event::StackSetUp {
                    configuration: 1,
                    layers,
                    ..
                } = &mut line.event
                {
                    let fact = Fact::new("of a layer", "").with(FactFigure::Effect(effect));
                    layers[0].facts.push(fact);
                }
            }
            let told = run.read(judge);
            assert_eq!(told.len(), 1, "{told:?}");
            assert_eq!(told[0].sentence, format!("xfs: {means}"));
        }
        assert_eq!(Run::of(|_| Vec::new()).read(judge), []);
    }
}
