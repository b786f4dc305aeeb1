//! Whether two stored results are of the same work on the same machine: only then is their ratio one
//! of the storage.

use stackrace_base::event::{Fact, FactFigure, RunStarted};
use stackrace_results::record::Record;

/// Facts of the environment that say which machine it was. What an update changes (kernel,
/// distribution) is not among them: asking what it changed is a use of a kept result.
const MACHINE: [&str; 4] = ["machine", "processor", "processors", "hypervisor"];

/// Installed memory that differs by less than this share is the same: kernels reserve different
/// amounts of it.
const MEMORY_SHARE: f64 = 0.05;

/// Differences between two machines, as far as both are on record, one clause each.
pub(super) fn other_machine(a: &RunStarted, b: &RunStarted) -> Vec<String> {
    let mut differing: Vec<String> = MACHINE
        .iter()
        .filter_map(|name| {
            // A fact that one of them did not record says nothing against the other.
            let (in_a, in_b) = (fact(a, name)?, fact(b, name)?);
            (in_a != in_b).then(|| format!("{name}: {in_a} and {in_b}"))
        })
        .collect();
    if let (Some(in_a), Some(in_b)) = (memory(a), memory(b))
        && !same_memory(in_a, in_b)
    {
        differing.push(format!("memory: {} and {}", in_a.value, in_b.value));
    }
    differing
}

fn fact<'a>(head: &'a RunStarted, name: &str) -> Option<&'a str> {
    Fact::value_of(&head.environment, name)
}

fn memory(head: &RunStarted) -> Option<&Fact> {
    head.environment.iter().find(|fact| fact.name == "memory")
}

fn same_memory(a: &Fact, b: &Fact) -> bool {
    match (&a.figure, &b.figure) {
        (Some(FactFigure::Bytes(a)), Some(FactFigure::Bytes(b))) => {
            a.abs_diff(*b) as f64 <= MEMORY_SHARE * *a.max(b) as f64
        }
        _ => a.value == b.value,
    }
}

/// Differences between two workloads by index, one clause each; empty if they are the same work.
pub(super) fn other_work((a, in_a): (&Record, usize), (b, in_b): (&Record, usize)) -> Vec<String> {
    let (head_a, head_b) = (&a.head.workloads[in_a], &b.head.workloads[in_b]);
    let mut differing = Vec::new();
    if head_a.kind != head_b.kind {
        differing.push(format!("kind: {} and {}", head_a.kind, head_b.kind));
    }
    let (done_a, done_b) = (head_a.work(), head_b.work());
    if done_a != done_b {
        differing.push(format!("\"{done_a}\" and \"{done_b}\""));
    }
    // The seed of an imported record is a placeholder.
    let own = !a.imported() && !b.imported();
    if own && a.head.seed != b.head.seed && (head_a.draws_sizes() || head_b.draws_sizes()) {
        differing.push(format!(
            "seed, from which the sizes of the files follow: {} and {}",
            a.head.seed, b.head.seed
        ));
    }
    differing
}

/// Returns true if two records hold the same results: one run, or two imports of one text.
pub(super) fn same_results(a: &Record, b: &Record) -> bool {
    // A text that was imported twice has two run ids and one hash.
    let hashes = |record: &Record| -> Vec<String> {
        record.origins().map(|text| text.hash.clone()).collect()
    };
    let (in_a, in_b) = (hashes(a), hashes(b));
    a.head.run == b.head.run || in_a.iter().any(|hash| in_b.contains(hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_results::record::sample;

    #[test]
    fn a_machine_is_known_by_what_both_runs_have_on_record() {
        let mut a = sample::record(&sample::small()).head;
        let mut b = a.clone();
        assert_eq!(other_machine(&a, &b), [""; 0]);
        a.environment = vec![
            Fact::of_older_log("memory", "1000000 kB"),
            Fact::of_older_log("kernel", "6.1"),
        ];
        b.environment = vec![
            Fact::of_older_log("memory", "1040000 kB"),
            Fact::of_older_log("kernel", "6.12"),
        ];
        b.environment
            .push(Fact::of_older_log("processor", "known of one alone"));
        assert_eq!(other_machine(&a, &b), [""; 0]);
        b.environment[0] = Fact::of_older_log("memory", "2000000 kB");
        a.environment
            .push(Fact::of_older_log("processor", "another"));
        let differing = other_machine(&a, &b);
        assert_eq!(differing.len(), 2, "{differing:?}");
        assert_eq!(differing[0], "processor: another and known of one alone");
    }

    #[test]
    fn sizes_and_seeds_that_matter_make_other_work() {
        let a = sample::record(&sample::small());
        let mut b = a.clone();
        b.head.seed += 1;
        assert_eq!(other_work((&a, 1), (&b, 1)), [""; 0], "offsets alone");
        assert!(other_work((&a, 0), (&b, 0))[0].starts_with("seed"));
        b.head.seed = a.head.seed;
        b.head.workloads[0].summary = "twice as much".to_owned();
        assert!(other_work((&a, 0), (&b, 0))[0].contains("twice as much"));
    }

    #[test]
    fn drawn_sizes_make_other_work_of_another_seed_whatever_the_kind() {
        let mut a = sample::record(&sample::small());
        a.head.workloads[1].drawn_sizes = Some(true);
        a.head.workloads[0].drawn_sizes = Some(false);
        let mut b = a.clone();
        b.head.seed += 1;
        assert!(other_work((&a, 1), (&b, 1))[0].starts_with("seed"));
        assert_eq!(other_work((&a, 0), (&b, 0)), [""; 0], "all files are equal");
        // Logs from before this was kept.
        let old = |summary: &str| {
            let mut old = a.clone();
            old.head.workloads[1].drawn_sizes = None;
            old.head.workloads[1].kind = "bonnie++".to_owned();
            old.head.workloads[1].summary = summary.to_owned();
            let mut other = old.clone();
            other.head.seed += 1;
            other_work((&old, 1), (&other, 1)).len()
        };
        assert_eq!(
            old("bonnie++ 2.00: 16 files of 0 B to 4 KiB in 1 directories"),
            1
        );
        assert_eq!(old("bonnie++ 2.00: 16 empty files in 1 directories"), 0);
    }

    #[test]
    fn another_version_of_a_tool_does_the_same_work() {
        let mut a = sample::record(&sample::small());
        let mut b = a.clone();
        a.head.workloads[0].summary = "imported from fio-3.33: rw=read, bs=4k".to_owned();
        b.head.workloads[0].summary = "imported from fio-3.39: rw=read, bs=4k".to_owned();
        assert_eq!(other_work((&a, 0), (&b, 0)), [""; 0]);
        b.head.workloads[0].summary = "imported from fio-3.39: rw=read, bs=8k".to_owned();
        assert_eq!(other_work((&a, 0), (&b, 0)).len(), 1);
    }
}
