//! `dd` of GNU coreutils 5 to 9, busybox, toybox and the BSDs: what it prints when it ends, any
//! number of times in one text.
//!
//! `67108864 bytes (67 MB, 64 MiB) copied, 0.097739 s, 687 MB/s`: MB are 10⁶ bytes; busybox, which
//! leaves no blank before its units, means 2²⁰. Where the text shows the command, it says what was
//! done, and results of other operands are other work. Other lines (prompts, messages) are skipped.

mod command;
mod group;
mod line;

use command::{commands, goes_on};
use group::{DdReport, Group};
use line::{Copied, RESULT, Records, copied, is_result, records};
use stackrace_base::printed::text::{TextLine, lines};
use stackrace_base::printed::{ImportError, Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "dd",
    summary: "what dd of GNU coreutils, of busybox or of a BSD prints when it ends",
    recognises: |text| {
        let all = lines(text);
        // In any language the two lines of records follow each other.
        let mut pairs = all.windows(2);
        let of_dd = |pair: &[TextLine<'_>]| pair.iter().all(|line| records(*line).is_some());
        text.contains(" records out") || pairs.any(of_dd)
    },
    read,
};

/// Returns true if dd prints such a line, in whichever language.
pub(in crate::import) fn is_of_dd(text: &str) -> bool {
    let line = TextLine { index: 0, text };
    records(line).is_some() || is_result(line)
}

/// Lines that have to stand before a report's last one, in words.
const BEFORE: &str = "\"… records in\" and \"… records out\" before it";

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let all = lines(text);
    let columns = all.iter().map(|line| line.text.chars().count());
    let mut reader = Reader {
        longest: columns.max().unwrap_or(0),
        ..Reader::default()
    };
    for line in all {
        if let Some(counts) = records(line) {
            reader.count(line, counts?)?;
        } else if is_result(line) {
            reader.end(line, overwritten(text, line))?;
        } else if !line.text.trim().is_empty() {
            reader.other(line)?;
        }
    }
    reader.finish()
}

/// State of the reader after the lines so far.
#[derive(Default)]
struct Reader<'a> {
    groups: Vec<Group>,
    taken: Option<Records>,
    given: Option<Records>,
    /// The line that was last taken, for what is missing behind it.
    last: Option<TextLine<'a>>,
    /// Lines of progress, until the report shows that they are that.
    held: Vec<(TextLine<'a>, Copied)>,
    /// A command that goes on in the next line.
    shell: String,
    /// The line in which a command ended, if one did.
    command: Option<TextLine<'a>>,
    /// Set if caches were emptied since the last command.
    dropped: bool,
    /// Columns of the longest line: a window is not wider where it folded one.
    longest: usize,
}

impl<'a> Reader<'a> {
    /// Records in, or records out: in every language they come in this order.
    fn count(&mut self, line: TextLine<'a>, counts: Records) -> Result<(), ImportError> {
        self.last = Some(line);
        let named = |end: &str| line.text.trim_end().ends_with(end);
        match (self.taken, self.given) {
            (Some(_), None) if !named(" records in") => self.given = Some(counts),
            (None, _) if named(" records out") => {
                return Err(line.refuse("a line \"… records in\" before it"));
            }
            // A command that was killed leaves records in without the rest; the next begins anew.
            _ => (self.taken, self.given) = (Some(counts), None),
        }
        Ok(())
    }

    /// The last line of a report, or a line of progress.
    fn end(&mut self, line: TextLine<'a>, overwritten: bool) -> Result<(), ImportError> {
        let (taken, given) = (self.taken.take(), self.given.take());
        let (Some(taken), Some(given)) = (taken, given) else {
            if taken.is_some() {
                return Err(line.refuse(BEFORE));
            }
            // `status=progress` prints the like without records, and a terminal keeps no carriage
            // return that would tell it apart.
            if !overwritten {
                self.held.push((line, copied(line)?));
            }
            return Ok(());
        };
        let copied = copied(line)?;
        if copied.progress {
            return Err(line.refuse(RESULT));
        }
        if given.0 > 0 && copied.bytes == 0 {
            return Err(line.contradicts("the records before it"));
        }
        for (before, progress) in self.held.drain(..) {
            // Progress is told by whole seconds where its words do not tell it, and the report goes on from there.
            let known = progress.progress || progress.seconds.value.fract() == 0.0;
            if !known || !progress.within(&copied) {
                return Err(before.refuse(BEFORE));
            }
        }
        let report = DdReport {
            taken,
            given,
            copied,
        };
        match self.groups.last_mut() {
            Some(group) => group.reports.push(report),
            None => self.groups.push(Group::of(report)),
        }
        Ok(())
    }

