//! dbench 4, what it prints: one result per run, with the latencies of each operation.
//!
//! A MB is 10⁶ bytes, as dbench computes it. The rate on the last line is that of the last report
//! before the end, so both must agree. Tables of single clients must add up to that of all.

use stackrace_base::printed::text::{Figures, TextLine, agree, end, facts, lines};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "dbench",
    summary: "the output of dbench 4, from its version to the line \"Throughput\"",
    recognises: |text| lines(text).iter().any(|line| line.after(BANNER).is_some()),
    read,
};

/// Begins an output.
const BANNER: &str = "dbench version ";
/// The columns of a table.
const COLUMNS: [&str; 4] = ["Operation", "Count", "AvgLat", "MaxLat"];
/// Bytes of a MB, and ns of a ms.
const MEGA: f64 = 1e6;

/// One row: operation, count, mean and largest latency in ms.
type Row<'a> = (&'a str, u64, Option<PrintedFigure>, PrintedFigure);

/// State of the reader since the output began.
#[derive(Debug)]
struct Output<'a> {
    version: &'a str,
    /// Seconds and load file, as in the line "Running for".
    seconds: &'a str,
    load: &'a str,
    /// MB/s of the last report while it ran.
    last: Option<f64>,
    /// Set inside a table.
    open: bool,
    /// The tables of all clients, then of each.
    tables: Vec<Vec<Row<'a>>>,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut results = Vec::new();
    let mut output: Option<Output<'_>> = None;
    for line in lines(text) {
        if let Some(rest) = line.after(BANNER) {
            if output.is_some() {
                return Err(line.refuse("the line \"Throughput\" of the output before it"));
            }
            output = Some(Output::new(line, rest)?);
            continue;
        }
        let Some(running) = output.as_mut() else {
            continue;
        };
        match line.after("Throughput ") {
            Some(rest) => {
                results.push(running.imported(line, rest)?);
                output = None;
            }
            None => running.take(line)?,
        }
    }
    if output.is_some() {
        return Err(end(text, "the line \"Throughput\""));
    }
    Ok(results)
}

impl<'a> Output<'a> {
    fn new(line: TextLine<'a>, rest: &'a str) -> Result<Self, ImportError> {
        let version = rest.split_whitespace().next().unwrap_or_default();
        if !version.starts_with("4.") {
            // Version 3 prints other columns and counts a MB in another way.
            return Err(line.refuse("dbench version 4"));
        }
        Ok(Self {
            version,
            seconds: "",
            load: "",
            last: None,
            open: false,
            tables: Vec::new(),
        })
    }

    fn take(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let first = words.first().copied().unwrap_or_default();
        if let Some(rest) = line.after("Running for ") {
            let refuse = || line.refuse("Running for … seconds with load '…'");
            let (seconds, rest) = rest.split_once(" seconds with load '").ok_or_else(refuse)?;
            line.whole(seconds)?;
            let (load, _) = rest.split_once('\'').ok_or_else(refuse)?;
            (self.seconds, self.load) = (seconds, load);
        } else if line.text.contains("FAILED TO START") || line.after("Child failed").is_some() {
            // dbench then ends, or goes on with fewer clients than it was asked for.
            return Err(line.refuse("a run in which no client failed"));
        } else if words == COLUMNS {
            self.tables.push(Vec::new());
            self.open = true;
        } else if words.is_empty() {
            self.open = false;
        } else if self.open {
            if !first.starts_with("---") {
                self.row(line, &words)?;
            }
        } else if let [_, _, rate, "MB/sec", stage, _, "sec", "latency", _, "ms"] = words[..] {
            match stage {
                "execute" => self.last = Some(line.number(rate)?.value),
                // Rates of the warm-up are no part of the result.
                "warmup" => {}
                _ => return Err(line.refuse("warmup or execute")),
            }
        } else if words.contains(&"MB/sec") {
            return Err(line.refuse("a report of dbench while it runs"));
        }
        Ok(())
    }

