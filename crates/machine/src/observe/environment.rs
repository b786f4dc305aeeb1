//! The machine a run was made on: kernel, processor, memory, settings that change figures.

use std::path::Path;

use super::group;
use super::physical;
use stackrace_base::event::{Fact, FactFigure};

/// The kernel with its release: `Linux 6.12.0`.
pub fn kernel() -> String {
    let uname = rustix::system::uname();
    let (name, release) = (uname.sysname(), uname.release());
    format!("{} {}", name.to_string_lossy(), release.to_string_lossy())
}

/// Facts about this machine, in a fixed order; what cannot be read is left out.
pub fn environment() -> Vec<Fact> {
    let mut facts = environment_of(&read);
    facts.extend(physical::limits(Path::new("/sys")));
    facts
}

/// Those of the facts that limit figures: memory, control groups, links of devices. All else of the machine is for those who
/// read a record, and a trial without one need not look for it.
pub fn limiting_facts() -> Vec<Fact> {
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    let mut facts: Vec<Fact> = memory_fact(&read, &meminfo).into_iter().collect();
    facts.extend(group::limits(&read).facts());
    facts.extend(physical::limits(Path::new("/sys")));
    facts
}

fn memory_fact(read: &dyn Fn(&str) -> Option<String>, meminfo: &str) -> Option<Fact> {
    let told = after_colon(meminfo, "MemTotal").filter(|told| !told.is_empty())?;
    let fact = Fact::new("memory", told);
    Some(match memory_bytes_of(read) {
        Some(bytes) => fact.with(FactFigure::Bytes(bytes)),
        None => fact,
    })
}

/// The same from files as `read` gives them by path; `None` from it if there is no such file.
pub fn environment_of(read: &dyn Fn(&str) -> Option<String>) -> Vec<Fact> {
    let mut facts = Vec::new();
    facts.push(Fact::new("kernel", kernel()));
    let machine = rustix::system::uname()
        .machine()
        .to_string_lossy()
        .into_owned();
    facts.push(Fact::new("machine", machine));
    let mut add = adding(&mut facts);
    add(
        "distribution",
        read("/etc/os-release").and_then(|text| quoted(&text, "PRETTY_NAME")),
    );
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    // Not `available_parallelism`: that is what this process may use, not what the machine has.
    let processors = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    add("processor", after_colon(&cpuinfo, "model name"));
    add(
        "processors",
        // None at all are not known, where the file is missing.
        (processors > 0).then(|| processors.to_string()),
    );
    add(
        "hypervisor",
        cpuinfo
            .contains(" hypervisor")
            .then(|| "yes (virtual machine)".to_owned()),
    );
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    drop(add);
    facts.extend(memory_fact(read, &meminfo));
    let mut add = adding(&mut facts);
    add(
        "memory available at the start",
        after_colon(&meminfo, "MemAvailable"),
    );
    add(
        "cpu frequency governor",
        first_line(
            read,
            // The first processor stands for all: governors are rarely set one by one.
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        ),
    );
    add(
        "clock source",
        first_line(
            read,
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
    );
    add("hypervisor", first_line(read, "/sys/hypervisor/type"));
    kernel_settings(read, &mut add);
    drop(add);
    facts.extend(group::limits(read).facts());
    facts
}

/// Adds facts in words, as far as they are known.
fn adding(facts: &mut Vec<Fact>) -> impl FnMut(&str, Option<String>) {
    |name, value| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push(Fact::new(name, value));
        }
    }
}

/// Settings of the kernel that change figures, and who is measuring.
fn kernel_settings(
    read: &dyn Fn(&str) -> Option<String>,
    add: &mut impl FnMut(&str, Option<String>),
) {
    for name in [
        "dirty_ratio",
        "dirty_background_ratio",
        "dirty_bytes",
        "dirty_expire_centisecs",
        "swappiness",
        "vfs_cache_pressure",
    ] {
        add(
            &format!("vm.{name}"),
            first_line(read, &format!("/proc/sys/vm/{name}")),
        );
    }
    add(
        "kernel.io_uring_disabled",
        first_line(read, "/proc/sys/kernel/io_uring_disabled"),
    );
    // The means of 1, 5 and 15 minutes; behind them stand numbers of processes.
    let means = first_line(read, "/proc/loadavg");
    let means = means.map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" "));
    add("load at the start", means);
    add(
        "rights",
        Some(if rustix::process::geteuid().is_root() {
            "root".to_owned()
        } else {
            "unprivileged".to_owned()
        }),
    );
}

/// The first limit that a control group puts on the I/O of this program, as the kernel writes it; `None` if none does.
pub fn io_limit() -> Option<String> {
    group::io_limit(&read)
}

/// Bytes of memory that this program and the caches of its files can have: those of the machine (`MemTotal`), or of its
/// control group; none where neither can be read.
pub fn memory_bytes() -> Option<u64> {
    within_group(memory_bytes_of(&read))
}

/// The smaller one of an amount of memory and what a control group allows.
fn within_group(bytes: Option<u64>) -> Option<u64> {
    let limit = group::memory_limit(&read);
    match bytes.zip(limit) {
        Some((bytes, limit)) => Some(bytes.min(limit)),
        None => bytes.or(limit),
    }
}

/// Bytes of memory of the machine, from files as `read` gives them by path.
pub fn memory_bytes_of(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    memory_of(read, "MemTotal")
}

/// Bytes of memory that programs may still take (`MemAvailable`); none where it cannot be read.
pub fn memory_available() -> Option<u64> {
    within_group(memory_of(&read, "MemAvailable"))
}

fn memory_of(read: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<u64> {
    let text = read("/proc/meminfo")?;
    let kib: u64 = after_colon(&text, name)?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    kib.checked_mul(1024)
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn first_line(read: &dyn Fn(&str) -> Option<String>, path: &str) -> Option<String> {
    read(path)?
        .lines()
        .next()
        .map(|line| line.trim().to_owned())
}

fn after_colon(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        Some(
            line.strip_prefix(name)?
                .trim_start()
                .strip_prefix(':')?
                .trim()
                .to_owned(),
        )
    })
}

fn quoted(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        Some(
            line.strip_prefix(name)?
                .strip_prefix('=')?
                .trim_matches('"')
                .to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_cut_off_is_not_known() {
        let read = |path: &str| (path == "/proc/meminfo").then(|| "MemTotal:".to_owned());
        let facts = environment_of(&read);
        assert!(facts.iter().all(|fact| !fact.value.is_empty()), "{facts:?}");
    }
}
