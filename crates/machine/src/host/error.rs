//! Why a machine could not do something, and what to do about it.

use super::command::Output;
use super::needs::{Package, ProgramPart};
use super::tools;
use stackrace_base::event::{FailureCause, again_as_root, shell};
use stackrace_base::unit::{InWords, ShownPath};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The reason why a host could not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// A program is not installed.
    #[error("{tool} is not installed")]
    ToolMissing {
        /// Its name.
        tool: String,
        /// The package that holds it, where its owner named one.
        package: Option<Package>,
    },
    /// A part without which this program was built.
    #[error("this program was built without {}", .0.name)]
    NotBuilt(ProgramPart),
    /// Rights that this process lacks.
    #[error("this needs the rights of root")]
    NeedsRoot,
    /// The kernel does not know something.
    #[error("this kernel does not know {what}")]
    KernelLacks {
        /// `the file system xfs`, `loop devices`.
        what: String,
        /// The module that would have it, as `modprobe` takes it.
        module: String,
    },
    /// A thing that only the lab has.
    #[error("disks of the lab exist only in the lab")]
    OutsideLab,
    /// A server that is to be started runs there already, or its port is taken.
    #[error("{}{why}", on(host))]
    Occupied {
        /// The machine; `local` means this one.
        host: String,
        /// The one in the way, one clause.
        why: String,
    },
    /// A stack needs a second machine and there is none.
    #[error("there is no machine of number {node} for this stack")]
    NoPeer {
        /// Its number, from 2.
        node: usize,
    },
    /// Another machine could not do something.
    #[error("{host}: {said}")]
    Elsewhere {
        /// The machine, as the user named it.
        host: String,
        /// The answer of that machine, in its own words.
        said: String,
        /// Advice about it.
        next: String,
        /// Kind of error.
        kind: ErrorKind,
    },
    /// A command could not be started.
    #[error("`{command}` could not be started: {cause}")]
    NotStarted {
        /// The command as it would be typed.
        command: String,
        /// The system's words.
        cause: String,
    },
    /// A command failed.
    #[error("`{command}` {}", failure(output))]
    Failed {
        /// The command as it would be typed.
        command: String,
        /// Its result.
        output: Output,
    },
    /// A command did not end within the limit it was given, and was ended.
    #[error("`{command}` did not end within {limit_s} s and was ended")]
    TimedOut {
        /// The command as it would be typed.
        command: String,
        /// Time that it was given, s.
        limit_s: u32,
    },
    /// A command that was to end and cannot be ended from here.
    #[error("`{command}` cannot be ended: its process {process} belongs to another user")]
    NotEnded {
        /// The command as it would be typed.
        command: String,
        /// Its number.
        process: i32,
    },
    /// A system call on a path failed.
    #[error("cannot {what} {}: {cause}", path.shown())]
    Path {
        /// `create directory`, `read` …
        what: &'static str,
        /// The file, directory or device.
        path: PathBuf,
        /// The system's words.
        cause: String,
        /// Kind of error.
        kind: ErrorKind,
        /// Number of the system's error; `None` if it is not one of the system's.
        errno: Option<i32>,
    },
    /// A command of the study that the user has not permitted, or that is not known.
    #[error("{why}")]
    Unpermitted {
        /// The command that is not run, why, and what to do.
        why: String,
    },
    /// A thing that was to be undone is there all the same: not at its path, but elsewhere.
    #[error("it is not gone: {why}")]
    Moved {
        /// The path that it was made at.
        path: PathBuf,
        /// The place where it is, one clause.
        why: String,
        /// The command that cleans it, after what has to be done first.
        next: String,
    },
    /// A thing that must not be removed.
    #[error("{} is not removed: {why}", path.shown())]
    NotOurs {
        /// The file, directory or device.
        path: PathBuf,
        /// The reason why it is not touched.
        why: String,
    },
}

/// Exit status of timeout(1) for a command that it ended.
const TIMED_OUT: i32 = 124;

impl HostError {
    /// A command that failed.
    pub fn failed(argv: &[OsString], output: Output) -> Self {
        Self::Failed {
            command: shell(argv),
            output,
        }
    }

