//! Programs as workloads, run small on a real directory.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use stackrace_engine::{Control, PhaseEnd, PhaseOutcome};

use super::written;
use crate::workload::{Place, WorkloadError};

/// A figure by its name.
type Named = (String, Option<f64>);

/// Runs it, with its metrics.
fn tried(line: &str, control: &Control) -> Result<Vec<Named>, WorkloadError> {
    measured(line, control).map(|(values, _)| values)
}

/// Runs it, with its metrics and its phases.
fn measured(
    line: &str,
    control: &Control,
) -> Result<(Vec<Named>, Vec<PhaseOutcome>), WorkloadError> {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let workload = written::workload(line).unwrap_or_else(|error| panic!("{error}"));
    let place = Place {
        directory: base.path(),
        bare: None,
        existing: None,
        elsewhere: None,
        seat: None,
        cold: true,
        ledger: &OnceLock::new(),
        seed: 7,
        control,
    };
    let worked = workload.prepare(&place).and_then(|()| {
        let phases = 0..workload.phases().len();
        phases
            .map(|phase| workload.measure(phase, &place))
            .collect()
    });
    workload.finish(&place)?;
    let outcomes: Vec<PhaseOutcome> = worked?;
    let ended = match control.stopped() {
        true => PhaseEnd::Stopped,
        false => PhaseEnd::Complete,
    };
    assert!(
        outcomes.iter().all(|outcome| outcome.ended == ended),
        "{line}"
    );
    let names = workload.metrics().into_iter().map(|head| head.name);
    let values = workload.evaluate(&outcomes);
    assert_eq!(names.len(), values.len(), "{line}");
    Ok((names.zip(values).collect(), outcomes))
}

fn run(line: &str) -> Vec<(String, Option<f64>)> {
    tried(line, &Control::default()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn failed(line: &str) -> String {
    tried(line, &Control::default()).unwrap_err().to_string()
}

fn refused(line: &str) -> String {
    written::workload(line)
        .err()
        .unwrap_or_else(|| panic!("{line} is not refused"))
}

fn value(values: &[(String, Option<f64>)], name: &str) -> f64 {
    let found = values.iter().find(|(head, _)| head == name);
    let found = found.unwrap_or_else(|| panic!("there is no {name}: {values:?}"));
    found
        .1
        .unwrap_or_else(|| panic!("{name} has no value: {values:?}"))
}

#[test]
fn a_command_works_in_its_directory_and_is_watched() {
    let values = run(
        "command = { run = \"test -z \\\"$(ls)\\\" && pwd -P && echo $STACKRACE_DIR && echo {{dir}} && head -c 100000 /dev/zero > file\" }",
    );
    let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "elapsed",
            "user time",
            "system time",
            "bytes read",
            "bytes written"
        ]
    );
    assert!(value(&values, "elapsed") > 0.0);
    // A process that has ended shows its bytes to root alone.
    if rustix::process::geteuid().is_root() {
        assert!(value(&values, "bytes written") >= 100_000.0);
    }
    let words = run("command = { words = [\"sh\", \"-c\", \"test {{dir}} = $STACKRACE_DIR\"] }");
    assert!(value(&words, "elapsed") > 0.0);
}

#[test]
fn a_command_is_prepared_and_cleaned_up_outside_the_clock() {
    let mark = tempfile::NamedTempFile::new().unwrap();
    let path = mark.path().display();
    run(&format!(
        "command = {{ prepare = \"echo made > made\", run = \"grep made made\", cleanup = \"cat made > {path}\" }}"
    ));
    assert_eq!(std::fs::read_to_string(mark.path()).unwrap(), "made\n");
    let error = failed("command = { prepare = \"echo no >&2; exit 4\", run = \"true\" }");
    assert!(error.starts_with("prepare: "), "{error}");
    assert!(error.contains("exit status 4; it said last: no"), "{error}");
}

#[test]
fn figures_are_found_by_pattern_in_json_and_by_an_importer() {
    let values = run(
        "command = { run = \"echo rate = 12; echo rate = 1,234.5 MB/s; echo took 7\", metrics = ['rate=rate = ([0-9.,]+)', 'took=^took (\\d+)$'], units = [\"MB/s\", \"s\"], better = [\"higher\", \"lower\"] }",
    );
    assert_eq!(
        (value(&values, "rate"), value(&values, "took")),
        (1234.5, 7.0)
    );
    let values = run(
        "command = { run = '''echo '{{\"a\": [1, {{\"b c\": 2.5}}]}}' ''', metrics = 'b=json:/a/1/b c' }",
    );
    assert_eq!(value(&values, "b"), 2.5);
    let golden = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .join("tests/golden/pgbench/pgbench-15.18_tpcb.txt");
    let values = run(&format!(
        "command = {{ run = \"cat {}\", parse = \"pgbench\", metrics = \"transactions\", units = \"op/s\" }}",
        golden.display()
    ));
    assert_eq!(value(&values, "transactions"), 357.882384);
}

