//! Verification against storage in memory that lies, fails and reorders on demand.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::io::Errno;

use super::*;
use crate::block_worker::{drive, tests as worker};
use crate::clock::FastClock;
use crate::content::SECTOR;
use crate::control::Control;
use crate::io::{IoDevice, IoFailure};
use crate::outcome::Op;
use crate::pace::Eager;
use crate::ring::{InFlight, Ring, Wait, drive_ring};
use crate::shape::{BlockStep, OpSequence, WorkerShare};
use crate::spec::{AccessPattern, Content, IoTarget};
use crate::watch::Finish;

const UNIT: u32 = 4096;

/// Storage that does as it is told.
struct Disk {
    bytes: Vec<u8>,
    buffer: Vec<u8>,
    /// The next writes move so many bytes and say so; an errno below 0 fails after them.
    fates: Vec<(usize, Result<u32, Errno>)>,
}

impl Disk {
    fn new(bytes: usize) -> Disk {
        Disk {
            bytes: vec![0; bytes],
            buffer: vec![0; bytes],
            fates: Vec::new(),
        }
    }
}

impl Slots for Disk {
    fn buffer(&mut self, _slot: usize, bytes: usize) -> &mut [u8] {
        &mut self.buffer[..bytes]
    }
}

impl IoDevice for Disk {
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure> {
        let (at, size) = (step.offset as usize, step.size as usize);
        if step.op == Op::Read {
            self.buffer[..size].copy_from_slice(&self.bytes[at..at + size]);
            return Ok(step.size);
        }
        let (really, said) = self.fates.pop().unwrap_or((size, Ok(step.size)));
        self.bytes[at..at + really].copy_from_slice(&self.buffer[..really]);
        said.map_err(IoFailure::from)
    }

    fn sync(&mut self, _target: u32) -> Result<(), IoFailure> {
        Ok(())
    }
}

fn ledger(units: u64) -> ContentLedger {
    let target = IoTarget {
        path: "/data".into(),
        bytes: units * u64::from(UNIT),
    };
    ContentLedger::new(&[target], UNIT, Content::Random, 1).unwrap()
}

fn step(op: Op, unit: u64, units: u32) -> BlockStep {
    BlockStep {
        op,
        target: 0,
        size: units * UNIT,
        offset: unit * u64::from(UNIT),
    }
}

/// One operation from beginning to end.
fn operation<D: IoDevice>(
    device: &mut D,
    step: &BlockStep,
) -> Result<u32, Option<ContentMismatch>> {
    assert!(device.prepare(step), "{step:?} is held back");
    let moved = device.issue(step).map_err(|_| None)?;
    device.check(step, moved).map_err(Some)?;
    Ok(moved)
}

fn words(result: Result<u32, Option<ContentMismatch>>) -> (u64, String) {
    let finding = result.unwrap_err().expect("the operation itself failed");
    (finding.offset, finding.detail)
}

/// Generations each of the sectors of the unit holds, as the sectors say.
fn copy_of(disk: &Disk, unit: usize) -> Vec<u8> {
    disk.bytes[unit * UNIT as usize..][..UNIT as usize].to_vec()
}

