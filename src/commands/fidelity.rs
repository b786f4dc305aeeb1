//! Whether a replay is like the application that was recorded: found out before anything is compared.

use std::path::Path;
use std::sync::Arc;

use super::probe::{Probed, probe};
use crate::commands::compare::ComparedPath;
use stackrace_base::failure::Failure;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::ShownPath;
use stackrace_load::workload::metric;
use stackrace_load::workload::replay::Fidelity;
use stackrace_machine::host::local::LocalHost;
use stackrace_run::prepare::context::Context;
use stackrace_study::study::Study;

/// Replays on the storage of the recording: the middle one of them counts, as one alone may be disturbed.
const TRIES: usize = 3;

/// What was found out before the comparison.
pub(super) struct Tried {
    /// The last try.
    pub(super) probe: Probed,
    /// Time of one try, s: a trial of the run lays out its data and cleans up as it did.
    pub(super) seconds: f64,
    /// Sentences for the reader of the result.
    pub(super) said: Vec<String>,
}

impl Tried {
    /// One try of what repeats no recording.
    pub(super) fn once(probe: Probed, began_ns: u64) -> Self {
        Self {
            probe,
            seconds: seconds_since(began_ns),
            said: Vec::new(),
        }
    }
}

fn seconds_since(began_ns: u64) -> f64 {
    SystemClock.now_ns().saturating_sub(began_ns) as f64 / 1e9
}

/// Replays a trace where it was recorded, or once if that is not known.
///
/// # Errors
/// The replay fails, or is not like the application: nothing is compared then.
pub(super) fn tried(
    context: &Context,
    (host, study): (&LocalHost, &Study),
    (sides, home): (&[ComparedPath], Option<&Path>),
    (interrupt, remedy): (&Arc<Interrupt>, String),
    cold: bool,
) -> Result<Tried, Failure> {
    let home = place(sides, home)?;
    let side = &sides[home.unwrap_or(0)];
    let began = SystemClock.now_ns();
    let once = || {
        probe(
            context,
            host,
            study,
            side,
            (interrupt, remedy.clone()),
            cold,
        )
    };
    // Without a home one try shows that it works, and how long it takes.
    let mut last = once()?;
    let mut found: Vec<Fidelity> = last.fidelity.take().into_iter().collect();
    if home.is_some() {
        // Each lays out the tree anew: what the one before wrote is gone.
        while found.len() < TRIES {
            let mut next = once()?;
            found.extend(next.fidelity.take());
            last = next;
        }
    }
    let seconds = seconds_since(began) / found.len().max(1) as f64;
    let mut said = vec![match home {
        Some(_) => {
            let middle = middle(found);
            middle.map_or(Ok(String::new()), |middle| judged(&middle, &side.text))?
        }
        None => "how like the application this replay is, is not known: the directory where it was recorded is not \
                 among those that are compared (--home DIR)"
            .to_owned(),
    }];
    let first = study
        .workload_heads
        .first()
        .and_then(|head| head.metrics.first());
    if let Some(first) = first.filter(|first| **first != metric::elapsed_head()) {
        said.push(format!(
            "the recorded application mostly waits for others: {} is compared, and not the elapsed time",
            first.name
        ));
    }
    Ok(Tried {
        probe: last,
        seconds,
        said,
    })
}

/// The directory of the recording, among those that are compared.
fn place(sides: &[ComparedPath], home: Option<&Path>) -> Result<Option<usize>, Failure> {
    let Some(home) = home else {
        return Ok(None);
    };
    // Its name may be another one: a link, or a relative path.
    let path = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let found = sides.iter().position(|side| side.path == path);
    found.map(Some).ok_or_else(|| {
        Failure::usage(format!("--home {} is not compared", home.shown()))
            .next("name one of the directories that are compared, on the storage where the trace was recorded")
    })
}

