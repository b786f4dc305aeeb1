//! What is on record: listed, and written out for other programs.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `stackrace runs`.
#[derive(Debug, Args)]
pub struct Runs {
    /// Print JSON, for programs: one object for each run, the oldest first
    #[arg(long)]
    pub json: bool,
    /// What to do with them instead of listing them
    #[command(subcommand)]
    pub verb: Option<RunsVerb>,
}

/// Further commands on runs on record.
#[derive(Debug, clap::Subcommand)]
pub enum RunsVerb {
    /// Put tags on a run: a tag names the run in every command
    Tag {
        /// The run: an id, the beginning of one, a tag, or `last`
        run: String,
        /// Words to put on it, such as `before-upgrade`
        #[arg(value_name = "TAG", required_unless_present = "remove")]
        tags: Vec<String>,
        /// Tags to take off
        #[arg(long, value_name = "TAG")]
        remove: Vec<String>,
    },
    /// Remove runs for good
    ///
    /// A run that goes on is not removed, nor one that left something on this machine: `stackrace
    /// clean` comes first. A name that is not clear removes nothing, also of the others.
    Rm {
        /// Runs to remove: ids, or beginnings of ids
        // No default: the last run would be removed by a slip.
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Remove all runs but the newest ones
    ///
    /// Runs that have a tag stay. Without --yes it lists what would be removed.
    Prune {
        /// How many runs without a tag stay; those that go on stay anyway
        #[arg(long, value_name = "N")]
        keep: usize,
        /// Remove them
        // Runs are gone for good: without it they are only listed.
        #[arg(long)]
        yes: bool,
    },
}

/// Arguments of `stackrace export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Runs, all in one table: ids, the first characters of ids, or `last`
    #[arg(default_value = "last", value_name = "RUN")]
    pub runs: Vec<String>,
    /// csv, json, parquet [default: by the name of the file, else csv]
    #[arg(long, short)]
    pub format: Option<String>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Which table, or `all`, which needs a directory
    #[arg(long, short, default_value = "observations")]
    pub table: String,
    /// Write here instead of printing; in a directory the file is named after the table
    #[arg(long, short, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
}

/// Which runs go into which database.
#[derive(Debug, Args)]
#[command(after_help = PASSWORDS)]
pub struct Push {
    /// The database: `postgresql://USER@HOST/DATABASE` as for psql, or `@FILE` for a file with it
    pub database: String,
    /// Runs to push: ids, beginnings of ids, tags, or `last`
    #[arg(default_value = "last", value_name = "RUN")]
    pub runs: Vec<String>,
    /// Push every run of the store
    #[arg(long)]
    pub all: bool,
}

/// Sources of passwords, shown under `stackrace push --help`.
const PASSWORDS: &str = "\
Passwords are taken from where psql takes them: PGPASSWORD, PGPASSFILE or ~/.pgpass; or from the address
in @FILE. Both files must be closed to other users (chmod 600). An address with a password is refused on
the command line, where every user of this machine could read it.";
