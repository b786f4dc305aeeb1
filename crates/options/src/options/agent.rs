//! What is put on another machine, as the command line says it.

use clap::{Args, Subcommand, ValueEnum};

use super::clients::Serving;

/// The option that puts this program on the machines of `--on`, or not.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// What is put on the machines of --on: this program, or nothing. With `none` every command runs
    /// on the machine's own POSIX shell, and the workloads are programs installed there
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = AgentChoice::Copy)]
    agent: AgentChoice,
}

/// Program that is put on another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AgentChoice {
    /// This program is copied there
    Copy,
    /// Nothing: FreeBSD, illumos, macOS, NetBSD, or whatever has a POSIX shell
    None,
}

impl AgentArgs {
    /// Returns true if nothing is put there.
    pub fn is_none(&self) -> bool {
        self.agent == AgentChoice::None
    }
}

/// Work of this program on another machine.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum AgentVerb {
    /// Carry out requests from standard input
    Serve(Serving),
    /// Print the BLAKE3 hash of this program
    Hash,
}
