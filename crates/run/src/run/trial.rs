//! What a trial on a stack is: which workload, where, with which seed; and how its data get cold.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use stackrace_engine::{ContentLedger, Control, residency};

use super::executor::TrialStart;
use super::local_executor::LocalExecutor;
use super::phases::PeerPhases;
use super::runner::failed;
use stackrace_base::event::{Ended, Observation, Settled, StoredBytes, WorkloadHead};
use stackrace_layers::stack::{Site, StandingStack};
use stackrace_load::workload::{BareDevices, KeptData, Place, Workload};
use stackrace_machine::host::Host;
use stackrace_remote::agent::message::{ClientSeat, PhaseOrder};
use stackrace_study::study::Configuration;

/// Number of files of a trial's data that are looked at to tell whether it starts cold.
const RESIDENCY_FILES_MAX: usize = 512;

/// Data are warm if more than one byte of so many is in memory.
const WARM_ONE_OF: u64 = 100;

/// One workload on one standing stack.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub executor: &'a LocalExecutor<'a>,
    pub site: &'a Site<'a>,
    pub standing: &'a StandingStack,
    /// Data that lie on the stack from earlier trials, by workload.
    pub data: &'a RefCell<BTreeMap<usize, KeptData>>,
    /// True if the stack stays up, so that data left there can serve another trial.
    pub keeps: bool,
    pub round: u32,
    pub position: usize,
    pub configuration: usize,
    pub workload: usize,
    /// Work that is to be done before.
    pub before: Before,
}

/// Place of a trial, and what it works with.
pub(super) struct TrialSite<'a> {
    pub directory: PathBuf,
    bare: Option<BareDevices<'a>>,
    cold: bool,
    ledger: OnceLock<ContentLedger>,
    pub elsewhere: Option<&'a dyn Host>,
    seed: u64,
}

impl TrialSite<'_> {
    pub(super) fn place<'b>(&'b self, control: &'b Control) -> Place<'b> {
        Place {
            directory: &self.directory,
            bare: self.bare,
            existing: None,
            cold: self.cold,
            ledger: &self.ledger,
            elsewhere: self.elsewhere,
            seat: None,
            seed: self.seed,
            control,
        }
    }
}

/// Work that is done to a stack before a trial.
#[derive(Clone, Copy)]
pub(super) enum Before {
    /// The trial begins as the one before has left the stack.
    Nothing,
    /// The stack is written over from beginning to end if no earlier trial had that done, then used
    /// until it is steady.
    Preconditioning {
        /// Bytes to write over; 0: it was done.
        capacity: u64,
    },
    /// The stack is being used until it is steady, and this is the pass of that number, from 1:
    /// nothing of it is kept but its figure.
    Pass(u32),
}

impl<'a> Trial<'a> {
    /// A trial of which nothing is known but how it ended.
    pub(super) fn ended_as(&self, ended: Ended) -> Observation {
        Observation {
            round: self.round,
            position: self.position,
            configuration: self.configuration,
            workload: self.workload,
            started_at: self.executor.clock.today(),
            ..Observation::unmeasured(ended)
        }
    }

