//! Lines that no result has, in texts of which a part is understood: refused with their tool, or told of.

use super::*;

/// A whole report of dd.
const DD: &str = "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 10.2345 s, 105 MB/s\n";

/// A lone line, and the tool whose it is.
const LONE: &[(&str, &str)] = &[
    (
        "  WRITE: bw=212MiB/s (222MB/s), 212MiB/s-212MiB/s (222MB/s-222MB/s), io=1024MiB (1074MB), run=4832-4832msec",
        "fio",
    ),
    (
        "Jobs: 1 (f=1): [w(1)][66.7%][w=212MiB/s][w=212 IOPS][eta 00m:02s]",
        "fio",
    ),
    (
        "    clat (usec): min=55, max=3657, avg=188.46, stdev=562.93",
        "fio",
    ),
    (
        "   bw (  KiB/s): min=43944, max=43944, per=100.00%, avg=43944.00, stdev= 0.00, samples=1",
        "fio",
    ),
    (
        "   iops        : min=10986, max=10986, avg=10986.00, stdev= 0.00, samples=1",
        "fio",
    ),
    (
        "     | 99.00th=[ 3064], 99.50th=[ 3654], 99.90th=[ 3654]",
        "fio",
    ),
    ("  lat (usec)   : 4=14.45%, 10=29.30%", "fio"),
    (
        "  vda: ios=0/123, merge=0/0, ticks=0/99, in_queue=0, util=12.00%",
        "fio",
    ),
    ("      \"bw_bytes\" : 150699383,", "fio"),
    ("Latency (ms):", "sysbench"),
    (
        "         avg:                                    0.23",
        "sysbench",
    ),
    (
        "         95th percentile:                        0.99",
        "sysbench",
    ),
    (
        "[ 2s ] reads: 1.00 MiB/s writes: 2.00 MiB/s fsyncs: 3.00/s latency (ms,95%): 0.003",
        "sysbench",
    ),
    (
        "    total time:                          10.0004s",
        "sysbench",
    ),
    ("    execution time (avg/stddev):   9.9983/0.00", "sysbench"),
    (
        "   File creation                6515.949       5491.047       6168.335        402.101",
        "mdtest",
    ),
    (
        "   Directory stat            :      49766.827      42636.974      47021.209       2769.132",
        "mdtest",
    ),
    (
        "          102400       4    31528    31446   112233   113344     4553     4102",
        "iozone",
    ),
    (
        "\tChildren see throughput for  1 initial writers \t= 1232453.00 kB/sec",
        "iozone",
    ),
    (
        "write     443.65     1981.01    0.000505    1024.00    256.00     0.000229   0.002019   0.000006   0.002254   0",
        "ior",
    ),
    (
        "     0        10000        10240       1234.5            98765",
        "fs_mark",
    ),
    (
        "FSUse%        Count         Size    Files/sec     App Overhead",
        "fs_mark",
    ),
    (
        "     ipos:    1073 MB, non-trimmed:        0 B,  current rate:    105 MB/s",
        "ddrescue",
    ),
    (
        "     opos:    1073 MB, non-scraped:        0 B,  average rate:    105 MB/s",
        "ddrescue",
    ),
    (
        "  Sequential Read (Q= 32,T= 1) :   552.212 MB/s",
        "CrystalDiskMark",
    ),
    (
        "Sequential 1 MiB (Q=  8, T= 1):   3523.512 MB/s [   3440.9 IOPS] <  2323.42 us>",
        "KDiskMark",
    ),
    (
        "  Random Read 4KB (QD=32) :   120.1 MB/s [ 29321.2 IOPS]",
        "CrystalDiskMark",
    ),
    (
        "2.00GiB 0:00:10 [ 204MiB/s] [=======>   ] 50% ETA 0:00:10",
        "pv",
    ),
    ("1.00GiB 0:00:05 [ 205MiB/s]", "pv"),
    (
        " Timing buffered disk reads: 362 MB in  3.01 seconds = 120.34 MB/sec",
        "hdparm",
    ),
    (
        " Timing O_DIRECT disk reads: 362 MB in  3.01 seconds = 120.34 MB/sec",
        "hdparm",
    ),
    (
        "4 KiB <<< . (ext4 /dev/vda 252.0 GiB): request=2 time=12.0 ms",
        "ioping",
    ),
    (
        "3 requests completed in 13.0 ms, 12 KiB, 229 iops, 919.7 KiB/s",
        "ioping",
    ),
    ("1.2 GB copied, 11.3 s, 106 MB/s", "dd"),
    ("(1.1 GB, 1.0 GiB) copied, 11.3 s, 106 MB/s", "dd"),
    (
        "tps = 259.615388 (without initial connection time)",
        "pgbench",
    ),
    (
        "progress: 5.0 s, 1023.4 tps, lat 9.7 ms stddev 3.1, 0 failed",
        "pgbench",
    ),
    (
        "   2     16249   102.61 MB/sec  execute   2 sec  latency 63.843 ms",
        "dbench",
    ),
    (
        "\t1.36 megabytes read (1.36 megabytes per second)",
        "PostMark",
    ),
    (
        "testhost            -Create-- --Read--- -Delete--\n files  /sec %CP  /sec %CP  /sec %CP",
        "bonnie++",
    ),
    ("Average writing speed: 85.20 MB/s", "f3"),
    ("copied, 11.3 s, 106 MB/s", "dd"),
    (
        "testhost   512M:64k   975  74 652151  69 +++++ +++  1497  73 +++++ +++ +++++ +++",
        "bonnie++",
    ),
    (
        "   READ: io=1024.0MB, aggrb=212MB/s, minb=212MB/s, maxb=212MB/s, mint=4832msec, maxt=4832msec",
        "fio",
    ),
    (
        "| Write          16 MBs |    0.0 s | 578.913 MB/s |   0.0 %  |  27.3 % |",
        "tiotest",
    ),
    (
        "WRITE       Elapsed time     :     11.559s     11.559s",
        "elbencho",
    ),
    ("File stat         :      44129.214 ops/sec", "mdtest"),
    ("Threads fairness:", "sysbench"),
    (
        "[RESULT]       ior-easy-write        0.677677 GiB/s : time 1.477 seconds",
        "io500",
    ),
    ("Max Write: 443.65 MiB/sec (465.20 MB/sec)", "ior"),
    (
        "2026-11-29 (105 MB/s) - 'x.iso' saved [1073741824/1073741824]",
        "wget",
    ),
];

