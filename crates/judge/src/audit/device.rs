//! Whether a device sets the pace, by its rate or by its seeks.
//!
//! A device is full when it always has a request in flight. Drives that work on many requests at
//! once may still do more at a greater queue depth; the figures beside the judgement say how many
//! were in flight. A limit of bytes or requests a second that holds requests back before the
//! device (a control group) leaves the device idle, the program waiting, and the rate flat.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade, LimitedBy, shown};
use super::limit::Limit;
use super::reading::{TrialReading, moved, share};
use stackrace_base::event::{DeviceCounted, PhaseObservation};
use stackrace_base::unit;

/// Share of the time with a request in flight at which a device is full: what is missing is the
/// moment between a completion and the next request.
const BUSY_SHARE: f64 = 0.95;

/// Below this busy share a device that is waited for is held back by something above it.
const IDLE_SHARE: f64 = 0.50;

/// Share of the time some task waited for I/O at which the program did little but wait.
const WAITING_SHARE: f64 = 0.90;

/// Rates of equal parts of a phase that spread less than this (see [`spread`]) are flat: storage left
/// to itself rarely is, a meter always.
const FLAT_SPREAD: f64 = 0.03;

/// Number of equal parts a phase is cut into to tell whether its rate is flat.
const PARTS: usize = 8;

/// A part is at least so long, ns: meters count in slices of 100 ms.
const PART_NS_MIN: f64 = 500e6;

/// Share of a physical limit at which the link is full: headers take the rest.
const LINK_SHARE: f64 = 0.90;

/// A request that takes longer than this on a busy device, ns, waits for something that moves: half
/// a turn of the fastest disks (15,000 rpm) is 2 ms, flash answers in a tenth of that. A volume that
/// is held to few requests a second looks the same.
const SEEK_NS: f64 = 2e6;

/// Larger requests take their time for their bytes, not for the way to them: at 100 MB/s this is
/// 2.6 ms.
const SEEK_REQUEST_BYTES_MAX: f64 = 262_144.0;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "device",
    question: "Was a device at its limit of rate or seeks?",
    limits: true,
    priority: 11,
    judge,
};

/// The activity of the busiest device.
struct Seen<'a> {
    device: &'a DeviceCounted,
    /// Share of the time with a request in flight.
    busy: f64,
    /// Bytes and requests a second.
    rate: f64,
    requests: f64,
    /// Mean requests in flight.
    in_flight: f64,
    /// Share of the time some task waited for I/O.
    waiting: Option<f64>,
    /// See [`spread`].
    spread: Option<f64>,
    /// The device's link, with the share of it in use.
    link: Option<(&'a Limit, f64)>,
}

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let window = reading.window_ns()?;
    let (device, busy) = reading.busiest()?;
    let rate = moved(device) * 1e9 / window;
    let mut limits = reading.limits.iter().filter(|limit| !limit.line);
    let pressure = reading.trial.counted.pressure_io_ns;
    let seen = Seen {
        device,
        busy,
        rate,
        requests: (device.reads as f64 + device.writes as f64) * 1e9 / window,
        in_flight: device.weighted_ns as f64 / window,
        waiting: pressure.map(|ns| ns as f64 / window),
        spread: spread(reading),
        link: limits
            .find(|limit| limit.is_of(&device.device))
            .map(|limit| (limit, rate / limit.bytes_per_s)),
    };
    let (limit, sentence) = seen.limit();
    Some(CheckFinding::new(Grade::Ok, sentence, seen.evidence()).limiting(limit))
}

