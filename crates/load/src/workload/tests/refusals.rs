//! What a workload refuses before it touches anything.

use super::*;
use stackrace_base::setting::written::with_zeros;

#[test]
fn phases_that_make_no_sense_are_refused() {
    for (phases, word) in [
        ("[\"create\", \"remane\"]", "there is no phase \"remane\""),
        ("[]", "phases without create"),
        ("\"stat\"", "phases without create"),
        ("[\"stat\", \"create\"]", "create cannot follow stat"),
        ("[\"create\", \"mkdir\"]", "mkdir cannot follow create"),
        (
            "[\"create\", \"unlink\", \"stat\"]",
            "stat cannot follow unlink",
        ),
        ("[\"create\", \"stat\", \"stat\"]", "stat stands twice"),
        (
            "[\"create\", \"rmdir\"]",
            "rmdir finds directories that are not empty",
        ),
        (
            "[\"create\"], rename-to = \"next-directory\"",
            "no phase renames them",
        ),
        (
            "[\"create\"], directories = 1000001",
            "between 1 and 1000000",
        ),
    ] {
        refused(&format!("files = {{ count = 1, phases = {phases} }}"), word);
    }
}

#[test]
fn words_that_would_be_ignored_are_refused() {
    for (line, word) in [
        (
            "copy-tree = { from = \"/var/tmp\", files = 10 }",
            "has no meaning beside `from`",
        ),
        (
            "delete-tree = { from = \"/var/tmp\", content = \"zero\" }",
            "has no meaning beside `from`",
        ),
        (
            "sequential = { mode = \"write\", size = \"1 MiB\", content = \"zero\", compress-ratio = 2 }",
            "zeros have no compress-ratio",
        ),
    ] {
        refused(line, word);
    }
}

#[test]
fn reading_first_and_the_data_of_others_are_refused_where_they_mean_nothing() {
    let one = "size = \"1 MiB\"";
    for (line, word) in [
        (
            format!("sequential = {{ mode = \"read\", {one}, read-first = true }}"),
            "nothing is written",
        ),
        (
            format!("sequential = {{ mode = \"write\", {one}, read-first = true }}"),
            "a new file has nothing to read",
        ),
        (
            format!("random = {{ mode = \"write\", {one}, read-first = true, verify = true }}"),
            "cannot be verified",
        ),
        (
            format!(
                "random = {{ mode = \"write\", {one}, read-first = true, engine = \"io_uring\" }}"
            ),
            "io_uring does not write",
        ),
        (
            format!("sequential = {{ mode = \"write\", {one}, same-data = true }}"),
            "a new file is not the file of",
        ),
        (
            format!("random = {{ mode = \"read\", {one}, same-data = true, verify = true }}"),
            "cannot be verified",
        ),
    ] {
        refused(&line, word);
    }
}

/// A workload that is refused with a message that holds `word`.
pub(super) fn refused(line: &str, word: &str) {
    let refusal = written::workload(line).err();
    let refusal = refusal.unwrap_or_else(|| panic!("{line} is not refused"));
    assert!(refusal.contains(word), "{line}: {refusal}");
}

#[test]
fn postmark_that_runs_out_of_files_is_no_result() {
    let line = "postmark = { number = 5, transactions = 100, bias-create = 1, seed = 42 }";
    let failed = std::panic::catch_unwind(|| run(line)).unwrap_err();
    let said = failed.downcast_ref::<String>().unwrap();
    assert!(said.contains("no file left"), "{said}");
}

#[test]
fn postmark_refuses_what_means_nothing() {
    for (settings, word) in [
        ("number = 0", "number must be between"),
        ("bias-read = 11", "bias-read must be between 0 and 10"),
        (
            "bias-read = 3, read-append = false",
            "bias-read has no effect",
        ),
        (
            "size-low = 900, size-high = 800",
            "size-high is below size-low",
        ),
        ("seed = 0", "seed must be between"),
    ] {
        refused(&format!("postmark = {{ {settings} }}"), word);
    }
}

