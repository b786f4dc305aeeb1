//! When the power is cut: anywhere in a trial, and where it matters.

use stackrace_drives::Operation;

use super::capture::Capture;
use stackrace_base::event::{OperationKind, Promised};

/// One cut that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instant {
    /// Time of the cut, ns, on the clock of the guest.
    pub at_ns: u64,
    /// Seed from which everything else of the cut is drawn.
    pub seed: u64,
    /// Stratum that the instant was drawn from.
    pub stratum: &'static str,
}

/// Spans of time of one kind.
type Spans = Vec<(u64, u64)>;

/// The cuts of a trial: the same seed draws the same, whatever number of them is asked for.
pub fn instants(promised: &Promised, capture: &Capture, seed: u64, count: u32) -> Vec<Instant> {
    let strata = strata(promised, capture);
    let Some(whole) = strata.first().and_then(|all| all.1.first()) else {
        return Vec::new();
    };
    let whole = *whole;
    let instant = |number: u32| {
        let drawn = |what: &str| draw(seed, number, what);
        // Every other one lies anywhere: those alone say how often a cut does harm.
        let (stratum, spans) = match number % 2 {
            1 => ("anywhere", &strata[0].1),
            _ => {
                let place = (number / 2) as usize % strata.len();
                (strata[place].0, &strata[place].1)
            }
        };
        let span = spans.get(drawn("span") as usize % spans.len().max(1));
        let (from, to) = span.copied().unwrap_or(whole);
        Instant {
            at_ns: from + drawn("instant") % (to - from).max(1),
            seed: drawn("drives"),
            stratum,
        }
    };
    (1..=count).map(instant).collect()
}

/// Kinds of spans that a trial has, `anywhere` first; nothing: no operation was acknowledged.
fn strata(promised: &Promised, capture: &Capture) -> Vec<(&'static str, Spans)> {
    let clocked = promised
        .lines
        .iter()
        .filter(|line| line.kind != OperationKind::AtRest);
    let done: Vec<_> = clocked
        .filter_map(|line| Some((line, line.begun_ns, line.acknowledged_ns?)))
        .collect();
    let begin = done.iter().map(|each| each.1).min();
    let end = done.iter().map(|each| each.2).max();
    let Some((begin, end)) = begin.zip(end) else {
        return Vec::new();
    };
    let inside = |span: &(u64, u64)| span.0 >= begin && span.1 <= end && span.0 < span.1;
    let logs = capture.drives.iter().flat_map(|drive| &drive.log.entries);
    let flushes = logs.filter(|entry| entry.request.operation == Operation::Flush);
    let flushes = flushes.filter_map(|entry| Some((entry.submitted, entry.completed?)));
    let replaces = done
        .iter()
        .filter(|each| each.0.kind == OperationKind::Replace);
    let all = [
        ("anywhere", vec![(begin, end + 1)]),
        ("in a flush", flushes.filter(inside).collect()),
        // What was promised a moment ago has had the least time to reach the medium by itself.
        (
            "after a promise",
            done.iter().map(|each| (each.2, each.2 + 1)).collect(),
        ),
        (
            "in a replace",
            replaces.map(|each| (each.1, each.2)).collect(),
        ),
    ];
    all.into_iter()
        .filter(|each: &(_, Spans)| !each.1.is_empty())
        .collect()
}

fn draw(seed: u64, number: u32, what: &str) -> u64 {
    let mut hash = blake3::Hasher::new();
    hash.update(b"power cut ").update(what.as_bytes());
    hash.update(&seed.to_le_bytes())
        .update(&number.to_le_bytes());
    let drawn = hash.finalize();
    u64::from_le_bytes(*drawn.as_bytes().first_chunk().unwrap_or(&[0; 8]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{LedgerLine, Promise};

    /// Operations of 100 ns each, one right after the other, from 1000 on.
    fn promised(count: u64) -> Promised {
        let line = |number| LedgerLine {
            number,
            worker: 0,
            kind: match number {
                0 => OperationKind::AtRest,
                number if number % 3 == 0 => OperationKind::Replace,
                _ => OperationKind::Append,
            },
            object: "file".to_owned(),
            offset: 0,
            bytes: 512,
            generation: 1,
            promise: Promise::Fsync,
            begun_ns: 900 + number * 100,
            acknowledged_ns: Some(1000 + number * 100),
        };
        Promised {
            round: 1,
            configuration: 0,
            workload: 0,
            seed: 1,
            directory: "/work".to_owned(),
            lines: (0..count).map(line).collect(),
        }
    }

    #[test]
    fn cuts_lie_in_the_trial_and_half_of_them_anywhere() {
        let drawn = instants(&promised(50), &Capture::default(), 7, 200);
        assert_eq!(drawn.len(), 200);
        // From the first operation on the clock to the end of the last; data at rest come before.
        assert!(drawn.iter().all(|cut| (1000..=5900).contains(&cut.at_ns)));
        let of = |stratum| drawn.iter().filter(|cut| cut.stratum == stratum).count();
        assert!(of("anywhere") >= 100);
        assert!(of("after a promise") > 20 && of("in a replace") > 20);
        // Without a flush in the logs none is cut in one.
        assert_eq!(of("in a flush"), 0);
        let after = drawn.iter().filter(|cut| cut.stratum == "after a promise");
        assert!(after.clone().all(|cut| cut.at_ns % 100 == 0));
    }

    #[test]
    fn the_same_seed_draws_the_same_cuts_and_more_of_them_begin_alike() {
        let draw = |seed, count| instants(&promised(50), &Capture::default(), seed, count);
        assert_eq!(draw(7, 40), draw(7, 40));
        assert_eq!(draw(7, 40)[..10], draw(7, 10)[..]);
        assert_ne!(draw(7, 40), draw(8, 40));
    }

    #[test]
    fn where_nothing_was_acknowledged_nothing_is_cut() {
        assert!(instants(&promised(1), &Capture::default(), 7, 10).is_empty());
    }
}
