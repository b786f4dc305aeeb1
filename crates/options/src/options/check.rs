//! `stackrace check`: is one directory enough?

use std::path::PathBuf;

use clap::Args;

use super::limits::HowLong;
use super::output::OutputArgs;

/// Arguments of `stackrace check`.
#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub struct Check {
    /// Directory on the storage to check; it gets a private subdirectory that is removed again
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// What the storage is for, as `compare` takes it. Requirements are published for etcd, nas-gigabit,
    /// vm-images, "video:FORMAT" (`show video-formats`) and surveillance:16x4Mbit/s; each with its source
    /// in `show purposes`. For others name one with --require
    #[arg(long = "for", value_name = "PURPOSE", default_value = "general")]
    pub purpose: String,
    /// What is enough, like "fsync latency p99 <= 10 ms"; several: all of them, beside what is published for the
    /// purpose
    #[arg(long, value_name = "BOUND")]
    pub require: Vec<String>,
    /// Also say where it stands among the runs of this gallery on drives of the same class and model: a folder of
    /// logs, or what `stackrace gallery` made
    #[arg(long, value_name = "DIR")]
    pub gallery: Option<PathBuf>,
    /// Time limit [default: 2 min]
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Limits of the run.
    #[command(flatten)]
    pub how_long: HowLong,
    /// Size of the data of each workload [default: what fits the time]
    #[arg(long, value_name = "BYTES")]
    pub size: Option<String>,
    /// Check even where another run measures in the directory; the reason is kept with the result
    #[arg(long)]
    pub anyway: bool,
    /// Keep caches warm: neither drop nor remount between preparation and measurement
    #[arg(long)]
    pub warm: bool,
    /// Print the study that would be run, and stop
    #[arg(long, conflicts_with_all = ["gallery", "html", "events", "json"])]
    pub print_study: bool,
    /// Places of reports.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The exit codes of `stackrace check`, for its help.
const CODES: &str = "\
Exit codes:
  0  it meets what is required, or nothing is
  5  a trial of it failed
  6  not certain yet
  7  it does not meet it";