#[test]
fn words_that_mean_nothing_together_are_refused() {
    for (line, word) in [
        (
            "copy-tree = { profile = \"mail\", files = 3 }",
            "files has no meaning beside `profile`",
        ),
        (
            "copy-tree = { from = \"/usr\", profile = \"mail\" }",
            "beside `from`",
        ),
        ("delete-tree = { scale = 2 }", "without a profile"),
        (
            "delete-tree = { profile = \"mail\", scale = 11 }",
            "11 times",
        ),
        ("delete-tree = { profile = \"mail\", scale = 0 }", "0 times"),
        ("extract-tar = { from = \"/usr\" }", "no regular file"),
        ("extract-tar = { from = \"/nowhere\" }", "No such file"),
        (
            "extract-tar = { from = \"/proc/self/exe\", files = 3 }",
            "beside `from`",
        ),
        (
            "read-file = { from = \"/proc/self/exe\", size = \"1 MiB\" }",
            "beside `from`",
        ),
        ("read-file = { block-size = \"1 MiB\" }", "size of 0"),
        (
            "read-file = { size = \"1 MiB\", block-size = 100, direct = true }",
            "block size 100 B",
        ),
        (
            "stream-video = { size = \"1 MiB\" }",
            "smaller than a block",
        ),
        ("stream-video = { loops = 9 }", "9 loops"),
        (
            "random = { mode = \"read\", size = \"1 MiB\", fsync-every = 4 }",
            "nothing is written",
        ),
        (
            "random = { mode = \"read\", size = \"1 MiB\", fsync-at-end = true }",
            "nothing is written",
        ),
        (
            "random = { mode = \"read\", size = 100 }",
            "a file of 100 B holds no block",
        ),
        ("stream-video = { block-size = 1000 }", "block size 1000 B"),
    ] {
        refused(line, word);
    }
}

#[test]
fn settings_of_another_database_are_refused_with_those_of_its_own() {
    let mut lines = vec![
        (
            "idiom = \"append\", journal = \"wal\"",
            "journal is a setting of SQLite, and append uses no database",
        ),
        (
            "idiom = \"create\", fsync = \"off\"",
            "fsync is a setting of PostgreSQL, and create uses no database",
        ),
        (
            "idiom = \"postgresql\", synchronous = \"off\"",
            "synchronous is a setting of SQLite, not of PostgreSQL",
        ),
        (
            "idiom = \"sqlite\", synchronous-commit = \"off\"",
            "synchronous-commit is a setting of PostgreSQL, not of SQLite",
        ),
        ("idiom = \"postgresql\", fsync = \"of\"", "off"),
    ];
    if cfg!(feature = "postgresql") {
        let one = "idiom = \"postgresql\", threads = 2";
        lines.push((one, "over one connection"));
    } else {
        lines.push(("idiom = \"postgresql\"", "built without PostgreSQL"));
    }
    for (settings, word) in lines {
        refused(&format!("promises = {{ {settings} }}"), word);
    }
}

/// Workloads with direct I/O, each with the settings that decide where its requests begin and how long they are.
const DIRECT: [(&str, &str, &[&str]); 10] = [
    (
        "random",
        "mode = \"write\", size = \"64 KiB\", access = \"uniform\", operations = 8",
        &["block-size", "align"],
    ),
    (
        "find-rate",
        "mode = \"read\", size = \"64 KiB\", bound = \"mean <= 1 min\", step = \"1 ms\"",
        &["block-size", "align"],
    ),
    (
        "sequential",
        "mode = \"write\", size = \"64 KiB\"",
        &["block-size"],
    ),
    ("read-file", "size = \"64 KiB\"", &["block-size"]),
    ("read-file", "block-size = \"4 KiB\"", &["size"]),
    ("shared-file", "size = \"64 KiB\"", &["block-size"]),
    (
        "fileio",
        "mode = \"seqwr\", size = \"64 KiB\", files = 2, version = \"1.0\"",
        &["block-size"],
    ),
    (
        "fileio",
        "mode = \"rndwr\", size = \"64 KiB\", files = 2, operations = 8",
        &["block-size"],
    ),
    (
        "bonnie++",
        "size = \"1 MiB\", fast = true, seeks = 8",
        &["chunk"],
    ),
    ("stream-video", "size = \"1 MiB\"", &["block-size"]),
];

