//! The commands of the command line that take the power of a machine and give it back.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use super::stop::{Stop, lost};
use crate::place::machine_options::PowerOptions;
use rustix::process::{Pid, Signal, kill_process_group};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::{self, InWords};
use stackrace_machine::host::argv;
use stackrace_machine::host::process::{Process, Streams};

/// Number of bytes of what a command said that an error repeats at most.
const SAID_MAX: u64 = 2000;

/// Interval at which it is checked whether a command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A machine that says nothing for so long after its power was cut is off.
const SILENCE: Duration = Duration::from_secs(3);

/// A machine that still speaks so long after the command has ended is on.
const STILL_THERE: Duration = Duration::from_secs(30);

/// The command that cuts the power, while the machine is listened to.
#[derive(Default)]
pub(super) struct Cutting {
    running: Option<std::thread::JoinHandle<Result<(), String>>>,
    /// Time at which the command had ended, ns by this machine's clock.
    ended: Option<u64>,
    /// Time at which the machine last said something, ns.
    spoke: Option<u64>,
    /// True if the line broke.
    broke: bool,
    /// True if the machine has said all that it says by itself.
    said_all: bool,
    /// Time at which it was asked whether it is there, ns, and where its answer comes: false if it cannot be asked.
    question: Option<(u64, Receiver<bool>)>,
}

impl Cutting {
    /// Starts the command.
    ///
    /// # Errors
    /// This machine has no thread for it.
    pub(super) fn begin(&mut self, power: PowerOptions<'_>) -> Result<(), Stop> {
        let (command, within) = (power.cut.to_owned(), power.within);
        // Beside this thread: what is acknowledged until the power goes is heard.
        let thread = std::thread::Builder::new()
            .spawn(move || commanded("--cut", &command, within))
            .map_err(lost)?;
        self.running = Some(thread);
        self.spoke();
        Ok(())
    }

    /// Returns true if the command was started.
    pub(super) fn begun(&self) -> bool {
        self.running.is_some() || self.ended.is_some()
    }

    /// The machine said something.
    pub(super) fn spoke(&mut self) {
        self.spoke = Some(SystemClock.now_ns());
    }

    /// The machine says nothing more by itself, on or off.
    pub(super) fn said_all(&mut self) {
        self.said_all = true;
    }

    /// Asks a machine that has nothing more to say whether it is there; returns true if it gives no answer.
    fn gives_no_answer(&mut self, asked: &dyn Fn() -> Receiver<bool>) -> bool {
        let (since_ns, answer) = self
            .question
            .get_or_insert_with(|| (SystemClock.now_ns(), asked()));
        match answer.try_recv() {
            Ok(true) => {
                self.question = None;
                self.spoke();
                false
            }
            Ok(false) | Err(TryRecvError::Disconnected) => true,
            Err(TryRecvError::Empty) => since(*since_ns) >= SILENCE,
        }
    }

    /// The line to the machine broke, which is what is waited for.
    pub(super) fn line_broke(&mut self) {
        self.broke = true;
        // The command may take a moment longer.
        SystemClock.sleep(LOOK);
    }

    /// Returns true if the power is gone; `asked` asks the machine whether it is there.
    ///
    /// # Errors
    /// The command has failed, or the machine goes on all the same.
    pub(super) fn is_over(&mut self, asked: &dyn Fn() -> Receiver<bool>) -> Result<bool, Stop> {
        if self
            .running
            .as_ref()
            .is_some_and(|thread| thread.is_finished())
            && let Some(thread) = self.running.take()
        {
            let ended = thread.join();
            ended
                .unwrap_or_else(|_| Err("the command's thread died".to_owned()))
                .map_err(lost)?;
            self.ended = Some(SystemClock.now_ns());
        }
        let Some(ended) = self.ended else {
            return Ok(false);
        };
        let silent = self.spoke.is_none_or(|spoke| since(spoke) >= SILENCE);
        let silent = silent && since(ended) >= SILENCE;
        // No packet says that a machine is off: silence does, of one that would speak. An outlet may take its time.
        if self.broke || (silent && (!self.said_all || self.gives_no_answer(asked))) {
            return Ok(true);
        }
        match since(ended) >= STILL_THERE {
            true => Err(lost(format!(
                "the machine still works {} s after --cut has ended: mend that command",
                STILL_THERE.as_secs()
            ))),
            false => Ok(false),
        }
    }
}

