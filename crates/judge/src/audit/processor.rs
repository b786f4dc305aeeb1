//! Whether processors set the pace: one thread that is never idle, or all of them.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade, LimitedBy};
use super::neighbours::PROCESSORS_SHARE;
use super::reading::{TrialReading, share};
use stackrace_base::unit;

/// Share of a processor at which a thread is never idle: the rest are moments in which another
/// thread had it, and the rounding of ticks.
const THREAD_SHARE: f64 = 0.90;

/// Share of all processors at which the machine is full, for the same reasons.
const MACHINE_SHARE: f64 = 0.90;

/// Share of a full machine from which on this run is what fills it. Below, most of it is the load of others, which they
/// may take elsewhere: no limit of what was measured.
const OURS_SHARE: f64 = 0.50;

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
    // its time. A thread that is ready to run while the hypervisor has its processor is not idle either: all
    // shares are of the time that was left.
    let left = 1.0 - (counted.cpu_steal_ns as f64 / (window * cpus)).min(0.99);
    let own = (share(reading.own_cpu_ns().1, reading.thread_time_ns())? / left).min(1.0);
    let machine = (counted.cpu_machine_busy_ns as f64 / (window * cpus * left)).min(1.0);
    let kernel = busiest_of_the_kernel(reading, window * left);
    let threads = reading.threads();
    let who = match threads {
        1 => "its thread".to_owned(),
        many => format!("each of its {many} threads"),
    };
    let stolen = match counted.cpu_steal_ns {
        0 => "",
        _ => " less what the hypervisor took",
    };
    let busy = |what: String, part: f64, most: f64| {
        EvidenceFigure::new(format!("used {what}{stolen}"), part, "share").against(most)
    };
    let mut evidence = vec![
        busy(format!("by {who}, of one CPU"), own, THREAD_SHARE),
        busy(format!("of all {cpus:.0} CPUs"), machine, MACHINE_SHARE),
    ];
    evidence.extend(kernel.map(|(name, part)| {
        busy(
            format!("by the kernel's {name}, of one CPU"),
            part,
            THREAD_SHARE,
        )
    }));
    evidence.extend(each_disk(reading, window * left));
    let waited = counted.pressure_cpu_ns.map(|ns| ns as f64 / window);
    if let Some(part) = waited {
        evidence.push(
            EvidenceFigure::new("a task waited for a processor", part, "share")
                .against(PROCESSORS_SHARE),
        );
    }
    // Work of low priority fills what is left over, and gives way at once: then nothing waits.
    let full = machine >= MACHINE_SHARE && waited.is_none_or(|part| part > PROCESSORS_SHARE);
    let ours = ours(reading, window * cpus * left * machine);
    // Compression and checksums of file systems run in threads of the kernel, which no process is
    // charged for.
    let busy_kernel = kernel.filter(|(_, part)| *part >= THREAD_SHARE);
    let (one, all) = (unit::percent(own), unit::percent(machine));
    let count = unit::counted(cpus as usize, "CPU");
    let (limit, sentence) = match busy_kernel {
        _ if own >= THREAD_SHARE => (Some(LimitedBy::OneCpu), format!("{who} {one} busy")),
        Some((name, part)) => {
            let words = format!("the kernel's {name} {} busy", unit::percent(part));
            (Some(LimitedBy::OneCpu), words)
        }
        None if full && ours < OURS_SHARE => (
            None,
            format!(
                "{count} {all} busy, {} of that by this run",
                unit::percent(ours)
            ),
        ),
        None if full => (Some(LimitedBy::AllCpus), format!("{count} {all} busy")),
        None => (None, format!("{who} {one} of one CPU, machine {all}")),
    };
    let grade = limit.map_or(Grade::Ok, |_| Grade::Note);
    Some(CheckFinding::new(grade, sentence, evidence).limiting(limit))
}

/// The busiest thread of the kernel, with the share of the time (ns) that it used.
fn busiest_of_the_kernel<'a>(reading: &TrialReading<'a>, time: f64) -> Option<(&'a str, f64)> {
    let thread = reading.trial.counted.kernel_thread.as_ref()?;
    let part = thread.cpu_ns as f64 / time;
    Some((thread.name.as_str(), part.min(1.0)))
}