/// The one with the middle time.
fn middle(mut found: Vec<Fidelity>) -> Option<Fidelity> {
    // Not the mean: one that was disturbed would move it.
    found.sort_by(|one, other| one.time().total_cmp(&other.time()));
    let at = found.len() / 2;
    (!found.is_empty()).then(|| found.swap_remove(at))
}

/// The sentence of a replay that is like the application.
fn judged(found: &Fidelity, side: &str) -> Result<String, Failure> {
    let words = found.words();
    let Some(unlike) = found.unlike() else {
        return Ok(words);
    };
    Err(Failure::refused(format!(
        "the replay in {side} is not like the application, so that no verdict about it can be given: {unlike}. {words}"
    ))
    .next("record the application again, on a machine with nothing else to do, with the caches as cold as they are here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_engine::replay::ReplayResults;
    use stackrace_trace::trace::DeviceTotal;

    fn found(replayed: f64) -> Fidelity {
        Fidelity {
            file_system: "ext4".to_owned(),
            lost: 0.0,
            covered: 0.996,
            cost: 0.04,
            elapsed_ns: [1e9, replayed],
            results: ReplayResults {
                calls: 70_000,
                differing: 7,
                first: None,
            },
            ops: Vec::new(),
            devices: [None, None],
        }
    }

    #[test]
    fn a_replay_that_takes_another_time_than_the_application_gives_no_verdict() {
        for (replayed, holds) in [(1.1e9, true), (0.9e9, true), (1.2e9, false), (0.8e9, false)] {
            let judged = judged(&found(replayed), "/mnt/a");
            assert_eq!(judged.is_ok(), holds, "{replayed}");
            if let Err(refused) = judged {
                let text = refused.render();
                assert!(text.contains("no verdict about it can be given"), "{text}");
            }
        }
        let words = judged(&found(1.06e9), "/mnt/a").ok().unwrap();
        let expected = "fidelity on ext4, where it was recorded: time 1.06 x of the recorded one";
        assert!(words.starts_with(expected), "{words}");
        assert!(words.contains("7 of 70000 results differ"), "{words}");
    }

    /// A program that adapts to its storage asks other things of it.
    #[test]
    fn a_replay_that_asks_other_things_of_the_device_than_the_application_gives_no_verdict() {
        let device = |read_bytes, written_bytes, flushes| {
            Some(DeviceTotal {
                read_bytes,
                written_bytes,
                flushes: Some(flushes),
            })
        };
        let with = |replayed| Fidelity {
            devices: [device(0, 100 << 20, 1000), replayed],
            ..found(1e9)
        };
        let words = judged(&with(device(0, 97 << 20, 1090)), "/mnt/a")
            .ok()
            .unwrap();
        let expected = "the device read nothing, as recorded, wrote 0.97 x, flushed 1.09 x";
        assert!(words.contains(expected), "{words}");
        // A megabyte is a journal's, and of what was not counted nothing can be said.
        assert!(judged(&with(device(1 << 20, 100 << 20, 1000)), "/mnt/a").is_ok());
        let words = judged(&with(None), "/mnt/a").ok().unwrap();
        assert!(
            words.contains("what the device did is not known"),
            "{words}"
        );
        for (replayed, why) in [
            (
                device(0, 100 << 20, 1200),
                "the device flushed 1,200 times, recorded were 1,000 times",
            ),
            (
                device(0, 80 << 20, 1000),
                "the device wrote 80 MiB, recorded were 100 MiB",
            ),
            (
                device(9 << 20, 100 << 20, 1000),
                "the device read 9 MiB, recorded were 0 B",
            ),
        ] {
            let refused = judged(&with(replayed), "/mnt/a").err().unwrap().render();
            let refused = refused.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn of_several_tries_the_middle_one_counts() {
        let middle = middle(vec![found(3e9), found(1e9), found(1.1e9)]).unwrap();
        assert_eq!(middle.elapsed_ns[1], 1.1e9);
    }
}