/// Returns how long an instant of this machine's clock lies back.
pub(super) fn since(ns: u64) -> Duration {
    Duration::from_nanos(SystemClock.now_ns().saturating_sub(ns))
}

/// Runs a command of the command line to its end.
///
/// # Errors
/// It fails, with its last words, or does not end in time.
pub(super) fn commanded(option: &str, command: &str, within: Duration) -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| format!("{option} '{command}': {why}");
    let mut said = tempfile::tempfile().map_err(|error| failed(&error.in_words()))?;
    let mut process = Process::start(
        &argv(["sh", "-c", command]),
        Path::new("."),
        Streams::Open(&said),
    )
    .map_err(|error| failed(&error))?;
    let began = SystemClock.now_ns();
    loop {
        match process.ended() {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let words = last_words(&mut said);
                return Err(failed(&format!("{status}{words}")));
            }
            None if since(began) >= within => {
                end(&mut process);
                let limit = unit::time_ns(within.as_nanos() as f64);
                let words = last_words(&mut said);
                return Err(failed(&format!("it did not end within {limit}{words}")));
            }
            None => SystemClock.sleep(LOOK),
        }
    }
}

/// Ends a command with all that it started: what it left undone must not reach the outlet later.
fn end(process: &mut Process) {
    let group = process.ids().first().and_then(|id| i32::try_from(*id).ok());
    if let Some(group) = group.and_then(Pid::from_raw) {
        // One that ended meanwhile is what was wanted.
        let _ = kill_process_group(group, Signal::KILL);
    }
    process.kill();
}

/// The end of what a command said, to follow the reason; nothing: it said nothing.
fn last_words(said: &mut File) -> String {
    let mut bytes = Vec::new();
    // Its end is enough: a command may say a lot before it fails.
    let end = said.seek(SeekFrom::End(0)).unwrap_or(0);
    let read = said
        .seek(SeekFrom::Start(end.saturating_sub(SAID_MAX)))
        .and_then(|_| said.read_to_end(&mut bytes));
    match (read, String::from_utf8_lossy(&bytes).trim()) {
        (Ok(_), words) if !words.is_empty() => format!("; it said: {words}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_command_that_fails_or_does_not_end_is_said_with_its_option() {
        let second = Duration::from_secs(5);
        commanded("--cut", "true", second).unwrap();
        let failed = commanded("--cut", "echo no outlet 3 >&2; exit 7", second).unwrap_err();
        assert!(
            failed.starts_with("--cut 'echo") && failed.ends_with("7; it said: no outlet 3"),
            "{failed}"
        );
        let endless = commanded("--restore", "sleep 60", Duration::from_millis(50)).unwrap_err();
        assert!(endless.contains("did not end within 50"), "{endless}");
    }

    /// An outlet may cut long after its command has ended, when the trial has nothing more to say.
    #[test]
    fn a_machine_that_has_nothing_more_to_say_is_off_when_it_gives_no_answer() {
        let long_ago = SystemClock.now_ns() - 5_000_000_000;
        let silent = |said_all: bool| Cutting {
            ended: Some(long_ago),
            spoke: Some(long_ago),
            said_all,
            ..Cutting::default()
        };
        let is_over = |mut cutting: Cutting, asked: &dyn Fn() -> Receiver<bool>| {
            cutting.is_over(asked).is_ok_and(|over| over)
        };
        let answers = |answer: bool| {
            let (sender, answers) = channel();
            sender.send(answer).unwrap();
            answers
        };
        assert!(is_over(silent(false), &|| answers(true)));
        assert!(!is_over(silent(true), &|| answers(true)));
        assert!(is_over(silent(true), &|| answers(false)));
        let (_sender, never) = channel();
        let mut asked = silent(true);
        asked.question = Some((long_ago, never));
        assert!(is_over(asked, &|| answers(true)));
    }

    #[test]
    fn nothing_of_a_command_that_does_not_end_goes_on() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("began");
        let command = format!("sleep 1043 & echo $! > {}; wait", file.display());
        commanded("--cut", &command, Duration::from_secs(2)).unwrap_err();
        let id = std::fs::read_to_string(&file).unwrap();
        // One that has ended has no words any more, also before it is waited for.
        let goes_on = std::fs::read(format!("/proc/{}/cmdline", id.trim()));
        assert!(goes_on.unwrap_or_default().is_empty());
    }
}
