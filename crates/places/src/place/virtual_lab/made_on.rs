//! What depends on the machine that a run in virtual time was made on: it stands beside the log.

use std::path::Path;

use serde::Serialize;

use stackrace_base::event::Event;
use stackrace_machine::host::Host;
use stackrace_run::run::SharedLedger;

/// Figures that depend on the machine a run was made on. They are not in the log.
#[derive(Debug, Serialize)]
pub struct MadeOn {
    /// Version of this program.
    pub stackrace: &'static str,
    /// BLAKE3 of this program's file: another build takes other instructions.
    pub program: String,
    /// Version of QEMU, in its own words.
    pub qemu: String,
    /// Version of this machine's kernel.
    pub kernel: String,
    // It changes how long the run took, and nothing that it measured.
    /// Guests that ran side by side.
    pub jobs: usize,
    /// The day on which it began.
    pub began: String,
    /// Time until the environment of a guest was known, s.
    pub first_guest_s: f64,
    /// Time of the whole run, s.
    pub wall_s: f64,
    /// Sum of what the guests' clocks showed, s.
    pub virtual_s: f64,
    #[serde(flatten)]
    /// Cost of serving the drives.
    pub cost: ServingCost,
    /// BLAKE3 of the log.
    pub log: String,
}

/// Cost of serving the drives of all guests.
#[derive(Debug, Serialize)]
pub struct ServingCost {
    /// Requests that were answered.
    pub requests: u64,
    /// Time of a guest's processor that one of them took, ns.
    pub request_cost_ns: f64,
}

/// Requests that the drives of all guests answered, and the processor time that took, ns.
pub fn served(ledger: &SharedLedger) -> (u64, u64) {
    let ledger = ledger.lock();
    let mut sum = (0, 0);
    for line in &ledger.record().lines {
        if let Event::StackTornDown { served, .. } = &line.event {
            for drive in served {
                sum = (sum.0 + drive.requests, sum.1 + drive.busy_ns);
            }
        }
    }
    sum
}

/// BLAKE3 of a file; of nothing where it cannot be read.
pub fn hash_of(path: &Path) -> String {
    // It only tells two runs apart later: one that cannot be told apart is no reason to stop it.
    let bytes = std::fs::read(path).unwrap_or_default();
    blake3::hash(&bytes).to_hex().to_string()
}

/// A time in ns as seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Version of QEMU, in its own words.
pub fn qemu(host: &dyn Host) -> String {
    let words = stackrace_machine::host::argv([stackrace_remote::lab::QEMU, "--version"]);
    let said = host
        .must(&words)
        .map(|output| output.stdout)
        .unwrap_or_default();
    said.lines().next().unwrap_or_default().to_owned()
}
