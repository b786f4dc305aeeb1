//! Lines that show whose output they are: what of a text belongs to which tool, whether or not it is read.

use super::importers::is_of_dd;
use stackrace_base::printed::text::TextLine;

/// A tool, and how a line of its results begins.
const BEGINNINGS: &[(&str, &str)] = &[
    ("bonnie++", "Version  1."),
    ("bonnie++", "Version  2."),
    ("elbencho", "Throughput MiB/s"),
    ("elbencho", "IOPS             :"),
    ("elbencho", "OPERATION   RESULT TYPE"),
    ("elbencho", "OPERATION RESULT TYPE"),
    ("fio", "issued rwt"),
    ("fio", "Run status group "),
    ("fio", "clat percentiles ("),
    ("fio", "lat percentiles ("),
    ("fio", "READ: bw="),
    ("fio", "WRITE: bw="),
    ("fio", "TRIM: bw="),
    ("fio", "MIXED: bw="),
    ("fio", "cpu          : usr="),
    ("fio", "IO depths    :"),
    ("fio", "\"bw_bytes\" :"),
    ("fio", "\"iops_mean\" :"),
    ("fio", "\"fio version\" :"),
    ("hyperfine", "Time (mean ± "),
    ("hyperfine", "Range (min … max):"),
    ("io500", "[RESULT]"),
    ("io500", "[SCORE ]"),
    ("ior", "Max Write:"),
    ("ior", "Max Read:"),
    ("iozone", "iozone test complete."),
    ("iozone", "Children see throughput"),
    ("iozone", "Parent sees throughput"),
    ("mdtest", "SUMMARY rate"),
    ("pgbench", "tps = "),
    ("pgbench", "transaction type: "),
    ("pgbench", "latency average = "),
    ("PostMark", "PostMark v"),
    ("PostMark", "Creation alone: "),
    ("PostMark", "Mixed with transactions: "),
    ("PostMark", "Deletion alone: "),
    ("sysbench", "Operations performed:"),
    ("sysbench", "reads/s:"),
    ("sysbench", "writes/s:"),
    ("sysbench", "fsyncs/s:"),
    ("sysbench", "read, MiB/s:"),
    ("sysbench", "written, MiB/s:"),
    ("sysbench", "Latency (ms):"),
    ("sysbench", "Latency histogram (values are in milliseconds)"),
    ("sysbench", "General statistics:"),
    ("sysbench", "Test execution summary:"),
    ("sysbench", "per-request statistics:"),
    ("sysbench", "total time: "),
    ("sysbench", "total number of events:"),
    ("sysbench", "total time taken by event execution:"),
    ("sysbench", "Threads fairness:"),
    ("sysbench", "events (avg/stddev):"),
    ("sysbench", "execution time (avg/stddev):"),
    ("time", "Command being timed:"),
    ("time", "Maximum resident set size"),
    ("tiotest", "Tiotest results for "),
    ("tiotest", "Tiotest latency results:"),
    // Tools that are not read at all.
    ("ddrescue", "non-tried:"),
    ("ddrescue", "pct rescued:"),
    ("ddrescue", "rescued:"),
    ("f3", "Average writing speed:"),
    ("f3", "Average reading speed:"),
    ("fs_mark", "FSUse%"),
    ("KDiskMark", "KDiskMark "),
    ("filebench", "IO Summary:"),
];
/// A tool, and what a line of its results has in it, in this order.
const PARTS: &[(&str, &[&str])] = &[
    ("dbench", &["Throughput ", " MB/sec  "]),
    ("dbench", &[" MB/sec  ", " sec  latency ", " ms"]),
    ("dd", &["+", " records in"]),
    ("dd", &["+", " records out"]),
    ("dd", &["copied, ", "/s"]),
    ("dd", &[" bytes transferred in "]),
    ("dd", &[") transferred ", "/s"]),
    ("fio", &["IOPS=", ", BW="]),
    ("fio", &["lat (", "min=", "max=", "avg=", "stdev="]),
    ("fio", &["bw (", "min=", "max=", "per=", "avg="]),
    ("fio", &["iops ", "min=", "max=", "avg=", "samples="]),
    ("fio", &["Jobs: ", "(f="]),
    ("fio", &["| ", "th=["]),
    ("fio", &["lat (", ") ", ": ", "=", "%"]),
    ("fio", &["ios=", "merge=", "ticks="]),
    // Version 2.
    ("fio", &["io=", "aggrb=", "minb="]),
    ("fio", &["io=", "bw=", "iops=", "runt="]),
    ("fio", &["issued ", "total=r=", "/w="]),
    ("fio", &[": (groupid=", "err="]),
    ("fio", &[";fio-3."]),
    ("ioping", &["request=", " time="]),
    ("ioping", &[" requests completed in "]),
    ("ioping", &["generated ", " requests in ", "/s"]),
    ("ioping", &["min/avg/max/mdev = ", " / "]),
    ("iozone", &["kB  reclen"]),
    ("bonnie++", &["-Sequential Output-"]),
    ("bonnie++", &["/sec %CP", "/sec %CP"]),
    ("bonnie++", &["+++++", "+++"]),
    ("elbencho", &["Elapsed time ", " : ", "s"]),
    ("tiotest", &["| ", " MBs |", " MB/s |"]),
    ("mdtest", &["mdtest-", " was launched with "]),
    ("pgbench", &["progress: ", " tps, lat "]),
    ("PostMark", &[" files", " per second)"]),
    ("PostMark", &["bytes read (", " per second)"]),
    ("PostMark", &["bytes written (", " per second)"]),
    ("sysbench", &[" Requests/sec executed"]),
    ("sysbench", &["[ ", "s ] reads: ", "writes: "]),
    ("sysbench", &["th percentile:"]),
    ("sysbench", &["approx. ", " percentile:"]),
    ("time", &["avgtext+"]),
    ("time", &["pagefaults "]),
    // Tools that are not read at all.
    ("sysbench memory", &[" MiB transferred ("]),
    ("sysbench cpu", &["events per second:"]),
    ("a database test of sysbench", &[" (", " per sec.)"]),
    ("time of zsh", &["s user ", "s system ", "% cpu ", " total"]),
    ("time of fish", &["Executed in "]),
    ("iperf", &["bits/sec"]),
    ("stress-ng", &["stress-ng: metrc"]),
    ("rsync", &["total size is ", "speedup is "]),
    ("rsync", &["sent ", " bytes  received ", " bytes/sec"]),
    ("hdparm", &["Timing ", " disk reads: "]),
    ("hdparm", &["Timing ", " cached reads: "]),
    ("hdparm", &[" MB in ", " seconds = ", " MB/sec"]),
    ("rados bench", &["Bandwidth (MB/sec): "]),
    ("diskspd", &["Command Line: ", "diskspd"]),
    ("CrystalDiskMark", &["CrystalDiskMark "]),
    (
        "CrystalDiskMark or KDiskMark",
        &["(Q=", "T=", ")", ":", "MB/s"],
    ),
    ("CrystalDiskMark", &["Sequential Read :", "MB/s"]),
    ("CrystalDiskMark", &["Sequential Write :", "MB/s"]),
    ("CrystalDiskMark", &["Random Read ", "KB ", ":", "MB/s"]),
    ("CrystalDiskMark", &["Random Write ", "KB ", ":", "MB/s"]),
    ("ddrescue", &["ipos:", " non-trimmed:"]),
    ("ddrescue", &["opos:", " non-scraped:"]),
    ("ddrescue", &[" rate:", "B/s"]),
    ("pv", &[":", ":", " [", "/s]"]),
    ("wget", &["/s) - ", " saved ["]),
    ("db_bench", &[" micros/op"]),
    ("ping", &["icmp_seq=", " time="]),
    ("7z", &["Avr:", " MIPS"]),
];
/// A tool, and whether it prints such a line.
type Printed = (&'static str, fn(&str) -> bool);

/// Rows of figures that only one tool prints.
const ROWS: &[Printed] = &[
    ("mdtest", is_mdtest),
    ("ior", is_ior),
    ("iozone", is_iozone),
    ("fs_mark", is_fs_mark),
    ("sysbench", is_sysbench),
];
/// Lines that a tool prints beside its results; others may print the like, so that these say nothing alone.
const BESIDE: &[Printed] = &[
    ("bonnie++", is_bonnie),
    ("dbench", |line| {
        let row = line.split_whitespace().count() == 4 && numbers(line).count() == 3;
        row || line.starts_with("Throughput ")
    }),
    ("dd", is_of_dd),
    ("elbencho", |line| {
        line.contains(" : ") || line.matches(',').count() > 20
    }),
    ("fio", |line| {
        line.starts_with("sync (") || line.contains(" prio ") && line.contains("sec)")
    }),
    ("io500", |line| line.starts_with('[')),
    ("ioping", |line| numbers(line).count() >= 10),
    ("ior", |line| line.contains("(MiB")),
    ("iozone", |line| {
        numbers(line).count() == line.split_whitespace().count()
    }),
    ("mdtest", |line| line.starts_with("V-")),
    ("pgbench", |line| {
        [
            "number of ",
            "rate limit ",
            "initial connection time ",
            "latency ",
        ]
        .iter()
        .any(|begin| line.starts_with(begin))
    }),
    ("phoronix", |line| line.contains('<') || line.contains('>')),
    ("PostMark", |line| {
        line.contains(" per second)") || numbers(line).count() == 13
    }),
    ("sysbench", |line| {
        line.starts_with("Read ") || line.contains(" bytes written in ")
    }),
    ("tiotest", |line| line.starts_with('|')),
    ("vdbench", |line| {
        line.find(':') == Some(2) || line.contains(" interval ")
    }),
];

/// The first tool that surely printed a line, if any did.
pub(super) fn tool_of(line: TextLine<'_>) -> Option<&'static str> {
    let text = line.text.trim();
    let begins = BEGINNINGS.iter().find(|(_, word)| text.starts_with(word));
    let parts = || PARTS.iter().find(|(_, words)| has(text, words));
    let rows = || ROWS.iter().find(|(_, is_row)| is_row(text));
    let begins = begins.map(|(tool, _)| *tool);
    let begins = begins.or_else(|| parts().map(|(tool, _)| *tool));
    begins.or_else(|| rows().map(|(tool, _)| *tool))
}

/// Returns true if a tool, by the name of its importer, is known to print such a line.
pub(super) fn is_of(line: TextLine<'_>, importer: &str) -> bool {
    let text = line.text.trim();
    let own = |tool: &str| tool.eq_ignore_ascii_case(importer);
    BESIDE
        .iter()
        .any(|(tool, is_own)| own(tool) && is_own(text))
        || BEGINNINGS
            .iter()
            .any(|(tool, word)| own(tool) && text.starts_with(word))
        || PARTS
            .iter()
            .any(|(tool, words)| own(tool) && has(text, words))
        || ROWS.iter().any(|(tool, is_row)| own(tool) && is_row(text))
}

/// Returns true if a line has all these words, one behind the other.
fn has(line: &str, words: &[&str]) -> bool {
    let mut rest = line;
    words.iter().all(|word| match rest.split_once(word) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// Returns true if a word is a number in plain digits.
pub(super) fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches('-');
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        && digits.matches('.').count() < 2
}

/// The plain numbers of a line.
fn numbers(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().filter(|word| is_number(word))
}

/// `File creation   :   6515.949   5491.047   6168.335   402.101`
pub(super) fn is_mdtest(line: &str) -> bool {
    const WHAT: [&str; 3] = ["Directory ", "File ", "Tree "];
    const DONE: [&str; 5] = ["creation", "stat", "rename", "removal", "read"];
    let rest = WHAT.iter().find_map(|what| line.strip_prefix(what));
    let rest = rest.and_then(|rest| DONE.iter().find_map(|done| rest.strip_prefix(done)));
    rest.is_some_and(|rest| numbers(rest).count() >= 3 || rest.contains(" ops/sec"))
}

/// `write  443.65  1981.01  0.000505  1024.00  256.00  …`, also of the summary.
pub(super) fn is_ior(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let named = matches!(words.next(), Some("write" | "read" | "remove"));
    named && words.clone().count() >= 7 && words.take(4).all(is_number)
}

/// `102400  4  31528  31446 …`: kBytes, in records of a power of two, then whole numbers.
pub(super) fn is_iozone(line: &str) -> bool {
    let words = line.split_whitespace();
    let all: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    match all.as_deref() {
        Some([kilobytes, record, rates @ ..]) => {
            record.is_power_of_two()
                && kilobytes.is_multiple_of(*record)
                && kilobytes >= record
                && *kilobytes >= 4
                && !rates.is_empty()
                && rates.iter().all(|rate| *rate > 99)
        }
        _ => false,
    }
}

/// `5  10000  10240  1234.5  12345`: use in %, count, size, files a second, overhead.
fn is_fs_mark(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let whole = |word: &str| word.parse::<u64>().is_ok();
    match words[..] {
        [used, count, size, rate, overhead] => {
            used.parse::<u64>().is_ok_and(|used| used <= 100)
                && [count, size, overhead].into_iter().all(whole)
                && is_number(rate)
                && rate.contains('.')
        }
        _ => false,
    }
}

/// `avg:   0.23`: the rows below "Latency (ms):".
fn is_sysbench(line: &str) -> bool {
    let rest = ["min:", "avg:", "max:", "sum:"]
        .iter()
        .find_map(|name| line.strip_prefix(name));
    rest.is_some_and(|rest| is_number(rest.trim().trim_end_matches("ms").trim_end()))
}

/// Rows of its tables and its CSV: figures and shares of the processor, or `+++++` in their place.
fn is_bonnie(line: &str) -> bool {
    let figure = |word: &&str| is_number(word) || word.starts_with("+++");
    line.starts_with("Latency ")
        || line.matches(',').count() > 20
        || line.contains(" %CP")
        || line.split_whitespace().filter(figure).count() >= 4
}
