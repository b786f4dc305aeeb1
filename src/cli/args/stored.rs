//! What is on record: listed, and written out for other programs.

use std::path::PathBuf;

use clap::Args;

/// `stackrace runs`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Runs {
    /// As JSON, for programs: one object for each run, the oldest first
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// `stackrace export`.
#[derive(Debug, Args)]
#[command(after_help = export_tables())]
pub(in crate::cli) struct Export {
    /// Runs, one table over all of them: ids, beginnings of ids, or `last`
    #[arg(default_value = "last", value_name = "RUN")]
    pub(in crate::cli) runs: Vec<String>,
    /// csv, json, parquet [default: how the file is named, else csv]
    #[arg(long, short)]
    pub(in crate::cli) format: Option<String>,
    /// Which table, or `all`, which needs a directory
    #[arg(long, short, default_value = "observations")]
    pub(in crate::cli) table: String,
    /// Write here instead of printing; in a directory the file is named after the table
    #[arg(long, short, value_name = "FILE|DIR")]
    pub(in crate::cli) output: Option<PathBuf>,
}

/// The tables, shown under `stackrace export --help`.
fn export_tables() -> String {
    let lines: Vec<String> = crate::export::ALL
        .iter()
        .map(|kind| format!("  {:<14}{}", kind.name, kind.summary))
        .collect();
    format!("Tables:\n{}", lines.join("\n"))
}
