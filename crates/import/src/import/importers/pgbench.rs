//! pgbench of PostgreSQL 14 and later: its final report, any number of them in one text.
//!
//! Times are in ms. The mean latency is stated beside the rate: where no rate was asked for, clients over
//! the rate is the same, and both must agree. Progress and latencies of single statements are passed
//! over.

use stackrace_base::event::Better;
use stackrace_base::printed::text::{Figures, TextLine, agree, end, facts, lines};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "pgbench",
    summary: "the final report of pgbench 14 or later, from \"transaction type\" to \"tps\"",
    recognises: |text| lines(text).iter().any(|line| line.after(TYPE).is_some()),
    read,
};

/// Begins a report.
const TYPE: &str = "transaction type: ";
/// Follows the rate on the last line of a report.
const WITHOUT: &str = " (without initial connection time)";
/// ns of a ms.
const MILLI: f64 = 1e6;
/// Share of the duration by which the time of all transactions may differ from it.
const TIME_OFF: f64 = 0.05;
/// Mean latencies that the last transactions may take when the duration is over.
const TRANSACTIONS_LAST: f64 = 20.0;
/// Lines of a report that are kept as they are.
const SETTINGS: [&str; 6] = [
    "scaling factor",
    "query mode",
    "number of clients",
    "number of threads",
    "duration",
    "number of transactions per client",
];

/// A report under way.
#[derive(Debug, Default)]
struct Report<'a> {
    version: Option<&'a str>,
    script: &'a str,
    settings: Vec<(&'a str, &'a str)>,
    clients: Option<f64>,
    /// Transactions that were processed, and those that were asked for.
    processed: Option<(f64, Option<f64>)>,
    /// Time that it was to take, s.
    duration: Option<f64>,
    /// Transactions that each client was to do.
    each: Option<f64>,
    /// Time for connecting, which counts in the duration and not in the rate.
    connected_ns: f64,
    /// Share of transactions that failed, in the text's words; `None` if it does not say.
    failed: Option<&'a str>,
    mean_ns: Option<PrintedFigure>,
    deviation_ns: Option<PrintedFigure>,
    /// Set if a rate was asked for: the mean latency then says nothing of the rate.
    limited: bool,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut results = Vec::new();
    let mut version = None;
    let mut report: Option<Report<'_>> = None;
    for line in lines(text) {
        if let Some(rest) = line.after("pgbench (") {
            // It stands before the first report, and holds for all that follow.
            version = rest.split([' ', ')']).next();
            continue;
        }
        if let Some(script) = line.after(TYPE) {
            if report.is_some() {
                // Two beginnings in a row: the text was cut off in between, and the figures of one
                // report must not end up in the other.
                return Err(line.refuse("the line \"tps\" of the report before it"));
            }
            report = Some(Report {
                version,
                script,
                ..Report::default()
            });
            continue;
        }
        let Some(running) = report.as_mut() else {
            // Between reports there are progress lines and latencies of statements.
            match line.after("tps = ") {
                Some(_) => return Err(line.refuse("a line \"transaction type\" before it")),
                None => continue,
            }
        };
        match line.after("tps = ") {
            Some(rate) => {
                results.push(running.imported(line, rate)?);
                report = None;
            }
            None => running.take(line)?,
        }
    }
    // Cut off: half a report has no rate.
    match report {
        Some(_) => Err(end(text, "the line \"tps\" of pgbench")),
        None => Ok(results),
    }
}