fn put(disk: &mut Disk, at: usize, bytes: &[u8]) {
    disk.bytes[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A device over `disk`, and what it does with it.
fn with<T>(
    ledger: &ContentLedger,
    disk: &mut Disk,
    act: impl FnOnce(&mut Verified<'_, &mut Disk>) -> T,
) -> (T, u64) {
    let total = AtomicU64::new(0);
    let files: [OwnedFd; 1] = [tempfile::tempfile().unwrap().into()];
    let mut device = Verified::new(disk, 1, ledger, &files, &total);
    let result = act(&mut device);
    drop(device);
    (result, total.into_inner())
}

impl Slots for &mut Disk {
    fn buffer(&mut self, slot: usize, bytes: usize) -> &mut [u8] {
        (**self).buffer(slot, bytes)
    }
}

impl IoDevice for &mut Disk {
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure> {
        (**self).issue(step)
    }
    fn sync(&mut self, target: u32) -> Result<(), IoFailure> {
        (**self).sync(target)
    }
}

#[test]
fn what_was_written_is_right_and_what_never_was_is_not_checked() {
    let (ledger, mut disk) = (ledger(8), Disk::new(8 * UNIT as usize));
    let (_, checked) = with(&ledger, &mut disk, |device| {
        operation(device, &step(Op::Write, 2, 3)).unwrap();
        operation(device, &step(Op::Write, 3, 1)).unwrap();
        // Units 0, 1 and 5 to 7 hold zeros that were never written.
        operation(device, &step(Op::Read, 0, 8)).unwrap();
    });
    assert_eq!(checked, 3 * u64::from(UNIT));
}

/// Whatever a failed write did, both its old and its new content are right afterwards, in every
/// sector; anything older is stale.
#[test]
fn a_failed_write_may_have_done_anything_or_nothing() {
    for really in [
        0,
        SECTOR,
        3 * SECTOR,
        UNIT as usize + 5 * SECTOR,
        2 * UNIT as usize,
    ] {
        let (ledger, mut disk) = (ledger(2), Disk::new(2 * UNIT as usize));
        let mut oldest = Vec::new();
        with(&ledger, &mut disk, |device| {
            operation(device, &step(Op::Write, 0, 2)).unwrap();
        });
        oldest.extend(copy_of(&disk, 0));
        with(&ledger, &mut disk, |device| {
            operation(device, &step(Op::Write, 0, 2)).unwrap();
        });
        disk.fates = vec![(really, Err(Errno::IO))];
        with(&ledger, &mut disk, |device| {
            assert_eq!(operation(device, &step(Op::Write, 0, 2)), Err(None));
        });
        let (_, checked) = with(&ledger, &mut disk, |device| {
            operation(device, &step(Op::Read, 0, 2)).unwrap();
        });
        assert_eq!(checked, 2 * u64::from(UNIT), "{really}");
        put(&mut disk, 0, &oldest);
        let (found, _) = with(&ledger, &mut disk, |device| {
            words(operation(device, &step(Op::Read, 0, 2)))
        });
        let expected = "stale: generation 1 where generation 3 (or, since a write failed, 2 or \
                        later) was written";
        assert_eq!(found, (0, expected.to_owned()));
        // The next write settles it.
        with(&ledger, &mut disk, |device| {
            operation(device, &step(Op::Write, 0, 2)).unwrap();
        });
        let settled = ledger.expected(0);
        assert_eq!((settled.oldest, settled.newest), (4, 4));
    }
}

#[test]
fn a_short_write_leaves_the_rest_old_or_new() {
    let (ledger, mut disk) = (ledger(3), Disk::new(3 * UNIT as usize));
    with(&ledger, &mut disk, |device| {
        operation(device, &step(Op::Write, 0, 3)).unwrap();
    });
    let said = UNIT + 2 * SECTOR as u32;
    disk.fates = vec![(said as usize, Ok(said))];
    with(&ledger, &mut disk, |device| {
        operation(device, &step(Op::Write, 0, 3)).unwrap();
        operation(device, &step(Op::Read, 0, 3)).unwrap();
    });
    let range = |unit| (ledger.expected(unit).oldest, ledger.expected(unit).newest);
    assert_eq!([range(0), range(1), range(2)], [(2, 2), (1, 2), (1, 2)]);
}

#[test]
fn a_lost_write_is_stale_and_a_half_lost_one_is_torn() {
    let (ledger, mut disk) = (ledger(2), Disk::new(2 * UNIT as usize));
    with(&ledger, &mut disk, |device| {
        operation(device, &step(Op::Write, 0, 2)).unwrap();
    });
    disk.fates = vec![(4 * SECTOR, Ok(UNIT)), (0, Ok(UNIT))];
    let (found, _) = with(&ledger, &mut disk, |device| {
        operation(device, &step(Op::Write, 0, 1)).unwrap();
        operation(device, &step(Op::Write, 1, 1)).unwrap();
        let first = words(operation(device, &step(Op::Read, 0, 1)));
        (first, words(operation(device, &step(Op::Read, 1, 1))))
    });
    let stale = "stale: generation 1 where generation 2 was written";
    let torn = "torn: of the 4096 bytes at 4096, sectors 0-3 are of generation 2, sectors 4-7 are \
                of generation 1, where generation 2 was written";
    assert_eq!(found.0, (0, stale.to_owned()));
    assert_eq!(found.1, (4096 + 2048, torn.to_owned()));
}

#[test]
fn damage_is_told_bit_by_bit() {
    let (ledger, mut disk) = (ledger(1), Disk::new(UNIT as usize));
    with(&ledger, &mut disk, |device| {
        operation(device, &step(Op::Write, 0, 1)).unwrap();
        operation(device, &step(Op::Write, 0, 1)).unwrap();
    });
    let right = copy_of(&disk, 0);
    let read = |disk: &mut Disk| {
        with(&ledger, disk, |device| {
            words(operation(device, &step(Op::Read, 0, 1)))
        })
        .0
    };
    let at = 1024 + 137;
    disk.bytes[at] ^= 0b10_0000;
    let (was, is) = (right[at], disk.bytes[at]);
    let said = format!("byte 137 of the sector: expected {was:#04x}, found {is:#04x}");
    assert_eq!(read(&mut disk), (1024, format!("1 bit differs, at {said}")));
    disk.bytes[at + 100] ^= 0b11;
    let said = format!("3 bits differ, the first of them at {said}");
    assert_eq!(read(&mut disk), (1024, said));
    // A sector whose header is there is ours, however damaged.
    disk.bytes[at..1536].fill(0xff);
    let (_, said) = read(&mut disk);
    assert!(
        said.contains(" bits differ, the first of them at byte 13"),
        "{said}"
    );
    disk.bytes[1024..1536].fill(0xff);
    let (_, said) = read(&mut disk);
    assert!(said.starts_with("not written by this run: "), "{said}");
    disk.bytes[1024..2048].fill(0);
    let zeros = "zeros: 1024 bytes of them where generation 2 was written";
    assert_eq!(read(&mut disk), (1024, zeros.to_owned()));
}

#[test]
fn another_writer_is_not_a_stale_read() {
    let ledgers = [ledger(1), ledger(1)];
    let mut disk = Disk::new(UNIT as usize);
    for (ledger, writes) in ledgers.iter().zip([1, 2]) {
        with(ledger, &mut disk, |device| {
            for _ in 0..writes {
                operation(device, &step(Op::Write, 0, 1)).unwrap();
            }
        });
    }
    let ((_, said), _) = with(&ledgers[0], &mut disk, |device| {
        words(operation(device, &step(Op::Read, 0, 1)))
    });
    assert!(
        said.starts_with("generation 2 where generation 1 was written last"),
        "{said}"
    );
}

/// Operations that wait for each other's bytes, in both directions, all get them.
#[test]
fn a_waiting_operation_is_not_overtaken() {
    let ledger = ledger(4);
    let total = AtomicU64::new(0);
    let files: [OwnedFd; 0] = [];
    let device = || Verified::new(Disk::new(4 * UNIT as usize), 1, &ledger, &files, &total);
    let (mut whole, mut part) = (device(), device());
    assert!(part.prepare(&step(Op::Write, 2, 1)));
    assert!(!whole.prepare(&step(Op::Write, 0, 4)));
    let moved = part.issue(&step(Op::Write, 2, 1)).unwrap();
    part.check(&step(Op::Write, 2, 1), moved).unwrap();
    // The large operation keeps units 0 and 1, and is not starved by small ones there.
    assert!(!part.prepare(&step(Op::Read, 1, 1)));
    assert!(whole.prepare(&step(Op::Write, 0, 4)));
    // It ends without having been issued, so its effect is unknown.
    drop(whole);
    assert!(part.prepare(&step(Op::Read, 1, 1)));
    assert!(!ledger.expected(1).is_known());
    drop(part);
    assert!(ledger.take(1));
}

/// A ring over memory that completes last what it got first.
struct Reversed {
    disk: Disk,
    depth: usize,
    under_way: Vec<(usize, BlockStep)>,
    most: usize,
    done: Vec<(usize, i32)>,
    pushed: Vec<BlockStep>,
}

impl Reversed {
    fn new(depth: usize, disk: Disk) -> Reversed {
        Reversed {
            disk,
            depth,
            under_way: Vec::new(),
            most: 0,
            done: Vec::new(),
            pushed: Vec::new(),
        }
    }
}

impl Slots for Reversed {
    fn buffer(&mut self, slot: usize, bytes: usize) -> &mut [u8] {
        let start = slot * 4 * UNIT as usize;
        &mut self.disk.buffer[start..start + bytes]
    }
}

impl Ring for Reversed {
    fn push(&mut self, slot: usize, step: &BlockStep) -> bool {
        let overlaps = |other: &BlockStep| {
            step.offset < other.offset + u64::from(other.size)
                && other.offset < step.offset + u64::from(step.size)
        };
        assert!(!self.under_way.iter().any(|(_, other)| overlaps(other)));
        self.under_way.push((slot, *step));
        self.pushed.push(*step);
        self.most = self.most.max(self.under_way.len());
        self.under_way.len() + self.done.len() <= self.depth
    }

    fn submit(&mut self, wait: Wait) -> Result<(), Errno> {
        if wait == Wait::AtMost(0) {
            return Ok(());
        }
        for _ in 0..3 {
            let Some((slot, step)) = self.under_way.pop() else {
                break;
            };
            let buffer = slot * 4 * UNIT as usize;
            let (at, size) = (step.offset as usize, step.size as usize);
            let Disk {
                bytes, buffer: b, ..
            } = &mut self.disk;
            if step.op == Op::Write {
                bytes[at..at + size].copy_from_slice(&b[buffer..buffer + size]);
            } else {
                b[buffer..buffer + size].copy_from_slice(&bytes[at..at + size]);
            }
            self.done.push((slot, step.size as i32));
        }
        Ok(())
    }

    fn reap(&mut self) -> Option<(usize, i32)> {
        self.done.pop()
    }
}

/// A few blocks, many operations at once, of sizes that overlap: none is left out, none is issued
/// out of turn, no two touch the same bytes at once, and no alarm is raised.
#[test]
fn a_ring_holds_back_what_overlaps_and_keeps_the_order() {
    for depth in [1, 4, 16] {
        let mut spec = worker::spec(0.5, 2_000);
        spec.targets[0].bytes = 20 * u64::from(UNIT);
        spec.block_sizes = vec![(UNIT, 3), (2 * UNIT, 2), (4 * UNIT, 1)];
        spec.access = AccessPattern::Zipf(1.2);
        let content = Content::Random;
        let ledger = ContentLedger::new(&spec.targets, unit_bytes(&spec), content, 3).unwrap();
        let total = AtomicU64::new(0);
        let ring = Reversed::new(depth, Disk::new(20 * 4 * UNIT as usize));
        let mut ring = Verified::new(ring, depth, &ledger, &[], &total);
        let (control, halt) = (Control::default(), AtomicBool::new(false));
        let mut worker = worker::worker(&spec, FastClock::calibrated(), &control, &halt);
        let mut flight = InFlight::new(depth, 1);
        assert!(drive_ring(&mut worker, &mut ring, &mut Eager, &mut flight));
        assert_eq!(worker.finish, Finish::Complete, "{:?}", worker.failure);
        let Reversed { pushed, most, .. } = ring.inner();
        let shape = OpSequence::new(&spec, &WorkerShare::of_thread(0, 1)).unwrap();
        assert_eq!(*pushed, shape.take(2_000).collect::<Vec<_>>());
        assert_eq!(*most > 1, depth > 1);
        assert_eq!(worker.recorder.count(Op::Read), 1_000);
        drop(ring);
        assert!(total.into_inner() > 0);
        assert!(
            (0..20).all(|unit| ledger.take(unit)),
            "a unit is still in use"
        );
    }
}

/// A finding fails the worker, whole, and everything under way is given back.
#[test]
fn a_finding_fails_the_worker() {
    let mut spec = worker::spec(1.0, 100);
    spec.targets[0].bytes = 8 * u64::from(UNIT);
    let ledger = ledger(8);
    let mut disk = Disk::new(8 * UNIT as usize);
    with(&ledger, &mut disk, |device| {
        operation(device, &step(Op::Write, 0, 8)).unwrap();
    });
    disk.bytes[5 * 4096 + 600] ^= 4;
    let (control, halt) = (Control::default(), AtomicBool::new(false));
    let mut worker = worker::worker(&spec, FastClock::calibrated(), &control, &halt);
    let (_, checked) = with(&ledger, &mut disk, |device| {
        drive(&mut worker, device, &mut Eager);
    });
    assert_eq!(worker.finish, Finish::Failed);
    assert!(halt.load(Ordering::Relaxed));
    let failure = worker.failure.unwrap();
    assert_eq!(
        (failure.op, failure.offset),
        (Op::Read, Some(5 * 4096 + 512))
    );
    assert!(failure.finding.starts_with("1 bit differs, at byte 88"));
    // The read was done, and is counted; its bytes were not found right.
    let reads = worker.recorder.count(Op::Read);
    assert_eq!(checked, (reads - 1) * u64::from(UNIT));
    assert!(
        (0..8).all(|unit| ledger.take(unit)),
        "a unit is still in use"
    );
}

/// A worker whose next operation waits for bytes that stay in use still stops when told to.
#[test]
fn a_stop_reaches_an_operation_that_waits() {
    let mut spec = worker::spec(0.5, 100);
    spec.targets[0].bytes = u64::from(UNIT);
    let ledger = ledger(1);
    assert!(ledger.take(0));
    let stopped = || {
        let control = Control::default();
        control.stop.store(true, Ordering::Relaxed);
        control
    };
    let (control, halt) = (stopped(), AtomicBool::new(false));
    let mut by_calls = worker::worker(&spec, FastClock::calibrated(), &control, &halt);
    let mut disk = Disk::new(UNIT as usize);
    with(&ledger, &mut disk, |device| {
        drive(&mut by_calls, device, &mut Eager);
    });
    assert_eq!(by_calls.finish, Finish::Stopped);
    let mut by_ring = worker::worker(&spec, FastClock::calibrated(), &control, &halt);
    let total = AtomicU64::new(0);
    let mut ring = Verified::new(Reversed::new(2, disk), 2, &ledger, &[], &total);
    let mut flight = InFlight::new(2, 1);
    assert!(drive_ring(&mut by_ring, &mut ring, &mut Eager, &mut flight));
    assert_eq!(by_ring.finish, Finish::Stopped);
    assert!(ring.inner().pushed.is_empty());
    drop(ring);
    assert!(!ledger.take(0), "what another has was given back");
}
