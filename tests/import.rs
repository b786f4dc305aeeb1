//! Other tools' outputs through the whole program: imported, reported in every form, found in the
//! index, set side by side, and never gone on with.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::path::Path;

use crate::support::{Ground, Said};

/// A real output, copied to where the program works.
fn copy(ground: &Ground, golden: &str, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(golden);
    ground.write(name, fs::read(path).unwrap());
}

fn ended(said: Said) -> String {
    said.ended(0);
    said.out
}

/// The only run's log, line by line.
fn log(ground: &Ground) -> Vec<serde_json::Value> {
    let runs = ground.store().join("runs");
    let run = fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(run.join("log.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn an_import_is_a_run_like_any_other() {
    let ground = Ground::new();
    copy(&ground, "fio/fio-3.39_seqread_normal.txt", "one.txt");
    copy(&ground, "fio/fio-3.39_randrw_jsonplus.json", "mix.json");
    let text = fs::read_to_string(ground.path().join("one.txt")).unwrap();
    ground.write(
        "two.txt",
        text.replace("99.00th=[ 3032]", "99.00th=[ 3064]"),
    );
    let args = [
        "import",
        "old=one.txt",
        "new=two.txt",
        "new=mix.json",
        "--title",
        "Old and new",
    ];
    let said = ended(ground.stackrace(&args));
    for part in [
        "Imported, not measured here: new is 1.00 x as fast as old in ",
        "; one run each, so no interval.",
        "imported · 4 results",
        "1.43 GB/s",
        "nor measured in turn",
    ] {
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(part), "{part}\n{said}");
    }

    // The source is kept as it was, and nothing says that anything was measured here.
    let lines = log(&ground);
    let kept: Vec<&serde_json::Value> = lines
        .iter()
        .filter(|line| line["event"] == "imported")
        .collect();
    assert_eq!(kept.len(), 3);
    let source = fs::read_to_string(ground.path().join("mix.json")).unwrap();
    assert_eq!(kept[2]["text"], source.as_str());
    assert_eq!(kept[2]["version"], "fio-3.39");
    assert_eq!(lines[0]["study_name"], "import");
    assert!(
        lines[0]["study"]
            .as_str()
            .unwrap()
            .lines()
            .all(|line| line.starts_with('#'))
    );
    assert_eq!(lines.last().unwrap()["reason"], "imported");

    has_every_report(&ground);
    assert!(ended(ground.stackrace(&["runs"])).contains("imported  Old and new"));
    assert_eq!(
        ground.store().join("stackrace.db").exists(),
        cfg!(feature = "sqlite")
    );
    let resumed = ground.stackrace(&["resume"]);
    resumed.ended(3);
    resumed.err_has("there is nothing to continue");
}

/// The reports of the imported run, in every form.
fn has_every_report(ground: &Ground) {
    let csv = ended(ground.stackrace(&["report", "--format", "csv"]));
    assert!(
        csv.contains(",read latency mean,ns,lower,285028.783979,complete,"),
        "{csv}"
    );
    let row = csv.lines().nth(1).unwrap();
    let figure = "throughput,B/s,higher,1431655765.3333333,complete,";
    assert!(row.contains(figure), "{row}");
    assert!(!row.contains("0.000000000"), "no time: {row}");
    let json: serde_json::Value =
        serde_json::from_str(&ended(ground.stackrace(&["report", "--format", "json"]))).unwrap();
    assert_eq!(json["verdict"]["state"], "unpaired");
    assert_eq!(json["trials"].as_array().unwrap().len(), 4);
    for form in ["html", "markdown", "terminal"] {
        let report = ended(ground.stackrace(&["report", "--format", form]));
        assert!(report.contains("Old and new") || form == "terminal");
        assert!(
            report.contains("fio read 1M") && !report.contains("NaN"),
            "{form}"
        );
    }
}

fn a_refused_text_leaves_no_run() {
    let ground = Ground::new();
    copy(&ground, "fio/fio-3.39_seqread_normal.txt", "good.txt");
    let good = fs::read_to_string(ground.path().join("good.txt")).unwrap();
    ground.write(
        "bad.txt",
        good.replace("BW=1365MiB/s (1432", "BW=2365MiB/s (1432"),
    );
    ground.write("latin.txt", b"one\ntw\xf6\n");
    let said = ground.stackrace(&["import", "good.txt", "bad.txt", "latin.txt"]);
    said.ended(3);
    said.err_has("error: bad.txt:6: ");
    said.err_has("contradicts itself");
    said.err_has("error: latin.txt:1: no known tool prints a text");
    assert!(!ground.store().exists(), "the store was made");
}

fn standard_input_is_read_once() {
    let ground = Ground::new();
    copy(&ground, "sysbench/sysbench-1.0.20_rndrw.txt", "pasted.txt");
    let pasted = fs::File::open(ground.path().join("pasted.txt")).unwrap();
    let mut import = ground.program(&["import", "nas=-"]);
    let said = Said::of(&import.stdin(pasted).output().unwrap());
    said.ended(0);
    assert!(said.out.contains("nas"), "{}", said.out);
    let listed = ended(ground.stackrace(&["runs", "--json"]));
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["configurations"][0], "nas", "{listed}");
    assert_eq!(listed[0]["ended"], "imported", "{listed}");
    let said = ground.stackrace(&["import", "a=-", "b=-"]);
    said.ended(3);
    said.err_has("standard input can be read once");
}