impl<'a> Report<'a> {
    /// Takes one line between the first and the last.
    fn take(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        let plain = line.text.trim();
        // A terminal mixes both outputs.
        if plain.is_empty() || plain.starts_with("progress: ") {
            return Ok(());
        }
        if let Some((name, value)) = plain.split_once(": ") {
            match name {
                "number of clients" => self.clients = Some(line.whole(value)? as f64),
                "number of transactions actually processed" => {
                    let (done, asked) = match value.split_once('/') {
                        Some((done, asked)) => (done, Some(line.whole(asked)? as f64)),
                        None => (value, None),
                    };
                    self.processed = Some((line.whole(done)? as f64, asked));
                }
                "number of transactions per client" => {
                    self.each = Some(line.whole(value)? as f64);
                }
                "duration" => {
                    let seconds = value.strip_suffix(" s");
                    let seconds = seconds.ok_or_else(|| line.refuse("a time in s"))?;
                    self.duration = Some(line.whole(seconds)? as f64);
                }
                "number of failed transactions" => self.failed = Some(value),
                "rate limit schedule lag" => self.limited = true,
                _ => {}
            }
            let counted = name.starts_with("number of transactions");
            let known = counted || self.limited || SETTINGS.contains(&name);
            // A line that is not known may change what the others mean.
            if !known
                && !["maximum number of tries", "number of failed transactions"].contains(&name)
            {
                return Err(line.refuse("a line of pgbench's report"));
            }
            if SETTINGS.contains(&name) {
                self.settings.push((name, value));
            }
            return Ok(());
        }
        let ms = |name: &str| -> Result<Option<PrintedFigure>, ImportError> {
            let Some(value) = line.after(name) else {
                return Ok(None);
            };
            let figure = value.strip_suffix(" ms");
            let figure = figure.ok_or_else(|| line.refuse("a time in ms"))?;
            Ok(Some(line.number(figure)? * MILLI))
        };
        if let Some(mean) = ms("latency average = ")? {
            self.mean_ns = Some(mean);
        } else if let Some(deviation) = ms("latency stddev = ")? {
            self.deviation_ns = Some(deviation);
        } else if let Some(connected) = ms("initial connection time = ")? {
            self.connected_ns = connected.value;
        } else {
            return Err(line.refuse("a line of pgbench's report"));
        }
        Ok(())
    }

    /// Compares the number of transactions with the rate and the time; gives a note where they differ by what one
    /// slow transaction may explain.
    fn counted(
        &self,
        line: TextLine<'_>,
        ((done, asked), rate, mean_ns): ((f64, Option<f64>), f64, f64),
    ) -> Result<Option<String>, ImportError> {
        const OF: &str = "number of transactions actually processed";
        let all = self.each.zip(self.clients).map(|(each, of)| each * of);
        if asked.is_some_and(|asked| done > asked || all.is_some_and(|all| all != asked)) {
            return Err(line.contradicts(format!(
                "the {OF}: clients and transactions per client are others"
            )));
        }
        let Some(duration) = self.duration.filter(|_| rate > 0.0) else {
            return Ok(None);
        };
        let took = done / rate;
        // Clients end with the transaction that they are at when the time is over, never before.
        if took < duration * (1.0 - TIME_OFF) - self.connected_ns / 1e9 {
            return Err(line.contradicts(format!(
                "the {OF}: at this rate they take {took:.3} s of {duration} s"
            )));
        }
        let longest = duration * (1.0 + TIME_OFF) + TRANSACTIONS_LAST * mean_ns / 1e9;
        Ok((took > longest).then(|| {
            format!("{done} transactions at this rate take {took:.3} s, and the duration is {duration} s")
        }))
    }

