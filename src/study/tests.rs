//! Every refusal at its place, and the laws of reading.

use proptest::prelude::*;

use super::error::StudyError;
use super::*;
use crate::event::{Better, Decide, MetricHead};
use crate::host::Needs;
use crate::setting::{Fallback, Kind, Refusal, SettingDoc, Settings};
use crate::stack::{Gives, GivesKind, Layer, LayerError, LayerKind, Setup, StandingLayer, Takes};
use crate::workload::{Cost, Place, Trouble, Workload, WorkloadKind};
use stackrace_engine::PhaseOutcome;

/// What a fake layer or workload was given, for the tests to look at.
struct Fake {
    kind: &'static str,
    given: String,
}

impl Layer for Fake {
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

    fn devices_given(&self) -> Option<usize> {
        (self.kind == "loop").then_some(1)
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

    fn prepare(&self, _place: &Place<'_>) -> Result<(), Trouble> {
        Ok(())
    }

    fn measure(&self, _phase: usize, _place: &Place<'_>) -> Result<PhaseOutcome, Trouble> {
        Err(Trouble("a fake measures nothing".to_owned()))
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

/// What the first workload of each configuration was given.
fn workloads_given(study: &Study) -> Vec<String> {
    study
        .configurations
        .iter()
        .map(|configuration| configuration.workloads[0].summary())
        .collect()
}

#[test]
fn a_good_study_is_its_configurations() {
    let study = good(GOOD);
    let names: Vec<&str> = study
        .configurations
        .iter()
        .map(|configuration| configuration.name.as_str())
        .collect();
    assert_eq!(names, ["ext4, 4 KiB", "ext4, 64 KiB", "xfs, 64 KiB"]);
    assert_eq!(study.configurations[2].levels, ["xfs", "64 KiB"]);
    assert_eq!(study.configurations[2].stack.layers[1].kind(), "xfs");
    assert_eq!(study.title, "ext4 or XFS?");
    assert_eq!(study.workload_heads.len(), 1);
    assert_eq!(study.workload_heads[0].name, "random write");
    assert_eq!(study.workload_heads[0].kind, "random");
    assert_eq!(
        study.decide,
        Decide {
            comparison: Some("filesystem".to_owned()),
            margin: 0.05,
            confidence: 0.95,
            rounds_max: 30,
            time_max_ns: 3_600_000_000_000,
            until: crate::event::Until::Overall,
        }
    );
    assert_eq!(
        study.policy,
        Policy {
            drop_caches: true,
            remount: true,
            provision: Provision::EachRound,
            precondition: false,
        }
    );
    assert_eq!(study.seed, good(GOOD).seed);
    assert_ne!(study.seed, good(&GOOD.replace("XFS?", "xfs?")).seed);
    assert_eq!(study.hash().len(), 64);
}

#[test]
fn everything_written_in_decide_and_trial_is_read() {
    let study = good(&GOOD.replace(
        "[decide]\n",
        "[trial]\nremount = false\ndrop-caches = false\nprovision = \"once\"\n\
         precondition = \"snia\"\n[decide]\n\
         margin = \"2 %\"\nconfidence = 0.99\nrounds-at-most = 12\nat-most = \"2 h\"\nuntil = \"each\"\n",
    ));
    assert_eq!(study.decide.margin, 0.02);
    assert_eq!(study.decide.confidence, 0.99);
    assert_eq!(study.decide.rounds_max, 12);
    assert_eq!(study.decide.time_max_ns, 7_200_000_000_000);
    assert_eq!(study.decide.until, crate::event::Until::Each);
    assert_eq!(study.policy.provision, Provision::Once);
    assert!(!study.policy.remount && !study.policy.drop_caches && study.policy.precondition);
}

#[test]
fn a_study_without_factors_is_one_configuration_named_after_its_layers() {
    let study =
        good("[[stack]]\nloop = {size = 1}\n[[stack]]\nxfs = {}\n[[workload]]\nrandom = {}");
    assert_eq!(study.configurations.len(), 1);
    assert_eq!(study.configurations[0].name, "loop + xfs");
    assert_eq!(study.title, "file");
}

const TYPED: &str = r#"
[factors]
level = [LEVELS]
[[stack]]
dir = { path = "." }
[[workload]]
random = { SETTING }
"#;

/// What the workload is given in each configuration.
fn filled(levels: &str, setting: &str) -> Vec<String> {
    let text = TYPED.replace("LEVELS", levels).replace("SETTING", setting);
    workloads_given(&good(&text))
}

#[test]
fn a_placeholder_alone_keeps_the_type_of_the_level() {
    let exact = |levels: &str, word: &str| filled(levels, &format!("{word} = \"{{level}}\""));
    assert_eq!(
        exact("1, 0x10", "threads"),
        ["threads=Integer(1)", "threads=Integer(16)"]
    );
    assert_eq!(exact("1.5", "ratio"), ["ratio=Float(1.5)"]);
    assert_eq!(
        exact("true, false", "direct"),
        ["direct=Flag(true)", "direct=Flag(false)"]
    );
    assert_eq!(exact("\"4 KiB\"", "size"), ["size=Text(\"4 KiB\")"]);
    assert_eq!(
        exact("[], [\"-O\", \"x\"]", "words"),
        ["words=List([])", "words=List([Text(\"-O\"), Text(\"x\")])"]
    );
}

#[test]
fn a_placeholder_inside_a_text_is_written_out_and_braces_can_be_literal() {
    assert_eq!(
        filled(
            "12, \"a\", [\"b\", \"c\"]",
            "note = \"<{level}|{level}> {{level}} }}\""
        ),
        [
            "note=Text(\"<12|12> {level} }\")",
            "note=Text(\"<a|a> {level} }\")",
            "note=Text(\"<b c|b c> {level} }\")",
        ]
    );
}

#[test]
fn a_list_in_a_list_becomes_elements_of_it() {
    assert_eq!(
        filled(
            "[\"-O\", \"x\"], 256",
            "words = [\"-q\", \"{level}\", \"v={level}\"]"
        ),
        [
            "words=List([Text(\"-q\"), Text(\"-O\"), Text(\"x\"), Text(\"v=-O x\")])",
            "words=List([Text(\"-q\"), Integer(256), Text(\"v=256\")])",
        ]
    );
}

#[test]
fn configurations_are_named_by_labels_and_bare_numbers_by_their_factor() {
    let text = TYPED
        .replace(
            "LEVELS",
            "12, 0x10, true, \"text\", [], [\"a\", \"b\"], { label = \"labelled\", value = 3 }",
        )
        .replace("SETTING", "note = \"x{level}\"");
    let study = good(&text);
    let names: Vec<&str> = study
        .configurations
        .iter()
        .map(|t| t.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "level=12",
            "level=0x10",
            "level=true",
            "text",
            "none",
            "a b",
            "labelled"
        ]
    );
}

#[test]
fn names_that_would_collide_are_written_out() {
    let study = good(
        "[factors]\na = [\"x\", \"x, y\"]\nb = [\"y, z\", \"z\"]\n[[stack]]\ndir = { path = \".\" }\n\
         [[workload]]\nrandom = { note = \"{a}{b}\" }",
    );
    let names: std::collections::HashSet<&str> = study
        .configurations
        .iter()
        .map(|t| t.name.as_str())
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn when_limits_a_layer_to_some_configurations() {
    let study = good(
        r#"
[factors]
filesystem = ["ext4", "xfs", "none"]
[[stack]]
when = { filesystem = ["ext4", "xfs"] }
loop = { size = "2 GiB" }
[[stack]]
when = { filesystem = "ext4" }
ext4 = { mkfs = ["-O", "^has_journal"] }
[[stack]]
when = { filesystem = "xfs" }
xfs = {}
[[stack]]
when = { filesystem = "none" }
dir = { path = "." }
[[workload]]
random = {}
"#,
    );
    let kinds: Vec<Vec<&str>> = study
        .configurations
        .iter()
        .map(|t| t.stack.layers.iter().map(|layer| layer.kind()).collect())
        .collect();
    assert_eq!(
        kinds,
        [vec!["loop", "ext4"], vec!["loop", "xfs"], vec!["dir"]]
    );
}

#[test]
fn unnamed_workloads_are_named_by_kind_and_number() {
    let two = GOOD.replace(
        "[decide]",
        "[[workload]]\nrandom = {}\n[[workload]]\nrandom = {}\n[decide]",
    );
    let study = good(&two);
    let names: Vec<&str> = study
        .workload_heads
        .iter()
        .map(|head| head.name.as_str())
        .collect();
    assert_eq!(names, ["random write", "random 1", "random 2"]);
    assert!(
        study.workload_heads[0]
            .summary
            .contains("varies with the configuration")
    );
    assert!(!study.workload_heads[1].summary.contains("varies"));
}

#[test]
fn an_unknown_setting_is_shown_at_its_place_with_the_nearest_word() {
    insta::assert_snapshot!(
        bad(&GOOD.replacen("block-size = \"{block-size}\"", "blocksize = \"{block-size}\"", 1)),
        @r#"
    error: random has no setting "blocksize"
      --> file.toml:14:12
       |
    14 | random = { blocksize = "{block-size}", time = "5 s" }
       |            ^^^^^^^^^
       |
       = help: did you mean "block-size"? settings of random: size, block-size,
               time, ratio, read-share, direct, threads, mode, words, note
    "#
    );
}

#[test]
fn a_refused_level_is_shown_where_it_is_used_and_where_it_is_written() {
    insta::assert_snapshot!(bad(&GOOD.replacen("\"64 KiB\"]", "\"64k\"]", 1)), @r#"
    error: block-size: "k" is no unit of bytes
      --> file.toml:14:25
       |
     4 | block-size = ["4 KiB", "64k"]
       |                        ----- where block-size is 64k
    ...
    14 | random = { block-size = "{block-size}", time = "5 s" }
       |                         ^^^^^^^^^^^^^^
       |
       = help: write B, KiB, MiB, GiB, TiB, PiB (1024) or kB, MB, GB, TB, PB
               (1000)
    "#);
}

#[test]
fn an_unknown_level_is_shown_with_the_nearest_one() {
    insta::assert_snapshot!(
        bad(&GOOD.replacen("filesystem = \"xfs\"", "filesystem = \"xsf\"", 1)),
        @r#"
    error: factor "filesystem" has no level "xsf"
     --> file.toml:6:14
      |
    6 | filesystem = "xsf"
      |              ^^^^^
      |
      = help: did you mean "xfs"? its levels: ext4, xfs
    "#
    );
}

#[test]
fn all_errors_are_reported_in_the_order_of_the_text() {
    let text = GOOD
        .replacen("title", "titel", 1)
        .replacen("loop", "lop", 1)
        .replacen("time = \"5 s\"", "time = 5", 1)
        .replacen(
            "compare = \"filesystem\"",
            "compare = \"file\"\nmargin = 7",
            1,
        );
    let shown = bad(&text);
    let places = [
        "file.toml:1:1",
        "file.toml:9:1",
        "file.toml:14:48",
        "file.toml:17:10",
    ];
    let mut from = 0;
    for place in places {
        let at = shown[from..].find(place);
        from += at.unwrap_or_else(|| panic!("{place} is not in order in\n{shown}"));
    }
}

#[test]
fn unknown_words_are_refused_everywhere() {
    refused(
        "title = \"ext4 or XFS?\"",
        "titel = 1",
        &[
            "a study has no \"titel\"",
            "file.toml:1:1",
            "did you mean \"title\"?",
        ],
    );
    refused(
        "[decide]",
        "[decide]\nmargn = 1",
        &[
            "[decide] has no setting \"margn\"",
            "file.toml:16:1",
            "did you mean \"margin\"?",
        ],
    );
    refused(
        "[decide]",
        "[trial]\nremout = true\n[decide]",
        &["did you mean \"remount\"?"],
    );
    refused(
        "loop = {",
        "loop = { sice = 1, ",
        &["loop has no setting \"sice\"", "\"size\"?"],
    );
    refused(
        "\"xfs\"]",
        "{ lable = \"x\", label = \"xfs\", value = \"xfs\" }]",
        &["a level has no \"lable\"", "did you mean \"label\"?"],
    );
    refused(
        "loop = {",
        "lop = {",
        &[
            "there is no layer \"lop\"",
            "file.toml:9:1",
            "did you mean \"loop\"? layers: dir, ext4, loop, xfs",
        ],
    );
    refused(
        "random = {",
        "randon = {",
        &["there is no workload \"randon\"", "\"random\"?"],
    );
    refused_times(
        2,
        "\"{filesystem}\" = {}",
        "\"{filesystem}x\" = {}",
        &[
            "there is no layer \"ext4x\"",
            "there is no layer \"xfsx\"",
            "where filesystem is xfs",
        ],
    );
}

#[test]
fn unknown_factors_and_levels_are_refused_everywhere() {
    refused(
        "\"{block-size}\"",
        "\"{block-sice}\"",
        &[
            "there is no factor \"block-sice\"",
            "file.toml:14:25",
            "did you mean \"block-size\"?",
        ],
    );
    refused(
        "\"{filesystem}\" = {}",
        "\"{fs}\" = {}",
        &["there is no factor \"fs\""],
    );
    refused(
        "[[stack]]\nloop",
        "[[stack]]\nwhen = { fs = \"xfs\" }\nloop",
        &["there is no factor \"fs\"", "file.toml:9:10"],
    );
    refused(
        "[[stack]]\nloop",
        "[[stack]]\nwhen = { filesystem = [\"xfs\", \"zfs\"] }\nloop",
        &[
            "factor \"filesystem\" has no level \"zfs\"",
            "its levels: ext4, xfs",
        ],
    );
    refused(
        "[[exclude]]\nfilesystem",
        "[[exclude]]\nfilesystm",
        &["there is no factor \"filesystm\"", "file.toml:6:1"],
    );
    refused(
        "compare = \"filesystem\"",
        "compare = \"filesytem\"",
        &[
            "there is no factor \"filesytem\"",
            "file.toml:16:11",
            "did you mean \"filesystem\"?",
        ],
    );
}

#[test]
fn factors_that_cannot_be_compared_are_refused() {
    refused(
        "[factors]",
        "[factors]\nunused = [1, 2]",
        &[
            "no layer and no workload uses factor \"unused\"",
            "file.toml:3:1",
        ],
    );
    refused(
        "\"xfs\"]",
        "\"xfs\", \"ext4\"]",
        &[
            "factor \"filesystem\" has the level \"ext4\" twice",
            "file.toml:3:30",
        ],
    );
    refused(
        "[factors]",
        "[factors]\nfilesystem = []",
        &["duplicate key"],
    );
    refused(
        "[\"4 KiB\", \"64 KiB\"]",
        "[]",
        &["factor \"block-size\" has no level"],
    );
    refused(
        "[\"4 KiB\", \"64 KiB\"]",
        "\"4 KiB\"",
        &["are a list, not a text"],
    );
    refused(
        "\"64 KiB\"]",
        "\"64 KiB\", [1]]",
        &["a list of texts, and a number is in it"],
    );
    refused(
        "\"64 KiB\"]",
        "\"64 KiB\", 1979-05-27]",
        &["not a date or a time of day"],
    );
    refused(
        "\"64 KiB\"]",
        "\"64 KiB\", \"\"]",
        &["an empty level cannot be told apart"],
    );
    refused_times(
        2,
        "[decide]",
        "[[exclude]]\nblock-size = \"64 KiB\"\n[decide]",
        &["every configuration with", "is excluded"],
    );
}

#[test]
fn a_comparison_needs_two_levels() {
    let text = GOOD
        .replacen("[\"ext4\", \"xfs\"]", "[\"ext4\"]", 1)
        .replacen(
            "[[exclude]]\nfilesystem = \"xfs\"\nblock-size = \"4 KiB\"\n",
            "",
            1,
        );
    let shown = bad(&text);
    assert!(
        shown.contains("factor \"filesystem\" has one level"),
        "{shown}"
    );
    assert!(shown.contains("file.toml:13:11"), "{shown}");
}

#[test]
fn a_study_without_stack_or_workload_is_refused() {
    let shown = bad("title = \"nothing\"");
    assert!(shown.contains("the study has no [[stack]]"), "{shown}");
    assert!(shown.contains("the study has no [[workload]]"), "{shown}");
    assert!(shown.contains("file.toml"), "{shown}");
    let shown = bad("stack = []\nworkload = []");
    assert!(shown.contains("the stack has no layer"), "{shown}");
    assert!(shown.contains("there is no workload"), "{shown}");
}

#[test]
fn entries_name_one_kind_with_a_table() {
    refused(
        "loop = {",
        "xfs = {}\nloop = {",
        &["\"loop\" is a second one", "file.toml:10:1"],
    );
    refused(
        "\"{filesystem}\" = {}",
        "",
        &["this stack names no kind of stack"],
    );
    refused(
        "loop = { size = \"2 GiB\" }",
        "loop = \"2 GiB\"",
        &["\"loop\" is a table, not a text", "file.toml:9:8"],
    );
    refused(
        "[[stack]]\nloop",
        "[[stack]]\nwhen = 3\nloop",
        &["when is a table, not a number"],
    );
    refused(
        "size = \"2 GiB\"",
        "size = { a = 1 }",
        &["a value is meant here, not a table"],
    );
    refused(
        "random = {",
        "when = { filesystem = \"xfs\" }\nrandom = {",
        &["a workload has no \"when\""],
    );
    refused(
        "random = {",
        "\"{filesystem}\" = {",
        &["the kind of a workload cannot vary"],
    );
}

#[test]
fn a_stack_that_does_not_fit_is_refused_at_the_layer() {
    refused_times(
        2,
        "[[stack]]\nloop = { size = \"2 GiB\" }\n",
        "",
        &[
            "takes one device; there is no layer below",
            "file.toml:9:1",
            "where filesystem is ext4",
        ],
    );
    refused_times(
        2,
        "[[workload]]",
        "[[stack]]\nloop = { size = 1 }\n[[workload]]",
        &[
            "loop stands at the bottom; it cannot be put on ext4",
            "file.toml:13:1",
        ],
    );
}

#[test]
fn settings_are_refused_by_kind_at_the_value() {
    let cases = [
        ("size = \"4k\"", "\"k\" is no unit of bytes"),
        ("size = true", "size takes an amount of bytes, not a flag"),
        ("size = -1", "size cannot be negative"),
        ("time = 5", "time takes a time with its unit, not a number"),
        (
            "threads = \"4\"",
            "threads takes a whole number, not a text",
        ),
        (
            "threads = 1.5",
            "threads takes a whole number, not a number",
        ),
        ("ratio = inf", "ratio must be finite"),
        ("ratio = nan", "ratio must be finite"),
        ("ratio = \"x\"", "ratio takes a number, not a text"),
        ("read-share = 60", "read-share is more than 100 %"),
        ("read-share = \"60 percent\"", "\"percent\" is no share"),
        ("direct = 1", "direct takes true or false, not a number"),
        ("mode = \"raed\"", "mode cannot be \"raed\""),
        (
            "words = [[\"x\"]]",
            "words takes a list of texts, and a list is in it",
        ),
        ("note = [\"x\"]", "note takes a text, not a list"),
        ("size = 99999999999999999999", "not a number beyond 64 bits"),
        ("note = \"{\"", "a \"{\" in this text has no partner"),
        ("note = \"a } b\"", "a \"}\" in this text has no partner"),
        ("block-size = 3", "a block of 3 bytes is odd"),
    ];
    for (setting, message) in cases {
        let text = GOOD
            .replacen("block-size = \"{block-size}\", time = \"5 s\"", setting, 1)
            .replacen(
                "[[stack]]",
                "[[stack]]\nwhen = { block-size = [\"4 KiB\", \"64 KiB\"] }",
                1,
            );
        let shown = bad(&text);
        assert_eq!(shown.matches("error: ").count(), 1, "{shown}");
        assert!(shown.contains(message), "{message} is not in\n{shown}");
        let column = setting.find('=').unwrap() + 14;
        let place = format!("file.toml:15:{column}");
        assert!(shown.contains(&place), "{place} is not in\n{shown}");
    }
    refused(
        "loop = { size = \"2 GiB\" }",
        "loop = {}",
        &["loop needs \"size\"", "file.toml:9:8"],
    );
}

#[test]
fn decide_is_refused_out_of_range() {
    let cases = [
        ("margin = 0", "a margin of 0"),
        ("margin = \"200 %\"", "margin is more than 100 %"),
        ("margin = -0.1", "margin cannot be negative"),
        ("confidence = 1", "confidence lies between"),
        ("confidence = \"40 %\"", "confidence lies between"),
        ("rounds-at-most = 0", "rounds-at-most lies between"),
        ("rounds-at-most = 10001", "rounds-at-most lies between"),
        ("at-most = \"0 s\"", "no time"),
        ("at-most = 60", "a time with its unit"),
        ("until = \"evry\"", "until cannot be \"evry\""),
    ];
    for (setting, message) in cases {
        refused(
            "[decide]",
            &format!("[decide]\n{setting}"),
            &[message, "file.toml:16:"],
        );
    }
    refused(
        "[decide]",
        "[trial]\nremount = 1\n[decide]",
        &["remount takes true or false"],
    );
    refused(
        "[decide]",
        "[trial]\nprecondition = \"snai\"\n[decide]",
        &["precondition cannot be \"snai\"", "snia", "file.toml:16:16"],
    );
    refused(
        "[decide]",
        "[[decide]]",
        &["[decide] is a table, not a list"],
    );
}

#[test]
fn workloads_are_told_apart() {
    refused(
        "[decide]",
        "[[workload]]\nname = \"random write\"\nrandom = {}\n[decide]",
        &["two workloads are named \"random write\"", "file.toml:16:8"],
    );
    refused(
        "name = \"random write\"",
        "name = \"{block-size}\"",
        &["one name for all configurations"],
    );
    refused(
        "name = \"random write\"",
        "weight = 0",
        &["every workload has weight 0"],
    );
    refused(
        "name = \"random write\"",
        "weight = -1",
        &["weight cannot be negative"],
    );
    refused(
        "[factors]",
        "[factors]\nmode = [\"read\", \"write\"]",
        &["error"],
    );
    let modes = GOOD
        .replacen("[factors]", "[factors]\nmode = [\"read\", \"write\"]", 1)
        .replacen("time = \"5 s\"", "mode = \"{mode}\"", 1);
    let shown = bad(&modes);
    assert!(
        shown.contains("is judged by other things in configuration"),
        "{shown}"
    );
}

#[test]
fn a_million_combinations_are_counted_not_built() {
    let levels: Vec<String> = (0..1000).map(|level| level.to_string()).collect();
    let text = format!(
        "[factors]\na = [{0}]\nb = [{0}]\nc = [{0}]\n[[stack]]\ndir = {{ path = \".\" }}\n\
         [[workload]]\nrandom = {{ note = \"{{a}}{{b}}{{c}}\" }}",
        levels.join(", ")
    );
    let shown = bad(&text);
    assert!(
        shown.contains("1000000000 combinations (1000 a x 1000 b x 1000 c)"),
        "{shown}"
    );
    assert!(shown.contains("file.toml:1:2"), "{shown}");
}

#[test]
fn excludes_must_leave_something() {
    refused(
        "filesystem = \"xfs\"\nblock-size = \"4 KiB\"",
        "",
        &["an empty [[exclude]]"],
    );
    refused(
        "filesystem = \"xfs\"\nblock-size = \"4 KiB\"",
        "filesystem = [\"ext4\", \"xfs\"]",
        &["every combination of levels is excluded"],
    );
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let Err(errors) = parse("file.toml", b"title = \"x\"\nquestion = \"\xff\"", &KINDS) else {
        panic!("not refused");
    };
    let shown = all(&errors);
    assert!(shown.contains("byte 24, in line 2"), "{shown}");
    assert!(shown.contains("file.toml"), "{shown}");
}

#[test]
fn what_is_no_toml_is_refused_at_its_place() {
    let shown = bad("title = \"x\"\nquestion = = 3\n");
    assert!(shown.contains("file.toml:2:"), "{shown}");
}

#[test]
fn not_every_echo_is_shown() {
    let words: Vec<String> = (0..50).map(|n| format!("word{n} = 1")).collect();
    let shown = bad(&words.join("\n"));
    assert!(shown.contains("and 32 more"), "{shown}");
}

#[test]
fn the_schema_knows_every_kind_and_setting() {
    let schema = schema(&KINDS);
    let stack = &schema["properties"]["stack"]["items"]["properties"];
    for kind in LAYERS {
        for doc in kind.settings {
            assert!(
                stack[kind.name]["properties"][doc.name].is_object(),
                "{}",
                doc.name
            );
        }
    }
    assert_eq!(stack["loop"]["required"], serde_json::json!(["size"]));
    assert!(stack["when"].is_object());
    let workload = &schema["properties"]["workload"]["items"]["properties"];
    assert!(workload["random"]["properties"]["block-size"]["anyOf"].is_array());
    assert!(workload["name"].is_object());
    for word in [
        "compare",
        "margin",
        "confidence",
        "rounds-at-most",
        "at-most",
        "until",
    ] {
        let described = &schema["properties"]["decide"]["properties"][word]["description"];
        assert!(described.is_string(), "{word}");
    }
}

#[test]
fn a_metric_some_configurations_lack_has_no_value_there() {
    let text = TYPED
        .replace("LEVELS", "false, true")
        .replace("SETTING", "direct = \"{level}\"");
    let study = good(&text);
    let names: Vec<&str> = study.workload_heads[0]
        .metrics
        .iter()
        .map(|head| head.name.as_str())
        .collect();
    assert_eq!(names, ["throughput", "third", "second"]);
    for (configuration, values) in study.configurations.iter().zip([
        [Some(10.0), Some(5.0), None],
        [Some(10.0), Some(5.0), Some(6.0)],
    ]) {
        assert_eq!(
            configuration.workloads[0].metrics(),
            study.workload_heads[0].metrics
        );
        assert_eq!(configuration.workloads[0].evaluate(&[]), values);
    }
}

#[test]
fn blocks_of_several_sizes_are_judged_by_bytes() {
    let first = |block_size: &str| {
        let text = format!(
            "[factors]\nsize = [\"4 KiB\", \"8 KiB\"]\nfile = [\"1 MiB\", \"2 MiB\"]\n\
             [[stack]]\ndir = {{ path = \"/tmp\" }}\n\
             [[workload]]\nrandom = {{ mode = \"read\", size = \"{{file}}\", block-size = \"{block_size}\", time = \"1 s\" }}\n"
        );
        let text = match block_size {
            "{size}" => text,
            _ => text.replace("size = [\"4 KiB\", \"8 KiB\"]\n", ""),
        };
        let study = parse("t.toml", text.as_bytes(), &Kinds::real()).unwrap();
        let head = &study.workload_heads[0];
        let names: Vec<String> = head.metrics.iter().map(|m| m.name.clone()).collect();
        for configuration in &study.configurations {
            assert_eq!(configuration.workloads[0].metrics(), head.metrics);
        }
        names[..2].to_vec()
    };
    assert_eq!(first("4 KiB"), ["operations", "throughput"]);
    assert_eq!(first("{size}"), ["throughput", "operations"]);
}

#[test]
fn bare_devices_are_for_workloads_that_want_them_alone() {
    let bare = "lab-disks = { size = \"1 GiB\", count = 4 }\n[[stack]]\nbare = {}";
    let read = |stack: &str, workload: &str| {
        let text = format!("[[stack]]\n{stack}\n[[workload]]\n{workload}\n");
        parse("t.toml", text.as_bytes(), &Kinds::real()).map(drop)
    };
    read(bare, "migrate-pool = {}").unwrap();
    for (stack, workload, words) in [
        (bare, "files = { count = 9 }", "files works in a directory"),
        (
            "tmpfs = { size = \"1 GiB\" }",
            "mend-pool = {}",
            "mend-pool works on bare devices",
        ),
    ] {
        let errors = read(stack, workload).unwrap_err();
        assert!(all(&errors).contains(words), "{}", all(&errors));
    }
}

#[test]
fn the_studies_that_ship_can_be_read() {
    assert!(SHIPPED.is_sorted_by_key(|(name, _)| name));
    for (name, text) in SHIPPED {
        let study = match parse(name, text.as_bytes(), &Kinds::real()) {
            Ok(study) => study,
            Err(errors) => panic!("{name}: {}", all(&errors)),
        };
        assert!(study.configurations.len() > 1, "{name}");
        assert!(study.question.is_some(), "{name}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Err(errors) = parse("file.toml", &bytes, &KINDS) {
            prop_assert!(!all(&errors).is_empty());
        }
    }

    #[test]
    fn no_mutation_of_a_study_makes_it_panic(
        cuts in prop::collection::vec((0..400_usize, 0..12_usize, "[\\PC\\n]{0,6}"), 1..6),
    ) {
        let mut text = GOOD.to_owned();
        for (at, length, insert) in cuts {
            let from = text.floor_char_boundary(at.min(text.len()));
            let to = text.floor_char_boundary((from + length).min(text.len()));
            text.replace_range(from..to, &insert);
        }
        if let Err(errors) = parse("file.toml", text.as_bytes(), &KINDS) {
            prop_assert!(!errors.is_empty());
            for error in &errors {
                prop_assert!(error.to_string().starts_with("error"));
                prop_assert!(!error.render(true).is_empty());
            }
        }
    }

    #[test]
    fn configurations_are_all_combinations_in_order(a in 1..6_usize, b in 1..6_usize) {
        let list = |n: usize| (0..n).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let text = format!(
            "[factors]\na = [{}]\nb = [{}]\n[[stack]]\ndir = {{ path = \".\" }}\n\
             [[workload]]\nrandom = {{ note = \"{{a}}-{{b}}\" }}",
            list(a),
            list(b)
        );
        let expected: Vec<String> = (0..a)
            .flat_map(|x| (0..b).map(move |y| format!("note=Text(\"{x}-{y}\")")))
            .collect();
        prop_assert_eq!(workloads_given(&good(&text)), expected);
    }
}

const SIZED: &str = r#"
[sizes]
data = { scaled = "1 MiB", full = "1 GiB" }
rounds = { scaled = 8, full = 5 }
[[stack]]
dir = { path = "." }
[[workload]]
sequential = { mode = "write", size = "{data}" }
[decide]
rounds-at-most = "{rounds}"
"#;

fn sized(text: &[u8]) -> Result<Study, String> {
    parse("sized.toml", text, &Kinds::real()).map_err(|errors| {
        errors
            .iter()
            .map(|e| e.render(false))
            .collect::<Vec<_>>()
            .join("\n")
    })
}

#[test]
fn a_study_has_one_of_its_sizes() {
    let scaled = sized(SIZED.as_bytes()).ok().unwrap();
    assert_eq!(
        (scaled.trial_disk_bytes(), scaled.decide.rounds_max),
        (1 << 20, 8)
    );
    let text = full_size(SIZED.as_bytes());
    assert_eq!(full_size(&text), text, "asked once more");
    let full = sized(&text).ok().unwrap();
    assert_eq!(
        (full.trial_disk_bytes(), full.decide.rounds_max),
        (1 << 30, 5)
    );
    // What is resumed is read from the record: the size asked for is in the text.
    assert_eq!(
        sized(full.text.as_bytes()).ok().unwrap().decide.rounds_max,
        5
    );
}

#[test]
fn sizes_that_cannot_be_meant_are_refused() {
    let refused = |text: &str| sized(text.as_bytes()).err().unwrap_or_default();
    assert!(
        refused(&SIZED.replace("full = 5", "large = 5"))
            .contains("needs the words scaled and full")
    );
    assert!(refused(&SIZED.replace("\"{rounds}\"", "3")).contains("uses the size {rounds}"));
    assert!(refused(&SIZED.replace("\"{rounds}\"", "\"{round}\"")).contains("round"));
    let factor = format!("[factors]\ndata = [1]\n{SIZED}");
    assert!(refused(&factor).contains("is a factor too"));
    let one_size = "scale = \"full\"\n[[stack]]\ndir = { path = \".\" }\n[[workload]]\nsequential = { mode = \"write\", size = \"1 MiB\" }\n";
    assert!(refused(one_size).contains("one size only"));
    assert!(refused(&format!("scale = \"huge\"\n{SIZED}")).contains("huge"));
}

/// The studies after published ones use the words their counterparts know, at either size.
#[test]
fn studies_after_published_ones_match_their_counterparts() {
    for card in crate::published::ALL {
        let (_, text) = SHIPPED.iter().find(|(name, _)| *name == card.name).unwrap();
        for text in [text.as_bytes().to_vec(), full_size(text.as_bytes())] {
            let study = sized(&text).unwrap_or_else(|why| panic!("{why}"));
            for pair in card.counterpart.factors {
                let factor = study.factors.iter().find(|f| f.name == pair.own).unwrap();
                for (own, _) in pair.levels {
                    assert!(
                        factor.levels.iter().any(|l| l.label == *own),
                        "{}: {own}",
                        card.name
                    );
                }
            }
            for metric in card.counterpart.metrics {
                let (workload, name) = metric.own;
                let head = study.workload_heads.iter().find(|w| w.name == workload);
                let head = head.unwrap_or_else(|| panic!("{}: {workload}", card.name));
                assert!(
                    head.metrics.iter().any(|m| m.name == name),
                    "{}: {workload}: {name}",
                    card.name
                );
            }
        }
    }
}

/// However the factors of a study are written, a place named beside it is one more of them.
#[test]
fn places_named_beside_a_study_are_a_factor_of_it() {
    let workload = "[[workload]]\nrandom = { block-size = \"4 KiB\", time = \"5 s\" }\n";
    let disk = "[[stack]]\nloop = { size = \"2 GiB\" }\n";
    let rest = format!("{disk}[[stack]]\next4 = {{}}\n{workload}");
    let used = format!(
        "{disk}[[stack]]\nwhen = {{ one = 1 }}\next4 = {{}}\n\
         [[stack]]\nwhen = {{ one = 2 }}\nxfs = {{}}\n{workload}"
    );
    for text in [
        rest,
        format!("[factors]\none = [1, 2] # a comment\n{used}"),
        format!("factors = {{ one = [1, 2] }}\n{used}"),
        format!("factors.one = [1, 2]\n{used}"),
        format!("[factors]\nsystem = [\"x\"]\none = [1, 2]\n{used}"),
    ] {
        let before = good(&text);
        let places = ["debian-12", "it's \"the\" \\ other"].map(str::to_owned);
        let after = in_places(text.as_bytes(), SYSTEM, &places);
        let after = good(std::str::from_utf8(&after).unwrap());
        let labels: Vec<String> = after
            .places()
            .unwrap()
            .levels
            .iter()
            .map(|l| l.label.clone())
            .collect();
        assert_eq!(labels, places, "{text}");
        let others = |study: &Study| -> Vec<Vec<String>> {
            let others = study.factors.iter().filter(|factor| factor.name != SYSTEM);
            others
                .map(|f| f.levels.iter().map(|l| l.label.clone()).collect())
                .collect()
        };
        assert_eq!(others(&after), others(&before), "{text}");
        let tried: Vec<_> = (0..after.configurations.len())
            .map(|t| after.place_of(t).unwrap())
            .collect();
        let half = after.configurations.len() / 2;
        for place in &places {
            assert_eq!(tried.iter().filter(|tried| *tried == place).count(), half);
        }
    }
}

#[test]
fn places_are_texts_of_one_kind_and_a_comparison_must_have_them() {
    refused_times(
        2,
        "[factors]",
        "[factors]\nsystem = [12, 13]",
        &["a system is named by a text", "file.toml:3:11"],
    );
    refused(
        "[factors]",
        "[factors]\nsystem = [\"a\", \"b\"]\nhost = [\"a\", \"b\"]",
        &["not on both", "take system or host out", "file.toml:4:1"],
    );
    refused(
        "compare = \"filesystem\"",
        "compare = \"system\"",
        &["there is no factor \"system\"", "[factors] system = ["],
    );
}

/// A second default somewhere else could contradict the first: this one is what is used.
#[test]
fn every_documented_default_is_a_value_of_its_kind() {
    let layers = crate::stack::ALL
        .iter()
        .map(|kind| (kind.name, kind.settings));
    let workloads = crate::tools::workloads()
        .iter()
        .map(|kind| (kind.name, kind.settings));
    let own = [
        ("a study", words::TOP_DOCS),
        ("[[workload]]", words::WORKLOAD_DOCS),
        ("[decide]", words::DECIDE_DOCS),
        ("[trial]", words::TRIAL_DOCS),
    ];
    let mut read = 0;
    for (owner, docs) in layers.chain(workloads).chain(own) {
        for doc in docs {
            doc.check_default()
                .unwrap_or_else(|why| panic!("{owner}: {}: {}", doc.name, why.message));
            read += usize::from(doc.default_words().is_some());
        }
    }
    assert!(read > 100, "{read} defaults");
}
