//! What became of each operation, in the order they completed: for those who want more than a
//! distribution.

use crate::outcome::{KeptOps, Op};

/// Room for so many entries is made before the clock starts.
const ENTRIES: usize = 1 << 16;

/// The history of one worker.
#[derive(Debug, Clone)]
pub(crate) struct History {
    /// Length of a stretch, ns; 0: there are none.
    every_ns: u64,
    done: Vec<KeptOps>,
    /// The stretch under way, by kind of operation.
    open: Vec<KeptOps>,
}

impl History {
    pub(crate) fn new(every_ns: u64) -> History {
        History {
            every_ns,
            done: Vec::with_capacity(ENTRIES),
            open: Vec::with_capacity(Op::ALL.len()),
        }
    }

    #[inline(never)]
    pub(crate) fn add(&mut self, op: Op, offset: u64, bytes: u64, begun_ns: u64, end_ns: u64) {
        let latency_ns = end_ns.saturating_sub(begun_ns);
        let one = KeptOps {
            at_ns: end_ns,
            op,
            count: 1,
            bytes,
            latency_ns,
            longest_ns: latency_ns,
            offset,
        };
        if self.every_ns == 0 {
            self.done.push(one);
            return;
        }
        let stretch_ns = (end_ns / self.every_ns + 1).saturating_mul(self.every_ns);
        if self
            .open
            .first()
            .is_some_and(|open| open.at_ns < stretch_ns)
        {
            self.done.append(&mut self.open);
        }
        match self.open.iter_mut().find(|open| open.op == op) {
            Some(open) => {
                open.count += 1;
                open.bytes += bytes;
                open.latency_ns = open.latency_ns.saturating_add(latency_ns);
                open.longest_ns = open.longest_ns.max(latency_ns);
                open.offset = offset;
            }
            None => self.open.push(KeptOps {
                at_ns: stretch_ns,
                ..one
            }),
        }
    }

    pub(crate) fn forget(&mut self) {
        self.done.clear();
        self.open.clear();
    }

    /// Everything, the last stretch too, which may be shorter than the others.
    pub(crate) fn into_kept(mut self) -> Vec<KeptOps> {
        self.done.append(&mut self.open);
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_holds_all_operations_that_ended_in_it() {
        let mut history = History::new(100);
        for (op, begun_ns, end_ns) in [
            (Op::Read, 0, 10),
            (Op::Write, 0, 20),
            (Op::Read, 10, 99),
            (Op::Read, 99, 100),
        ] {
            history.add(op, begun_ns, 512, begun_ns, end_ns);
        }
        let kept = history.into_kept();
        let figures = kept.iter().map(|it| {
            (
                it.at_ns,
                it.op,
                it.count,
                it.bytes,
                it.latency_ns,
                it.longest_ns,
            )
        });
        let expected = [
            (100, Op::Read, 2, 1024, 99, 89),
            (100, Op::Write, 1, 512, 20, 20),
            (200, Op::Read, 1, 512, 1, 1),
        ];
        assert_eq!(figures.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn without_stretches_each_operation_is_kept_in_its_order() {
        let mut history = History::new(0);
        history.add(Op::Write, 4096, 512, 5, 9);
        history.add(Op::Read, 0, 1024, 9, 10);
        let kept = history.into_kept();
        let offsets: Vec<_> = kept
            .iter()
            .map(|it| (it.op, it.offset, it.latency_ns))
            .collect();
        assert_eq!(offsets, [(Op::Write, 4096, 4), (Op::Read, 0, 1)]);
    }
}
