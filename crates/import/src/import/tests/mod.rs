//! Figures read from real outputs (`tests/golden/README.md` says where each is from).

use std::fs;
use std::path::Path;

use proptest::prelude::*;

mod cases;
mod damage;
mod elbencho;
mod field;
mod fio_fits;
mod folded;
mod kinds;
mod matrix;
mod own_words;
mod pasted;
mod repeated;
mod shell;
mod stated;
mod strays;

use damage::goldens;

use super::ALL;
use stackrace_base::event::Fact;
use stackrace_base::printed::{ImportError, ImportSource, Imported};
use stackrace_load::tools::{self, importers};

/// A real output.
pub(super) fn golden(name: &str) -> String {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/golden");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Reads a text, by all importers.
pub(super) fn read(text: &str, tool: Option<&str>) -> Result<Vec<Imported>, ImportError> {
    super::read(importers(), text, tool)
}

/// Reads a text as that of a file, by all importers.
pub(super) fn source(
    name: Option<String>,
    file: &str,
    text: String,
    tool: Option<&str>,
) -> Result<ImportSource, ImportError> {
    super::source(importers(), name, file, text, tool)
}

/// Reads the results in one, by content alone.
pub(super) fn from(name: &str) -> Vec<Imported> {
    read(&golden(name), None).unwrap_or_else(|misread| panic!("{name}: {misread:?}"))
}

pub(super) fn refused(text: &str) -> ImportError {
    match read(text, None) {
        Err(misread) => misread,
        Ok(results) => panic!("read: {results:?}"),
    }
}

#[track_caller]
pub(super) fn has(result: &Imported, metric: &str, unit: &str, value: f64) {
    let at = result.metrics.iter().position(|head| head.name == metric);
    let at = at.unwrap_or_else(|| panic!("no {metric} in {:?}", result.metrics));
    assert_eq!(result.metrics[at].unit, unit, "{metric}");
    let found = result.values[at].unwrap_or_else(|| panic!("{metric} is missing"));
    let found = found.value;
    assert!(
        (found - value).abs() <= 1e-9 * value.abs(),
        "{metric}: {found}, not {value}"
    );
}

#[track_caller]
fn lacks(result: &Imported, metric: &str) {
    let at = result
        .metrics
        .iter()
        .position(|head| head.name == metric)
        .unwrap();
    assert_eq!(result.values[at], None, "{metric}");
    assert!(
        result.notes.iter().any(|note| note.contains(metric)),
        "{metric} is missing without a note: {:?}",
        result.notes
    );
}

const MIB: f64 = 1_048_576.0;

#[test]
fn fio_json_plus_has_every_digit() {
    for name in [
        "fio/fio-3.39_randrw_jsonplus.json",
        "fio/fio-3.39_randrw_normal_jsonplus_terse.txt",
    ] {
        let results = from(name);
        let names: Vec<&str> = results.iter().map(|r| r.workload.as_str()).collect();
        assert_eq!(
            names,
            [
                "fio randrw 4k, iodepth 16: read",
                "fio randrw 4k, iodepth 16: write"
            ]
        );
        let [read, write] = results.as_slice() else {
            panic!("{results:?}");
        };
        assert_eq!(
            (read.kind.as_str(), read.version.as_deref()),
            ("fio", Some("fio-3.39"))
        );
        has(read, "operations", "op/s", 36791.841632);
        has(read, "throughput", "B/s", 150_699_383.0);
        has(read, "read latency mean", "ns", 285_028.783979);
        has(read, "read latency p50", "ns", 242_688.0);
        has(read, "read latency p95", "ns", 366_592.0);
        has(read, "read latency p99", "ns", 782_336.0);
        has(read, "read latency max", "ns", 14_354_842.0);
        has(write, "operations", "op/s", 15800.639872);
        assert!(read.settings.contains(&Fact::new("rwmixread", "70")));
    }
}

#[test]
fn fio_normal_output_has_the_rates_that_its_counts_and_times_give() {
    let results = from("fio/fio-3.39_seqread_normal.txt");
    assert_eq!(results.len(), 1);
    let result = &results[0];
    assert_eq!(result.workload, "fio read 1M");
    assert_eq!(result.kind, "sequential");
    assert_eq!(result.metrics[0].name, "throughput");
    has(result, "throughput", "B/s", 1024.0 * MIB / 0.75);
    has(result, "operations", "op/s", 1024.0 / 0.75);
    has(result, "read latency mean", "ns", 633_690.0);
    has(result, "read latency p50", "ns", 570_000.0);
    has(result, "read latency p99.9", "ns", 6_587_000.0);
    has(result, "read latency max", "ns", 6_878_000.0);

    let verified = from("fio/fio-3.39_randwrite_verify_normal.txt");
    let [read, write] = verified.as_slice() else {
        panic!("{verified:?}");
    };
    assert_eq!(write.workload, "fio randwrite 4k, iodepth 8: write");
    has(write, "operations", "op/s", 16_384.0 / 0.956);
    has(write, "write latency mean", "ns", 464_860.0);
    has(write, "write latency p50", "ns", 306_000.0);
    has(read, "read latency p99", "ns", 2_212_000.0);

    let bare = &from("fio/fio-3.39_null_randread_gtodreduce.txt")[0];
    assert_eq!(bare.kind, "random");
    has(bare, "operations", "op/s", 11_558_559.0 / 3.001);
    lacks(bare, "read latency p99");
}

#[test]
fn fio_jobs_are_told_apart() {
    let grouped = &from("fio/fio-3.33_group_fsync_normal.txt")[0];
    assert_eq!(grouped.workload, "fio randwrite 4k, 2 jobs");
    has(grouped, "fsync latency mean", "ns", 697_440.0);
    has(grouped, "fsync latency p99", "ns", 1_057_000.0);
    has(grouped, "write latency p50", "ns", 3_000.0);

    for name in [
        "fio/fio-3.33_two_jobs_normal.txt",
        "fio/fio-3.33_two_jobs.json",
    ] {
        let two = from(name);
        let names: Vec<&str> = two.iter().map(|r| r.workload.as_str()).collect();
        assert_eq!(names, ["fio write 64k", "fio randread 4k"], "{name}");
    }
    let twins = from("fio/fio-3.33_numjobs_normal.txt");
    let names: Vec<&str> = twins.iter().map(|r| r.workload.as_str()).collect();
    assert_eq!(
        names,
        [
            "fio randread 4k (par, 1 of 2)",
            "fio randread 4k (par, 2 of 2)"
        ]
    );
    assert!(
        twins[0]
            .notes
            .iter()
            .any(|note| note.contains("at the same time"))
    );
    assert_eq!(twins[0].kind, "fio", "not what a job alone would do");
}

#[test]
fn dd_is_read_in_decimal_units() {
    let results = from("dd/coreutils-two.txt");
    let names: Vec<&str> = results.iter().map(|r| r.workload.as_str()).collect();
    assert_eq!(
        names,
        ["dd 64M in blocks of 1M", "dd 64M in blocks of 512B"]
    );
    has(&results[0], "throughput", "B/s", 67_108_864.0 / 0.097739);
    has(&results[0], "elapsed", "s", 0.097739);
    has(&results[1], "elapsed", "s", 0.165311);
}

#[test]
fn dd_prints_progress_and_exponents() {
    let progress = "\r3145728 bytes (3.1 MB, 3.0 MiB) copied, 1 s, 3.1 MB/s\n3+0 records in\n3+0 records out\n3000 bytes (3.0 kB, 2.9 KiB) copied, 8.5628e-05 s, 35.0 MB/s\n";
    let results = read(progress, None).unwrap();
    assert_eq!(results.len(), 1);
    has(&results[0], "elapsed", "s", 8.5628e-05);
}

#[test]
fn time_is_read_in_all_its_layouts() {
    let bash = &from("time/bash.txt")[0];
    has(bash, "elapsed", "s", 0.116);
    // Of 0.000 s no ratio follows.
    assert_eq!(bash.values[1], None);
    has(bash, "system time", "s", 0.014);
    has(&from("time/posix.txt")[0], "elapsed", "s", 0.05);
    // Two tools in one text.
    let gnu = from("time/gnu_dd.txt");
    assert_eq!((gnu[0].tool, gnu[1].tool), ("dd", "time"));
    has(&gnu[1], "elapsed", "s", 0.09);
    has(&gnu[1], "largest resident set", "B", 2820.0 * 1024.0);
    let verbose = &from("time/gnu_verbose.txt")[1];
    assert_eq!(
        verbose.workload,
        "timed: dd if=/dev/zero of=z bs=1M count=64 conv=fsync"
    );
    has(verbose, "elapsed", "s", 0.08);
    has(verbose, "system time", "s", 0.01);
    let long = "real\t61m2.345s\nuser\t0m1.000s\nsys\t0m0.500s\n";
    has(&read(long, None).unwrap()[0], "elapsed", "s", 3662.345);
}

#[test]
fn iozone_is_read_by_columns() {
    let results = from("iozone/iozone-3.489_auto.txt");
    assert_eq!(results.len(), 15);
    assert_eq!(results[0].workload, "iozone 64k in records of 4k");
    assert_eq!(results[0].version.as_deref(), Some("iozone 3.489"));
    has(&results[0], "write", "B/s", 1_232_453.0 * 1024.0);
    has(&results[0], "freread", "B/s", 8_182_586.0 * 1024.0);
    has(&results[14], "stride read", "B/s", 31_762_157.0 * 1024.0);
    let gaps = &from("iozone/iozone-3.489_gaps.txt")[0];
    has(gaps, "rewrite", "B/s", 16_037_624.0 * 1024.0);
    lacks(gaps, "read");
    has(gaps, "random read", "B/s", 1_245_710.0 * 1024.0);
    has(gaps, "random write", "B/s", 13_305_116.0 * 1024.0);
    has(
        &from("iozone/iozone-3.489_ops.txt")[0],
        "reread",
        "op/s",
        533_432.0,
    );
    assert_eq!(from("iozone/iozone-3.489_excel.txt").len(), 1);
    let misread = refused(&golden("iozone/iozone-3.489_throughput.txt"));
    assert!(
        misread.what.contains("Children see throughput"),
        "{misread:?}"
    );
}

#[test]
fn ior_is_read_by_operation_and_iteration() {
    let results = from("ior/ior-4.0.0rc1.txt");
    assert_eq!(
        results[0].workload,
        "IOR write 262144 bytes of 1 MiB, 1 task(s)"
    );
    assert_eq!(results[0].version.as_deref(), Some("IOR-4.0.0rc1"));
    has(&results[0], "throughput", "B/s", 443.65 * MIB);
    has(&results[0], "operations", "op/s", 1981.01);
    has(&results[1], "throughput", "B/s", 3584.88 * MIB);
    has(&results[1], "latency", "ns", 67_000.0);
    let verbose = from("ior/ior-4.0.0_verbose.txt");
    assert_eq!(verbose.len(), 2, "the row of remove has no rate");
    has(&verbose[1], "elapsed", "s", 34.09);
    let old = from("ior/ior-3.3.0.txt");
    has(&old[0], "throughput", "B/s", 1842.29 * MIB);
    assert!(old[0].settings.contains(&Fact::new("tasks", "64")));
    assert_eq!(
        old[0].environment[0].value,
        "Linux exascaler-cloud-a108-cls0"
    );
}

#[test]
fn mdtest_is_read_with_and_without_colons() {
    let new = &from("mdtest/mdtest-4.1.0.txt")[0];
    assert_eq!(new.workload, "mdtest 4 tasks, 24800 files/directories");
    assert_eq!(new.version.as_deref(), Some("mdtest-4.1.0+dev"));
    has(new, "directory rename", "op/s", 5374.415);
    has(new, "file creation", "op/s", 6168.335);
    assert!(
        new.notes
            .iter()
            .any(|note| note.contains("mean of 5 iterations"))
    );
    has(
        &from("mdtest/mdtest-3.3.0.txt")[0],
        "tree removal",
        "op/s",
        340.779,
    );
    let oldest = &from("mdtest/mdtest-1.9.3.txt")[0];
    has(oldest, "file stat", "op/s", 2947.822);
    lacks(oldest, "file read");
}

#[test]
fn bonnie_is_read_with_what_was_too_fast() {
    let table = &from("bonnie/1.97_s512M_64k_n32.stdout.txt")[0];
    assert_eq!(table.version.as_deref(), Some("bonnie++ 1.97"));
    assert_eq!(
        (table.kind.as_str(), table.label.as_deref()),
        ("bonnie++", Some("testhost"))
    );
    has(table, "block output", "B/s", 652_151.0 * 1024.0);
    has(table, "block output latency max", "ns", 4_184_000.0);
    let at = table
        .metrics
        .iter()
        .position(|head| head.name == "rewrite")
        .unwrap();
    assert_eq!(table.values[at], None, "+++++");
    assert!(
        table
            .notes
            .iter()
            .any(|note| note.starts_with("+++++: ") && note.contains("rewrite"))
    );
    let csv = from("bonnie/1.03e_x2_fast.stdout.txt");
    assert_eq!(csv.len(), 2);
    assert_eq!(csv[0].workload, csv[1].workload, "two runs of the same");
    has(&csv[0], "sequential create", "op/s", 752.0);
    has(&csv[1], "random create", "op/s", 1732.0);
}

#[test]
fn postmark_is_read_from_both_reports() {
    let verbose = &from("postmark/151_default.txt")[0];
    assert_eq!(verbose.workload, "PostMark, 500 transactions, 500 files");
    has(verbose, "transactions", "op/s", 500.0);
    has(verbose, "files created alone", "op/s", 500.0);
    has(verbose, "read", "B/s", 1.36 * MIB);
    let terse = &from("postmark/151_terse.txt")[0];
    has(terse, "transactions", "op/s", 10_000.0);
    has(terse, "read", "B/s", 224_656_864.0);
}

#[test]
fn phoronix_runs_are_rounds() {
    let results = from("phoronix/pts-10.8.4_stream.xml");
    let names: Vec<&str> = results.iter().map(|r| r.workload.as_str()).collect();
    assert_eq!(
        names,
        [
            "Stream, Type: Copy",
            "Stream, Type: Copy",
            "Stream, Type: Scale",
            "Stream, Type: Scale"
        ]
    );
    has(&results[0], "result", "MB/s", 104_854.3);
    has(&results[3], "result", "MB/s", 73_318.4);
    assert_eq!(results[0].label.as_deref(), Some("ci"));
    assert!(
        results[0].environment[1]
            .value
            .contains("File-System: ext4")
    );
    has(
        &from("phoronix/pts-10.8.4_hardlink.xml")[1],
        "result",
        "bogo ops/s",
        3.75,
    );
}

/// A text that one tool printed is not taken for another's.
#[test]
fn every_output_is_recognised_by_its_own_importer_alone() {
    for (folder, texts) in goldens() {
        for (name, text) in texts {
            for importer in importers() {
                // GNU time's files hold what dd printed as well.
                let both = folder == "time" && name.starts_with("gnu_");
                let own = importer.name == folder || (both && importer.name == "dd");
                // Help and progress are no results.
                let words = ["stderr", "help", "prepare", "cleanup", "FATAL"];
                if own && words.iter().any(|word| name.contains(word)) {
                    continue;
                }
                assert_eq!(
                    (importer.recognises)(&text),
                    own,
                    "{}: {name}",
                    importer.name
                );
            }
        }
    }
}

#[test]
fn importers_are_listed_in_order_with_what_they_read() {
    assert!(importers().is_sorted_by(|one, other| one.name < other.name));
    for importer in importers() {
        assert!(!importer.summary.is_empty());
        assert!(
            goldens().iter().any(|(folder, _)| folder == importer.name),
            "{}",
            importer.name
        );
    }
}

#[test]
fn sysbench_is_read_in_both_layouts() {
    let text = golden("sysbench/sysbench-1.0.20_rndrd.txt");
    let reads = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("reads/s:"))
        .unwrap();
    let new = &from("sysbench/sysbench-1.0.20_rndrd.txt")[0];
    assert!(
        new.workload.starts_with("sysbench random read, 16k"),
        "{}",
        new.workload
    );
    assert!(
        new.version
            .as_deref()
            .unwrap()
            .starts_with("sysbench 1.0.20")
    );
    has(new, "reads", "op/s", reads.trim().parse().unwrap());
    lacks(new, "writes");
    let old = &from("sysbench/sysbench-0.4.12_seqwr.txt")[0];
    assert!(
        old.version
            .as_deref()
            .unwrap()
            .starts_with("sysbench 0.4.12")
    );
    assert_eq!(old.metrics, new.metrics);
}

