//! A program that goes on while this one does something else: a virtual machine, a command that is
//! followed. Like every command it has a process group of its own, which Ctrl-C does not reach.

use super::{HostError, shown, tools};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};

/// What a program's input and outputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams<'a> {
    /// No input; both outputs go to a new file in the directory it works in.
    File(&'a str),
    /// No input; standard output and standard error go to two new files.
    Files(&'a Path, &'a Path),
    /// Those of this program: it is used at the terminal, and shares its process group.
    Ours,
}

/// A program under way. Dropping it leaves it running.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    command: String,
}

impl Process {
    /// Starts a program in a directory.
    ///
    /// # Errors
    /// When it is missing or cannot be started.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the room that starts processes"
    )]
    pub(crate) fn start(
        command: &[OsString],
        directory: &Path,
        streams: Streams<'_>,
    ) -> Result<Self, HostError> {
        let words = shown(command);
        let not_started = |error: std::io::Error| HostError::NotStarted {
            command: words.clone(),
            cause: error.to_string(),
        };
        let tool = command.first().map(OsString::as_os_str).unwrap_or_default();
        let tool = tool.to_string_lossy();
        let program = if Path::new(&*tool).is_absolute() {
            PathBuf::from(&*tool)
        } else {
            tools::find(&tool).ok_or_else(|| HostError::ToolMissing {
                tool: tool.clone().into_owned(),
            })?
        };
        let new = |path: &Path| std::fs::File::create(path).map(Stdio::from);
        let mut start = std::process::Command::new(program);
        start
            .args(command.iter().skip(1))
            .env("LC_ALL", "C")
            .current_dir(directory);
        match streams {
            Streams::File(name) => {
                let file = std::fs::File::create(directory.join(name)).map_err(not_started)?;
                let errors = file.try_clone().map_err(not_started)?;
                start.stdin(Stdio::null()).stdout(file).stderr(errors);
                start.process_group(0);
            }
            Streams::Files(out, errors) => {
                start.stdin(Stdio::null());
                start.stdout(new(out).map_err(not_started)?);
                start.stderr(new(errors).map_err(not_started)?);
                start.process_group(0);
            }
            Streams::Ours => {}
        }
        let child = start.spawn().map_err(not_started)?;
        Ok(Self {
            child,
            command: words,
        })
    }

    /// As it would be typed.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// How it ended; none: it is running.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        // A child of ours that cannot be asked is gone.
        self.child.try_wait().unwrap_or_default()
    }

    /// Asks it to end, as Ctrl-C would.
    pub(crate) fn interrupt(&self) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            // One that has ended by itself is what was wanted.
            let _ = kill_process(id, Signal::INT);
        }
    }

    /// Ends it at once, whatever it is doing, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        // One that has ended by itself is what was wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes whose program is called `program…` and whose command line names a path.
pub(super) fn naming(program: &str, path: &Path) -> Vec<Pid> {
    let path = path.to_string_lossy();
    let processes = super::reading::list(Path::new("/proc")).unwrap_or_default();
    let ids = processes
        .iter()
        .filter_map(|name| name.to_str()?.parse::<i32>().ok());
    ids.filter(|id| {
        let file = PathBuf::from(format!("/proc/{id}/cmdline"));
        let Ok(text) = super::reading::text(&file) else {
            return false;
        };
        let mut words = text.split('\0');
        let name = words.next().map(Path::new).and_then(Path::file_name);
        name.and_then(OsStr::to_str)
            .is_some_and(|name| name.starts_with(program))
            && words.any(|word| word.contains(&*path))
    })
    .filter_map(Pid::from_raw)
    .collect()
}

/// Ends the processes [`naming`] finds; none is fine. True: none is left.
pub(super) fn end(program: &str, path: &Path) -> bool {
    for id in naming(program, path) {
        // One that ended meanwhile is what was wanted.
        let _ = kill_process(id, Signal::KILL);
    }
    naming(program, path).is_empty()
}

/// Asks the processes of a name (at most 15 characters, as the kernel keeps it) to end. True: none
/// is left; one that has ended and was not waited for counts as gone.
pub(super) fn ask_to_end(program: &str) -> bool {
    let processes = super::reading::list(Path::new("/proc")).unwrap_or_default();
    let ids = processes
        .iter()
        .filter_map(|name| name.to_str()?.parse::<i32>().ok());
    let mut left = false;
    for id in ids {
        let about = |what: &str| {
            super::reading::text(&PathBuf::from(format!("/proc/{id}/{what}"))).unwrap_or_default()
        };
        if about("comm").trim_end() == program && !about("status").contains("State:\tZ") {
            left = true;
            if let Some(id) = Pid::from_raw(id) {
                // One that ended meanwhile is what was wanted.
                let _ = kill_process(id, Signal::TERM);
            }
        }
    }
    !left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::argv;

    #[test]
    fn a_process_is_found_by_what_it_names_and_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark");
        std::fs::write(&mark, "").unwrap();
        let command = argv([OsStr::new("tail"), OsStr::new("-f"), mark.as_os_str()]);
        let mut process = Process::start(&command, dir.path(), Streams::File("out")).unwrap();
        // Until its program is loaded, a new process has the command line of this test.
        while naming("tail", &mark).is_empty() {
            std::thread::yield_now();
        }
        assert!(naming("qemu-system-", &mark).is_empty(), "another program");
        end("tail", &mark);
        let status = loop {
            match process.ended() {
                Some(status) => break status,
                None => std::thread::yield_now(),
            }
        };
        assert!(!status.success());
        assert!(end("tail", &mark));
    }
}
