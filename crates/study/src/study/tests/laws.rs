//! What holds for every study: those that ship, all bytes, all sizes, all places.

use super::*;

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
        // Reordering metrics must not change how a workload that only reads is measured.
        assert_eq!(configuration.workloads[0].data_use(), DataUse::Read);
        assert_eq!(configuration.workloads[0].slicing(), Slicing::Reads);
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
fn a_stack_is_for_workloads_that_can_work_on_it_alone() {
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
        (
            "loop = { size = \"1 GiB\" }\n[[stack]]\next4 = {}\n[[stack]]\nsquashfs = {}",
            "sequential = { mode = \"write\", size = \"1 MiB\" }",
            "sequential writes, and the stack can only be read",
        ),
        (
            "loop = { size = \"1 GiB\" }\n[[stack]]\next4 = {}\n[[stack]]\noverlay = { content = \"lower\" }",
            "random = { mode = \"write\", size = \"1 MiB\" }",
            "random opens its files before the clock starts",
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
        let study = match (parse(name, text.as_bytes(), &Kinds::real()), left_out(text)) {
            (Ok(study), _) => study,
            (Err(errors), Some(what)) => {
                let words = format!("built without {what}");
                assert!(all(&errors).contains(&words), "{name}");
                continue;
            }
            (Err(errors), None) => panic!("{name}: {}", all(&errors)),
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
    // A study may say its size, whichever it is.
    let said = ["scale = \"scaled\" # small\n".as_bytes(), SIZED.as_bytes()].concat();
    let said = full_size(&said);
    assert!(said.starts_with(b"scale = \"full\" # small\n"));
    assert_eq!(sized(&said).ok().unwrap().trial_disk_bytes(), 1 << 30);
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
fn a_size_within_a_text_is_put_in_as_it_is_written() {
    let study = |sizes: &str, option: &str| {
        let text = format!(
            "[sizes]\n{sizes}\n[[stack]]\nlab-disks = {{ model = \"seagate-st3000dm001\", size = \"1 GiB\", \
             parameters = [\"{option}\"] }}\n[[stack]]\next4 = {{}}\n[[workload]]\nsequential = {{ mode = \"write\", size = \"1 MiB\" }}\n"
        );
        sized(text.as_bytes())
    };
    let slow = study("turns = { scaled = 5400, full = 7200 }", "rpm = {turns}").ok();
    let layers = slow.unwrap();
    let disks = layers.configurations[0].stack.layers[0].describe_asked();
    assert!(disks.contains("rpm = 5400"), "{disks}");
    // A size that holds sizes, and one that is a text by itself, stay where they are.
    let nested = "a = { scaled = \"{b}{b}\", full = 1 }\nb = { scaled = 1, full = 2 }";
    let refused = study(nested, "rpm = {a}").err().unwrap();
    assert!(
        refused.contains("{a}") || refused.contains("\"a\""),
        "{refused}"
    );
}

#[test]
fn sizes_that_cannot_be_meant_are_refused() {
    let refused = |text: &str| sized(text.as_bytes()).err().unwrap_or_default();
    assert!(
        refused(&SIZED.replace("full = 5", "large = 5"))
            .contains("needs the words scaled and full")
    );
    // What uses it is not wrong as well.
    let half = SIZED.replace("{ scaled = 8, full = 5 }", "{ scaled = 8 }");
    assert_eq!(refused(&half).matches("error:").count(), 1);
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
    for card in stackrace_judge::published::ALL {
        let text_of = |wanted: &str| SHIPPED.iter().find(|(name, _)| *name == wanted).unwrap().1;
        let text = text_of(card.name);
        // A level may be in another study, which has a part of the published one.
        let others: Vec<Study> = card
            .counterpart
            .also
            .iter()
            .map(|name| sized(text_of(name).as_bytes()).unwrap())
            .collect();
        for text in [text.as_bytes().to_vec(), full_size(text.as_bytes())] {
            let study = sized(&text).unwrap_or_else(|why| panic!("{why}"));
            for pair in card.counterpart.factors {
                let all = others
                    .iter()
                    .chain([&study])
                    .flat_map(|study| &study.factors);
                let labels: Vec<&str> = all
                    .filter(|factor| factor.name == pair.own)
                    .flat_map(|factor| &factor.levels)
                    .map(|level| level.label.as_str())
                    .collect();
                for (own, _) in pair.levels {
                    assert!(labels.contains(own), "{}: {own}", card.name);
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
    let layers = stackrace_layers::stack::ALL
        .iter()
        .map(|kind| (kind.name, kind.settings));
    let workloads = stackrace_load::programs::workloads()
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

/// What an author would ask first: what the machines were like then, and what stands for them.
#[test]
fn studies_after_published_ones_say_what_was_then_and_what_is_here() {
    for card in stackrace_judge::published::ALL {
        let text = SHIPPED.iter().find(|(name, _)| *name == card.name);
        let (head, _) = text.unwrap().1.split_once("\ntitle = ").unwrap();
        let (_, table) = head
            .split_once("\n# Then ")
            .unwrap_or_else(|| panic!("{}", card.name));
        let named: Vec<&str> = table
            .lines()
            .skip(1)
            .flat_map(|line| line.split('[').skip(1))
            .filter_map(|rest| Some(rest.split_once(']')?.0))
            .collect();
        assert!(named.len() >= 4, "{}: {named:?}", card.name);
        for line in named {
            assert!(
                card.environment.iter().any(|(name, _)| *name == line),
                "{}: the published page has no line \"{line}\"",
                card.name
            );
        }
        for row in ["1 GIPS", "a limit of the lab", "fill level"] {
            assert!(table.contains(row), "{}: {row}", card.name);
        }
    }
}

#[test]
fn studies_that_explain_a_row_can_be_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/why");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let study = sized(&std::fs::read(&path).unwrap()).unwrap_or_else(|why| panic!("{why}"));
        assert!(study.decide.comparison.is_some(), "{}", path.display());
        seen += 1;
    }
    assert!(seen > 0);
}
