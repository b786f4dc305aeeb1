//! Destroys a pool whose name stackrace chose.

use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::{Param, UndoKind, text, until_free};
use std::ffi::OsString;

/// Destroys the pool of a name.
pub(crate) const DESTROY: UndoKind =
    UndoKind::new("zfs", "destroy-pool", &[Param::OurName], destroy);

/// Destroys a pool; none of that name, or no ZFS that could hold one, is fine. An exported pool is
/// on its devices alone, and goes with them or with their signatures.
fn destroy(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let name = text(of, 0);
    let list = argv(["zpool", "list", "-H", "-o", "name"]);
    // All pools, and not this one by name: zpool fails for a name it does not know, as it does for
    // other reasons.
    let output = host.exec(&list)?;
    // Without a pool, the module or the daemon: zpool fails, in words of its version.
    let none = ["no pools", "module", "daemon"];
    match output.status {
        Some(0) if output.stdout.lines().any(|line| line.trim() == name) => {
            until_free(host, &argv(["zpool", "destroy", name]))
        }
        Some(0) => Ok(()),
        _ if none.iter().any(|word| output.stderr.contains(word)) => Ok(()),
        _ => Err(HostError::failed(&list, output)),
    }
}
