//! Modelled drives: block devices that this process serves, in a guest of the lab.

use super::{
    DeclaredFault, DiskModel, DriveCache, HostError, LabDisk, reading, shared_memory::shared_memory,
};
use rustix::time::{ClockId, clock_gettime};
use stackrace_base::event::ServedCost;
use stackrace_base::unit::{InWords, ShownPath};
use stackrace_drives::power::Durability;
use stackrace_drives::{Caching, Card, Drive, Fault, Faulty, Operation, Request, SECTOR};
use stackrace_ublk::{
    ContentRoom, DeviceLog, DeviceShape, Medium, ServedDevice, Serving, remove, serve,
};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Memory that the guest keeps for itself when drives are filled, bytes.
const RESERVED: u64 = 384 << 20;

/// Time by which the way of a request into this process and back takes longer than the kernel's way
/// to a drive that answers by itself, ns: this process answers so much sooner.
const LEAD_NS: u64 = 19_000;

/// Size of the file in which the host keeps what a guest's memory has no room for, bytes. The same
/// everywhere, because a guest sees it and its log would differ; holes in it take no disk.
pub const CONTENT_BYTES: u64 = 64 << 30;

/// Longest wait for a request to a drive that died, ns: Linux gives a disk 30 s.
const GIVEN_UP_NS: u64 = 30_000_000_000;

/// Bytes that the head reads before the drive is used: they decide where it is.
const FIRST_READ: u32 = 8;

/// Drives that this process serves, and contents of the next ones.
#[derive(Debug, Default)]
struct Shelf {
    /// True if all that is written is kept.
    logged: bool,
    /// Contents of the drives that are started next, by serial. Two machines in one kernel have
    /// drives of the same serial: the first one's is started first.
    media: BTreeMap<String, VecDeque<Medium>>,
    /// Drives that are served, by serial.
    served: Vec<(String, ServedDevice)>,
}

