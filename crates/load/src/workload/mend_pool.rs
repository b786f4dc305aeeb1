//! A pool of ZFS is scrubbed, loses a disk and gets another one.
//!
//! The last device is the spare one; the pool is made of the others, filled, scrubbed. Then its first
//! disk is taken offline and replaced by the spare one, and every file is read again.

use stackrace_engine::PhaseOutcome;

use super::kind::{Cost, Place, Workload, WorkloadError, WorkloadKind};
use super::pools::{self, Background, TrialPool};
use super::tree::Source;
use stackrace_base::event::MetricHead;
use stackrace_base::setting::{ChoiceDoc, SettingDoc, choice};
use stackrace_machine::host::argv;

/// Steps, in order.
const PHASES: [&str; 3] = ["scrub", "resilver", "verify"];

/// Index of the resilvering among them.
const RESILVER: usize = 1;

/// Ways in which data are spread over the devices of a pool that can lose one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redundancy {
    Mirror,
    Raid10,
    Raidz1,
    Raidz2,
    Raidz3,
}

const TOPOLOGY: ChoiceDoc<Redundancy> = choice!(
    "topology",
    [
        "mirror" => Redundancy::Mirror,
        "raid10" => Redundancy::Raid10,
        "raidz1" => Redundancy::Raidz1,
        "raidz2" => Redundancy::Raidz2,
        "raidz3" => Redundancy::Raidz3,
    ],
    "raidz1",
    "How data is spread over all devices but the last; raid10: pairs of mirrors, in order.",
);

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "mend-pool",
    summary: "a pool of ZFS scrubbed, then one disk replaced and resilvered, on `bare` devices",
    source: "zpool-scrub(8), zpool-replace(8)",
    settings: &SettingDoc::joined::<11>(&[&[TOPOLOGY.doc], &pools::TREE]),
    example: "mend-pool = { topology = \"raidz1\", files = 2000, size-median = \"64 KiB\" }",
    parse: |settings| {
        Ok(Box::new(MendPool {
            topology: settings.choice(TOPOLOGY)?,
            source: Source::parse(settings)?,
        }))
    },
    ..WorkloadKind::PLAIN
};

#[derive(Debug)]
struct MendPool {
    topology: Redundancy,
    source: Source,
}

impl MendPool {
    /// Counts the fewest devices, with the spare one.
    fn devices_min(&self) -> usize {
        match self.topology {
            Redundancy::Mirror | Redundancy::Raidz1 => 3,
            Redundancy::Raidz2 => 4,
            Redundancy::Raid10 | Redundancy::Raidz3 => 5,
        }
    }
}

impl Workload for MendPool {
    fn summary(&self) -> String {
        format!(
            "a {} with {} is scrubbed and gets another disk; every file is verified",
            TOPOLOGY.word(self.topology),
            self.source.words()
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        pools::heads(&PHASES)
    }

    fn cost(&self) -> Cost {
        let one = self.source.cost();
        Cost {
            // Scrubbed, resilvered, read.
            measured_bytes: Some(one.prepare_bytes * 3),
            ..one
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        PHASES.to_vec()
    }

    fn settles(&self, phase: usize) -> bool {
        phase == 0
    }

    fn wants_bare(&self) -> bool {
        true
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let pool = TrialPool::new(place, 0, self.devices_min())?;
        let mut devices = pool.devices();
        // The last device is kept for the replacement.
        devices.pop();
        let mut vdevs = Vec::new();
        let (vdev, disks) = match self.topology {
            // Pairs of mirrors, striped: ZFS has no word of its own for it.
            Redundancy::Raid10 => ("mirror", 2),
            topology => (TOPOLOGY.word(topology), devices.len()),
        };
        for disks in devices.chunks_exact(disks) {
            vdevs.extend(argv([vdev]));
            vdevs.extend_from_slice(disks);
        }
        pool.create(&vdevs)?;
        pool.fill(&self.source)
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let pool = TrialPool::new(place, 0, self.devices_min())?;
        match PHASES[phase] {
            "scrub" => pool.follow(Background::Scrub, &["scrub"], &[]),
            "resilver" => {
                let devices = pool.devices();
                let (lost, spare) = (devices[0].clone(), devices[devices.len() - 1].clone());
                // Offline instead of pulled: the device belongs to the stack, which takes it down
                // later.
                pool.zpool(&["offline"], std::slice::from_ref(&lost))?;
                pool.follow(Background::Resilver, &["replace", "-f"], &[lost, spare])
            }
            // A resilver that lost a file must not count as a fast one.
            _ => pool.verify(&pool.mount().join("source")),
        }
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        pools::values(outcomes, &PHASES, RESILVER)
    }
}
