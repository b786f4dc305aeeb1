//! fio: its reports read, and its jobs looked at before fio itself is given them.
//!
//! The semantics are those of fio's manual and of its behaviour; no code is its.

mod asked;
mod group;
mod harmless;
mod import;
mod job;
mod language;
mod latencies;
mod rates;
mod read_json;
mod read_normal;
mod read_times;
mod reported;
mod results;
mod runs;
mod spelling;
#[cfg(test)]
mod tests;
mod value;
mod version2;

pub use import::IMPORTER;
pub use job::FioJob;
pub use language::JobFault;
pub use reported::{FioFigures, figures, heads};
