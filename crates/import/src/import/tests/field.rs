//! Outputs as people have them: of old and new versions, pasted from mails and pages, in other
//! languages, interrupted, of several runs. Each is an example of a kind.

use super::*;

fn names(results: &[Imported]) -> Vec<&str> {
    results.iter().map(|it| it.workload.as_str()).collect()
}

fn notes(result: &Imported) -> String {
    result.notes.join("; ")
}

fn value(result: &Imported, metric: &str) -> Option<f64> {
    let at = result.metrics.iter().position(|head| head.name == metric)?;
    result.values[at].map(|figure| figure.value)
}

#[test]
fn fio_is_read_from_its_oldest_to_its_newest_version() {
    for file in ["fio-3.0_write_normal.txt", "fio-3.1_write_normal.txt"] {
        let result = &from(&format!("fio/{file}"))[0];
        assert_eq!(result.workload, "fio write 128k, iodepth 32", "{file}");
        has(result, "write latency p99", "ns", 87e6);
        has(result, "write latency mean", "ns", 64_490_000.0);
    }
    assert_eq!(
        names(&from("fio/fio-3.1_short_normal.txt")),
        ["fio randread 4k"]
    );
    // Before 3.2 its JSON has whole KiB/s, and no numbers of latencies.
    let old = &from("fio/fio-3.1_randread.json")[0];
    has(old, "operations", "op/s", 13837.837838);
    has(old, "throughput", "B/s", 4_194_304.0 / 0.074);
    has(old, "read latency mean", "ns", 69_674.618164);
    let new = &from("fio/fio-3.41_randread.json")[0];
    has(new, "operations", "op/s", 9061.946903);
    let both = from("fio/fio-3.41_randrw_normal.txt");
    let [read, write] = both.as_slice() else {
        panic!("{both:?}");
    };
    // Percentiles of one priority are not those of all.
    has(read, "read latency p99", "ns", 783_000.0);
    has(write, "write latency p99", "ns", 883_000.0);
    assert!(
        notes(read).contains("errors    : total=3"),
        "{}",
        notes(read)
    );
}

#[test]
fn fio_under_way_is_one_result_the_last() {
    let normal = from("fio/fio-3.33_status-interval_normal.txt");
    assert_eq!(names(&normal), ["fio randwrite 4k"]);
    assert!(
        notes(&normal[0]).contains("5 report(s) under way"),
        "{}",
        notes(&normal[0])
    );
    let json = from("fio/fio-3.33_status-interval.json");
    assert_eq!(names(&json), ["fio randwrite 4k"]);
    assert!(
        notes(&json[0]).contains("4 report(s) under way"),
        "{}",
        notes(&json[0])
    );
    let text = golden("fio/fio-3.33_status-interval.json");
    let last = text.rsplit("\"iops\" : ").nth(1).unwrap();
    let last: f64 = last.split(',').next().unwrap().parse().unwrap();
    has(&json[0], "operations", "op/s", last);
}

/// Runs of one after the other did not run at the same time.
#[test]
fn fio_again_is_a_repetition() {
    for (file, runs) in [
        ("fio-3.33_two-runs_normal.txt", 2),
        ("fio-3.33_three-runs.json", 3),
    ] {
        let results = from(&format!("fio/{file}"));
        assert_eq!(names(&results), vec!["fio randread 4k"; runs], "{file}");
        assert_eq!(results[0].kind, "random", "{file}");
        assert!(!notes(&results[0]).contains("same time"), "{file}");
    }
}

#[test]
fn fio_of_several_machines_is_read_without_the_sum() {
    let normal = from("fio/fio-3.33_client_normal.txt");
    assert_eq!(
        names(&normal),
        ["fio randread 4k (a)", "fio randread 4k (b)"]
    );
    assert_eq!(normal[0].version.as_deref(), Some("fio-3.33"));
    let json = from("fio/fio-3.33_client.json");
    assert_eq!(names(&json), names(&normal));
    has(&json[0], "operations", "op/s", 13653.333333);
    let two = from("fio/fio-3.33_two-clients.json");
    assert_eq!(two.len(), 4);
    assert_eq!(two[0].workload, "fio randread 4k (a on localhost)");
    assert_eq!(two[1].workload, "fio randread 4k (a on 127.0.0.1)");
    has(&two[1], "operations", "op/s", 4807.511737);
}