    fn row(&mut self, line: TextLine<'a>, words: &[&'a str]) -> Result<(), ImportError> {
        let [operation, count, mean, max] = words else {
            return Err(line.refuse("an operation, its count, mean and largest latency"));
        };
        if !operation.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(line.refuse("an operation"));
        }
        let count = line.whole(count)?;
        // A client that never did what others did has no mean: 0 divided by 0.
        let mean = match (count, mean.trim_start_matches('-')) {
            (0, "nan") => None,
            _ => Some(line.number(mean)?),
        };
        let max = line.number(max)?;
        // Both are rounded to the third digit.
        if mean.is_some_and(|mean| mean.value > max.value + 0.001) {
            return Err(line.contradicts("itself: the mean is above the largest"));
        }
        if let Some(table) = self.tables.last_mut() {
            // A name twice would count twice in the sum that is checked below.
            if table.iter().any(|(known, ..)| known == operation) {
                return Err(line.refuse("each operation once"));
            }
            table.push((operation, count, mean, max));
        }
        Ok(())
    }

    /// Refuses tables of clients that are not together that of all.
    fn check(&self, line: TextLine<'_>) -> Result<&[Row<'a>], ImportError> {
        let Some((all, clients)) = self.tables.split_first().filter(|(all, _)| !all.is_empty())
        else {
            return Err(line.refuse("the table of operations before it"));
        };
        // The first table is that of all clients; those of single clients follow where they were
        // asked for.
        let counts = |name: &str| {
            let rows = clients
                .iter()
                .flatten()
                .filter(|(known, ..)| *known == name);
            rows.fold(0u64, |sum, (_, count, ..)| sum.saturating_add(*count))
        };
        let differs = |(name, count, ..): &Row<'_>| counts(name) != *count;
        match !clients.is_empty() && all.iter().any(differs) {
            true => Err(line.refuse("tables of the clients that add up to the first")),
            false => Ok(all),
        }
    }

    /// Reads `58.6097 MB/sec (sync open)  2 clients  2 procs  max_latency=50.672 ms`.
    fn imported(&self, line: TextLine<'a>, rest: &'a str) -> Result<Imported, ImportError> {
        let refuse = || line.refuse("Throughput … MB/sec … clients … procs max_latency=… ms");
        let rows = self.check(line)?;
        let (rate, rest) = rest.split_once(" MB/sec").ok_or_else(refuse)?;
        // Two spaces end the flags, which are words in brackets themselves.
        let (how, rest) = rest.split_once("  ").ok_or_else(refuse)?;
        let how = how.trim();
        if !matches!(
            how,
            "" | "(sync open)" | "(sync dirs)" | "(sync open) (sync dirs)"
        ) {
            return Err(refuse());
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [clients, "clients", procs, "procs", max, "ms"] = words[..] else {
            return Err(refuse());
        };
        line.whole(clients)?;
        line.whole(procs)?;
        let rate = line.number(rate)?;
        let max = max
            .strip_prefix("max_latency=")
            .and_then(PrintedFigure::read);
        let max = max.ok_or_else(refuse)?;
        // The last report has two digits after the point: of less than 1 MB/s too few to tell.
        if self
            .last
            .is_some_and(|last| last >= 1.0 && !agree(last, rate.value))
        {
            return Err(line.contradicts("the last report while it ran"));
        }
        let mut figures = Figures::default();
        let some = |figure: PrintedFigure| (figure * MEGA).above_zero();
        figures.rate("throughput", "B/s", some(rate));
        figures.time("latency max", "ns", some(max));
        for (name, _, mean, largest) in rows {
            figures.time(format!("{name} latency mean"), "ns", mean.and_then(some));
            figures.time(format!("{name} latency max"), "ns", some(*largest));
        }
        let plain: String = how.chars().filter(|c| !matches!(c, '(' | ')')).collect();
        let separator = if how.is_empty() { "" } else { ", " };
        Ok(Imported {
            version: Some(format!("dbench-{}", self.version)),
            settings: facts([
                ("clients", clients),
                ("processes", procs),
                ("seconds", self.seconds),
                ("load file", self.load),
                ("durability", plain.as_str()),
            ]),
            notes: figures.missing("0.000 ms: shorter than dbench can print"),
            ..figures.imported(
                "dbench",
                format!("dbench {clients} clients{separator}{plain}"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{from, golden, has, refused};

    #[test]
    fn dbench_is_read_with_the_latencies_of_each_operation() {
        let [run] = from("dbench/dbench-4.00_1.txt").try_into().unwrap();
        assert_eq!(run.workload, "dbench 1 clients");
        assert_eq!(run.version.as_deref(), Some("dbench-4.00"));
        has(&run, "throughput", "B/s", 58_609_700.0);
        has(&run, "latency max", "ns", 50_672_000.0);
        has(&run, "Flush latency mean", "ns", 4_162_000.0);
        has(&run, "NTCreateX latency max", "ns", 26_476_000.0);
        let [run] = from("dbench/dbench-4.00_sync_2.txt").try_into().unwrap();
        assert_eq!(run.workload, "dbench 2 clients, sync open");
        has(&run, "throughput", "B/s", 14_123_000.0);
    }

    /// The table of all clients counts, and those of each have to add up to it.
    #[test]
    fn tables_of_single_clients_add_up() {
        let name = "dbench/dbench-4.00_per-client_2.txt";
        let [run] = from(name).try_into().unwrap();
        has(&run, "throughput", "B/s", 102_606_000.0);
        let text = golden(name);
        let changed = text.replace("Client 1 did", "Client 1 made").replacen(
            " Unlink           755",
            " Unlink           754",
            1,
        );
        assert_ne!(changed, text);
        assert!(refused(&changed).next.contains("add up"));
    }

    #[test]
    fn a_run_that_is_none_is_refused() {
        let text = golden("dbench/dbench-4.00_1.txt");
        for (old, new, word) in [
            ("Throughput 58.6", "Throughput 68.6", "contradicts"),
            (
                "   1  cleanup   5 sec",
                "Child failed with status 1",
                "Child failed",
            ),
            ("version 4.00", "version 3.04", "3.04"),
            (
                "Operation      Count",
                "Operation      Number",
                "Throughput",
            ),
        ] {
            let changed = text.replacen(old, new, 1);
            assert_ne!(changed, text, "{old}");
            let why = refused(&changed);
            assert!(why.what.contains(word), "{old}: {why:?}");
        }
    }
}
