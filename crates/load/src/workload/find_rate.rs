//! The highest rate at which a latency stays below a bound, found by a search.
//!
//! 1. A closed loop of one step says how many operations the storage does at most.
//! 2. Then an open loop: operations arrive at random times (Poisson), as those of independent users do, at a rate
//!    that the step keeps. Latency counts from the intended start. A step holds the bound if its quantile does.
//!    One that does not is tried again: a disturbance of a second is no limit of the storage.
//! 3. The rate is quartered until a step holds the bound, and then halved in between (on a log scale) until the rate
//!    that holds and the one that does not lie within 5 %. The figure is their geometric mean, known to their
//!    distance.
//!
//! A step lasts long enough for ten operations beyond the quantile. Blocks are drawn with repeats, by other draws in
//! each step, so caches are bypassed unless the study says otherwise. It is what a capacity test does by hand: "how
//! many requests a second at p99 below 5 ms?" (response time from the intended start: Schroeder, Wierman and
//! Harchol-Balter, "Open Versus Closed: A Cautionary Tale", NSDI 2006).

use stackrace_base::event::{Better, MetricHead};
use stackrace_base::setting::{OverShell, Refusal, SettingDoc, Settings};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_engine::spec::{AccessPattern, Pacing, Stop};
use stackrace_engine::{Op, PhaseEnd, PhaseOutcome};

use super::block::words::{self as word, block_size};
use super::block::{BlockIo, Frame, read_share};
use super::kept::{DataLayout, DataUse};
use super::kind::{Cost, Place, Workload, WorkloadError, WorkloadKind, advised};
use super::metric::{self, Latency};

/// Its word in a study.
pub const NAME: &str = KIND.name;
/// The workload whose operations it does: it takes the settings of that one.
pub const SEARCHED: &str = "random";

/// The latency to keep.
pub const BOUND: SettingDoc = SettingDoc::text(
    "bound",
    "",
    "The latency to keep, of all operations: \"p99 <= 5 ms\"; p50, p95, p99, p99.9 or mean.",
);
const STEP: SettingDoc = SettingDoc::time(
    "step",
    "1 s",
    "A step lasts this long, and longer where the rate is low: ten operations lie beyond the quantile.",
);
/// Time of a search without being asked for, ns.
pub const LIMIT_NS: u64 = 120_000_000_000;
/// How long a search may take.
pub const LIMIT: SettingDoc = SettingDoc::time(
    "time",
    "2 min",
    "The search ends after this long; what is open then is part of the interval.",
);

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "find-rate",
    summary: "the highest rate at which a latency stays below a bound, found by an open loop",
    source: "a capacity test: an open loop at one rate after the other",
    settings: &[
        word::MODE.doc.required(),
        BOUND.required(),
        word::SIZE,
        word::FILES,
        word::READ_SHARE,
        block_size("4 KiB"),
        word::ALIGN,
        word::THREADS,
        SettingDoc::count(
            "queue-depth",
            "32",
            "Operations outstanding at most, per thread: more that are due wait.",
        ),
        SettingDoc::flag("direct", "true", "O_DIRECT: past the page cache."),
        word::SYNC.doc,
        STEP,
        LIMIT,
        word::SAME_DATA,
        word::CONTENT.doc,
        word::COMPRESS_RATIO,
        word::DUPLICATES,
        word::ENGINE.doc,
    ],
    example: "find-rate = { mode = \"read\", size = \"1 GiB\", bound = \"p99 <= 5 ms\" }",
    over_shell: OverShell::Never,
    parse: |settings| Ok(Box::new(FindRate::parse(settings)?)),
    ..WorkloadKind::PLAIN
};

/// Neighbouring rates of which one holds the bound and the other does not are told apart no further.
const NEAR: f64 = 1.05;
/// Largest step of the search while no rate has held the bound.
const DOWN: f64 = 4.0;
/// Steps that a search has time for at least.
const STEPS_LEAST: u64 = 3;
/// Least time of a search whose steps are as long as they are without being asked for, ns.
pub const LEAST_NS: u64 = STEPS_LEAST * 1_000_000_000;
/// Smallest rate that is tried, operations per second.
const RATE_MIN: f64 = 0.1;
/// Operations that lie beyond the quantile in each step, on average: arrivals are drawn, and some steps have fewer.
const BEYOND: f64 = 11.0;

/// The latencies that can be bounded, with the share of operations beyond each.
const BOUNDED: [(&str, Latency, f64); 5] = [
    ("p50", Latency::P50, 0.5),
    ("p95", Latency::P95, 0.05),
    ("p99", Latency::P99, 0.01),
    ("p99.9", Latency::P999, 0.001),
    ("mean", Latency::Mean, 0.1),
];