    pub(super) fn configured(&self) -> &'a Configuration {
        &self.executor.study.configurations[self.configuration]
    }

    pub(super) fn workload(&self) -> &'a dyn Workload {
        self.configured().workloads[self.workload].as_ref()
    }

    /// Returns what its workload is measured on.
    pub(super) fn head(&self) -> &'a WorkloadHead {
        &self.executor.study.workload_heads[self.workload]
    }

    pub(super) fn trial_site(&self) -> TrialSite<'a> {
        TrialSite {
            directory: self.directory(),
            bare: self.standing.bare().map(|bare| BareDevices {
                host: self.executor.host,
                devices: &bare.devices,
                pools: &bare.pools,
            }),
            cold: self.executor.study.policy.drop_caches,
            ledger: OnceLock::new(),
            elsewhere: Some(self.executor.host).filter(|host| !host.is_here()),
            seed: self.seed(),
        }
    }

    /// Returns the order for another machine to prepare the same workload in a directory.
    pub(super) fn order(
        &self,
        directory: PathBuf,
        seed: u64,
        seat: Option<ClientSeat>,
    ) -> PhaseOrder {
        PhaseOrder {
            name: self.executor.study.name.clone(),
            text: self.executor.study.text.clone(),
            configuration: self.configuration,
            workload: self.workload,
            directory,
            seed,
            seat,
        }
    }

    /// Has every other machine that loads the stack prepare the same workload.
    pub(super) fn prepare_peers(&self, peers: &mut Vec<PeerPhases<'a>>) -> Result<(), String> {
        let executor = self.executor;
        for (node, root) in self.standing.others() {
            let host = executor
                .host
                .peer(*node)
                .map_err(|error| error.to_string())?;
            let mut known = executor.peers.iter();
            let peer = known.find(|peer| peer.machine as usize == *node);
            let peer = peer.ok_or_else(|| format!("there is no machine of number {node}"))?;
            // Data of their own: the same blocks on two machines could be cached as one.
            let mut hasher = blake3::Hasher::new();
            hasher.update(&self.seed().to_le_bytes());
            hasher.update(&(*node as u64).to_le_bytes());
            let directory = root.join(format!(".stackrace-{}", self.workload));
            let order = self.order(directory, first_bytes(&hasher), None);
            peers.push(PeerPhases::prepare(host, peer, order, self.workload())?);
        }
        Ok(())
    }

    /// Empties caches as the study's policy says and finds out whether it worked.
    pub(super) fn settle(
        &self,
        directory: &Path,
        observation: &mut Observation,
    ) -> Result<(), Ended> {
        let policy = &self.executor.study.policy;
        self.begins("settle");
        let began = self.executor.clock.now_ns();
        let everything = policy.drop_caches && !self.own_files_suffice();
        let (mut settled, mut resident) = self.make_cold(directory, everything, policy.remount)?;
        let warm = |(resident, total): (u64, u64)| resident.saturating_mul(WARM_ONE_OF) > total;
        // Dropping the files' own pages did not do: everything is dropped after all.
        if policy.drop_caches && !everything && resident.is_none_or(warm) {
            let remounted = settled.remounted;
            (settled, resident) = self.make_cold(directory, true, false)?;
            settled.remounted = remounted;
        }
        let first = observation.phases.is_empty();
        // What any phase found in memory adds up; once unknown, the sum is.
        let plus = |sum: Option<u64>, more: Option<u64>| {
            if first {
                more
            } else {
                sum.zip(more).map(|(a, b)| a + b)
            }
        };
        settled.resident_bytes = plus(
            observation.settled.resident_bytes,
            resident.map(|(resident, _)| resident),
        );
        settled.prepared_bytes = plus(
            observation.settled.prepared_bytes,
            resident.map(|(_, total)| total),
        );
        if self.executor.host.is_here() {
            let stored = residency::stored_below(directory, RESIDENCY_FILES_MAX);
            settled.stored = stored.ok().map(StoredBytes::from);
            settled.served_by_program = residency::is_served_by_program(directory);
        }
        observation.settled = settled;
        observation.settle_ns += self.executor.clock.now_ns().saturating_sub(began);
        Ok(())
    }

    /// Empties the system's caches, or else those of the trial's own files. Returns what was done, and
    /// how many bytes of them all are in memory still.
    fn make_cold(
        &self,
        directory: &Path,
        everything: bool,
        remount: bool,
    ) -> Result<(Settled, Option<(u64, u64)>), Ended> {
        let settled = self.standing.settle(self.site, everything, remount);
        let mut settled = settled.map_err(|error| failed(format!("cannot settle: {error}")))?;
        // The files of another machine cannot be looked at from here.
        if !self.executor.host.is_here() {
            return Ok((settled, None));
        }
        // Without the rights to drop all caches, the kernel takes advice about single files.
        if self.executor.study.policy.drop_caches
            && settled.caches == "none"
            && residency::evict_tree(directory, &|| !self.executor.interrupt.raised()).is_ok()
        {
            settled.caches = "advice".to_owned();
        }
        let resident = residency::resident_bytes_below(directory, RESIDENCY_FILES_MAX).ok();
        Ok((settled, resident))
    }

    /// Returns the seed: the same for every configuration of a round, different for each round, workload and pass.
    pub(super) fn seed(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.executor.study.seed.to_le_bytes());
        hasher.update(&self.round.to_le_bytes());
        hasher.update(&(self.workload as u64).to_le_bytes());
        // Each pass has data of its own: storage that keeps equal blocks once must not know them.
        if let Before::Pass(number) = self.before {
            hasher.update(&number.to_le_bytes());
        }
        first_bytes(&hasher)
    }

    pub(super) fn begins(&self, part: &str) -> Arc<Control> {
        let control = Arc::new(Control::ended_by(self.executor.interrupt.stop_flag()));
        self.begins_with(part, &control);
        control
    }

    /// Says that a part begins that this control watches.
    pub(super) fn begins_with(&self, part: &str, control: &Arc<Control>) {
        let part = &match self.before {
            Before::Pass(number) => format!("pass {number}: {part}"),
            _ => part.to_owned(),
        };
        self.executor.watcher.begins(&TrialStart {
            round: self.round,
            configuration: self.configuration,
            workload: Some(self.workload),
            part,
            control: Some(Arc::clone(control)),
        });
    }
}

fn first_bytes(hasher: &blake3::Hasher) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}
