//! The classic tools: each owns its options, its report, its drop-in command, its workload and its
//! importer, and is registered in one line.
//!
//! What they do to a storage is in `crates/engine`. This room neither reads the environment nor
//! prints: a command is given a [`Console`].

pub mod bonnie;
pub mod fio;
pub mod postmark;
pub mod sysbench;
mod tool;

pub use tool::{ClassicTool, Console};

/// Every tool, alphabetical.
pub const ALL: &[ClassicTool] = &[bonnie::TOOL, fio::TOOL, postmark::TOOL, sysbench::TOOL];
