//! What was typed for a run that goes on.

use clap::Args;

use super::clients::Allocation;
use super::output::OutputArgs;
use super::permitted::PermittedArgs;
use super::power::PowerArgs;
use super::there::Reach;

/// Arguments of `stackrace resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The run: its id, the first characters of its id, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// How much longer it may take [default: what is left of its limits]
    #[arg(long, value_name = "TIME")]
    pub more_time: Option<String>,
    /// Run this many more rounds, even if the question is decided
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Go on until the question is decided, without a time limit
    #[arg(long, conflicts_with_all = ["rounds", "more_time"])]
    pub until_decided: bool,
    /// Go on until the ends of the intervals are this near to each other, such as 10 %; without --more-time it may
    /// take any time
    #[arg(long, value_name = "SHARE", conflicts_with = "rounds")]
    pub within: Option<String>,
    /// Stop when it is sure which one is faster
    #[arg(long, conflicts_with_all = ["within", "rounds"])]
    pub quick: bool,
    /// Permissions of the user.
    #[command(flatten)]
    pub permitted: PermittedArgs,
    /// Ways to other machines.
    #[command(flatten)]
    pub reach: Reach,
    /// Commands that cut the power.
    #[command(flatten)]
    pub power: PowerArgs,
    /// A Slurm allocation.
    #[command(flatten)]
    pub allocation: Allocation,
    /// Places of reports.
    #[command(flatten)]
    pub output: OutputArgs,
}
