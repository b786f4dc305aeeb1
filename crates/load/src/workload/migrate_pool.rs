//! A mirror of two disks becomes a raidz1 of all disks without a disk to spare, as it was done at the
//! end of the first study of ashift: a sparse file stands for the disk that still holds the data.
//!
//! The first two devices are the mirror. The second of them and the others, and the sparse file, are
//! the raidz1; the file is taken offline before anything is written to it. Everything is copied, the
//! old pool is destroyed, and its disk takes the place of the file.

use stackrace_engine::PhaseOutcome;
use stackrace_engine::files::AtEnd;
use stackrace_engine::tree::{self, COPY_BUFFER_BYTES, CopyMethod, CopyStyle};

use super::kind::{Cost, Place, SLICE_NS, Workload, WorkloadError, WorkloadKind, trouble};
use super::pools::{self, Background, TrialPool};
use super::tree::Source;
use stackrace_base::event::MetricHead;
use stackrace_machine::host::{Filling, argv};

/// Two of the mirror, and one at least for the raidz1 to be one.
const DEVICES_MIN: usize = 3;

/// Steps, in order.
const PHASES: [&str; 6] = [
    "new pool", "copy", "old pool", "resilver", "scrub", "verify",
];

/// Index of the resilvering among them.
const RESILVER: usize = 3;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "migrate-pool",
    summary: "a mirror of ZFS becomes a raidz1 by way of a sparse dummy, on `bare` devices",
    source: "the end of the published study zfs-ashift",
    settings: &pools::TREE,
    example: "migrate-pool = { files = 2000, size-median = \"64 KiB\" }",
    parse: |settings| {
        Ok(Box::new(MigratePool {
            source: Source::parse(settings)?,
        }))
    },
    ..WorkloadKind::PLAIN
};

#[derive(Debug)]
struct MigratePool {
    source: Source,
}

impl MigratePool {
    /// The second half of the mirror, the devices that are free, and the dummy.
    fn new_pool(
        place: &Place<'_>,
        old: &TrialPool<'_>,
        new: &TrialPool<'_>,
    ) -> Result<(), WorkloadError> {
        let Some(bare) = place.bare else {
            return Err(trouble("there are no bare devices"));
        };
        let mut devices = old.devices();
        devices.remove(0);
        // From here on the data have no second copy: this is what the study did, and why it verified
        // every file.
        old.zpool(&["detach"], &devices[..1])?;
        let dummy = place.directory.join("dummy");
        let bytes = std::fs::File::open(&devices[0])
            .and_then(|mut device| std::io::Seek::seek(&mut device, std::io::SeekFrom::End(0)))
            .map_err(trouble)?;
        bare.host
            .create_file(&dummy, bytes, Filling::Sparse)
            .map_err(trouble)?;
        let mut vdevs = argv(["raidz1"]);
        vdevs.extend(devices);
        // The last member, which is replaced when the old mirror's disk is free.
        vdevs.push(dummy.clone().into());
        new.create(&vdevs)?;
        // Before anything is written: a sparse file that filled would take room that is not there.
        new.zpool(&["offline"], &[dummy.clone().into()])?;
        bare.host.remove_file(&dummy).map_err(trouble)
    }
}

impl Workload for MigratePool {
    fn summary(&self) -> String {
        format!(
            "a mirror with {} becomes a raidz1 by way of a sparse dummy; every file is verified",
            self.source.words()
        )
    }

    fn metrics(&self) -> Vec<MetricHead> {
        pools::heads(&PHASES)
    }

    fn cost(&self) -> Cost {
        let one = self.source.cost();
        Cost {
            // Written to the new pool, resilvered, scrubbed, read.
            measured_bytes: Some(one.prepare_bytes * 4),
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
        let old = TrialPool::new(place, 0, DEVICES_MIN)?;
        let mut vdevs = argv(["mirror"]);
        vdevs.extend(old.devices().into_iter().take(2));
        old.create(&vdevs)?;
        old.fill(&self.source)
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        let old = TrialPool::new(place, 0, DEVICES_MIN)?;
        let new = TrialPool::new(place, 1, DEVICES_MIN)?;
        let dummy = place.directory.join("dummy").into_os_string();
        match PHASES[phase] {
            "new pool" => new.timed(|| Self::new_pool(place, &old, &new)),
            "copy" => {
                let method = CopyMethod::Classic {
                    buffer_bytes: COPY_BUFFER_BYTES,
                };
                let (from, to) = (old.mount().join("source"), new.mount().join("source"));
                let (manner, at_end) = (CopyStyle::Direct, AtEnd::Durable);
                let control = place.control;
                tree::copy_tree(&from, &to, method, manner, at_end, SLICE_NS, control)
                    .map_err(trouble)
            }
            "old pool" => old.timed(|| old.zpool(&["destroy", "-f"], &[]).map(drop)),
            "resilver" => {
                // The disk that held the data until now.
                let freed = old.devices().swap_remove(0);
                new.follow(Background::Resilver, &["replace", "-f"], &[dummy, freed])
            }
            "scrub" => new.follow(Background::Scrub, &["scrub"], &[]),
            _ => new.verify(&new.mount().join("source")),
        }
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        pools::values(outcomes, &PHASES, RESILVER)
    }
}
