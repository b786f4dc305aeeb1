//! An application recorded: its processes found, the kernel side loaded, its events kept as a trace.

mod able;
mod counts;
#[cfg(feature = "record")]
mod kernel;
#[cfg(not(feature = "record"))]
#[path = "left_out.rs"]
mod kernel;
mod recording;
mod target;
mod tree;

pub use recording::{Recording, RecordingLimits, Request, record};
pub use target::Target;