/// Behind a dd, before it, and behind a fio: never passed over.
#[test]
fn a_lone_line_of_a_known_tool_is_refused_with_its_number_and_its_tool() {
    let fio = golden("fio/fio-3.39_seqread_normal.txt");
    for (lone, tool) in LONE {
        for (whole, name) in [(DD, "dd"), (fio.as_str(), "fio")] {
            let after = whole.lines().count() + lone.lines().count();
            for (text, line) in [
                (format!("{whole}{lone}\n"), after),
                (format!("{lone}\n{whole}"), lone.lines().count()),
            ] {
                // Its own progress and disks are no results.
                let beside = ["Jobs: ", "  vda: "].iter().any(|it| lone.starts_with(it));
                if *tool == name && beside {
                    continue;
                }
                let why = match read(&text, None) {
                    Err(why) => why,
                    Ok(found) => panic!("{text} with {name}: {found:?}"),
                };
                // Of the same tool: its own reader has a word for it.
                if !tool.contains(name) {
                    assert!(why.what.contains(tool), "{lone} with {name}: {why}");
                    assert_eq!(why.line, line, "{lone} with {name}: {why}");
                }
            }
        }
    }
}

/// Figures of anything else, as of monitors and of prose, are told of, with their lines.
#[test]
fn a_figure_that_no_result_has_is_named_with_its_line() {
    for lone in [
        "vda              0.00    1.50     0.00     12.00   0.00   0.00",
        " 1  0      0 123456  78900 345678    0    0    12    34   56   78  1  2 97  0  0",
        "tank        1.2T  3.4T     12     45  1.2M  3.4M",
        "I get 200 MB/s over the network, why?",
        "some-tool: throughput 12.5 MiB/s",
        "p99 latency: 350 usec",
        "random 4k: 12345 IOPS",
    ] {
        let text = format!("{DD}{lone}\n{}", DD.replace("10.2345", "10.3456"));
        let found = read(&text, None).unwrap_or_else(|why| panic!("{lone}: {why}"));
        assert_eq!(found.len(), 2, "{lone}");
        let start: String = lone.trim().chars().take(20).collect();
        for result in &found {
            let told = |note: &String| note.contains("line 4 ") && note.contains(&start);
            assert!(result.notes.iter().any(told), "{lone}: {:?}", result.notes);
        }
    }
}

