//! The command line: what was typed, checked for form alone.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

mod agent;
mod check;
mod clients;
mod crash;
mod doctor;
mod drive;
mod gallery;
mod gate;
mod lab;
mod limits;
mod output;
mod own_program;
mod permitted;
mod power;
mod record;
mod resume;
mod stored;
mod there;

pub use agent::{AgentArgs, AgentVerb};
pub use check::Check;
pub use clients::{Allocation, ClientsArgs, Serving};
pub use crash::CrashVerb;
pub use doctor::Doctor;
pub use drive::DriveVerb;
pub use gallery::GalleryArgs;
pub use gate::{Gate, Undecided};
pub use lab::{
    DiskWord, FaultVerb, Lab, LabAdd, LabBuild, LabClock, LabFault, LabShell, LabTime, LabVerb,
    LinkWord, MountAfp, PowerWord, SYSTEM,
};
pub use limits::HowLong;
pub use output::OutputArgs;
pub use own_program::OwnProgramArgs;
pub use permitted::PermittedArgs;
pub use power::PowerArgs;
pub use record::{RecordArgs, TraceVerb};
pub use resume::Resume;
pub use stored::{Export, Push, Runs, RunsVerb};
pub use there::{Reach, SshCommand, There};

/// Exit codes, shown under `--help`.
const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  internal error
    2  usage
    3  refused, nothing was touched
    4  this machine cannot (root, tool, module)
    5  a trial failed
    6  not certain (--decide, gate, check)
    7  worse than allowed (gate, check)
  130  interrupted; what was measured is kept";

/// Options of every command.
#[derive(Debug, Args)]
pub struct Common {
    /// Where runs are kept [default: $XDG_STATE_HOME/stackrace or ~/.local/state/stackrace]
    // The options that every command has come behind its own ones in `--help`.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "STACKRACE_STORE",
        hide_env_values = true,
        // An empty one is refused where it is used: the variable may be empty while the option names a store.
        value_parser = OsStringValueParser::new().map(PathBuf::from),
        display_order = 900
    )]
    pub store: Option<PathBuf>,
    /// Print the answer alone: no progress, no remarks
    #[arg(long, short, global = true, display_order = 901)]
    pub quiet: bool,
    /// When to use colour
    #[arg(long, visible_alias = "color", global = true, value_enum, default_value_t = Colour::Auto, display_order = 902)]
    pub colour: Colour,
}

/// Which storage configuration should I choose, and how sure can I be?
#[derive(Debug, Parser)]
#[command(name = "stackrace", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Arguments {
    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
    /// The command.
    #[command(subcommand)]
    pub verb: CliVerb,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Also where output goes to a file or a pipe.
    Always,
    /// Plain text everywhere.
    Never,
}

