//! Ctrl-C.

use stackrace_base::event::LeftBehind;
use std::sync::Arc;
use std::time::Duration;

use super::failure::{self, Failure};
use super::terminal::error;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_engine::waits::{StorageWait, storage_waits, storage_waits_of};
use stackrace_machine::host::process;
use stackrace_system::front::{self, Killed};

/// Time between two looks at what is waited for. A call that both find has not returned in between.
const LOOK: Duration = Duration::from_secs(1);

/// The same where the program is about to end.
const SHORT_LOOK: Duration = Duration::from_millis(200);

/// Time after the answer to a wish in which what arrives is that wish still: a key that is held down, the hang-up of a
/// terminal by the shell and by the kernel.
const SAME_WISH: Duration = Duration::from_millis(500);

/// Wishes to stop. One may come as several signals: who means the whole job sends its signal to the process that works
/// and to the one in front, which passes it on, however late.
#[derive(Debug, Default)]
struct Wishes {
    signals: u64,
    /// Wishes that were answered, and when the last one was, ns.
    answered: (u64, u64),
}

/// Meaning of one more signal.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    First,
    /// The same wish as before.
    Same,
    Further,
}

impl Wishes {
    /// Takes a signal at `now_ns`, when `passed_on` of all have come by the process in front.
    fn signal(&mut self, passed_on: u64, now_ns: u64) -> Meaning {
        self.signals += 1;
        // Each that was passed on may have come here directly, too. What is pending twice arrives once.
        let wishes = passed_on.max(self.signals.saturating_sub(passed_on));
        let (answered, at) = self.answered;
        if wishes <= answered {
            return Meaning::Same;
        }
        self.answered.0 = wishes;
        let since = Duration::from_nanos(now_ns.saturating_sub(at));
        match answered {
            0 => Meaning::First,
            _ if since < SAME_WISH => Meaning::Same,
            _ => Meaning::Further,
        }
    }

    fn answered(&mut self, now_ns: u64) {
        self.answered.1 = now_ns;
    }
}

/// The first Ctrl-C ends what is under way cleanly and says `then`; the second ends the program at
/// once and says what is `left` to do. Wishes count, not signals.
pub(super) fn catch_interrupt(
    interrupt: &Arc<Interrupt>,
    then: &'static str,
    left: LeftBehind,
) -> Result<(), Failure> {
    let interrupt = Arc::clone(interrupt);
    front::leave_word(&left.words());
    let mut wishes = Wishes::default();
    let ignored = front::hangup_is_ignored();
    ctrlc::set_handler(move || {
        interrupt.raise();
        let meaning = wishes.signal(front::passed_on(), SystemClock.now_ns());
        if meaning == Meaning::Same {
            return;
        }
        if meaning == Meaning::Further {
            error(&format!("\nstopped at once; {}\n", left.words()));
            // The kernel does not end every call: the process then stays, and does nothing any more.
            let before = waits();
            SystemClock.sleep(SHORT_LOOK);
            for wait in waits().iter().filter(|wait| before.contains(wait)) {
                error(&wait.left());
            }
            // Who waits for this program waits no longer, whatever the kernel still keeps of it.
            let _ = front::let_go(failure::INTERRUPTED);
            // The journal is on disk, so that ending here loses nothing but time.
            std::process::exit(i32::from(failure::INTERRUPTED));
        }
        let then = match interrupt.nothing_stands() {
            true => "nothing stands yet",
            false => then,
        };
        error(&format!("\nstopping: {then} (again: stop at once)\n"));
        wishes.answered(SystemClock.now_ns());
        name_waits("Ctrl-C again: stop at once");
    })
    .map_err(|error| uncaught(&error))?;
    if ignored {
        // Under nohup a run goes on when its terminal is gone.
        front::ignore_hangup();
    }
    Ok(())
}

/// Says in the place of a process that was killed what became of it, what is kept, and the next command.
pub(super) fn explain(killed: &Killed) {
    error(&explained(killed));
}

fn explained(killed: &Killed) -> String {
    let by = match killed.signal {
        9 => "SIGKILL".to_owned(),
        number => format!("signal {number}"),
    };
    let memory = match killed.out_of_memory {
        0 => "",
        _ => "; the kernel was ending processes for want of memory",
    };
    let mut said = format!("\nstackrace was killed ({by}){memory}\n");
    if !killed.last_words.is_empty() {
        said.push_str(&format!(
            "what is on record is kept; {}\n",
            killed.last_words
        ));
    }
    said
}

/// The failure of a machine that gives this process no thread to wait for Ctrl-C in.
fn uncaught(error: &ctrlc::Error) -> Failure {
    match error {
        ctrlc::Error::System(why) => Failure::unable(format!(
            "cannot start a thread that waits for Ctrl-C: {why}"
        ))
        .next(failure::THREADS),
        // A second handler is a fault of ours, and no limit of the system's.
        _ => Failure::internal(format!("cannot wait for Ctrl-C: {error}")),
    }
}

/// Something that this program waits for.
#[derive(Debug, Clone, PartialEq)]
enum Wait {
    /// A call to storage, of this program or of the command that is named.
    Call(StorageWait, Option<String>),
    /// A command that does not end, by its number, which is that of its process group.
    Command(u32, String),
}

