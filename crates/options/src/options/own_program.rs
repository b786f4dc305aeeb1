//! A command to compare with.

use std::path::PathBuf;

use clap::Args;

/// Options beside which there is no command, and so nothing that an option of a command could mean.
// Said of each of them: the parser drops "requires" where what is required conflicts with something given.
const NO_COMMAND: [&str; 8] = [
    "with",
    "replay",
    "together",
    "fio",
    "find_rate",
    "purpose",
    "size",
    "like",
];
/// Those beside which there is neither a command nor a job of fio.
const NO_PROGRAM: [&str; 7] = [
    "with",
    "replay",
    "together",
    "find_rate",
    "purpose",
    "size",
    "like",
];

/// Those beside which nothing is replayed.
const NO_REPLAY: [&str; 16] = [
    "purpose",
    "size",
    "like",
    "with",
    "together",
    "find_rate",
    "fio",
    "command",
    "prepare",
    "cleanup",
    "unit",
    "better",
    "parse",
    "trial_time",
    "no_sync",
    "disk",
];

/// `stackrace compare DIR DIR -- COMMAND`.
#[derive(Debug, Args)]
#[command(next_help_heading = "A workload, a job of fio or a command of your own")]
pub struct OwnProgramArgs {
    /// Compare with this workload alone, with settings as `load` takes them: git, "build files=100",
    /// "postgresql scale=10"; see `stackrace show workloads`
    #[arg(long, value_name = "WORKLOAD", group = "own", conflicts_with_all = ["purpose", "size", "like", "command"])]
    pub with: Vec<String>,
    /// Measure all workloads of --with at the same time, each judged by itself: "a database, and a backup beside it" is
    /// --with "random mode=mixed size=1GiB time=5s" --with "sequential mode=read size=1GiB passes=0 time=5s". All end with the first
    #[arg(long, requires = "with", conflicts_with_all = ["find_rate", "fio", "command", "purpose", "size", "like"])]
    pub together: bool,
    /// Compare the highest rate of operations that keeps a latency: "p99 <= 5 ms". It is that of random reads of 4 KiB in
    /// 1 GiB, or of --with "random mode=… size=…"; see `stackrace show workload find-rate`
    #[arg(long, value_name = "BOUND", conflicts_with_all = ["purpose", "size", "like", "fio", "command", "metric"])]
    pub find_rate: Option<String>,
    /// Compare with this job file of fio, by the fio that is installed: all figures of its report. The
    /// job may name no file outside of the directory that it runs in
    #[arg(long, value_name = "JOB.fio", groups = ["program", "own"], conflicts_with_all = ["purpose", "size", "like", "with"])]
    pub fio: Option<PathBuf>,
    /// Compare with a recorded application: this trace of `stackrace record` is replayed in each directory
    #[arg(long, value_name = "TRACE", group = "own", conflicts_with_all = NO_REPLAY)]
    pub replay: Option<PathBuf>,
    /// The directory on the storage where the trace was recorded. No verdict is given if the time of the replay there, or
    /// what the device does, is not that of the application
    #[arg(long, value_name = "DIR", requires = "replay", conflicts_with_all = NO_REPLAY)]
    pub home: Option<PathBuf>,
    /// Waits of the recorded application for clients and timers: closed, each lasts as long as it did, or open, each ends
    /// when it did [default: closed]
    #[arg(long, value_name = "WAY", requires = "replay", conflicts_with_all = NO_REPLAY, value_parser = ["closed", "open"])]
    pub arrivals: Option<String>,
    /// Compare with this command: one word is a shell command, several are a program and its
    /// arguments. It runs in an empty directory ({dir} or $STACKRACE_DIR) and must exit with 0
    // Behind `--`: its own options are none of ours.
    #[arg(last = true, value_name = "COMMAND", groups = ["program", "own"], conflicts_with_all = ["purpose", "size", "like"])]
    pub command: Vec<String>,
    /// Shell command to run before each trial; it is not timed, and caches are dropped after it
    #[arg(long, value_name = "LINE", requires = "command", conflicts_with_all = NO_COMMAND)]
    pub prepare: Option<String>,
    /// Shell command to run after each trial; it is not timed
    #[arg(long, value_name = "LINE", requires = "command", conflicts_with_all = NO_COMMAND)]
    pub cleanup: Option<String>,
    /// A figure that the command prints: NAME=REGEX (its first group in the last match),
    /// NAME=json:/POINTER, or with --parse a NAME of the tool; may be given several times, the
    /// first is primary. With --with or --fio the NAME of the one metric that decides: "read latency p99"
    // Without any of them nothing has such figures.
    #[arg(long, value_name = "NAME=WHERE", requires = "own", conflicts_with_all = ["purpose", "size", "like"])]
    pub metric: Vec<String>,
    /// Unit of each --metric, in their order, or one for all
    #[arg(long, value_name = "UNIT", requires = "metric", conflicts_with_all = NO_COMMAND)]
    pub unit: Vec<String>,
    /// Which direction of each --metric is better: higher or lower [default: higher, or as --parse knows]
    #[arg(long, value_name = "WAY", requires = "metric", conflicts_with_all = NO_COMMAND)]
    pub better: Vec<String>,
    /// Read the command's output as that of this tool (fio, bonnie++, sysbench, postmark, pgbench
    /// …)
    #[arg(long, value_name = "TOOL", requires = "command", conflicts_with_all = NO_COMMAND)]
    pub parse: Option<String>,
    /// End a trial that takes longer; it has failed [default: 10 min]
    #[arg(long, value_name = "TIME", requires = "program", conflicts_with_all = NO_PROGRAM)]
    pub trial_time: Option<String>,
    /// Stop the clock when the command ends, even if its data are not on the storage yet
    #[arg(long, requires = "command", conflicts_with_all = NO_COMMAND)]
    pub no_sync: bool,
    /// Disk space that it needs [default: 64 MiB, or what the sizes of a job say]
    #[arg(long, value_name = "BYTES", requires = "program", conflicts_with_all = NO_PROGRAM)]
    pub disk: Option<String>,
}
