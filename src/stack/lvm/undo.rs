//! Removing a volume group that bears a name of ours.

use crate::host::{Host, HostError, argv};
use crate::journal::{Param, UndoKind, text, until_free};
use std::ffi::OsString;

/// Removes the volume group of a name.
pub(super) const REMOVE: UndoKind = UndoKind {
    layer: "lvm",
    name: "remove-volume-group",
    params: &[Param::OurName],
    undo: remove,
};

/// Removes a volume group with its volumes, unless one of them is in use; none of that name is fine.
fn remove(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let name = text(of, 0);
    let list = argv(["vgs", "--noheadings", "--options", "vg_name"]);
    let groups = host.must(&list)?.stdout;
    if groups.lines().any(|line| line.trim() == name) {
        until_free(host, &argv(["vgremove", "--force", "--yes", name]))?;
    }
    Ok(())
}
