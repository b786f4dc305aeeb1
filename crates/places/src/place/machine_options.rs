//! Other machines, as the command line names them.

use stackrace_base::failure::Failure;
use stackrace_machine::host::HostError;
use stackrace_remote::agent::ssh::{Destination, StopAsked, Way};
use std::time::Duration;

/// Ways to machines over SSH, as the command line gives them.
#[derive(Debug, Clone, Copy)]
pub struct SshOptions<'a> {
    /// The ssh command, words separated by spaces.
    pub command: &'a str,
    /// True if the command line itself says so.
    pub typed: bool,
    /// True to be root there, by sudo.
    pub sudo: bool,
}

impl SshOptions<'_> {
    /// Options that name something on the command line and say how it is reached.
    pub fn naming(&self, option: &str, named: &str) -> Vec<String> {
        let mut all = vec![option, named];
        if self.typed {
            all.extend(["--ssh", self.command]);
        }
        if self.sudo {
            all.push("--sudo");
        }
        all.into_iter().map(str::to_owned).collect()
    }

    /// The way to a machine; `option` is the one that names it.
    pub fn way(&self, option: &str, on: &str) -> Result<Way, Failure> {
        let to = Destination::parse(on);
        let to = to.map_err(|why| Failure::usage(format!("{option}: {why}")))?;
        // No shell reads this: quotes would be part of a word.
        let ssh: Vec<String> = self.command.split_whitespace().map(str::to_owned).collect();
        if ssh.is_empty() {
            return Err(Failure::usage("--ssh names no command").next("--ssh \"ssh -i KEY\""));
        }
        let sudo = self.sudo;
        Ok(Way {
            named_by: self.naming(option, on),
            to,
            ssh,
            sudo,
            silence_s: None,
            launcher: None,
            stop: StopAsked::default(),
        })
    }
}

/// The clients of one storage, as the command line names them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientsOptions<'a> {
    /// Launcher and names of the clients: `ssh:a,b`; `None` if this is not measured by clients.
    pub started: Option<&'a str>,
    /// Processes on each; `None` for one, or as many as the study needs.
    pub processes: Option<u32>,
    /// The nodes of the Slurm allocation that this runs in; `None` if it runs in none.
    pub allocation: Option<&'a str>,
}

/// Commands that cut the power of a real machine, as the command line gives them.
#[derive(Debug, Clone, Copy)]
pub struct PowerOptions<'a> {
    /// The command that cuts it.
    pub cut: &'a str,
    /// The command that starts the machine again.
    pub restore: &'a str,
    /// Time that either command, and then the machine, may take.
    pub within: Duration,
}

/// Machines that the command line names.
#[derive(Debug, Clone, Copy)]
pub struct MachineOptions<'a> {
    /// Machines that a study is tried on.
    pub on: &'a [String],
    /// The other machines of its stacks.
    pub peers: &'a [String],
    /// The clients of one storage.
    pub clients: ClientsOptions<'a>,
    /// True if nothing of this program is put on those a study is tried on: see `agent::shell`.
    pub agentless: bool,
    /// The way in which all of them are reached.
    pub ssh: SshOptions<'a>,
}

/// A failure on another machine, with what can be done about it.
pub fn unable(error: HostError) -> Failure {
    Failure::unable(error.to_string()).next(error.next())
}