fn labels_tell_results_apart_where_they_can() {
    let ground = Ground::new();
    copy(&ground, "phoronix/pts-10.8.4_stream.xml", "a.xml");
    ended(ground.stackrace(&["import", "a.xml"]));
    let lines = log(&ground);
    assert_eq!(lines[0]["configurations"][0]["name"], "ci");
    assert_eq!(lines[0]["decide"]["rounds_max"], 2, "two runs of each test");

    // The same system in two files says nothing of what differs between them.
    let ground = Ground::new();
    copy(&ground, "phoronix/pts-10.8.4_stream.xml", "a.xml");
    let text = fs::read_to_string(ground.path().join("a.xml")).unwrap();
    let other = text
        .replace("105104.5", "104104.5")
        .replace("104854.3:105354.7", "103854.3:104354.7");
    ground.write("b.xml", other);
    ended(ground.stackrace(&["import", "a.xml", "b.xml"]));
    let names = &log(&ground)[0]["configurations"];
    assert_eq!(
        (&names[0]["name"], &names[1]["name"]),
        (&"a".into(), &"b".into())
    );
}

fn a_text_that_is_there_twice_counts_once() {
    let ground = Ground::new();
    copy(&ground, "fio/fio-3.33_two_jobs.json", "a.json");
    copy(&ground, "fio/fio-3.33_two_jobs.json", "b.json");
    let said = ended(ground.stackrace(&["import", "old=a.json", "new=b.json"]));
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("new (b.json) repeats a.json: the text is the same"),
        "{said}"
    );
    let lines = log(&ground);
    assert_eq!(lines[0]["configurations"].as_array().unwrap().len(), 1);
    // In a run of its own it is the same measurement all the same.
    ended(ground.stackrace(&["import", "new=b.json"]));
    let runs = ended(ground.stackrace(&["runs"]));
    let ids: Vec<&str> = runs
        .lines()
        .filter_map(|line| line.split(' ').next().filter(|id| id.starts_with("20")))
        .collect();
    ground
        .stackrace(&["diff", ids[0], ids[1]])
        .ended(3)
        .err_has("are there more than once");
    ground
        .stackrace(&["gate", ids[0], "--baseline", ids[1], "--worse-than", "5%"])
        .ended(3)
        .err_has("are there more than once");
}

