//! Other machines, as they were typed.

use clap::Args;

use super::{AgentArgs, ClientsArgs};
use stackrace_places::place::machine_options::{MachineOptions, SshOptions};

/// Which other machines a command works on.
#[derive(Debug, Args)]
pub(in crate::cli) struct There {
    /// Work on this machine over SSH; this program is copied there, nothing else is needed. Given
    /// several times, the machines are compared; `here` is this one
    #[arg(long, value_name = "[USER@]HOST[:PORT]")]
    pub(in crate::cli) on: Vec<String>,
    /// Another machine of a stack that needs several (drbd, gfs2, a share), over SSH; may be given
    /// several times. ADDRESS: where the stack's own traffic goes [default: where SSH goes]
    #[arg(long = "peer", value_name = "[USER@]HOST[:PORT][=ADDRESS]")]
    pub(in crate::cli) peers: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) agent: AgentArgs,
    #[command(flatten)]
    pub(in crate::cli) clients: ClientsArgs,
    #[command(flatten)]
    pub(in crate::cli) reach: Reach,
}

impl There {
    /// Which machines these are.
    pub(in crate::cli) fn options(&self) -> MachineOptions<'_> {
        MachineOptions {
            on: &self.on,
            peers: &self.peers,
            clients: self.clients.options(),
            agentless: self.agent.is_none(),
            ssh: self.reach.options(),
        }
    }
}

/// Ways to other machines.
#[derive(Debug, Args)]
pub(in crate::cli) struct Reach {
    /// The ssh command with its options, words separated by spaces [default: $STACKRACE_SSH, or ssh]
    // Apart from its default: typed where no machine is reached, it is refused, and a variable is not.
    #[arg(long, value_name = "COMMAND")]
    ssh: Option<String>,
    /// The same for every command of a shell
    #[arg(
        long,
        hide = true,
        env = "STACKRACE_SSH",
        hide_env = true,
        default_value = "ssh"
    )]
    ssh_always: String,
    /// Use sudo on the other machines; it must not ask for a password
    #[arg(long)]
    pub(in crate::cli) sudo: bool,
}

impl Reach {
    /// The ssh command and its rights, as the session takes them.
    pub(in crate::cli) fn options(&self) -> SshOptions<'_> {
        SshOptions {
            command: self.ssh.as_deref().unwrap_or(&self.ssh_always),
            typed: self.ssh.is_some(),
            sudo: self.sudo,
        }
    }
}
