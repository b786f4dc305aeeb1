//! Whether a device sets the pace, by its rate or by its seeks.
//!
//! A device is full when it always has a request in flight. Drives that work on many requests at
//! once may still do more at a greater queue depth; the figures beside the judgement say how many
//! were in flight. A limit of bytes or requests a second that holds requests back before the
//! device (a control group) leaves the device idle, the program waiting, and the rate flat.

use super::Check;
use super::judgement::{Figure, Finding, Grade, LimitedBy, shown};
use super::reading::{Reading, moved, share};
use crate::event::{DeviceCounted, PhaseObservation};
use crate::unit;

/// At this share of the time with a request in flight a device is full: what is missing is the
/// moment between a completion and the next request.
const BUSY_SHARE: f64 = 0.95;

/// Below this busy share a device that is waited for is held back by something above it.
const IDLE_SHARE: f64 = 0.50;

/// At this share of the time some task waited for I/O, the program did little but wait.
const WAITING_SHARE: f64 = 0.90;

/// Rates of equal parts of a phase that spread less than this (standard deviation over mean) are
/// flat: storage left to itself rarely is, a meter always.
const FLAT_SPREAD: f64 = 0.03;

/// So many equal parts a phase is cut into to tell whether its rate is flat.
const PARTS: usize = 5;

/// A part is at least so long, ns: meters count in slices of 100 ms.
const PART_NS_MIN: f64 = 500e6;

/// At this share of a physical limit the link is full: headers take the rest.
const LINK_SHARE: f64 = 0.90;

/// A request that takes longer than this on a busy device, ns, waits for something that moves: half
/// a turn of the fastest disks (15,000 rpm) is 2 ms, flash answers in a tenth of that.
const SEEK_NS: f64 = 2e6;

/// Larger requests take their time for their bytes, not for the way to them: at 100 MB/s this is
/// 2.6 ms.
const SEEK_REQUEST_BYTES_MAX: f64 = 262_144.0;

pub(super) const CHECK: Check = Check {
    name: "device",
    question: "Was the device full: its rate, or its seeks?",
    limits: true,
    judge,
};

fn judge(reading: &Reading<'_>) -> Option<Finding> {
    let window = reading.window_ns()?;
    let (device, busy) = reading.busiest()?;
    let requests = device.reads as f64 + device.writes as f64;
    let rate = moved(device) * 1e9 / window;
    let waiting = reading
        .trial
        .counted
        .pressure_io_ns
        .map(|ns| ns as f64 / window);
    let link = reading
        .limits
        .iter()
        .filter(|limit| !limit.line)
        .find(|limit| limit.is_of(&device.device))
        .map(|limit| (limit, rate / limit.bytes_per_s));
    let mut evidence = vec![
        Figure::new(format!("{} busy", device.device), busy, "share").against(BUSY_SHARE),
        Figure::new("moved by it", rate, "B/s"),
        Figure::new("completed by it", requests * 1e9 / window, "op/s"),
        Figure::new(
            "requests in flight (mean)",
            device.weighted_ns as f64 / window,
            "",
        ),
    ];
    let service = share(device.busy_ns as f64, requests);
    evidence.extend(service.map(|ns| Figure::new("busy time for one request", ns, "ns")));
    let size = share(moved(device), requests);
    evidence.extend(size.map(|bytes| Figure::new("bytes of one request", bytes, "B")));
    evidence.extend(waiting.map(|part| Figure::new("some task waited for I/O", part, "share")));
    if let Some((limit, part)) = link {
        let name = format!("of what {} can carry", limit.words);
        evidence.push(Figure::new(name, part, "share").against(LINK_SHARE));
    }
    let flat = spread(reading);
    evidence.extend(flat.map(|spread| {
        Figure::new("spread of the rate over time", spread, "share").against(FLAT_SPREAD)
    }));
    let brief = format!(
        "{} {} busy, {}",
        device.device,
        unit::percent(busy),
        shown(rate, "B/s")
    );
    let held = busy < IDLE_SHARE
        && waiting.is_some_and(|part| part >= WAITING_SHARE)
        && flat.is_some_and(|spread| spread <= FLAT_SPREAD);
    let (limit, sentence) = if busy >= BUSY_SHARE && seeks(device, service, size) {
        let takes = unit::time_ns(service.unwrap_or(0.0));
        (
            Some(LimitedBy::DeviceSeeks),
            format!("{brief}, {takes} a request"),
        )
    } else if let Some((of, part)) = link.filter(|(_, part)| *part >= LINK_SHARE) {
        let part = unit::percent(part);
        (
            Some(LimitedBy::DeviceRate),
            format!("{brief}, {part} of {}", of.words),
        )
    } else if busy >= BUSY_SHARE {
        (Some(LimitedBy::DeviceRate), brief)
    } else if held {
        let words = format!("{brief}: held back before it at an even rate");
        (Some(LimitedBy::DeviceRate), words)
    } else {
        (None, brief)
    };
    Some(Finding::new(Grade::Ok, sentence, evidence).limiting(limit))
}

