//! F2FS on one device.

use crate::event::Fact;
use crate::host::{Host, Package};
use crate::stack::common::{
    block, options,
    plain::{self, Plain},
};
use crate::stack::error::LayerError;
use crate::stack::gives::GivesKind;
use crate::stack::layer::{KillStack, LayerKind, Tried};
use std::path::Path;

/// What the driver tells of a mounted file system.
const TOLD: [&str; 3] = ["features", "encoding", "current_reserved_blocks"];

/// F2FS.
pub(crate) const KIND: LayerKind = LayerKind {
    name: "f2fs",
    summary: "F2FS, made for flash memory, on one device of at least 40 MiB.",
    settings: &[options::MKFS, options::MOUNT],
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "f2fs = { mkfs = [\"-O\", \"extra_attr\"], mount = [\"noatime\"] }",
    parse: |settings| F2FS.parse(settings),
    packages: PACKAGES,
    imagined: &[plain::imagined_mkfs("mkfs.f2fs")],
    tried: Tried {
        on_devices: &[(1, &["f2fs = {}"])],
        kills: &[KillStack::on_one("f2fs", ("128 MiB", 1), &["f2fs = {}"])],
        changes: &["mkfs.f2fs"],
        ..Tried::NOWHERE
    },
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new("f2fs-tools", &["mkfs.f2fs", "dump.f2fs"])];

const F2FS: &Plain = &Plain {
    name: "f2fs",
    tools: &["mkfs.f2fs", "wipefs", "mount", "umount"],
    packages: PACKAGES,
    keeping: |_| &["-t", "0"],
    uuid: |uuid| ["-U".to_string(), uuid.to_string()],
    geometry: told,
    all_options: plain::untold,
};

/// What the driver shows in `/sys/fs/f2fs`; what this kernel does not show is left out.
fn told(host: &dyn Host, _root: &Path, device: &Path) -> Result<Vec<Fact>, LayerError> {
    let about = Path::new("/sys/fs/f2fs").join(block::kernel_name(host, device));
    let fact = |name: &&str| {
        let text = host.read_text(&about.join(name)).ok()?;
        Some(Fact::new(*name, text.trim()))
    };
    Ok(TOLD.iter().filter_map(fact).collect())
}
