//! What a valid study becomes, and what is no study at all.

use super::*;

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
            until: stackrace_base::event::Until::Overall,
            precision: stackrace_base::event::Precision::Size,
            required: Vec::new(),
        }
    );
    assert_eq!(
        study.policy,
        Policy {
            drop_caches: true,
            remount: true,
            provision: Provision::EachRound,
            order: RoundOrder::Turns,
            slices: None,
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
    assert_eq!(study.decide.until, stackrace_base::event::Until::Each);
    assert_eq!(study.policy.provision, Provision::Once);
    assert!(!study.policy.remount && !study.policy.drop_caches && study.policy.precondition);
}

#[test]
fn slices_are_for_reads_by_default_and_for_writes_where_a_study_asks() {
    let slices = |trial: &str| {
        let text = GOOD.replace("[decide]", &format!("[trial]\n{trial}\n[decide]"));
        let slices = good(&text).policy.slices;
        slices.map(|slices| (slices.ns, slices.writes))
    };
    assert_eq!(slices("order = \"adjacent\""), Some((50_000_000, false)));
    assert_eq!(
        slices("provision = \"once\"\nslice = \"200 ms\""),
        Some((200_000_000, true))
    );
    assert_eq!(slices("provision = \"once\"\nslice = \"off\""), None);
    assert_eq!(
        slices("provision = \"once\"\nprecondition = \"snia\""),
        None
    );
    assert_eq!(slices("order = \"turns\""), None);
}

#[test]
fn a_study_without_factors_is_one_configuration_named_after_its_layers() {
    let study =
        good("[[stack]]\nloop = {size = 1}\n[[stack]]\nxfs = {}\n[[workload]]\nrandom = {}");
    assert_eq!(study.configurations.len(), 1);
    assert_eq!(study.configurations[0].name, "loop + xfs");
    assert_eq!(study.title, "file");
}

/// Lists what the workload is given in each configuration.
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
fn names_that_would_not_stay_on_their_line_are_refused_where_they_stand() {
    let workload = "name = \"random write\"";
    let level = "[\"4 KiB\", \"64 KiB\"]";
    for (letter, told) in [
        ("\\n", "a line break"),
        ("\\u2028", "a line break"),
        ("\\t", "a tab"),
    ] {
        let title = format!("title = \"x{letter}VERDICT y\"\n{}", without_title());
        let shown = bad(&title);
        assert!(
            shown.contains(&format!("the title holds {told}")),
            "{shown}"
        );
        assert!(shown.contains("file.toml:1:9"), "{shown}");
        let named = format!("name = \"random{letter}write\"");
        refused(
            workload,
            &named,
            &[&format!("the name of a workload holds {told}")],
        );
        let labelled = format!("[\"4 KiB\", {{ label = \"x{letter}y\", value = \"64 KiB\" }}]");
        refused(
            level,
            &labelled,
            &[&format!("a level holds {told}"), "write blanks there"],
        );
        let factor = format!("[factors]\n\"a{letter}b\" = [1, 2]\n");
        let shown = bad(&GOOD.replacen("[factors]\n", &factor, 1));
        assert!(
            shown.contains(&format!("the name of a factor holds {told}")),
            "{shown}"
        );
    }
    // A script of many lines is a good value, and needs a name.
    let script = "[factors]\nscript = [\"a\\nb\", \"c\"]\n";
    let shown = bad(&GOOD.replacen("[factors]\n", script, 1));
    assert!(shown.contains("label it: { label = "), "{shown}");
}

/// The good study without its title.
fn without_title() -> String {
    let lines = GOOD.lines().filter(|line| !line.starts_with("title"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// One would be measured under what the other one set.
#[test]
fn stacks_that_stand_together_do_not_set_the_machine() {
    let text = |trial: &str| {
        format!(
            "[factors]\nreadily = [10, 60]\n[[stack]]\ntmpfs = {{ size = \"1 MiB\" }}\n[[stack]]\n\
             sysctl = {{ \"vm.swappiness\" = \"{{readily}}\" }}\n[[workload]]\nfiles = {{ count = 10 }}\n\
             [trial]\n{trial}\n"
        )
    };
    let read = |trial: &str| parse("t.toml", text(trial).as_bytes(), &Kinds::real());
    assert!(read("order = \"turns\"").is_ok());
    for together in ["order = \"adjacent\"", "provision = \"once\""] {
        let errors = read(together).err().unwrap();
        let said = errors[0].to_string();
        assert!(said.contains("sysctl sets the whole machine"), "{said}");
    }
    // A parameter of the module of ZFS holds for all pools.
    for (setting, alone) in [("arc-max = \"{size}\"", false), ("ashift = 12", true)] {
        let text = format!(
            "[factors]\nsize = [\"64 MiB\", \"1 GiB\"]\n[[stack]]\nloop = {{ size = \"{{size}}\" }}\n[[stack]]\n\
             zpool = {{ {setting} }}\n[[stack]]\ndataset = {{}}\n[[workload]]\nfiles = {{ count = 10 }}\n\
             [trial]\nprovision = \"once\"\n"
        );
        let read = parse("t.toml", text.as_bytes(), &Kinds::real());
        let said = read.map_or_else(|errors| errors[0].to_string(), |_| String::new());
        let refused = said.contains("zpool sets the whole machine");
        assert_eq!(!refused, alone, "{said}");
    }
}

#[test]
fn values_that_are_nested_too_deep_are_said_to_be() {
    let lists = format!("title = {}{}\n", "[".repeat(9000), "]".repeat(9000));
    let names = format!("a{} = 1\n", ".a".repeat(9000));
    for text in [lists, names] {
        let shown = bad(&text);
        assert!(shown.contains("nested too deep"), "{shown}");
        assert!(shown.contains("the right file"), "{shown}");
    }
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
    // No number holds this product.
    let factors: String = (0..64).map(|at| format!("f{at} = [1, 2, 3]\n")).collect();
    let shown = bad(&format!(
        "[factors]\n{factors}[[stack]]\ndir = {{ path = \".\" }}\n"
    ));
    assert!(shown.contains("more than 10¹⁸ combinations"), "{shown}");
}

#[test]
fn a_number_below_zero_is_advised_as_it_can_be_written() {
    let shown = bad(
        "[[stack]]\ndir = { path = \".\" }\n[[workload]]\nrandom = { mode = \"read\", size = \"1 MiB\", threads = -1 }\n",
    );
    // 0 threads are refused, too.
    assert!(shown.contains("write it without the minus"), "{shown}");
}
