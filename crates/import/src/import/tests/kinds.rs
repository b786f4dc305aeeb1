//! Inputs of kinds that people meet: another version, another language, figures that are none, two tools in one text.

use super::*;

const FIO: &str = "fio/fio-3.39_seqread_normal.txt";
const PGBENCH: &str = "pgbench/pgbench-15.18_tpcb.txt";
const SYSBENCH: &str = "sysbench/sysbench-1.0.20_rndrw.txt";
const IOPING: &str = "ioping/ioping-1.3_latency.txt";
const VDBENCH: &str = "vdbench/vdbench-50407_t.txt";

/// A report of dd with this last line.
fn dd(last: &str) -> String {
    format!("1024+0 records in\n1024+0 records out\n{last}\n")
}

fn whole() -> String {
    dd("1073741824 bytes (1.1 GB, 1.0 GiB) copied, 10 s, 107 MB/s")
}

/// A golden text with one place changed.
fn changed(name: &str, old: &str, new: &str) -> String {
    let text = golden(name);
    let changed = text.replace(old, new);
    assert_ne!(changed, text, "{name} has no {old}");
    changed
}

/// Fails unless each text is refused with such words.
#[track_caller]
fn refuses(cases: &[(String, &str)]) {
    for (text, word) in cases {
        match read(text, None) {
            Ok(found) => panic!("{text}\nwas read: {found:?}"),
            Err(why) => assert!(why.to_string().contains(word), "{word}: {why}"),
        }
    }
}

#[test]
fn what_is_no_figure_is_refused_in_every_tool() {
    let copied = |time: &str, rate: &str| {
        dd(&format!(
            "1073741824 bytes (1.1 GB, 1.0 GiB) copied, {time} s, {rate}"
        ))
    };
    let times = |times: &str| {
        format!(
            "{{\"results\":[{{\"command\":\"a\",\"mean\":1.0,\"stddev\":0.1,\"median\":1.0,\"user\":0.1,\"system\":0.1,\"min\":0.9,\"max\":1.1,\"times\":{times}}}]}}"
        )
    };
    refuses(&[
        (copied("nan", "107 MB/s"), "line 3"),
        (copied("-1.5", "107 MB/s"), "line 3"),
        (copied("0", "Infinity B/s"), "line 3"),
        (copied("0.0", "107 MB/s"), "line 3"),
        (copied("1.234,5", "870 kB/s"), "LC_ALL=C"),
        (times("[1.0,-1.0]"), "a time that is none"),
        (times("[1e308,1e308]"), "contradict"),
        (changed(FIO, "avg=633.69", "avg=-nan"), "line 8"),
        (changed(SYSBENCH, "avg:", "avg: nan"), "nan"),
        (changed(VDBENCH, "0.007", "  NaN"), "NaN"),
        (changed(IOPING, "mdev = ", "mdev = -"), "line 15"),
        (changed(PGBENCH, "tps = 357", "tps = inf"), "inf"),
        (changed(PGBENCH, "tps = 357", "tps = 1,357"), "1,357"),
        (
            "real\t0m-1.234s\nuser\t0m0.100s\nsys\t0m0.010s\n".to_owned(),
            "line 1",
        ),
    ]);
}

#[test]
fn marks_between_digits_are_told_with_what_to_do() {
    let bytes = |bytes: &str| {
        dd(&format!(
            "{bytes} bytes (1.1 GB, 1.0 GiB) copied, 10 s, 107 MB/s"
        ))
    };
    for written in [
        "1,073,741,824",
        "1.073.741.824",
        "1'073'741'824",
        "1 073 741 824",
        "1\u{a0}073\u{a0}741\u{a0}824",
        "1,07,37,41,824",
    ] {
        let why = refused(&bytes(written));
        let said = (why.line, why.next.contains("without marks"));
        assert_eq!(said, (3, true), "{written}: {why}");
    }
}

#[test]
fn statements_that_contradict_each_other_are_refused() {
    let line = "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 10 s, 107 MB/s";
    refuses(&[
        (dd(&line.replace("107 MB/s", "1.07 GB/s")), "contradicts"),
        (
            dd(&line.replace("1.1 GB, 1.0 GiB", "11 GB, 10 GiB")),
            "contradicts",
        ),
        (
            changed(PGBENCH, "latency average = ", "latency average = 9"),
            "contradicts",
        ),
    ]);
}

