//! `stackrace fio`: in place of fio, for the common part of its job files and command line.
//!
//! Files lie where fio would put them and stay, as fio's do, so that there is no journal. A block
//! device is only ever read.

use std::path::Path;
use std::sync::Arc;

use stackrace_engine::PhaseOutcome;

use super::super::tool::{Console, ToolCommand, raw_command, raw_words};
use super::job::{self, FioJob};
use super::language::Sections;
use super::options::FioOptions;
use super::place::{JobError, OptionPlace};
use super::print_json::json;
use super::print_normal::{announced, normal};
use super::report::{FioReport, VERSION};
use super::run::{self, JobStage, Ran};
use super::{logs, measured, plan};
use stackrace_base::bounded::ByteLimit;
use stackrace_base::failure::{self, Failure};
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::SystemClock;

/// Bytes of a job file, at most.
const JOB_FILE: ByteLimit = ByteLimit::new(1 << 20);
/// All options, in our words.
const HELP: &str = include_str!("help.txt");

impl From<JobError> for Failure {
    fn from(refusal: JobError) -> Self {
        // Exit code 1, as fio has for whatever it refuses.
        Failure::internal(refusal.to_string()).next(refusal.next)
    }
}

/// Reports all refusals at once: a file with ten old options is mended in one go.
fn refused(refusals: Vec<JobError>) -> Failure {
    let lines = refusals
        .iter()
        .map(|refusal| format!("error: {refusal}\n  next: {}", refusal.next));
    Failure::internal(lines.collect::<Vec<_>>().join("\n"))
}

/// `stackrace fio`, for [`super::TOOL`].
pub(super) const COMMAND: ToolCommand = ToolCommand {
    arguments: |command| {
        let about =
            "Drop-in for fio: runs its job files and options, with its files and its output";
        raw_command(
            command,
            about,
            "As fio takes them: job files, and options; --help lists them",
        )
    },
    run: |matches, console| exec(console, &raw_words(matches)),
};

fn exec(console: &Console<'_>, words: &[String]) -> Result<u8, Failure> {
    let options = FioOptions::read(words)?;
    if options.help || options.version {
        let version = format!("{}\n", VERSION);
        console.print(if options.help { HELP } else { &version });
        return Ok(0);
    }
    let jobs = read(console, &options)?;
    let entropy = match jobs.iter().any(|job| job.seed.is_none()) {
        true => (console.entropy)(),
        false => 0,
    };
    let planned = plan::plan(&jobs, entropy)?;
    if options.read_only {
        // A job that reads writes, too, where its files have to be laid out first.
        let changes = |it: &&plan::Planned| {
            let job = &jobs[it.job];
            job.read_share < 1.0
                || (it.reads_first(job) && !it.wanting().is_empty())
                || job.care.unlink
        };
        if let Some(it) = planned.iter().find(changes) {
            let job = &jobs[it.job];
            let what = format!("{} would write, and --readonly forbids it", job.name);
            return Err(JobError::at(
                &job.place,
                what,
                "leave out --readonly, or name a file that exists",
            )
            .into());
        }
    }
    for job in &jobs {
        // Also with --parse-only: what is done in another way belongs to the check.
        for note in &job.notes {
            console.error(&format!("{}: {note}\n", job.name));
        }
    }
    if options.parse_only {
        return Ok(0);
    }
    let interrupt = Arc::new(Interrupt::default());
    (console.catch_interrupt)(&interrupt, "what was measured follows", "files stay")?;
    // Opened before the run: a report that cannot be written must not cost a measurement.
    let mut output = Output::new(*console, &options)?;
    if options.normal {
        output.say(&announced(&jobs));
    }
    let ran = run_stages(&jobs, &planned, &interrupt, &options, &mut output)?;
    let mut failed = failed(&jobs, &ran);
    failed.extend(logs::write(&jobs, &ran).err().map(|line| line + "\n"));
    for line in &failed {
        console.error(line);
    }
    conclude(&options, &jobs, &ran, output)?;
    Ok(match (interrupt.raised(), failed.is_empty()) {
        (true, _) => failure::INTERRUPTED,
        (_, false) => 1,
        _ => 0,
    })
}

/// The jobs of the command line and of all files.
fn read(console: &Console<'_>, options: &FioOptions) -> Result<Vec<FioJob>, Failure> {
    let variable = |name: &str| {
        let value = (console.variable)(name)?;
        Some(value.to_string_lossy().into_owned())
    };
    let mut sections = Sections::default();
    sections.arguments(&options.switches);
    for file in &options.files {
        let text = text_of(file)?;
        sections.file(file, &text, &variable);
    }
    sections.only(&options.sections)?;
    let jobs = job::jobs(&sections).map_err(refused)?;
    if jobs.is_empty() {
        let what = "there is no job";
        let next = "name a job file, or write --name=NAME --rw=read --size=64m";
        return Err(JobError::at(&OptionPlace::Argument, what, next).into());
    }
    Ok(jobs)
}