    /// A command that failed after so many ns, or that timeout(1) ended if it began with it.
    pub fn failed_after(argv: &[OsString], output: Output, took_ns: u64) -> Self {
        let mut words = argv.iter().skip_while(|word| *word != "timeout");
        let limit = words
            .nth(1)
            .and_then(|word| word.to_str()?.parse::<u32>().ok());
        // A command may end with that status by itself, early.
        let ended = |limit_s: &u32| {
            output.status == Some(TIMED_OUT) && took_ns >= u64::from(*limit_s) * 1_000_000_000
        };
        match limit.filter(ended) {
            Some(limit_s) => Self::TimedOut {
                command: shell(argv),
                limit_s,
            },
            None => Self::failed(argv, output),
        }
    }

    /// A failed system call.
    pub fn path(what: &'static str, path: &Path, error: impl Into<std::io::Error>) -> Self {
        let error = error.into();
        Self::Path {
            what,
            path: path.to_path_buf(),
            kind: error.kind(),
            errno: error.raw_os_error(),
            cause: error.in_words(),
        }
    }

    /// The system's words, if something is there that it could not look at: a file system that gave up, a path that is no way.
    pub fn unreadable(&self) -> Option<&str> {
        let absent = [ErrorKind::NotFound, ErrorKind::NotADirectory];
        match self {
            Self::Path {
                errno: Some(_),
                kind,
                cause,
                ..
            } if !absent.contains(kind) => Some(cause),
            _ => None,
        }
    }

    /// Its cause as a value of the system's; `None` if that is none.
    pub fn cause(&self) -> Option<FailureCause> {
        match self {
            Self::Path { errno, .. } => errno.map(FailureCause::Errno),
            Self::Failed { command, output } => Some(FailureCause::Command {
                command: command.clone(),
                status: output.status,
            }),
            Self::TimedOut { command, .. } => Some(FailureCause::Command {
                command: command.clone(),
                status: Some(TIMED_OUT),
            }),
            _ => None,
        }
    }

    /// Returns true if a package that is known mends it.
    pub fn in_package(&self) -> bool {
        matches!(self, Self::ToolMissing { tool, package }
            if package.is_some() || tools::package(tool).is_some())
    }

    /// Advice to the user about it: one sentence that begins with a verb; empty if there is nothing
    /// better than what the system said.
    pub fn next(&self) -> String {
        match self {
            Self::ToolMissing { tool, package } => {
                let name = package.map(|package| package.name);
                match (package.and_then(|package| package.only_on), name.or(tools::package(tool))) {
                    (Some(system), name) => format!(
                        "install it (apt install {}), or run the study on a system that has it: \
                         stackrace run STUDY --lab --system {system}",
                        name.unwrap_or(tool)
                    ),
                    (None, Some(name)) => format!("install it: apt install {name}"),
                    (None, None) => format!("install the package that holds {tool}"),
                }
            }
            Self::NotBuilt(_) => "build it with all parts: cargo install --path . --features full".to_string(),
            Self::NeedsRoot => as_root(),
            Self::KernelLacks { what, module } => {
                format!("use a kernel that has {what} (module {module})")
            }
            Self::OutsideLab => "run the study in the lab: stackrace run STUDY --lab".to_string(),
            Self::Occupied { .. } => {
                "stop it, or run the study in the lab (stackrace run STUDY --lab); \
                if it is of another stack of this run, let them stand one after the other: \
                provision = \"each-round\""
                    .to_string()
            }
            Self::NoPeer { .. } => {
                "name the others: --peer [USER@]HOST; or run the study in the lab, which has as many as it needs: stackrace run STUDY --lab"
                    .to_string()
            }
            Self::Elsewhere { next, .. } => next.clone(),
            Self::NotStarted { .. } => String::new(),
            Self::NotEnded { process, .. } => format!("sudo kill -- -{process}"),
            Self::Failed { output, .. } if output.stderr.contains("ermission denied") => {
                as_root()
            }
            // mount(8) of util-linux before 2.40 cannot say what the kernel disliked.
            Self::Failed { output, .. } if output.stderr.contains("dmesg(1)") => {
                "check the mount options; the kernel's own words: dmesg | tail".to_string()
            }
            Self::Failed { .. } => String::new(),
            Self::TimedOut { .. } => {
                "see what it waits for; let it start in the background what takes longer, or raise the limit: limit = \"30 min\" beside the command".to_string()
            }
            Self::Path { kind, path, .. } => match kind {
                ErrorKind::PermissionDenied => {
                    format!("run as a user who may write to {}", path.shown())
                }
                ErrorKind::StorageFull => "free some space, or ask for less".to_string(),
                ErrorKind::FileTooLarge => {
                    "raise the limit on the size of a file (ulimit -f), or ask for less".to_string()
                }
                _ => String::new(),
            },
            Self::Unpermitted { .. } => String::new(),
            Self::Moved { next, .. } => next.clone(),
            Self::NotOurs { .. } => "look at it and remove it yourself".to_string(),
        }
    }