    /// The result, with the rate of its last line.
    fn imported(&self, line: TextLine<'_>, rate: &str) -> Result<Imported, ImportError> {
        let rate = rate.strip_suffix(WITHOUT);
        let rate = rate.ok_or_else(|| line.refuse("the rate of PostgreSQL 14 or later"))?;
        let rate = line.number(rate)?;
        let missing = |what: &str| line.refuse(format!("a line \"{what}\" before it"));
        let clients = self.clients.ok_or_else(|| missing("number of clients"))?;
        let mean = self.mean_ns.ok_or_else(|| missing("latency average"))?;
        let Some(processed) = self.processed else {
            return Err(missing("number of transactions actually processed"));
        };
        if !self.limited && !agree(clients * 1e9 / rate.value, mean.value) {
            return Err(
                line.contradicts("the latency average: clients over the rate is another time")
            );
        }
        let mut figures = Figures::default();
        figures.rate("transactions", "op/s", rate.above_zero());
        figures.time("transaction latency mean", "ns", Some(mean));
        if let Some(deviation) = self.deviation_ns {
            figures.add(
                "transaction latency deviation",
                "ns",
                Better::Lower,
                Some(deviation),
            );
        }
        let mut notes = figures.missing("0");
        notes.extend(self.counted(line, (processed, rate.value, mean.value))?);
        let failed = self.failed.filter(|failed| !failed.starts_with("0 "));
        notes.extend(failed.map(|failed| format!("transactions failed: {failed}")));
        let said = |name: &str| {
            let found = self.settings.iter().find(|(setting, _)| *setting == name);
            found.map_or("?", |(_, value)| *value)
        };
        let (scale, threads) = (said("scaling factor"), said("number of threads"));
        Ok(Imported {
            version: self.version.map(|version| format!("pgbench {version}")),
            kind: "postgresql".to_owned(),
            settings: facts(self.settings.iter().copied()),
            notes,
            ..figures.imported(
                "pgbench",
                format!(
                    "pgbench {}, scale {scale}, {clients} clients, {threads} threads",
                    self.script.trim_matches(['<', '>'])
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{from, golden, has, read};

    #[test]
    fn reports_of_pgbench_are_read_with_and_without_a_rate() {
        let plain = &from("pgbench/pgbench-15.18_tpcb.txt")[0];
        assert_eq!(plain.version.as_deref(), Some("pgbench 15.18"));
        assert_eq!(
            plain.workload,
            "pgbench builtin: TPC-B (sort of), scale 1, 4 clients, 4 threads"
        );
        has(plain, "transactions", "op/s", 357.882384);
        has(plain, "transaction latency mean", "ns", 11_177_000.0);
        let counted = &from("pgbench/pgbench-15.18_select_only.txt")[0];
        has(counted, "transactions", "op/s", 2182.862781);
        let limited = &from("pgbench/pgbench-15.18_rate_limit.txt")[0];
        has(limited, "transaction latency mean", "ns", 12_552_000.0);
        let followed = &from("pgbench/pgbench-15.18_progress_statements.txt")[0];
        has(followed, "transaction latency deviation", "ns", 7_470_000.0);
    }

    #[test]
    fn transactions_that_contradict_rate_and_time_are_refused_or_noted() {
        let timed = golden("pgbench/pgbench-15.18_tpcb.txt");
        let counted = golden("pgbench/pgbench-15.18_select_only.txt");
        for (text, from, to) in [
            (&timed, "processed: 724", "processed: 624"),
            (&timed, "processed: 724", "processed: 72"),
            (&timed, "processed: 724", "processed: none"),
            (&timed, "duration: 2 s", "duration: 20 s"),
            (&counted, "processed: 1000/1000", "processed: 2000/1000"),
            (&counted, "processed: 1000/1000", "processed: 900/900"),
            (&counted, "per client: 500", "per client: 50"),
        ] {
            let why = read(&text.replace(from, to), None).unwrap_err();
            assert!(
                why.to_string().contains("processed") || to.ends_with("none"),
                "{to}: {why}"
            );
        }
        for (from, to) in [
            ("processed: 724", "processed: 7240"),
            ("duration: 2 s", "duration: 1 s"),
        ] {
            let found = read(&timed.replace(from, to), None).unwrap();
            let notes = found[0].notes.join("; ");
            assert!(notes.contains("and the duration is"), "{to}: {notes}");
        }
        // Some failed, or their clients were aborted: fewer than were asked for.
        let fewer = counted.replace("processed: 1000/1000", "processed: 990/1000");
        assert!(read(&fewer, None).is_ok());
    }
}
