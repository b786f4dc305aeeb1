//! A stack that stands: where the workload runs, what was really obtained, how it gets cold, how it
//! goes.

use crate::stack::ground::{Ground, covered, on};
use stackrace_base::event::{ExchangedStorage, Fact, LayerFacts, Settled, StorageIdentity, again};
use stackrace_base::owned::held::HeldDir;
use stackrace_foundation::foundation::parts::appears;
use stackrace_foundation::foundation::{
    Bare, LayerError, Mounted, Movable, Site, StackError, StackParts, line, place,
};
use stackrace_machine::host::{Host, HostError};
use stackrace_machine::journal::{self, undo_entries, unmount, until_free};
use std::path::{Path, PathBuf};

/// Writing `3` there drops clean pages, dentries and inodes (proc_sys_vm(5)).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// A stack that stands. Dropping it leaves it standing: only [`StandingStack::tear_down`] and the journal
/// take it down.
#[must_use = "a stack stands until it is lowered"]
#[derive(Debug)]
pub struct StandingStack {
    /// Common beginning of all its names.
    pub(super) mark: String,
    pub(super) directory: PathBuf,
    /// The open directory that keeps [`StandingStack::directory`] the same whatever happens to its
    /// name; `None` if its path is its name, below a mount or a directory of the run's own.
    pub(super) held: Option<HeldDir>,
    pub(super) bare: Option<Bare>,
    pub(super) facts: Vec<LayerFacts>,
    pub(super) devices: Vec<String>,
    pub(super) parts: StackParts,
    pub(super) nodes: usize,
    /// Marks that tell this start of each machine from any other, from node 2 on.
    pub(super) boots: Vec<String>,
    /// Directories of the user's, and its own file system, as they were when it was set up.
    pub(super) lies_on: Ground,
}

/// Reads the marks that tell the present start of each machine from any other, from node 2 up to a
/// number.
///
/// # Errors
/// When one is not there.
pub(super) fn boots(host: &dyn Host, nodes: usize) -> Result<Vec<String>, HostError> {
    let nodes = 2..=nodes;
    let boots = nodes.map(|node| {
        let other = host.peer(node)?;
        // What was lost before is no matter of what is set up now.
        drop(other.lost());
        other.read_text(Path::new(journal::BOOT))
    });
    boots.collect()
}

impl StandingStack {
    /// Common beginning of all its names: with it the stack can be brought back after a power cut.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// A private directory, empty when the stack was raised. Its path may be one that only this
    /// process can use.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The same directory under the name that other machines know it by.
    pub fn known_directory(&self) -> &Path {
        let held = self.held.as_ref();
        held.map_or(&self.directory, |held| held.known_path())
    }

    /// Other machines on which the workload runs at the same time, by number, each with its private
    /// directory there.
    pub fn others(&self) -> &[(usize, PathBuf)] {
        &self.parts.others
    }

    /// Devices for the workload itself, where the stack leaves any to it.
    pub fn bare(&self) -> Option<&Bare> {
        self.bare.as_ref()
    }

    /// Facts about what each layer really got, bottom up.
    pub fn facts(&self) -> &[LayerFacts] {
        &self.facts
    }

    /// Returns true if the stack mounted a file system of its own.
    pub fn has_mounts(&self) -> bool {
        !self.parts.mounts.is_empty()
    }

    /// The directories that the user named for it, each with what it lies on.
    pub fn lies_on(&self) -> &[StorageIdentity] {
        &self.lies_on.named
    }

    /// Checks that it still lies on what it was set up on, that its own file system is where it was
    /// mounted, and that nothing is mounted over a part of it; `None` if so.
    ///
    /// # Errors
    /// One of its machines does not answer.
    pub fn exchanged(&self, host: &dyn Host) -> Result<Option<ExchangedStorage>, HostError> {
        let mounts = host.mounts().unwrap_or_default();
        let exchanged = self.lies_on.exchanged(host, &mounts)?;
        let below = self.lies_on.of_workload();
        let covered = || covered(host, &mounts, self.known_directory(), below);
        Ok(exchanged.or_else(covered))
    }

    /// Tells which state of a layer is another one than when it was set up; `None` if all are as they were.
    pub fn changed(&self, host: &dyn Host) -> Option<String> {
        let states = self.parts.stays.iter();
        let mut changed = states.filter_map(|state| state.changed(on(host, state.node)));
        changed.next()
    }

    /// Compares what it was set up on with what the same configuration was set up on before; `None`
    /// if they are the same.
    pub fn exchanged_since(
        &self,
        host: &dyn Host,
        before: &[StorageIdentity],
    ) -> Option<ExchangedStorage> {
        self.lies_on.exchanged_since(host, before)
    }

    /// Block devices by their names in `/proc/diskstats`: first those the top file system lies on,
    /// then the whole disks under everything. Empty for file systems in memory.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// The line to the peer as it was measured (see `foundation::line`), the nearest to the workload
    /// where there are two, or the one to the storage as the study declares it; `None` if there is
    /// none.
    pub fn line(&self) -> Option<Fact> {
        let mut facts = self.facts.iter().rev().flat_map(|layer| &layer.facts);
        facts
            .find(|fact| [line::MEASURED, line::DECLARED].contains(&&*fact.name))
            .cloned()
    }

