//! A command that is run to its end: what it printed and how it ended.

use super::{Output, process, tools};
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use stackrace_system::PLACE_ONLY;
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Most bytes kept of each of a command's two outputs; what comes after is read and counted.
pub const OUTPUT_MAX: u64 = 64 * 1024;

/// Number of times that a command is begun again that a signal ended before it began.
const SIGNALLED_TRIES: usize = 3;

/// Longest wait for the end of an output whose command has ended: what it left in the background may keep it open as
/// long as a server lives.
const LEFT_OPEN: Duration = Duration::from_secs(2);

/// What was read of an output so far.
#[derive(Default)]
struct KeptOutput {
    bytes: Vec<u8>,
    /// Bytes that came after those that are kept.
    rest: u64,
}

/// An output that is read to its end on a thread of its own: a full pipe would stop the command.
struct ReadOutput {
    kept: Arc<Mutex<KeptOutput>>,
    ended: Receiver<()>,
}

impl ReadOutput {
    /// Begins to read; `most` bytes are kept.
    fn of(mut stream: impl Read + Send + 'static, most: u64) -> std::io::Result<Self> {
        let (sender, ended) = channel();
        let kept = Arc::new(Mutex::new(KeptOutput::default()));
        let so_far = Arc::clone(&kept);
        std::thread::Builder::new().spawn(move || {
            let mut buffer = [0; 8192];
            // An error while reading a pipe ends what can be known of the output; it is no failure of the
            // command, whose status speaks for itself.
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                let mut kept = so_far.lock();
                let room = (most as usize).saturating_sub(kept.bytes.len()).min(count);
                kept.bytes.extend(&buffer[..room]);
                kept.rest += (count - room) as u64;
            }
            // Not awaited any more where something keeps it open.
            let _ = sender.send(());
        })?;
        Ok(Self { kept, ended })
    }

    /// What was read, with how much was left out; true if something still keeps it open, whose command has ended.
    fn text(self) -> (String, bool) {
        // Without its sender it has ended, too.
        let open = self.ended.recv_timeout(LEFT_OPEN) == Err(RecvTimeoutError::Timeout);
        let kept = self.kept.lock();
        let mut text = String::from_utf8_lossy(&kept.bytes).into_owned();
        if kept.rest > 0 {
            text.push_str(&format!("\n[{} more bytes were not kept]\n", kept.rest));
        }
        (text, open)
    }
}

/// A private directory that is removed already: nothing is in it, and nothing can be made in it. A
/// word that a tool takes for a relative path leads nowhere from there.
fn nowhere() -> std::io::Result<OwnedFd> {
    let dir = tempfile::Builder::new().prefix(".stackrace-").tempdir()?;
    let flags = PLACE_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = rustix::fs::open(dir.path(), flags, Mode::empty())?;
    // Removed while it is held: an empty directory that nothing can be put into.
    dir.close()?;
    Ok(held)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that starts processes"
)]
fn run_once(
    program: &Path,
    arguments: &[OsString],
    mark: Option<&str>,
    most: u64,
) -> std::io::Result<(Output, Option<i32>)> {
    let nowhere = tools::formats(program).then(nowhere).transpose()?;
    let at = |dir: &OwnedFd| PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
    let mut start = std::process::Command::new(program);
    start
        .args(arguments)
        .env("LC_ALL", "C")
        // For tools that start others.
        .env("PATH", tools::path())
        .envs(mark.map(|mark| (process::MARK, mark)))
        .current_dir(nowhere.as_ref().map_or(PathBuf::from("/"), at))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = process::own(|| start.spawn())?;
    let _awaited = process::AwaitedCommand::of(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Both at once: a command that fills one pipe while the other is read would wait forever.
    let stdout = stdout.map(|pipe| ReadOutput::of(pipe, most)).transpose();
    let stderr = stderr.map(|pipe| ReadOutput::of(pipe, most)).transpose();
    let status = child.wait()?;
    let text = |read: Option<ReadOutput>| read.map(ReadOutput::text).unwrap_or_default();
    let ((stdout, one), (mut stderr, other)) = (text(stdout?), text(stderr?));
    if one || other {
        stderr.push_str(
            "\n[a process that the command left in the background keeps its output: what that says is not kept]\n",
        );
    }
    let output = Output {
        status: status.code(),
        stdout,
        stderr,
    };
    Ok((output, status.signal()))
}

/// What a command printed that only looks at this machine: it is on no record, because it is asked around each trial.
pub(super) fn unrecorded(program: &Path, arguments: &[OsString]) -> std::io::Result<String> {
    run(program, arguments, None, OUTPUT_MAX).map(|output| output.stdout)
}

/// Runs a command that Ctrl-C cannot reach. A new process belongs to our group for a moment until
/// it has one of its own; a signal to the group in that moment ends it before its program has
/// begun, so that beginning again is right.
pub(super) fn run(
    program: &Path,
    arguments: &[OsString],
    mark: Option<&str>,
    most: u64,
) -> std::io::Result<Output> {
    for _ in 0..SIGNALLED_TRIES {
        let (output, signal) = run_once(program, arguments, mark, most)?;
        // A signal meant for this program that came before the command had its own process group.
        let ours = [Signal::INT, Signal::TERM, Signal::HUP].map(Signal::as_raw);
        if !signal.is_some_and(|signal| ours.contains(&signal)) {
            return Ok(output);
        }
    }
    run_once(program, arguments, mark, most).map(|(output, _)| output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(script: &str, most: u64) -> Output {
        let words = ["-c", script].map(OsString::from);
        run(Path::new("/bin/sh"), &words, None, most).unwrap()
    }

    /// Without an end of its own it would be waited for as long as that lives.
    #[test]
    fn what_a_command_leaves_in_the_background_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("id");
        let output = of(
            &format!("echo begun; sleep 1061 & echo $! > {}", file.display()),
            OUTPUT_MAX,
        );
        assert_eq!((output.status, &*output.stdout), (Some(0), "begun\n"));
        assert!(output.stderr.contains("left in the background"));
        of(&format!("kill $(cat {})", file.display()), OUTPUT_MAX);
    }

    #[test]
    fn as_much_is_kept_as_was_asked_for() {
        assert_eq!(of("printf 12345", 5).stdout, "12345");
        let cut = of("printf 12345", 3).stdout;
        assert_eq!(cut, "123\n[2 more bytes were not kept]\n");
    }
}
