//! What elbencho shows on the terminal, and writes with `--resfile`: a table with two columns, of the
//! first and of the last thread that was done. The figures are those of the last.

use stackrace_base::printed::text::{Figures, TextLine, agree, end, facts, size};
use stackrace_base::printed::{ImportError, Imported, PrintedFigure};

const MIB: f64 = 1_048_576.0;
/// ns of a ms.
const MILLI: f64 = 1e6;
/// Phases that move nothing: each has a time alone.
const QUIET: [&str; 2] = ["DROPCACHE", "SYNC"];
/// Other rows that the table may have, which are not read.
const PASSED: [&str; 4] = ["CPU util", "lat histo", "lat %", "latency %"];

/// Returns true if a line is the head of the table.
pub(super) fn is_head(line: TextLine<'_>) -> bool {
    let text = line.text.trim_start();
    text.starts_with("OPERATION") && text.contains("RESULT TYPE") && text.contains("LAST DONE")
}

/// One phase as far as it was told.
#[derive(Debug, Default)]
struct Shown<'a> {
    operation: &'a str,
    /// ms.
    elapsed: Option<PrintedFigure>,
    operations: Option<PrintedFigure>,
    /// MiB/s and MiB, as many bytes as their unit says.
    throughput: Option<(PrintedFigure, f64)>,
    moved: Option<(PrintedFigure, f64)>,
    entries: Option<PrintedFigure>,
    finished: Option<PrintedFigure>,
    /// Latencies: of what, and smallest, mean and largest, ns.
    latencies: Vec<(&'static str, [PrintedFigure; 3])>,
}