/// Whether a busy device moves for each request. Waiting for a flush takes as long, and is no seek.
fn seeks(device: &DeviceCounted, service: Option<f64>, size: Option<f64>) -> bool {
    let requests = device.reads as f64 + device.writes as f64;
    let flushes = device.flushes.unwrap_or(0) as f64;
    service.is_some_and(|ns| ns >= SEEK_NS)
        && size.is_some_and(|bytes| bytes <= SEEK_REQUEST_BYTES_MAX)
        && flushes < 0.5 * requests
}

/// How much the rate of the longest phase spreads; none: too short, or an open loop, whose rate is
/// as even as it was asked to be.
fn spread(reading: &Reading<'_>) -> Option<f64> {
    let phase = reading
        .trial
        .phases
        .iter()
        .max_by_key(|phase| phase.elapsed_ns)?;
    let whole = whole_slices(phase);
    let each = whole.len() / PARTS;
    let part_ns = each as f64 * phase.slice_ns as f64;
    if phase.offered_per_s.is_some() || each == 0 || part_ns < PART_NS_MIN {
        return None;
    }
    let parts = whole.chunks_exact(each).take(PARTS);
    let rates: Vec<f64> = parts.map(|part| part.iter().sum()).collect();
    let mean = rates.iter().sum::<f64>() / PARTS as f64;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    share((squares / (PARTS as f64 - 1.0)).sqrt(), mean)
}

/// Operations of each slice that the phase filled.
fn whole_slices(phase: &PhaseObservation) -> Vec<f64> {
    let width = phase.slice_ns.max(1);
    let full = usize::try_from(phase.elapsed_ns / width).unwrap_or(usize::MAX);
    let slices = phase.series.iter().take(full);
    slices.map(|(ops, _)| *ops as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Limit;
    use super::super::sample::{found, reading, trial};
    use super::*;
    use crate::event::Observation;

    fn limit(trial: &Observation) -> Option<LimitedBy> {
        found(&CHECK, trial).unwrap().limit
    }

    /// A disk that was busy for so many ms of its second with requests of so many bytes.
    fn busy(ms: u64, requests: u64, bytes: u64) -> Observation {
        let mut trial = trial();
        let device = &mut trial.counted.devices[0];
        device.busy_ns = ms * 1_000_000;
        device.reads = requests;
        device.read_bytes = requests * bytes;
        trial
    }

    #[test]
    fn a_device_that_is_always_busy_sets_the_pace() {
        assert_eq!(limit(&busy(949, 10_000, 4096)), None);
        let full = busy(950, 10_000, 40_960);
        assert_eq!(limit(&full), Some(LimitedBy::DeviceRate));
        assert_eq!(
            found(&CHECK, &full).unwrap().sentence,
            "loop0 95 % busy, 410 MB/s"
        );
    }

    #[test]
    fn small_requests_that_take_as_long_as_a_turn_are_seeks() {
        assert_eq!(limit(&busy(1000, 500, 4096)), Some(LimitedBy::DeviceSeeks));
        assert_eq!(limit(&busy(1000, 501, 4096)), Some(LimitedBy::DeviceRate));
        assert_eq!(
            limit(&busy(1000, 120, 262_145)),
            Some(LimitedBy::DeviceRate)
        );
        let mut flushing = busy(1000, 120, 4096);
        flushing.counted.devices[0].flushes = Some(60);
        assert_eq!(limit(&flushing), Some(LimitedBy::DeviceRate));
    }

    #[test]
    fn an_idle_device_and_an_even_rate_are_a_meter_above_it() {
        let held = |busy_ms: u64, waiting_ms: u64, jump: u64| {
            let mut trial = busy(busy_ms, 100, 4096);
            for ns in [&mut trial.elapsed_ns, &mut trial.phases[0].elapsed_ns] {
                *ns = 3_000_000_000;
            }
            trial.counted.pressure_io_ns = Some(waiting_ms * 1_000_000);
            let slice = |at: u64| (100 + if at >= 15 { jump } else { 0 }, 0);
            trial.phases[0].series = (0..30).map(slice).collect();
            limit(&trial)
        };
        assert_eq!(held(300, 2700, 0), Some(LimitedBy::DeviceRate));
        assert_eq!(
            held(1500, 2700, 0),
            None,
            "the device is what is waited for"
        );
        assert_eq!(held(300, 2699, 0), None, "nobody waits");
        assert_eq!(held(300, 2700, 10), None, "not even");
    }

    #[test]
    fn a_full_link_is_a_limit_before_the_device_is_busy() {
        let trial = busy(500, 900, 100_000);
        let limits = |rate: f64| {
            [Limit {
                device: "loop0".to_owned(),
                bytes_per_s: rate,
                words: "SATA 1.5 Gbit/s".to_owned(),
                line: false,
            }]
        };
        let of = |limits: &[Limit]| {
            judge(&Reading {
                limits,
                ..reading(&trial)
            })
            .unwrap()
            .limit
        };
        assert_eq!(of(&limits(100e6)), Some(LimitedBy::DeviceRate));
        assert_eq!(of(&limits(100.1e6)), None);
    }

    #[test]
    fn too_short_a_trial_is_not_judged() {
        let mut trial = busy(50, 10, 4096);
        trial.elapsed_ns = 50_000_000;
        assert!(found(&CHECK, &trial).is_none());
    }
}