/// The commands of this program, each with its arguments.
#[derive(Debug, Subcommand)]
pub enum CliVerb {
    /// Compare existing directories now; needs neither root nor a study
    Compare(Box<Compare>),
    /// Is one directory enough? It meets what is required, it does not, or that is not certain yet
    Check(Check),
    /// Disposable virtual machines with real kernels, ZFS, DRBD, GFS2 and emulated disks
    Lab(Lab),
    /// Run one workload once on a directory, file or device, and show the result
    Load(Load),
    /// Run a study: a TOML file, or one that ships (see `stackrace show studies`)
    Run(Box<Run>),
    /// Show what a study would do: configurations, commands, bytes, disk, time. Touches nothing
    Plan(PlanArgs),
    /// Continue a run that was interrupted or killed, or that stopped at its limits
    Resume(Resume),
    /// Show a run: verdict, tables, plots
    Report(ReportArgs),
    /// Ask another question of stored results (comparison, metric, workload, margin). The answer is
    /// marked as chosen after the run
    Verdict(Ask),
    /// Show a published study: its figures, its conclusions, and remarks on both
    Published(Published),
    /// List the runs on record
    Runs(Runs),
    /// Read what other tools printed (fio, bonnie++, iozone, dd …) into a run of its own
    Import(Import),
    /// Compare two stored results, own or imported: what differs, and by how much
    Diff(Diff),
    /// Write runs as long tables for other programs: CSV, JSON, Parquet
    Export(Export),
    /// Enter runs into a PostgreSQL that a team shares; `serve --from` shows them
    Push(Push),
    /// For CI: the exit code says whether a result is worse than a baseline by more than a limit
    Gate(Gate),
    /// Show runs in a browser: live, past ones, their history, any two side by side
    Serve(Serve),
    /// Make a site of a folder of runs: an index of studies, each run's page and log; needs no server
    Gallery(GalleryArgs),
    /// Remove what crashed or killed runs left behind (mounts, loop devices, files)
    Clean(Clean),
    /// Check this machine: what it can do, what is missing and how to install it, how noisy it is,
    /// what dead runs left. Changes nothing
    Doctor(Doctor),
    /// Explain the words of a study (layers, commands, workloads, profiles, purposes, studies, reports,
    /// schema, video-formats, drives), or measure the engine on this machine
    Show(Show),
    /// Describe a real drive by reading it, or check how well a modelled drive matches one
    #[command(subcommand)]
    Drive(DriveVerb),
    /// Show what was lost when the power was cut, and how it was lost
    #[command(subcommand)]
    Crash(CrashVerb),
    /// Record the calls of a running application to its storage (needs root): how much of its time is storage?
    Record(RecordArgs),
    /// Show what was recorded of an application, or cut a part out of it
    #[command(subcommand)]
    Trace(TraceVerb),
    /// Rebuild the SQLite index from the logs
    Reindex,
    /// The part of this program that works on another machine over SSH
    // Started by this program over SSH, never typed by people.
    #[command(hide = true)]
    Agent {
        /// What to do
        #[command(subcommand)]
        verb: AgentVerb,
    },
    /// Print shell completions, which offer studies, runs, purposes and other values too
    Completions {
        /// For which shell: bash, elvish, fish, powershell, zsh
        shell: String,
    },
    /// Write the manual pages, one for each command, to a directory
    Man {
        /// Directory that exists [default: print the page of stackrace itself]
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// Arguments of `stackrace compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Directories on the storage to compare; each gets a private subdirectory that is removed again. One alone is
    /// measured, as by `check`
    #[arg(required = true, num_args = 1.., value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// What the storage is for: general, database, postgresql, files, mail, photos, video, vm-images,
    /// containers, backup, build, etcd, nas-gigabit, surveillance; of several clients: ior, mdtest, io500
    #[arg(long = "for", value_name = "PURPOSE", default_value = "general")]
    pub purpose: String,
    /// Time limit [default: 2 min]
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// A first impression in at most 30 s: only which one is faster; `resume` goes on from there
    #[arg(long, conflicts_with_all = ["time", "until_decided", "within"])]
    pub quick: bool,
    /// Limits of the run.
    #[command(flatten)]
    pub how_long: HowLong,
    /// Size of the data of each workload [default: what fits the time]
    #[arg(long, value_name = "BYTES")]
    pub size: Option<String>,
    /// Use the sizes of this run of `compare` [default: of the last run with the same question]
    // Both say the sizes.
    #[arg(long, value_name = "RUN", conflicts_with = "size")]
    pub like: Option<String>,
    /// Compare even where the result would mislead (tmpfs with a disk, two directories of one file
    /// system, another run in one of them); the reason is kept with the result
    #[arg(long)]
    pub anyway: bool,
    /// Keep caches warm: neither drop nor remount between preparation and measurement
    #[arg(long)]
    pub warm: bool,
    /// Cost of each directory's storage, in their order: "73 EUR", "12 EUR per month"; the report then shows the
    /// performance per cost
    #[arg(long, value_name = "AMOUNT")]
    pub cost: Vec<String>,
    /// Print the study that would be run, and stop
    // Nothing is run: there is neither a verdict nor a report nor a log.
    #[arg(long, conflicts_with_all = ["decide", "html", "events", "json"])]
    pub print_study: bool,
    /// A workload to compare with, instead of those of a purpose.
    #[command(flatten)]
    pub own: OwnProgramArgs,
    /// The clients of one storage.
    #[command(flatten)]
    pub clients: ClientsArgs,
    /// Ways to other machines.
    #[command(flatten)]
    pub reach: Reach,
    /// The question.
    #[command(flatten)]
    pub deciding: Deciding,
    /// Places of reports.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `stackrace load`.
#[derive(Debug, Args)]
pub struct Load {
    /// A directory (a private subdirectory is made and removed again), or an existing file or block
    /// device (only ever read)
    pub place: PathBuf,
    /// The workload, as in a study; see `stackrace show workloads`
    pub workload: String,
    /// Its settings, as in a study: mode=read block-size=4KiB queue-depth=32
    #[arg(value_name = "NAME=VALUE")]
    pub words: Vec<String>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Leave caches as they are [default for a file or device]
    // Without either, it depends on what the place is.
    #[arg(long, conflicts_with = "cold")]
    pub warm: bool,
    /// Drop the data from the page cache before each phase [default in a directory]
    #[arg(long)]
    pub cold: bool,
}

/// The question to a verdict.
#[derive(Debug, Args)]
pub struct Deciding {
    /// Differences smaller than this do not matter [default: 5 %, or the study's]
    #[arg(long, value_name = "SHARE")]
    pub margin: Option<String>,
    /// Confidence of all statements together [default: 95 %, or the study's]
    #[arg(long, value_name = "SHARE")]
    pub confidence: Option<String>,
    /// Go on until the ends of the intervals are this near to each other [default: 25 %, more above 1.6 x]
    #[arg(long, value_name = "SHARE")]
    pub within: Option<String>,
    /// Go on until each workload is decided, not only the overall figure
    #[arg(long)]
    pub each: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Exit with 6 if the question stays undecided
    #[arg(long)]
    pub decide: bool,
}

/// Arguments of `stackrace run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The study's file, or the name of one that ships
    pub study: String,
    /// Use the full sizes of a study, instead of those that suit any machine
    #[arg(long)]
    pub full: bool,
    /// In disposable virtual machines: see `stackrace lab`
    // Guests are machines of their own: the study runs in them or elsewhere.
    #[arg(long, conflicts_with_all = ["on", "peers"])]
    pub lab: bool,
    /// Operating system of the guests: debian-13 (the default), debian-13-cloud, debian-13-rt,
    /// debian-13-xen or debian-12. Given several times, it becomes a factor of the study
    // Refused elsewhere: no option is ever ignored.
    #[arg(long = "system", value_name = "SYSTEM", requires = "lab")]
    pub systems: Vec<String>,
    /// Drive that the study's disks are models of, in virtual time: one of `stackrace show drives`,
    /// or the file of a card (`stackrace drive measure`). Given several times, it becomes a factor of
    /// the study
    #[arg(long = "drive", value_name = "DRIVE|FILE", requires = "lab")]
    pub drives: Vec<PathBuf>,
    /// Memory of each guest
    #[arg(long, value_name = "BYTES", default_value = "1 GiB", requires = "lab")]
    pub memory: String,
    /// The clock of the lab.
    #[command(flatten)]
    pub clock: LabTime,
    /// Time limit, instead of the study's; in virtual time the guests' clock counts
    #[arg(long, visible_alias = "at-most", value_name = "TIME")]
    pub time: Option<String>,
    /// Stop when it is sure which one is faster
    #[arg(long, conflicts_with = "within")]
    pub quick: bool,
    /// Limits of the run.
    #[command(flatten)]
    pub how_long: HowLong,
    /// Permissions of the user.
    #[command(flatten)]
    pub permitted: PermittedArgs,
    /// Other machines.
    #[command(flatten)]
    pub there: There,
    /// Commands that cut the power.
    #[command(flatten)]
    pub power: PowerArgs,
    /// The question.
    #[command(flatten)]
    pub deciding: Deciding,
    /// Places of reports.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `stackrace plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The study's file, or the name of one that ships
    pub study: String,
    /// Use the full sizes of a study, instead of those that suit any machine
    #[arg(long)]
    pub full: bool,
    /// Plan it for the lab; what the lab lacks for it is told, too
    #[arg(long, conflicts_with_all = ["on", "peers"])]
    pub lab: bool,
    /// Operating system of the guests; may be given several times
    #[arg(long = "system", value_name = "SYSTEM", requires = "lab")]
    pub systems: Vec<String>,
    /// Drive that the study's disks are models of, in virtual time: one of `stackrace show drives`,
    /// or the file of a card (`stackrace drive measure`). Given several times, it becomes a factor of
    /// the study
    #[arg(long = "drive", value_name = "DRIVE|FILE", requires = "lab")]
    pub drives: Vec<PathBuf>,
    /// Memory of each guest
    #[arg(long, value_name = "BYTES", default_value = "1 GiB", requires = "lab")]
    pub memory: String,
    /// Time limit, instead of the study's; in virtual time the guests' clock counts
    #[arg(long, visible_alias = "at-most", value_name = "TIME")]
    pub time: Option<String>,
    /// Limits of the run.
    #[command(flatten)]
    pub how_long: HowLong,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
    /// Other machines.
    #[command(flatten)]
    pub there: There,
}

/// Arguments of `stackrace report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run: its id, the first characters of its id, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Form of the report [default: by the name of the file, else terminal]
    #[arg(long, short)]
    pub format: Option<String>,
    /// Write to this file instead of printing
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The same as --format json
    #[arg(long, conflicts_with_all = ["format", "html"])]
    pub json: bool,
    /// The same as --format html --output FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "output"])]
    pub html: Option<PathBuf>,
    /// Write every plot to this directory as SVG
    // Plots alone are written: the form and the file of a report would be ignored.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "json", "output", "html"])]
    pub svg: Option<PathBuf>,
    /// Write every plot to this directory as PNG; needs a font on this machine
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "json", "output", "html"])]
    pub png: Option<PathBuf>,
    /// Show the ratios beside those of a published study: the one of the same name, or NAME
    // Behind `=` alone: the run that follows would be taken for the name.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub beside_published: Option<String>,
}

