//! The account of a text's lines: every one that holds a figure is of a result that was read, or is refused, or named in a
//! note.
//!
//! What is left out in silence would not be missed. A line of a tool that is known is refused where that tool read
//! nothing; of all others it is told that they are there, because people write about speeds as well.

use super::importers::ALL;
use super::signs::{is_number, is_of, tool_of};
use stackrace_base::printed::text::{TextLine, cut, lines};
use stackrace_base::printed::{ImportError, Imported};

/// Most lines that a note shows; of the others it gives the numbers.
const SHOWN_MAX: usize = 3;
/// Most lines of which it gives the numbers.
const NAMED_MAX: usize = 10;
/// Fewest figures of a row that has no unit.
const ROW_MIN: usize = 3;
/// Fewest commas of a row of CSV.
const LIST_MIN: usize = 5;
/// Rates that are written without a stroke.
const RATES: [&str; 9] = [
    "iops", "kiops", "tps", "ops", "mbps", "gbps", "kbps", "bps", "mb/s",
];
/// Units of latencies; of a figure, or in brackets.
const TIMES: [&str; 9] = [
    "ns", "nsec", "us", "usec", "µs", "μs", "ms", "msec", "msecs",
];

/// A line with a figure that no result has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct UnreadLine {
    /// Its number, from 0.
    pub(super) index: usize,
    /// Its text, cut short.
    pub(super) shown: String,
}

/// The results in a text, and what none of them has.
#[derive(Debug, Clone)]
pub(super) struct Accounted {
    pub(super) results: Vec<Imported>,
    pub(super) unread: Vec<UnreadLine>,
}

impl Accounted {
    /// Adds a note to each result.
    pub(super) fn note(&mut self, note: &str) {
        for result in &mut self.results {
            result.notes.push(note.to_owned());
        }
    }
}

/// Goes through the lines of a text that some tools read.
///
/// # Errors
/// The first line of a tool that is known and is not among them.
pub(super) fn unread(text: &str, readers: &[&str]) -> Result<Vec<UnreadLine>, ImportError> {
    let mut all = Vec::new();
    // What stands in tags is no line of its own.
    let tags = text.trim_start().starts_with('<');
    for line in lines(text) {
        if readers.iter().any(|reader| is_of(line, reader)) {
            continue;
        }
        if let Some(tool) = tool_of(line) {
            return Err(refused(line, tool, readers));
        }
        if !tags && has_figure(line.text.trim()) {
            all.push(UnreadLine {
                index: line.index,
                shown: cut(line.text.trim()),
            });
        }
    }
    Ok(all)
}

/// Returns true for a tool that has an importer, here or beside the classic tools.
fn is_read(tool: &str) -> bool {
    const CLASSIC: [&str; 4] = ["bonnie++", "fio", "postmark", "sysbench"];
    let tool = tool.to_lowercase();
    CLASSIC.contains(&tool.as_str()) || ALL.iter().any(|importer| importer.name == tool)
}

fn refused(line: TextLine<'_>, tool: &str, readers: &[&str]) -> ImportError {
    let shown = cut(line.text.trim());
    if readers.is_empty() && !is_read(tool) {
        return ImportError::at(
            line.index,
            format!("\"{shown}\" is of {tool}, whose output stackrace does not read"),
            "start it from here and read its figure: stackrace compare DIR --metric NAME=PATTERN -- COMMAND",
        );
    }
    ImportError::at(
        line.index,
        format!("\"{shown}\" is of {tool}, and what stands around it is no whole result of it"),
        format!("leave out what is of {tool}, or give it whole, as the tool printed it"),
    )
}

/// One sentence on the lines that are in no result.
pub(super) fn note(unread: &[UnreadLine]) -> Option<String> {
    let shown = unread.iter().take(SHOWN_MAX);
    let shown = shown.map(|line| format!("line {} \"{}\"", line.index + 1, line.shown));
    let shown: Vec<String> = shown.collect();
    let rest = unread.get(SHOWN_MAX..).unwrap_or_default();
    let named = rest.iter().take(NAMED_MAX);
    let named: Vec<String> = named.map(|line| (line.index + 1).to_string()).collect();
    let more = match (rest.len(), named.len()) {
        (0, _) => String::new(),
        (all, some) => {
            let rest = if all > some { ", …" } else { "" };
            format!(", and {all} more: {}{rest}", named.join(", "))
        }
    };
    (!shown.is_empty()).then(|| format!("no result has what stands in {}{more}", shown.join(", ")))
}

/// Returns true if a line holds a rate or a latency, or is a row of figures.
fn has_figure(line: &str) -> bool {
    // Keys of JSON, tags and what was typed are no output.
    let typed = line.starts_with("$ ") || line.starts_with("# ") || line.contains("$ ");
    if typed || line.starts_with(['"', '{', '}', '<']) {
        return false;
    }
    // Of a list without blanks each part is a word.
    let list = line.matches(',').count() >= LIST_MIN && !line.contains(' ');
    let words: Vec<&str> = match list {
        true => line.split(',').collect(),
        false => line.split_whitespace().collect(),
    };
    let figures = words.iter().filter(|word| is_figure(word)).count();
    // "10:15:01" names a row and is no part of it.
    let others = words.iter().filter(|word| !is_clock(word)).count();
    figures >= ROW_MIN && 3 * figures >= 2 * others || has_rate(line)
}