#[test]
fn fio_with_all_directions_as_one_is_read() {
    let mixed = &from("fio/fio-3.33_unified-mixed.json")[0];
    assert_eq!(mixed.workload, "fio randrw 4k");
    has(mixed, "operations", "op/s", 7816.793893);
    has(mixed, "mixed latency mean", "ns", 99_750.691406);
    let normal = from("fio/fio-3.33_unified-mixed_normal.txt");
    assert_eq!(names(&normal), ["fio randrw 4k"]);
    assert!(value(&normal[0], "mixed latency p99").is_some());
    // With both, the sum says nothing that its parts do not.
    for file in [
        "fio-3.33_unified-both_normal.txt",
        "fio-3.33_unified-both.json",
    ] {
        let both = from(&format!("fio/{file}"));
        assert_eq!(
            names(&both),
            ["fio randrw 4k: read", "fio randrw 4k: write"]
        );
    }
    let text = golden("fio/fio-3.33_unified-both_normal.txt");
    let write = &from("fio/fio-3.33_unified-both_normal.txt")[1];
    let clat = text.split("write:").nth(1).unwrap();
    let mean = clat
        .split("avg=")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    let mean: f64 = mean.trim().parse().unwrap();
    let found = value(write, "write latency mean").unwrap();
    let scales = [1.0, 1e3, 1e6];
    // The latency is that of writes, not of the sum below them.
    assert!(
        scales
            .iter()
            .any(|scale| found >= mean * scale && found <= 3.0 * mean * scale)
    );
}

#[test]
fn fio_in_a_form_that_is_not_read_is_refused_with_the_cause() {
    let terse = refused(&golden("fio/fio-3.33_terse.txt"));
    assert!(terse.what.contains("terse"), "{terse}");
    assert!(terse.next.contains("--output-format=json"), "{terse}");
    let old = golden("fio/fio-3.1_short_normal.txt").replace("fio-3.1", "fio-1.59");
    assert!(refused(&old).next.contains("fio-3.x"));
    let none = "{\n  \"fio version\" : \"fio-3.33\",\n  \"jobs\" : [\n  ]\n}\n";
    assert!(refused(none).what.contains("no job"));
}

#[test]
fn one_setting_of_fio_has_one_spelling() {
    let (a, b) = (
        from("fio/fio-3.33_bs-4k.json"),
        from("fio/fio-3.33_bs-4096.json"),
    );
    assert_eq!(names(&a), names(&b));
    assert_eq!(a[0].settings, b[0].settings);
    let text = golden("fio/fio-3.33_bs-4k.json");
    for word in ["4096B", "4K", "4kb", "0x1000"] {
        let other = read(
            &text.replace("\"bs\" : \"4k\"", &format!("\"blocksize\" : \"{word}\"")),
            None,
        );
        assert_eq!(other.unwrap()[0].settings, a[0].settings, "{word}");
    }
}

/// Words of the tool itself against its figures stand beside them.
#[test]
fn a_run_that_was_interrupted_says_so() {
    let fio = &from("fio/fio-3.33_interrupted_normal.txt")[0];
    assert!(
        notes(fio).contains("terminating on signal 2"),
        "{}",
        notes(fio)
    );
    let json = golden("fio/fio-3.33_bs-4k.json");
    let json = read(&format!("\nfio: terminating on signal 15\n{json}"), None).unwrap();
    assert!(notes(&json[0]).contains("signal 15"));
    let dd = golden("dd/coreutils-8_german.txt").replacen("1890", "^C1890", 1);
    assert!(notes(&read(&dd, None).unwrap()[0]).contains("^C"));
    let full = "dd: error writing 't': No space left on device\n".to_owned()
        + &golden("dd/coreutils-two.txt");
    assert!(notes(&read(&full, None).unwrap()[0]).contains("No space left"));
    let sysbench = golden("sysbench/sysbench-1.0.20_rndrd.txt");
    let warned = sysbench.replacen(
        "Threads started!",
        "WARNING: fsync() failed\nThreads started!",
        1,
    );
    assert!(notes(&read(&warned, None).unwrap()[0]).contains("WARNING"));
}

