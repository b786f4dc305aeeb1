//! Whether the bytes that a command of the user's own read came from memory: of it only the kernel's counters are
//! known, and what it reads from pipes and from `/dev/zero` is among them.

use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::{TrialReading, share};
use stackrace_base::unit;

/// A program that reads less reads its own files and libraries, and no data.
const READ_MIN: f64 = 1_048_576.0;

/// Judges a command by what it asked for, what was fetched for it, and what it passed on.
pub(super) fn judge(reading: &TrialReading<'_>, most: f64) -> CheckFinding {
    let counted = &reading.trial.counted;
    let asked = counted.asked_read_bytes as f64;
    if counted.cache_hit_bytes.is_none() || asked < READ_MIN {
        let sentence =
            "the kernel counted few reads of it; it does not count those through io_uring or mmap";
        return CheckFinding::new(Grade::NotJudged, sentence.to_owned(), Vec::new());
    }
    let fetched = (counted.fetched_bytes as f64).min(asked);
    // What was written on may have come from a pipe or a made-up source; the rest was read for itself.
    let passed_on = (counted.sent_bytes as f64).min(asked - fetched);
    let part = |bytes: f64| share(bytes, asked).unwrap_or(0.0);
    let (memory, open) = (part(asked - fetched - passed_on), part(asked - fetched));
    let evidence = vec![
        EvidenceFigure::new("bytes read that came from no storage", memory, "share").against(most),
        EvidenceFigure::new("read by the command", asked, "B"),
        EvidenceFigure::new("fetched from storage for it", fetched, "B"),
        EvidenceFigure::new("written by it to storage", counted.sent_bytes as f64, "B"),
    ];
    let grade = match (memory > most, open > most) {
        (false, false) => Grade::Ok,
        (false, true) => Grade::NotJudged,
        // Where nothing was fetched, a pipe between its parts cannot be the reason.
        (true, _) if reading.trial.settled.caches != "none" && part(fetched) < most => {
            Grade::NotAsAsked
        }
        (true, _) => Grade::Note,
    };
    let shown = unit::percent(memory);
    let sentence = match grade {
        Grade::Ok => format!(
            "{} of {} read came from storage",
            unit::percent(1.0 - open),
            unit::si_bytes(asked)
        ),
        Grade::NotJudged => format!(
            "{} of the bytes read may have come from the page cache, or from pipes and /dev/zero and been written on",
            unit::percent(open)
        ),
        _ => format!(
            "{shown} of the bytes that the command read came from the page cache, or from pipes and /dev/zero, not from storage"
        ),
    };
    CheckFinding::new(grade, sentence, evidence)
}

#[cfg(test)]
mod tests {
    use super::super::cached::CHECK;
    use super::super::reading::TrialReading;
    use super::super::sample::{reading, trial};
    use super::*;
    use stackrace_base::event::OperationsOf;

    const MIB: u64 = 1 << 20;

    /// The grade of a command that asked for, had fetched and wrote so many MiB.
    fn grade(asked: u64, fetched: u64, sent: u64) -> Grade {
        let mut trial = trial();
        trial.counted.asked_read_bytes = asked * MIB;
        trial.counted.fetched_bytes = fetched * MIB;
        trial.counted.sent_bytes = sent * MIB;
        trial.counted.cache_hit_bytes = Some(asked.saturating_sub(fetched) * MIB);
        let reading = TrialReading {
            whose: OperationsOf::Command,
            ..reading(&trial)
        };
        (CHECK.judge)(&reading).unwrap().grade
    }

    #[test]
    fn a_command_that_reads_from_the_page_cache_is_flagged() {
        // 32 MiB made up and written, then read 30 times from memory.
        assert_eq!(grade(31 * 32, 0, 32), Grade::NotAsAsked);
        assert_eq!(grade(1000, 950, 0), Grade::Ok);
        assert_eq!(grade(1000, 850, 0), Grade::Note);
    }

    #[test]
    fn what_the_counters_do_not_tell_is_not_judged() {
        // From /dev/zero to a file: nothing of storage was read.
        assert_eq!(grade(100, 0, 100), Grade::NotJudged);
        assert_eq!(grade(0, 0, 100), Grade::NotJudged);
        // A ring, or a mapping.
        assert_eq!(grade(0, 500, 0), Grade::NotJudged);
    }
}
