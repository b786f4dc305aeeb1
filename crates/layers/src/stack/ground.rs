//! What a stack lies on: the directories that the user named, and the file system that was made for it.

use super::composition::Stack;
use super::zfs;
use stackrace_base::event::{ExchangedStorage, StorageIdentity, is_in_memory};
use stackrace_foundation::foundation::{LayerError, Mounted, Setup};
use stackrace_machine::host::identity::of_mount;
use stackrace_machine::host::{Host, HostError, MountInfo};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A machine of a stack by its number.
pub(super) fn on(host: &dyn Host, node: usize) -> Result<&dyn Host, HostError> {
    // The first one is no peer of itself.
    if node == 1 { Ok(host) } else { host.peer(node) }
}

/// The storage that a standing stack lies on.
#[derive(Debug, Default)]
pub(super) struct Ground {
    /// Directories of the user's, in the order of the layers.
    pub(super) named: Vec<StorageIdentity>,
    /// The same directories by their machines, and as the study calls them.
    at: Vec<(usize, PathBuf)>,
    /// The file system that was made for the stack; `None` if there is none, or it cannot be told.
    own: Option<StorageIdentity>,
}

impl Ground {
    /// Finds the ground of a stack that was just set up, with the root of its own file system.
    ///
    /// # Errors
    /// A directory that the user named is gone already, or it cannot be found out what it lies on.
    pub(super) fn of(
        stack: &Stack,
        setup: &Setup<'_>,
        mounted: Option<&Path>,
    ) -> Result<Self, LayerError> {
        let first = setup.first_host();
        let mut ground = Self::default();
        for (node, directory) in named_directories(stack) {
            let host = on(first, node)?;
            let mut identity = host.identity_of(&directory)?;
            identity.zfs = zfs::guid::of(host, &identity);
            ground.named.push(identity);
            ground.at.push((node, directory));
        }
        // One that cannot be told is not compared: a stack on an imagined machine has none.
        // Nor one that settling makes anew: it has other marks each time.
        let anew = setup.parts.mounts.iter().any(Mounted::is_folded);
        let own = mounted.filter(|_| !anew);
        ground.own = own.and_then(|root| first.identity_of(root).ok());
        if let Some(own) = &mut ground.own
            && !is_in_memory(&own.file_system)
            && own.device.is_some_and(|(major, _)| major == 0)
        {
            // Drawn anew each time that settling mounts it again.
            own.device = None;
        }
        Ok(ground)
    }

    /// The first storage that is not there any more or is something else; `None` if all is as it was.
    ///
    /// # Errors
    /// A machine does not answer.
    pub(super) fn exchanged(
        &self,
        first: &dyn Host,
        mounts: &[MountInfo],
    ) -> Result<Option<ExchangedStorage>, HostError> {
        let named = self.named.iter().zip(&self.at);
        let own = self
            .own
            .as_ref()
            .map(|own| (own, 1, Path::new(&own.directory)));
        let mut all = named
            .map(|(before, (node, path))| (before, *node, path.as_path()))
            .chain(own);
        let found = all
            .find_map(|(before, node, path)| seen(first, mounts, before, (node, path)).transpose());
        found.transpose()
    }

    /// The storage that the workload's directory lies on; `None` if it cannot be told.
    pub(super) fn of_workload(&self) -> Option<&StorageIdentity> {
        self.own.as_ref().or(self.named.last())
    }

    /// The storage the stack was set up on against what it lay on when it was first set up; `None`
    /// if it is the same, or was not known.
    pub(super) fn exchanged_since(
        &self,
        first: &dyn Host,
        before: &[StorageIdentity],
    ) -> Option<ExchangedStorage> {
        let now = self.named.iter().zip(&self.at);
        before
            .iter()
            .zip(now)
            .find_map(|(before, (now, (node, _)))| {
                let exchanged = compared(before, Some(now.clone()))?;
                Some(named(first, *node, exchanged))
            })
    }
}

/// What the directories that the user named for some stacks lie on before any of them is set up; nothing
/// for a stack of which one cannot be looked at.
///
/// The last one may be set up long after the first: what takes its place meanwhile is another storage.
pub fn first_look<'a>(
    stacks: impl Iterator<Item = &'a Stack>,
    first: &dyn Host,
) -> Vec<Vec<StorageIdentity>> {
    // Many configurations share a directory, and a look at another machine takes a while.
    let mut known: BTreeMap<(usize, PathBuf), Option<StorageIdentity>> = BTreeMap::new();
    let mut look = |(node, directory): (usize, PathBuf)| {
        let seen = |(node, path): &(usize, PathBuf)| on(first, *node).ok()?.identity_of(path).ok();
        let at = (node, directory);
        if !known.contains_key(&at) {
            known.insert(at.clone(), seen(&at));
        }
        known.get(&at).cloned().flatten()
    };
    stacks
        .map(|stack| named_directories(stack).map(&mut look).collect())
        .map(Option::unwrap_or_default)
        .collect()
}