impl Seen<'_> {
    /// The limit it is, if any, and the words for it.
    fn limit(&self) -> (Option<LimitedBy>, String) {
        let (device, rate) = (&self.device.device, shown(self.rate, "B/s"));
        // Some kernels count no time of a device that answers at once: "0 % busy" would deny the traffic beside it.
        let brief = match self.busy == 0.0 && self.rate > 0.0 {
            true => format!("{device} {rate}"),
            false => format!("{device} {} busy, {rate}", unit::percent(self.busy)),
        };
        let full = self.busy >= BUSY_SHARE;
        // An idle device, a waiting program and a flat rate together: something in between hands out
        // a fixed rate.
        let held = self.busy < IDLE_SHARE
            && self.waiting.is_some_and(|part| part >= WAITING_SHARE)
            && self.spread.is_some_and(|spread| spread <= FLAT_SPREAD);
        match self.link.filter(|(_, part)| *part >= LINK_SHARE) {
            // Before the link: a disk that seeks is far below what its link carries, and a small
            // link does not make it seek.
            _ if full && self.seeks() => {
                let takes = unit::time_ns(self.service_ns().unwrap_or(0.0));
                let words = format!("{brief}, {takes} a request");
                (Some(LimitedBy::DeviceSeeks), words)
            }
            Some((link, part)) => {
                let words = format!("{brief}, {} of {}", unit::percent(part), link.words);
                (Some(LimitedBy::DeviceRate), words)
            }
            None if full => (Some(LimitedBy::DeviceRate), brief),
            None if held => {
                let words = format!("{brief}: held back at an even rate before the device");
                (Some(LimitedBy::DeviceRate), words)
            }
            None => (None, brief),
        }
    }

    /// Busy time for one request, ns.
    fn service_ns(&self) -> Option<f64> {
        share(self.busy * 1e9, self.requests)
    }

    /// Bytes of one request.
    fn request_bytes(&self) -> Option<f64> {
        share(self.rate, self.requests)
    }

    /// Returns true if a busy device moves for each request. Waiting for a flush takes as long, and
    /// is no seek.
    fn seeks(&self) -> bool {
        let requests = self.device.reads as f64 + self.device.writes as f64;
        let flushes = self.device.flushes.unwrap_or(0) as f64;
        self.service_ns().is_some_and(|ns| ns >= SEEK_NS)
            && self
                .request_bytes()
                .is_some_and(|bytes| bytes <= SEEK_REQUEST_BYTES_MAX)
            // A flush takes as long as a seek, and is none.
            && flushes < 0.5 * requests
    }

    fn evidence(&self) -> Vec<EvidenceFigure> {
        let name = format!("{} busy", self.device.device);
        let mut evidence = vec![
            EvidenceFigure::new(name, self.busy, "share").against(BUSY_SHARE),
            EvidenceFigure::new("moved by it", self.rate, "B/s"),
            EvidenceFigure::new("completed by it", self.requests, "op/s"),
            EvidenceFigure::new("requests in flight (mean)", self.in_flight, ""),
        ];
        let further = [
            (
                "busy time for one request",
                self.service_ns(),
                "ns",
                Some(SEEK_NS),
            ),
            ("bytes of one request", self.request_bytes(), "B", None),
            (
                "some task waited for I/O",
                self.waiting,
                "share",
                Some(WAITING_SHARE),
            ),
            (
                "spread of the rate over time",
                self.spread,
                "share",
                Some(FLAT_SPREAD),
            ),
        ];
        for (name, value, unit, threshold) in further {
            evidence.extend(value.map(|value| EvidenceFigure {
                threshold,
                ..EvidenceFigure::new(name, value, unit)
            }));
        }
        if let Some((link, part)) = self.link {
            let name = format!("of what {} can carry", link.words);
            evidence.push(EvidenceFigure::new(name, part, "share").against(LINK_SHARE));
        }
        evidence
    }
}

/// Spread of the rate of the longest phase: from the least to the greatest of the middle half of its parts, over their
/// mean; of normal noise that is 0.95 standard deviations. The outer half is left out because a meter first lets a
/// burst through and then nothing until that is paid back, and a single stall tells nothing about the rest. `None` if
/// it is too short, or an open loop, whose rate is as even as it was asked to be.
fn spread(reading: &TrialReading<'_>) -> Option<f64> {
    let phase = reading
        .trial
        .phases
        .iter()
        .max_by_key(|phase| phase.elapsed_ns)?;
    let whole = whole_steps(phase);
    let each = whole.len() / PARTS;
    let part_ns = each as f64 * phase.step_ns as f64;
    // The rate of an open loop is even by design.
    if phase.offered_per_s.is_some() || each == 0 || part_ns < PART_NS_MIN {
        return None;
    }
    let parts = whole.chunks_exact(each).take(PARTS);
    let mut rates: Vec<f64> = parts.map(|part| part.iter().sum()).collect();
    rates.sort_by(f64::total_cmp);
    // Without the quarters at the ends: a warm-up or a last flush must not hide an even rate.
    let middle = &rates[PARTS / 4..PARTS - PARTS / 4];
    let mean = middle.iter().sum::<f64>() / middle.len() as f64;
    share(middle[middle.len() - 1] - middle[0], mean)
}

/// Operations of each step that the phase filled.
fn whole_steps(phase: &PhaseObservation) -> Vec<f64> {
    let width = phase.step_ns.max(1);
    let full = usize::try_from(phase.elapsed_ns / width).unwrap_or(usize::MAX);
    let steps = phase.series.iter().take(full);
    steps.map(|(ops, _)| *ops as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::super::limit::Limit;
    use super::super::sample::{found, reading, trial};
    use super::*;
    use stackrace_base::event::Observation;

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
        let uncounted = found(&CHECK, &busy(0, 10_000, 40_960)).unwrap();
        assert_eq!(uncounted.sentence, "loop0 410 MB/s");
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
        let even = [100; 40];
        let held = |busy_ms: u64, waiting_ms: u64, series: [u64; 40]| {
            let mut trial = busy(busy_ms, 100, 4096);
            for ns in [&mut trial.elapsed_ns, &mut trial.phases[0].elapsed_ns] {
                *ns = 4_000_000_000;
            }
            trial.counted.pressure_io_ns = Some(waiting_ms * 1_000_000);
            trial.phases[0].series = series.map(|ops| (ops, 0)).to_vec();
            limit(&trial)
        };
        assert_eq!(held(400, 3600, even), Some(LimitedBy::DeviceRate));
        assert_eq!(
            held(2000, 3600, even),
            None,
            "the device is what is waited for"
        );
        assert_eq!(held(400, 3599, even), None, "nothing waits");
        let mut faster = even;
        faster[20..].fill(110);
        assert_eq!(held(400, 3600, faster), None, "not even");
        let mut paid_back = even;
        paid_back[..5].copy_from_slice(&[140, 100, 30, 0, 0]);
        assert_eq!(held(400, 3600, paid_back), Some(LimitedBy::DeviceRate));
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
            judge(&TrialReading {
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