/// A latency that is to be kept.
#[derive(Debug, Clone, PartialEq)]
struct LatencyBound {
    name: &'static str,
    which: Latency,
    /// Share of the operations beyond it.
    beyond: f64,
    /// Largest value, ns.
    ns: u64,
}

impl LatencyBound {
    fn parse(text: &str) -> Option<Self> {
        let (name, ns) = text.split_once(['<', '≤'])?;
        let ns = unit::parse_time_ns(ns.strip_prefix('=').unwrap_or(ns).trim()).ok()?;
        let name = name.trim();
        let (name, which, beyond) = BOUNDED.into_iter().find(|(word, ..)| *word == name)?;
        (ns > 0).then_some(Self {
            name,
            which,
            beyond,
            ns,
        })
    }

    /// Operations that a step needs.
    fn operations(&self) -> f64 {
        BEYOND / self.beyond
    }
}

#[derive(Debug)]
struct FindRate {
    io: BlockIo,
    bound: LatencyBound,
    step_ns: u64,
    limit_ns: u64,
}

/// Returns true if a text is a bound that a rate can be searched for.
pub fn is_bound(text: &str) -> bool {
    LatencyBound::parse(text).is_some()
}

/// The end of a search: the rates on both sides of the bound, operations per second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FoundRate {
    /// Largest rate that held it.
    holds: f64,
    /// Smallest rate that did not; the same where the storage itself does no more.
    breaks: f64,
}

/// A search in which no rate held the bound.
#[derive(Debug, Clone, Copy, PartialEq)]
struct NoRate {
    /// Smallest rate that was tried, operations per second; `None` if none was.
    tried: Option<f64>,
    /// True if the time ended it.
    time_over: bool,
}

/// Searches from the rate that the storage does at most; `holds` tries a rate, `None`: the time is over.
///
/// # Errors
/// What `holds` met.
fn search<E>(
    most: f64,
    holds: &mut dyn FnMut(f64) -> Result<Option<bool>, E>,
) -> Result<Result<FoundRate, NoRate>, E> {
    let (mut low, mut high) = (None, most);
    let (mut rate, mut tried, mut time_over) = (most, None, false);
    loop {
        match holds(rate)? {
            Some(true) if rate >= most => {
                return Ok(Ok(FoundRate {
                    holds: most,
                    breaks: most,
                }));
            }
            Some(true) => low = Some(rate),
            Some(false) => {
                high = rate;
                tried = Some(rate);
            }
            None => {
                time_over = true;
                break;
            }
        }
        rate = match low {
            Some(low) if high / low <= NEAR => break,
            Some(low) => (low * high).sqrt(),
            None if high / DOWN < RATE_MIN => break,
            None => high / DOWN,
        };
    }
    Ok(low
        .map(|holds| FoundRate {
            holds,
            breaks: high,
        })
        .ok_or(NoRate { tried, time_over }))
}

