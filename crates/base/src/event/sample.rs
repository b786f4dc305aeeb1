//! Storage that tests of identities share.

use super::StorageIdentity;

/// An ext4 on a loop device, mounted at `/mnt/a`.
pub(super) fn ext4() -> StorageIdentity {
    StorageIdentity {
        directory: "/mnt/a/d".into(),
        device: Some((7, 0)),
        file_system: "ext4".into(),
        source: "/dev/loop0".into(),
        mount_point: "/mnt/a".into(),
        root: "/".into(),
        options: Some(vec!["rw".into(), "relatime".into()]),
        inode: Some(12),
        made_ns: Some(1),
        file_system_id: Some(0xabc),
        boot: Some("one".into()),
        ..StorageIdentity::default()
    }
}