#[test]
fn sysbench_is_read_in_every_version_of_its_range() {
    let dev = &from("sysbench/sysbench-1.0-2016_rndrw.txt")[0];
    has(dev, "reads", "op/s", 8259.22);
    has(dev, "fsyncs", "op/s", 17610.85);
    // Its latency is that of requests, as in 0.5.
    has(dev, "request latency mean", "ns", 180_000.0);
    has(dev, "request latency p95", "ns", 540_000.0);
    let half = &from("sysbench/sysbench-0.5_rndrw.txt")[0];
    has(half, "operations", "op/s", 1916.43);
    has(half, "request latency p95", "ns", 19_610_000.0);
}

#[test]
fn the_table_of_mdtest_alone_is_read() {
    let alone = &from("mdtest/mdtest_summary-alone.txt")[0];
    assert_eq!(alone.workload, "mdtest");
    has(alone, "file creation", "op/s", 24392.579);
    has(alone, "tree removal", "op/s", 6168.094);
    assert!(notes(alone).contains("table alone"), "{}", notes(alone));
    // Two of them, and what people write behind.
    let text = golden("mdtest/mdtest_summary-alone.txt");
    let two = read(&format!("before:\n{text}\nafter:\n{text}\nthanks\n"), None).unwrap();
    assert_eq!(two.len(), 2);
    // A run that began has to end.
    let begun = format!("-- started at 08/31/2019 10:00:00 --\n{text}");
    assert!(refused(&begun).what.contains("finished at"));
    assert_eq!(
        refused(&text.replace("24392.579          0.000", "24392.579")).line,
        4
    );
}

/// A part of a text that would be left out in silence is named.
#[test]
fn a_part_of_another_tool_is_not_passed_over() {
    let misread = refused(&golden("dd/with-a-part-of-sysbench.txt"));
    assert!(misread.what.contains("is of sysbench"), "{misread}");
    assert_eq!(misread.line, 8);
    let dd = golden("dd/coreutils-two.txt");
    for (line, tool) in [
        (
            " Timing buffered disk reads: 400 MB in  3.01 seconds = 133.00 MB/sec",
            "hdparm",
        ),
        (
            "  read: IOPS=4801, BW=18.8MiB/s (19.7MB/s)(22.0MiB/1173msec)",
            "fio",
        ),
        (
            "   File creation             24392.579      24392.579      24392.579          0.000",
            "mdtest",
        ),
        (
            "          Throughput MiB/s :         885         885",
            "elbencho",
        ),
    ] {
        for text in [format!("{line}\n{dd}"), format!("{dd}{line}\n")] {
            let misread = refused(&text);
            assert!(misread.what.contains(&format!("is of {tool}")), "{misread}");
        }
    }
    // A tool that is named is read alone.
    let part = golden("dd/with-a-part-of-sysbench.txt");
    assert_eq!(read(&part, Some("dd")).unwrap().len(), 2);
    // Between two runs of its own a tool's own lines count too.
    let run = golden("sysbench/sysbench-1.0.20_rndrd.txt");
    let lost = format!("{run}\nThroughput:\n    read, MiB/s:                  6.92\n{run}");
    assert!(refused(&lost).what.contains("first lines are not there"));
}

