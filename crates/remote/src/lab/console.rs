//! What a guest, its console and its QEMU say, as far as it is kept and waited for. A guest is a machine like any other:
//! it may say what it likes, and must not fill this machine's memory or disk, nor hold it up.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::command;
use super::error::LabError;
use stackrace_base::unit::{self, ShownPath};

/// Last lines of a guest that an error names.
const LAST_LINES: usize = 12;
/// Bytes of them that are looked at.
const LAST_BYTES: u64 = 64 << 10;
/// Most bytes that a guest's console or its QEMU may print.
const PRINTED_MAX: u64 = 64 << 20;
/// Time in the middle of a message without a byte of it, s. A guest writes a message in one go.
const SILENCE_S: i64 = 30;
/// Files that are printed into.
const PRINTED: [&str; 2] = ["console", "qemu"];

/// The last lines that a guest and its QEMU printed.
pub(super) fn last_words(dir: &Path, node: usize) -> String {
    let mut lines = Vec::new();
    for what in PRINTED {
        let text = end_of(&dir.join(command::file(node, what))).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        lines.extend(text.lines().map(str::trim_end).map(str::to_string));
    }
    let from = lines.len().saturating_sub(LAST_LINES);
    lines[from..].join("\n")
}

/// The end of a file, which may be as long as a disk.
fn end_of(path: &Path) -> Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(LAST_BYTES)))?;
    let mut end = Vec::new();
    file.take(LAST_BYTES).read_to_end(&mut end)?;
    Ok(end)
}

/// The refusal of a guest that prints without end.
pub(super) fn printed_too_much(dir: &Path, node: usize) -> Option<LabError> {
    let bytes = |what| {
        let about = std::fs::metadata(dir.join(command::file(node, what)));
        about.map_or(0, |about| about.len())
    };
    let too_much = PRINTED.iter().any(|what| bytes(what) > PRINTED_MAX);
    too_much.then(|| {
        LabError::Refused(format!(
            "the guest printed more than {} and was ended; its last words:\n{}",
            unit::bytes(PRINTED_MAX),
            last_words(dir, node)
        ))
    })
}

/// Reason that a guest ended before it had said everything; `None`: how its QEMU ended is not known.
pub(super) fn why_stopped(ended: Option<ExitStatus>, dir: &Path, node: usize) -> LabError {
    // What its drives hold beyond its memory is a file of this machine that QEMU maps: a page of it that finds no
    // room ends QEMU like this.
    match ended.and_then(|status| status.signal()) == Some(Signal::BUS.as_raw()) {
        true => LabError::Refused(format!(
            "{} has no more room for what the drives of the guest hold; make room there, then go on with the run",
            dir.shown()
        )),
        false => LabError::Stopped(last_words(dir, node)),
    }
}

/// A port that is read in the middle of a message: one that is silent there is an error, where it would be waited for
/// without end.
#[derive(Debug)]
pub(super) struct PortInMessage(pub File);

impl Read for PortInMessage {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let silence = Timespec {
            tv_sec: SILENCE_S,
            tv_nsec: 0,
        };
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut polled, Some(&silence)) {
            Ok(0) => Err(Error::new(
                ErrorKind::TimedOut,
                format!("the guest was silent for {SILENCE_S} s in the middle of a message"),
            )),
            // A signal: the reader tries again.
            Err(Errno::INTR) => Err(ErrorKind::Interrupted.into()),
            Err(errno) => Err(errno.into()),
            Ok(_) => self.0.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_under_modelled_drives_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let ended = |status| {
            let status = Some(ExitStatus::from_raw(status));
            why_stopped(status, dir.path(), 1).to_string()
        };
        assert!(ended(7).contains("no more room"), "{}", ended(7));
        for other in [0, 9, 256] {
            assert!(ended(other).contains("the guest stopped"), "{other}");
        }
    }

    #[test]
    fn a_guest_that_prints_without_end_is_named_by_its_last_words_and_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(command::file(1, "console"));
        std::fs::write(&path, "first\n\u{1b}[31mpanic: no root\n").unwrap();
        assert!(last_words(dir.path(), 1).ends_with("panic: no root"));
        assert_eq!(printed_too_much(dir.path(), 1), None);
        // A terabyte, of which the end alone is read.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(last_words(dir.path(), 1).len() <= LAST_BYTES as usize);
        let refused = printed_too_much(dir.path(), 1).unwrap().to_string();
        assert!(refused.contains("more than 64 MiB"), "{refused}");
    }
}
