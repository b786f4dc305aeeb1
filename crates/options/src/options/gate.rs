//! `stackrace gate`: an exit code for CI.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `stackrace gate`.
#[derive(Debug, Args)]
#[command(after_help = GATE)]
pub struct Gate {
    /// The run: its id, the first characters of its id, or `last`; with --baseline, three runs or
    /// more
    #[arg(default_value = "last", value_name = "RUN")]
    pub runs: Vec<String>,
    /// The limit: how much worse is too much; without it, what the run requires
    #[arg(long, value_name = "SHARE")]
    pub worse_than: Option<String>,
    /// The configuration to judge [default: the second of two, or the only one; of what is required: any]
    #[arg(long, value_name = "NAME")]
    pub configuration: Option<String>,
    /// Compare with this configuration of the same run, round by round [default: the first of two]
    // The other side is the one or the other.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "baseline",
        requires = "worse_than"
    )]
    pub against: Option<String>,
    /// Compare with another run instead, unpaired; if it has several configurations, with the one
    /// of the same name. Repeat it: an answer needs three runs on each side
    #[arg(long, value_name = "RUN[/NAME]", requires = "worse_than")]
    pub baseline: Vec<String>,
    /// Compare even different work or different machines; the notes say what differs
    // With a side of the same run nothing is compared that could differ.
    #[arg(long, requires = "baseline", conflicts_with = "against")]
    pub anyway: bool,
    /// Only this workload; may be given several times [default: the overall figure]
    #[arg(long, value_name = "NAME", requires = "worse_than")]
    pub workload: Vec<String>,
    /// This metric of the workloads [default: the primary one of each]
    #[arg(long, value_name = "NAME", requires = "worse_than")]
    pub metric: Option<String>,
    /// Confidence of all statements together [default: the run's]
    #[arg(long, value_name = "SHARE", requires = "worse_than")]
    pub confidence: Option<String>,
    /// Exit code of an undecided question
    #[arg(long, value_name = "pass|fail", value_enum, default_value_t = Undecided::Fail)]
    pub undecided: Undecided,
    /// Print JSON, for programs
    // Standard output takes one form.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Also write a JUnit file, which CI systems show beside the tests; each figure is a test case
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Print Markdown, for the summary of a CI job
    #[arg(long)]
    pub markdown: bool,
}

/// Meaning of an undecided question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Undecided {
    /// Exit with 0.
    Pass,
    /// Exit with 6.
    Fail,
}

/// The exit codes of `stackrace gate`, for its help.
const GATE: &str = "\
Exit codes:
  0  not worse than allowed: this was shown
  5  a trial of it failed
  6  undecided: neither was shown (0 with --undecided pass)
  7  worse than allowed: this was shown";