/// A job file, or standard input.
fn text_of(file: &str) -> Result<String, Failure> {
    let refuse = |what: String| Failure::internal(what).next("name a job file");
    let read = match file {
        "-" => JOB_FILE.read_from(std::io::stdin()),
        _ => JOB_FILE.read(Path::new(file)),
    };
    let bytes = read.map_err(|error| refuse(format!("cannot read {file}: {error}")))?;
    String::from_utf8(bytes).map_err(|error| refuse(format!("{file} is no text: {error}")))
}

/// Places the report goes to.
struct Output<'a> {
    console: Console<'a>,
    file: Option<std::fs::File>,
}

impl<'a> Output<'a> {
    fn new(console: Console<'a>, options: &FioOptions) -> Result<Self, Failure> {
        let create = |path: &std::path::PathBuf| {
            std::fs::File::create(path).map_err(|error| {
                Failure::internal(format!("cannot write {}: {error}", path.display()))
                    .next("name another file with --output")
            })
        };
        Ok(Self {
            console,
            file: options.output.as_ref().map(create).transpose()?,
        })
    }

    fn say(&mut self, text: &str) {
        use std::io::Write;
        match &mut self.file {
            None => self.console.print(text),
            Some(file) => {
                if let Err(error) = file.write_all(text.as_bytes()) {
                    self.console
                        .error(&format!("cannot write the report: {error}\n"));
                }
            }
        }
    }
}

/// Runs one stage after the other, until one is interrupted or ends all.
fn run_stages(
    jobs: &[FioJob],
    planned: &[plan::Planned],
    interrupt: &Interrupt,
    options: &FioOptions,
    output: &mut Output<'_>,
) -> Result<Vec<Ran>, Failure> {
    let mut ran = Vec::new();
    let output = std::cell::RefCell::new(output);
    let say = |text: &str| {
        if options.normal {
            output.borrow_mut().say(text);
        }
    };
    let last = jobs.last().map_or(0, |job| job.stage);
    for number in 0..=last {
        let members: Vec<&plan::Planned> = planned
            .iter()
            .filter(|it| jobs[it.job].stage == number)
            .collect();
        if members.is_empty() {
            continue;
        }
        let controls = interrupt.controls(members.iter().map(|_| None));
        run::join_flows(jobs, &members, &controls);
        let stage = JobStage::new(members.len());
        let done = run::stage(jobs, &members, &controls, &stage, &say);
        ran.extend(done.map_err(Failure::internal)?);
        if interrupt.raised() || stage.is_last() {
            break;
        }
    }
    Ok(ran)
}

/// Lists what failed, a line for each.
pub(super) fn failed(jobs: &[FioJob], ran: &[Ran]) -> Vec<String> {
    let mut failed = Vec::new();
    for one in ran {
        if let Some(slow) = &one.slow {
            failed.push(format!("{}: {slow}\n", jobs[one.job].name));
        }
        for result in std::iter::once(&one.measured).chain(&one.back) {
            let said = match result {
                Ok(PhaseOutcome {
                    error: Some(error), ..
                }) => error.to_string(),
                Ok(_) => continue,
                Err(error) => format!("{error}\n  next: {}", error.next()),
            };
            failed.push(format!("{}: {said}\n", jobs[one.job].name));
        }
    }
    failed
}

/// Prints the report in each layout that was asked for.
fn conclude(
    options: &FioOptions,
    jobs: &[FioJob],
    ran: &[Ran],
    mut output: Output<'_>,
) -> Result<(), Failure> {
    let unix_ns = SystemClock.unix_ns();
    let now = jiff::Timestamp::from_nanosecond(i128::from(unix_ns))
        .map_err(|error| Failure::internal(format!("the wall clock is wrong: {error}")))?;
    let local = now.to_zoned(jiff::tz::TimeZone::system());
    let report = FioReport {
        unix_ms: unix_ns / 1_000_000,
        // As ctime(3) prints it, in local time: fio does, and importers look for it.
        date: local.strftime("%a %b %e %H:%M:%S %Y").to_string(),
        pid: std::process::id(),
        jobs: measured::reports(jobs, ran),
    };
    if options.normal {
        output.say(&normal(&report));
    }
    if options.json {
        output.say(&json(&report, options.bins));
    }
    Ok(())
}
