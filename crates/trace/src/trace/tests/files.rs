//! Traces as files.

use proptest::prelude::*;

use super::super::columns::{BLOCK, FRAME_HEAD, MAGIC};
use super::super::names::Hashing;
use super::super::*;
use super::{origin, read, written};

fn names() -> Names {
    let mut hashing = Hashing::new(NameKey([1; 32]));
    let a = hashing.part(ROOT, b"a").unwrap();
    hashing.part(a, b"b").unwrap();
    hashing.names
}

/// An open file, and reads of it.
fn reads(count: usize) -> Vec<Operation> {
    let open = Operation {
        handle: 1,
        path: 3,
        ..Operation::of(Code::Open, 0, 0)
    };
    let read = |at: usize| Operation {
        handle: 1,
        offset: at as u64 * 4096,
        length: 4096,
        result: 4096,
        duration: 5,
        ..Operation::of(Code::Read, 0, 10 + 10 * at as u64)
    };
    std::iter::once(open).chain((0..count).map(read)).collect()
}

fn refusal(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

prop_compose! {
    /// An operation that a reader takes as the first one.
    fn first()(code in 0..Code::ALL.len(), times: [u32; 6], result: i64, numbers: [u64; 3], path in 0_u32..4, handle in 0_u32..2) -> Operation {
        let code = Code::ALL[code];
        let other = matches!(code, Code::Wake | Code::Fork);
        let opens = matches!(code, Code::Open | Code::Held);
        let [start, duration, gap_queued, gap_blocked, queued, blocked] = times.map(u64::from);
        let [offset, length, flags] = numbers;
        Operation {
            code, thread: 0, start, duration, gap_queued, gap_blocked, queued, blocked,
            result: if other { 0 } else { result },
            handle: if opens { handle } else { 0 },
            path, second: path, offset, length, flags, cause: 0,
        }
    }
}

/// A program's own pages are read with its mapping; which pages of a database of gigabytes were touched is not known.
#[test]
fn waits_for_pages_are_uncovered_only_where_a_mapping_is_too_long_to_be_read() {
    let covered = |length| {
        let operation = |code, length| Operation {
            code,
            thread: 0,
            start: 0,
            duration: 1000,
            gap_queued: 0,
            gap_blocked: 500,
            queued: 0,
            blocked: 0,
            result: 0,
            handle: 0,
            path: 3,
            second: 3,
            offset: 0,
            length,
            flags: 0,
            cause: 0,
        };
        let all = [operation(Code::Map, length), operation(Code::Fsync, 0)];
        let bytes = written(&names(), &[], &all);
        Summary::of(TraceReader::new(&*bytes).unwrap())
            .unwrap()
            .coverage()
    };
    assert!((covered(MAPPED_MAX) - 1.0).abs() < f64::EPSILON);
    let long = covered(MAPPED_MAX + 1);
    assert!(long > 0.3 && long < 0.9, "{long}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn an_operation_is_read_as_it_was_written(operation in first(), size in 0..u64::MAX / 2) {
        let entry = KeptEntry { path: 3, kind: EntryKind::File, size, stored: 0, target: 2 };
        let bytes = written(&names(), &[entry], &[operation]);
        let (entries, operations, _) = read(&bytes).unwrap();
        prop_assert_eq!(entries, vec![entry]);
        prop_assert_eq!(operations, vec![operation]);
        let summary = Summary::of(TraceReader::new(&*bytes).unwrap()).unwrap();
        prop_assert!(summary.coverage() <= 1.0);
    }

    #[test]
    fn a_trace_with_one_byte_changed_is_refused(at: prop::sample::Index, by in 1_u8..) {
        let mut bytes = written(&names(), &[], &reads(20));
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        let refused = refusal(&bytes);
        prop_assert!(!refused.is_empty());
    }
}

#[test]
fn a_trace_that_is_cut_off_anywhere_says_so() {
    let bytes = written(&names(), &[], &reads(20));
    let head = MAGIC.len() + 4;
    for length in 0..bytes.len() {
        let refused = refusal(&bytes[..length]);
        let expected = if length < head {
            "it is no trace"
        } else {
            "it ends in the middle"
        };
        assert!(refused.starts_with(expected), "{length}: {refused}");
    }
    read(&bytes).unwrap();
}

#[test]
fn what_is_appended_to_a_trace_is_not_passed_over() {
    let bytes = written(&names(), &[], &reads(20));
    for more in [&bytes[..], b"x"] {
        assert!(refusal(&[&bytes, more].concat()).starts_with("it goes on behind its end"));
    }
}

#[test]
fn more_operations_than_a_block_holds_are_read_in_order() {
    let operations = reads(BLOCK + 10);
    let bytes = written(&names(), &[], &operations);
    assert_eq!(read(&bytes).unwrap().1, operations);
    // Columns of small differences pack well.
    assert!(bytes.len() < operations.len() * 4, "{}", bytes.len());
}

/// Their names take 35 MB, and a part has at most 32 MiB.
#[test]
fn a_tree_with_more_names_than_a_part_holds_is_written_in_several() {
    let mut hashing = Hashing::new(NameKey([1; 32]));
    let entries: Vec<KeptEntry> = (0..140_000)
        .map(|at: u32| KeptEntry {
            path: hashing.part(ROOT, format!("{at:0250}").as_bytes()).unwrap(),
            kind: EntryKind::File,
            size: 1,
            stored: 1,
            target: 0,
        })
        .collect();
    let bytes = written(&hashing.names, &entries, &[]);
    assert!(read(&bytes).unwrap().0 == entries);
}

#[test]
fn a_part_that_was_taken_out_is_missed() {
    let bytes = written(&names(), &[], &reads(BLOCK + 10));
    let frame = |at: usize| {
        let packed = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap());
        at + FRAME_HEAD + packed as usize
    };
    let first = frame(MAGIC.len() + 4);
    let second = frame(first);
    // Without the second block, which names nothing new.
    let third = frame(second);
    let less = [&bytes[..second], &bytes[third..]].concat();
    assert!(refusal(&less).contains("a part before it is missing"));
    // Twice the same.
    let more = [&bytes[..third], &bytes[second..]].concat();
    assert!(refusal(&more).contains("a part before it is missing"));
}

