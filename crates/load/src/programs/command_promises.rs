//! A program of the user's whose operations must survive a power cut: it says which ones are durable, and a check of
//! its own says afterwards which are there.
//!
//! Operations have numbers from 1, and are acknowledged in their order. The instant of an acknowledgement is when its
//! line arrives here, a little after the program wrote it: what is called a loss was promised before the cut.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use regex::Regex;
use stackrace_engine::promises::{Acknowledged, OPERATIONS_MAX, PromiseRecord};
use stackrace_engine::{Op, PhaseOutcome};

use super::command::shell;
use super::ran;
use super::reported::pattern;
use crate::workload::metric;
use crate::workload::program_end::{explained, judged};
use crate::workload::{Cost, OwnFindings, Place, Workload, WorkloadError, WorkloadKind, trouble};
use stackrace_base::event::{Better, LedgerLine, MetricHead, OperationKind, OperationsOf, Promise};
use stackrace_base::owned::held::with_real_names;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_machine::host::program::{self, HeardLine, PRINTED_MAX, ProgramCall};

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "command-promises",
    summary: "a program of your own that says what is durable, and its check after a power cut",
    source: "the commands, once a trial; those of a study need --allow-commands",
    settings: &[
        SettingDoc::text(
            "run",
            "",
            "The program, for sh: it numbers operations from 1, and prints a line when each is durable.",
        )
        .required(),
        SettingDoc::text(
            "acknowledged",
            "",
            "Pattern of that line; its group is the number.",
        )
        .required(),
        SettingDoc::text(
            "check",
            "",
            "Command for sh after a power cut, in the same directory: prints a line for each operation that is there.",
        )
        .required(),
        SettingDoc::text("found", "", "Pattern of that line; its group is the number.")
            .computed("that of acknowledged"),
        SettingDoc::text("prepare", "", "Command for sh before each trial, outside the clock."),
        SettingDoc::count("operations", "100", "Operations after which the program is ended."),
        SettingDoc::time(
            "time-limit",
            "10 min",
            "Longest time for the program, and for each of the others.",
        ),
        SettingDoc::bytes("disk", "64 MiB", "Room that it needs."),
    ],
    example: "command-promises = { run = \"for i in $(seq 100); do echo $i >> log; sync log; echo done $i; done\", acknowledged = \"done ([0-9]+)\", check = \"cat log\", found = \"([0-9]+)\" }",
    parse: |settings| Ok(Box::new(OwnPromises::parse(settings)?)),
    operations: OperationsOf::Promised,
    ..WorkloadKind::PLAIN
};

/// What one operation takes in a ledger that counts sectors: its own content is not known.
const BYTES: u64 = 512;

/// Statuses with which sh says that a command was found nowhere, or cannot be started.
const NOT_RUN: [i32; 2] = [126, 127];

/// Longest wait for a line before it is looked whether the program has ended.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct OwnPromises {
    run: String,
    acknowledged: Regex,
    check: String,
    found: Regex,
    prepare: Option<String>,
    operations: u64,
    time_max_ns: u64,
    disk: u64,
}

