//! A cloud volume: a latency, and limits of rate and requests that are enforced by credit.

use crate::completions::Completions;
use crate::{Completion, Drive, Nanos, Operation, Request, SECTOR};

/// Requests there is room for before anything is allocated again.
const ROOM: usize = 4096;

/// Every parameter of a cloud volume, public and plain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VolumeParameters {
    /// Sectors of [`SECTOR`] bytes.
    pub sectors: u64,
    /// Time of a request that is not held back, reading and writing.
    pub latency: [Nanos; 2],
    /// Requests a second that are always granted.
    pub iops: f64,
    /// Requests a second while there is credit; equal to `iops`: no bursts.
    pub burst_iops: f64,
    /// Requests of credit at the start, and at most.
    pub credit: f64,
    /// Bytes a second.
    pub rate: f64,
    /// Bytes that count as one request; a larger request counts as several.
    pub request_bytes: u64,
}

/// The reason for which parameters make no volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("size, request size, rate and requests a second must be above 0, and a burst no slower")]
pub struct VolumeError;

/// A modelled cloud volume. What it acknowledged is durable, as providers state.
#[derive(Debug, Clone)]
pub struct Volume {
    parameters: VolumeParameters,
    credit: f64,
    /// Instant up to which credit has been counted.
    counted: Nanos,
    /// Instant at which the next request may pass, by the limit of requests and by that of bytes.
    next_request: f64,
    next_byte: f64,
    /// Requests that are completed, not yet handed out.
    done: Completions,
}

impl Volume {
    /// A volume with its full credit.
    ///
    /// # Errors
    /// When the limits would let nothing pass.
    pub fn new(parameters: VolumeParameters) -> Result<Self, VolumeError> {
        let limits = [parameters.iops, parameters.rate];
        let positive = limits.iter().all(|limit| limit.is_finite() && *limit > 0.0);
        // A burst slower than the granted rate would make credit a penalty.
        let sound = parameters.burst_iops >= parameters.iops && parameters.credit >= 0.0;
        if !positive || !sound || parameters.sectors == 0 || parameters.request_bytes == 0 {
            return Err(VolumeError);
        }
        Ok(Self {
            credit: parameters.credit,
            parameters,
            // Credit starts full, as a new volume's does.
            counted: 0,
            next_request: 0.0,
            next_byte: 0.0,
            done: Completions::with_capacity(ROOM),
        })
    }

    /// Requests of burst credit left.
    #[must_use]
    pub fn credit(&self) -> f64 {
        self.credit
    }

    /// Instant at which `requests` of `bytes` altogether may pass at `now` or later.
    fn admit(&mut self, requests: f64, bytes: u64, now: Nanos) -> Nanos {
        let limits = self.parameters;
        // Credit is earned all the time, also while requests pass.
        let earned = (now - self.counted) as f64 / 1e9 * limits.iops;
        self.credit = (self.credit + earned).min(limits.credit);
        self.counted = now;
        let spent = requests.min(self.credit);
        self.credit -= spent;
        // What credit covers passes at the rate of a burst, the rest at the rate that is always
        // granted.
        let time = spent / limits.burst_iops + (requests - spent) / limits.iops;
        // Two limits side by side: the later of them holds.
        let begin = self.next_request.max(self.next_byte).max(now as f64);
        self.next_request = begin + time * 1e9;
        self.next_byte = begin + bytes as f64 / limits.rate * 1e9;
        begin.round() as Nanos
    }
}

impl Drive for Volume {
    fn sectors(&self) -> u64 {
        self.parameters.sectors
    }

    fn submit(&mut self, request: Request, now: Nanos) {
        let bytes = u64::from(request.sectors) * SECTOR;
        // Providers count large requests as several.
        let requests = bytes.div_ceil(self.parameters.request_bytes).max(1);
        let at = match request.operation {
            // Acknowledged data are durable and discards only bookkeeping: neither is limited.
            Operation::Flush | Operation::Discard => now + self.parameters.latency[1],
            Operation::Read => self.admit(requests as f64, bytes, now) + self.parameters.latency[0],
            Operation::Write { .. } => {
                self.admit(requests as f64, bytes, now) + self.parameters.latency[1]
            }
        };
        self.done.add(request.id, at);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.done.next()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        self.done.take_due(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(credit: f64) -> Volume {
        Volume::new(VolumeParameters {
            sectors: 1 << 24,
            latency: [500_000, 800_000],
            iops: 300.0,
            burst_iops: 3000.0,
            credit,
            rate: 125e6,
            request_bytes: 256 << 10,
        })
        .expect("a sound volume")
    }

    /// Time until `count` requests of `sectors`, all submitted at once, have completed, seconds.
    fn burst(volume: &mut Volume, count: u64, sectors: u32) -> f64 {
        for id in 0..count {
            let request = Request {
                id,
                operation: Operation::Read,
                first: id,
                sectors,
            };
            volume.submit(request, 0);
        }
        let mut last = 0;
        while let Some(next) = volume.next_event() {
            last = next;
            assert!(volume.complete(next).is_some());
        }
        last as f64 / 1e9
    }

    #[test]
    fn requests_pass_at_the_granted_rate_without_credit() {
        let time = burst(&mut volume(0.0), 3000, 8);
        assert!((9.9..10.1).contains(&time), "{time}");
    }

    #[test]
    fn credit_makes_a_burst_until_it_is_spent() {
        let mut volume = volume(3000.0);
        let time = burst(&mut volume, 3000, 8);
        assert!((0.9..1.1).contains(&time), "{time}");
        assert!(volume.credit() < 1.0);
    }

    #[test]
    fn large_requests_are_limited_by_bytes() {
        let time = burst(&mut volume(1e6), 1000, 512);
        let expected = 1000.0 * 512.0 * 512.0 / 125e6;
        assert!((time / expected - 1.0).abs() < 0.02, "{time}");
    }

    #[test]
    fn a_lone_request_takes_the_latency_and_no_more() {
        let time = burst(&mut volume(0.0), 1, 8);
        assert!((time - 500e-6).abs() < 1e-9, "{time}");
    }

    #[test]
    fn limits_that_let_nothing_pass_are_refused() {
        let wrong = VolumeParameters {
            iops: 0.0,
            ..volume(0.0).parameters
        };
        assert_eq!(Volume::new(wrong).err(), Some(VolumeError));
    }
}
