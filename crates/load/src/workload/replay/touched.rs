//! The names and open files that an operation touches, and which it makes another thing.

use std::collections::HashSet;

use stackrace_engine::replay::Touch;
use stackrace_trace::trace::{Code, Names, Operation, Part};

/// Flags of `open` that make a file, and empty it (open(2), on every architecture of Linux that is recorded).
pub(super) const CREATE: u64 = 0o100;
const TRUNCATE: u64 = 0o1000;

/// Kinds of things that are touched, in the upper bits of their numbers.
pub(super) const EVENT: u64 = 1 << 40;
const NAME: u64 = 2 << 40;
const FILE: u64 = 3 << 40;
pub(super) const LOCK: u64 = 4 << 40;
const SIZE: u64 = 5 << 40;

/// `lseek` from the end of a file (lseek(2), on every architecture of Linux).
const FROM_END: u64 = 2;

/// Adds the names that were made, removed or moved in a part while others may have stood below them.
pub(super) fn add_moved(part: &Part, moved: &mut HashSet<u32>) {
    // The tree before is there from the start, and moves nothing.
    let Part::Operations(operations) = part else {
        return;
    };
    for operation in operations.iter().filter(|operation| operation.result >= 0) {
        match operation.code {
            Code::MakeDir | Code::RemoveDir | Code::Unlink => {
                moved.insert(operation.path);
            }
            Code::Rename => moved.extend([operation.path, operation.second]),
            _ => {}
        }
    }
}

/// The end of a file, which a call moves or meets; `size` is where it was, and is moved with it. Calls of threads that
/// have the file open each for itself are ordered by nothing else.
pub(super) fn end_of_file(operation: &Operation, name: u32, size: &mut u64) -> Option<Touch> {
    let (before, moved) = (*size, operation.moved());
    let end = operation.offset.saturating_add(moved);
    let meets = match operation.code {
        _ if operation.result < 0 => return None,
        Code::Write | Code::WriteAt => {
            *size = before.max(end);
            false
        }
        Code::Allocate => {
            *size = before.max(operation.offset.saturating_add(operation.length));
            false
        }
        Code::Truncate => {
            *size = operation.length;
            false
        }
        Code::Open if operation.flags & TRUNCATE != 0 => {
            *size = 0;
            false
        }
        Code::Read | Code::ReadAt => moved < operation.length,
        Code::Seek => operation.flags == FROM_END,
        _ => false,
    };
    let changes = *size != before;
    (changes || meets).then_some(Touch {
        thing: SIZE | u64::from(name),
        changes,
    })
}

/// What a call touches: the file, the names, and the directories above them that were ever moved.
pub(super) fn touch(
    operation: &Operation,
    names: &Names,
    moved: &HashSet<u32>,
    touches: &mut Vec<Touch>,
) {
    // What failed changed nothing.
    let done = operation.result >= 0;
    let makes = operation.flags & (CREATE | TRUNCATE) != 0;
    let [first, second] = match operation.code {
        Code::Open => [makes && done, false],
        Code::MakeDir | Code::RemoveDir | Code::Unlink | Code::SymLink => [done, false],
        Code::Rename => [done, done],
        Code::Link => [false, done],
        _ => [false, false],
    };
    for (name, changes) in [(operation.path, first), (operation.second, second)] {
        // Directories that never moved order nothing, and most names have several.
        let mut above = name;
        if name > 0 {
            touches.push(Touch {
                thing: NAME | u64::from(name),
                changes,
            });
        }
        while let Some((parent, _)) = names.last(above) {
            if moved.contains(&parent) {
                touches.push(Touch {
                    thing: NAME | u64::from(parent),
                    changes: false,
                });
            }
            above = parent;
        }
    }
    if operation.handle > 0 {
        // Calls at the position of a file move it for all who share it.
        let changes = matches!(
            operation.code,
            Code::Open | Code::Close | Code::Read | Code::Write | Code::Seek | Code::List
        );
        touches.push(Touch {
            thing: FILE | u64::from(operation.handle),
            changes,
        });
    }
}