    /// Debian's package with the program that is missing, where that is known.
    pub fn package(&self) -> Option<Package> {
        match self {
            Self::ToolMissing { tool, package } => {
                let known = tools::package(tool).map(|name| Package::new(name, &[]));
                package.or(known)
            }
            _ => None,
        }
    }

    /// Returns true if it is about something that was moved or hidden.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Moved { .. })
    }

    /// Returns true if something was in the way that was there before.
    pub fn is_already_there(&self) -> bool {
        matches!(
            self,
            Self::Path {
                kind: ErrorKind::AlreadyExists,
                ..
            } | Self::Elsewhere {
                kind: ErrorKind::AlreadyExists,
                ..
            }
        )
    }
}

fn as_root() -> String {
    format!("run it as root: {}", again_as_root())
}

/// The outcome of a failed command and its words, for `` `COMMAND` … ``.
fn failure(output: &Output) -> String {
    let said = match (output.stderr.trim(), output.stdout.trim()) {
        ("", "") => "it printed nothing",
        ("", said) | (said, _) => said,
    };
    match output.status {
        Some(status) => format!("failed with exit status {status}: {said}"),
        None => format!("was ended by a signal: {said}"),
    }
}

/// The name of a machine before its words; this machine needs none.
fn on(host: &str) -> String {
    match host {
        "local" => String::new(),
        host => format!("{host}: "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_says_what_to_install() {
        let missing = |tool: &str, package| {
            let tool = tool.to_string();
            HostError::ToolMissing { tool, package }.next()
        };
        assert_eq!(
            missing("wipefs", None),
            "install it: apt install util-linux"
        );
        let package = Package::new("xfsprogs", &["mkfs.xfs"]);
        assert_eq!(
            missing("mkfs.xfs", Some(package)),
            "install it: apt install xfsprogs"
        );
        let package = Package {
            only_on: Some("debian-13"),
            ..package
        };
        assert!(missing("mkfs.xfs", Some(package)).ends_with("--lab --system debian-13"));
    }

    #[test]
    fn a_command_that_its_limit_ended_says_so_and_one_that_failed_with_that_status_does_not() {
        let ended = Output {
            status: Some(124),
            stdout: String::new(),
            stderr: String::new(),
        };
        let words = |line: &str| super::super::argv(line.split(' '));
        let limited = HostError::failed_after(
            &words("env A=1 timeout 900 sh -c x"),
            ended.clone(),
            900_000_000_000,
        );
        assert_eq!(
            limited.to_string(),
            "`env A=1 timeout 900 sh -c x` did not end within 900 s and was ended"
        );
        assert!(limited.cause().is_some() && !limited.next().is_empty());
        let own = HostError::failed_after(&words("sh -c x"), ended.clone(), u64::MAX);
        assert!(matches!(own, HostError::Failed { .. }), "{own}");
        let soon = HostError::failed_after(&words("timeout 900 sh -c x"), ended.clone(), 1);
        assert!(matches!(soon, HostError::Failed { .. }), "{soon}");
        let failed = Output {
            status: Some(1),
            ..ended
        };
        let early = HostError::failed_after(&words("timeout 900 sh -c x"), failed, u64::MAX);
        assert!(matches!(early, HostError::Failed { .. }), "{early}");
    }
}
