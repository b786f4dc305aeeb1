//! What a maker claims of a drive, and what its model does with the same requests.

use crate::origin::Origin;
use crate::{Drive, Nanos, Operation, Request, SECTOR, scattered};
use serde::{Deserialize, Serialize};

/// A published or measured figure of the whole drive, to hold the card against. A value of the card
/// that was chosen to reach it says that it is fitted.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Claim {
    /// The requests.
    pub load: Load,
    /// KiB of one request.
    pub block: u32,
    /// Requests outstanding at once.
    pub queue_depth: u32,
    /// The figure: MB/s (10⁶ bytes) of a sequential load, requests a second of a random one.
    pub value: f64,
    /// Kind of its source.
    pub from: Origin,
    /// The source, in words a reader can follow.
    pub source: String,
}

/// The order of a claim's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Reads from the first sector on.
    SequentialRead,
    /// Writes from the first sector on.
    SequentialWrite,
    /// Reads anywhere, each place equally likely.
    RandomRead,
    /// Writes anywhere, each place equally likely.
    RandomWrite,
}

impl Load {
    /// The load as a table of figures names it.
    pub fn words(self) -> &'static str {
        match self {
            Self::SequentialRead => "sequential read",
            Self::SequentialWrite => "sequential write",
            Self::RandomRead => "random read",
            Self::RandomWrite => "random write",
        }
    }

    fn is_sequential(self) -> bool {
        matches!(self, Self::SequentialRead | Self::SequentialWrite)
    }

    fn operation(self) -> Operation {
        match self {
            Self::SequentialRead | Self::RandomRead => Operation::Read,
            Self::SequentialWrite | Self::RandomWrite => Operation::Write { durable: false },
        }
    }
}

/// Requests of a random load: enough that the mean of their times is steady.
const RANDOM_REQUESTS: u64 = 4_000;
/// Bytes of a sequential load.
const SEQUENTIAL_BYTES: u64 = 512 << 20;

impl Claim {
    /// The figure of the model, in the unit of [`Claim::value`]. A drive whose speed depends on
    /// what it holds is filled first, and before random writing all of it is written once more at
    /// random, as makers do; sequential writing begins on an empty drive.
    pub(super) fn modelled(&self, drive: &mut dyn Drive, depends_on_content: bool) -> f64 {
        let (mut now, size) = (0, drive.sectors());
        if depends_on_content && self.load != Load::SequentialWrite {
            let fill = of(Load::SequentialWrite, 1 << 20, size);
            now = after(drive, now, (size * SECTOR) >> 20, 32, fill);
            if self.load == Load::RandomWrite {
                let once_more = of(self.load, 4096, size);
                now = after(drive, now, (size * SECTOR) >> 12, 32, once_more);
            }
        }
        let bytes = u64::from(self.block) << 10;
        let count = if self.load.is_sequential() {
            SEQUENTIAL_BYTES.min(size * SECTOR) / bytes
        } else {
            RANDOM_REQUESTS
        };
        let requests = of(self.load, bytes, size);
        let depth = u64::from(self.queue_depth);
        let seconds = (after(drive, now, count, depth, requests) - now) as f64 / 1e9;
        if self.load.is_sequential() {
            (count * bytes) as f64 / 1e6 / seconds
        } else {
            count as f64 / seconds
        }
    }
}

/// The requests of a load by their number, on a drive of so many sectors.
fn of(load: Load, bytes: u64, sectors: u64) -> impl Fn(u64) -> Request {
    let length = bytes / SECTOR;
    let places = (sectors / length).max(1);
    move |id| {
        let place = if load.is_sequential() {
            id % places
        } else {
            // Scattered over the whole drive, the same in each run.
            scattered(id) % places
        };
        Request {
            id,
            operation: load.operation(),
            first: place * length,
            sectors: length as u32,
        }
    }
}

/// Instant at which `count` requests have completed that begin at `now`, `depth` of them
/// outstanding at once.
fn after(
    drive: &mut dyn Drive,
    mut now: Nanos,
    count: u64,
    depth: u64,
    request: impl Fn(u64) -> Request,
) -> Nanos {
    let mut next = 0;
    let mut done = 0;
    while done < count {
        while next < count && next - done < depth.max(1) {
            drive.submit(request(next), now);
            next += 1;
        }
        // A model that has outstanding requests has a next event; one without it would be a bug.
        let Some(event) = drive.next_event() else {
            break;
        };
        now = now.max(event);
        while drive.complete(now).is_some() {
            done += 1;
        }
    }
    now
}