    /// Writes everything back, then makes the stack cold as far as asked and possible: unmounts and
    /// mounts again what is ours, exports and imports pools of ours (which have a cache of their
    /// own), and drops the kernel's caches.
    ///
    /// `caches` of what is returned is `drop_caches`, or `none` where that was not asked or not
    /// allowed: advice on single files is the caller's. What is resident is not looked at.
    ///
    /// # Errors
    /// When writing back fails, or a mount is busy or does not come back.
    pub fn settle(
        &self,
        site: &Site<'_>,
        drop_caches: bool,
        remount: bool,
    ) -> Result<Settled, StackError> {
        let host = site.host;
        self.settle_on(host, drop_caches, remount)
            .map_err(StackError::whole)
    }

    fn settle_on(
        &self,
        host: &dyn Host,
        drop_caches: bool,
        remount: bool,
    ) -> Result<Settled, LayerError> {
        host.sync_file_system(&self.directory)?;
        for (node, directory) in &self.parts.others {
            on(host, *node)?.sync_file_system(directory)?;
        }
        let again: Vec<&Mounted> = self
            .parts
            .mounts
            .iter()
            .filter(|mount| mount.survives && (remount || mount.is_folded()))
            .collect();
        for mount in again.iter().rev() {
            let host = on(host, mount.node)?;
            let [before, after] = &mount.folds;
            before
                .iter()
                .try_for_each(|fold| host.must(fold).map(drop))?;
            unmount(host, &mount.path)?;
            after
                .iter()
                .try_for_each(|fold| host.must(fold).map(drop))?;
        }
        let away: &[Movable] = if remount { &self.parts.movable } else { &[] };
        for movable in away.iter().rev() {
            until_free(host, &movable.away)?;
        }
        // Unmounting made the upper file system write to files of the lower one, whose pages are
        // dirty now and would survive the dropping.
        for (node, directory) in &self.parts.backing {
            on(host, *node)?.sync_file_system(directory)?;
        }
        let mut dropped = drop_caches;
        for node in 1..=self.nodes {
            let host = on(host, node)?;
            dropped = dropped
                && host.is_root()
                // A container may forbid it even to root: then the trial says that nothing was
                // dropped.
                && host.write_text(Path::new(DROP_CACHES), "3").is_ok();
        }
        // After the kernel's: what it still wrote would be warm there again.
        for command in self.parts.cold.iter().filter(|_| drop_caches) {
            host.must(command)?;
        }
        self.come_back(host, away)?;
        for mount in &again {
            on(host, mount.node)?.must(&mount.command)?;
        }
        Ok(Settled {
            caches: if dropped { "drop_caches" } else { "none" }.to_string(),
            remounted: !again.is_empty(),
            ..Settled::default()
        })
    }

    /// Lets what settling made only read be written again, so that a trial can lay out its data and remove
    /// them.
    ///
    /// # Errors
    /// A mount is busy, or does not come back.
    pub fn open(&self, host: &dyn Host) -> Result<(), StackError> {
        let opened = self.parts.mounts.iter().try_for_each(|mount| {
            let Some(writable) = &mount.writable else {
                return Ok(());
            };
            let host = on(host, mount.node)?;
            match place::mounted_at(host, &mount.path)? {
                Some(seen) if !seen.options.iter().any(|option| option == "ro") => return Ok(()),
                Some(_) => unmount(host, &mount.path)?,
                // Packing failed after it was unmounted.
                None => {}
            }
            host.must(writable)?;
            Ok(())
        });
        opened.map_err(|error: LayerError| StackError::whole(error))
    }

    fn come_back(&self, host: &dyn Host, away: &[Movable]) -> Result<(), LayerError> {
        for Movable { back, .. } in away {
            host.must(back)?;
        }
        if !away.is_empty() {
            for device in &self.parts.awaited {
                appears(host, device)?;
            }
        }
        Ok(())
    }

    /// Checks that every machine of it has been there since before it was raised: one that lost its
    /// power does not hold its part any more.
    ///
    /// # Errors
    /// The first that has not.
    pub fn is_whole(&self, host: &dyn Host) -> Result<(), HostError> {
        for (node, began) in (2..).zip(&self.boots) {
            let host = on(host, node)?;
            if host.read_text(Path::new(journal::BOOT))? != *began {
                return Err(HostError::Elsewhere {
                    host: host.name().to_string(),
                    said: "it was started again: its part of the stack is gone".to_string(),
                    next: String::new(),
                    kind: std::io::ErrorKind::NotConnected,
                });
            }
        }
        Ok(())
    }

    /// Takes the stack down, top first, by its entries in the journal.
    ///
    /// # Errors
    /// What could not be undone, and who holds it; it stays in the journal.
    pub fn tear_down(self, site: &Site<'_>) -> Result<(), StackError> {
        // What holds a directory keeps the file system that it lies in from being unmounted.
        drop(self.held);
        let report = undo_entries(site.host, site.journal, &self.parts.entries, site.undo)
            .map_err(StackError::whole)?;
        let mut failed = report.failed.into_iter();
        let Some((undo, why)) = failed.next() else {
            return Ok(());
        };
        Err(StackError {
            left: failed.map(|(undo, _)| format!("{undo}")).collect(),
            ..StackError::whole(LayerError::refused(
                format!("could not {undo}: {why}"),
                format!("end what holds it, then run: {}", again(&["clean"])),
            ))
        })
    }
}
