//! fio itself: a job of its own language, done by the fio that is installed, in the directory of the trial.
//!
//! The job is checked before anything is touched ([`FioJob`]), and once more by fio itself (`--parse-only`) where it
//! will run. fio lays out its files within the trial and leaves that out of its figures. The same job is the same
//! work in each round: fio draws from the same seed unless the job says otherwise (`randrepeat`).

use std::ffi::OsString;

use stackrace_engine::PhaseOutcome;

use super::ran;
use super::same_work::{SameWork, trial_names};
use crate::workload::{Cost, OverShell, Place, Workload, WorkloadError, WorkloadKind, trouble};
use stackrace_base::event::{MetricHead, OperationsOf};
use stackrace_base::setting::{Refusal, SettingDoc, Settings, Span};
use stackrace_base::unit;
use stackrace_fio::fio::{self, FioJob, JobFault};
use stackrace_machine::host::program::PRINTED_MAX;
use stackrace_machine::host::{Host, Needs, Package, argv};

/// The word in a study.
pub const FIO: &str = "fio";
/// The setting that names the file of a job.
pub const JOB: &str = "job";
/// The setting with the job itself.
pub const CONTENT: &str = "content";
/// Longest job, bytes: it is one word of a command line.
pub const JOB_MAX: usize = 64 << 10;

/// The job in the directory of the trial: by a name that no job uses.
const JOB_FILE: &str = ".stackrace-job.fio";
/// Where fio writes its report.
const REPORT: &str = ".stackrace-report.json";
/// Writes a text, the first word behind it, into the file that the second one names.
const WRITE: &str = "printf %s \"$1\" > \"$2\"";
/// Has fio check a job in a directory of its own, which is gone afterwards.
const CHECK: &str = "d=$(mktemp -d) && cd \"$d\" && printf %s \"$1\" > \"$2\" && fio --parse-only \"$2\" 2>&1; s=$?; cd / && rm -rf \"$d\"; exit $s";

const PACKAGES: &[Package] = &[Package::new("fio", &["fio"])];

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: FIO,
    summary: "fio itself with a job file of yours: all figures of its report",
    source: "the program fio of this machine, once a trial, in the directory of the trial",
    settings: &[
        SettingDoc::text(
            JOB,
            "",
            "Job file, beside the study; its text is kept with the study.",
        ),
        SettingDoc::text(CONTENT, "", "The job itself, in place of the file's text."),
        SettingDoc::time(
            "time-limit",
            "10 min",
            "A trial that takes longer is ended, and has failed.",
        ),
        SettingDoc::bytes("disk", "", "Room that it needs.")
            .computed("what its sizes say, 64 MiB at least"),
    ],
    example: "fio = { content = \"[x]\\nrw=randread\\nsize=16m\\n\" }",
    over_shell: OverShell::Runs,
    parse: |settings| Ok(Box::new(Fio::parse(settings)?)),
    operations: OperationsOf::Job,
    ..WorkloadKind::PLAIN
};

#[derive(Debug)]
struct Fio {
    content: String,
    job: FioJob,
    work: SameWork,
    time_max_ns: u64,
    disk: u64,
}

impl Fio {
    fn parse(settings: &Settings) -> Result<Self, Refusal> {
        let file = settings.optional_text(JOB)?;
        let Some(content) = settings.optional_text(CONTENT)? else {
            let help = "write job = \"JOB.fio\", or the job itself with content";
            return Err(match file {
                Some(file) => settings.refuse(
                    JOB,
                    format!("the text of {file} is not with the study"),
                    help,
                ),
                None => Refusal::at(&settings.span, "fio needs a job", help),
            });
        };
        let at = match settings.given(JOB) {
            true => settings.span_of(JOB),
            false => settings.span_of(CONTENT),
        };
        if content.len() > JOB_MAX {
            let message = format!("the job has {}", unit::bytes(content.len() as u64));
            let help = format!("give fio {} at most", unit::bytes(JOB_MAX as u64));
            return Err(Refusal::at(at, message, help));
        }
        let called = file.unwrap_or_else(|| "the job".to_owned());
        let job = FioJob::read(&content).map_err(|faults| refused(&called, &faults, at))?;
        let disk = settings.optional_bytes("disk")?;
        Ok(Self {
            time_max_ns: settings.lasting_ns("time-limit")?,
            disk: disk.unwrap_or(job.bytes.max(64 << 20)),
            work: SameWork::of(format!("{FIO}\n{content}")),
            content,
            job,
        })
    }

