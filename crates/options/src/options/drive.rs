//! Arguments of `stackrace drive`.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands on a drive. It is opened for reading only, unless `measure --wipe` allows it to be written over.
#[derive(Debug, Subcommand)]
pub enum DriveVerb {
    /// Read a drive about 30,000 times and print a card of it (about ten minutes on a hard disk)
    #[command(alias = "fit")]
    Measure {
        /// The drive: /dev/disk/by-id/...
        device: PathBuf,
        /// The word to call it by
        #[arg(long, default_value = "measured")]
        name: String,
        /// Write the card to this file instead of printing it
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Write over the whole SSD too, and repeat its id here: all that is on it is lost. Shows flushes, the cache for
        /// writes and garbage collection; writes 1.4 times as much as it holds
        #[arg(long, value_name = "DEVICE-ID")]
        wipe: Option<String>,
    },
    /// Show how far a modelled drive is from the real one, or from a trace of it
    Check {
        /// A card's name (stackrace show drives) or its file
        card: PathBuf,
        /// A drive to read, or a text file with a request a line: R|W FIRST BLOCKS TIME PAUSE
        /// (512-byte blocks, microseconds)
        against: PathBuf,
    },
}
