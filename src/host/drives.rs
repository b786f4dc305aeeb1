//! Modelled drives: block devices that this process serves, in a guest of the lab.

use super::{DiskModel, HostError, LabDisk, reading};
use stackrace_drives::{Card, Drive, Operation, Request, SECTOR};
use stackrace_engine::ublk::{ContentRoom, DeviceShape, serve};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Memory that the guest keeps for itself when drives are filled, bytes.
const RESERVED: u64 = 384 << 20;

/// What the way of a request into this process and back takes longer than the kernel's way to a
/// drive that answers by itself, ns: how much sooner this process answers.
const LEAD_NS: u64 = 19_000;

/// Bytes that the head reads before the drive is used: they decide where it is.
const FIRST_READ: u32 = 8;

/// Serves a drive; the device it appears as.
///
/// # Errors
/// The program has no such card, or the kernel refuses.
pub(super) fn start(disk: &LabDisk, model: &DiskModel) -> Result<PathBuf, HostError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static ROOM: OnceLock<ContentRoom> = OnceLock::new();
    let failed = |cause: String| HostError::Path {
        what: "serve the modelled drive",
        path: PathBuf::from(&model.card),
        cause,
        kind: std::io::ErrorKind::Other,
    };
    let card = Card::shipped(&model.card).ok_or_else(|| failed("there is no such card".into()))?;
    let identity = card.identity();
    let like = DeviceShape {
        bytes: disk.bytes,
        logical_sector: disk.logical_sector,
        physical_sector: identity.physical_sector,
        rotational: identity.rotational,
        volatile_cache: identity.volatile_cache,
        discards: identity.discards,
    };
    let room = ROOM.get_or_init(|| ContentRoom::new(available().saturating_sub(RESERVED)));
    let (bytes, accident) = (disk.bytes, model.accident);
    let drive = move || modelled(&card, bytes, accident);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let served = serve(number, like, room, LEAD_NS, drive);
    let served = served.map_err(|error| failed(error.to_string()))?;
    Ok(served.path().to_path_buf())
}

/// The drive, with its platter and its head where the accident puts them.
fn modelled(card: &Card, bytes: u64, accident: u64) -> Result<Box<dyn Drive>, String> {
    let mut drive = card
        .drive(accident, bytes)
        .map_err(|error| error.to_string())?;
    if card.identity().rotational {
        // A turned number, so that head and platter do not depend on the same bits.
        let first = accident.rotate_left(32) % (bytes / SECTOR).max(1);
        let read = Request {
            id: 0,
            operation: Operation::Read,
            first: first.min((bytes / SECTOR).saturating_sub(u64::from(FIRST_READ))),
            sectors: FIRST_READ,
        };
        drive.submit(read, 0);
        while let Some(at) = drive.next_event() {
            if drive.complete(at).is_some() {
                break;
            }
        }
    }
    Ok(drive)
}

/// Bytes of memory that may still be used; 0 where it cannot be read.
fn available() -> u64 {
    let text = reading::text(Path::new("/proc/meminfo")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_accident_makes_the_first_request_take_another_time() {
        let card = Card::shipped("seagate-st3000dm001").unwrap();
        let first_read = |accident: u64| {
            let mut drive = modelled(&card, 1 << 40, accident).unwrap();
            let read = Request {
                id: 1,
                operation: Operation::Read,
                first: 1 << 20,
                sectors: 8,
            };
            let began = 1_000_000_000;
            drive.submit(read, began);
            while let Some(at) = drive.next_event() {
                if let Some(done) = drive.complete(at) {
                    return done.at - began;
                }
            }
            0
        };
        let times: Vec<u64> = (1..9)
            .map(|n: u64| first_read(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        assert!(times.iter().all(|time| *time > 0));
        let mut distinct = times.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > 4, "{times:?}");
        assert_eq!(first_read(5), first_read(5));
    }
}
