//! Arguments of `stackrace record` and `stackrace trace`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

/// Arguments of `stackrace record`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("application").required(true).args(["pid", "unit", "command"])))]
pub struct RecordArgs {
    /// The directory with the application's data, which would move to other storage
    #[arg(long, value_name = "DIR")]
    pub below: PathBuf,
    /// A process that runs, and all below it
    #[arg(long, value_name = "N")]
    pub pid: Option<u32>,
    /// All processes of a unit of systemd that runs
    #[arg(long, value_name = "NAME")]
    pub unit: Option<String>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", default_value = "10 min")]
    pub time: String,
    /// Stop when the file is this large
    #[arg(long, value_name = "BYTES", default_value = "1 GiB")]
    pub size: String,
    /// Stop when recording costs more of the application's processor time
    #[arg(long, value_name = "SHARE", default_value = "5 %")]
    pub cost: String,
    /// The file of the trace, which is made
    #[arg(long, short, value_name = "FILE", default_value = "app.trace")]
    pub output: PathBuf,
    /// A command to start and record, with its arguments, behind --
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Commands on a trace.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Show what a trace holds: calls by class, the critical path, what no storage can exceed
    Info {
        /// The trace
        file: PathBuf,
        /// Print JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Write the operations of a span of time as a trace of its own
    Cut {
        /// The trace
        file: PathBuf,
        /// Where the span begins, from the begin of the recording
        #[arg(long, value_name = "TIME", default_value = "0 s")]
        from: String,
        /// Where it ends [default: where the trace ends]
        #[arg(long, value_name = "TIME")]
        to: Option<String>,
        /// The file of the new trace, which is made
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
}
