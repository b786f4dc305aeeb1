//! Why another machine is not reached, or this program cannot be there; and what to do about it.

use super::destination::Destination;
use stackrace_base::event::again;
use stackrace_machine::host::HostError;

/// Reasons there is no line to a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshError {
    /// This machine cannot start ssh.
    #[error("{0}")]
    Here(HostError),
    /// ssh did not get there.
    #[error("cannot reach {to}: {}", quoted(.said))]
    Unreached {
        /// The machine, as the user named it.
        to: Destination,
        /// Text it printed.
        said: String,
    },
    /// The machine is of another kind.
    #[error("{to} is {there}, this program is for {here}: it cannot run there")]
    Unlike {
        /// The machine, as the user named it.
        to: Destination,
        /// System and processor there.
        there: String,
        /// System and processor here.
        here: String,
    },
    /// This program needs a newer C library.
    #[error("this program needs glibc {needs}, {to} has {has}: it cannot run there")]
    Libc {
        /// The machine, as the user named it.
        to: Destination,
        /// The C library the program needs.
        needs: String,
        /// The version of glibc on that machine.
        has: String,
    },
    /// This program could not be copied there.
    #[error("cannot copy this program to {to}: {}", quoted(.said))]
    NotCopied {
        /// The machine, as the user named it.
        to: Destination,
        /// Words that were said there.
        said: String,
    },
    /// The copy does not run.
    #[error("this program does not run on {to}: {}", quoted(.said))]
    NotRunning {
        /// The machine, as the user named it.
        to: Destination,
        /// Words that were said there.
        said: String,
    },
    /// `sudo` wants a password, or is not there.
    #[error("cannot be root on {to}: {}", quoted(.said))]
    Sudo {
        /// The machine, as the user named it.
        to: Destination,
        /// Text it printed.
        said: String,
    },
    /// The login did not come to its end.
    #[error("{to} does not answer: its login said nothing for a minute, or did not end in three: {}", quoted(.said))]
    Silent {
        /// The machine, as the user named it.
        to: Destination,
        /// Words that were said there.
        said: String,
    },
    /// The user stopped it.
    #[error("stopped before {to} had answered: nothing was begun there")]
    Stopped {
        /// The machine, as the user named it.
        to: Destination,
    },
    /// The line ended.
    #[error("Lost the connection to {to}: {}", quoted(.said))]
    Ended {
        /// Destination that was tried.
        to: Destination,
        /// ssh's words, or those of the shell there.
        said: String,
    },
    /// The answer there comes from no shell that can be used.
    #[error("{to} has no POSIX sh with a process group of its own: {}", quoted(.said))]
    NoShell {
        /// The machine, as the user named it.
        to: Destination,
        /// The command line that tries it.
        by_hand: String,
        /// Words that were said there.
        said: String,
    },
    /// Commands there have nothing to read from or to write to.
    #[error("{to} has no /dev/null: no command can be run there")]
    NoNull {
        /// The machine, as the user named it.
        to: Destination,
    },
    /// Nothing there can time a program.
    #[error("{to} has neither `time -p` nor `date +%s`: no program can be timed there")]
    NoTimer {
        /// The machine, as the user named it.
        to: Destination,
    },
}

/// Way to make a program that needs no C library.
const STATIC: &str = "use a stackrace that was built on that distribution or an older one, or statically: \
                      RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu";

impl SshError {
    /// Advice for the user.
    pub fn next(&self) -> String {
        match self {
            Self::Here(error) => error.next(),
            Self::Unreached { to, said } => unreached(to, said),
            Self::Unlike { .. } => {
                "run a stackrace that was built for that machine there, and `stackrace import` or copy its run"
                    .to_string()
            }
            Self::Libc { .. } => STATIC.to_string(),
            Self::NotCopied { .. } => {
                "make room there, or let the user write to ~/.cache and ~/.local/state".to_string()
            }
            Self::NotRunning { said, .. } if said.contains("Permission denied") => {
                "~/.cache there may be mounted noexec: set XDG_CACHE_HOME there to a directory that is not"
                    .to_string()
            }
            Self::NotRunning { .. } => STATIC.to_string(),
            Self::Sudo { to, .. } => format!(
                "log in as root: --on {}; or let sudo ask no password there",
                to.as_root()
            ),
            Self::NoShell { by_hand, .. } => {
                format!("this must print `own` alone: {by_hand}; where it prints nothing, install setsid there")
            }
            Self::NoNull { .. } => {
                "make it there; in a root directory of its own, Linux does it with: mknod -m 666 dev/null c 1 3".to_string()
            }
            Self::NoTimer { .. } => "install time(1) there".to_string(),
            Self::Silent { to, .. } => unreached(to, ""),
            Self::Stopped { .. } => String::new(),
            Self::Ended { to, .. } => {
                format!(
                    "see that nothing is left there: {}",
                    again(&["clean", "--on", &to.to_string()])
                )
            }
        }
    }
}

/// Advice on a failure of ssh's own, by its words.
fn unreached(to: &Destination, said: &str) -> String {
    let by_hand = match to.port {
        Some(port) => format!("ssh -p {port} {}", to.login),
        None => format!("ssh {}", to.login),
    };
    if said.contains("Permission denied") {
        format!(
            "put your key there (ssh-copy-id), load it (ssh-add), or name it: --ssh \"ssh -i KEY\"; `{by_hand} true` must work without a question"
        )
    } else if said.contains("Host key verification failed") {
        format!("connect once by hand and compare its key: {by_hand}")
    } else if said.contains("Could not resolve") {
        "check the name, or add it to ~/.ssh/config".to_string()
    } else if said.contains("refused") || said.contains("timed out") {
        "see that sshd runs there and listens on that port; another one is HOST:PORT".to_string()
    } else {
        format!("`{by_hand} true` must work without a question")
    }
}

/// The words, as a part of a sentence.
fn quoted(said: &str) -> &str {
    match said {
        "" => "nothing was said",
        said => said.trim_end_matches('.'),
    }
}
