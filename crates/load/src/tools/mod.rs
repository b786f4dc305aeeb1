//! The classic tools: each owns its options, its report, its drop-in command, its workload and its
//! importer, and is registered in one line.
//!
//! What they do to a storage is in `crates/engine`. This room neither reads the environment nor
//! prints: a command is given a [`Console`].

pub mod bonnie;
mod fio;
pub mod postmark;
pub mod sysbench;
mod tool;

pub use tool::{ClassicTool, Console};

use std::sync::LazyLock;

use stackrace_base::printed::Importer;
use stackrace_import::import;

/// Every tool, alphabetical.
pub const ALL: &[ClassicTool] = &[bonnie::TOOL, fio::TOOL, postmark::TOOL, sysbench::TOOL];

/// Every importer, alphabetical: those of these tools and those of all others.
pub fn importers() -> &'static [Importer] {
    static IMPORTERS: LazyLock<Vec<Importer>> = LazyLock::new(|| {
        let tools = ALL.iter().map(|tool| tool.importer);
        let mut importers: Vec<Importer> = import::ALL.iter().copied().chain(tools).collect();
        importers.sort_by_key(|importer| importer.name);
        importers
    });
    &IMPORTERS
}