impl Wait {
    /// What is said while it is waited for, with the way to end the waiting.
    fn said(&self, end: &str) -> String {
        let what = match self {
            Self::Call(wait, None) => format!("storage: {wait} does not return"),
            Self::Call(wait, Some(by)) => format!("storage: {wait} in {by} does not return"),
            Self::Command(number, line) => {
                format!("`{line}` (process {number}), which has not ended yet")
            }
        };
        format!("waiting for {what} ({end})\n")
    }

    /// What is said of it where the program ends at once.
    fn left(&self) -> String {
        match self {
            Self::Call(wait, None) => format!(
                "the process goes when the kernel gives up its {wait}; nothing more is done\n"
            ),
            Self::Call(wait, Some(by)) => format!("{by} goes on until its {wait} returns\n"),
            Self::Command(number, line) => format!(
                "`{line}` (process {number}) goes on until it ends; to end it now: kill -- -{number}\n"
            ),
        }
    }
}

/// Calls to storage of this process, and of the commands that it started, and these commands themselves: one may wait for
/// a network, or for nothing.
fn waits() -> Vec<Wait> {
    let own = storage_waits().into_iter();
    let own = own.map(|wait| Wait::Call(wait, None));
    let commands = process::below().into_iter().flat_map(|(number, line)| {
        let by = format!("`{line}` (process {number})");
        let waits = storage_waits_of(number).into_iter();
        waits.map(move |wait| Wait::Call(wait, Some(by.clone())))
    });
    let awaited = process::awaited().into_iter();
    let awaited = awaited.map(|(number, line)| Wait::Command(number, line));
    own.chain(commands).chain(awaited).collect()
}

/// Says from now on what does not come to its end within a second or two, with the way to `end` the waiting.
pub(super) fn name_waits(end: &'static str) {
    // Where no thread can be had, less is said.
    let _ = std::thread::Builder::new().spawn(move || say_waits(end));
}

/// Says what does not come to its end, each once, for as long as the program goes on.
fn say_waits(end: &str) {
    let mut said = Vec::new();
    let mut before = waits();
    loop {
        SystemClock.sleep(LOOK);
        let now = waits();
        let lasting: Vec<&Wait> = now.iter().filter(|one| before.contains(one)).collect();
        // A call that does not return is why its command does not end.
        let calls = lasting.iter().any(|one| matches!(one, Wait::Call(..)));
        for one in lasting {
            let is_effect = calls && matches!(one, Wait::Command(..));
            if !said.contains(one) && !is_effect {
                error(&one.said(end));
                said.push(one.clone());
            }
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Meanings of signals, each with the number that was passed on by then, a second apart.
    fn meant(passed_on: &[u64]) -> Vec<Meaning> {
        let mut wishes = Wishes::default();
        let signals = passed_on.iter().zip(1..);
        let taken = signals.map(|(passed_on, at): (&u64, u64)| {
            let meaning = wishes.signal(*passed_on, at * SECOND);
            wishes.answered(at * SECOND);
            meaning
        });
        taken.collect()
    }

    #[test]
    fn wishes_count_and_not_signals() {
        use Meaning::{First, Further, Same};
        // Keys of a terminal, and a sender who means the process in front alone.
        assert_eq!(meant(&[0, 0]), [First, Further]);
        assert_eq!(meant(&[1, 2]), [First, Further]);
        // The whole job, whichever way is the quicker one, once and twice; and where both ways merge into one signal.
        assert_eq!(meant(&[0, 1]), [First, Same]);
        assert_eq!(meant(&[1, 1]), [First, Same]);
        assert_eq!(meant(&[0, 1, 1, 2]), [First, Same, Further, Same]);
        assert_eq!(meant(&[1, 2]), [First, Further]);
        // The process in front is so late that the second wish is there before it has passed on the first.
        assert_eq!(meant(&[0, 0, 1, 2]), [First, Further, Same, Same]);
    }

    #[test]
    fn what_comes_at_once_behind_an_answer_is_the_same_wish() {
        let mut wishes = Wishes::default();
        assert_eq!(wishes.signal(0, SECOND), Meaning::First);
        wishes.answered(SECOND);
        assert_eq!(wishes.signal(0, SECOND + 1), Meaning::Same);
        assert_eq!(wishes.signal(0, 2 * SECOND), Meaning::Further);
    }

    #[test]
    fn a_killed_process_is_explained_with_the_next_command() {
        let mut killed = Killed {
            signal: 9,
            out_of_memory: 0,
            last_words: LeftBehind::FILES.words(),
        };
        assert_eq!(
            explained(&killed),
            "\nstackrace was killed (SIGKILL)\nwhat is on record is kept; `stackrace clean` removes what is left\n"
        );
        killed.out_of_memory = 1;
        assert!(explained(&killed).contains("want of memory"));
        // Before anything was made there is nothing to advise.
        killed.last_words.clear();
        killed.signal = 11;
        let said = explained(&killed);
        assert!(
            said.contains("(signal 11)") && !said.contains("clean"),
            "{said}"
        );
    }
}
