//! ZFS: pools, what is made in them, and devices left bare for pools of the workload.

mod arc;
mod bare;
mod dataset;
pub(super) mod guid;
mod imagined;
mod pool;
mod properties;
mod topology;
mod undo;
mod volume;

pub(super) use bare::KIND as BARE;
pub(super) use dataset::KIND as DATASET;
pub(super) use pool::KIND as POOL;
pub(super) use properties::{
    DATASET as DATASET_WORDS, PROPERTIES, obtained, properties, shown, words,
};
pub(super) use undo::DESTROY;
pub(super) use volume::KIND as VOLUME;

use stackrace_base::setting::OverShell;

/// The like of all of them, which the tools of a machine make by themselves.
const OVER_SHELL: OverShell = OverShell::Nearest(
    "native = { file-system = \"zfs\", size = \"1 GiB\" }, or dir on a pool of yours",
);
