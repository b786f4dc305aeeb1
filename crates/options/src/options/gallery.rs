//! `stackrace gallery`: a folder of runs as a site.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `stackrace gallery`.
#[derive(Debug, Args)]
#[command(after_help = PUBLISHED)]
pub struct GalleryArgs {
    /// Folder with logs of runs: a store, copies of its runs/ID/log.jsonl under any name, or what --events
    /// wrote; to add a run, add its file
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Directory of the site [default: DIR-site]
    #[arg(long, short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Cut these out of every log: host, user, paths, serials, kernel
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Title of the site
    #[arg(long, value_name = "TEXT", default_value = "Storage, measured")]
    pub title: String,
    /// List what would be published of machines, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What is published whatever is cut, shown under `stackrace gallery --help`.
const PUBLISHED: &str = "\
The site needs no server: open OUT/index.html, or copy OUT to any. A second time only what was made before is
replaced. What logs say of machines is listed before it is written. Titles, names of configurations and
workloads, models of drives, processor and memory are published always.";
