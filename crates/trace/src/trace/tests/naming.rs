//! Where names lead: links, other roots, numbers that come back, and what is no storage.

use super::super::raw::RawEvent;
use super::super::*;
use super::events::{DEVICE, compiler, event, open, operations};

const PIPE: u16 = 0o010_644;
const LINK: u16 = 0o120_777;
const HERE: u64 = -100_i64 as u64;

/// A call on a name in the recorded directory.
fn named(call: u16, name: &'static [u8], start: u64) -> RawEvent<'static> {
    RawEvent {
        name: Some(name),
        base: 2,
        base_device: DEVICE,
        ..event(call, start)
    }
}

/// A file that is made: number of it, and of the open file.
fn made(name: &'static [u8], inode: u64, file: u64, start: u64) -> RawEvent<'static> {
    RawEvent {
        arguments: [HERE, 0, 0o101, 0o644, 0, 0],
        ..open(name, inode, file, start)
    }
}

/// `fsync` of an open file.
fn sync(inode: u64, file: u64, start: u64) -> RawEvent<'static> {
    RawEvent {
        name: None,
        ..RawEvent {
            call: 74,
            ..open(b"", inode, file, start)
        }
    }
}

fn codes(found: &[Operation]) -> Vec<Code> {
    found.iter().map(|one| one.code).collect()
}

#[test]
fn a_pipe_below_the_directory_is_no_storage() {
    let mut compiler = compiler();
    compiler.entry(ROOT, b"pipe", 21, false).unwrap();
    let waits = |event: RawEvent<'static>| RawEvent {
        mode: PIPE,
        blocked: event.start,
        blocked_inside: 5,
        ..event
    };
    let read = RawEvent {
        call: 0,
        ..sync(21, 0xa, 1100)
    };
    // Open before, and opened by its name.
    let found = operations(
        &mut compiler,
        &[
            waits(read),
            waits(open(b"pipe", 21, 0xb, 1200)),
            waits(sync(21, 0xb, 1300)),
        ],
    );
    assert_eq!(codes(&found), [Code::Other; 3]);
}

#[test]
fn a_call_on_a_descriptor_in_place_of_a_name_is_one_on_its_file() {
    let times = |base, device| RawEvent {
        base,
        base_device: device,
        arguments: [3, 0, 0, 0, 0, 0],
        ..event(280, 1200)
    };
    let mut compiler = compiler();
    let found = operations(
        &mut compiler,
        &[
            open(b"old", 20, 0xa, 1100),
            times(20, DEVICE),
            // A file that is elsewhere, and one of another file system with the same number.
            times(99, DEVICE),
            times(20, 1),
        ],
    );
    assert_eq!(codes(&found), [Code::Open, Code::Times]);
    assert_eq!(found[0].path, found[1].path);
    assert_eq!(compiler.unresolved(), 0);
}

#[test]
fn a_directory_is_known_by_the_name_that_was_typed_as_well() {
    let mut compiler = compiler();
    let found = operations(
        &mut compiler,
        &[
            made(b"/srv/data/new", 30, 0xa, 1100),
            made(b"/link/to/data/new", 30, 0xb, 1200),
            named(87, b"/link/to/data/../data/new", 1300),
        ],
    );
    assert_eq!(codes(&found), [Code::Open, Code::Open, Code::Unlink]);
    assert!(found.iter().all(|one| one.path == found[0].path));
    assert_eq!(compiler.elsewhere(), 0);
    // What is made by any other name is counted: it may be the same directory.
    let found = operations(&mut compiler, &[made(b"/other/new", 31, 0xc, 1400)]);
    assert_eq!((found.len(), compiler.elsewhere()), (0, 1));
}

