//! Which operations a thread does, one after the other: all of it follows from the plan.

use std::collections::VecDeque;

use super::lay::{ACTIVE, FILES, document};
use super::plan::{DRAWS, Idiom, PromisesPlan};
use crate::outcome::{Op, PromiseRecord};
use stackrace_system::draw::Draw;

/// The operation that a thread does next, and to what.
pub(super) struct NextOperation {
    pub(super) op: Op,
    pub(super) object: String,
    pub(super) offset: u64,
    /// Bytes it writes; a removal writes none.
    pub(super) bytes: u64,
    pub(super) generation: u32,
}

/// Draws objects to be written over, each time with a new generation.
pub(super) struct ObjectDraw {
    draw: Draw,
    generations: Vec<u32>,
}

impl ObjectDraw {
    pub(super) fn new(plan: &PromisesPlan, thread: u32) -> Self {
        Self {
            draw: Draw::new(plan.seed, DRAWS | u64::from(thread)),
            // Laid out with generation 1.
            generations: vec![1; plan.objects as usize],
        }
    }

    /// The next object, from 0, and its generation.
    pub(super) fn next(&mut self) -> (u32, u32) {
        let object = self.draw.below(self.generations.len() as u64) as usize;
        self.generations[object] += 1;
        (object as u32, self.generations[object])
    }
}

/// The operations of one thread.
pub(super) struct Sequence<'a> {
    plan: &'a PromisesPlan,
    thread: u32,
    drawn: ObjectDraw,
    /// Operations that were given out; removals are not counted.
    begun: u64,
    /// Messages that wait in the mail queue, oldest first.
    queue: VecDeque<String>,
}

impl<'a> Sequence<'a> {
    pub(super) fn new(plan: &'a PromisesPlan, thread: u32) -> Self {
        Self {
            plan,
            thread,
            drawn: ObjectDraw::new(plan, thread),
            begun: 0,
            queue: VecDeque::new(),
        }
    }

    /// The oldest message of a full queue, which is delivered before another one comes in.
    fn delivered(&mut self) -> Option<NextOperation> {
        if self.queue.len() <= self.plan.objects as usize {
            return None;
        }
        let object = self.queue.pop_front()?;
        Some(NextOperation {
            op: Op::Unlink,
            object,
            offset: 0,
            bytes: 0,
            generation: 2,
        })
    }
}

impl Iterator for Sequence<'_> {
    type Item = NextOperation;

    fn next(&mut self) -> Option<NextOperation> {
        if let Some(removal) = self.delivered() {
            return Some(removal);
        }
        if self.begun == self.plan.share(self.thread) {
            return None;
        }
        let (thread, number) = (self.thread, self.begun);
        self.begun += 1;
        let bytes = u64::from(self.plan.bytes);
        let (object, offset, generation) = match self.plan.idiom {
            Idiom::OverwriteFsync | Idiom::OverwriteDsync => {
                let (block, generation) = self.drawn.next();
                (
                    format!("data-{thread}"),
                    u64::from(block) * bytes,
                    generation,
                )
            }
            Idiom::AppendFdatasync | Idiom::AppendPlain => {
                (format!("log-{thread}"), number * bytes, 1)
            }
            Idiom::Replace | Idiom::ReplaceNoDirectorySync => {
                let (number, generation) = self.drawn.next();
                (document(thread, number), 0, generation)
            }
            Idiom::Create | Idiom::CreateNoDirectorySync => {
                (format!("{FILES}/{thread}-{number}"), 0, 1)
            }
            Idiom::MailQueue => {
                let object = format!("{ACTIVE}/{thread}-{number}");
                self.queue.push_back(object.clone());
                (object, 0, 1)
            }
            // The caller that does the transactions names the rows: see `PromisesPlan::planned`.
            Idiom::Database => {
                let (row, generation) = self.drawn.next();
                (row.to_string(), 0, generation)
            }
        };
        Some(NextOperation {
            op: self.plan.idiom.op(),
            object,
            offset,
            bytes,
            generation,
        })
    }
}

impl PromisesPlan {
    /// All operations as they will be begun, one thread after the other, none of them acknowledged:
    /// what has to be known on another machine before the power of this one may go. `row` names the
    /// rows of a database.
    pub fn planned(&self, row: impl Fn(u32) -> String) -> Vec<PromiseRecord> {
        let of_thread = |thread| Sequence::new(self, thread).map(move |next| (thread, next));
        let all = (0..self.threads).flat_map(of_thread);
        all.map(|(worker, next)| PromiseRecord {
            worker,
            op: next.op,
            object: match (self.idiom, next.object.parse()) {
                (Idiom::Database, Ok(number)) => row(number),
                _ => next.object,
            },
            offset: next.offset,
            bytes: next.bytes,
            generation: next.generation,
            begun_ns: 0,
            acknowledged_ns: None,
        })
        .collect()
    }
}
