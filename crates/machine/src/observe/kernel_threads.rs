//! Processor time of the kernel's own threads: `/proc/*/stat` (proc_pid_stat(5)).
//!
//! File systems, pools and loop devices pass work to kernel threads, which belong to no process. A
//! kernel thread that is never idle limits everything above it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use stackrace_base::event::ThreadCounted;

/// Every thread of the kernel is a child of `kthreadd`, whose number is 2.
const KTHREADD: &str = "2";

/// A tick of `/proc`, ns: 100 a second on every Linux in use, as ticks are an ABI.
pub(super) const TICK_NS: u64 = 10_000_000;

/// More than any line of a `stat` file: about fifty numbers and a name of 64 bytes.
const LINE_BYTES: usize = 2048;

/// Name and time used so far, ns, by number and time of start (numbers are used again).
pub(super) type Threads = BTreeMap<(u64, u64), (String, u64)>;

/// List of the kernel's threads, where this kernel keeps lists of children.
const CHILDREN: &str = "/proc/2/task/2/children";

/// All of them now; empty if `/proc` hides other processes (`hidepid`).
pub(super) fn take() -> Threads {
    let mut threads = Threads::new();
    let mut line = [0; LINE_BYTES];
    for number in numbers() {
        // One call: the kernel gives a line of this size whole, and there are hundreds of them.
        let stat = File::open(format!("/proc/{number}/stat"));
        let Ok(length) = stat.and_then(|mut stat| stat.read(&mut line)) else {
            continue;
        };
        let stat = String::from_utf8_lossy(&line[..length]);
        if let Some((started, name, ns)) = parse(&stat) {
            threads.insert((number, started), (name, ns));
        }
    }
    threads
}

/// Numbers of the kernel's threads; of all processes where there is no list of them.
fn numbers() -> Vec<u64> {
    let children = std::fs::read_to_string(CHILDREN).unwrap_or_default();
    if !children.is_empty() {
        let numbers = children.split_ascii_whitespace();
        return numbers.filter_map(|number| number.parse().ok()).collect();
    }
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    // `/proc` also holds files and directories that are no processes.
    all.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .collect()
}

/// Start, name and time of a kernel thread; `None`: it is not one.
fn parse(stat: &str) -> Option<(u64, String, u64)> {
    // The last bracket: a name may contain brackets and spaces.
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    // From the third field on: state, parent …
    let fields: Vec<&str> = after.split_whitespace().collect();
    if fields.get(1) != Some(&KTHREADD) {
        return None;
    }
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    // utime and stime: kernel threads use only the latter, but the format has both.
    let ticks = number(11)?.saturating_add(number(12)?);
    Some((number(19)?, name, ticks.saturating_mul(TICK_NS)))
}

/// The thread that used the most time between two moments; `None`: none was seen.
pub(super) fn busiest(before: &Threads, after: &Threads) -> Option<ThreadCounted> {
    let (cpu_ns, name) = used(before, after).max_by_key(|(ns, _)| *ns)?;
    Some(ThreadCounted {
        name: name.clone(),
        cpu_ns,
    })
}

/// Time that all of them used between two moments, ns; `None`: none was seen.
pub(super) fn together(before: &Threads, after: &Threads) -> Option<u64> {
    let sum = used(before, after).fold(0, |sum: u64, (ns, _)| sum.saturating_add(ns));
    (!after.is_empty()).then_some(sum)
}

/// Time that each used between two moments, ns.
fn used<'a>(before: &'a Threads, after: &'a Threads) -> impl Iterator<Item = (u64, &'a String)> {
    after.iter().map(|(key, (name, ns))| {
        // A thread that started in between began at 0.
        let began = before.get(key).map_or(0, |(_, ns)| *ns);
        (ns.saturating_sub(began), name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_children_of_kthreadd_are_threads_of_the_kernel() {
        let stat = "77 (kworker/u8:2 (x)) I 2 0 0 0 -1 69238880 0 0 0 0 40 60 0 0 20 0 1 0 900 0 0";
        let thread = (900, "kworker/u8:2 (x)".to_owned(), 1_000_000_000);
        assert_eq!(parse(stat), Some(thread));
        assert_eq!(parse(&stat.replace(" I 2 ", " S 1 ")), None);
        assert_eq!(parse("77 (cut"), None);
    }

    #[test]
    fn the_kernels_threads_are_found_where_proc_shows_them() {
        let threads = take();
        // In a container another process has that number, and the kernel's threads are not to be seen.
        let daemon = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
        let hidden = daemon.trim() != "kthreadd";
        // Every Linux has the thread that ends the processes that are out of memory.
        let known = threads.values().any(|(name, _)| name == "oom_reaper");
        assert!(known || hidden, "{threads:?}");
    }

    #[test]
    fn a_number_used_again_is_another_thread() {
        let name = |name: &str, ns: u64| (name.to_owned(), ns);
        let before = Threads::from([((7, 1), name("old", 500)), ((8, 1), name("busy", 100))]);
        let after = Threads::from([((7, 2), name("new", 90)), ((8, 1), name("busy", 180))]);
        let busiest = busiest(&before, &after).unwrap();
        assert_eq!((busiest.name.as_str(), busiest.cpu_ns), ("new", 90));
        assert_eq!(together(&before, &after), Some(170));
        assert_eq!(together(&before, &Threads::new()), None);
    }
}
