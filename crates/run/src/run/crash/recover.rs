//! A stack after a power cut: brought back, timed, checked, taken down again.

use std::path::Path;

use super::capture::CrashPackage;
use super::medium::{DriveCut, drive_cuts, medium};
use crate::crash::Remains;
use crate::run::executor::Broken;
use crate::run::local_executor::LocalExecutor;
use stackrace_base::event::{CheckedPromises, Cut, Event, Promised, Recovery};
use stackrace_layers::stack::{self as stacks, Site, StandingStack};
use stackrace_machine::host::drives;
use stackrace_remote::agent::message::{CutOrder, RecoverOrder};

/// Makes the cuts of an order, one after the other, and tells what was found after each.
///
/// # Errors
/// The coordinator is lost, or what it sent cannot be used.
pub fn recover(
    executor: &LocalExecutor<'_>,
    order: &RecoverOrder,
    package: &CrashPackage,
) -> Result<(), Broken> {
    let stack = &executor.study.configurations[order.configuration].stack;
    let disks = stack.lab_disks();
    let drive_cuts = drive_cuts(&package.capture, &disks, stack.cut_of());
    for cut in &order.cuts {
        let mut of_trial = package.promised.iter();
        let promised = of_trial.find(|promised| promised.workload == cut.workload);
        let promised = promised
            .ok_or_else(|| Broken(format!("there is no ledger of workload {}", cut.workload)))?;
        let round = Round {
            executor,
            order,
            package,
            drive_cuts: &drive_cuts,
        };
        let found = round.one(cut, promised)?;
        (executor.tell)(Event::Cut(Box::new(found)))?;
    }
    Ok(())
}

/// Data that all cuts of an order have in common.
struct Round<'a> {
    executor: &'a LocalExecutor<'a>,
    order: &'a RecoverOrder,
    package: &'a CrashPackage,
    drive_cuts: &'a [Option<DriveCut>],
}

impl Round<'_> {
    fn one(&self, cut: &CutOrder, promised: &Promised) -> Result<Cut, Broken> {
        self.put_media(cut);
        let executor = self.executor;
        let site = executor.site_of_cut(self.order.round, self.order.configuration, cut.number);
        let stack = &executor.study.configurations[self.order.configuration].stack;
        let began = executor.clock.now_ns();
        let mut repair = Vec::new();
        let back = stack.bring_back(&site, &self.package.capture.mark, &mut repair);
        let mount_ns = executor.clock.now_ns().saturating_sub(began);
        let (recovery, found) = match back {
            Ok(standing) => {
                let broken = |error: String| Broken(format!("after cut {}: {error}", cut.number));
                let checked = self.check(&standing, promised, cut);
                // Whatever was found: what stands must not outlive this.
                let down = standing.tear_down(&site);
                let (checked, opening) = checked.map_err(broken)?;
                down.map_err(|error| broken(error.to_string()))?;
                repair.extend(opening.repair);
                let recovery = Recovery {
                    mounted: true,
                    needed_operator: !repair.is_empty() || opening.refused.is_some(),
                    repair,
                    // What people wait for is the server, not the file system below it.
                    mount_ns: mount_ns + opening.server_ns,
                    refused: opening.refused,
                };
                (recovery, Some(checked))
            }
            Err(error) => {
                let recovery = Recovery {
                    mounted: false,
                    needed_operator: true,
                    repair,
                    mount_ns,
                    refused: Some(error.to_string()),
                };
                (recovery, None)
            }
        };
        // The next cut has drives of its own, and nothing may be left of these.
        drives::end_all().map_err(|error| Broken(error.to_string()))?;
        Ok(Cut {
            round: self.order.round,
            configuration: self.order.configuration,
            workload: cut.workload,
            number: cut.number,
            seed: cut.seed,
            at_ns: cut.at_ns,
            stratum: cut.stratum.clone(),
            of: stack.cut_of().word().to_owned(),
            recovery,
            found,
        })
    }

    /// Checks the promises in the directory that the trial had.
    fn check(
        &self,
        standing: &StandingStack,
        promised: &Promised,
        cut: &CutOrder,
    ) -> Result<(CheckedPromises, Opening), String> {
        // The stack stands elsewhere now: only the last part of the path is the trial's.
        let name = Path::new(&promised.directory).file_name();
        let directory = standing.directory().join(name.unwrap_or_default());
        let began = self.executor.clock.now_ns();
        let configuration = &self.executor.study.configurations[self.order.configuration];
        let found = configuration.workloads[cut.workload].found_after_cut(&directory);
        // Not looked at is not lost: the cut does not count, and is made again.
        let found = found.map_err(|error| error.to_string())?;
        let remains = Remains::open(&directory, promised, found);
        let refused = remains.refused().map(str::to_owned);
        let repair = remains.repair().to_vec();
        let server_ns = match (remains.has_server(), &refused) {
            (true, None) => self.executor.clock.now_ns().saturating_sub(began),
            _ => 0,
        };
        let checked = remains.check(cut.at_ns);
        remains.close()?;
        let opening = Opening {
            server_ns,
            refused,
            repair,
        };
        Ok((checked, opening))
    }

    /// Says what each drive holds when it is started next.
    fn put_media(&self, cut: &CutOrder) {
        let drives = self.package.capture.drives.iter();
        for (drive, what) in drives.zip(self.drive_cuts) {
            if let Some(what) = what {
                let medium = medium(&drive.log, what, cut.at_ns, cut.seed);
                drives::put(&drive.serial, medium);
            }
        }
    }
}

/// Way in which the server of a database came back.
struct Opening {
    /// Time from the mounted file system until it answered, ns; 0 if it did not, or there is none.
    server_ns: u64,
    /// Message of the server that did not start.
    refused: Option<String>,
    /// Commands that an operator had to run first, as typed.
    repair: Vec<String>,
}

impl LocalExecutor<'_> {
    /// Returns the place where a stack is brought back after a cut.
    fn site_of_cut(&self, round: u32, configuration: usize, cut: u32) -> Site<'_> {
        Site {
            host: self.host,
            journal: self.journal,
            scratch: self.scratch.clone(),
            tag: format!("{}-r{round}-t{configuration}-c{cut}", self.execution),
            seed: self.study.seed ^ u64::from(round),
            wipe: &self.wipe,
            undo: stacks::undo_kinds(),
            interrupt: Some(&*self.interrupt),
        }
    }
}
