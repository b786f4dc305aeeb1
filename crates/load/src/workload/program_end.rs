//! What the end of a program means that was run for a trial.

use stackrace_base::event::{FailureCause, shell};
use std::ffi::OsString;

use super::kind::{WorkloadError, advised, trouble};
use stackrace_base::unit;
use stackrace_machine::host::HostError;
use stackrace_machine::host::program::{ProgramCut, ProgramRun};

/// Lines of what a failed program said that go into the error.
const SAID_LINES: usize = 8;
/// Bytes of them.
const SAID_MAX: usize = 1000;

/// A failure of the host with what to do about it.
pub fn explained(error: HostError) -> WorkloadError {
    match error.next() {
        next if next.is_empty() => trouble(error),
        next => advised(error, &next),
    }
}

/// Judges the end of a program; `None` if the trial was stopped.
pub fn judged(
    argv: &[OsString],
    time_max_ns: u64,
    ran: ProgramRun,
) -> Result<Option<ProgramRun>, WorkloadError> {
    let how = match (ran.cut, ran.status, ran.signal) {
        (Some(ProgramCut::Stopped), ..) => return Ok(None),
        (Some(ProgramCut::TimeOver), ..) => format!(
            "did not end within {} and was ended: allow more (time-limit in a study, --trial-time of compare)",
            unit::long_time(time_max_ns as f64 / 1e9)
        ),
        (None, Some(0), _) => return Ok(Some(ran)),
        // A program that failed did other work than one that did not: its time says nothing.
        (None, Some(status), _) => format!("ended with exit status {status}"),
        (None, None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
    };
    // Some programs complain on standard output.
    let said = match end_of(&ran.stderr) {
        said if said.is_empty() => end_of(&ran.stdout),
        said => said,
    };
    let said = match said.as_str() {
        "" => "it said nothing".to_owned(),
        said => format!("it said last: {said}"),
    };
    let command = shell(argv);
    // A program that is killed says nothing of it, and one whose own process was killed says little.
    let memory = match ran.out_of_memory {
        0 => "",
        _ => {
            "; meanwhile the kernel ended processes for want of memory: give it more, or have it use less"
        }
    };
    Err(WorkloadError {
        said: format!("`{command}` {how}{memory}; {said}"),
        next: String::new(),
        cause: Some(FailureCause::Command {
            command,
            status: ran.status,
        }),
    })
}

/// The last lines of a text.
fn end_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    let text = lines[lines.len().saturating_sub(SAID_LINES)..].join("\n");
    // A single line may be as long as a file.
    let mut from = text.len().saturating_sub(SAID_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_badly_while_memory_is_short_is_not_told_to_mend_itself_alone() {
        let said = |out_of_memory| {
            let killed = ProgramRun {
                signal: Some(9),
                out_of_memory,
                ..ProgramRun::default()
            };
            judged(&["tool".into()], 1, killed).unwrap_err().said
        };
        assert_eq!(said(0), "`tool` was ended by signal 9; it said nothing");
        let words = "signal 9; meanwhile the kernel ended processes for want of memory: ";
        assert!(said(1).contains(words), "{}", said(1));
    }
}
