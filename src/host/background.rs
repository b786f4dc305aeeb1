//! Processes that are not waited for: started to go on by themselves, or found and asked to stop.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{HostError, shown};

/// A program that goes on when this one ends.
#[derive(Debug)]
pub(crate) struct Background {
    child: Child,
}

impl Background {
    /// Starts a program in this process's directory. What it says goes into `said`; Ctrl-C on our
    /// terminal does not reach it.
    ///
    /// # Errors
    /// It cannot be started.
    #[expect(
        clippy::disallowed_methods,
        reason = "this room starts processes; this one is its own record"
    )]
    pub(crate) fn start(argv: &[OsString], said: &File) -> Result<Self, HostError> {
        let failed = |error: std::io::Error| HostError::NotStarted {
            command: shown(argv),
            cause: error.to_string(),
        };
        let (program, arguments) = argv
            .split_first()
            .ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
        let child = std::process::Command::new(program)
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(said.try_clone().map_err(failed)?)
            .stderr(said.try_clone().map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        Ok(Self { child })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, in words; none: it goes on.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(match (status.code(), status.signal()) {
            (Some(0), _) => "It ended well.".to_owned(),
            (Some(code), _) => format!("It ended with exit code {code}."),
            (None, signal) => format!("It was ended by signal {}.", signal.unwrap_or(0)),
        })
    }
}

/// Sends SIGINT, as Ctrl-C does, to a process that has a file open; to another one that has come to
/// its number meanwhile, never.
///
/// # Errors
/// There is no such process, it does not have the file open as far as we may see, or the system
/// refuses; one sentence.
pub(crate) fn interrupt_holder(pid: u32, file: &Path) -> Result<(), String> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| format!("{pid} is no process"))?;
    // Held from here on, so that the number cannot come to mean another process.
    let held = pidfd_open(number, PidfdFlags::empty())
        .map_err(|errno| format!("process {pid} cannot be reached: {errno}"))?;
    let wanted = std::fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .map_err(|error| format!("process {pid} cannot be looked at: {error}"))?;
    let holds = open.flatten().any(|entry| {
        std::fs::metadata(entry.path())
            .is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
    });
    if !holds {
        return Err(format!(
            "process {pid} does not have {} open",
            file.display()
        ));
    }
    pidfd_send_signal(&held, Signal::INT)
        .map_err(|errno| format!("process {pid} cannot be signalled: {errno}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(words: &[&str]) -> (Background, tempfile::NamedTempFile) {
        let said = tempfile::NamedTempFile::new().unwrap();
        let argv: Vec<OsString> = words.iter().map(Into::into).collect();
        (Background::start(&argv, said.as_file()).unwrap(), said)
    }

    fn wait(background: &mut Background) -> String {
        loop {
            if let Some(ended) = background.ended() {
                return ended;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_a_program_says_and_how_it_ended_is_kept() {
        let (mut background, said) = started(&["/bin/sh", "-c", "echo out; echo err >&2; exit 3"]);
        assert_eq!(wait(&mut background), "It ended with exit code 3.");
        assert_eq!(std::fs::read_to_string(said.path()).unwrap(), "out\nerr\n");
        assert!(Background::start(&["/nowhere".into()], said.as_file()).is_err());
    }

    #[test]
    fn only_the_process_that_holds_the_file_is_stopped() {
        // Who starts us in the background may have SIGINT ignored, and that is inherited.
        let sleeper = ["/usr/bin/env", "--default-signal=INT", "sleep", "1000"];
        let (mut background, said) = started(&sleeper);
        let other = tempfile::NamedTempFile::new().unwrap();
        let refused = interrupt_holder(background.pid(), other.path()).unwrap_err();
        assert!(refused.contains("does not have"), "{refused}");
        assert_eq!(background.ended(), None);
        // Its standard output is the file.
        interrupt_holder(background.pid(), said.path()).unwrap();
        assert_eq!(wait(&mut background), "It was ended by signal 2.");
        assert!(interrupt_holder(background.pid(), said.path()).is_err());
    }
}
