//! Measured requests of a real drive, and how well a model meets them.

use crate::{Drive, Nanos, Operation, Request, SECTOR};

/// A request with what was measured of it. One request at a time was outstanding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The request itself.
    pub request: Request,
    /// Time from submission to completion.
    pub service: Nanos,
    /// Time from this completion to the next submission.
    pub pause: Nanos,
}

/// The reason for which a line is no measured request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: R or W, a word or nothing, first block, blocks, service time and pause in us are expected"
)]
pub struct TraceError {
    /// Number of the line, counted from 1.
    pub line: usize,
}

/// Reads a trace: a request a line, `R|W [WORD] FIRST BLOCKS SERVICE PAUSE`; blocks of 512 bytes,
/// times in µs; the word is not used. Empty lines and lines that begin with `#` are left out.
///
/// # Errors
/// At the first line that is none, and when no line is a request.
pub fn trace(text: &str) -> Result<Vec<Measured>, TraceError> {
    let lines = text.lines().zip(1..).filter(|(line, _)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let requests: Result<Vec<_>, _> = lines
        .zip(0..)
        .map(|((line, number), id)| measured(line, id).ok_or(TraceError { line: number }))
        .collect();
    requests.and_then(|all| {
        if all.is_empty() {
            Err(TraceError { line: 1 })
        } else {
            Ok(all)
        }
    })
}

fn measured(line: &str, id: u64) -> Option<Measured> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ([operation, _, first, sectors, service, pause]
    | [operation, first, sectors, service, pause]) = words[..]
    else {
        return None;
    };
    let operation = match operation {
        "R" => Operation::Read,
        "W" => Operation::Write { durable: false },
        _ => return None,
    };
    let time = |word: &str| {
        let us = word
            .parse()
            .ok()
            .filter(|us: &f64| (0.0..1e12).contains(us));
        us.map(|us| (us * 1e3).round() as Nanos)
    };
    // Sums of both must not overflow: no drive has 2^62 sectors.
    let first = first.parse().ok().filter(|first: &u64| *first < 1 << 62)?;
    let sectors = sectors.parse().ok().filter(|sectors| *sectors > 0)?;
    Some(Measured {
        request: Request {
            id,
            operation,
            first,
            sectors,
        },
        service: time(service)?,
        pause: time(pause)?,
    })
}

/// Service times of a model for the requests of a trace, one at a time with the trace's pauses.
#[must_use]
pub fn replay(drive: &mut dyn Drive, trace: &[Measured]) -> Vec<Nanos> {
    let mut now = 0;
    let mut times = Vec::with_capacity(trace.len());
    for measured in trace {
        drive.submit(measured.request, now);
        // A model that has an outstanding request has a next event.
        let done = std::iter::from_fn(|| {
            let at = drive.next_event()?;
            Some((at, drive.complete(at)))
        })
        .find_map(|(at, done)| done.map(|_| at));
        let done = done.unwrap_or(now);
        times.push(done - now);
        now = done + measured.pause;
    }
    times
}

/// The agreement of modelled service times with measured ones. Times in ns, shares of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Number of requests compared.
    pub requests: usize,
    /// Mean of the measured times.
    pub measured: f64,
    /// Mean of the modelled times.
    pub modelled: f64,
    /// Root mean square of the horizontal distance between the two distributions: the n-th shortest
    /// of one beside the n-th shortest of the other.
    pub distance: f64,
    /// The distance over the mean of the measured times (Ruemmler and Wilkes, *An Introduction to
    /// Disk Drive Modeling*, 1994).
    pub demerit: f64,
    /// Root mean square of each request's own error. A request's own time depends on where the
    /// platter happened to be, so this is larger than the distance.
    pub error: f64,
    /// Mean of the slowest tenth, modelled over measured, less 1: how far the tail is off.
    pub worst_tenth: f64,
}

impl Fit {
    /// Compares times of the same requests; `None` if there are none.
    #[must_use]
    pub fn of(measured: &[Nanos], modelled: &[Nanos]) -> Option<Self> {
        let requests = measured.len().min(modelled.len());
        if requests == 0 {
            return None;
        }
        let (one, other) = (&measured[..requests], &modelled[..requests]);
        let (sorted, sorted_model) = (ascending(one), ascending(other));
        let mean = |times: &[Nanos]| times.iter().sum::<Nanos>() as f64 / times.len() as f64;
        let slowest = |times: &[Nanos]| mean(&times[requests - requests.div_ceil(10)..]);
        let distance = root_mean_square(&sorted, &sorted_model);
        Some(Self {
            requests,
            measured: mean(one),
            modelled: mean(other),
            distance,
            demerit: distance / mean(one),
            error: root_mean_square(one, other),
            worst_tenth: slowest(&sorted_model) / slowest(&sorted) - 1.0,
        })
    }
}

fn ascending(times: &[Nanos]) -> Vec<Nanos> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times
}

fn root_mean_square(one: &[Nanos], other: &[Nanos]) -> f64 {
    let pairs = one.iter().zip(other);
    let squares: f64 = pairs
        .map(|(one, other)| (one.abs_diff(*other) as f64).powi(2))
        .sum();
    (squares / one.len() as f64).sqrt()
}

/// The requests of a trace that lie beyond a drive: such a trace is another drive's.
#[must_use]
pub fn beyond(trace: &[Measured], drive: &dyn Drive) -> usize {
    let end = |request: &Request| request.first + u64::from(request.sectors);
    trace
        .iter()
        .filter(|one| end(&one.request) > drive.sectors())
        .count()
}

/// Bytes a trace touches at most, from the first sector on.
#[must_use]
pub fn reach(trace: &[Measured]) -> u64 {
    let ends = trace
        .iter()
        .map(|one| one.request.first + u64::from(one.request.sectors));
    ends.max().unwrap_or(0) * SECTOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_request_is_named() {
        let good = "R Hit 8 4 100.5 20\n\n# a comment\nW Miss 16 8 200 0\n";
        let requests = trace(good).unwrap();
        assert_eq!(
            (requests[0].service, requests[1].request.first),
            (100_500, 16)
        );
        for bad in [
            "R 8 4 100",
            "X Hit 8 4 1 1",
            "R Hit 8 0 1 1",
            "R Hit 8 4 -1 1",
            "R Hit 8 4 nan 1",
        ] {
            let text = format!("W Hit 8 4 1 1\n{bad}\n");
            assert_eq!(trace(&text).err(), Some(TraceError { line: 2 }), "{bad}");
        }
        assert!(trace("").is_err());
    }

    #[test]
    fn the_demerit_compares_distributions_and_the_error_requests() {
        let fit = Fit::of(&[10, 20, 30], &[30, 10, 20]).unwrap();
        assert_eq!((fit.demerit, fit.worst_tenth), (0.0, 0.0));
        assert!((fit.error - (600.0_f64 / 3.0).sqrt()).abs() < 1e-9);
        let late = Fit::of(&[10, 20, 30], &[12, 22, 32]).unwrap();
        assert!((late.demerit - 0.1).abs() < 1e-9);
        assert_eq!(Fit::of(&[], &[]), None);
    }
}
