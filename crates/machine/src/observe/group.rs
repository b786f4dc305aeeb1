//! Limits that control groups of either version put on this program: processor, memory, processes, I/O; and the
//! processors that it may run on, by its group or its affinity (`docker --cpuset-cpus`, `taskset`).

use std::collections::BTreeSet;
use std::path::Path;

use stackrace_base::event::{Fact, FactFigure};
use stackrace_base::unit;

/// Files of version 1 that name a device and its limit.
const THROTTLES: &[&str] = &[
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
];

/// Version 1 writes "no limit" as the largest multiple of a page; no machine has half of that.
const NO_LIMIT: u64 = 1 << 62;

/// No machine has more processors.
const PROCESSORS_MAX: usize = 1 << 16;

/// Limits as far as they can be read; `None` where nothing is limited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GroupLimits {
    /// Thousandths of one processor.
    pub(super) processor: Option<u64>,
    /// Bytes of memory.
    pub(super) memory: Option<u64>,
    /// Processes and threads.
    pub(super) processes: Option<u64>,
    /// The first limit of I/O, as the kernel writes it: `io.max: 8:16 rbps=2097152`.
    pub(super) io: Option<String>,
}

/// The narrowest limits of this program's groups and of those above them.
pub(super) fn limits(read: &dyn Fn(&str) -> Option<String>) -> GroupLimits {
    let mut limits = GroupLimits {
        processor: some_processors(read),
        ..GroupLimits::default()
    };
    each_group(read, &mut |group| {
        narrowest(&mut limits.processor, group.processor());
        narrowest(&mut limits.memory, group.memory());
        narrowest(&mut limits.processes, group.processes());
        // The group's own before those above it.
        limits.io = limits.io.take().or_else(|| group.io());
    });
    limits
}

/// The first limit of I/O, as the kernel writes it: what is asked before and after each trial reads no file of other
/// limits.
pub(super) fn io_limit(read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut limit = None;
    each_group(read, &mut |group| {
        limit = limit.take().or_else(|| group.io());
    });
    limit
}

/// The narrowest limit of memory, bytes.
pub(super) fn memory_limit(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let mut limit = None;
    each_group(read, &mut |group| narrowest(&mut limit, group.memory()));
    limit
}

/// Visits this program's groups, each before those above it.
fn each_group(read: &dyn Fn(&str) -> Option<String>, visit: &mut dyn FnMut(&Group<'_>)) {
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        for root in roots(controllers) {
            // A container may see its own group as the root, whatever it is called outside.
            for group in Path::new(group).ancestors() {
                let group = group.to_string_lossy();
                let file =
                    |name: &str| read(&format!("{root}{}/{name}", group.trim_end_matches('/')));
                visit(&Group {
                    controllers,
                    file: &file,
                });
            }
        }
    }
}

/// Thousandths of the processors that this program may run on; `None` if these are all that are there.
fn some_processors(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let status = read("/proc/self/status")?;
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let there = listed(&read("/sys/devices/system/cpu/online")?)?;
    // Those that the machine might have are allowed, too.
    let allowed = listed(allowed)?.intersection(&there).count();
    let some = (1..there.len()).contains(&allowed);
    some.then_some(allowed as u64 * 1000)
}

/// Numbers of a list such as `0-3,8`; `None` if it is none.
fn listed(list: &str) -> Option<BTreeSet<u32>> {
    let mut numbers = BTreeSet::new();
    for part in list.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.parse().ok()?, to.parse::<u32>().ok()?);
        numbers.extend((from..=to).take(PROCESSORS_MAX));
    }
    Some(numbers)
}

/// Directories at which the groups of these controllers may be mounted; none of them is that of version 2.
fn roots(controllers: &str) -> Vec<String> {
    const MOUNT: &str = "/sys/fs/cgroup";
    if controllers.is_empty() {
        // Beside version 1, systemd mounts it one level lower.
        return vec![MOUNT.to_owned(), format!("{MOUNT}/unified")];
    }
    let mut roots = vec![format!("{MOUNT}/{controllers}")];
    if controllers.contains(',') {
        let each = controllers.split(',');
        roots.extend(each.map(|one| format!("{MOUNT}/{one}")));
    }
    roots
}

/// One control group as it is mounted at one place.
struct Group<'a> {
    /// Its controllers of version 1, with commas between them; empty of version 2.
    controllers: &'a str,
    /// Reads one of its files by name.
    file: &'a dyn Fn(&str) -> Option<String>,
}