/// The line is that of the text as it came, also where a mail broke the lines above it.
#[test]
fn a_line_that_no_result_has_keeps_its_number_in_a_folded_text() {
    let text = golden("fio/fio-3.39_seqread_normal.txt");
    let folded = matrix::folded(&text, 72);
    let line = folded.lines().count() + 1;
    let found = read(&format!("{folded}I get 200 MB/s here.\n"), None).unwrap();
    let told = format!("line {line} ");
    let notes = &found[0].notes;
    assert!(notes.iter().any(|note| note.contains(&told)), "{notes:?}");
}

/// Whole outputs have no line that is told of, so that a note means something.
#[test]
fn every_line_of_a_whole_output_is_known() {
    let mut unknown = Vec::new();
    for (folder, files) in goldens() {
        for (name, text) in files {
            let Ok(results) = read(&text, None) else {
                continue;
            };
            for note in results.iter().flat_map(|result| &result.notes) {
                if note.starts_with("no result has") {
                    unknown.push(format!("{folder}/{name}: {note}"));
                }
            }
        }
    }
    unknown.dedup();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

/// What is left of another run is no part of the one that is read.
#[test]
fn a_lone_line_beside_a_whole_output_of_its_own_tool_is_refused() {
    let wholes = [
        ("mdtest", "mdtest/mdtest-4.1.0.txt"),
        ("mdtest", "mdtest/mdtest_summary-alone.txt"),
        ("iozone", "iozone/iozone-3.489_auto.txt"),
        ("ior", "ior/ior-4.0.0rc1.txt"),
        ("sysbench", "sysbench/sysbench-1.0.20_rndrw.txt"),
        ("sysbench", "sysbench/sysbench-0.4.12_rndrw.txt"),
        ("ioping", "ioping/ioping-1.3_writes.txt"),
        ("dd", "dd/coreutils-two.txt"),
        ("fio", "fio/fio-3.33_two_jobs_normal.txt"),
    ];
    let mut passed = Vec::new();
    for (tool, name) in wholes {
        let whole = golden(name);
        let before = read(&whole, None).unwrap();
        for (lone, _) in LONE.iter().filter(|(_, own)| *own == tool) {
            // Progress, and disks, are beside a result.
            let beside = [
                "Jobs: ",
                "  vda: ",
                "4 KiB <<<",
                "[ 2s ]",
                "Threads",
                "Max ",
            ];
            if beside.iter().any(|begin| lone.starts_with(begin)) {
                continue;
            }
            for text in [
                format!("{}\n{lone}\n", whole.trim_end()),
                format!("{}\n\n{lone}\n\n", whole.trim_end()),
                format!("{lone}\n\n{whole}"),
            ] {
                if read(&text, None).is_ok_and(|found| found == before) {
                    passed.push(format!("{name}: {lone}"));
                }
            }
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}
