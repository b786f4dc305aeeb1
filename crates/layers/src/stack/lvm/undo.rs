//! Removes a volume group whose name stackrace chose.

use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::{Param, UndoKind, text, until_free};
use std::ffi::OsString;

/// Removes the volume group of a name.
pub(super) const REMOVE: UndoKind =
    UndoKind::new("lvm", "remove-volume-group", &[Param::OurName], remove);

/// Removes a volume group with its volumes, unless one of them is in use; none of that name is fine.
fn remove(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let name = text(of, 0);
    // All groups, and not this one by name: vgs fails for a name it does not know, as it does for
    // other reasons.
    let list = argv(["vgs", "--noheadings", "--options", "vg_name"]);
    let groups = host.must(&list)?.stdout;
    // vgs indents its lines.
    if groups.lines().any(|line| line.trim() == name) {
        until_free(host, &argv(["vgremove", "--force", "--yes", name]))?;
    }
    Ok(())
}
