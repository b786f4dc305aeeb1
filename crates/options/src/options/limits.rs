//! How long a run may take.

use clap::Args;

/// Limits of a run. A verdict is as sure however long it takes: checks have no fixed number.
#[derive(Debug, Args)]
pub struct HowLong {
    /// Run at most this many rounds; without --time they may take any time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Go on until the question is decided, without a time limit
    #[arg(long, conflicts_with_all = ["rounds", "time"])]
    pub until_decided: bool,
}