impl OwnPromises {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let compiled = |name: &str, text: &str| -> Result<Regex, Refusal> {
            let compiled = pattern(text);
            let compiled = compiled.map_err(|(what, help)| settings.refuse(name, what, help))?;
            match compiled.captures_len() {
                2 => Ok(compiled),
                _ => Err(settings.refuse(
                    name,
                    "the pattern has no group for the number, or several",
                    format!("write {name} = \"done ([0-9]+)\""),
                )),
            }
        };
        let text = settings.text("acknowledged")?;
        let found = settings.optional_text("found")?;
        let operations = settings.count("operations")?;
        Ok(Self {
            run: settings.text("run")?,
            acknowledged: compiled("acknowledged", &text)?,
            check: settings.text("check")?,
            found: compiled("found", found.as_ref().unwrap_or(&text))?,
            prepare: settings.optional_text("prepare")?,
            operations: settings.within("operations", operations, 1..=OPERATIONS_MAX)?,
            time_max_ns: settings.lasting_ns("time-limit")?,
            disk: settings.bytes("disk")?,
        })
    }

    /// Hears the program until it has ended; an error is of the first line that is out of order.
    fn hear(
        &self,
        lines: &Receiver<HeardLine>,
        told: Option<&dyn Acknowledged>,
        so_far: &Heard,
    ) -> Result<Vec<PromiseRecord>, WorkloadError> {
        let mut records: Vec<PromiseRecord> = Vec::new();
        let mut begun_ns = SystemClock.now_ns();
        loop {
            let line = match lines.recv_timeout(LOOK) {
                Ok(line) => line,
                // A process that nothing finds may keep the pipe open.
                Err(RecvTimeoutError::Timeout) if !so_far.ended.load(Ordering::Acquire) => continue,
                Err(_) => return Ok(records),
            };
            let Some(number) = number(&self.acknowledged, &line.text) else {
                continue;
            };
            let expected = records.len() as u64 + 1;
            if expected > self.operations {
                continue;
            }
            if number != expected {
                // Nothing more can be told of it.
                so_far.wrong.store(true, Ordering::Release);
                return Err(trouble(format!(
                    "it acknowledged {number} where {expected} was next: operations are numbered from 1 and acknowledged in order"
                )));
            }
            if let Some(told) = told {
                told.begins(0);
            }
            let record = PromiseRecord {
                worker: 0,
                op: Op::Write,
                object: object(number),
                offset: 0,
                bytes: BYTES,
                generation: 1,
                begun_ns,
                acknowledged_ns: Some(line.at_ns),
            };
            begun_ns = line.at_ns;
            if let Some(told) = told {
                told.ended(&record);
            }
            records.push(record);
            so_far.count.store(expected, Ordering::Release);
        }
    }

    fn operations(
        &self,
        place: &Place<'_>,
        told: Option<&dyn Acknowledged>,
    ) -> Result<PhaseOutcome, WorkloadError> {
        if place.elsewhere.is_some() {
            return Err(trouble(
                "a machine with nothing but a shell cannot tell when each operation was acknowledged",
            ));
        }
        let argv = shell(
            &self.run,
            &with_real_names(&place.directory.to_string_lossy()),
        )?;
        let (so_far, (sender, lines)) = (Heard::default(), channel());
        let stopped = || {
            place.control.stopped()
                || so_far.wrong.load(Ordering::Acquire)
                || so_far.count.load(Ordering::Acquire) >= self.operations
        };
        let began_ns = SystemClock.now_ns();
        let (ran, heard) = std::thread::scope(|scope| {
            let hearing = &so_far;
            let heard = scope.spawn(move || self.hear(&lines, told, hearing));
            let ran = program::run(&ProgramCall {
                argv: &argv,
                directory: place.directory,
                environment: &[],
                time_max_ns: self.time_max_ns,
                durable: false,
                leaves_server: false,
                stopped: &stopped,
                lines: Some(sender),
            });
            so_far.ended.store(true, Ordering::Release);
            // A panic over there is one here.
            let heard = heard
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (ran, heard)
        });
        let (ran, records) = (ran.map_err(explained)?, heard?);
        let whole = records.len() as u64 == self.operations;
        let end_ns = records.last().and_then(|last| last.acknowledged_ns);
        let elapsed_ns = end_ns.unwrap_or(began_ns).saturating_sub(began_ns);
        if !whole {
            let done = records.len();
            return match judged(&argv, self.time_max_ns, ran)? {
                // The trial was stopped.
                None => Ok(PhaseOutcome {
                    promised: records,
                    ..ran::outcome(&argv, None, 0, Vec::new())
                }),
                Some(_) => Err(trouble(format!(
                    "it ended after {done} acknowledged operations of {}: let it do as many, or write operations = {done}",
                    self.operations
                ))),
            };
        }
        let rate = metric::per_second(self.operations, elapsed_ns);
        Ok(PhaseOutcome {
            promised: records,
            ..ran::outcome(&argv, Some(&ran), elapsed_ns, vec![rate])
        })
    }

    /// Makes a line of the ledger.
    fn line(number: u64, begun_ns: u64, acknowledged_ns: Option<u64>) -> LedgerLine {
        LedgerLine {
            number: number - 1,
            worker: 0,
            kind: OperationKind::Transaction,
            object: object(number),
            offset: 0,
            bytes: BYTES,
            generation: 1,
            promise: Promise::Commit,
            begun_ns,
            acknowledged_ns,
        }
    }
}

/// What is known of a program while it runs.
#[derive(Default)]
struct Heard {
    count: AtomicU64,
    wrong: AtomicBool,
    ended: AtomicBool,
}

/// The ledger's name of an operation.
fn object(number: u64) -> String {
    format!("operation {number}")
}

/// The number in a line.
fn number(pattern: &Regex, line: &str) -> Option<u64> {
    pattern.captures(line)?.get(1)?.as_str().parse().ok()
}