    /// What fio is started with.
    fn argv() -> Vec<OsString> {
        argv([
            "fio",
            "--output-format=json+",
            &format!("--output={REPORT}"),
            JOB_FILE,
        ])
    }

    /// The report that fio wrote, read as any program would, because the machine may be another one.
    fn report(&self, place: &Place<'_>) -> Result<Option<String>, WorkloadError> {
        let Some(read) = ran::run(place, &argv(["cat", REPORT]), self.time_max_ns, false)? else {
            return Ok(None);
        };
        if read.stdout_cut {
            return Err(trouble(format!(
                "fio's report is longer than {}: write group_reporting into [global]",
                unit::bytes(PRINTED_MAX as u64)
            )));
        }
        Ok(Some(read.stdout))
    }
}

/// All faults of a job, each with its line.
fn refused(called: &str, faults: &[JobFault], at: &Span) -> Refusal {
    let lines = faults.iter();
    let lines = lines.map(|fault| format!("{called}:{}: {}", fault.line, fault.what));
    let mut helps: Vec<&str> = faults.iter().map(|fault| fault.next.as_str()).collect();
    helps.dedup();
    Refusal::at(at, lines.collect::<Vec<_>>().join("\n"), helps.join("\n"))
}

impl Workload for Fio {
    fn summary(&self) -> String {
        let names: Vec<&str> = self.job.names().collect();
        // The job is in the study; here it need only be told from another one.
        let digest = blake3::hash(self.content.as_bytes()).to_hex();
        format!("fio: {} (job {})", names.join(", "), &digest[..8])
    }

    fn metrics(&self) -> Vec<MetricHead> {
        fio::heads(&self.job)
    }

    fn cost(&self) -> Cost {
        Cost {
            // fio decides: after a size, a time, or both.
            measured_bytes: None,
            disk_bytes: self.disk,
            working_set_bytes: self.job.bytes,
            ..Cost::default()
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        vec![FIO]
    }

    fn needs(&self) -> Needs {
        Needs {
            tools: &["fio"],
            packages: PACKAGES,
            ..Needs::default()
        }
    }

    fn commands(&self) -> Vec<String> {
        self.job.commands.clone()
    }

    fn refused_on(&self, host: &dyn Host) -> Option<String> {
        let words = ["sh", "-c", CHECK, "sh", &self.content, JOB_FILE];
        match host.exec(&argv(words)) {
            Ok(said) if said.status == Some(0) => None,
            Ok(said) => Some(format!("fio refuses the job: {}", said.stdout.trim())),
            Err(error) => Some(error.to_string()),
        }
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let words = ["sh", "-c", WRITE, "sh", &self.content, JOB_FILE];
        ran::run(place, &argv(words), self.time_max_ns, false).map(drop)
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let words = Self::argv();
        let stopped = || ran::outcome(&words, None, 0, Vec::new());
        let Some(ran) = ran::run(place, &words, self.time_max_ns, false)? else {
            return Ok(stopped());
        };
        let Some(report) = self.report(place)? else {
            return Ok(stopped());
        };
        let figures = fio::figures(&self.job, &report).map_err(trouble)?;
        let dirs = trial_names(place);
        let work = self.work.check(&figures.done, &dirs);
        let work = work.map_err(trouble)?;
        let values = figures
            .values
            .iter()
            .map(|figure| figure.map(|figure| figure.value));
        let outcome = ran::outcome(&words, Some(&ran), ran.elapsed_ns, values.collect());
        Ok(PhaseOutcome {
            reported_steps: figures
                .values
                .iter()
                .map(|figure| figure.map(|figure| figure.step))
                .collect(),
            told: figures.told,
            work,
            // Which fio it was is part of what was measured.
            engine_why: format!("{}: {}", figures.version, outcome.engine_why),
            ..outcome
        })
    }
}