/// What `import` says of such a text comes with the figures of a command that prints it.
#[test]
fn what_a_parsed_text_says_against_its_figures_is_told() {
    let golden = |name: &str| {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        root.join("tests/golden/fio")
            .join(name)
            .display()
            .to_string()
    };
    let told = |run: &str, name: &str| {
        let line = format!(
            "command = {{ run = \"{run} {}\", parse = \"fio\", metrics = \"operations\", units = \"op/s\" }}",
            golden(name)
        );
        let (_, outcomes) = measured(&line, &Control::default()).unwrap();
        outcomes[0].told.join("; ")
    };
    let dropped = told("cat", "fio-3.25_10.98k_normal.txt");
    assert!(
        dropped.contains("10.0k") && dropped.contains("10963.6"),
        "{dropped}"
    );
    let short = told(
        "sed 's/short=0,0/short=0,7/'",
        "fio-3.33_slower-than-one_normal.txt",
    );
    assert!(short.contains("operation(s) moved less"), "{short}");
    assert_eq!(told("cat", "fio-3.39_seqread_normal.txt"), "");
}

#[test]
fn a_command_that_fails_or_says_nothing_is_a_failed_trial() {
    let error = failed("command = { run = \"echo out; echo first >&2; echo why >&2; exit 3\" }");
    assert!(
        error.contains("ended with exit status 3; it said last: first\nwhy"),
        "{error}"
    );
    let error = failed("command = { run = \"kill -9 $$\" }");
    assert!(error.contains("was ended by signal 9"), "{error}");
    let error = failed("command = { run = \"sleep 1000\", time-limit = \"50 ms\" }");
    assert!(error.contains("did not end within"), "{error}");
    let error = failed("command = { run = \"echo none\", metrics = 'rate=rate = (\\d+)' }");
    assert!(error.contains("the pattern of \"rate\""), "{error}");
    let error = failed("command = { run = \"echo rate = 0\", metrics = 'rate=rate = (\\d+)' }");
    assert!(error.contains("has no ratio"), "{error}");
    let error = failed("command = { words = \"no-such-program\" }");
    assert!(
        error.contains("no-such-program is not installed"),
        "{error}"
    );
}

#[test]
fn a_stopped_command_ends_its_trial() {
    let control = Control::default();
    control.stop.store(true, Ordering::SeqCst);
    let values = tried("command = { run = \"sleep 1000\" }", &control).unwrap();
    assert!(
        values.iter().all(|(_, value)| value.is_none()),
        "{values:?}"
    );
}

