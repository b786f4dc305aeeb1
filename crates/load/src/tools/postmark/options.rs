//! The options of `stackrace postmark`.

use std::path::PathBuf;

use clap::Args;

/// What is typed behind `stackrace postmark`.
#[derive(Debug, Args)]
pub(super) struct PostmarkOptions {
    /// A file of PostMark commands, obeyed before standard input is read [default: .pmrc if there
    /// is one]
    #[arg(value_name = "CONFIG")]
    pub(super) configuration: Option<PathBuf>,
    /// Whose reports to print: 1.51 gives two numbers of deletion wrongly
    #[arg(long = "as", value_name = "VERSION", value_enum, default_value_t = ReportVersion::Last)]
    pub(super) version: ReportVersion,
    /// After each report, say on standard error what it is in real time, with latencies
    #[arg(long)]
    pub(super) real_time: bool,
}

/// The version of PostMark whose report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ReportVersion {
    /// Of August 2001.
    #[value(name = "1.51")]
    First,
    /// The last one.
    #[value(name = "1.53")]
    Last,
}

/// The commands of PostMark, shown under `stackrace postmark --help`.
pub(super) const COMMANDS: &str = "\
Commands, one a line:
  set size LOW [HIGH]       bytes of a file, below HIGH when made [500 10000]
  set number N              files in the beginning [500]
  set seed N                seed of everything random [42]
  set transactions N        transactions, two operations each [500]
  set location DIR [WEIGHT] where files are made; +DIR adds one, -DIR takes one away
  set subdirectories N      directories they are spread over, if more than one [0]
  set read N, set write N   bytes of one read, of one write [512]
  set buffering true|false  through the C library's buffer, or a system call per block [true]
  set bias read N           of ten transactions so many read, the others append; -1: neither [5]
  set bias create N         of ten so many create, the others delete; -1: neither [5]
  set report verbose|terse  which report [verbose]
  run [FILE]                one run; the report is appended to FILE
  load FILE, show [FILE]    read commands; show the configuration
  help [WORD], ?            list the commands
  !COMMAND                  hand COMMAND to the shell; its output follows when it has ended
  quit, exit                end
Files are made in a directory of our own, .stackrace-postmark-…, in each location.";
