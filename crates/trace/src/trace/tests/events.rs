//! Events of the kernel as operations.

use super::super::raw::{RawEvent, RawKind};
use super::super::*;

pub(super) const DEVICE: u32 = 0x800_0001;
const DIR: u16 = 0o040_755;
const FILE: u16 = 0o100_644;

pub(super) fn compiler() -> Compiler {
    compiler_of(false)
}

/// A directory with one file.
pub(super) fn compiler_of(subvolumes: bool) -> Compiler {
    let recorded = Recorded {
        directories: vec![b"/srv/data".to_vec(), b"/link/to/data".to_vec()],
        device: DEVICE,
        subvolumes,
        above: vec![Above {
            device: 1,
            inode: 5,
            path: b"/srv".to_vec(),
        }],
        began: 1000,
        architecture: 0,
    };
    let mut compiler = Compiler::new(recorded, NameKey([3; 32]));
    compiler.root(2);
    compiler.entry(ROOT, b"old", 20, false).unwrap();
    compiler
}

/// A call on x86-64 of thread 7 that begins at a time and takes 10.
pub(super) fn event(call: u16, start: u64) -> RawEvent<'static> {
    RawEvent {
        kind: RawKind::Call,
        start,
        end: start + 10,
        queued: 0,
        blocked: 0,
        queued_inside: 0,
        blocked_inside: 0,
        result: 0,
        arguments: [0; 6],
        file: 0,
        inode: 0,
        position: 0,
        base: 0,
        device: 0,
        base_device: 0,
        flags: 0,
        thread: 7,
        process: 7,
        mode: 0,
        call,
        name: None,
        second: None,
    }
}

