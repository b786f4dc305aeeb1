//! ZFS: pools, what is made in them, and devices left bare for pools of the workload.

mod arc;
mod bare;
mod dataset;
pub(super) mod guid;
mod imagined;
mod pool;
mod properties;
mod supported;
#[cfg(any(test, feature = "testing"))]
mod testing;
mod topology;
mod undo;
mod volume;

pub(super) use arc::fact as limit_of_cache;
pub(super) use bare::KIND as BARE;
pub(super) use dataset::KIND as DATASET;
pub(super) use pool::KIND as POOL;
pub(super) use properties::{
    DATASET as DATASET_WORDS, NATIVE as NATIVE_WORDS, PROPERTIES, obtained, properties, shown,
    words,
};
pub(super) use supported::impossible;
pub(super) use undo::DESTROY;
pub(super) use volume::KIND as VOLUME;
