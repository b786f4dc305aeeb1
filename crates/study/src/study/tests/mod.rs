//! Every refusal at its place, and the laws of reading.

mod asked;
mod costs;
mod home;
mod jobs;
mod laws;
mod reading;
mod refusals;
mod require;
mod schema;
mod table;
mod together;

use proptest::prelude::*;

use super::error::StudyError;
use super::*;
use stackrace_base::event::{Better, Decide, MetricHead};
use stackrace_base::setting::{Fallback, Kind, Refusal, SettingDoc, Settings};
use stackrace_engine::PhaseOutcome;
use stackrace_layers::stack::{
    Gives, GivesKind, Layer, LayerError, LayerKind, Setup, StandingLayer, Takes,
};
use stackrace_load::workload::{
    Cost, DataUse, OverShell, Place, Slicing, Workload, WorkloadError, WorkloadKind, trouble,
};
use stackrace_machine::host::Needs;

/// A fake layer or workload that keeps what it was given, for the tests to look at.
struct Fake {
    kind: &'static str,
    given: String,
}

impl Layer for Fake {
    fn of_kind(&self) -> &'static LayerKind {
        &LayerKind::EMPTY
    }

    fn kind(&self) -> &'static str {
        self.kind
    }

    fn describe_asked(&self) -> String {
        self.given.clone()
    }

    fn takes(&self) -> Takes {
        match self.kind {
            "ext4" | "xfs" => Takes::Devices { min: 1, max: 1 },
            _ => Takes::Nothing,
        }
    }

    fn gives(&self) -> GivesKind {
        match self.kind {
            "loop" => GivesKind::Devices,
            _ => GivesKind::Directory,
        }
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn set_up(&self, _: &mut Setup<'_>, _: Gives) -> Result<StandingLayer, LayerError> {
        Err(LayerError::Refused {
            message: "a fake cannot be raised".to_owned(),
            next: String::new(),
        })
    }
}

impl Workload for Fake {
    fn summary(&self) -> String {
        self.given.clone()
    }

