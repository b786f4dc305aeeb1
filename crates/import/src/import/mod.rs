//! The printed results of other tools, read into our own words: one file per tool.
//!
//! An importer recognises its tool by what the text says, never by the name of a file. What it does
//! not understand it refuses, with the line: a line that looks like a result and is none of those
//! the tool is known to print is never passed over, and where a text says the same thing twice, both
//! have to agree. A figure that the tool could not give is none, with a note that says why.
//!
//! Units inside: bytes, ns, B/s. This room reads texts and nothing else; files, the store and the
//! terminal are the business of others.

mod account;
mod doubts;
mod importers;
mod margin;
mod pasted;
mod reading;
mod shell;
mod signs;
#[cfg(test)]
mod tests;
mod unfolded;

pub use importers::ALL;
pub use reading::{read, source};
pub use shell::{ShownCommand, commands};