impl Group<'_> {
    fn has(&self, controller: &str) -> bool {
        self.controllers.split(',').any(|one| one == controller)
    }

    fn number(&self, name: &str) -> Option<u64> {
        (self.file)(name)?.trim().parse().ok()
    }

    /// Thousandths of one processor.
    fn processor(&self) -> Option<u64> {
        let quota = match self.controllers {
            "" => (self.file)("cpu.max").as_deref().and_then(quota),
            _ if self.has("cpu") => self
                .number("cpu.cfs_quota_us")
                .zip(self.number("cpu.cfs_period_us")),
            _ => None,
        };
        quota.and_then(|(quota, period)| quota.saturating_mul(1000).checked_div(period))
    }

    /// Bytes of memory.
    fn memory(&self) -> Option<u64> {
        match self.controllers {
            "" => self.number("memory.max"),
            _ if self.has("memory") => self
                .number("memory.limit_in_bytes")
                .filter(|bytes| *bytes < NO_LIMIT),
            _ => None,
        }
    }

    /// Processes and threads.
    fn processes(&self) -> Option<u64> {
        let counts = self.controllers.is_empty() || self.has("pids");
        counts.then(|| self.number("pids.max")).flatten()
    }

    /// The first limit of I/O, as the kernel writes it.
    fn io(&self) -> Option<String> {
        let files: &[&str] = match self.controllers {
            "" => &["io.max"],
            _ if self.has("blkio") => THROTTLES,
            _ => &[],
        };
        files.iter().find_map(|name| {
            let text = (self.file)(name)?;
            let limit = text.lines().next()?.trim();
            (!limit.is_empty()).then(|| format!("{name}: {limit}"))
        })
    }
}