impl FindRate {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let read_share = read_share(settings)?;
        let text = settings.text(BOUND)?;
        let bound = LatencyBound::parse(&text).ok_or_else(|| {
            settings.refuse(
                BOUND.name,
                format!("\"{text}\" is no bound of a latency"),
                "write bound = \"p99 <= 5 ms\" (or p50, p95, p99.9, mean)",
            )
        })?;
        let frame = Frame {
            access: AccessPattern::Uniform,
            read_share,
            new_files: false,
        };
        let (step_ns, limit_ns) = (settings.lasting_ns(STEP)?, settings.lasting_ns(LIMIT)?);
        if limit_ns < step_ns.saturating_mul(STEPS_LEAST) {
            return Err(settings.refuse(
                LIMIT.name,
                format!(
                    "in {} there is no time for three steps of {}",
                    unit::time_ns(limit_ns as f64),
                    unit::time_ns(step_ns as f64)
                ),
                "write time = \"2 min\", or a shorter step",
            ));
        }
        Ok(Self {
            io: BlockIo::parse(settings, &frame)?,
            bound,
            step_ns,
            limit_ns,
        })
    }

    fn ops(&self) -> Vec<Op> {
        let mut ops = Vec::new();
        if self.io.read_share > 0.0 {
            ops.push(Op::Read);
        }
        if self.io.read_share < 1.0 {
            ops.push(Op::Write);
        }
        ops
    }

    fn bound_words(&self) -> String {
        format!(
            "{} of {}",
            self.bound.name,
            unit::time_ns(self.bound.ns as f64)
        )
    }

    /// Why there is no rate, and what helps.
    fn no_rate(&self, none: NoRate) -> WorkloadError {
        let bound = self.bound_words();
        let tried = match none.tried {
            Some(rate) => format!(
                "{} was the smallest that was tried",
                unit::of_metric("op/s", rate)
            ),
            None => "none was tried".to_owned(),
        };
        let raise = format!("raise the bound ({} <= …)", self.bound.name);
        match none.time_over {
            true => advised(
                format!("the time ended before a rate kept {bound}: {tried}"),
                &format!(
                    "{raise}, or give each search more time than {} (with `compare`: --with \"{SEARCHED} {} size={} time=5min\")",
                    unit::time_ns(self.limit_ns as f64),
                    self.mode_settings(),
                    unit::bytes(self.io.size).replace(' ', ""),
                ),
            ),
            false => advised(format!("no rate kept {bound}: {tried}"), &raise),
        }
    }

    /// The settings that say which operations it does, as they are typed.
    fn mode_settings(&self) -> String {
        match self.io.read_share {
            1.0 => "mode=read".to_owned(),
            0.0 => "mode=write".to_owned(),
            share => format!("mode=mixed read-share={share}"),
        }
    }

    /// Runs one step; the step's number makes its draws its own.
    fn step(
        &self,
        place: &Place<'_>,
        number: u64,
        pacing: Pacing,
        ns: u64,
    ) -> Result<PhaseOutcome, WorkloadError> {
        let mut spec = self.io.spec(place);
        spec.pacing = pacing;
        spec.stop = Stop {
            ops: None,
            time_ns: Some(ns),
        };
        spec.seed = spec.seed.wrapping_add(number);
        self.io.run(&spec, place)
    }

    /// Returns true if a step at this rate kept the bound.
    fn keeps(&self, step: &PhaseOutcome, rate: f64) -> bool {
        let done: u64 = step.ops.iter().map(|op| op.count).sum();
        let lately = (rate * self.bound.ns as f64 / 1e9) as u64;
        !stalled(done, step.unissued, lately, self.bound.beyond / 2.0)
            && self
                .latency(step)
                .is_some_and(|ns| ns <= self.bound.ns as f64)
    }

    fn latency(&self, outcome: &PhaseOutcome) -> Option<f64> {
        let (all, sum_ns) = metric::latencies_of_all(outcome, &self.ops())?;
        Some(metric::figure(&all, sum_ns, self.bound.which))
    }
}

/// Returns true if a step left more than a share of what was due, which no latency tells of: it was later than the bound,
/// but for what was due so lately that it could still have kept it.
fn stalled(done: u64, unissued: u64, lately: u64, share: f64) -> bool {
    let late = unissued.saturating_sub(lately) as f64;
    late > share * (done as f64 + late)
}

/// A step that did not come to its end: it ends the search, and is what came of the phase.
enum Cut {
    Short(Box<PhaseOutcome>),
    Refused(WorkloadError),
}

