//! A command that is run to its end: what it printed and how it ended.

use super::{Output, process, tools};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use stackrace_system::PLACE_ONLY;
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Most bytes kept of each of a command's two outputs; what comes after is read and counted.
pub const OUTPUT_MAX: u64 = 64 * 1024;

/// Number of times that a command is begun again that a signal ended before it began.
const SIGNALLED_TRIES: usize = 3;

/// Reads to the end, keeps the beginning and says how much was left out.
fn kept(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    // An error while reading a pipe ends what can be known of the output; it is no failure of the
    // command, whose status speaks for itself.
    let _ = stream.by_ref().take(OUTPUT_MAX).read_to_end(&mut bytes);
    // Read to the end: a full pipe would stop the command.
    let rest = std::io::copy(&mut stream, &mut std::io::sink()).unwrap_or(0);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if rest > 0 {
        text.push_str(&format!("\n[{rest} more bytes were not kept]\n"));
    }
    text
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
    let (stdout, stderr) = std::thread::scope(|scope| {
        // Both at once: a command that fills one pipe while the other is read would wait forever.
        let errors = scope.spawn(|| stderr.map(kept).unwrap_or_default());
        let stdout = stdout.map(kept).unwrap_or_default();
        (stdout, errors.join().unwrap_or_default())
    });
    let status = child.wait()?;
    let output = Output {
        status: status.code(),
        stdout,
        stderr,
    };
    Ok((output, status.signal()))
}

/// What a command printed that only looks at this machine: it is on no record, because it is asked around each trial.
pub(super) fn unrecorded(program: &Path, arguments: &[OsString]) -> std::io::Result<String> {
    run(program, arguments, None).map(|output| output.stdout)
}

/// Runs a command that Ctrl-C cannot reach. A new process belongs to our group for a moment until
/// it has one of its own; a signal to the group in that moment ends it before its program has
/// begun, so that beginning again is right.
pub(super) fn run(
    program: &Path,
    arguments: &[OsString],
    mark: Option<&str>,
) -> std::io::Result<Output> {
    for _ in 0..SIGNALLED_TRIES {
        let (output, signal) = run_once(program, arguments, mark)?;
        // A signal meant for this program that came before the command had its own process group.
        let ours = [Signal::INT, Signal::TERM, Signal::HUP].map(Signal::as_raw);
        if !signal.is_some_and(|signal| ours.contains(&signal)) {
            return Ok(output);
        }
    }
    run_once(program, arguments, mark).map(|(output, _)| output)
}
