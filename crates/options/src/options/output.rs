//! Where results go besides the terminal.

use std::path::PathBuf;

use clap::Args;

/// Places of reports besides the terminal.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Write a self-contained HTML report here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write the run's log to this file, line by line as it grows: JSON, for programs. `-`: to
    /// standard output, in place of the report
    #[arg(long, value_name = "FILE|-")]
    pub events: Option<PathBuf>,
    /// Print the result as JSON, for programs, in place of the page: as `report --json` does
    // Both may be standard output.
    #[arg(long, conflicts_with = "events")]
    pub json: bool,
}
