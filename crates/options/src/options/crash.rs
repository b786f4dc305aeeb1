//! Arguments of `stackrace crash`.

use clap::Subcommand;

/// Commands on the power cuts of a run.
#[derive(Debug, Subcommand)]
pub enum CrashVerb {
    /// List what was lost in a run; with a number, make that loss again and show how it came about
    Show {
        /// The run: its id, or the beginning of it
        run: String,
        /// Number of the loss, as the list has it
        loss: Option<usize>,
    },
}
