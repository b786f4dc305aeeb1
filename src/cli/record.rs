//! `stackrace record`: an application's calls to its storage, kept as a trace.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;

use super::args::RecordArgs;
use super::failure::Failure;
use super::interrupt::catch_interrupt;
use super::setting::Setting;
use super::terminal::{error, say};
use super::trace;
use stackrace_base::event::{LeftBehind, shell};
use stackrace_base::interrupt::Interrupt;
use stackrace_base::unit::{self, ShownPath};
use stackrace_capture::capture::{Recording, RecordingLimits, Request, Target, record};
use stackrace_layers::stack;
use stackrace_machine::host::local::LocalHost;
use stackrace_trace::trace::{REPLAYED_MAX, StopReason, THREADS_MAX};

/// A second Ctrl-C leaves a file without an end.
const LEFT: LeftBehind = LeftBehind {
    clean: &[],
    told: "the trace has no end then, and is refused; nothing stays in the kernel",
    resumes: false,
};

pub(super) fn exec(setting: &Setting, verb: RecordArgs) -> Result<u8, Failure> {
    let option = |name: &'static str| move |why| Failure::usage(format!("--{name}: {why}"));
    let limits = RecordingLimits {
        time_ns: unit::parse_lasting_ns(&verb.time).map_err(option("time"))?,
        bytes: unit::parse_bytes(&verb.size).map_err(option("size"))?,
        cost: unit::parse_share(&verb.cost).map_err(option("cost"))?,
    };
    let target = match (verb.pid, verb.unit) {
        (Some(process), _) => Target::Process(process),
        (_, Some(unit)) => Target::Unit(unit),
        _ => Target::Command(verb.command),
    };
    let host = LocalHost::new(Arc::new(|_| ()));
    let request = Request {
        devices: stack::devices_under(&host, &verb.below),
        below: verb.below,
        target,
        output: verb.output,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        limits,
    };
    let interrupt = Arc::new(Interrupt::default());
    catch_interrupt(&interrupt, "what was recorded is kept", LEFT)?;
    let begun = || {
        if !setting.quiet {
            let below = request.below.shown();
            error(&format!(
                "recording calls to {below} (Ctrl-C ends it, and keeps them)\n"
            ));
        }
    };
    let recording = record(&request, &interrupt, &begun)?;
    say(&told(&request, &recording));
    Ok(0)
}

/// What was recorded, and what to do with it.
fn told(request: &Request, recording: &Recording) -> String {
    let ending = &recording.ending;
    let output = request.output.shown();
    let mut text = format!(
        "{output}: {}, {} of {}; {} of {} events lost; {}\n",
        unit::time_ns(ending.elapsed_ns as f64),
        unit::counted(ending.operations as usize, "operation"),
        unit::counted(ending.threads as usize, "thread"),
        ending.lost,
        ending.events,
        unit::bytes(recording.bytes),
    );
    if let Some(why) = ending
        .stopped
        .and_then(|stopped| stopped_early(request, stopped))
    {
        text.push_str(&format!("It stopped early: {why}.\n"));
    }
    text.push_str(&format!("{}\n", trace::cost(ending)));
    if let Some(process) = recording.goes_on {
        text.push_str(&format!(
            "The command goes on without being recorded: process {process}.\n"
        ));
    }
    if let Some(status) = recording.ended.filter(|status| !status.success()) {
        text.push_str(&match (status.code(), status.signal()) {
            (Some(code), _) => format!("The command ended with exit code {code}.\n"),
            (None, signal) => format!("The command was ended by signal {}.\n", signal.unwrap_or(0)),
        });
    }
    text.push_str(
        "Names are hashed with a key that was thrown away, and data were never read. Sizes, times, and the lengths of \
         names stay.\n",
    );
    if ending.operations > REPLAYED_MAX {
        text.push_str(&format!(
            "It is too long for a replay, which makes at most {} operations: record a shorter time for one (--time).\n",
            unit::count(REPLAYED_MAX)
        ));
    }
    let show = ["stackrace", "show", "trace"].map(Path::new);
    let show = [&show[..], &[request.output.as_path()]].concat();
    text.push_str(&format!("  next: {}\n", shell(&show)));
    text
}

/// Why a recording stopped before the application did, though it was not asked to.
fn stopped_early(request: &Request, stopped: StopReason) -> Option<String> {
    let limits = &request.limits;
    match stopped {
        StopReason::Ended | StopReason::Interrupted | StopReason::Time | StopReason::Cut => None,
        StopReason::FileLimit => Some(format!(
            "the file reached {} (--size)",
            unit::bytes(limits.bytes)
        )),
        StopReason::Threads => Some(format!(
            "the application started nearly as many threads as a trace takes ({})",
            unit::count(THREADS_MAX.into())
        )),
        StopReason::NoSpace => {
            Some("hardly any space is left where the trace is written (-o)".to_owned())
        }
        StopReason::Cost => Some(format!(
            "recording cost more than {} of the application's processor time (--cost)",
            unit::percent(limits.cost)
        )),
    }
}