fn two_results_are_set_side_by_side() {
    let ground = Ground::new();
    copy(&ground, "fio/fio-3.33_two_jobs.json", "now.json");
    let load = fs::read_to_string(ground.path().join("now.json")).unwrap();
    // Another version, and another latency of each job: with the same figures it would be one run.
    let other = load
        .replace("fio-3.33", "fio-3.36")
        .replace("\"99.000000\" : 14016", "\"99.000000\" : 14144")
        .replace("\"99.000000\" : 1286144", "\"99.000000\" : 1302528");
    ground.write("then.json", other);
    ended(ground.stackrace(&["import", "now=now.json", "then=then.json"]));
    let said = ended(ground.stackrace(&["diff", "last/now", "last/then"]));
    let around = said.find("Known differences").unwrap();
    let figures = said.find("fio randread 4k").unwrap();
    assert!(figures < around, "{said}");
    assert!(
        said.contains("unpaired") && !said.contains("faster"),
        "{said}"
    );
    assert!(
        said.lines().all(|line| line.chars().count() <= 80),
        "{said}"
    );
    let json = ended(ground.stackrace(&["diff", "last/now", "last/then", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["a"]["imported"], true);
    assert_eq!(json["workloads"].as_array().unwrap().len(), 2);
    assert_eq!(json["workloads"][0]["figures"][0]["ratio"]["estimate"], 1.0);
    assert_eq!(
        json["workloads"][0]["figures"][0]["ratio"]["low"],
        serde_json::Value::Null
    );
    let said = ground.stackrace(&["diff", "last", "last/then"]);
    said.ended(2);
    said.err_has("name one of them, as last/NAME: now; then");
}

/// fio's jobs and our own workload are the same operation: what both have is compared, what one has
/// is named.
fn an_imported_result_stands_beside_ones_own() {
    let ground = Ground::new();
    ground.write(
        "study.toml",
        "title = \"Own\"\n[[stack]]\ndir = { path = \".\" }\n[[workload]]\nsequential = { mode = \"write\", size = \"1 MiB\" }\n[decide]\nrounds-at-most = 3\n",
    );
    ended(ground.stackrace(&["run", "study.toml"]));
    copy(&ground, "fio/fio-3.39_seqwrite_normal.txt", "fio.txt");
    ended(ground.stackrace(&["import", "fio.txt"]));
    let runs = ended(ground.stackrace(&["runs"]));
    let ids: Vec<&str> = runs
        .lines()
        .filter(|line| line.starts_with("20"))
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    let own = ids.iter().find(|id| {
        let said = ended(ground.stackrace(&["report", id, "--format", "markdown"]));
        said.contains("# Own")
    });
    // Nothing says that fio's job did the same work.
    ground
        .stackrace(&["diff", own.unwrap(), "last"])
        .ended(3)
        .err_has("is other work");
    let said = ended(ground.stackrace(&["diff", own.unwrap(), "last", "--anyway"]));
    assert!(said.contains("is other work"), "{said}");
    for part in [
        "kernel",
        "fio-3.39",
        "throughput",
        "write latency p50",
        "Only B has",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(said.contains("write latency mean"), "{said}");
    assert!(
        said.lines().all(|line| line.chars().count() <= 80),
        "{said}"
    );
}

fn the_lines_of_an_import_are_copied_where_they_are_wanted() {
    let ground = Ground::new();
    copy(&ground, "fio/fio-3.39_seqread_normal.txt", "one.txt");
    ended(ground.stackrace(&["import", "one.txt", "--events", "events.jsonl"]));
    let copied = fs::read_to_string(ground.path().join("events.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = copied
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, log(&ground));
    assert_eq!(lines.last().unwrap()["reason"], "imported");
    // On standard output they stand alone.
    let printed = ended(ground.stackrace(&["import", "one.txt", "--events", "-"]));
    for line in printed.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["event"].is_string(), "{line}");
    }
    let said = ground.stackrace(&["import", "one.txt", "--events", "nowhere/x"]);
    said.ended(3).err_has("nowhere");
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        an_import_is_a_run_like_any_other,
        a_refused_text_leaves_no_run,
        standard_input_is_read_once,
        labels_tell_results_apart_where_they_can,
        a_text_that_is_there_twice_counts_once,
        two_results_are_set_side_by_side,
        an_imported_result_stands_beside_ones_own,
        the_lines_of_an_import_are_copied_where_they_are_wanted
    ]
}
