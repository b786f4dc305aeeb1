//! How the power of a real machine is cut, as it was typed.

use clap::Args;

/// Commands that take the power of a machine and give it back.
#[derive(Debug, Args)]
pub struct PowerArgs {
    /// For a study that cuts the power, with --on: the command that does so on that machine. It is
    /// run here, by sh: `ipmitool … chassis power off`, a switched outlet, `virsh destroy`
    // A machine that is cut has to come back: both or none.
    #[arg(long, value_name = "COMMAND", requires = "restore")]
    pub cut: Option<String>,
    /// The command that starts that machine again
    #[arg(long, value_name = "COMMAND", requires = "cut")]
    pub restore: Option<String>,
    /// How long each of these commands, and then the start, may take
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10 min",
        requires = "restore"
    )]
    pub back_within: String,
}
