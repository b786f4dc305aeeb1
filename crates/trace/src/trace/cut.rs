//! A part of a trace as a trace of its own.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::ops::Range;

use super::call::Code;
use super::error::TraceError;
use super::facts::{Ending, StopReason};
use super::names::Names;
use super::operation::Operation;
use super::reader::{Part, TraceReader};
use super::writer::TraceWriter;

/// An open file as it is where the part begins.
#[derive(Debug, Clone, Copy)]
struct Open {
    path: u32,
    flags: u64,
    position: u64,
}

/// Numbers of the part for those of the whole.
#[derive(Debug, Default)]
struct Numbers {
    threads: HashMap<u32, u32>,
    files: HashMap<u32, u32>,
    /// Place in the part of each operation of the whole from the first one on that is in it; none: it is not.
    places: Vec<Option<u64>>,
    written: u64,
}

/// Copies the operations that begin within a span of time, ns. The tree stays that of the beginning; files that are
/// open where the part begins are named.
///
/// # Errors
/// The trace is refused, or the system cannot write.
pub fn cut<R: Read, W: Write>(
    mut from: TraceReader<R>,
    span: Range<u64>,
    to: W,
) -> Result<(W, Ending), TraceError> {
    let mut origin = from.origin().clone();
    origin.cut = true;
    let mut writer = TraceWriter::new(to, &origin)?;
    let mut numbers = Numbers::default();
    let mut open: HashMap<u32, Open> = HashMap::new();
    let mut ending = Ending::default();
    while let Some(part) = from.next_part()? {
        match part {
            Part::Tree(entries) => writer.tree(from.names(), &entries)?,
            Part::Resident(ranges) => writer.resident(&ranges)?,
            Part::Operations(operations) => {
                for operation in &operations {
                    let inside = span.contains(&operation.start);
                    if inside {
                        let names = from.names();
                        copy(operation, &span, &open, &mut numbers, names, &mut writer)?;
                    }
                    // Causes are distances in the whole, and become those of the part.
                    let place = inside.then(|| numbers.written - 1);
                    numbers.places.push(place);
                    follow(operation, &mut open);
                }
            }
            Part::Ending(whole) => ending = whole,
        }
    }
    // What was lost, and what it cost, is known of the whole alone; what the devices did says nothing of a part.
    let elapsed = ending.elapsed_ns.min(span.end).saturating_sub(span.start);
    let ending = Ending {
        stopped: Some(StopReason::Cut),
        operations: writer.operations(),
        threads: numbers.threads.len() as u64,
        elapsed_ns: elapsed,
        device: None,
        ..ending
    };
    let out = writer.finish(from.names(), &ending)?;
    Ok((out, ending))
}

/// Keeps what is known of open files.
fn follow(operation: &Operation, open: &mut HashMap<u32, Open>) {
    let moved = operation.result.max(0).unsigned_abs();
    match operation.code {
        Code::Open | Code::Held if operation.handle > 0 => {
            let opened = Open {
                path: operation.path,
                flags: operation.flags,
                position: operation.offset,
            };
            open.insert(operation.handle, opened);
        }
        Code::Read | Code::Write => {
            if let Some(open) = open.get_mut(&operation.handle) {
                open.position = operation.offset.saturating_add(moved);
            }
        }
        Code::Seek => {
            if let Some(open) = open.get_mut(&operation.handle) {
                // The result of a seek is the new position.
                open.position = moved;
            }
        }
        _ => {}
    }
}

/// Writes an operation with the numbers of the part, behind the file that it needs.
fn copy<W: Write>(
    operation: &Operation,
    span: &Range<u64>,
    open: &HashMap<u32, Open>,
    numbers: &mut Numbers,
    names: &Names,
    writer: &mut TraceWriter<W>,
) -> Result<(), TraceError> {
    let mut part = *operation;
    // It is inside of the span, so this is never below 0.
    part.start -= span.start;
    part.thread = numbered(&mut numbers.threads, operation.thread, 0);
    if matches!(operation.code, Code::Wake | Code::Fork) {
        let other = operation.result.try_into().unwrap_or_default();
        part.result = numbered(&mut numbers.threads, other, 0).into();
    }
    if operation.handle > 0 {
        let new = !numbers.files.contains_key(&operation.handle);
        part.handle = numbered(&mut numbers.files, operation.handle, 1);
        let opens = matches!(operation.code, Code::Open | Code::Held);
        if let (true, false, Some(open)) = (new, opens, open.get(&operation.handle)) {
            let held = Operation {
                handle: part.handle,
                path: open.path,
                offset: open.position,
                flags: open.flags,
                ..Operation::of(Code::Held, part.thread, part.start)
            };
            writer.push(names, held)?;
            numbers.written += 1;
        }
    }
    // A wake before the part: what ended the wait is outside of it.
    let cause = (operation.cause > 0)
        .then(|| numbers.places.len().checked_sub(operation.cause as usize))
        .flatten();
    let cause = cause.and_then(|at| numbers.places.get(at).copied().flatten());
    let before = cause.map_or(0, |place| numbers.written - place);
    part.cause = before.try_into().unwrap_or_default();
    writer.push(names, part)?;
    numbers.written += 1;
    Ok(())
}

/// The number of the part, counted from `first`.
fn numbered(known: &mut HashMap<u32, u32>, whole: u32, first: u32) -> u32 {
    let next = known.len() as u32 + first;
    *known.entry(whole).or_insert(next)
}