pub(super) fn open(name: &'static [u8], inode: u64, file: u64, start: u64) -> RawEvent<'static> {
    RawEvent {
        result: 3,
        file,
        inode,
        device: DEVICE,
        base_device: DEVICE,
        base: 2,
        arguments: [-100_i64 as u64, 0, 0, 0, 0, 0],
        mode: FILE,
        name: Some(name),
        ..event(257, start)
    }
}

pub(super) fn operations(compiler: &mut Compiler, events: &[RawEvent<'_>]) -> Vec<Operation> {
    let mut out = Vec::new();
    for event in events {
        compiler.event(event, &mut out);
    }
    out
}

#[test]
fn a_file_below_the_directory_is_followed_and_no_other() {
    let on = |file, device, start| RawEvent {
        file,
        device,
        inode: 99,
        result: 100,
        position: 300,
        mode: FILE,
        arguments: [3, 0, 100, 0, 0, 0],
        ..event(0, start)
    };
    let mut compiler = compiler();
    let found = operations(
        &mut compiler,
        &[
            open(b"new", 30, 0xa, 1100),
            on(0xa, DEVICE, 1200),
            open(b"/etc/passwd", 31, 0xb, 1300),
            on(0xb, DEVICE, 1400),
            on(0xc, DEVICE + 1, 1500),
        ],
    );
    let kinds: Vec<_> = found
        .iter()
        .map(|one| (one.code, one.handle, one.start))
        .collect();
    assert_eq!(kinds, [(Code::Open, 1, 100), (Code::Read, 1, 200)]);
    // The position is that before the read.
    assert_eq!((found[1].offset, found[1].length), (200, 100));
}

#[test]
fn a_file_that_was_open_before_is_named_first() {
    let read = RawEvent {
        file: 0xa,
        device: DEVICE,
        inode: 20,
        result: 50,
        position: 150,
        flags: 2,
        mode: FILE,
        ..event(0, 1100)
    };
    let found = operations(&mut compiler(), &[read.clone(), read]);
    let codes: Vec<Code> = found.iter().map(|one| one.code).collect();
    assert_eq!(codes, [Code::Held, Code::Read, Code::Read]);
    assert_eq!(
        (found[0].handle, found[0].offset, found[0].flags),
        (1, 100, 2)
    );
    assert!(found[0].path > ROOT);
}

#[test]
fn names_begin_where_the_process_works() {
    let mut compiler = compiler();
    let absolute = RawEvent {
        name: Some(b"/srv/data/x"),
        ..event(4, 1000)
    };
    let make = RawEvent {
        name: Some(b"sub"),
        base: 2,
        base_device: DEVICE,
        ..event(83, 1100)
    };
    let enter = RawEvent {
        name: Some(b"sub"),
        base: 40,
        base_device: DEVICE,
        ..event(80, 1200)
    };
    let stat = RawEvent {
        name: Some(b"../x"),
        base: 40,
        base_device: DEVICE,
        ..event(4, 1300)
    };
    let from_above = RawEvent {
        name: Some(b"./data/../data/x"),
        base: 5,
        base_device: 1,
        process: 9,
        ..event(4, 1350)
    };
    let beside = RawEvent {
        name: Some(b"/srv/database"),
        ..event(4, 1400)
    };
    let found = operations(
        &mut compiler,
        &[absolute, make, enter, stat, from_above, beside],
    );
    let codes: Vec<Code> = found.iter().map(|one| one.code).collect();
    assert_eq!(
        codes,
        [
            Code::Stat,
            Code::MakeDir,
            Code::ChangeDir,
            Code::Stat,
            Code::Stat
        ]
    );
    assert_eq!(found[1].path, found[2].path);
    assert_eq!(found[0].path, found[3].path);
    assert_eq!(found[0].path, found[4].path);
    assert_eq!(compiler.unresolved(), 0);
}

#[test]
fn a_look_at_a_link_itself_is_another_one_than_at_what_it_leads_to() {
    let look = |call| RawEvent {
        name: Some(b"/srv/data/x"),
        ..event(call, 1000)
    };
    // stat, lstat
    let found = operations(&mut compiler(), &[look(4), look(6)]);
    let flags: Vec<u64> = found.iter().map(|one| one.flags).collect();
    assert_eq!(flags, [0, NO_FOLLOW]);
}

#[test]
fn a_directory_that_was_renamed_has_its_new_name() {
    let mut compiler = compiler();
    compiler.entry(ROOT, b"a", 50, true).unwrap();
    let rename = RawEvent {
        name: Some(b"/srv/data/a"),
        second: Some(b"/srv/data/b"),
        ..event(82, 1000)
    };
    let stat = RawEvent {
        name: Some(b"f"),
        base: 50,
        base_device: DEVICE,
        mode: DIR,
        ..event(4, 1100)
    };
    let absolute = RawEvent {
        name: Some(b"/srv/data/b/f"),
        ..event(4, 1200)
    };
    let found = operations(&mut compiler, &[rename, stat, absolute]);
    assert_eq!(found[1].path, found[2].path);
}

#[test]
fn a_gap_is_processor_time_less_what_the_thread_was_off() {
    let second = RawEvent {
        queued: 30,
        blocked: 12,
        queued_inside: 10,
        blocked_inside: 5,
        ..open(b"old", 20, 0xb, 1200)
    };
    let third = RawEvent {
        queued: 31,
        blocked: 12,
        ..open(b"old", 20, 0xc, 1300)
    };
    let found = operations(
        &mut compiler(),
        &[open(b"new", 30, 0xa, 1100), second, third],
    );
    let times = |one: &Operation| [one.gap_queued, one.gap_blocked, one.queued, one.blocked];
    assert_eq!(times(&found[1]), [20, 7, 10, 5]);
    assert_eq!(times(&found[2]), [1, 0, 0, 0]);
}

#[test]
fn a_wait_names_the_wake_that_ended_it_and_no_earlier_one() {
    let wake = |start: u64| RawEvent {
        kind: RawKind::Wake,
        result: 7,
        thread: 8,
        process: 8,
        ..event(1, start)
    };
    let wait = |start: u64, length: u64| RawEvent {
        end: start + length,
        blocked: length,
        blocked_inside: length,
        ..event(202, start)
    };
    let found = operations(
        &mut compiler(),
        &[wake(1100), wait(1200, 50), wake(1310), wait(1300, 60)],
    );
    let causes: Vec<_> = found.iter().map(|one| (one.code, one.cause)).collect();
    let expected = [
        (Code::Wake, 0),
        (Code::Other, 0),
        (Code::Wake, 0),
        (Code::Other, 1),
    ];
    assert_eq!(causes, expected);
}

#[test]
fn what_the_kernel_side_cannot_send_is_no_event() {
    assert!(RawEvent::parse(&[0; 100]).is_none());
    let mut bytes = vec![0; 168];
    assert!(RawEvent::parse(&bytes).is_some());
    bytes[160] = 4;
    assert!(RawEvent::parse(&bytes).is_none());
    bytes.extend(b"abc\0");
    assert_eq!(RawEvent::parse(&bytes).unwrap().name, Some(&b"abc"[..]));
    bytes[164] = 9;
    assert!(RawEvent::parse(&bytes).is_none());
}

#[test]
fn a_link_that_is_made_names_where_it_leads_if_that_is_below_the_directory() {
    let link = |name, target, start| RawEvent {
        base: 2,
        base_device: DEVICE,
        arguments: [0, -100_i64 as u64, 0, 0, 0, 0],
        name: Some(name),
        second: Some(target),
        ..event(266, start)
    };
    let mut compiler = compiler();
    let found = operations(
        &mut compiler,
        &[
            link(&b"in/link"[..], &b"../old"[..], 1100),
            link(b"other", b"/srv/data/old", 1200),
            link(b"out", b"../../etc", 1300),
            link(b"far", b"/etc/passwd", 1400),
        ],
    );
    let old = compiler.target(found[0].path, b"../old").unwrap();
    let targets: Vec<u32> = found.iter().map(|link| link.second).collect();
    assert_eq!(targets, [old, old, 0, 0]);
    assert!(found.iter().all(|link| link.path > 0));
    assert_eq!(compiler.unresolved(), 0);
}