/// Every phase of a text.
///
/// # Errors
/// A row that is not understood, or a last one that may have been cut off.
pub(super) fn read(text: &str, all: &[TextLine<'_>]) -> Result<Vec<Imported>, ImportError> {
    let mut results = Vec::new();
    let mut shown: Option<(TextLine<'_>, Shown<'_>)> = None;
    let (mut command, mut head): (Vec<&str>, Option<usize>) = (Vec::new(), None);
    for line in all.iter().copied() {
        let row = line.text.split_once(" :").filter(|_| head.is_some());
        if is_head(line) {
            head = line.text.find("OPERATION");
        } else if let Some(rest) = line.after("COMMAND LINE:") {
            command = rest
                .split_whitespace()
                .map(|word| word.trim_matches('"'))
                .collect();
            head = None;
            // Each word is quoted: what follows with a quote is the rest of a folded command.
            let next = all.get(line.index + 1).copied().unwrap_or(line);
            let glued = rest.contains("\"\"");
            if next.text.contains('"') || glued || rest.matches('"').count() % 2 != 0 {
                return Err(next.rest_of_command());
            }
        } else if let Some((name, values)) = row {
            let begins = line.text.len() - line.text.trim_start().len() <= head.unwrap_or(0);
            let mut name = name.trim();
            if begins {
                let (operation, rest) = name.split_once(' ').unwrap_or((name, ""));
                name = rest.trim_start();
                close(&mut shown, &command, &mut results)?;
                shown = Some((
                    line,
                    Shown {
                        operation,
                        ..Shown::default()
                    },
                ));
            }
            let (_, phase) = shown
                .as_mut()
                .ok_or_else(|| line.refuse("an operation before it"))?;
            phase.row(line, name, values.trim())?;
            // Without a line break the last figure may have been cut off.
            if line.index + 1 == all.len() && !text.ends_with('\n') && !values.ends_with(']') {
                return Err(line.refuse("\"---\" or a line break after it"));
            }
        } else if !line.text.trim().is_empty() && !line.text.starts_with('=') {
            // Rows are indented below their operation; a part of one is no other text.
            if shown.is_some() && line.text.starts_with(' ') {
                return Err(line.refuse("a row of elbencho's table"));
            }
            close(&mut shown, &command, &mut results)?;
        }
        // What follows the last line break is no line.
        let blank = line.text.trim().is_empty() && line.index + 1 < all.len();
        if blank || line.text.trim() == "---" {
            close(&mut shown, &command, &mut results)?;
        }
    }
    if shown.as_ref().is_some_and(|(_, phase)| !phase.is_whole()) {
        return Err(end(text, "\"---\" behind the last row"));
    }
    close(&mut shown, &command, &mut results)?;
    Ok(results)
}

/// Takes a phase that ends here into the results.
fn close(
    shown: &mut Option<(TextLine<'_>, Shown<'_>)>,
    command: &[&str],
    results: &mut Vec<Imported>,
) -> Result<(), ImportError> {
    if let Some((line, phase)) = shown.take()
        && !QUIET.contains(&phase.operation)
    {
        results.push(phase.imported(line, command)?);
    }
    Ok(())
}

impl Shown<'_> {
    /// Returns true if every rate has the amount that follows it, so that nothing but latencies may be
    /// missing.
    fn is_whole(&self) -> bool {
        let follows = |rate: bool, amount: bool| !rate || amount;
        let (moved, finished) = (self.moved.is_some(), self.finished.is_some());
        (moved || finished)
            && follows(self.throughput.is_some(), moved)
            && follows(self.entries.is_some(), finished)
    }

    /// Reads `Elapsed time     :     11.559s     11.559s`.
    fn row(&mut self, line: TextLine<'_>, name: &str, values: &str) -> Result<(), ImportError> {
        if PASSED.iter().any(|passed| name.contains(passed)) {
            return Ok(());
        }
        if let Some(of) = [
            "IO", "Ent", "File", "Files", "FILE", "Dir", "Dirs", "Object", "Objects",
        ]
        .into_iter()
        .find(|of| {
            name.strip_prefix(of)
                .is_some_and(|rest| rest.starts_with(" latency"))
        }) {
            let unit = if name.ends_with(" us") { "us" } else { "" };
            let spread = spread(values, unit);
            let spread = spread.ok_or_else(|| line.refuse("[ min=… avg=… max=… ]"))?;
            let of = if of == "IO" { "" } else { "entry " };
            self.latencies.push((of, spread));
            return Ok(());
        }
        let words: Vec<&str> = values.split_whitespace().collect();
        // The first of two is of the first thread that was done.
        let (Some(last), 1..=2) = (words.last(), words.len()) else {
            return Err(line.refuse("two figures, of the first and of the last that was done"));
        };
        let unit = if name.ends_with("MiB/s") || name.ends_with("MiB") {
            MIB
        } else {
            1e6
        };
        let entries = ["Files", "Dirs", "Objects", "Buckets", "Entries", "FILES"];
        let is_entries = |end: &str| {
            entries
                .iter()
                .any(|kind| name.strip_prefix(kind) == Some(end))
        };
        match name {
            "Elapsed time" => {
                let elapsed = duration(last).ok_or_else(|| line.refuse("a time as 1m2.345s"))?;
                self.elapsed = Some(elapsed);
            }
            "Elapsed ms" => self.elapsed = Some(line.number(last)?),
            "IOPS" => self.operations = Some(line.number(last)?),
            "Throughput MiB/s" | "Throughput MB/s" => {
                self.throughput = Some((line.number(last)?, unit));
            }
            "Total MiB" | "Total MB" => self.moved = Some((line.number(last)?, unit)),
            _ if is_entries("/s") => self.entries = Some(line.number(last)?),
            _ if is_entries(" total") => self.finished = Some(line.number(last)?),
            _ => {
                return Err(ImportError {
                    next: "give it what elbencho --csvfile or --jsonfile wrote".to_owned(),
                    ..line.refuse("a row of elbencho's table")
                });
            }
        }
        Ok(())
    }

    /// A rate from its amount over the time, which have more digits, where both agree with it.
    fn exact(
        &self,
        line: TextLine<'_>,
        rate: Option<PrintedFigure>,
        amount: Option<PrintedFigure>,
    ) -> Result<Option<PrintedFigure>, ImportError> {
        let (Some(rate), Some(amount), Some(ms)) = (rate, amount, self.elapsed) else {
            return Ok(rate);
        };
        let Some(computed) = amount.per(ms).map(|per_ms| per_ms * 1e3) else {
            return Ok(Some(rate));
        };
        // Whole numbers of a short phase say too little to be compared.
        if ms.value < 100.0 || amount.value < 100.0 {
            return Ok(Some(rate));
        }
        let (one, other) = (computed.value, rate.value);
        if (one - other).abs() > 1.0 && !agree(one, other) {
            return Err(line.contradicts("the rows after it: amount over time is another rate"));
        }
        Ok(Some(rate.finer(computed)))
    }

    fn imported(&self, line: TextLine<'_>, command: &[&str]) -> Result<Imported, ImportError> {
        let value = |pair: Option<(PrintedFigure, f64)>| pair.map(|(value, _)| value);
        let throughput = self.exact(line, value(self.throughput), value(self.moved))?;
        let entries = self.exact(line, self.entries, self.finished)?;
        let unit = self.throughput.map_or(MIB, |(_, unit)| unit);
        let mut figures = Figures::default();
        if let Some(throughput) = throughput {
            figures.rate("throughput", "B/s", Some(throughput * unit));
        }
        for (name, value) in [("operations", self.operations), ("entries", entries)] {
            if value.is_some() {
                figures.rate(name, "op/s", value);
            }
        }
        if figures.values.is_empty() {
            return Err(line.refuse("a rate of this operation"));
        }
        figures.time("elapsed", "s", self.elapsed.map(|ms| ms * 1e-3));
        for (of, spread) in &self.latencies {
            if !spread.is_sorted_by_key(|told| told.value) {
                return Err(line.contradicts("its latencies: a mean is not between min and max"));
            }
            for (word, told) in ["min", "mean", "max"].into_iter().zip(spread) {
                figures.time(format!("{of}latency {word}"), "ns", Some(*told));
            }
        }
        let mut notes = Vec::new();
        if command.is_empty() {
            notes
                .push("the text has the table alone: how elbencho was run is not known".to_owned());
        }
        Ok(Imported {
            settings: facts([("command", command.join(" ").as_str())]),
            notes,
            ..figures.imported("elbencho", self.workload(command))
        })
    }

    /// Names the workload as the CSV's phases are called, where the command says how it was run.
    fn workload(&self, command: &[&str]) -> String {
        let operation = self.operation.to_lowercase();
        if command.is_empty() {
            return format!("elbencho {operation}");
        }
        let option = |short: &str, long: &str| {
            let at = command
                .iter()
                .position(|word| *word == short || *word == long);
            let next = at.and_then(|at| command.get(at + 1)).copied();
            let joined = command
                .iter()
                .find_map(|word| word.strip_prefix(long)?.strip_prefix('='));
            next.or(joined)
        };
        let bytes = |word: Option<&str>, default: &str| {
            let word = word.unwrap_or(default);
            binary(word).map_or_else(|| word.to_owned(), size)
        };
        let random = if command.contains(&"--rand") {
            "random "
        } else {
            ""
        };
        let depth = match option("--iodepth", "--iodepth") {
            None | Some("1") => String::new(),
            Some(depth) => format!(", depth {depth}"),
        };
        format!(
            "elbencho {random}{operation}, files of {} in blocks of {}, {} thread(s){depth}",
            bytes(option("-s", "--size"), "?"),
            bytes(option("-b", "--block"), "1m"),
            option("-t", "--threads").unwrap_or("1")
        )
    }
}

