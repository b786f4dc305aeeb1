//! The ledger of a trial on another machine, as it is known here when the power there is cut.

use std::collections::HashMap;

use super::told::UNHEARD_MAX;
use stackrace_base::event::{OperationKind, Promised};

/// Ledger of a trial as it is known elsewhere: all that was planned, and what was heard of it.
#[derive(Debug)]
pub struct HeardLedger {
    /// Common beginning of the names of its stack.
    pub mark: String,
    promised: Promised,
    /// Lines of each thread that were not heard of yet, by position, the next one first.
    next: HashMap<u32, std::vec::IntoIter<usize>>,
    /// Operations that were acknowledged.
    acknowledged: u64,
    /// The latest instant that was heard of, ns, by the clock there.
    latest_ns: u64,
}

impl HeardLedger {
    /// A ledger of which nothing but the plan is known.
    pub fn new(mark: String, promised: Promised) -> Self {
        let mut of_thread: HashMap<u32, Vec<usize>> = HashMap::new();
        for (position, line) in promised.lines.iter().enumerate() {
            // What lay there before is known already.
            if line.acknowledged_ns.is_none() {
                of_thread.entry(line.worker).or_default().push(position);
            }
        }
        let next = of_thread.into_iter();
        Self {
            mark,
            promised,
            next: next
                .map(|(thread, all)| (thread, all.into_iter()))
                .collect(),
            acknowledged: 0,
            latest_ns: 0,
        }
    }

    /// Operations that are planned, removals not counted.
    pub fn planned(&self) -> u64 {
        let lines = self.promised.lines.iter();
        let removal = |kind| matches!(kind, OperationKind::AtRest | OperationKind::Remove);
        lines.filter(|line| !removal(line.kind)).count() as u64
    }

    /// Operations that were acknowledged, removals not counted.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The next operation of a thread ended.
    ///
    /// # Errors
    /// There is none.
    pub fn hear(
        &mut self,
        thread: u32,
        begun_ns: u64,
        acknowledged_ns: Option<u64>,
    ) -> Result<(), String> {
        let next = self.next.get_mut(&thread).and_then(Iterator::next);
        let position = next.ok_or_else(|| format!("thread {thread} did more than was planned"))?;
        let line = &mut self.promised.lines[position];
        (line.begun_ns, line.acknowledged_ns) = (begun_ns, acknowledged_ns);
        let counts = acknowledged_ns.is_some() && line.kind != OperationKind::Remove;
        self.acknowledged += u64::from(counts);
        self.latest_ns = self.latest_ns.max(acknowledged_ns.unwrap_or(begun_ns));
        Ok(())
    }

