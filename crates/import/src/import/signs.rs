//! Lines that show whose output they are, for texts of which only a part would be read: what is left out in
//! silence would not be missed.

use stackrace_base::printed::ImportError;
use stackrace_base::printed::text::{TextLine, cut, lines};

/// A tool, and how a line of its results begins.
const BEGINNINGS: &[(&str, &str)] = &[
    ("bonnie++", "Version  1."),
    ("bonnie++", "Version  2."),
    ("elbencho", "Throughput MiB/s"),
    ("elbencho", "OPERATION   RESULT TYPE"),
    ("elbencho", "OPERATION RESULT TYPE"),
    ("fio", "issued rwt"),
    ("fio", "Run status group "),
    ("fio", "clat percentiles ("),
    ("hyperfine", "Time (mean ± "),
    ("io500", "[RESULT]"),
    ("ior", "Max Write:"),
    ("ior", "Max Read:"),
    ("iozone", "iozone test complete."),
    ("mdtest", "SUMMARY rate"),
    ("mdtest", "File creation  "),
    ("pgbench", "tps = "),
    ("pgbench", "transaction type: "),
    ("sysbench", "Operations performed:"),
    ("sysbench", "reads/s:"),
    ("sysbench", "writes/s:"),
    ("sysbench", "fsyncs/s:"),
    ("sysbench", "read, MiB/s:"),
    ("sysbench", "written, MiB/s:"),
    ("time", "Command being timed:"),
    ("time", "Maximum resident set size"),
    ("tiotest", "Tiotest results for "),
];
/// A tool, and what a line of its results has in it.
const PARTS: &[(&str, &[&str])] = &[
    ("dbench", &["Throughput ", " MB/sec  "]),
    ("dd", &["+", " records out"]),
    ("dd", &[" bytes", " copied, ", "/s"]),
    ("fio", &["IOPS=", ", BW="]),
    ("ioping", &[" requests completed in "]),
    ("ioping", &["min/avg/max/mdev = "]),
    ("iozone", &["kB  reclen"]),
    ("bonnie++", &["-Sequential Output-"]),
    ("mdtest", &["mdtest-", " was launched with "]),
    ("sysbench", &[" Requests/sec executed"]),
    ("time", &["avgtext+"]),
    ("time", &["pagefaults "]),
    // Tools that are not read at all.
    ("sysbench memory", &[" MiB transferred ("]),
    ("sysbench cpu", &["events per second:"]),
    ("time of zsh", &["s user ", "s system ", "% cpu ", " total"]),
    ("time of fish", &["Executed in "]),
    ("iperf", &["bits/sec"]),
    ("stress-ng", &["stress-ng: metrc"]),
    ("rsync", &["total size is ", "speedup is "]),
    ("hdparm", &["Timing ", " disk reads: "]),
    ("hdparm", &["Timing ", " cached reads: "]),
    ("rados bench", &["Bandwidth (MB/sec): "]),
    ("diskspd", &["Command Line: ", "diskspd"]),
    ("CrystalDiskMark", &["CrystalDiskMark "]),
];

/// The first line of a tool that is not among those that read the text.
pub(super) fn unread(text: &str, readers: &[&str]) -> Option<ImportError> {
    let all = lines(text);
    let mut found = all.iter().filter_map(|line| Some((line, tool_of(*line)?)));
    let (line, tool) = found.find(|(_, tool)| !readers.contains(tool))?;
    Some(ImportError::at(
        line.index,
        format!(
            "\"{}\" is of {tool}, and what stands around it is no whole result of it",
            cut(line.text.trim())
        ),
        format!("leave out what is of {tool}, or give it whole, as the tool printed it"),
    ))
}

/// The tool whose results have such a line.
fn tool_of(line: TextLine<'_>) -> Option<&'static str> {
    let text = line.text.trim();
    let begins = BEGINNINGS.iter().find(|(_, word)| text.starts_with(word));
    let has = |words: &[&str]| words.iter().all(|word| text.contains(word));
    begins.map(|(tool, _)| *tool).or_else(|| {
        PARTS
            .iter()
            .find(|(_, words)| has(words))
            .map(|(tool, _)| *tool)
    })
}