/// Reads `256k`, `1M`, `4g`: of 1024.
fn binary(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match word[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Reads `30m0.279s`, `1h2m3.000s`, `510ms`, `0s`: ms.
fn duration(word: &str) -> Option<PrintedFigure> {
    let (mut ms, mut rest) = (PrintedFigure::default(), word);
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (figure, unit) = rest.split_at(end);
        let stop = unit.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = unit.split_at(stop.unwrap_or(unit.len()));
        let scale = match unit {
            "d" => 86_400e3,
            "h" => 3_600e3,
            "m" => 60e3,
            "s" => 1e3,
            "ms" => 1.0,
            "us" => 1e-3,
            _ => return None,
        };
        // The parts before the last one are whole: "30m0.279s" is known to a millisecond.
        ms = PrintedFigure::exact(ms.value) + PrintedFigure::read(figure)? * scale;
        rest = after;
    }
    (!word.is_empty()).then_some(ms)
}

/// `[ min=91us avg=120us max=1.58ms ]`, or in the unit that the name of the row has: ns.
fn spread(values: &str, unit: &str) -> Option<[PrintedFigure; 3]> {
    let inner = values.strip_prefix('[')?.strip_suffix(']')?;
    let mut found = [PrintedFigure::default(); 3];
    let mut words = inner.split_whitespace();
    for (value, name) in found.iter_mut().zip(["min=", "avg=", "max="]) {
        let word = words.next()?.strip_prefix(name)?;
        *value = duration(&format!("{word}{unit}"))? * MILLI;
    }
    words.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::tests::{from, golden, has, refused};

    #[test]
    fn the_table_of_the_terminal_is_read() {
        let alone = &from("elbencho/elbencho-3_console-alone.txt")[0];
        assert_eq!(alone.workload, "elbencho write");
        has(alone, "throughput", "B/s", 10240.0 / 11.559 * MIB);
        has(alone, "operations", "op/s", 221.0);
        has(alone, "elapsed", "s", 11.559);
        assert!(alone.notes[0].contains("alone"), "{:?}", alone.notes);
        let file = &from("elbencho/elbencho-3_resfile.txt")[0];
        assert_eq!(
            file.workload,
            "elbencho write, files of 256k in blocks of 256k, 1 thread(s)"
        );
        has(file, "elapsed", "s", 1800.279);
        has(file, "entries", "op/s", 151_705.0 / 1800.279);
        let old = from("elbencho/elbencho-1.8_console.txt");
        assert_eq!(old.len(), 2, "dropping caches is no result");
        has(&old[0], "throughput", "B/s", 192.0 / 6.001 * MIB);
        has(&old[0], "latency mean", "ns", 120_000.0);
        has(&old[1], "entries", "op/s", 1_048_576.0 / 889.783);
    }

    #[test]
    fn what_the_table_says_twice_must_agree() {
        let text = golden("elbencho/elbencho-3_console-alone.txt");
        assert!(
            refused(&text.replace("10240", "20240"))
                .what
                .contains("contradicts")
        );
        refused(&text.replace("IOPS  ", "IOPSs "));
        refused(text.split("\n---").next().unwrap());
    }

    #[test]
    fn times_have_all_their_parts() {
        for (word, ms, step) in [
            ("1h2m3.500s", 3_723_500.0, 1.0),
            ("510ms", 510.0, 1.0),
            ("1m", 60_000.0, 60_000.0),
        ] {
            let found = duration(word).unwrap();
            assert_eq!((found.value, found.step), (ms, step), "{word}");
        }
        for wrong in ["", "5", "-1s", "1x", "nan s"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