/// The directories that the user named for a stack, each with the number of its machine.
fn named_directories(stack: &Stack) -> impl Iterator<Item = (usize, PathBuf)> {
    let layers = stack.layers.iter().enumerate();
    layers.filter_map(|(index, layer)| Some((stack.home(index), layer.named_directory()?)))
}

/// The storage that a stack that cannot be set up any more lay on, if that is not there or is
/// something else.
///
/// # Errors
/// A machine does not answer.
pub fn exchanged_below(
    stack: &Stack,
    first: &dyn Host,
    before: &[StorageIdentity],
) -> Result<Option<ExchangedStorage>, HostError> {
    let mut all = before.iter().zip(named_directories(stack));
    let mounts = first.mounts().unwrap_or_default();
    let found = all
        .find_map(|(before, (node, path))| seen(first, &mounts, before, (node, &path)).transpose());
    found.transpose()
}

/// Looks at one directory again; `mounts` is the table of the first machine.
fn seen(
    first: &dyn Host,
    mounts: &[MountInfo],
    before: &StorageIdentity,
    (node, path): (usize, &Path),
) -> Result<Option<ExchangedStorage>, HostError> {
    let host = on(first, node)?;
    let mounts = if node == 1 { mounts } else { &[] };
    let exchanged = looked_again(host, mounts, before, path);
    if exchanged.as_ref().is_some_and(|found| found.now.is_none()) {
        // Of a machine that is lost nothing is known, which is no sign that anything was exchanged.
        host.answers()?;
    }
    Ok(exchanged.map(|exchanged| named(first, node, exchanged)))
}

/// Looks at a directory again; the exchange, if it is not on the same storage any more. `mounts` is the table of mounts,
/// where it was just read.
pub fn looked_again(
    host: &dyn Host,
    mounts: &[MountInfo],
    before: &StorageIdentity,
    path: &Path,
) -> Option<ExchangedStorage> {
    let (now, unreadable) = match host.identity_among(mounts, path) {
        Ok(now) => (Some(now), None),
        Err(error) => (None, error.unreadable().map(str::to_owned)),
    };
    let exchanged = compared(before, now)?;
    let file = exchanged.now.is_none() && host.exists(path) && !host.is_dir(path);
    Some(ExchangedStorage {
        file,
        unreadable,
        ..exchanged
    })
}

/// What is mounted over or below a private directory, which was empty when it was made: it hides a part of the data. `None` if
/// nothing is, or the table of mounts is empty; `before` is the storage that the directory lies on.
pub fn covered(
    host: &dyn Host,
    mounts: &[MountInfo],
    directory: &Path,
    before: Option<&StorageIdentity>,
) -> Option<ExchangedStorage> {
    let directory = host.canonical(directory).ok()?;
    // Where the stack's own file system is mounted there, that is the first one in the table.
    let is_own = before.is_some_and(|before| Path::new(&before.mount_point) == directory);
    let at_it = mounts.iter().filter(|mount| mount.mount_point == directory);
    let below = |mount: &&MountInfo| {
        mount.mount_point != directory && mount.mount_point.starts_with(&directory)
    };
    let mut over = at_it
        .skip(usize::from(is_own))
        .chain(mounts.iter().filter(below));
    let over = over.next()?;
    Some(ExchangedStorage {
        machine: None,
        before: StorageIdentity {
            directory: over.mount_point.to_string_lossy().into_owned(),
            ..before.cloned().unwrap_or_default()
        },
        now: Some(of_mount(&over.mount_point, over, None)),
        file: false,
        unreadable: None,
    })
}

/// Adds the name of the machine, where it is not the first one.
fn named(first: &dyn Host, node: usize, exchanged: ExchangedStorage) -> ExchangedStorage {
    let peer = (node > 1).then(|| first.peer(node).ok()).flatten();
    exchanged.seen_by(peer.map(Host::name))
}

/// The exchange, if it is not the same storage any more.
fn compared(before: &StorageIdentity, now: Option<StorageIdentity>) -> Option<ExchangedStorage> {
    let same = now.as_ref().is_some_and(|now| before.is_same(now));
    (!same).then(|| ExchangedStorage {
        machine: None,
        before: before.clone(),
        now,
        file: false,
        unreadable: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_machine::host::local::LocalHost;
    use std::sync::Arc;

    #[test]
    fn what_cannot_be_looked_at_is_not_taken_for_gone() {
        let base = tempfile::tempdir().unwrap();
        let host = LocalHost::new(Arc::new(|_| {}));
        let before = host.identity_of(base.path()).unwrap();
        let look = |path: &Path| looked_again(&host, &[], &before, path).unwrap();
        let gone = look(&base.path().join("gone"));
        assert_eq!((gone.now, gone.unreadable), (None, None));
        // No way leads there: the simplest thing that the system cannot look at.
        let refused = look(&base.path().join("x".repeat(300)));
        assert_eq!(refused.unreadable.as_deref(), Some("File name too long"));
    }
}