impl GroupLimits {
    /// What of it is said of the machine that a run is made on.
    pub(super) fn facts(self) -> Vec<Fact> {
        let processor = self.processor.map(|thousandths| {
            Fact::new("processor limit", of_processors(thousandths))
                .with(FactFigure::ProcessorLimit(thousandths))
        });
        let memory = self.memory.map(|bytes| {
            Fact::new("memory limit", unit::bytes(bytes)).with(FactFigure::MemoryLimit(bytes))
        });
        let processes = self.processes.map(|number| {
            let words = format!("{number} processes and threads");
            Fact::new("process limit", words).with(FactFigure::ProcessLimit(number))
        });
        let io = self
            .io
            .map(|limit| Fact::new("i/o limit", limit).with(FactFigure::IoLimit));
        [processor, memory, processes, io]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// `20 % of one processor`, `1.5 processors`.
fn of_processors(thousandths: u64) -> String {
    match thousandths {
        0..1000 => format!(
            "{} of one processor",
            unit::percent(thousandths as f64 / 1000.0)
        ),
        1000 => "one processor".to_owned(),
        _ => format!("{} processors", thousandths as f64 / 1000.0),
    }
}

fn narrowest(known: &mut Option<u64>, found: Option<u64>) {
    *known = match (*known, found) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}

/// `20000 100000`; `max 100000` is no limit.
fn quota(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some((quota.parse().ok()?, period.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> GroupLimits {
        limits(&|path| {
            let mut files = files.iter();
            let known = files.find(|(known, _)| *known == path);
            known.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn limits_of_io_of_both_versions_are_found_in_the_group_and_above_it() {
        let two = ("/proc/self/cgroup", "0::/user/job\n");
        let max = "8:16 rbps=2097152 wbps=max riops=max wiops=max\n";
        let limit = Some(format!("io.max: {}", max.trim()));
        for file in [
            "/sys/fs/cgroup/user/job/io.max",
            "/sys/fs/cgroup/user/io.max",
            "/sys/fs/cgroup/io.max",
        ] {
            assert_eq!(found(&[two, (file, max)]).io, limit, "{file}");
        }
        let none = GroupLimits::default();
        assert_eq!(
            found(&[two, ("/sys/fs/cgroup/user/job/io.max", "\n")]),
            none
        );
        assert_eq!(found(&[two, ("/sys/fs/cgroup/other/io.max", max)]), none);
        let one = ("/proc/self/cgroup", "4:cpu:/job\n3:blkio:/job\n");
        let writes = "/sys/fs/cgroup/blkio/job/blkio.throttle.write_iops_device";
        assert_eq!(
            found(&[one, (writes, "7:0 100\n")]).io,
            Some("blkio.throttle.write_iops_device: 7:0 100".to_owned())
        );
        assert_eq!(found(&[one]), none);
        assert_eq!(found(&[]), none);
    }

    #[test]
    fn a_limit_of_one_kind_is_found_without_reading_files_of_the_others() {
        let read = std::cell::RefCell::new(Vec::new());
        let files = |path: &str| {
            read.borrow_mut().push(path.to_owned());
            match path {
                "/proc/self/cgroup" => Some("0::/job\n".to_owned()),
                "/sys/fs/cgroup/job/io.max" => Some("8:16 rbps=1\n".to_owned()),
                "/sys/fs/cgroup/memory.max" => Some("4096\n".to_owned()),
                _ => None,
            }
        };
        assert_eq!(io_limit(&files).as_deref(), Some("io.max: 8:16 rbps=1"));
        assert_eq!(memory_limit(&files), Some(4096));
        let read = read.into_inner();
        let others = |path: &&String| {
            let known = ["/proc/self/cgroup", "/io.max", "/memory.max"];
            !known.iter().any(|known| path.ends_with(known))
        };
        assert_eq!(read.iter().find(others), None);
        // The group's own was found: none above it is asked.
        assert!(!read.contains(&"/sys/fs/cgroup/io.max".to_owned()));
    }

    #[test]
    fn a_program_that_may_run_on_some_of_the_processors_only_is_limited_to_them() {
        let limit = |allowed: &str, online: &str, quota: &str| {
            let status = format!("Name:\tstackrace\nCpus_allowed_list:\t{allowed}\nThreads:\t1\n");
            found(&[
                ("/proc/self/status", &status),
                ("/sys/devices/system/cpu/online", online),
                ("/proc/self/cgroup", "0::/job\n"),
                ("/sys/fs/cgroup/job/cpu.max", quota),
            ])
            .processor
        };
        assert_eq!(limit("0", "0-1\n", "max 100000"), Some(1000));
        assert_eq!(limit("0-1,6", "0-7\n", "max 100000"), Some(3000));
        // As a machine says it that may get more of them.
        assert_eq!(limit("0-127", "0-1\n", "max 100000"), None);
        assert_eq!(limit("0-1", "0-1\n", "max 100000"), None);
        // The narrower one of both counts.
        assert_eq!(limit("0", "0-1\n", "20000 100000"), Some(200));
        assert_eq!(limit("0-2", "0-7\n", "800000 100000"), Some(3000));
        assert_eq!(limit("nonsense", "0-1\n", "max 100000"), None);
        assert_eq!(of_processors(1000), "one processor");
    }

    #[test]
    fn the_narrowest_limit_of_a_group_and_those_above_it_counts() {
        let two = found(&[
            ("/proc/self/cgroup", "0::/user/job\n"),
            ("/sys/fs/cgroup/user/job/cpu.max", "20000 100000\n"),
            ("/sys/fs/cgroup/user/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/user/job/memory.max", "max\n"),
            ("/sys/fs/cgroup/user/memory.max", "67108864\n"),
            ("/sys/fs/cgroup/user/job/pids.max", "60\n"),
        ]);
        let one = found(&[
            (
                "/proc/self/cgroup",
                "5:cpu,cpuacct:/job\n4:memory:/job\n3:pids:/\n2:blkio:/job\n",
            ),
            ("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "20000\n"),
            (
                "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us",
                "100000\n",
            ),
            (
                "/sys/fs/cgroup/memory/job/memory.limit_in_bytes",
                "67108864\n",
            ),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("/sys/fs/cgroup/pids/pids.max", "60\n"),
        ]);
        let limits = GroupLimits {
            processor: Some(200),
            memory: Some(64 << 20),
            processes: Some(60),
            io: None,
        };
        assert_eq!((&two, &one), (&limits, &limits));
        let facts = two.facts();
        let facts: Vec<String> = facts
            .iter()
            .map(|fact| format!("{}: {}", fact.name, fact.value))
            .collect();
        assert_eq!(
            facts,
            [
                "processor limit: 20 % of one processor",
                "memory limit: 64 MiB",
                "process limit: 60 processes and threads"
            ]
        );
        // Written where nothing is limited.
        let none = found(&[
            ("/proc/self/cgroup", "1:cpu,memory,pids:/\n0::/\n"),
            ("/sys/fs/cgroup/cpu,memory,pids/cpu.cfs_quota_us", "-1\n"),
            (
                "/sys/fs/cgroup/cpu,memory,pids/cpu.cfs_period_us",
                "100000\n",
            ),
            ("/sys/fs/cgroup/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/pids.max", "max\n"),
        ]);
        assert_eq!(none, GroupLimits::default());
        assert_eq!(of_processors(1500), "1.5 processors");
    }
}
