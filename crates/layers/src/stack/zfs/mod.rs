//! ZFS: pools, what is made in them, and devices left bare for pools of the workload.

mod arc;
mod bare;
mod dataset;
mod imagined;
mod pool;
mod properties;
mod undo;
mod volume;

pub(crate) use bare::KIND as BARE;
pub(crate) use dataset::KIND as DATASET;
pub(crate) use pool::KIND as POOL;
pub(super) use properties::{
    DATASET as DATASET_WORDS, PROPERTIES, obtained, properties, shown, words,
};
pub(super) use undo::DESTROY;
pub(crate) use volume::KIND as VOLUME;
