//! Other machines, as they were typed.

use clap::Args;

use super::{AgentArgs, ClientsArgs};

/// Which other machines a command works on.
#[derive(Debug, Args)]
pub struct There {
    /// Work on this machine over SSH; this program is copied there, nothing else is needed. Given
    /// several times, the machines are compared; `here` is this one
    #[arg(long, value_name = "[USER@]HOST[:PORT]")]
    pub on: Vec<String>,
    /// Another machine of a stack that needs several (drbd, gfs2, a share), over SSH; may be given
    /// several times. ADDRESS: where the stack's own traffic goes [default: where SSH goes]
    #[arg(long = "peer", value_name = "[USER@]HOST[:PORT][=ADDRESS]")]
    pub peers: Vec<String>,
    /// Program that is put there.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// The clients of one storage.
    #[command(flatten)]
    pub clients: ClientsArgs,
    /// Ways to other machines.
    #[command(flatten)]
    pub reach: Reach,
}

/// The way in which the user logs in elsewhere.
#[derive(Debug, Args)]
pub struct SshCommand {
    /// The ssh command with its options, words separated by spaces [default: $STACKRACE_SSH, or ssh]
    // Apart from its default: typed where no machine is reached, it is refused, and a variable is not.
    #[arg(long, value_name = "COMMAND")]
    pub ssh: Option<String>,
    /// The same for every command of a shell
    #[arg(
        long,
        hide = true,
        env = "STACKRACE_SSH",
        hide_env = true,
        default_value = "ssh"
    )]
    pub ssh_always: String,
}

impl SshCommand {
    /// Its words, separated by spaces.
    pub fn words(&self) -> &str {
        self.ssh.as_deref().unwrap_or(&self.ssh_always)
    }
}

/// Ways to other machines.
#[derive(Debug, Args)]
pub struct Reach {
    /// The way in which the user logs in there.
    #[command(flatten)]
    pub ssh: SshCommand,
    /// Use sudo on the other machines; it must not ask for a password
    #[arg(long)]
    pub sudo: bool,
}
