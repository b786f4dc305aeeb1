//! The classic tools: each owns its options, its report, its drop-in command, its workload and its
//! importer, and is registered in one line.
//!
//! What they do to a storage is in `crates/engine`. This room neither reads the environment nor
//! prints: a command is given a [`Console`].

pub(crate) mod bonnie;
pub(crate) mod fio;
pub(crate) mod postmark;
pub(crate) mod sysbench;
mod tool;

pub(crate) use tool::{ClassicTool, Console};

use std::sync::LazyLock;

use crate::workload::{self, WorkloadKind};

/// Every tool, alphabetical.
pub(crate) const ALL: &[ClassicTool] = &[bonnie::TOOL, fio::TOOL, postmark::TOOL, sysbench::TOOL];

/// Every kind of workload, alphabetical: those of the room `workload` and those of the tools.
pub(crate) fn workloads() -> &'static [WorkloadKind] {
    static KINDS: LazyLock<Vec<WorkloadKind>> = LazyLock::new(|| {
        let tools = ALL.iter().filter_map(|tool| tool.workload);
        let mut kinds: Vec<WorkloadKind> = workload::ALL.iter().copied().chain(tools).collect();
        kinds.sort_by_key(|kind| kind.name);
        kinds
    });
    &KINDS
}