impl Workload for OwnPromises {
    fn summary(&self) -> String {
        format!(
            "{} operations of `{}`, checked by `{}` after a power cut",
            unit::count(self.operations),
            self.run,
            self.check
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![MetricHead::new("operations", "op/s", Better::Higher)]
    }

    fn cost(&self) -> Cost {
        Cost {
            measured_bytes: None,
            disk_bytes: self.disk,
            ..Cost::default()
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["operations"]
    }

    fn commands(&self) -> Vec<String> {
        let aside = [Some(&self.check), self.prepare.as_ref()];
        let all = std::iter::once(&self.run).chain(aside.into_iter().flatten());
        all.cloned().collect()
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let Some(line) = &self.prepare else {
            return Ok(());
        };
        let argv = shell(line, &with_real_names(&place.directory.to_string_lossy()))?;
        let ran = ran::run(place, &argv, self.time_max_ns, true);
        ran.map_err(|error| error.while_doing("prepare")).map(drop)
    }

    fn measure(&self, _: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        self.operations(place, None)
    }

    fn measure_told(
        &self,
        _: usize,
        place: &Place<'_>,
        told: &dyn Acknowledged,
    ) -> Result<PhaseOutcome, WorkloadError> {
        self.operations(place, Some(told))
    }

    fn planned(&self, _: &Place<'_>) -> Vec<LedgerLine> {
        let all = 1..=self.operations;
        all.map(|number| Self::line(number, 0, None)).collect()
    }

    fn promised(&self, _: &Place<'_>, outcome: &PhaseOutcome) -> Vec<LedgerLine> {
        let records = (1..).zip(&outcome.promised);
        let lines =
            records.map(|(number, one)| Self::line(number, one.begun_ns, one.acknowledged_ns));
        lines.collect()
    }

    fn found_after_cut(&self, directory: &Path) -> Result<Option<OwnFindings>, WorkloadError> {
        // Without its directory nothing of it is there, and nothing can be checked.
        if !directory.is_dir() {
            return Ok(Some(Ok(Vec::new())));
        }
        let argv = shell(&self.check, &with_real_names(&directory.to_string_lossy()))?;
        let ran = program::run(&ProgramCall {
            argv: &argv,
            directory,
            environment: &[],
            time_max_ns: self.time_max_ns,
            durable: false,
            leaves_server: false,
            stopped: &|| false,
            lines: None,
        });
        let ran = ran.map_err(explained)?;
        // Operations whose lines were dropped may all be there.
        if ran.stdout_cut {
            let most = unit::bytes(PRINTED_MAX as u64);
            return Err(trouble(format!(
                "the check printed more than {most}: let it print the numbers alone"
            )));
        }
        let could_run = ran.cut.is_none() && !ran.status.is_some_and(|it| NOT_RUN.contains(&it));
        match judged(&argv, self.time_max_ns, ran) {
            // What the storage kept is not known, so nothing may be called lost.
            Err(error) if !could_run => Err(error.while_doing("check")),
            Err(error) => Ok(Some(Err(error.to_string()))),
            Ok(ran) => {
                let printed = ran.map(|ran| ran.stdout).unwrap_or_default();
                let numbers = printed.lines().filter_map(|line| number(&self.found, line));
                Ok(Some(Ok(numbers.map(object).collect())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::written;
    use stackrace_engine::Control;
    use std::sync::OnceLock;

    fn workload(run: &str) -> Box<dyn Workload> {
        let line = format!(
            "command-promises = {{ run = \"{run}\", acknowledged = \"done ([0-9]+)\", check = \"cat log\", found = \"^([0-9]+)$\", operations = 5 }}"
        );
        written::workload(&line).unwrap()
    }

    fn tried(
        workload: &dyn Workload,
        at: &Path,
    ) -> Result<(PhaseOutcome, Vec<LedgerLine>), WorkloadError> {
        let (ledger, control) = (OnceLock::new(), Control::default());
        let place = Place::alone(at, 7, &ledger, &control);
        let outcome = workload.measure(0, &place)?;
        let lines = workload.promised(&place, &outcome);
        Ok((outcome, lines))
    }

    #[test]
    fn operations_that_are_missing_or_out_of_order_are_a_failure() {
        let at = tempfile::tempdir().unwrap();
        for (run, said) in [
            ("echo done 1; echo done 3; sleep 100", "3 where 2 was next"),
            (
                "echo done 1; echo done 2",
                "after 2 acknowledged operations of 5",
            ),
            ("echo done 1; exit 3", "exit status 3"),
        ] {
            let error = tried(&*workload(run), at.path()).err().unwrap();
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn a_check_that_could_not_look_calls_nothing_lost() {
        let at = tempfile::tempdir().unwrap();
        let found = |check: &str| {
            let line = format!(
                "command-promises = {{ run = \"x\", acknowledged = \"done ([0-9]+)\", check = \"{check}\", time-limit = \"500 ms\" }}"
            );
            let workload = written::workload(&line).unwrap();
            workload.found_after_cut(at.path())
        };
        for (check, said) in [
            ("no-such-program-here", "exit status 127"),
            ("sleep 100", "did not end within"),
            (
                "head -c 9000000 /dev/zero",
                "more than 8 MiB: let it print the numbers",
            ),
        ] {
            let error = found(check).err().unwrap().to_string();
            assert!(error.contains(said), "{error}");
        }
        // One that looked, and failed over what it saw, counts.
        assert!(found("exit 3").unwrap().unwrap().is_err());
        let one = found("echo done 1").unwrap().unwrap().unwrap();
        assert_eq!(one, ["operation 1"]);
    }

    #[test]
    fn a_pattern_has_one_group() {
        let line = "command-promises = { run = \"x\", acknowledged = \"done\", check = \"y\" }";
        let refused = written::workload(line).err().unwrap();
        assert!(refused.contains("no group"), "{refused}");
    }
}
