//! `stackrace doctor`: what this machine can do.

use clap::Args;

/// Arguments of `stackrace doctor`.
#[derive(Debug, Clone, Copy, Args)]
pub(in crate::cli) struct Doctor {
    /// Skip the check for noise, which takes 3 s
    #[arg(long)]
    pub(in crate::cli) quick: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
