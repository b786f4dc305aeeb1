//! What is wrong with a study, each mistake at its place in the text.

use super::*;

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
       = help: did you mean "block-size"? settings of random: size, block-size, time, ratio, read-share, direct, threads, mode, words, note
    "#
    );
}

#[test]
fn a_refused_level_is_shown_where_it_is_used_and_where_it_is_written() {
    insta::assert_snapshot!(bad(&GOOD.replacen("\"64 KiB\"]", "\"64q\"]", 1)), @r#"
    error: block-size: "q" is not a unit of bytes
      --> file.toml:14:25
       |
     4 | block-size = ["4 KiB", "64q"]
       |                        ----- where block-size is 64q
    ...
    14 | random = { block-size = "{block-size}", time = "5 s" }
       |                         ^^^^^^^^^^^^^^
       |
       = help: write B, KiB, MiB, GiB, TiB, PiB (1024) or kB, MB, GB, TB, PB (1000)
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
        &["this [[stack]] does not say of which kind it is"],
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
        &["a value must stand here, not a table"],
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
        ("size = \"4q\"", "\"q\" is not a unit of bytes"),
        ("size = true", "size takes an amount of bytes, not a flag"),
        ("size = -1", "size cannot be negative"),
        ("time = 5", "time takes a time with its unit, not a number"),
        (
            "threads = \"4\"",
            "threads takes a whole number, not a text",
        ),
        (
            "threads = 1.5",
            "threads takes a whole number, not a decimal number",
        ),
        ("ratio = inf", "ratio must be finite"),
        ("ratio = nan", "ratio must be finite"),
        ("ratio = \"x\"", "ratio takes a number, not a text"),
        ("read-share = 60", "read-share is more than 100 %"),
        ("read-share = \"60 percent\"", "\"percent\" is not a share"),
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
fn slices_out_of_range_or_without_partners_are_refused_with_the_nearest_choice() {
    let trial = |words: &str| format!("[trial]\n{words}\n[decide]");
    refused(
        "[decide]",
        &trial("provision = \"once\"\nslice = \"5 ms\""),
        &["a slice lasts from 10 ms to 1 s", "write \"10.0 ms\""],
    );
    refused(
        "[decide]",
        &trial("provision = \"once\"\nslice = \"2 min\""),
        &["a slice lasts from 10 ms to 1 s", "write \"1.00 s\""],
    );
    refused(
        "[decide]",
        &trial("provision = \"once\"\nslice = \"50 parsecs\""),
        &[
            "\"parsecs\" is not a unit of time",
            "write it like \"50 ms\"",
        ],
    );
    refused(
        "[decide]",
        &trial("provision = \"once\"\norder = \"turns\"\nslice = \"50 ms\""),
        &[
            "follow each other within a workload",
            "order = \"adjacent\"",
        ],
    );
    refused(
        "[decide]",
        &trial("slice = \"50 ms\""),
        &["follow each other within a workload"],
    );
    refused(
        "[decide]",
        &trial("provision = \"once\"\nprecondition = \"snia\"\nslice = \"50 ms\""),
        &["does not stay in its steady state", "slice = \"off\""],
    );
}

#[test]
fn cuts_need_a_workload_with_promises_and_a_number_within_limits() {
    let none = bad(&format!("{GOOD}\n[crash]\ncuts = 5\n"));
    let unpromised = "no workload of this study is promised anything";
    assert!(none.contains(unpromised), "{none}");
    assert!(none.contains("promises = {"), "{none}");
    let many = bad(&format!("{GOOD}\n[crash]\ncuts = 1001\n"));
    assert!(many.contains("cuts lies between 1 and 1000"), "{many}");
    let never = bad(&format!("{GOOD}\n[crash]\nenough = \"0 %\"\n"));
    assert!(never.contains("enough lies between 0 and 100 %"), "{never}");
}

#[test]
fn the_data_of_others_are_refused_where_there_are_none() {
    let refused = |lines: &str, word: &str| {
        let text = format!("[[stack]]\ndir = {{ path = \"/var/tmp\" }}\n[[workload]]\n{lines}\n");
        let errors = parse("t.toml", text.as_bytes(), &Kinds::real()).err();
        let errors = errors.unwrap_or_else(|| panic!("{lines} is not refused"));
        let told = errors[0].to_string();
        assert!(told.contains(word), "{lines}: {told}");
    };
    refused(
        "random = { mode = \"read\", size = \"1 MiB\", same-data = true }",
        "there is no workload before it",
    );
    let same = "sequential = { mode = \"read\", size = \"1 MiB\", same-data = true }";
    let no_files = "\"first\" leaves no whole files, and";
    for (before, word) in [
        (
            "sequential = { mode = \"write\", size = \"2 MiB\" }",
            "\"first\" leaves a file of 2 MiB with random bytes, and this workload needs a file of 1 MiB with random bytes",
        ),
        (
            "sequential = { mode = \"write\", size = \"1 MiB\", content = \"zero\" }",
            "\"first\" leaves a file of 1 MiB with zeros, and this workload needs a file of 1 MiB with random bytes",
        ),
        (
            "sequential = { mode = \"write\", size = \"1 MiB\", time = \"1 s\" }",
            no_files,
        ),
        ("files = { count = 2 }", no_files),
    ] {
        let two = format!("name = \"first\"\n{before}\n[[workload]]\n{same}");
        refused(&two, word);
    }
}
