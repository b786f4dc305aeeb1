//! What is put on another machine, as the command line says it.

use clap::{Args, ValueEnum};

/// Whether this program is put on the machines of `--on`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AgentArgs {
    /// What is put on the machines of --on: this program, or nothing. With `none` every command runs
    /// on the machine's own POSIX shell, and the workloads are programs installed there
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = AgentChoice::Copy)]
    agent: AgentChoice,
}

/// What is put on another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AgentChoice {
    /// This program is copied there
    Copy,
    /// Nothing: FreeBSD, illumos, macOS, NetBSD, or whatever has a POSIX shell
    None,
}

impl AgentArgs {
    /// Whether nothing is put there.
    pub(in crate::cli) fn is_none(&self) -> bool {
        self.agent == AgentChoice::None
    }
}
