//! The commands of the command line that take the power of a machine and give it back.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::stop::{Stop, lost};
use crate::session::machine_options::PowerOptions;
use crate::time::{Clock, SystemClock};
use crate::unit;

/// How often it is checked whether a command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A machine that says nothing for so long after its power was cut is off.
const SILENCE: Duration = Duration::from_secs(3);

/// A machine that still speaks so long after the command has ended is on.
const STILL_THERE: Duration = Duration::from_secs(30);

/// The command that cuts the power, while the machine is listened to.
#[derive(Default)]
pub(super) struct Cutting {
    running: Option<std::thread::JoinHandle<Result<(), String>>>,
    /// When the command had ended.
    ended: Option<Instant>,
    /// When the machine last said something.
    spoke: Option<Instant>,
    /// Whether the line broke.
    broke: bool,
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

    /// Whether the command was started.
    pub(super) fn begun(&self) -> bool {
        self.running.is_some() || self.ended.is_some()
    }

    /// The machine said something.
    pub(super) fn spoke(&mut self) {
        self.spoke = Some(Instant::now());
    }

    /// The line to the machine broke, which is what is waited for.
    pub(super) fn line_broke(&mut self) {
        self.broke = true;
        // The command may take a moment longer.
        SystemClock.sleep(LOOK);
    }

    /// Whether the power is gone.
    ///
    /// # Errors
    /// The command has failed, or the machine goes on all the same.
    pub(super) fn is_over(&mut self) -> Result<bool, Stop> {
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
            self.ended = Some(Instant::now());
        }
        let Some(ended) = self.ended else {
            return Ok(false);
        };
        let silent = self.spoke.is_none_or(|spoke| spoke.elapsed() >= SILENCE);
        // No packet says that a machine is off: silence does.
        if self.broke || (silent && ended.elapsed() >= SILENCE) {
            return Ok(true);
        }
        match ended.elapsed() >= STILL_THERE {
            true => Err(lost(format!(
                "the machine still works {} s after --cut has ended: mend that command",
                STILL_THERE.as_secs()
            ))),
            false => Ok(false),
        }
    }
}

/// Runs a command of the command line to its end.
///
/// # Errors
/// It fails, or does not end in time.
pub(super) fn commanded(option: &str, command: &str, within: Duration) -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| format!("{option} '{command}': {why}");
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // What it says is for the user's eyes.
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| failed(&error))?;
    let began = Instant::now();
    loop {
        match child.try_wait().map_err(|error| failed(&error))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed(&status)),
            None if began.elapsed() >= within => {
                // It has ended by itself, or ends now.
                let _ = child.kill();
                let _ = child.wait();
                let limit = unit::time_ns(within.as_nanos() as f64);
                return Err(failed(&format!("it did not end within {limit}")));
            }
            None => SystemClock.sleep(LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_or_does_not_end_is_said_with_its_option() {
        let second = Duration::from_secs(5);
        commanded("--cut", "true", second).unwrap();
        let failed = commanded("--cut", "exit 7", second).unwrap_err();
        assert!(
            failed.contains("--cut 'exit 7'") && failed.contains('7'),
            "{failed}"
        );
        let endless = commanded("--restore", "sleep 60", Duration::from_millis(50)).unwrap_err();
        assert!(endless.contains("did not end within 50"), "{endless}");
    }
}