#[test]
fn direct_requests_of_odd_sizes_are_refused_or_work() {
    for kind in crate::programs::workloads() {
        let direct = kind.settings.iter().any(|setting| setting.name == "direct");
        let listed = DIRECT.iter().any(|(name, _, _)| *name == kind.name);
        assert_eq!(direct, listed, "{}: keep the table whole", kind.name);
    }
    for (name, rest, sizes) in DIRECT {
        let direct = match name {
            "stream-video" => "\"always\"",
            _ => "true",
        };
        for size in sizes {
            for bytes in [256, 700, 1000, 1536, 5000] {
                let line =
                    format!("{name} = {{ {rest}, direct = {direct}, {size} = \"{bytes} B\" }}");
                if written::workload(&line).is_ok() {
                    // What a plan accepts is carried out to its end.
                    run(&line);
                }
            }
        }
    }
}

/// Settings for which 0 does something real, and what; it is refused for all others.
const ZEROS: &[(&str, &str)] = &[
    ("at-rest", "no object is there before"),
    ("bias-create", "always the other operation"),
    ("bias-read", "always the other operation"),
    ("disk", "no room is asked for"),
    ("duplicates", "no block stands twice"),
    ("fsync-every", "never"),
    ("margin", "exactly the rate of the format"),
    ("passes", "until the time is over"),
    ("size-median", "empty files"),
    ("size-min", "some files are empty"),
    ("size-spread", "all of one size"),
    ("subdirectories", "all in one directory"),
    ("think-time", "no pause"),
    ("too-fast", "each phase is reported"),
    // Of bonnie++ and sysbench: as the originals have it.
    ("file-size-max", "empty files"),
    ("file-size-min", "some files are empty"),
    ("files of bonnie++", "data alone"),
    ("size of bonnie++", "files alone"),
    ("ratio", "writes alone"),
];

/// Of each setting of each workload: a time, a size or a number of 0 that measures nothing is not
/// found out after an hour.
#[test]
fn a_setting_of_zero_is_refused_or_does_something() {
    for kind in crate::programs::workloads() {
        for (name, settings) in with_zeros(kind.settings, kind.example).unwrap() {
            let of_kind = format!("{name} of {}", kind.name);
            let real = ZEROS
                .iter()
                .any(|(real, _)| *real == name || *real == of_kind);
            let accepted = settings.check_all().is_empty() && (kind.parse)(&settings).is_ok();
            assert!(real || !accepted, "{of_kind}: 0 is accepted");
        }
    }
}

#[test]
fn what_would_be_put_right_in_silence_is_refused() {
    for (line, word) in [
        (
            "git = { file-size = \"100 B\" }",
            "between 256 B and 64 MiB",
        ),
        (
            "build = { file-size = \"2 MiB\" }",
            "between 256 B and 1 MiB",
        ),
        (
            "copy-tree = { files = 9, size-max = \"1 KiB\" }",
            "size-max is below size-median",
        ),
        (
            "random = { mode = \"read\", size = \"1 MiB\", read-share = 0.5 }",
            "read-share has no meaning with mode = \"read\"",
        ),
        (
            "random = { mode = \"read\", size = \"1 MiB\", time = \"0 s\" }",
            "time: nothing can be measured in no time",
        ),
    ] {
        refused(line, word);
    }
}

#[test]
fn more_threads_than_the_engine_starts_are_refused_before_anything_is_touched() {
    let of =
        |settings: &str| format!("random = {{ mode = \"read\", size = \"1 GiB\", {settings} }}");
    refused(&of("threads = 1025"), "threads must be between 1 and 1024");
    refused(
        &of("threads = 2, queue-depth = 1000, engine = \"sync\""),
        "2 x 1000 are more than 1024",
    );
}
