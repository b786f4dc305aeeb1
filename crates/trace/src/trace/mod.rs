//! A recorded application: events of the kernel, ordered operations, the file that keeps them, and the bound.

mod bound;
mod call;
mod columns;
mod compile;
mod cut;
mod error;
mod facts;
mod joined;
mod names;
mod operation;
mod raw;
mod reader;
mod summary;
#[cfg(test)]
mod tests;
mod writer;

pub use bound::{Bound, Path, Spent};
pub use call::{ARCHITECTURE, CALL_NUMBERS, Class, Code, NO_FOLLOW, Role, roles};
pub use compile::{Above, Compiler, Recorded};
pub use cut::cut;
pub use error::TraceError;
pub use facts::{
    DeviceTotal, Ending, EntryKind, KeptEntry, ResidentRange, StopReason, TraceOrigin,
};
pub use joined::{Joined, SharedSyncs};
pub use names::{NameKey, Names, ROOT};
pub use operation::Operation;
pub use raw::RawEvent;
pub use reader::{Part, THREADS_MAX, TraceReader};
pub use summary::{ClassTotal, MAPPED_MAX, REPLAYED_MAX, Summary, Summing};
pub use writer::TraceWriter;
