//! Reads that a card is checked with.

use super::probe::{Probe, SMALL, STEP};
use crate::trace::Measured;
use crate::{Nanos, Operation, Request, scattered};

fn request(id: u64, first: u64, sectors: u32) -> Request {
    Request {
        id,
        operation: Operation::Read,
        first,
        sectors,
    }
}

/// Reads for a check of a card: half anywhere, half in sequence, as a trace with what they took.
///
/// # Errors
/// The first error of a read.
pub fn sample<P: Probe>(probe: &mut P, count: u64) -> Result<Vec<Measured>, P::Error> {
    let sectors = probe.sectors();
    let place = |number| scattered(number) % (sectors - 64) / STEP * STEP;
    (0..count)
        .map(|id| {
            // Runs of eight: the first anywhere, then four more places, then three that follow.
            let run = if id % 8 < 5 { id } else { id / 8 * 8 + 4 };
            let first = place(run) + (id - run) * STEP;
            let service = probe.read(first, SMALL)?.took();
            let request = request(id, first, SMALL);
            Ok(Measured {
                request,
                service,
                pause: 0,
            })
        })
        .collect()
}

/// Reads of other kinds than those that a drive is measured by, without times: 4 to 256 KiB, anywhere,
/// near the one before, or behind it, with pauses up to 50 ms.
#[must_use]
pub fn mixed(sectors: u64, count: u64, seed: u64) -> Vec<Measured> {
    let mut drawn = seed << 32;
    let mut draw = |most: u64| {
        drawn += 1;
        scattered(drawn) % most.max(1)
    };
    let (longest, mut behind) = (512, 0);
    let room = sectors - longest;
    let reads = (0..count).map(|id| {
        let length = (STEP << draw(7)) as u32;
        let first = match draw(3) {
            0 => draw(room),
            // Up to 8 MiB before or behind.
            1 => (behind + draw(32_768)).saturating_sub(16_384),
            _ => behind,
        };
        let first = first.min(room) / STEP * STEP;
        behind = first + u64::from(length);
        let pause: Nanos = match draw(2) {
            0 => 0,
            _ => draw(50_000_000),
        };
        Measured {
            request: request(id, first, length),
            service: 0,
            pause,
        }
    });
    reads.collect()
}
