//! `[require]`, read and refused at its place.

use super::*;
use stackrace_base::event::BoundSide;
use stackrace_layers::stack;
use stackrace_load::programs;

/// A study of a directory with this `[require]`, read with the workloads that there are.
fn read(require: &str) -> Result<Study, Vec<StudyError>> {
    let text = format!(
        "[[stack]]\ndir = {{ path = \"/srv\" }}\n[[workload]]\nname = \"log\"\nsequential = {{ mode = \"write\", size = \"16 MiB\", block-size = 2560, fsync-every = 1, data-only = true }}\n[require]\n{require}\n"
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