/// A file of this repository.
fn text_of(path: &str) -> String {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The how-to names the two files of each importer; what else it names is there for each of them.
#[test]
fn the_how_to_on_importers_is_true() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = text_of("docs/howto/add-an-importer.md");
    for path in page.split('`').skip(1).step_by(2) {
        let is_path = path.contains('/') && !path.contains(' ');
        if is_path && !path.contains("NAME") {
            assert!(root.join(path).exists(), "{path} does not exist");
        }
    }
    let (origins, table) = (
        text_of("tests/golden/README.md"),
        text_of("docs/howto/import.md"),
    );
    for importer in ALL {
        let name = importer.name;
        let files = [
            format!("crates/import/src/import/importers/{name}.rs"),
            format!("crates/import/src/import/importers/{name}/mod.rs"),
        ];
        assert!(
            files.iter().any(|file| root.join(file).exists()),
            "{name} is in another file"
        );
    }
    for importer in importers() {
        let name = importer.name;
        let folder = name.trim_end_matches('+');
        assert!(root.join("tests/golden").join(folder).is_dir(), "{name}");
        assert!(origins.contains(&format!("`{folder}")), "{name}");
        assert!(table.contains(&format!("| `{name}` |")), "{name}");
    }
    // A file with an importer that is in no list would never be asked.
    let registered = |folder: &str, file: &str| {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        // This file holds the words too.
        let files = paths.filter(|path| !path.ends_with("tests"));
        let files = files.map(|path| path.join(file));
        let with = files.filter(|path| {
            let path = if path.exists() {
                path
            } else {
                path.parent().unwrap()
            };
            fs::read_to_string(path).is_ok_and(|text| text.contains("const IMPORTER"))
        });
        with.count()
    };
    assert_eq!(
        registered("crates/import/src/import/importers", "mod.rs"),
        ALL.len()
    );
    let of_tools = ["crates/load/src/tools", "crates/fio/src"];
    let of_tools = of_tools.map(|folder| registered(folder, "import.rs"));
    assert_eq!(of_tools.iter().sum::<usize>(), tools::ALL.len());
}
