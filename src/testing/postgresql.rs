//! A PostgreSQL server that is killed in the middle of its work, as a power cut would end it.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use stackrace_engine::{Control, PhaseOutcome};

use stackrace_base::event::Promised;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_load::workload::postgres_server::PostgresServer;
use stackrace_load::workload::{Place, Workload};
use stackrace_run::crash::Remains;
use stackrace_study::study::{Kinds, parse};

/// What was found after the server of a workload was killed.
#[derive(Debug, Clone, Default)]
pub struct KilledDatabase {
    /// Transactions that were acknowledged before.
    pub acknowledged: u64,
    /// Of these, how many are gone, whole.
    pub stale: u64,
    /// Promises broken in any other way: nothing, a part, or something else is there.
    pub damaged: u64,
    /// Why the server did not start again.
    pub refused: Option<String>,
    /// What an operator had to do before it started, as typed.
    pub repair: Vec<String>,
    /// What the first broken promise was found to be.
    pub found: Option<String>,
}

/// Runs transactions with such settings in a directory until the server is killed with all its
/// processes; `harm` may then do something to the directory. Starts the server again, and looks for
/// what was promised.
///
/// # Errors
/// The workload cannot begin, or the server does not end.
pub fn killed_database(
    directory: &Path,
    settings: &str,
    harm: impl FnOnce(&Path),
) -> Result<KilledDatabase, String> {
    let text = format!(
        "[[stack]]\ndir = {{ path = \"/var/tmp\" }}\n[[workload]]\npromises = {{ idiom = \"postgresql\", operations = 1000000, objects = 8, {settings} }}\n"
    );
    let study = parse("killed.toml", text.as_bytes(), &Kinds::real());
    let study =
        study.map_err(|errors| errors.iter().map(ToString::to_string).collect::<String>())?;
    let workload = study.configurations[0].workloads[0].as_ref();
    let (control, ledger) = (Control::default(), OnceLock::new());
    let place = Place::alone(directory, 7, &ledger, &control);
    workload
        .prepare(&place)
        .map_err(|error| error.to_string())?;
    let outcome = until_killed(workload, &place)?;
    let promised = Promised {
        round: 1,
        configuration: 0,
        workload: 0,
        seed: place.seed,
        directory: directory.display().to_string(),
        lines: workload.promised(&place, &outcome),
    };
    harm(directory);
    let remains = Remains::open(directory, &promised, None);
    let checked = remains.check(u64::MAX);
    let refused = remains.refused().map(str::to_owned);
    let repair = remains.repair().to_vec();
    remains.close()?;
    workload.finish(&place).map_err(|error| error.to_string())?;
    Ok(KilledDatabase {
        acknowledged: checked.promised,
        stale: checked.counts.stale,
        damaged: checked.counts.all() - checked.counts.stale,
        refused,
        repair,
        found: checked.losses.first().map(|loss| loss.found.clone()),
    })
}

/// Runs the transactions; kills the server once it has acknowledged some.
fn until_killed(workload: &dyn Workload, place: &Place<'_>) -> Result<PhaseOutcome, String> {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| workload.measure(0, place));
        let server = PostgresServer {
            directory: place.directory,
            told: &[],
            stopped: &|| false,
        };
        // A moment after it answers: what it then does is transactions alone.
        while server.process().is_none() && !running.is_finished() {
            SystemClock.sleep(Duration::from_millis(5));
        }
        SystemClock.sleep(Duration::from_secs(2));
        if let Some(number) = server.process() {
            kill_all(number);
        }
        let ended = running.join();
        let ended = ended.map_err(|_| "the workload panicked".to_owned())?;
        ended.map_err(|error| error.to_string())
    })
}

/// Kills a process with its children, first itself: it must not see that they die.
fn kill_all(number: u32) {
    let children = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|word| word.parse().ok());
    for each in std::iter::once(number.cast_signed()).chain(children) {
        if let Some(pid) = Pid::from_raw(each) {
            // One that ended meanwhile is what was wanted.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
