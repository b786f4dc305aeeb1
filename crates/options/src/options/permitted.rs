//! What a user permits of a study, each time anew.

use clap::Args;

/// Permissions that the user gives for this command alone.
#[derive(Debug, Args)]
pub struct PermittedArgs {
    /// Allow this disk to be wiped although it holds data; may be given several times
    #[arg(long, value_name = "DEVICE-ID")]
    pub wipe: Vec<String>,
    /// Run the commands that the study gives, with your rights
    #[arg(long)]
    pub allow_commands: bool,
    /// Start or go on even where another run measures in the same directories
    #[arg(long)]
    pub anyway: bool,
}