#[test]
fn operations_that_cannot_be_are_refused_with_the_reason() {
    let long = 1 << 61;
    let read = |thread, handle, path, cause| Operation {
        handle,
        path,
        cause,
        ..Operation::of(Code::Read, thread, 0)
    };
    let cases = [
        (read(1, 0, 0, 0), "thread 1 is not there yet"),
        (read(0, 1, 0, 0), "file 1 is not open yet"),
        (read(0, 0, 9, 0), "name 9 is not there yet"),
        (read(0, 0, 0, 1), "its cause stands before the trace"),
        (
            Operation::of(Code::Read, 0, long),
            "a time is longer than 36 years",
        ),
        (
            Operation {
                result: -1,
                ..Operation::of(Code::Fork, 0, 0)
            },
            "thread 4294967295 is not there yet",
        ),
        (
            Operation {
                handle: 2,
                ..Operation::of(Code::Open, 0, 0)
            },
            "file 2 is not open yet",
        ),
    ];
    for (operation, reason) in cases {
        let refused = refusal(&written(&names(), &[], &[operation]));
        assert!(refused.contains("operation 0"), "{refused}");
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn a_trace_of_another_version_says_which() {
    let mut bytes = written(&names(), &[], &[]);
    bytes[MAGIC.len()] = 9;
    assert_eq!(
        refusal(&bytes),
        "its format is version 9, and this program reads version 2 and older"
    );
    assert!(refusal(b"").starts_with("it is no trace"));
    assert!(refusal(b"#!/bin/sh\nexit 0 # and more of it\n").starts_with("it is no trace"));
}

/// Recorded by the program of that time: an application of 41 threads.
#[test]
fn a_trace_of_version_1_is_still_read() {
    let bytes = include_bytes!("version-1.trace");
    let (entries, operations, ending) = read(bytes).unwrap();
    assert_eq!((entries.len(), operations.len()), (0, 219));
    let ending = ending.unwrap();
    assert_eq!((ending.threads, ending.device), (41, None));
    // A part of it is one of today.
    let reader = TraceReader::new(&bytes[..]).unwrap();
    let (part, _) = cut(reader, 0..u64::MAX, Vec::new()).unwrap();
    assert_eq!(read(&part).unwrap().1.len(), 219);
    assert_eq!(part[MAGIC.len()], 2);
}

#[test]
fn what_was_in_memory_and_what_the_devices_did_is_read_as_it_was_written() {
    let range = |path, offset| ResidentRange {
        path,
        offset,
        length: 8192,
    };
    let device = DeviceTotal {
        read_bytes: 5,
        written_bytes: u64::MAX,
        flushes: None,
    };
    let entry = KeptEntry {
        path: 3,
        kind: EntryKind::File,
        size: 1 << 20,
        stored: 1 << 20,
        target: 0,
    };
    let write = |ranges: &[ResidentRange]| {
        let mut writer = TraceWriter::new(Vec::new(), &origin()).unwrap();
        writer.tree(&names(), &[entry]).unwrap();
        writer.resident(ranges).unwrap();
        let ending = Ending {
            device: Some(device),
            ..Ending::default()
        };
        writer.finish(&names(), &ending).unwrap()
    };
    let ranges = [range(3, 0), range(3, 1 << 19)];
    let bytes = write(&ranges);
    let mut reader = TraceReader::new(&*bytes).unwrap();
    assert!(matches!(reader.next_part(), Ok(Some(Part::Tree(_)))));
    let found = reader.next_part().unwrap();
    assert!(matches!(found, Some(Part::Resident(found)) if found == ranges));
    let summary = Summary::of(TraceReader::new(&*bytes).unwrap()).unwrap();
    assert_eq!(summary.resident_bytes, 16384);
    assert_eq!(summary.ending.device, Some(device));
    assert!(refusal(&write(&[range(9, 0)])).contains("an entry has no name"));
    let too_long = ResidentRange {
        path: 3,
        offset: 1,
        length: i64::MAX as u64,
    };
    assert!(refusal(&write(&[too_long])).contains("it ends within its ranges"));
}

#[test]
fn a_length_that_is_not_there_takes_no_memory() {
    let mut bytes = Vec::from(&MAGIC[..]);
    bytes.extend(1_u32.to_le_bytes());
    bytes.push(1);
    bytes.extend(u32::MAX.to_le_bytes());
    bytes.extend([0; 36]);
    assert!(refusal(&bytes).contains("at most 33554432 are read"));
}

#[test]
fn a_part_is_a_trace_with_the_files_that_were_open() {
    let bytes = written(&names(), &[], &reads(100));
    let reader = TraceReader::new(&*bytes).unwrap();
    let (part, ending) = cut(reader, 500..700, Vec::new()).unwrap();
    let (_, operations, read_ending) = read(&part).unwrap();
    assert_eq!(read_ending, Some(ending.clone()));
    assert_eq!(
        (ending.operations, ending.threads, ending.elapsed_ns),
        (21, 1, 200)
    );
    let held = operations[0];
    assert_eq!(
        (held.code, held.path, held.offset),
        (Code::Held, 3, 49 * 4096)
    );
    assert_eq!((operations[1].start, operations[1].offset), (0, 49 * 4096));
    assert!(TraceReader::new(&*part).unwrap().origin().cut);
    assert!(!origin().cut);
}

#[test]
fn a_part_keeps_a_wake_that_is_in_it_and_no_other() {
    let wait = |start, cause| Operation {
        cause,
        duration: 10,
        blocked: 10,
        ..Operation::of(Code::Other, 1, start)
    };
    let wake = |start| Operation {
        result: 1,
        duration: 5,
        ..Operation::of(Code::Wake, 0, start)
    };
    let operations = [wake(90), wait(100, 1), wake(115), wait(120, 1)];
    let bytes = written(&names(), &[], &operations);
    let (part, _) = cut(TraceReader::new(&*bytes).unwrap(), 100..200, Vec::new()).unwrap();
    let causes: Vec<u32> = read(&part).unwrap().1.iter().map(|one| one.cause).collect();
    assert_eq!(causes, [0, 0, 1]);
}