fn shelf<T>(what: impl FnOnce(&mut Shelf) -> T) -> T {
    static SHELF: OnceLock<Mutex<Shelf>> = OnceLock::new();
    let shelf = SHELF.get_or_init(Mutex::default);
    what(&mut shelf.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps from now on all that is written to drives that are started, for crash images.
pub fn keep_logs() {
    // Drives that are served already keep none: their beginning would be missing.
    shelf(|shelf| shelf.logged = true);
}

/// Log of what was written to each drive since it was started, by serial.
pub fn logs() -> Vec<(String, DeviceLog)> {
    shelf(|shelf| {
        let served = shelf.served.iter();
        served
            .filter_map(|(serial, device)| Some((serial.clone(), device.log()?)))
            .collect()
    })
}

/// Says what a drive holds when it is started next; said twice of a serial, the second is for the
/// second drive of it.
pub fn put(serial: &str, medium: Medium) {
    shelf(|shelf| {
        let next = shelf.media.entry(serial.to_owned()).or_default();
        next.push_back(medium);
    });
}

/// Ends the serving of all drives; nothing may use them any more.
///
/// # Errors
/// The kernel refuses.
pub fn end_all() -> Result<(), HostError> {
    // Taken off the shelf first: removing waits, and must not hold up others. What no drive was
    // started with goes, too: the next drive of its serial is another cut's.
    let served = shelf(|shelf| {
        shelf.media.clear();
        std::mem::take(&mut shelf.served)
    });
    for (serial, device) in served {
        remove(&device).map_err(|error| HostError::Path {
            what: "end the modelled drive",
            path: PathBuf::from(serial),
            cause: error.to_string(),
            kind: std::io::ErrorKind::Other,
            errno: None,
        })?;
    }
    Ok(())
}

/// Serves a drive; the device it appears as.
///
/// # Errors
/// The kernel refuses.
pub(super) fn start(disk: &LabDisk, model: &DiskModel) -> Result<PathBuf, HostError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static ROOM: OnceLock<ContentRoom> = OnceLock::new();
    let failed = |cause: String| HostError::Path {
        what: "serve the modelled drive",
        path: PathBuf::from(model.card.name()),
        cause,
        kind: std::io::ErrorKind::Other,
        errno: None,
    };
    let card = model.card.card().clone();
    let identity = card.identity();
    let like = DeviceShape {
        bytes: disk.bytes,
        logical_sector: disk.logical_sector,
        physical_sector: identity.physical_sector,
        rotational: identity.rotational,
        volatile_cache: match model.cache {
            None => identity.volatile_cache,
            // A drive whose cache is switched off says so, and is not asked to flush.
            Some(kind) => kind != DriveCache::Off,
        },
        discards: identity.discards,
    };
    let room = match ROOM.get() {
        Some(room) => room,
        None => {
            let made = content_room().map_err(failed)?;
            ROOM.get_or_init(|| made)
        }
    };
    let (bytes, accident, cache) = (disk.bytes, model.accident, model.cache);
    // Faults are declared from the moment at which the disk appears.
    let faults = declared(&model.faults, monotonic_ns());
    let drive = move || -> Result<Box<dyn Drive>, String> {
        let mut drive = modelled(&card, bytes, accident)?;
        if !faults.is_empty() {
            drive = Box::new(Faulty::new(drive, &faults));
        }
        Ok(match cache {
            Some(kind) => Box::new(Caching::new(drive, kind.durability())),
            None => drive,
        })
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let how = shelf(|shelf| Serving {
        lead: LEAD_NS,
        logged: shelf.logged,
        // Once: a drive of that serial that is started later begins empty.
        medium: shelf
            .media
            .get_mut(&disk.serial)
            .and_then(VecDeque::pop_front),
    });
    let served = serve(number, like, room, how, drive);
    let served = served.map_err(|error| failed(error.to_string()))?;
    let path = served.path().to_path_buf();
    shelf(|shelf| shelf.served.push((disk.serial.clone(), served)));
    Ok(path)
}

impl DriveCache {
    /// Fate of the cache's content when the power is cut.
    pub fn durability(self) -> Durability {
        match self {
            Self::Volatile => Durability::Honest,
            Self::Protected => Durability::Protected,
            Self::Lying => Durability::Lying,
            Self::Off => Durability::Off,
        }
    }
}

/// Faults in the words of the models; `now`: when the disk appears, ns on the clock of the drives.
fn declared(faults: &[DeclaredFault], now: u64) -> Vec<Fault> {
    let sector = |byte: u64| byte / SECTOR;
    let fault = |fault: &DeclaredFault| match *fault {
        DeclaredFault::SlowSectors {
            from,
            to,
            longer_ns,
        } => Fault::Slow {
            first: sector(from),
            end: to.div_ceil(SECTOR),
            longer: longer_ns,
        },
        DeclaredFault::ReadErrors {
            from,
            to,
            longer_ns,
        } => Fault::Unreadable {
            first: sector(from),
            end: to.div_ceil(SECTOR),
            longer: longer_ns,
        },
        DeclaredFault::DiesAt { after_ns } => Fault::Dead {
            at: now.saturating_add(after_ns),
            longer: GIVEN_UP_NS,
        },
    };
    faults.iter().map(fault).collect()
}

/// The clock that drives are served by, ns.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // It begins at 0: neither part is negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Cost of each drive that this process serves, so far.
pub fn served() -> Vec<ServedCost> {
    let cost = |drive: &ServedDevice| {
        let (requests, busy_ns) = drive.cost();
        ServedCost {
            device: block_name(drive.path()),
            requests,
            busy_ns,
        }
    };
    shelf(|shelf| shelf.served.iter().map(|(_, drive)| cost(drive)).collect())
}

/// `ublkb0` of `/dev/ublkb0`.
fn block_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
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

/// Room for what is written to the drives: memory first, then the host's file, if this guest has one.
fn content_room() -> Result<ContentRoom, String> {
    let memory = ContentRoom::new(available().saturating_sub(RESERVED));
    match shared_memory(CONTENT_BYTES)? {
        Some(path) => memory
            .with_host_file(&path)
            .map_err(|error| format!("{}: {error}", path.shown(), error = error.in_words())),
        None => Ok(memory),
    }
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

    #[test]
    fn a_declared_death_counts_from_the_moment_at_which_the_disk_appears() {
        let dies = DeclaredFault::DiesAt { after_ns: 5 };
        let slow = DeclaredFault::SlowSectors {
            from: 1024,
            to: 1025,
            longer_ns: 7,
        };
        let expected = [
            Fault::Dead {
                at: 105,
                longer: GIVEN_UP_NS,
            },
            // A part of a sector makes all of it slow.
            Fault::Slow {
                first: 2,
                end: 3,
                longer: 7,
            },
        ];
        assert_eq!(declared(&[dies, slow], 100), expected);
    }
}
