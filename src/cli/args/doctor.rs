//! `stackrace doctor`: what this machine can do.

use clap::Args;

/// Arguments of `stackrace doctor`.
#[derive(Debug, Clone, Copy, Args)]
pub(in crate::cli) struct Doctor {
    /// Do not listen how noisy the machine is, which takes 3 s
    #[arg(long)]
    pub(in crate::cli) quick: bool,
    /// As JSON, for programs
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