/// Processor time for each disk that worked, as a share of the time (ns) of one CPU: it says how many such disks the
/// machine can keep busy. `None` if none of them worked.
fn each_disk(reading: &TrialReading<'_>, time: f64) -> Option<EvidenceFigure> {
    let lower = reading.lower().collect::<Vec<_>>();
    let disks = match lower.is_empty() {
        true => reading.upper().collect(),
        false => lower,
    };
    let worked = disks.iter().filter(|disk| disk.reads + disk.writes > 0);
    let count = worked.count();
    let part = share(ours_ns(reading), time * count as f64)?;
    let disks = match count {
        1 => "its disk".to_owned(),
        many => format!("each of its {many} disks"),
    };
    let name = format!("used by this run for {disks}, of one CPU");
    Some(EvidenceFigure::new(name, part, "share"))
}

/// Share of the time of processors in use (`busy`, ns) that this run used.
fn ours(reading: &TrialReading<'_>, busy: f64) -> f64 {
    share(ours_ns(reading), busy).unwrap_or(0.0).min(1.0)
}

/// Processor time of this run, ns: its own, and that of the kernel, which works for the trial in threads of its own.
fn ours_ns(reading: &TrialReading<'_>) -> f64 {
    let counted = &reading.trial.counted;
    let busiest = counted.kernel_thread.as_ref().map(|thread| thread.cpu_ns);
    let kernel = counted.kernel_threads_ns.or(busiest).unwrap_or(0) as f64;
    let own = counted.cpu_user_ns as f64 + counted.cpu_system_ns as f64;
    let own = own.max(reading.own_cpu_ns().1);
    own + kernel
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, trial};
    use super::*;
    use stackrace_base::event::{DeviceCounted, Observation, ThreadCounted};

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
    fn a_thread_that_is_never_idle_sets_the_pace_where_the_hypervisor_takes_some_of_it() {
        let mut trial = trial();
        trial.counted.cpu_system_ns = 800_000_000;
        assert_eq!(limit(&trial), None);
        // 0.12 of two processors: 0.80 of the 0.88 that were left.
        trial.counted.cpu_steal_ns = 240_000_000;
        assert_eq!(limit(&trial), Some(LimitedBy::OneCpu));
        let found = found(&CHECK, &trial).unwrap();
        assert_eq!(found.sentence, "its thread 91 % busy");
        assert_eq!(
            found.evidence[0].name,
            "used by its thread, of one CPU less what the hypervisor took"
        );
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
        // Four threads, none of which is never idle.
        trial.phases[0].threads = vec![Vec::new(); 4];
        trial.counted.cpu_system_ns = 1_700_000_000;
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

    #[test]
    fn processor_time_is_told_for_each_disk_that_worked() {
        let mut trial = trial();
        let told = |trial: &Observation| {
            let evidence = found(&CHECK, trial).unwrap().evidence;
            let figure = evidence.iter().find(|one| one.name.contains("disk"));
            figure.map(|one| (one.name.clone(), one.value))
        };
        trial.counted.cpu_system_ns = 500_000_000;
        trial.counted.kernel_threads_ns = Some(100_000_000);
        assert_eq!(told(&trial), None, "no disk worked");
        // The loop device lies on the disk, and is none itself.
        for device in &mut trial.counted.devices {
            device.reads = 1;
        }
        let name = |disks: &str| format!("used by this run for {disks}, of one CPU");
        assert_eq!(told(&trial), Some((name("its disk"), 0.6)));
        let disk = |name: &str| DeviceCounted {
            device: name.to_owned(),
            flushes: Some(0),
            writes: 1,
            ..trial.counted.devices[1].clone()
        };
        trial.counted.devices = vec![disk("nvme0n1"), disk("nvme1n1")];
        assert_eq!(told(&trial), Some((name("each of its 2 disks"), 0.3)));
    }

    #[test]
    fn the_load_of_others_is_no_limit_of_this_run() {
        let mut trial = trial();
        trial.counted.cpu_machine_busy_ns = 2_000_000_000;
        trial.counted.pressure_cpu_ns = Some(900_000_000);
        trial.counted.cpu_system_ns = 50_000_000;
        let shown = found(&CHECK, &trial).unwrap();
        assert_eq!((shown.limit, shown.grade), (None, Grade::Ok));
        assert_eq!(
            shown.sentence,
            "2 CPUs 100 % busy, 2.5 % of that by this run"
        );
        // Compression in threads of the kernel is work for this run.
        trial.counted.kernel_threads_ns = Some(1_000_000_000);
        assert_eq!(limit(&trial), Some(LimitedBy::AllCpus));
    }
}
