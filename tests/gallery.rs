//! A folder of runs as a site: what is shown, what is refused, what is cut, and what is never touched.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Ground, Said};
use serde_json::Value;
use stackrace_test_needs as needs;

/// The kept logs of the corpus as a folder of results. All of them have one id and a made-up hash of their study: each
/// gets its own.
pub(crate) fn kept_logs(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/log");
    for name in ["hostile", "small", "sweep"] {
        let text = fs::read_to_string(corpus.join(name)).unwrap();
        let (head, rest) = text.split_once('\n').unwrap();
        let mut head: Value = serde_json::from_str(head).unwrap();
        head["run"] = format!("2026-11-21T1405-{name}").into();
        let study = head["study"].as_str().unwrap();
        head["study_hash"] = blake3::hash(study.as_bytes()).to_hex().to_string().into();
        fs::write(
            folder.join(format!("{name}.jsonl")),
            format!("{head}\n{rest}"),
        )
        .unwrap();
    }
}

fn ground() -> Ground {
    let ground = Ground::new();
    kept_logs(&ground.path().join("results"));
    ground
}

fn made(ground: &Ground) -> Said {
    ground.stackrace(&["gallery", "results", "-o", "site"])
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

fn catalogue(ground: &Ground) -> Value {
    let text = fs::read(ground.path().join("site/gallery.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn the_kept_logs_become_a_site_with_a_page_and_a_log_for_each() {
    let ground = ground();
    let said = made(&ground);
    said.ended(0);
    assert!(said.out.contains("3 runs"), "{}", said.out);
    assert!(
        said.out.contains("what is published of machines"),
        "{}",
        said.out
    );
    let site = ground.path().join("site");
    assert_eq!(
        names(&site),
        ["gallery.json", "index.html", "runs"]
            .map(String::from)
            .into()
    );
    assert_eq!(names(&site.join("runs")).len(), 6);
    let index = fs::read_to_string(site.join("index.html")).unwrap();
    assert!(!index.contains("<script"));
    for run in catalogue(&ground)["runs"].as_array().unwrap() {
        let log = fs::read(site.join(run["log"].as_str().unwrap())).unwrap();
        let hash = blake3::hash(&log).to_hex().to_string();
        assert_eq!(run["blake3"], hash.as_str());
        assert!(index.contains(&hash));
        let page = fs::read_to_string(site.join(run["page"].as_str().unwrap())).unwrap();
        assert!(page.contains("Before you believe the figures"));
    }
}

/// Fields of a value as the page of the format writes them: `runs[].log`. What is named by the user has no fields.
fn fields(value: &Value, within: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) if within != "files" => {
            for (name, value) in object {
                let name = match within {
                    "" => name.clone(),
                    _ => format!("{within}.{name}"),
                };
                fields(value, &name, found);
                found.insert(name);
            }
        }
        Value::Array(all) => {
            let within = format!("{within}[]");
            all.iter().for_each(|value| fields(value, &within, found));
        }
        _ => {}
    }
}

fn the_page_of_the_format_has_every_field_of_the_list_and_no_other() {
    let ground = ground();
    made(&ground).ended(0);
    let mut written = BTreeSet::new();
    fields(&catalogue(&ground), "", &mut written);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats/gallery.md");
    let page = fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let told: BTreeSet<String> = rows
        .map(|row| row.split('`').next().unwrap().to_owned())
        .collect();
    assert_eq!(told, written);
    let version = format!("Format {}.", catalogue(&ground)["gallery"]);
    assert!(page.contains(&version), "the page lacks: {version}");
}

fn a_second_time_only_what_was_made_is_replaced() {
    let ground = ground();
    made(&ground).ended(0);
    let site = ground.path().join("site");
    let before = names(&site.join("runs"));
    ground.write("site/own.html", "mine");
    ground.write("site/runs/own.txt", "mine");
    fs::remove_file(ground.path().join("results/sweep.jsonl")).unwrap();
    made(&ground).ended(0);
    let left = names(&site.join("runs"));
    let gone: Vec<&String> = before.difference(&left).collect();
    assert_eq!(gone.len(), 2, "{gone:?}");
    assert!(gone.iter().all(|name| name.contains("-sweep-")), "{gone:?}");
    for own in ["own.html", "runs/own.txt"] {
        assert_eq!(fs::read_to_string(site.join(own)).unwrap(), "mine");
    }
}

fn a_file_of_somebody_else_is_never_replaced() {
    let ground = ground();
    ground.make_dir("site");
    ground.write("site/index.html", "mine");
    let said = made(&ground);
    said.ended(3);
    assert!(
        said.err
            .contains("site/index.html is there, and not as `stackrace gallery` made it"),
        "{}",
        said.err
    );
    assert_eq!(
        names(&ground.path().join("site")).len(),
        1,
        "nothing else was written"
    );
    fs::remove_file(ground.path().join("site/index.html")).unwrap();
    made(&ground).ended(0);
    // Changed by hand since.
    ground.write("site/index.html", "mine again");
    made(&ground).ended(3);
    assert_eq!(
        fs::read_to_string(ground.path().join("site/index.html")).unwrap(),
        "mine again"
    );
}

fn a_site_that_was_half_written_when_it_was_killed_is_written_again() {
    let ground = ground();
    made(&ground).ended(0);
    let site = ground.path().join("site");
    let whole = fs::read(site.join("index.html")).unwrap();
    fs::remove_file(ground.path().join("results/sweep.jsonl")).unwrap();
    // As a kill leaves it behind the list, which knows the old page and the new one, and before the last pages.
    let before = fs::read(site.join("gallery.json")).unwrap();
    made(&ground).ended(0);
    let mut list: Value = serde_json::from_slice(&before).unwrap();
    let new = catalogue(&ground)["files"]["index.html"][0].clone();
    list["files"]["index.html"]
        .as_array_mut()
        .unwrap()
        .push(new);
    fs::write(site.join("gallery.json"), list.to_string()).unwrap();
    for page in [whole, fs::read(site.join("index.html")).unwrap()] {
        fs::write(site.join("index.html"), page).unwrap();
        made(&ground).ended(0);
        fs::write(site.join("gallery.json"), list.to_string()).unwrap();
    }
}

fn a_published_log_that_was_changed_is_refused_and_the_others_go_on() {
    let ground = ground();
    made(&ground).ended(0);
    let log = catalogue(&ground)["runs"][0]["log"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = ground.path().join("site").join(&log);
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(
        "{\"at\":\"2026-11-21T15:00:00.000Z\",\"event\":\"warned\",\"text\":\"forged\"}\n",
    );
    fs::write(&path, text).unwrap();
    let said = ground.stackrace(&["gallery", "site", "-o", "copy"]);
    said.ended(0);
    assert!(
        said.err.contains(&format!(
            "not shown: {log}: its hash is not the one in gallery.json"
        )),
        "{}",
        said.err
    );
    assert!(said.out.contains("2 runs"), "{}", said.out);
    // Its own pages are nothing that would have to be told.
    assert!(!said.err.contains("not looked at"), "{}", said.err);
}

fn bad_files_are_told_by_name_and_the_others_go_on() {
    let ground = ground();
    let small = fs::read_to_string(ground.path().join("results/small.jsonl")).unwrap();
    let (head, rest) = small.split_once('\n').unwrap();
    let mut head: Value = serde_json::from_str(head).unwrap();
    head["format"] = 99.into();
    head["run"] = "newer".into();
    ground.write("results/newer.jsonl", format!("{head}\n{rest}"));
    ground.write("results/fio.json", "{\"jobs\":[]}");
    ground.write("results/README.md", "words");
    let huge = fs::File::create(ground.path().join("results/huge.jsonl")).unwrap();
    huge.set_len((64 << 20) + 1).unwrap();
    // The same run twice, and one that differs.
    ground.write("results/again.jsonl", &small);
    let sweep = fs::read_to_string(ground.path().join("results/sweep.jsonl")).unwrap();
    ground.write("results/other.jsonl", sweep + "\n");
    let said = made(&ground);
    said.ended(0);
    for words in [
        "not shown: newer.jsonl: newer.jsonl has log format 99; this stackrace reads format 3",
        "not shown: fio.json: line 1 of fio.json does not begin a run",
        "not shown: huge.jsonl: it has 64.0 MiB, and a log may have 64 MiB",
        "not shown: other.jsonl: another file is a log of the same run",
        "not shown: sweep.jsonl: another file is a log of the same run",
        "README.md",
        "small.jsonl (the same log as again.jsonl)",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(said.out.contains("2 runs"), "{}", said.out);
}

fn what_would_be_published_is_listed_and_nothing_is_written() {
    let ground = ground();
    let said = ground.stackrace(&["gallery", "results", "--dry-run", "--without", "kernel"]);
    said.ended(0);
    assert!(
        said.out.contains("  kernel   cut: 6.12.48, in"),
        "{}",
        said.out
    );
    assert!(said.out.contains("  paths    /script, "), "{}", said.out);
    assert!(said.out.contains("nothing was written"), "{}", said.out);
    assert_eq!(names(ground.path()), ["results".to_owned()].into());
    let said = ground.stackrace(&["gallery", "results", "--without", "hosts"]);
    said.ended(2);
    assert!(
        said.err.contains("host, user, paths, serials, kernel"),
        "{}",
        said.err
    );
}

fn a_folder_without_a_log_is_refused_with_what_belongs_there() {
    let ground = Ground::new();
    ground.make_dir("results");
    let said = made(&ground);
    said.ended(3);
    assert!(
        said.err.contains("no file in results can be shown") && said.err.contains("log.jsonl"),
        "{}",
        said.err
    );
    ground.stackrace(&["gallery", "nowhere"]).ended(2);
    kept_logs(&ground.path().join("results"));
    ground
        .stackrace(&["gallery", "results", "-o", "results"])
        .ended(2);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the script is started as a user starts it"
)]
fn the_seed_makes_a_gallery_of_kept_logs() {
    let ground = ground();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let done = Command::new(needs::tool("bash"))
        .arg(root.join("packaging/gallery-seed"))
        .args(["site", "results"])
        .env("PROGRAM", env!("CARGO_BIN_EXE_stackrace"))
        .current_dir(ground.path())
        .output()
        .unwrap();
    Said::of(&done).ended(0);
    assert_eq!(catalogue(&ground)["runs"].as_array().unwrap().len(), 3);
    assert_eq!(catalogue(&ground)["runs"][0]["without"][0], "host");
}

fn a_checked_directory_is_placed_in_a_gallery_or_it_is_said_why_not() {
    let ground = ground();
    ground.make_dir("d");
    let check = |gallery: &str| {
        let size = ["--size", "1 MiB", "--rounds", "3", "--time", "20 s"];
        ground.stackrace(&[&["check", "d", "--gallery", gallery][..], &size].concat())
    };
    let said = check("results");
    said.ended(0);
    // Of this machine's drive the kept logs know nothing, whatever it is.
    let why = [
        "tells no model of its drive",
        "tells no drive",
        "the gallery has 0 runs",
    ];
    let out = said.out.replace('\n', " ");
    assert!(why.iter().any(|why| out.contains(why)), "{}", said.out);
    // Before anything is measured.
    check("nowhere").ended(3);
    check("d").ended(3);
    assert_eq!(
        fs::read_dir(ground.store().join("runs")).unwrap().count(),
        1
    );
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        the_kept_logs_become_a_site_with_a_page_and_a_log_for_each,
        the_page_of_the_format_has_every_field_of_the_list_and_no_other,
        a_second_time_only_what_was_made_is_replaced,
        a_file_of_somebody_else_is_never_replaced,
        a_site_that_was_half_written_when_it_was_killed_is_written_again,
        a_published_log_that_was_changed_is_refused_and_the_others_go_on,
        bad_files_are_told_by_name_and_the_others_go_on,
        what_would_be_published_is_listed_and_nothing_is_written,
        a_folder_without_a_log_is_refused_with_what_belongs_there,
        the_seed_makes_a_gallery_of_kept_logs,
        a_checked_directory_is_placed_in_a_gallery_or_it_is_said_why_not
    ]
}