#[test]
fn a_part_of_another_tool_is_never_passed_over() {
    let fio = golden(FIO);
    let zsh = "dd if=/dev/zero of=f bs=1M  0.00s user 0.05s system 45% cpu 0.123 total\n";
    let fish = "Executed in    1.23 secs      fish           external\n";
    let iperf = "[  5]   0.00-10.00  sec  1.10 GBytes   941 Mbits/sec     receiver\n";
    let rsync = "sent 5 bytes  received 35 bytes\ntotal size is 1,073  speedup is 1.00\n";
    let memory = "102400.00 MiB transferred (5000.00 MiB/sec)\n";
    let hdparm = " Timing buffered disk reads: 500 MB in  3.00 seconds = 166.60 MB/sec\n";
    let stress = "stress-ng: metrc: [12] hdd   100   10.01   0.10   0.20   9.99\n";
    let console = "  Time (mean ± σ):     101.2 ms ±   0.3 ms    [User: 0.5 ms, System: 0.6 ms]\n";
    refuses(&[
        (whole() + zsh, "time of zsh"),
        (whole() + fish, "time of fish"),
        (whole() + rsync, "rsync"),
        (whole() + hdparm, "hdparm"),
        (fio.clone() + iperf, "iperf"),
        (fio.clone() + stress, "stress-ng"),
        (fio + console, "hyperfine"),
        (golden(SYSBENCH) + memory, "sysbench memory"),
    ]);
}

#[test]
fn a_version_or_a_test_that_is_not_read_is_named() {
    refuses(&[
        (
            "sysbench 1.1.0 (using bundled LuaJIT 2.1.0-beta3)\n\nThroughput:\n".to_owned(),
            "give it what",
        ),
        (
            "sysbench 1.0.20 (using system LuaJIT 2.1.0)\n\nCPU speed:\n".to_owned(),
            "text of sysbench",
        ),
        (changed(FIO, "fio-3.39", "fio-4.0"), "fio-3.x"),
        (
            changed(
                PGBENCH,
                "without initial connection time",
                "including connections establishing",
            ),
            "PostgreSQL 14",
        ),
        (
            golden(VDBENCH).split("avg_2-5").next().unwrap().to_owned(),
            "ends before",
        ),
        (golden(SYSBENCH)[..900].to_owned(), "fsyncs/s:"),
    ]);
}

#[test]
fn what_stands_around_a_command_makes_it_other_work() {
    let read = "dd if=f of=/dev/null bs=1M";
    let names = |text: &str| -> Vec<String> {
        let results = super::read(text, None).unwrap();
        results.into_iter().map(|it| it.workload).collect()
    };
    let fast = dd("1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2 s, 537 MB/s");
    for (first, told) in [
        (format!("$ ionice -c3 {read}\n"), ", ionice -c3"),
        (
            format!("# echo 3 > /proc/sys/vm/drop_caches; {read}\n"),
            ", caches emptied before",
        ),
        (
            format!("# sysctl vm.drop_caches=3\n# {read}\n"),
            ", caches emptied before",
        ),
    ] {
        let text = format!("{first}{}$ {read}\n{fast}", whole());
        let plain = "dd read 1G in blocks of 1M";
        assert_eq!(
            names(&text),
            [format!("{plain}{told}"), plain.to_owned()],
            "{text}"
        );
    }
}

#[test]
fn what_goes_wrong_beside_a_result_is_a_note() {
    let beside = [
        (whole() + "  pool: tank\n state: DEGRADED\n", "DEGRADED"),
        (
            "$ dd if=/dev/zero of=f bs=1M count=4096\n".to_owned() + &whole(),
            "1024 of the 4096",
        ),
        (
            golden(PGBENCH) + "pgbench: error: Run was aborted\n",
            "Run was aborted",
        ),
        (
            format!(
                "ERROR: open64 failed\n{}",
                golden("mdtest/mdtest-4.1.0.txt")
            ),
            "open64",
        ),
    ];
    for (text, word) in beside {
        let found = read(&text, None).unwrap();
        let told = found
            .iter()
            .all(|it| it.notes.iter().any(|note| note.contains(word)));
        assert!(told, "{word}: {found:?}");
    }
}