    /// A line that is no part of a report: a command, or anything.
    fn other(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        let trimmed = line.text.trim();
        if let Some((before, _)) = self.held.first() {
            return Err(before.refuse(BEFORE));
        }
        let figures = trimmed.contains(|c: char| c.is_ascii_digit());
        if self.given.is_some() && figures && trimmed.contains("/s") {
            return Err(line::foreign(line));
        }
        let whole = format!("{}{}", self.shell, trimmed.trim_end_matches('\\'));
        if trimmed.ends_with('\\') {
            self.shell = whole;
            return Ok(());
        }
        self.shell.clear();
        let mut found = commands(&whole);
        self.dropped |= whole.contains("drop_caches");
        // To pass over the rest of a command would make work of other flags the same work.
        let before = self.command.filter(|before| before.index + 1 == line.index);
        // What time(1) says of a command goes on with its times.
        let full = |before: TextLine<'_>| {
            before.text.chars().count() >= self.longest && !before.text.contains("being timed:")
        };
        let said = ["dd: ", "[sudo] ", "Password"]
            .iter()
            .any(|own| trimmed.starts_with(own));
        let goes_on = |before| goes_on(trimmed) || found.is_empty() && !said && full(before);
        if before.is_some_and(goes_on) {
            return Err(line.rest_of_command());
        }
        if found.is_empty() {
            // Its name may be the last word that fitted.
            self.command = trimmed.ends_with(" dd").then_some(line).or(self.command);
            return Ok(());
        }
        if let Some(word) = found.iter().find_map(|command| command.unread.as_ref()) {
            return Err(line.refuse(format!("an operand of dd where \"{word}\" is")));
        }
        self.command = Some(line);
        // What was emptied before one command is filled by it.
        found[0].after_dropping |= std::mem::take(&mut self.dropped);
        match self.groups.last_mut() {
            Some(group) if group.reports.is_empty() => group.commands.extend(found),
            _ => self.groups.push(Group {
                commands: found,
                reports: Vec::new(),
            }),
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Imported>, ImportError> {
        if let Some((before, _)) = self.held.first() {
            return Err(before.refuse(BEFORE));
        }
        match (self.taken, self.last) {
            (Some(_), Some(line)) => Err(ImportError {
                next: format!("expected after it: {RESULT}"),
                ..line.refuse(RESULT)
            }),
            _ => Ok(self.groups.iter().flat_map(Group::imported).collect()),
        }
    }
}

/// Returns true if a line was overwritten while dd ran.
fn overwritten(text: &str, line: TextLine<'_>) -> bool {
    let whole = text.split('\n').nth(line.index);
    whole.is_some_and(|whole| whole.trim_end_matches('\r').contains('\r'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::tests::{golden, has, refused};

    fn names(text: &str) -> Vec<String> {
        let results = read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        results.into_iter().map(|result| result.workload).collect()
    }

    /// A report of 1 GiB in blocks of 1 MiB.
    fn report(seconds: &str, rate: &str) -> String {
        format!(
            "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, {seconds} s, {rate}\n"
        )
    }

    #[test]
    fn other_operands_are_other_work() {
        assert_eq!(
            names(&golden("dd/coreutils-8_flags.txt")),
            [
                "dd write 1G in blocks of 1M",
                "dd write 1G in blocks of 1M, conv=fdatasync",
                "dd write 1G in blocks of 1M, oflag=direct"
            ]
        );
        assert_eq!(
            names(&golden("dd/coreutils-8_opposite-a.txt")),
            [
                "dd write 1G in blocks of 1M, oflag=direct",
                "dd read 1G in blocks of 1M, iflag=direct"
            ]
        );
        let zfs = read(&golden("dd/coreutils-8_server-client.txt")).unwrap();
        let names: Vec<&str> = zfs.iter().map(|it| it.workload.as_str()).collect();
        assert_eq!(
            names,
            [
                "dd write 2000M in blocks of 1M",
                "dd read 2000M in blocks of 1M",
                "dd read 1721M in blocks of 1M"
            ]
        );
        assert!(
            zfs[2]
                .notes
                .iter()
                .any(|note| note.contains("1721 of the 2000")),
            "{:?}",
            zfs[2].notes
        );
    }

    #[test]
    fn every_implementation_is_read() {
        for (file, seconds, rate) in [
            ("coreutils-5.2", 3.612_123, 283_489_792.0),
            ("coreutils-6_seconds", 84.3058, 1_804_599_296.0 / 84.3058),
            ("busybox-1.35", 0.817_983, 1_073_741_824.0 / 0.817_983),
            ("toybox-android", 3.006, 1_048_576_000.0 / 3.006),
            ("freebsd-13", 0.353_491, 3_037_536_639.0),
            ("coreutils-8_german", 0.009_137_92, 967_789.0 / 0.009_137_92),
            ("coreutils-9_french", 0.5, 2.0 * 1_073_741_824.0),
            ("coreutils-9_chinese", 0.5, 2.0 * 1_073_741_824.0),
            ("coreutils-9_japanese", 0.5, 2.0 * 1_073_741_824.0),
        ] {
            let results = read(&golden(&format!("dd/{file}.txt")));
            let results = results.unwrap_or_else(|error| panic!("{file}: {error}"));
            let result = results.last().unwrap();
            has(result, "elapsed", "s", seconds);
            has(result, "throughput", "B/s", rate);
        }
    }

    #[test]
    fn a_language_that_is_not_known_is_refused_with_what_to_do() {
        let polish = "1024+0 przeczytanych recordów\n1024+0 zapisanych recordów\nskopiowane 1073741824 bajty (1,1 GB, 1,0 GiB), 0,5 s, 2,1 GB/s\n";
        let misread = refused(polish);
        assert!(misread.next.contains("LC_ALL=C"), "{misread}");
        assert_eq!(misread.line, 3);
    }

    #[test]
    fn commands_belong_to_the_reports_after_them() {
        let (one, two) = (report("2", "537 MB/s"), report("4", "268 MB/s"));
        let write = "dd if=/dev/zero of=t bs=1M count=1024";
        let read = "dd if=t of=/dev/null bs=1M";
        let (w, r) = ("dd write 1G in blocks of 1M", "dd read 1G in blocks of 1M");
        assert_eq!(names(&format!("$ {write}; {read}\n{one}{two}")), [w, r]);
        assert_eq!(names(&format!("{write}\n{read}\n{one}{two}")), [w, r]);
        let looped = format!("$ for i in 1 2; do {read}; done\n{one}{two}");
        assert_eq!(names(&looped), [r, r]);
        let folded = format!("$ dd if=t \\\n    of=/dev/null bs=1M\n{one}");
        assert_eq!(names(&folded), [r]);
        // Two reports behind one command: whose is which is not said.
        let unsaid = format!("$ {write}\n{two}{one}");
        assert_eq!(names(&unsaid), ["dd 1G in blocks of 1M"; 2]);
    }

    /// One whose blocks or number of them are others is of another run.
    #[test]
    fn a_command_that_cannot_have_made_a_report_is_not_its() {
        let of = |command: &str| {
            let text = format!(
                "$ dd if=/dev/zero of=t {command}\n{}",
                report("4", "268 MB/s")
            );
            let [result] = read(&text).unwrap().try_into().unwrap();
            (result.workload, result.notes)
        };
        for other in ["bs=1k count=1024", "bs=1M count=10", "bs=4M"] {
            let (workload, notes) = of(other);
            assert_eq!(workload, "dd 1G in blocks of 1M", "{other}");
            assert!(notes[0].contains("other blocks"), "{other}: {notes:?}");
        }
        for own in [
            "bs=1M",
            "bs=1M count=1024",
            "ibs=4k obs=1M",
            "bs=1M count=1073741824 iflag=count_bytes",
        ] {
            let (workload, notes) = of(own);
            assert!(
                workload.starts_with("dd write 1G in blocks of 1M"),
                "{own}: {workload}"
            );
            assert!(notes.is_empty(), "{own}: {notes:?}");
        }
    }

    #[test]
    fn blocks_below_a_kibibyte_are_those_of_the_command() {
        let text = "$ dd if=/dev/zero of=t bs=512 count=1000 oflag=dsync\n1000+0 records in\n1000+0 records out\n512000 bytes (512 kB, 500 KiB) copied, 1.1 s, 465 kB/s\n";
        let results = read(text).unwrap();
        assert_eq!(
            results[0].workload,
            "dd write 500k in blocks of 512B, oflag=dsync"
        );
        assert!(results[0].notes.is_empty(), "{results:?}");
    }

    #[test]
    fn reports_of_one_command_under_way_are_one_result() {
        let text = "$ dd if=/dev/zero of=t bs=1M count=1024\n300+0 records in\n300+0 records out\n314572800 bytes (315 MB, 300 MiB) copied, 3.1 s, 101 MB/s\n"
            .to_owned()
            + &report("10", "107 MB/s");
        let results = read(&text).unwrap();
        assert_eq!(results.len(), 1);
        has(&results[0], "elapsed", "s", 10.0);
        assert!(results[0].notes[0].contains("under way"), "{results:?}");
    }

    /// Text that `kill -USR1` makes dd print, without the command: `at` has whole records and
    /// seconds.
    fn under_way(at: &[(u64, f64)]) -> String {
        let one = |(records, seconds): &(u64, f64)| {
            let bytes = records << 20;
            let rate = bytes as f64 / seconds / 1e6;
            format!(
                "{records}+0 records in\n{records}+0 records out\n{bytes} bytes copied, {seconds} s, {rate:.1} MB/s\n"
            )
        };
        at.iter().map(one).collect()
    }

    #[test]
    fn reports_under_way_without_a_command_are_one_result_or_said_to_be_doubtful() {
        let one = read(&under_way(&[(311, 3.1), (633, 6.2), (1024, 10.0)])).unwrap();
        assert_eq!(one.len(), 1);
        has(&one[0], "elapsed", "s", 10.0);
        assert!(
            one[0]
                .notes
                .iter()
                .any(|note| note.starts_with("2 report(s)"))
        );
        // One after the other, each of them with its own reports.
        let two = under_way(&[(311, 3.1), (1024, 10.0), (299, 2.9), (1024, 9.8)]);
        let elapsed: Vec<f64> = read(&two)
            .unwrap()
            .iter()
            .map(|it| it.values[1].unwrap().value)
            .collect();
        assert_eq!(elapsed, [10.0, 9.8]);
        let commands = format!("$ dd if=t of=/dev/null bs=1M; dd of=t if=/dev/zero bs=1M\n{two}");
        assert_eq!(
            names(&commands),
            ["dd read 1G in blocks of 1M", "dd write 1G in blocks of 1M"]
        );
        // 256, 512 and 1024 may be what three commands asked for.
        let open = read(&under_way(&[(256, 3.1), (512, 6.2), (1024, 10.0)])).unwrap();
        assert_eq!(open.len(), 3);
        let doubtful = |it: &Imported| it.notes.iter().any(|note| note.contains("USR1"));
        assert_eq!(
            open.iter().map(doubtful).collect::<Vec<_>>(),
            [true, true, false]
        );
    }

    #[test]
    fn progress_that_a_terminal_left_standing_is_no_result() {
        let progress = "536870912 bytes (537 MB, 512 MiB) copied, 5 s, 107 MB/s\n";
        let whole = report("10", "107 MB/s");
        assert_eq!(names(&format!("{progress}{whole}")).len(), 1);
        // A result whose records were cut off is no progress.
        let cut = progress.replace("5 s", "5.01 s");
        assert_eq!(refused(&format!("{cut}{whole}")).line, 1);
        assert_eq!(refused(&format!("{whole}{progress}")).line, 4);
    }

    #[test]
    fn progress_of_a_bsd_is_no_result() {
        let progress = "  495976448 bytes (496 MB, 473 MiB) transferred 2.002s, 248 MB/s\n  1005584384 bytes (1006 MB, 959 MiB) transferred 4.004s, 251 MB/s\n";
        let end = "1000+0 records in\n1000+0 records out\n1048576000 bytes transferred in 4.172731 secs (251292479 bytes/sec)\n";
        let results = read(&format!("{progress}{end}")).unwrap();
        assert_eq!(results.len(), 1);
        has(&results[0], "elapsed", "s", 4.172_731);
        // Progress beyond the end is of another run.
        let beyond = progress.replace("4.004s", "4.9s");
        assert_eq!(refused(&format!("{beyond}{end}")).line, 2);
        assert_eq!(refused(progress).line, 1);
    }

    #[test]
    fn lines_of_ioping_are_none_of_its_results() {
        let ioping = golden("ioping/ioping-1.3_latency.txt");
        let one = names(&(report("10", "107 MB/s") + &ioping));
        assert_eq!(one, ["dd 1G in blocks of 1M"]);
        assert_eq!(names(&(ioping + &report("10", "107 MB/s"))), one);
    }

    #[test]
    fn a_run_that_moved_nothing_has_no_rate_and_says_so() {
        let text = "0+0 records in\n0+0 records out\n0 bytes copied, 0.000162378 s, 0.0 kB/s\n";
        let results = read(text).unwrap();
        assert!(results[0].notes[0].contains("no bytes"), "{results:?}");
    }

    #[test]
    fn figures_that_are_none_are_refused() {
        let good = report("10", "107 MB/s");
        for (right, wrong) in [
            ("10 s", "nan s"),
            ("10 s", "inf s"),
            ("10 s", "-10 s"),
            ("10 s", "0 s"),
            ("10 s", "1,0,0 s"),
            ("107 MB/s", "Infinity B/s"),
            ("107 MB/s", "107 MiB/h"),
            ("1073741824 bytes", "1,073,741,824 bytes"),
            ("1024+0 records in", "1024+x records in"),
        ] {
            let text = good.replacen(right, wrong, 1);
            assert!(read(&text).is_err(), "{wrong}");
        }
        // A rate of 2²⁰ bytes where 10⁶ stand is another figure.
        assert!(read(&good.replace("107 MB/s", "120 MB/s")).is_err());
    }

    /// Languages, interruptions, progress and spellings in texts as people have them.
    #[test]
    fn forms_from_the_field_are_read() {
        let whole = |words: [&str; 3]| {
            let [taken, given, copied] = words;
            format!(
                "$ dd if=/dev/zero of=t bs=1M count=1024 conv=fdatasync\n1024+0 {taken}\n1024+0 {given}\n1073741824 {copied}, 9,52337 s, 113 MB/s\n"
            )
        };
        for words in [
            [
                "Datensätze ein",
                "Datensätze aus",
                "Bytes (1,1 GB, 1,0 GiB) kopiert",
            ],
            [
                "enregistrements lus",
                "enregistrements écrits",
                "octets (1,1 GB) copiés",
            ],
            [
                "записей получено",
                "записей отправлено",
                "байт (1,1 GB, 1,0 GiB) скопирован",
            ],
            [
                "registros leídos",
                "registros escritos",
                "bytes (1,1 GB, 1,0 GiB) copied",
            ],
            [
                "record dentro",
                "record fuori",
                "byte (1,1 GB, 1,0 GiB) copiati",
            ],
            [
                "records gelezen",
                "records geschreven",
                "bytes (1,1 GB, 1,0 GiB) gekopieerd",
            ],
        ] {
            let text = whole(words);
            let results = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            has(&results[0], "elapsed", "s", 9.523_37);
            assert_eq!(
                results[0].workload,
                "dd write 1G in blocks of 1M, conv=fdatasync"
            );
        }
        let stopped = "$ dd if=/dev/sda of=/dev/null bs=1M\n^C1200+0 records in\n1199+0 records out\n1257242624 bytes (1.3 GB, 1.2 GiB) copied, 6.1 s, 206 MB/s\n";
        let stopped = read(stopped).unwrap();
        assert!(stopped[0].notes[0].contains("stopped"), "{stopped:?}");
        let spelled = |block: &str| {
            let command =
                format!("root@pve:~# dd if=/dev/zero of=/tank/t bs={block} count=1k oflag=dsync\n");
            read(&(command + &report("35.2", "30.5 MB/s")))
                .unwrap()
                .remove(0)
        };
        assert_eq!(spelled("1M").workload, spelled("1048576").workload);
        assert_eq!(spelled("1M").settings, spelled("1024k").settings);
    }
}