#[test]
fn a_number_that_comes_back_elsewhere_is_not_taken_for_what_was_removed() {
    let elsewhere = |file, start| made(b"/var/tmp/x", 20, file, start);
    // Removed; removed by `unlinkat`; replaced by another file.
    let removes: [&[RawEvent<'static>]; 3] = [
        &[named(87, b"old", 1100)],
        &[RawEvent {
            arguments: [HERE, 0, 0, 0, 0, 0],
            ..named(263, b"old", 1100)
        }],
        &[
            made(b"new", 30, 0xa, 1100),
            RawEvent {
                second: Some(b"old"),
                ..named(82, b"new", 1200)
            },
        ],
    ];
    for remove in removes {
        let mut compiler = compiler();
        let before = operations(&mut compiler, remove).len();
        assert_eq!(before, remove.len());
        let after = [elsewhere(0xb, 1300), sync(20, 0xb, 1400)];
        assert!(operations(&mut compiler, &after).is_empty(), "{remove:?}");
        // One that was open before is still the one that was removed.
        let held = operations(&mut compiler, &[sync(20, 0xc, 1500)]);
        assert_eq!(codes(&held), [Code::Held, Code::Fsync]);
    }
}

#[test]
fn a_file_that_was_renamed_or_linked_has_its_new_name() {
    for (call, removes) in [(82, false), (86, true)] {
        let mut compiler = compiler();
        let rename = RawEvent {
            second: Some(b"final"),
            ..named(call, b"old", 1100)
        };
        let mut found = operations(&mut compiler, &[rename]);
        if removes {
            operations(&mut compiler, &[named(87, b"old", 1150)]);
        }
        found.extend(operations(&mut compiler, &[sync(20, 0xa, 1200)]));
        assert_eq!(found[1].code, Code::Held);
        assert_eq!(found[1].path, found[0].second, "call {call}");
    }
}

#[test]
fn numbers_of_another_file_system_say_nothing_here() {
    let mut compiler = compiler();
    // Its root has the number that the recorded directory has here.
    let mount = compiler.foreign(ROOT, b"backup").unwrap();
    let found = operations(&mut compiler, &[named(83, b"sub", 1100)]);
    assert_eq!(compiler.names().last(found[0].path).unwrap().0, ROOT);
    assert_ne!(found[0].path, mount);
}

#[test]
fn a_number_of_another_subvolume_is_not_taken_for_one_of_ours() {
    for (subvolumes, expected) in [(false, 1), (true, 0)] {
        let mut compiler = super::events::compiler_of(subvolumes);
        // By a link or another mount; or a library with the number of a file of ours.
        let opened = open(b"/usr/lib/x.so", 20, 0xa, 1100);
        let found = operations(&mut compiler, &[opened]);
        assert_eq!(found.len(), expected);
    }
}

#[test]
fn what_is_named_through_a_link_out_of_the_directory_is_elsewhere() {
    let mut compiler = compiler();
    let wal = compiler.entry(ROOT, b"wal", 22, false).unwrap();
    assert_eq!(compiler.target(wal, b"/disk2/wal"), None);
    let still = |call, start| named(call, b"wal", start);
    let away = [
        named(4, b"/srv/data/wal/1", 1100),
        RawEvent {
            second: Some(b"wal/2"),
            ..named(82, b"wal/1", 1200)
        },
        // Opened, or looked at, through the link itself.
        open(b"wal", 90, 0xa, 1300),
        still(4, 1400),
    ];
    assert!(operations(&mut compiler, &away).is_empty());
    // The link itself is here: looked at, read, opened, moved. Then its new name leads away.
    let here = [
        still(6, 1500),
        still(89, 1600),
        RawEvent {
            mode: LINK,
            ..open(b"wal", 22, 0xb, 1700)
        },
        RawEvent {
            second: Some(b"log"),
            ..still(82, 1800)
        },
        named(4, b"wal/1", 1900),
    ];
    let found = operations(&mut compiler, &here);
    assert_eq!(
        codes(&found),
        [
            Code::Stat,
            Code::ReadLink,
            Code::Open,
            Code::Rename,
            Code::Stat
        ]
    );
    assert!(operations(&mut compiler, &[named(4, b"log/1", 2000)]).is_empty());
    assert_eq!(compiler.unresolved(), 0);
}

#[test]
fn only_reads_and_writes_move_the_position_of_a_file_that_was_open_before() {
    let seek = RawEvent {
        call: 8,
        result: 1 << 30,
        position: 1 << 30,
        ..sync(20, 0xa, 1100)
    };
    let found = operations(&mut compiler(), &[seek]);
    assert_eq!((found[0].code, found[0].offset), (Code::Held, 1 << 30));
}

#[test]
fn a_call_at_no_offset_is_one_at_the_position() {
    let write = RawEvent {
        call: 328,
        result: 50,
        position: 150,
        arguments: [3, 0, 1, u64::MAX, 0, 2],
        ..sync(20, 0xa, 1100)
    };
    let found = operations(&mut compiler(), &[write]);
    assert_eq!(codes(&found), [Code::Held, Code::Write]);
    assert_eq!((found[0].offset, found[1].offset), (100, 100));
    assert_eq!((found[1].length, found[1].flags), (50, 2));
}

#[test]
fn a_file_that_was_opened_with_flags_in_memory_has_those_of_the_open_file() {
    let open2 = |name, inode, file, start| RawEvent {
        call: 437,
        flags: 2,
        ..open(name, inode, file, start)
    };
    let events = [
        open2(&b"new"[..], 30, 0xa, 1100),
        open2(b"old", 20, 0xb, 1200),
    ];
    let found = operations(&mut compiler(), &events);
    let flags: Vec<_> = found.iter().map(|one| (one.flags, one.length)).collect();
    assert_eq!(flags, [(0o102, 0o644), (2, 0o644)]);
}

#[test]
fn what_a_call_of_another_name_says_by_its_name_is_kept() {
    let creat = RawEvent {
        call: 85,
        ..made(b"new", 30, 0xa, 1100)
    };
    let found = operations(&mut compiler(), &[creat]);
    assert_eq!(found[0].flags, 0o1101);
}
