//! Arguments of `stackrace drive`.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands on a drive. It is opened for reading only.
#[derive(Debug, Subcommand)]
pub enum DriveVerb {
    /// Read a drive at about 1,500 places and print a card of it (under a minute on a hard disk)
    Fit {
        /// The drive: /dev/disk/by-id/...
        device: PathBuf,
        /// The word to call it by
        #[arg(long, default_value = "measured")]
        name: String,
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
