//! The slowest second of a phase.
//!
//! The engine says how many bytes were complete at the end of each step. Between two such moments
//! they are taken to have come evenly: a large operation is not credited to the instant at which it
//! ends. Of all windows of a second that lie within the phase, from its start to the end of its last
//! operation, wherever they begin, the one with the fewest bytes counts. A phase shorter than a
//! window is one window.
//!
//! Moments are known to a step: the rate of a window is exact to two steps' share of it.

use stackrace_engine::Slice;

/// The lowest rate over any window, B/s; `None` if nothing was moved.
pub(super) fn slowest(series: &[Slice], slice_ns: u64, window_ns: u64) -> Option<f64> {
    let curve = Curve::new(series, slice_ns);
    let (end, total) = *curve.points.last()?;
    if total == 0.0 {
        return None;
    }
    let window = window_ns as f64;
    if end <= window {
        return Some(total / end * 1e9);
    }
    // Bytes in a window are a straight function of where it begins, between the places where its
    // beginning or its end meets a point of the curve: so the fewest are in one of those.
    let begins = curve.points.iter().map(|(at, _)| *at);
    let ends = curve.points.iter().map(|(at, _)| at - window);
    let places = begins
        .chain(ends)
        .filter(|at| (0.0..=end - window).contains(at));
    let fewest = places
        .map(|at| curve.bytes(at + window) - curve.bytes(at))
        .fold(f64::INFINITY, f64::min);
    Some(fewest.max(0.0) / window * 1e9)
}

/// Bytes moved until a moment: straight between points.
struct Curve {
    /// Moments, ns, and bytes until then; the first is the start.
    points: Vec<(f64, f64)>,
}

impl Curve {
    fn new(series: &[Slice], slice_ns: u64) -> Curve {
        let mut points = vec![(0.0, 0.0)];
        let mut total = 0;
        for (number, step) in (1_u64..).zip(series) {
            if step.bytes > 0 {
                total += step.bytes;
                points.push(((number * slice_ns) as f64, total as f64));
            }
        }
        Curve { points }
    }

    fn bytes(&self, at: f64) -> f64 {
        let right = self.points.partition_point(|(moment, _)| *moment < at);
        let Some((later, more)) = self.points.get(right) else {
            return self.points.last().map_or(0.0, |(_, total)| *total);
        };
        let Some((earlier, less)) = right.checked_sub(1).map(|left| self.points[left]) else {
            return *more;
        };
        less + (more - less) * (at - earlier) / (later - earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stackrace_base::video::WINDOW_NS;

    fn series(bytes: &[u64]) -> Vec<Slice> {
        let step = |bytes: &u64| Slice {
            ops: u64::from(*bytes > 0),
            bytes: *bytes,
        };
        bytes.iter().map(step).collect()
    }

    #[test]
    fn a_stall_is_found_wherever_it_begins() {
        // Half a second at 100 bytes per step of 10 ms, 0.7 s of nothing, then as before.
        let mut bytes = vec![100; 150];
        bytes[57..127].fill(0);
        let found = slowest(&series(&bytes), 10_000_000, WINDOW_NS).unwrap();
        // The stall's end delivers 100 bytes that came evenly over 71 steps; the other 29 steps of
        // the window hold 100 each.
        assert!((found - 3000.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn an_even_stream_has_no_slow_second_and_a_short_one_is_one_window() {
        let even = slowest(&series(&[50; 400]), 10_000_000, WINDOW_NS).unwrap();
        assert!((even - 5000.0).abs() < 1e-6);
        assert_eq!(
            slowest(&series(&[0, 30, 0]), 10_000_000, WINDOW_NS),
            Some(1500.0)
        );
        assert_eq!(slowest(&series(&[0, 0]), 10_000_000, WINDOW_NS), None);
        assert_eq!(slowest(&[], 10_000_000, WINDOW_NS), None);
    }

    /// The same by brute force: bytes spread over the nanoseconds (here: steps) in which they came,
    /// then every window added up.
    fn naive(bytes: &[u64], window: usize) -> Option<f64> {
        let last = bytes.iter().rposition(|bytes| *bytes > 0)? + 1;
        let mut spread = vec![0.0; last];
        let mut from = 0;
        for to in 0..last {
            if bytes[to] > 0 {
                let share = bytes[to] as f64 / (to + 1 - from) as f64;
                spread[from..=to].fill(share);
                from = to + 1;
            }
        }
        if last <= window {
            return Some(spread.iter().sum::<f64>() / last as f64);
        }
        let sums = spread
            .windows(window)
            .map(|steps| steps.iter().sum::<f64>());
        Some(sums.fold(f64::INFINITY, f64::min) / window as f64)
    }

    proptest! {
        #[test]
        fn it_is_what_adding_up_every_window_finds(
            bytes in prop::collection::vec(prop_oneof![2 => Just(0), 3 => 1u64..1_000_000], 0..300),
            window in 1usize..120,
        ) {
            let slice_ns = 1_000_000;
            let found = slowest(&series(&bytes), slice_ns, window as u64 * slice_ns);
            let naive = naive(&bytes, window).map(|per_step| per_step * 1e9 / slice_ns as f64);
            match (found, naive) {
                // Windows that begin within a step cannot be slower: the curve bends at steps only.
                (Some(found), Some(naive)) => prop_assert!((found - naive).abs() <= 1e-6 * naive),
                (found, naive) => prop_assert_eq!(found, naive),
            }
        }
    }
}
