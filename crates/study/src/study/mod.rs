//! A question and its design, read from one TOML file.
//!
//! A study is data. The commands that it may give run only with the user's permission. Every word
//! is checked before anything is touched, in every configuration, and everything that is wrong is
//! reported at once, each at its place in the file. What comes out of [`parse`] can be planned and
//! run; nothing of it is looked up in the text again. What the program makes itself is a [`StudyTable`],
//! and [`made`] checks it in the same way.

mod asked;
mod clients;
mod configuration;
pub mod crash;
mod decide;
mod design;
mod document;
mod entry;
mod error;
mod factor;
mod home;
mod jobs;
mod named;
mod one_line;
mod place;
mod placeholder;
mod quantile;
mod read;
mod require;
mod schema;
mod shipped;
mod size;
mod table;
mod together;
mod words;
mod workloads;

#[cfg(test)]
mod tests;

pub use asked::{AskedDrive, in_places, on_drives};
pub use clients::CLIENTS;
pub use decide::{CONFIDENCE, ROUNDS_MAX};
pub use design::{Configuration, Kinds, Policy, Provision, RoundOrder, Study};
pub use error::{StudyError, excerpts_fit};
pub use jobs::{JobReader, with_jobs};
pub use named::command;
pub use place::{HOST, SYSTEM};
pub use read::{TEXT_MAX, made, parse};
pub use schema::schema;
pub use shipped::SHIPPED;
#[cfg(any(test, feature = "testing"))]
pub use shipped::left_out;
pub use size::full_size;
pub use table::{StudyTable, literal};