    fn metrics(&self) -> Vec<MetricHead> {
        let primary = match self.given.contains("mode=Text(\"read\")") {
            true => "read throughput",
            false => "throughput",
        };
        // Like a real one: what is reported may depend on the settings.
        let second = self.given.contains("direct=Flag(true)").then_some("second");
        let third = self.given.contains("direct").then_some("third");
        [Some(primary), second, third]
            .into_iter()
            .flatten()
            .map(|name| MetricHead {
                name: name.to_owned(),
                unit: "B/s".to_owned(),
                better: Better::Higher,
            })
            .collect()
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn phases(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn data_use(&self) -> DataUse {
        DataUse::Read
    }

    fn slicing(&self) -> Slicing {
        Slicing::Reads
    }

    fn prepare(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measure(&self, _phase: usize, _place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        Err(trouble("a fake measures nothing".to_owned()))
    }

    fn evaluate(&self, _outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        // Each metric's value is the length of its name.
        self.metrics()
            .iter()
            .map(|head| Some(head.name.len() as f64))
            .collect()
    }
}

fn given(settings: &Settings) -> String {
    let words: Vec<String> = settings
        .settings
        .iter()
        .map(|setting| format!("{}={:?}", setting.name, setting.value))
        .collect();
    words.join(" ")
}

const fn setting(name: &'static str, kind: Kind, required: bool) -> SettingDoc {
    let fallback = match required {
        true => Fallback::Required,
        false => Fallback::Absent,
    };
    SettingDoc {
        name,
        kind,
        fallback,
        doc: "A setting.",
    }
}

macro_rules! layer {
    ($name:literal, $settings:expr) => {
        LayerKind {
            name: $name,
            summary: "A layer.",
            settings: $settings,
            takes: Takes::Nothing,
            gives: GivesKind::Devices,
            example: "",
            parse: |settings| {
                Ok(Box::new(Fake {
                    kind: $name,
                    given: given(settings),
                }))
            },
            ..LayerKind::EMPTY
        }
    };
}

const MKFS: &[SettingDoc] = &[setting("mkfs", Kind::Texts, false)];

const LAYERS: &[LayerKind] = &[
    layer!("dir", &[setting("path", Kind::Text, true)]),
    layer!("ext4", MKFS),
    layer!("loop", &[setting("size", Kind::Bytes, true)]),
    layer!("xfs", MKFS),
];

const WORKLOADS: &[WorkloadKind] = &[WorkloadKind {
    name: "random",
    summary: "A workload.",
    source: "",
    settings: &[
        setting("size", Kind::Bytes, false),
        setting("block-size", Kind::Bytes, false),
        setting("time", Kind::Time, false),
        setting("ratio", Kind::Number, false),
        setting("read-share", Kind::Share, false),
        setting("direct", Kind::Flag, false),
        setting("threads", Kind::Count, false),
        setting("mode", Kind::Choice(&["read", "write"]), false),
        setting("words", Kind::Texts, false),
        setting("note", Kind::Text, false),
    ],
    example: "",
    mergeable: true,
    level: true,
    over_shell: OverShell::Nearest("command = { run = \"fio …\", parse = \"fio\" }"),
    parse: |settings| {
        if settings.optional_bytes("block-size")? == Some(3) {
            return Err(Refusal::at(
                settings.span_of("block-size"),
                "a block of 3 bytes is odd",
                "",
            ));
        }
        Ok(Box::new(Fake {
            kind: "random",
            given: given(settings),
        }))
    },
    ..WorkloadKind::PLAIN
}];

const KINDS: Kinds<'_> = Kinds {
    layers: LAYERS,
    workloads: WORKLOADS,
};

const GOOD: &str = r#"title = "ext4 or XFS?"
[factors]
filesystem = ["ext4", "xfs"]
block-size = ["4 KiB", "64 KiB"]
[[exclude]]
filesystem = "xfs"
block-size = "4 KiB"
[[stack]]
loop = { size = "2 GiB" }
[[stack]]
"{filesystem}" = {}
[[workload]]
name = "random write"
random = { block-size = "{block-size}", time = "5 s" }
[decide]
compare = "filesystem"
"#;

fn good(text: &str) -> Study {
    match parse("file.toml", text.as_bytes(), &KINDS) {
        Ok(study) => study,
        Err(errors) => panic!("{}", all(&errors)),
    }
}

fn all(errors: &[StudyError]) -> String {
    let texts: Vec<String> = errors.iter().map(StudyError::to_string).collect();
    texts.join("\n\n")
}

fn bad(text: &str) -> String {
    match parse("file.toml", text.as_bytes(), &KINDS) {
        Ok(_) => panic!("not refused: {text}"),
        Err(errors) => all(&errors),
    }
}

/// Replaces part of [`GOOD`] and expects exactly one error, with these parts.
fn refused(from: &str, to: &str, parts: &[&str]) {
    refused_times(1, from, to, parts);
}

/// The same with several errors.
fn refused_times(times: usize, from: &str, to: &str, parts: &[&str]) {
    assert!(GOOD.contains(from), "{from}");
    let shown = bad(&GOOD.replacen(from, to, 1));
    assert_eq!(shown.matches("error: ").count(), times, "{shown}");
    for part in parts {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
}

/// Lists what the first workload of each configuration was given.
fn workloads_given(study: &Study) -> Vec<String> {
    study
        .configurations
        .iter()
        .map(|configuration| configuration.workloads[0].summary())
        .collect()
}

const TYPED: &str = r#"
[factors]
level = [LEVELS]
[[stack]]
dir = { path = "." }
[[workload]]
random = { SETTING }
"#;

#[test]
fn a_study_tells_each_of_its_commands_once_and_ours_tell_none() {
    let commands = |line: &str| {
        let text = format!("[[stack]]\ndir = {{ path = \"/var/tmp\" }}\n[[workload]]\n{line}\n");
        let study = parse("t.toml", text.as_bytes(), &Kinds::real()).unwrap();
        study.commands()
    };
    let given =
        commands("command = { run = \"make\", prepare = \"cp -r /src .\", cleanup = \"rm a\" }");
    let texts: Vec<&str> = given.iter().map(|(_, command)| command.as_str()).collect();
    assert_eq!(texts, ["make", "cp -r /src .", "rm a"]);
    assert_eq!(given[0].0, "workload command");
    assert!(commands("build = {}").is_empty());
    assert!(commands("files = { count = 10 }").is_empty());
}

#[test]
fn a_command_is_told_where_its_figures_differ_from_configuration_to_configuration() {
    let text = "[factors]\nmark = [\"a\", \"b\"]\n[[stack]]\ndir = { path = \"/var/tmp\" }\n[[workload]]\n\
         command = { run = \"make\", metrics = [\"q=q: ([0-9]+)\", \"of {mark}={mark}: ([0-9]+)\"] }\n";
    let study = parse("t.toml", text.as_bytes(), &Kinds::real()).unwrap();
    // What is not told cannot be refused.
    assert_eq!(study.commands()[0].1, "make");
    for configuration in &study.configurations {
        assert!(!configuration.workloads[0].commands().is_empty());
    }
}

/// What a study of the real kinds says that its first workload is judged by, or why it is refused.
fn judged_by(workload: &str) -> Result<String, String> {
    let text = format!(
        "[factors]\nread-share = [\"50 %\", \"100 %\"]\n[[stack]]\ndir = {{ path = \"/var/tmp\" }}\n[[workload]]\n{workload}\n"
    );
    match parse("t.toml", text.as_bytes(), &Kinds::real()) {
        Ok(study) => {
            let head = study.workload_heads[0].metrics[0].clone();
            let trial = &study.configurations[1].workloads[0];
            assert_eq!(trial.metrics()[0], head);
            Ok(head.name)
        }
        Err(errors) => Err(errors[0].to_string()),
    }
}

#[test]
fn a_workload_is_judged_by_the_metric_that_the_study_names() {
    let random = "random = { size = \"1 GiB\", mode = \"mixed\", read-share = \"{read-share}\" }";
    assert_eq!(judged_by(random).unwrap(), "operations");
    for (asked, metric) in [
        ("read latency p99", "read latency p99"),
        ("p99 of read latency", "read latency p99"),
        ("read latency p99.9", "read latency p99.9"),
        ("bandwidth", "throughput"),
    ] {
        let judged = judged_by(&format!("metric = \"{asked}\"\n{random}"));
        assert_eq!(judged.unwrap(), metric);
    }
    for (asked, why) in [
        // Only one of the two configurations writes.
        ("write latency p99", "has no write latency p99"),
        ("read latency p98", "did you mean \"read latency p"),
        ("wieght", "no workload measures"),
    ] {
        let refused = judged_by(&format!("metric = \"{asked}\"\n{random}"));
        let refused = refused.unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}
