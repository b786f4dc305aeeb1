//! A program run for a trial, and what its end means.

use std::ffi::OsString;

use stackrace_engine::{PhaseEnd, PhaseOutcome};

use crate::workload::metric;
use crate::workload::program_end::{explained, judged};
use crate::workload::{Place, SLICE_NS, WorkloadError, trouble};
use stackrace_base::event::{Better, MetricHead, shell};
use stackrace_base::unit;
use stackrace_machine::host::program::{self, ProgramCall, ProgramRun};

/// A time of fewer steps of its clock is no figure: rounding alone would change it by more than 1 %.
const STEPS_MIN: u64 = 100;

/// Refuses a time that the clock which measured it is too coarse for.
///
/// # Errors
/// What to do instead.
pub(super) fn fine_enough(ran: &ProgramRun, elapsed_ns: u64) -> Result<(), WorkloadError> {
    let least = ran.step_ns.saturating_mul(STEPS_MIN);
    if elapsed_ns >= least {
        return Ok(());
    }
    let time = |ns: u64| unit::time_ns(ns as f64);
    // A clock that shows 0 does not say that no time went by.
    let took = match elapsed_ns < ran.step_ns {
        true => format!("less than {}", time(ran.step_ns)),
        false => time(elapsed_ns),
    };
    Err(trouble(format!(
        "it took {took}, and the clock there counts in steps of {}: let the command do more, so that it takes {} at least",
        time(ran.step_ns),
        time(least)
    )))
}

/// Returns true if every command has a metric of this name, whatever it prints.
pub(super) fn is_of_every_command(name: &str) -> bool {
    heads().iter().any(|head| head.name == name)
}

/// Metrics of every program.
pub(super) fn heads() -> Vec<MetricHead> {
    let bytes =
        ["bytes read", "bytes written"].map(|name| MetricHead::new(name, "B", Better::Lower));
    let mut heads = vec![metric::elapsed_head()];
    heads.extend(metric::cpu_heads());
    heads.extend(bytes);
    heads
}

/// The figures of [`heads`]; `elapsed_ns` where more than the program itself is timed.
pub(super) fn values(ran: &ProgramRun, elapsed_ns: u64) -> Vec<Option<f64>> {
    let coarse = |ns: u64| ns < ran.step_ns.saturating_mul(STEPS_MIN);
    // At least 1 µs: a ratio needs a figure above 0, and the kernel counts no finer.
    let seconds = |ns: u64| Some(ns.max(1000) as f64 / 1e9);
    // Nothing moved has no logarithm, and no place in a ratio.
    let bytes = |bytes: Option<u64>| bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64);
    vec![
        seconds(elapsed_ns),
        // A clock of coarse steps knows nothing of a short time.
        seconds(ran.cpu_user_ns).filter(|_| !coarse(ran.cpu_user_ns)),
        seconds(ran.cpu_system_ns).filter(|_| !coarse(ran.cpu_system_ns)),
        bytes(ran.read_bytes),
        bytes(ran.written_bytes),
    ]
}

/// Returns how finely the figures of [`values`] are known: times by the steps of the clock, bytes
/// each.
pub(super) fn steps(ran: &ProgramRun) -> Vec<Option<f64>> {
    let tick = Some(ran.step_ns.max(1) as f64 / 1e9);
    // The kernel counts processor time in microseconds.
    let cpu = Some(ran.step_ns.max(1000) as f64 / 1e9);
    vec![tick, cpu, cpu, None, None]
}

/// Runs a program in the trial's directory; `None` if the trial was stopped. `durable`: its time ends
/// when what it wrote is on the storage.
///
/// # Errors
/// It cannot be started, takes too long, or says by its exit status that it failed.
pub(super) fn run(
    place: &Place<'_>,
    argv: &[OsString],
    time_max_ns: u64,
    durable: bool,
) -> Result<Option<ProgramRun>, WorkloadError> {
    let stopped = || place.control.stopped();
    let call = ProgramCall {
        argv,
        directory: place.directory,
        environment: &[],
        time_max_ns,
        durable,
        leaves_server: false,
        stopped: &stopped,
        lines: None,
    };
    let ran = match place.elsewhere {
        Some(host) => host.run_program(&call),
        None => program::run(&call),
    };
    judged(argv, time_max_ns, ran.map_err(explained)?)
}

/// The same on this machine, with further variables in its environment.
pub(super) fn run_in(
    place: &Place<'_>,
    argv: &[OsString],
    environment: &[(&str, OsString)],
    time_max_ns: u64,
) -> Result<Option<ProgramRun>, WorkloadError> {
    let ran = program::run(&ProgramCall {
        argv,
        directory: place.directory,
        environment,
        time_max_ns,
        durable: false,
        leaves_server: false,
        stopped: &|| place.control.stopped(),
        lines: None,
    });
    judged(argv, time_max_ns, ran.map_err(explained)?)
}

/// The outcome of a trial that a program carried out; none of it: the trial was stopped.
pub(super) fn outcome(
    argv: &[OsString],
    ran: Option<&ProgramRun>,
    elapsed_ns: u64,
    reported: Vec<Option<f64>>,
) -> PhaseOutcome {
    // A trial that was stopped has no time of its own.
    let ran_for = ran.map_or(0, |_| elapsed_ns);
    let mut why = shell(argv);
    if let Some(ran) = ran.filter(|ran| !ran.left.is_empty()) {
        why.push_str(&format!(
            "; it left running, and what it left was ended: {}",
            ran.left.join(", ")
        ));
    }
    let outcome = PhaseOutcome::of_program("program", why, ran_for, SLICE_NS);
    let Some(ran) = ran else {
        let ended = PhaseEnd::Stopped;
        return PhaseOutcome { ended, ..outcome };
    };
    PhaseOutcome {
        cpu_user_ns: ran.cpu_user_ns,
        cpu_system_ns: ran.cpu_system_ns,
        reported,
        printed: [ran.stdout.clone(), ran.stderr.clone()],
        stopped: ran.stopped.clone(),
        ..outcome
    }
}
