//! The numbers of a pool and a dataset that a directory of the user's lies on.

use stackrace_base::event::{StorageIdentity, ZfsIdentity};
use stackrace_machine::host::{Host, argv};
use std::ffi::OsString;

/// The numbers of a pool and a dataset; `None` if it is no ZFS, or its tools do not say.
pub(in crate::stack) fn of(host: &dyn Host, identity: &StorageIdentity) -> Option<ZfsIdentity> {
    if identity.file_system != "zfs" {
        return None;
    }
    let dataset = &identity.source;
    let pool = dataset.split('/').next().unwrap_or_default();
    let guid = |tool: &str, of: &str| {
        let mut command = argv([tool, "get", "-H", "-p", "-o", "value", "guid"]);
        command.push(OsString::from(of));
        let told = host.must(&command).ok()?;
        Some(told.stdout.trim().to_owned()).filter(|guid| !guid.is_empty())
    };
    Some(ZfsIdentity {
        pool: guid("zpool", pool)?,
        dataset: guid("zfs", dataset)?,
    })
}