#[test]
fn what_contradicts_itself_is_refused_with_what_to_write() {
    let cases = [
        ("command = {}", "write run = \"make -j8\""),
        (
            "command = { run = \"a\", words = [\"b\"] }",
            "say the same thing",
        ),
        (
            "command = { run = \"a\", metrics = 'b' }",
            "does not say where its figure is",
        ),
        (
            "command = { run = \"a\", metrics = 'b=(' }",
            "is not understood",
        ),
        (
            "command = { run = \"a\", metrics = 'b=json:c' }",
            "is no pointer into JSON",
        ),
        (
            "command = { run = \"a\", metrics = 'elapsed=(x)' }",
            "two metrics \"elapsed\"",
        ),
        (
            "command = { run = \"a\", metrics = 'b=(x)', better = \"more\" }",
            "higher, lower",
        ),
        (
            "command = { run = \"a\", metrics = 'b=(x)', units = [\"s\", \"B\"] }",
            "2 words for 1 metric",
        ),
        (
            "command = { run = \"a\", parse = \"fiio\" }",
            "did you mean \"fio\"",
        ),
        (
            "command = { run = \"a\", parse = \"t ([0-9.]+)\" }",
            "--metric 'NAME=PATTERN'",
        ),
        ("git = { files = 1 }", "between 2 and 1000000"),
        ("build = { jobs = 0 }", "between 1 and 1024"),
        ("postgresql = { time = \"1500 ms\" }", "whole seconds"),
        ("fio = {}", "write job = \"JOB.fio\""),
        (
            "fio = { job = \"x.fio\" }",
            "the text of x.fio is not with the study",
        ),
        (
            "fio = { job = \"x.fio\", content = \"[x]\\nrw=write\\nfilename=/dev/sda\\n\" }",
            "x.fio:3: filename=/dev/sda: that is outside of the directory of the trial",
        ),
        (
            "fio = { content = \"[x]\\nnumjobs=1000\\n\" }",
            "the job:1: numjobs=1000 would be reported job by job",
        ),
    ];
    for (line, expected) in cases {
        let error = refused(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn sqlite_commits_every_transaction_in_every_mode() {
    for mode in ["delete", "truncate", "persist", "wal", "off"] {
        for synchronous in ["off", "normal", "full", "extra"] {
            let values = run(&format!(
                "sqlite = {{ transactions = 20, rows = 100, journal-mode = \"{mode}\", synchronous = \"{synchronous}\" }}"
            ));
            assert!(value(&values, "transactions") > 0.0);
            let [half, most] =
                ["p50", "p99"].map(|p| value(&values, &format!("transaction latency {p}")));
            assert!(half <= most);
        }
    }
}

#[test]
fn what_a_command_does_several_times_has_figures_of_each() {
    let report = |command: &str, seconds: &str, rate: &str| {
        format!(
            "+ {command}\n1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, {seconds} s, {rate} MB/s\n"
        )
    };
    let write = "dd if=/dev/zero of=t bs=1M count=1024 oflag=direct";
    let errors = [
        report(write, "10", "107"),
        report(write, "5", "215"),
        report("dd if=t of=/dev/null bs=1M", "2", "537"),
    ]
    .concat();
    let printed = super::Printed {
        out: "",
        errors: &errors,
    };
    let found = super::found_in(printed, Some("dd")).unwrap();
    let names: Vec<&str> = found
        .figures
        .iter()
        .map(|(head, ..)| head.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "dd write 1G in blocks of 1M, oflag direct (1 of 2): throughput",
            "dd write 1G in blocks of 1M, oflag direct (1 of 2): elapsed",
            "dd write 1G in blocks of 1M, oflag direct (2 of 2): throughput",
            "dd write 1G in blocks of 1M, oflag direct (2 of 2): elapsed",
            "dd read 1G in blocks of 1M: throughput",
            "dd read 1G in blocks of 1M: elapsed"
        ]
    );
}

/// The second trial does other work than the first, as its own settings say.
#[test]
fn a_trial_that_did_other_work_than_the_first_of_its_command_fails() {
    let golden = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .join("tests/golden/fio/fio-3.39_seqread_normal.txt");
    let mark = tempfile::tempdir().unwrap();
    let line = |change: &str| {
        format!(
            "command = {{ run = \"test -e {0}/m && sed '{change}' {1} || cat {1}; touch {0}/m\", parse = \"fio\", metrics = \"operations\", units = \"op/s\" }}",
            mark.path().display(),
            golden.display()
        )
    };
    // As another configuration would, whose workload lives as long as the run.
    let other = line("s/ioengine=[a-z]*/ioengine=mmap/");
    let held = written::workload(&other).unwrap();
    run(&other);
    let why = failed(&other);
    assert!(why.contains("fio did other work"), "{why}");
    assert!(why.contains("ioengine=mmap instead of "), "{why}");
    drop(held);
    run(&line("s/xyzzy//"));
}

/// The same for the job of a study, whose text may ask for what the environment has.
#[test]
fn results_of_a_job_that_differ_in_a_setting_are_other_work() {
    use super::same_work::SameWork;
    use stackrace_fio::fio::{self, FioJob};
    let report = include_str!("../../../../tests/golden/fio/fio-3.33_bs-4k.json");
    let job = FioJob::read("[q]\nrw=randread\nbs=4k\nsize=4m\n").unwrap();
    let done = |text: &str| fio::figures(&job, text).unwrap().done;
    let work = SameWork::of("a job".to_owned());
    work.check(&done(report), &[]).unwrap();
    let other = report.replacen(
        "\"size\" : \"4m\"",
        "\"size\" : \"8m\", \"direct\" : \"1\"",
        1,
    );
    assert_ne!(other, report);
    let why = work.check(&done(&other), &[]).unwrap_err();
    assert!(why.contains("size=8M instead of 4M"), "{why}");
}