impl Workload for FindRate {
    fn summary(&self) -> String {
        let what = match self.io.read_share {
            1.0 => "random reads".to_owned(),
            0.0 => "random writes".to_owned(),
            share => format!("a random mix of {} reads", unit::percent(share)),
        };
        format!(
            "the rate of {what} of {} in {} that keeps {}, at most {} outstanding{}, {} a step, {} in all at most",
            unit::weights(&self.io.block_sizes),
            unit::bytes(self.io.size),
            self.bound_words(),
            u64::from(self.io.threads) * u64::from(self.io.queue_depth),
            self.io.words(),
            unit::time_ns(self.step_ns as f64),
            unit::time_ns(self.limit_ns as f64),
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let name = format!("rate at {}", self.bound_words());
        vec![
            MetricHead::new(&name, "op/s", Better::Higher),
            MetricHead::new("closed loop, operations", "op/s", Better::Higher),
        ]
    }

    fn cost(&self) -> Cost {
        Cost {
            measured_ns: Some(self.limit_ns),
            ..self.io.cost(true)
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["find rate"]
    }

    fn data_use(&self) -> DataUse {
        self.io.data_use()
    }

    fn data_layout(&self) -> Option<DataLayout> {
        self.io.data_layout()
    }

    fn uses_data_before(&self) -> bool {
        self.io.same_data
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.io.lay_out(place)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let began = SystemClock.now_ns();
        let closed = Pacing::Closed { think_time_ns: 0 };
        let mut all = self.step(place, 0, closed, self.step_ns)?;
        let most = metric::operations(&all).filter(|_| all.ended == PhaseEnd::Complete);
        let Some(most) = most else {
            return Ok(all);
        };
        let mut number = 0;
        let mut once = |rate: f64| {
            let needed_ns = (self.bound.operations() / rate * 1e9) as u64;
            let ns = needed_ns.max(self.step_ns);
            let gone = SystemClock.now_ns().saturating_sub(began);
            if gone.saturating_add(ns) > self.limit_ns {
                return Ok(None);
            }
            number += 1;
            let step = self.step(place, number, Pacing::Poisson(rate), ns);
            let step = step.map_err(Cut::Refused)?;
            if step.ended != PhaseEnd::Complete {
                return Err(Cut::Short(Box::new(step)));
            }
            let kept = self.keeps(&step, rate);
            all.followed_by(step);
            Ok(Some(kept))
        };
        // Nothing goes back behind a rate that did not hold: two steps have to say so.
        let mut holds = |rate: f64| match once(rate)? {
            Some(false) => once(rate),
            kept => Ok(kept),
        };
        match search(most, &mut holds) {
            Err(Cut::Short(step)) => {
                all.followed_by(*step);
                Ok(all)
            }
            Err(Cut::Refused(why)) => Err(why),
            Ok(Err(none)) => Err(self.no_rate(none)),
            Ok(Ok(found)) => {
                let rate = (found.holds * found.breaks).sqrt();
                all.reported = vec![Some(rate), Some(most)];
                // Where the storage itself does no more, the step before it is what is not known.
                let open = (found.breaks - found.holds).max(rate * (NEAR - 1.0));
                all.reported_steps = vec![Some(open), None];
                Ok(all)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches where rates up to `limit` hold the bound, and the storage does `most`; how many were tried.
    fn found(limit: f64, most: f64, tries: usize) -> (Result<FoundRate, NoRate>, usize) {
        let mut tried = 0;
        let mut holds = |rate: f64| {
            tried += 1;
            Ok::<_, ()>((tried <= tries).then_some(rate <= limit))
        };
        (search(most, &mut holds).unwrap(), tried)
    }

    #[test]
    fn the_limit_lies_between_the_two_rates_and_they_are_near() {
        for limit in [1.0, 37.0, 800.0, 9_999.0, 123_456.0] {
            let (rate, tried) = found(limit, 200_000.0, usize::MAX);
            let rate = rate.unwrap();
            assert!((rate.holds..=rate.breaks).contains(&limit), "{rate:?}");
            assert!(rate.breaks / rate.holds <= NEAR && tried < 20, "{tried}");
        }
    }

    #[test]
    fn what_was_due_and_never_begun_was_later_than_the_bound() {
        // 100,000 a second for a second, 5 ms, p99.
        assert!(!stalled(70_000, 0, 500, 0.005));
        assert!(!stalled(70_000, 500, 500, 0.005));
        assert!(stalled(70_000, 30_000, 500, 0.005));
    }

    #[test]
    fn a_storage_that_keeps_the_bound_at_its_most_is_limited_by_itself() {
        let (rate, tried) = found(f64::INFINITY, 500.0, usize::MAX);
        let all = FoundRate {
            holds: 500.0,
            breaks: 500.0,
        };
        assert_eq!((rate, tried), (Ok(all), 1));
    }

    #[test]
    fn what_time_leaves_open_is_said_and_a_bound_that_nothing_keeps_is_an_error() {
        let (rate, _) = found(800.0, 200_000.0, 6);
        let rate = rate.unwrap();
        assert!(rate.holds <= 800.0 && 800.0 < rate.breaks);
        assert!(rate.breaks / rate.holds > NEAR);
        let (none, tried) = found(0.0, 1000.0, usize::MAX);
        let none = none.unwrap_err();
        assert!(none.tried.unwrap() < 1.0 && !none.time_over && tried < 12);
        let over = found(0.0, 1000.0, 0).0.unwrap_err();
        assert_eq!((over.tried, over.time_over), (None, true));
    }

    #[test]
    fn a_bound_is_read_as_it_is_written() {
        let bound = LatencyBound::parse("p99.9<=500 us").unwrap();
        assert_eq!((bound.name, bound.ns), ("p99.9", 500_000));
        assert_eq!(bound.operations().round(), 11_000.0);
        for wrong in [
            "p99",
            "p98 <= 5 ms",
            "p99 >= 5 ms",
            "p99 <= 5",
            "p99 <= 0 ms",
            "",
        ] {
            assert_eq!(LatencyBound::parse(wrong), None, "{wrong}");
        }
    }
}