    /// The ledger of the cut, and its instant, ns, by the clock there. Operations that may have been
    /// begun without being heard of are in flight; those that cannot have been begun are left out.
    pub fn at_cut(mut self) -> (Promised, u64) {
        // Later than everything that was heard of.
        let at_ns = self.latest_ns + 1;
        let mut unknown: Vec<usize> = Vec::new();
        for rest in self.next.values_mut() {
            // One more: the thread may be in the middle of the next one.
            for position in rest.by_ref().take(UNHEARD_MAX as usize + 1) {
                self.promised.lines[position].begun_ns = at_ns;
            }
            unknown.extend(rest);
        }
        unknown.sort_unstable();
        let mut position = 0;
        self.promised.lines.retain(|_| {
            position += 1;
            unknown.binary_search(&(position - 1)).is_err()
        });
        // By their beginning, as in every ledger; those at rest are first.
        self.promised.lines.sort_by_key(|line| line.begun_ns);
        for (number, line) in (0..).zip(&mut self.promised.lines) {
            line.number = number;
        }
        (self.promised, at_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::OnceLock;

    use parking_lot::Mutex;
    use stackrace_engine::Control;
    use stackrace_engine::promises::{Acknowledged, PromiseRecord};

    use super::*;
    use crate::crash::Remains;
    use stackrace_load::workload::Place;
    use stackrace_study::study::{Kinds, parse};

    /// Everything that was said, in the order in which it was.
    #[derive(Default)]
    struct Said(Mutex<Vec<PromiseRecord>>);

    impl Acknowledged for Said {
        fn begins(&self, _thread: u32) {}
        fn ended(&self, record: &PromiseRecord) {
            self.0.lock().push(record.clone());
        }
    }

    /// Does the operations of an idiom; what was planned, and what was said.
    fn done(directory: &Path, idiom: &str) -> (Promised, Vec<PromiseRecord>) {
        let threads = if idiom == "sqlite" { 1 } else { 2 };
        let text = format!(
            "[[stack]]\ndir = {{ path = \"/var/tmp\" }}\n[[workload]]\npromises = {{ \
             idiom = \"{idiom}\", operations = 40, objects = 4, at-rest = 2, threads = {threads} }}\n"
        );
        let study = parse("t.toml", text.as_bytes(), &Kinds::real())
            .unwrap_or_else(|errors| panic!("{}", errors[0]));
        let workload = study.configurations[0].workloads[0].as_ref();
        let (control, ledger) = (Control::default(), OnceLock::new());
        let place = Place::alone(directory, 3, &ledger, &control);
        workload.prepare(&place).unwrap();
        let promised = Promised {
            round: 1,
            configuration: 0,
            workload: 0,
            seed: 3,
            directory: directory.display().to_string(),
            lines: workload.planned(&place),
        };
        let said = Said::default();
        workload.measure_told(0, &place, &said).unwrap();
        (promised, said.0.into_inner())
    }

    fn heard(promised: &Promised, said: &[PromiseRecord]) -> (Promised, u64) {
        let mut ledger = HeardLedger::new("mark".to_owned(), promised.clone());
        assert_eq!(ledger.planned(), 40);
        for record in said {
            let known = ledger.hear(record.worker, record.begun_ns, record.acknowledged_ns);
            known.unwrap();
        }
        ledger.at_cut()
    }

    #[test]
    fn operations_that_were_not_heard_of_are_in_flight_and_break_no_promise() {
        for idiom in [
            "overwrite-fsync",
            "append-fdatasync",
            "replace",
            "create",
            "mail-queue",
            "sqlite",
        ] {
            if idiom == "sqlite" && cfg!(not(feature = "sqlite")) {
                continue;
            }
            let directory = tempfile::tempdir().unwrap();
            let (promised, said) = done(directory.path(), idiom);
            for unheard in 0..=UNHEARD_MAX as usize {
                let (ledger, at_ns) = heard(&promised, &said[..said.len() - unheard]);
                let found = Remains::open(directory.path(), &ledger, None).check(at_ns);
                assert_eq!(found.counts.all(), 0, "{idiom}, {unheard}: {found:?}");
                assert!(found.promised > 0);
            }
        }
    }

    #[test]
    fn what_was_heard_of_and_is_gone_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let (promised, said) = done(directory.path(), "create");
        let (ledger, at_ns) = heard(&promised, &said[..30]);
        std::fs::remove_file(directory.path().join(&said[29].object)).unwrap();
        // Of this one nothing was heard: no one was told that it is safe.
        std::fs::remove_file(directory.path().join(&said[30].object)).unwrap();
        let found = Remains::open(directory.path(), &ledger, None).check(at_ns);
        assert_eq!((found.counts.lost, found.counts.all()), (1, 1), "{found:?}");
        assert_eq!(found.losses[0].ledger.object, said[29].object);
    }

    #[test]
    fn more_than_was_planned_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (promised, said) = done(directory.path(), "create");
        let mut ledger = HeardLedger::new("mark".to_owned(), promised);
        for record in &said {
            ledger.hear(record.worker, 1, Some(2)).unwrap();
        }
        ledger.hear(0, 3, Some(4)).unwrap_err();
        ledger.hear(9, 3, Some(4)).unwrap_err();
    }
}
