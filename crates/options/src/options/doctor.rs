//! `stackrace doctor`: what this machine can do.

use clap::Args;

/// Arguments of `stackrace doctor`.
#[derive(Debug, Clone, Copy, Args)]
pub struct Doctor {
    /// Skip the check for noise, which takes 3 s
    #[arg(long)]
    pub quick: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}