/// Returns true for a number, also with what multiplies it, `1.2T`, or a share.
fn is_figure(word: &str) -> bool {
    // bonnie++ has crosses in place of what was too fast.
    if word.len() > 2 && word.bytes().all(|byte| byte == b'+') {
        return true;
    }
    let plain = word.trim_end_matches([',', ';', '|']);
    let letters = |c: char| "KMGTPkB%i".contains(c);
    is_number(plain) || is_number(plain.trim_end_matches(letters))
}

fn is_clock(word: &str) -> bool {
    word.matches(':').count() == 2
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || ":.[]".contains(c))
}

/// Returns true if a line has a number, and a unit of rates or of latencies with it.
fn has_rate(line: &str) -> bool {
    let apart = |c: char| c.is_whitespace() || "()[]{},;=|<>~\"'".contains(c);
    let words = line.split(apart).filter(|word| !word.is_empty());
    let words: Vec<&str> = words
        .map(|word| word.trim_end_matches([':', '.', '!', '?']))
        .collect();
    let figure = |word: &str| is_number(&word.replace(',', "."));
    let mut counted = words.iter().any(|word| figure(word));
    let small = line.to_lowercase();
    let said = [" per second", " per sec"]
        .iter()
        .any(|rate| small.contains(rate));
    let (mut rate, mut before) = (said, "");
    for word in &words {
        let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
        let (number, unit) = word.split_at(end.unwrap_or(word.len()));
        let attached = !number.is_empty() && !unit.is_empty() && figure(number);
        counted |= attached;
        let in_brackets = || {
            ["(", "["]
                .iter()
                .any(|open| line.contains(&format!("{open}{unit}")))
        };
        rate |=
            is_rate(unit) || TIMES.contains(&unit) && (attached || figure(before) || in_brackets());
        before = word;
    }
    counted && rate
}

/// Returns true for `MB/s`, `files/sec`, `IOPS` and their like.
fn is_rate(unit: &str) -> bool {
    let small = unit.to_lowercase();
    let over = |end: &str| {
        let what = small.strip_suffix(end);
        what.is_some_and(|what| {
            !what.is_empty() && what.chars().all(|c| c.is_alphabetic() || c == '-')
        })
    };
    RATES.contains(&small.as_str()) || ["/s", "/sec", "/second", "/秒"].iter().any(|end| over(end))
}

#[cfg(test)]
mod tests {
    use super::{UnreadLine, has_figure, note};

    #[test]
    fn a_line_with_a_rate_a_latency_or_a_row_of_figures_holds_a_figure() {
        for line in [
            "Average: 85.2 MB/s",
            "Average: 85,2MB/s",
            "write: 123456 IOPS",
            "throughput (MiB/s): 12",
            "p99 latency 12 usec",
            "p99 12.5ms",
            "Latency (ms): 3",
            "1200 files/sec",
            "it writes 105 megabytes per second",
            "NTCreateX       8008     0.036    32.127",
            "1.97,1.97,testhost,1,5,512M,64k,975,74,652151,69,+++++,+++,1497,73",
            "32:4096:512/3 10937  59 +++++ +++  9585  26  4618  92",
            "vda  0.00  1.50  3.00  0.10",
            "10:15:01  vda  0.00  1.50  3.00  0.10",
            "tank  1.2T  3.4T  12  45  1.2M  3.4M",
        ] {
            assert!(has_figure(line), "{line}");
        }
        for line in [
            "",
            "Device r/s w/s rkB/s wkB/s",
            "it took 3 of us 5 days",
            "root@nas:~$ fio --rate=10MB/s",
            "\"bw\" : 100,",
            "-rw-r--r-- 1 root root 1024 Nov 29 18:37 x",
            "Sun Nov 29 18:37:09 UTC 2026",
            "Linux nas 6.1.0-13-amd64 #1 SMP",
            "/dev/sda1 on /mnt type ext4 (rw)",
        ] {
            assert!(!has_figure(line), "{line}");
        }
    }

    #[test]
    fn a_note_shows_the_first_lines_and_numbers_the_others() {
        let line = |index| UnreadLine {
            index,
            shown: format!("{index} MB/s"),
        };
        assert_eq!(note(&[]), None);
        let one = note(&[line(4)]).unwrap();
        assert_eq!(one, "no result has what stands in line 5 \"4 MB/s\"");
        let all: Vec<UnreadLine> = (0..20).map(line).collect();
        let said = note(&all).unwrap();
        assert!(
            said.ends_with("and 17 more: 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, …"),
            "{said}"
        );
    }
}
