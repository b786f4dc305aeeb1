//! How the power of a real machine is cut, as it was typed.

use std::time::Duration;

use clap::Args;

use crate::cli::failure::Failure;
use stackrace_base::unit;
use stackrace_places::place::machine_options::PowerOptions;

/// Commands that take the power of a machine and give it back.
#[derive(Debug, Args)]
pub(in crate::cli) struct PowerArgs {
    /// For a study that cuts the power, with --on: the command that does so on that machine. It is
    /// run here, by sh: `ipmitool … chassis power off`, a switched outlet, `virsh destroy`
    #[arg(long, value_name = "COMMAND", requires = "restore")]
    cut: Option<String>,
    /// The command that starts that machine again
    #[arg(long, value_name = "COMMAND", requires = "cut")]
    restore: Option<String>,
    /// How long each of these commands, and then the start, may take
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10 min",
        requires = "restore"
    )]
    back_within: String,
}

impl PowerArgs {
    /// As the session takes them; none: no power is really cut.
    ///
    /// # Errors
    /// The time is none.
    pub(in crate::cli) fn options(&self) -> Result<Option<PowerOptions<'_>>, Failure> {
        let within = unit::parse_lasting_ns(&self.back_within);
        let within = within.map_err(|why| Failure::usage(format!("--back-within: {why}")))?;
        // clap has them go together.
        let both = self.cut.as_deref().zip(self.restore.as_deref());
        Ok(both.map(|(cut, restore)| PowerOptions {
            cut,
            restore,
            within: Duration::from_nanos(within),
        }))
    }
}
