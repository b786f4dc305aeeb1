//! Processor time: of this process (getrusage) and of the whole machine (`/proc/stat`).

/// Processor time of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessCpu {
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
}

/// Processor time of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MachineCpu {
    /// user + nice + system + irq + softirq, ns.
    pub(super) busy_ns: u64,
    /// Time taken away by the hypervisor, ns.
    pub(super) steal_ns: u64,
    /// Processors listed.
    pub(super) cpus: u32,
}

/// All threads of this process, including ended ones and the kernel workers of its rings.
///
/// `/proc/self/stat` would do, but counts in ticks; `/proc/self/schedstat` counts one thread. The
/// process clock gives the sum exactly and the ticks give its split.
///
/// `stat`: the text of `/proc/self/stat`.
pub(super) fn own(stat: Option<&str>) -> ProcessCpu {
    let whole = own_ns();
    // Without the split all time counts as user time, rather than none.
    let (user, system) = stat.and_then(split).unwrap_or((1, 0));
    let all = (u128::from(user) + u128::from(system)).max(1);
    // 128 bits: nanoseconds times ticks overflows 64 bits after some hours of processor time.
    let system_ns = u64::try_from(u128::from(whole) * u128::from(system) / all).unwrap_or(0);
    ProcessCpu {
        user_ns: whole - system_ns,
        system_ns,
    }
}

/// User and system time of this process together, ns.
pub(super) fn own_ns() -> u64 {
    stackrace_system::process_cpu_ns()
}

/// utime and stime of `/proc/self/stat` (proc(5), fields 14 and 15, after the name in brackets).
fn split(text: &str) -> Option<(u64, u64)> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(11)?.parse().ok()?, fields.get(12)?.parse().ok()?))
}

/// Parses `/proc/stat` (proc(5)); user hertz is 100 on every Linux in use, as ticks are an ABI.
pub(super) fn parse(text: &str) -> Option<MachineCpu> {
    const TICK_NS: u64 = 10_000_000;
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .map_while(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal
    let at = |index: usize| fields.get(index).copied().unwrap_or(0);
    let cpus = text
        .lines()
        // Processors that are offline have no line.
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
        .count();
    Some(MachineCpu {
        // Not idle and iowait, which are no work; guest time is already part of user time.
        busy_ns: [0, 1, 2, 5, 6]
            .map(at)
            .into_iter()
            .fold(0, u64::saturating_add)
            .saturating_mul(TICK_NS),
        steal_ns: at(7).saturating_mul(TICK_NS),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_read_from_proc_stat() {
        let text = "cpu  10 2 30 400 50 6 7 8 0 0\ncpu0 5 1 15 200 25 3 3 4 0 0\ncpu1 5 1 15 200 25 3 4 4 0 0\nintr 1\n";
        let machine = MachineCpu {
            busy_ns: 550_000_000,
            steal_ns: 80_000_000,
            cpus: 2,
        };
        assert_eq!(parse(text), Some(machine));
        assert_eq!(parse("nothing"), None);
    }

    #[test]
    fn a_process_name_with_brackets_does_not_shift_the_fields() {
        let text = "1 (a) b (c) S 1 1 1 0 -1 4194560 10 20 30 40 77 33 0 0 20 0";
        assert_eq!(split(text), Some((77, 33)));
    }
}
