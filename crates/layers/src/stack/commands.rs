//! Commands that layers run, found by setting a stack of each up on an imagined machine.
//!
//! No list is kept: what is shown is what the program does, word for word.

use super::composition::Stack;
use super::written;
use stackrace_foundation::foundation::{LayerKind, Site};
use stackrace_machine::host::plan::PlanHost;
use stackrace_machine::journal::{Journal, UndoKind};
use std::path::{Path, PathBuf};

/// Disk for a layer that is tried with no whole stack of its own.
const DISK: &str = "loop = { size = \"1 GiB\" }";
/// Disks for one whose example takes two.
const DISKS: &str = "loop = { size = \"1 GiB\", count = 2 }";

/// A stack of one layer, and everything that is done from its set-up to its removal.
#[derive(Debug)]
pub struct ShownCommands {
    /// The layers as a study gives them, from the bottom up.
    pub stack: Vec<&'static str>,
    /// True if a layer of it needs the rights of root.
    pub root: bool,
    /// The commands and the steps of the program itself, in their order.
    pub steps: Vec<String>,
}

/// The first stack that a kind of layer is tried with, its own before those of others, or its example on
/// loop devices: set up, caches emptied, taken down; `None` if no stack that the imagined machine can have holds it.
pub(super) fn of(
    kinds: &[LayerKind],
    kind: &LayerKind,
    imagined: &dyn Fn() -> PlanHost,
    undo: &'static [&'static UndoKind],
) -> Option<ShownCommands> {
    let shown = |stack| shown(kinds, stack, imagined(), undo);
    let word = format!("{} =", kind.name);
    let all = kinds.iter().flat_map(|other| other.shapes);
    let others = all.filter(|stack| stack.iter().any(|line| line.starts_with(&word)));
    let tried = kind.shapes.iter().chain(others);
    let mut tried = tried.map(|stack| stack.to_vec());
    let on = |disks| shown(vec![disks, kind.example]);
    let of_tried = tried.find_map(shown);
    of_tried.or_else(|| [DISK, DISKS].into_iter().find_map(on))
}

fn shown(
    kinds: &[LayerKind],
    stack: Vec<&'static str>,
    host: PlanHost,
    undo: &'static [&'static UndoKind],
) -> Option<ShownCommands> {
    let layers = stack.iter().map(|line| written::layer(kinds, line).ok());
    let layers: Vec<_> = layers.collect::<Option<_>>()?;
    let root = layers.iter().any(|layer| layer.needs().root);
    // Layers on real disks are tried with these two.
    let link = |number| PathBuf::from(format!("/dev/disk/by-id/disk-of-test-{number}"));
    let host = host
        .with_disk(&link(1), 1 << 30, "TEST")
        .with_disk(&link(2), 1 << 30, "TEST");
    let journal = Journal::nowhere();
    let site = Site {
        host: &host,
        journal: &journal,
        scratch: Path::new("/run/stackrace").to_path_buf(),
        tag: "r1-t0".to_owned(),
        seed: 1,
        wipe: &[],
        undo,
        interrupt: None,
    };
    let standing = Stack::new(layers).ok()?.set_up(&site).ok()?;
    standing.settle(&site, true, true).ok()?;
    standing.tear_down(&site).ok()?;
    let steps = host.steps().iter().map(|step| step.shown()).collect();
    Some(ShownCommands { stack, root, steps })
}

#[cfg(test)]
mod tests {
    use crate::stack::{ALL, commands};

    #[test]
    fn every_layer_shows_its_commands_from_set_up_to_removal() {
        let missing: Vec<_> = ALL.iter().filter(|kind| commands(kind).is_none()).collect();
        let missing: Vec<_> = missing.iter().map(|kind| kind.name).collect();
        assert_eq!(missing, Vec::<&str>::new());
        let xfs = ALL.iter().find(|kind| kind.name == "xfs").unwrap();
        let shown = commands(xfs).unwrap();
        assert!(shown.root);
        let place = |word: &str| shown.steps.iter().position(|step| step.starts_with(word));
        let order = [
            "losetup --find",
            "mkfs.xfs",
            "mount -t xfs",
            "umount",
            "losetup --detach",
        ];
        let places = order.map(|word| place(word).unwrap());
        assert!(places.is_sorted(), "{:#?}", shown.steps);
    }
}