/// A way, by its name, and what it does.
type Way = (&'static str, fn(&str) -> String);

/// Ways through a mail, a page or a terminal.
const PASTED: &[Way] = &[
    ("quoted", |text| {
        text.lines().map(|line| format!("> {line}\n")).collect()
    }),
    ("quoted twice", |text| {
        text.lines().map(|line| format!("> > {line}\n")).collect()
    }),
    ("four blanks", |text| {
        text.lines().map(|line| format!("    {line}\n")).collect()
    }),
    ("a tab", |text| {
        text.lines().map(|line| format!("\t{line}\n")).collect()
    }),
    ("a page", |text| {
        let inner: String = text.lines().map(|line| format!("    {line}\n")).collect();
        format!("This is what it says:\n\n{inner}\nWhat is wrong?\n")
    }),
    ("a fence", |text| {
        format!("It says\n```text\n{text}```\nand ends.\n")
    }),
    ("windows", |text| text.replace('\n', "\r\n")),
    ("a prompt", |text| {
        format!("user@nas:~$ run\n{text}user@nas:~$ \n")
    }),
    ("colours", |text| format!("\u{1b}[0m{text}\u{1b}[0m\n")),
    ("hard blanks", |text| text.replace("  ", "\u{a0} ")),
];

/// One output of each tool and form.
const OF_EACH: &[&str] = &[
    "fio/fio-3.39_seqread_normal.txt",
    "fio/fio-3.1_write_normal.txt",
    "fio/fio-3.33_bs-4k.json",
    "dd/coreutils-8_flags.txt",
    "dd/freebsd-13.txt",
    "sysbench/sysbench-0.5_rndrw.txt",
    "sysbench/sysbench-1.0.20_rndrw.txt",
    "mdtest/mdtest-3.3.0.txt",
    "mdtest/mdtest_summary-alone.txt",
    "iozone/iozone-3.489_gaps.txt",
    "iozone/iozone-3.4_table-alone.txt",
    "elbencho/elbencho-3_console-alone.txt",
    "hyperfine/hyperfine_two.json",
    "pgbench/pgbench-15.18_tpcb.txt",
    "ior/ior-4.0.0rc1.txt",
    "ioping/ioping-1.3_latency.txt",
    "time/bash.txt",
    "time/gnu_verbose.txt",
    "tiotest/tiotest-0.4.2_default.txt",
    "dbench/dbench-4.00_1.txt",
];

#[test]
fn the_way_a_text_was_pasted_changes_nothing() {
    for file in OF_EACH.iter().copied() {
        let text = golden(file);
        let whole = from(file);
        for (way, paste) in PASTED {
            let found = read(&paste(&text), None);
            let found = found.unwrap_or_else(|error| panic!("{file}, {way}: {error}"));
            let values =
                |all: &[Imported]| all.iter().map(|it| it.values.clone()).collect::<Vec<_>>();
            assert_eq!(values(&found), values(&whole), "{file}, {way}");
            assert_eq!(names(&found), names(&whole), "{file}, {way}");
        }
    }
}

/// As a mail and a page really had them.
#[test]
fn what_a_mail_quoted_and_a_page_indented_is_read() {
    for file in [
        "fio/fio-3.25_quoted_normal.txt",
        "fio/fio-3.25_indented_normal.txt",
    ] {
        let result = &from(file)[0];
        assert_eq!(result.workload, "fio write 4k", "{file}");
        has(result, "fsync latency p99", "ns", 260_000.0);
    }
}

/// A decimal comma is read, or the refusal says what to do.
#[test]
fn other_languages_are_read_or_refused_with_what_to_do() {
    let bash = &read("real\t1m0,116s\nuser\t0m0,001s\nsys\t0m0,014s\n", None).unwrap()[0];
    has(bash, "elapsed", "s", 60.116);
    let posix = &read("real 0,05\nuser 0,00\nsys 0,01\n", None).unwrap()[0];
    has(posix, "elapsed", "s", 0.05);
    for text in [
        "Transaktionstyp: <builtin: TPC-B>\nSkalierungsfaktor: 1\nAnzahl Clients: 4\ntps = 357,88 (ohne Verbindungszeit für den Anfang)\n",
        "données écrites\n12,5 Mo/s\n",
    ] {
        let misread = refused(text);
        assert!(misread.next.contains("LC_ALL=C"), "{misread}");
    }
}

#[test]
fn what_is_no_text_of_a_tool_is_refused_in_plain_words() {
    assert!(refused("").what.contains("empty"));
    assert!(refused(" \n\n").what.contains("empty"));
    assert!(refused("\0\u{1}\0ELF\n").what.contains("binary"));
    assert!(refused("hello\n").what.contains("no known tool"));
}
