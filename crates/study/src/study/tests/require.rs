//! `[require]`, read and refused at its place.

use super::*;
use stackrace_base::event::BoundSide;
use stackrace_layers::stack;
use stackrace_load::programs;

/// A study of a directory with this `[require]`, read with the workloads that there are.
fn read(require: &str) -> Result<Study, Vec<StudyError>> {
    read_of(
        "size = \"16 MiB\", block-size = 2560, fsync-every = 1, data-only = true",
        require,
    )
}

/// The same with these settings of its one workload.
fn read_of(settings: &str, require: &str) -> Result<Study, Vec<StudyError>> {
    let text = format!(
        "[[stack]]\ndir = {{ path = \"/srv\" }}\n[[workload]]\nname = \"log\"\nsequential = {{ mode = \"write\", {settings} }}\n[require]\n{require}\n"
    );
    let kinds = Kinds {
        layers: stack::ALL,
        workloads: programs::workloads(),
    };
    parse("s.toml", text.as_bytes(), &kinds)
}

#[test]
fn a_requirement_is_a_bound_on_a_metric() {
    let study =
        read("\"write latency p99\" = \"<= 10 ms\"\nthroughput = [\">= 1 MB/s\", \"<= 1 GB/s\"]");
    let required = study
        .map_err(|errors| errors[0].to_string())
        .unwrap()
        .decide
        .required;
    let seen: Vec<(BoundSide, f64)> = required.iter().map(|it| (it.limit, it.bound)).collect();
    let expected = [
        (BoundSide::AtMost, 10e6),
        (BoundSide::AtLeast, 1e6),
        (BoundSide::AtMost, 1e9),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn what_cannot_be_required_is_refused_at_its_place() {
    for (require, message, help) in [
        ("", "[require] requires nothing", "fsync latency p99"),
        (
            "\"write latency p98\" = \"<= 10 ms\"",
            "no workload measures",
            "did you mean \"write latency p",
        ),
        (
            "\"write latency p99\" = \"<= 10 MB/s\"",
            "is no value in ns",
            "10 ms",
        ),
        (
            "\"write latency p99\" = \"10 ms\"",
            "on which side",
            "\"<= 10 ms\"",
        ),
        (
            "\"write latency p99\" = 10",
            "a bound is a text",
            "<= 10 ms",
        ),
        (
            "throughput = [\">= 2 MB/s\", \"<= 1 MB/s\"]",
            "no storage can keep both",
            "overlap",
        ),
    ] {
        let errors = read(require).err().unwrap_or_default();
        assert_eq!(errors.len(), 1, "{require}");
        let refusal = &errors[0].refusal;
        assert!(refusal.message.contains(message), "{}", refusal.message);
        assert!(refusal.help.contains(help), "{}", refusal.help);
        assert!(refusal.span.is_some(), "{require}");
    }
}

#[test]
fn a_quantile_of_too_few_operations_is_refused_with_one_that_they_are_enough_for() {
    let p99 = "\"fsync latency p99\" = \"<= 10 ms\"";
    let of = |settings: &str| read_of(settings, p99).err().unwrap_or_default();
    // 4096 blocks, every eighth of which is made durable.
    let few = of("size = \"16 MiB\", block-size = \"4 KiB\", fsync-every = 8");
    assert_eq!(few.len(), 1, "{few:?}");
    let (message, help) = (&few[0].refusal.message, &few[0].refusal.help);
    assert!(
        message.contains("has 512 operations, and p99 takes 1,000"),
        "{message}"
    );
    assert_eq!(help, "take p95, or give it 1000 operations");
    let fewer = of("size = \"16 MiB\", block-size = \"4 KiB\", fsync-every = 1, operations = 10");
    assert_eq!(fewer[0].refusal.help, "give it 1000 operations");
    for enough in [
        "size = \"16 MiB\", block-size = \"4 KiB\", fsync-every = 4",
        // How many there are depends on the storage.
        "size = \"16 MiB\", block-size = \"4 KiB\", fsync-every = 8, passes = 0, time = \"5 s\"",
    ] {
        assert!(of(enough).is_empty(), "{enough}");
    }
}