/// Arguments of `stackrace verdict`.
#[derive(Debug, Args)]
pub struct Ask {
    /// Runs: ids, the first characters of ids, or `last`
    #[arg(default_value = "last", value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare B with A: two configurations, or two levels of one factor
    // Both say what is compared with what.
    #[arg(long, value_name = "A,B", conflicts_with = "factor")]
    pub compare: Option<String>,
    /// Compare every level of this factor with its first one
    #[arg(long, value_name = "FACTOR")]
    pub factor: Option<String>,
    /// Answer for this metric [default: the overall figure and each workload's first]
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// Answer for this workload only
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Differences smaller than this do not matter [default: the study's]
    #[arg(long, value_name = "SHARE")]
    pub margin: Option<String>,
    /// Confidence of all answers together [default: the study's]
    #[arg(long, value_name = "SHARE")]
    pub confidence: Option<String>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `stackrace published`.
#[derive(Debug, Args)]
pub struct Published {
    /// Name of the study [default: list all]
    pub name: Option<String>,
    /// Form of the report
    #[arg(long, short, default_value = "terminal", requires = "name")]
    pub format: String,
    /// The same as --format json
    #[arg(long, conflicts_with = "format", requires = "name")]
    pub json: bool,
}

/// Arguments of `stackrace diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The baseline: a run (its id, the beginning of it, or `last`) and one of its configurations
    #[arg(value_name = "RUN[/CONFIGURATION]")]
    pub a: String,
    /// The run to compare with it
    #[arg(value_name = "RUN[/CONFIGURATION]")]
    pub b: String,
    /// Another run of the baseline; to show a difference takes three runs on each side
    #[arg(long, value_name = "RUN[/CONFIGURATION]")]
    pub more_a: Vec<String>,
    /// Another run of the other side
    #[arg(long, value_name = "RUN[/CONFIGURATION]")]
    pub more_b: Vec<String>,
    /// Compare even different work or different machines; the page says what differs
    #[arg(long)]
    pub anyway: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `stackrace import`.
#[derive(Debug, Args)]
pub struct Import {
    /// Files to read, - for standard input; those of one NAME are repetitions of the same measurement
    #[arg(required = true, num_args = 1.., value_name = "[NAME=]FILE")]
    pub files: Vec<String>,
    /// Title of the run
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Read every file as the output of this tool
    #[arg(long = "as", value_name = "TOOL")]
    pub tool: Option<String>,
    /// Places of reports.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `stackrace serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Address to listen on; other machines need a token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    pub listen: String,
    /// File with the token that visitors must present, which no other user can read; or set STACKRACE_TOKEN
    /// [default: one is made and printed where one is needed]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Refused: every user of the machine can read the words of a command
    #[arg(long, hide = true, value_name = "TEXT")]
    pub token: Option<String>,
    /// Let visitors start, stop and continue runs and keep imported results; needs a token
    #[arg(long)]
    pub control: bool,
    /// Directory of the studies that may be started, with --control
    #[arg(long, value_name = "DIR", requires = "control")]
    pub studies: Option<PathBuf>,
    /// Show the runs that a team pushed into a PostgreSQL: `postgresql://USER@HOST/DATABASE`, or `@FILE`
    /// for a file with it
    // Runs of a team are shown; none is started here for them.
    #[arg(long, value_name = "DATABASE", conflicts_with_all = ["control", "studies"])]
    pub from: Option<String>,
    /// Open the page in a browser
    #[arg(long)]
    pub open: bool,
}

/// Arguments of `stackrace clean`.
#[derive(Debug, Args)]
pub struct Clean {
    /// Only print what would be removed
    #[arg(long)]
    pub list: bool,
    /// Run the commands with which studies take down what they set up (layer script), on this machine or
    /// with --agent none
    // With --list nothing is run.
    #[arg(long, conflicts_with_all = ["list", "peers"])]
    pub allow_commands: bool,
    /// Other machines.
    #[command(flatten)]
    pub there: There,
}

/// Arguments of `stackrace show`.
#[derive(Debug, Args)]
pub struct Show {
    /// layers, commands (everything that a layer runs, as root), workloads, profiles, purposes, studies,
    /// reports, schema, video-formats, drives, engine, trace; without one: what each of them is
    pub what: Option<String>,
    /// Show this one in full; of a trace its file
    pub name: Option<String>,
    /// Print JSON (engine only)
    #[arg(long)]
    pub json: bool,
}
