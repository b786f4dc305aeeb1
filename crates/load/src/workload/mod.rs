//! What is done to a storage stack: each workload with its exact semantics, and the list of them.
//!
//! A workload prepares its data outside the clock, then runs one or more phases on the engine.
//! Between preparation and each phase the run settles the stack (caches dropped, file system
//! remounted), so a phase that reads starts cold unless the study, or [`Workload::settles`], says otherwise. A
//! new workload is one file and one line in [`ALL`].

pub mod aligned;
pub mod block;
mod copy_file;
mod copy_tree;
mod delete_tree;
mod extract_tar;
mod files;
pub mod find_rate;
mod kept;
mod kind;
mod mend_pool;
pub mod metric;
mod migrate_pool;
mod pools;
pub mod postgres_server;
pub mod program_end;
pub mod promises;
mod random;
mod read_file;
pub mod replay;
mod sequential;
mod shared_file;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite_error;
mod stream_video;
mod sustained;
#[cfg(test)]
mod tests;
pub mod together;
mod tree;

pub use kept::{DataLayout, DataUse, KeptData};
pub use kind::{
    BareDevices, Cost, OwnFindings, Place, SLICE_NS, Seat, Slicing, Workload, WorkloadError,
    WorkloadKind, advised, cause_of_operation, trouble, trouble_at,
};
pub use stackrace_base::setting::OverShell;

/// Every kind but those of the classic tools, alphabetical; `programs::workloads` has them all.
pub const ALL: &[WorkloadKind] = &[
    copy_file::KIND,
    copy_tree::KIND,
    delete_tree::KIND,
    extract_tar::KIND,
    files::KIND,
    find_rate::KIND,
    mend_pool::KIND,
    migrate_pool::KIND,
    promises::KIND,
    random::KIND,
    read_file::KIND,
    replay::KIND,
    sequential::KIND,
    shared_file::KIND,
    stream_video::KIND,
];
