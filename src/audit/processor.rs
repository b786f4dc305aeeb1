//! Whether processors set the pace: one thread that is never idle, or all of them.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade, LimitedBy};
use super::neighbours::PROCESSORS_SHARE;
use super::reading::{TrialReading, share};
use crate::unit;

/// At this share of a processor a thread is never idle: the rest are moments in which another
/// thread had it, and the rounding of ticks.
const THREAD_SHARE: f64 = 0.90;

/// At this share of all processors the machine is full, for the same reasons.
const MACHINE_SHARE: f64 = 0.90;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "processor",
    question: "Was a thread, or the whole machine, out of CPU time?",
    limits: true,
    priority: 14,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let window = reading.window_ns()?;
    let counted = &reading.trial.counted;
    let cpus = f64::from(counted.cpus.max(1));
    // All of it, in the kernel as well: a thread that is never idle is the limit, wherever it spends
    // its time.
    let own = share(reading.own_cpu_ns().1, reading.thread_time_ns())?.min(1.0);
    let machine = (counted.cpu_machine_busy_ns as f64 / (window * cpus)).min(1.0);
    let kernel = counted.kernel_thread.as_ref();
    let kernel = kernel.map(|thread| {
        (
            thread.name.as_str(),
            (thread.cpu_ns as f64 / window).min(1.0),
        )
    });
    let threads = reading.threads();
    let who = match threads {
        1 => "its thread".to_owned(),
        many => format!("each of its {many} threads"),
    };
    let mut evidence = vec![
        EvidenceFigure::new(format!("used by {who}, of one CPU"), own, "share")
            .against(THREAD_SHARE),
        EvidenceFigure::new(format!("used of all {cpus:.0} CPUs"), machine, "share")
            .against(MACHINE_SHARE),
    ];
    if let Some((name, part)) = kernel {
        let name = format!("used by the kernel's {name}, of one CPU");
        evidence.push(EvidenceFigure::new(name, part, "share").against(THREAD_SHARE));
    }
    let waited = counted.pressure_cpu_ns.map(|ns| ns as f64 / window);
    if let Some(part) = waited {
        evidence.push(
            EvidenceFigure::new("a task waited for a processor", part, "share")
                .against(PROCESSORS_SHARE),
        );
    }
    // Work of low priority fills what is left over, and gives way at once: then nothing waits.
    let full = machine >= MACHINE_SHARE && waited.is_none_or(|part| part > PROCESSORS_SHARE);
    // Compression and checksums of file systems run in threads of the kernel, which no process is
    // charged for.
    let busy_kernel = kernel.filter(|(_, part)| *part >= THREAD_SHARE);
    let (limit, sentence) = if own >= THREAD_SHARE {
        let words = format!("{who} {} busy", unit::percent(own));
        (Some(LimitedBy::OneCpu), words)
    } else if let Some((name, part)) = busy_kernel {
        let words = format!("the kernel's {name} {} busy", unit::percent(part));
        (Some(LimitedBy::OneCpu), words)
    } else if full {
        let words = format!("{cpus:.0} CPUs {} busy", unit::percent(machine));
        (Some(LimitedBy::AllCpus), words)
    } else {
        (
            None,
            format!(
                "{who} {} of one CPU, machine {}",
                unit::percent(own),
                unit::percent(machine)
            ),
        )
    };
    let grade = if limit.is_some() {
        Grade::Note
    } else {
        Grade::Ok
    };
    Some(CheckFinding::new(grade, sentence, evidence).limiting(limit))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, trial};
    use super::*;
    use crate::event::{Observation, ThreadCounted};

    fn limit(trial: &Observation) -> Option<LimitedBy> {
        found(&CHECK, trial).unwrap().limit
    }

    #[test]
    fn a_thread_that_is_never_idle_sets_the_pace() {
        let mut trial = trial();
        trial.counted.cpu_system_ns = 899_000_000;
        assert_eq!(limit(&trial), None);
        trial.counted.cpu_user_ns = 1_000_000;
        assert_eq!(limit(&trial), Some(LimitedBy::OneCpu));
        assert_eq!(
            found(&CHECK, &trial).unwrap().sentence,
            "its thread 90 % busy"
        );
        trial.phases[0].threads = vec![Vec::new(), Vec::new()];
        assert_eq!(limit(&trial), None, "two threads, half a processor each");
    }

    #[test]
    fn a_thread_of_the_kernel_counts_as_well() {
        let mut trial = trial();
        for (ns, wanted) in [(899_999_999, None), (900_000_000, Some(LimitedBy::OneCpu))] {
            trial.counted.kernel_thread = Some(ThreadCounted {
                name: "md0_raid6".to_owned(),
                cpu_ns: ns,
            });
            assert_eq!(limit(&trial), wanted);
        }
        let sentence = found(&CHECK, &trial).unwrap().sentence;
        assert_eq!(sentence, "the kernel's md0_raid6 90 % busy");
    }

    #[test]
    fn the_whole_machine_can_be_full_without_one_busy_thread() {
        let mut trial = trial();
        // A kernel that does not count how long tasks wait.
        trial.counted.pressure_cpu_ns = None;
        for (ns, wanted) in [
            (1_799_999_999, None),
            (1_800_000_000, Some(LimitedBy::AllCpus)),
        ] {
            trial.counted.cpu_machine_busy_ns = ns;
            assert_eq!(limit(&trial), wanted);
        }
        for (share, wanted) in [(0.10, None), (0.11, Some(LimitedBy::AllCpus))] {
            trial.counted.pressure_cpu_ns = Some((share * 1e9) as u64);
            assert_eq!(
                limit(&trial),
                wanted,
                "tasks waited for {share} of the time"
            );
        }
    }
}
