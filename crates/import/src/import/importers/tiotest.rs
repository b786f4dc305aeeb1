//! tiotest 0.3.3 to 0.4.2, its tables of rates and latencies: one result for each test.
//!
//! A MB is 2²⁰ bytes, as tiotest computes it. Amount, time and rate have to fit together, and the
//! row "Total" to the rows above it. Shares of the processor are passed over: some versions count
//! the whole process once for each thread.

use stackrace_base::event::Better;
use stackrace_base::printed::text::{Figures, TextLine, end, facts, lines};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "tiotest",
    summary: "the tables of tiotest, from \"Tiotest results for\" to the end of the latencies",
    recognises: |text| lines(text).iter().any(|line| line.after(BANNER).is_some()),
    read,
};

/// Begins an output.
const BANNER: &str = "Tiotest results for ";
/// The columns of the first table.
const RATES: [&str; 5] = ["Item", "Time", "Rate", "Usr CPU", "Sys CPU"];
/// Begins the second table, which `-L` hides.
const LATENCIES: &str = "Tiotest latency results:";
/// The columns of the second table.
const COLUMNS: [&str; 5] = [
    "Item",
    "Average latency",
    "Maximum latency",
    "% >2 sec",
    "% >10 sec",
];
/// The tests; two next to each other move the same amount.
const TESTS: [&str; 4] = ["Write", "Read", "Random Write", "Random Read"];
/// Messages that tiotest writes to standard error where it goes on with fewer threads.
const FEWER: [&str; 2] = ["/_tiotest_pid", "Unable to start "];
/// End that an output needs, in words.
const END: &str = "the last line of the table";
/// Bytes of a MB.
const MEGA: f64 = 1_048_576.0;
/// ns of a ms.
const MILLI: f64 = 1e6;
/// Half of the last digit of what has three digits behind the point.
const HALF: f64 = 0.0005;

/// A row of the second table: mean and largest latency in ms, % above 2 s and above 10 s.
type Latency = [PrintedFigure; 4];

/// One test.
#[derive(Debug, Clone, Copy)]
struct Test<'a> {
    /// Its row in the first table.
    line: TextLine<'a>,
    name: &'static str,
    /// MB of all threads, as printed.
    amount: &'a str,
    /// MB, rounded to a whole number.
    megas: u64,
    /// MB/s.
    rate: PrintedFigure,
    latency: Option<Latency>,
}

/// Place of a line in the output.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Before,
    Rates,
    /// After the first table.
    Between,
    /// The second table was announced, and has to follow.
    Announced,
    Latencies,
    /// After the row "Total".
    Total,
    After,
}

/// State of the reader since the output began.
#[derive(Debug)]
struct Output<'a> {
    threads: &'a str,
    place: Place,
    tests: Vec<Test<'a>>,
    /// Line of the names of the second table's columns, from 1.
    columns: usize,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut results = Vec::new();
    let mut output: Option<Output<'_>> = None;
    for line in lines(text) {
        if FEWER.iter().any(|words| line.text.contains(words)) {
            // The table counts what the others did, and names the number that was asked for.
            return Err(line.refuse("a run in which every thread had its file"));
        }
        if let Some(rest) = line.after(BANNER) {
            // Where latencies are hidden nothing ends an output but the next one.
            if let Some(done) = output.take() {
                let done = done.imported();
                results.extend(done.ok_or_else(|| line.refuse(END))?);
            }
            output = Some(Output::new(line, rest)?);
        } else if let Some(running) = output.as_mut() {
            running.take(line)?;
        } else {
            stray(line)?;
        }
    }
    if let Some(done) = output {
        results.extend(done.imported().ok_or_else(|| end(text, END))?);
    }
    Ok(results)
}

/// Refuses a row without its table: its header may have been cut off.
fn stray(line: TextLine<'_>) -> Result<(), ImportError> {
    // By unit as well: tables of other tools in the same text have rows of these names.
    let row = line.after("|").unwrap_or_default();
    let named = TESTS.iter().any(|name| row.starts_with(name));
    match named && (row.contains(" MB/s ") || row.contains(" ms ")) {
        true => Err(line.refuse("the line \"Tiotest results for\" before a row")),
        false => Ok(()),
    }
}

/// Splits a row into its cells; `None` if it is no whole row.
fn cells<'a>(line: TextLine<'a>) -> Option<Vec<&'a str>> {
    let row = line.after("|")?.strip_suffix('|')?;
    Some(row.split('|').map(str::trim).collect())
}

/// Returns true if a line is drawn from such a corner.
fn rule(line: TextLine<'_>, corner: char) -> bool {
    line.text.trim().starts_with(&format!("{corner}-----"))
}

impl<'a> Output<'a> {
    fn new(line: TextLine<'a>, rest: &'a str) -> Result<Self, ImportError> {
        let threads = rest.strip_suffix(" concurrent io threads:");
        let threads = threads.ok_or_else(|| line.refuse("a number of concurrent io threads:"))?;
        line.whole(threads)?;
        Ok(Self {
            threads,
            place: Place::Before,
            tests: Vec::new(),
            columns: 0,
        })
    }

    fn take(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        match self.place {
            Place::Before | Place::Between | Place::Announced | Place::After => {
                self.outside(line)?
            }
            // Every test was skipped, or no thread could open its file.
            Place::Rates if rule(line, '`') && self.tests.is_empty() => {
                return Err(line.refuse("a test that was run"));
            }
            Place::Rates if rule(line, '`') => self.place = Place::Between,
            Place::Latencies if rule(line, '|') => {}
            Place::Total if rule(line, '`') => self.place = Place::After,
            Place::Rates | Place::Latencies if rule(line, '+') => {}
            Place::Rates => self.rate(line)?,
            Place::Latencies => self.latency(line)?,
            Place::Total => return Err(line.refuse(END)),
        }
        Ok(())
    }

    /// A line outside the tables.
    fn outside(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        let columns = cells(line);
        let is = |names: &[&str]| columns.as_deref() == Some(names);
        let drawn = rule(line, ',') || line.text.trim().is_empty();
        match self.place {
            Place::Before if is(&RATES) => self.place = Place::Rates,
            Place::Before if !drawn => return Err(line.refuse(RATES.join(", "))),
            Place::Between if line.after(LATENCIES).is_some() => self.place = Place::Announced,
            Place::Announced if is(&COLUMNS) => {
                (self.place, self.columns) = (Place::Latencies, line.index + 1);
            }
            // Other limits than 2 s and 10 s are set where tiotest is compiled.
            Place::Announced if !drawn => return Err(line.refuse(COLUMNS.join(", "))),
            _ => stray(line)?,
        }
        Ok(())
    }

    /// `| Write          16 MBs |    0.2 s |  99.339 MB/s |   0.0 %  |   4.9 % |`
    fn rate(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        let refuse = || line.refuse("a test, MBs, s, MB/s and two shares of the processor");
        let row = cells(line).ok_or_else(refuse)?;
        let [item, time, rate, user, system] = row[..] else {
            return Err(refuse());
        };
        let item = item.strip_suffix(" MBs").ok_or_else(refuse)?;
        let (name, amount) = item.rsplit_once(' ').ok_or_else(refuse)?;
        let name = TESTS.iter().find(|known| **known == name.trim());
        let name = name.copied().ok_or_else(refuse)?;
        // Twice, the lines of two outputs are mixed.
        if self.tests.iter().any(|test| test.name == name) {
            return Err(line.refuse("each test once"));
        }
        let figure = |cell: &'a str, unit: &str| {
            let digits = cell.strip_suffix(unit).ok_or_else(refuse)?;
            line.number(digits.trim())
        };
        let (seconds, rate) = (figure(time, " s")?, figure(rate, " MB/s")?);
        // No metrics, but a row whose cells are shifted is found out.
        figure(user, "%")?;
        figure(system, "%")?;
        let test = Test {
            line,
            name,
            amount,
            megas: line.whole(amount)?,
            rate,
            latency: None,
        };
        if !test.fits(seconds.value) {
            return Err(line.contradicts("itself: MBs in so many seconds are another rate"));
        }
        self.check_amount(test)?;
        self.tests.push(test);
        Ok(())
    }

    /// `| Write        |        0.005 ms |       12.071 ms |  0.00000 |   0.00000 |`
    fn latency(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        let refuse = || line.refuse("a test, its mean and largest latency and two shares");
        let row = cells(line).ok_or_else(refuse)?;
        let [name, mean, max, over_2, over_10] = row[..] else {
            return Err(refuse());
        };
        let time = |cell: &'a str| line.number(cell.strip_suffix(" ms").ok_or_else(refuse)?);
        let latency = [
            time(mean)?,
            time(max)?,
            line.number(over_2)?,
            line.number(over_10)?,
        ];
        let [mean, max, over_2, over_10] = latency.map(|figure| figure.value);
        // Both were rounded.
        if mean > max + 2.0 * HALF {
            return Err(line.contradicts("itself: the mean is above the largest"));
        }
        if over_10 > over_2 || over_2 > 100.0 || (max < 2000.0 - HALF && over_2 > 0.0) {
            return Err(line.contradicts("itself: the shares do not fit each other or the largest"));
        }
        if name == "Total" {
            self.total(line, latency)?;
            self.place = Place::Total;
            return Ok(());
        }
        let mut tests = self.tests.iter_mut();
        let test = tests.find(|test| test.name == name && test.latency.is_none());
        let test = test.ok_or_else(|| line.refuse("each test of the table of rates once"))?;
        test.latency = Some(latency);
        Ok(())
    }

    /// Refuses a table whose last row does not fit the rows above.
    fn total(&self, line: TextLine<'a>, total: Latency) -> Result<(), ImportError> {
        let rows: Option<Vec<Latency>> = self.tests.iter().map(|test| test.latency).collect();
        let rows = rows.ok_or_else(|| line.refuse("the latency of each test before it"))?;
        for (at, column) in COLUMNS.iter().skip(1).enumerate() {
            let of = rows.iter().map(|row| row[at].value);
            let all = total[at].value;
            let lowest = of.clone().fold(f64::INFINITY, f64::min);
            let highest = of.fold(0.0, f64::max);
            // Of the means and shares it is that of all operations; how many each test had is not
            // told.
            let fits = match at {
                1 => (all - highest).abs() < HALF,
                _ => all >= lowest - 2.0 * HALF && all <= highest + 2.0 * HALF,
            };
            if !fits {
                return Err(line.contradicts(format!(
                    "the rows below line {}, where \"{column}\" is {lowest} to {highest}",
                    self.columns
                )));
            }
        }
        Ok(())
    }

    /// Refuses tests of different amounts where tiotest makes them equal.
    fn check_amount(&self, test: Test<'a>) -> Result<(), ImportError> {
        // They differ where a thread failed in one of them.
        let pair = TESTS.chunks(2).find(|pair| pair.contains(&test.name));
        let pair = pair.unwrap_or_default();
        let mut others = self.tests.iter().filter(|other| pair.contains(&other.name));
        match others.find(|other| other.megas != test.megas) {
            None => Ok(()),
            Some(other) => Err(test.line.contradicts(format!(
                "line {}: {} MBs of \"{}\"",
                other.line.index + 1,
                other.megas,
                other.name
            ))),
        }
    }

    /// MB of a test; `None` if it was not run.
    fn megas(&self, name: &str) -> Option<u64> {
        let test = self.tests.iter().find(|test| test.name == name);
        test.map(|test| test.megas)
    }

    /// Returns a result for each test; `None` if the output is not at its end.
    fn imported(&self) -> Option<Vec<Imported>> {
        if !matches!(self.place, Place::Between | Place::After) {
            return None;
        }
        let results = self.tests.iter().map(|test| self.result(*test));
        Some(results.collect())
    }

    fn result(&self, test: Test<'_>) -> Imported {
        let whole_files = self.megas("Write").or(self.megas("Read"));
        let random = test.name.starts_with("Random");
        let mut notes = vec![
            "the text does not say the version, the size of a block, nor whether I/O was \
             synchronous, direct or mapped"
                .to_owned(),
        ];
        // A random test that by chance is as long as the files cannot be told from such a version.
        let miscounted = random && whole_files == Some(test.megas);
        let mut figures = Figures::default();
        let rate = (test.rate * MEGA).above_zero().filter(|_| !miscounted);
        figures.rate("throughput", "B/s", rate);
        if miscounted {
            notes.extend(figures.missing(
                "the random test has the amount of the whole files; versions from the end of 2003 \
                 to the beginning of 2023 print that whatever was moved",
            ));
        } else {
            notes.extend(figures.missing("0.000 MB/s: slower than tiotest can print"));
        }
        if random && whole_files.is_none() {
            notes.push(
                "versions from the end of 2003 to the beginning of 2023 compute the rate of a random \
                 test as if it had moved the whole files; the text does not say whether this is one"
                    .to_owned(),
            );
        }
        let mut latencies = Figures::default();
        let time = |at: usize| {
            let ms = test.latency.map(|latency| latency[at])?;
            (ms * MILLI).above_zero()
        };
        latencies.time("latency mean", "ns", time(0));
        latencies.time("latency max", "ns", time(1));
        for (at, name) in [(2, "latency above 2 s"), (3, "latency above 10 s")] {
            let share = test.latency.map(|latency| latency[at]);
            latencies.add(name, "%", Better::Lower, share);
        }
        notes.extend(latencies.missing(match test.latency {
            Some(_) => "0.000 ms: shorter than tiotest can print",
            None => "the text has no table of latencies",
        }));
        figures.append(latencies);
        let (name, threads) = (test.name.to_lowercase(), self.threads);
        let amount = format!("{} MiB", test.amount);
        Imported {
            settings: facts([("threads", threads), ("amount", amount.as_str())]),
            notes,
            ..figures.imported(
                "tiotest",
                format!("tiotest {name} {amount}, {threads} threads"),
            )
        }
    }
}

impl Test<'_> {
    /// Returns true if amount and time, as far as they were rounded, give the rate.
    fn fits(self, seconds: f64) -> bool {
        // The amount is whole, the time has one digit behind the point.
        let megas = self.megas as f64;
        let least = (megas - 0.5) / (seconds + 0.05) - HALF;
        // 0.0 s may be as short as one likes: there is no upper limit then.
        let shortest = seconds - 0.05;
        let most = (megas + 0.5) / shortest + HALF;
        let rate = self.rate.value;
        rate >= least * (1.0 - 1e-9) && (shortest <= 0.0 || rate <= most * (1.0 + 1e-9))
    }
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{from, golden, has, refused};

    const SYNC: &str = "tiotest/tiotest-0.4.2_sync.txt";

    /// The four tests in their order, of the oldest version and of the newest.
    #[test]
    fn each_test_is_a_result_with_its_latencies() {
        let [write, random_write, read, random_read] = from(SYNC).try_into().unwrap();
        assert_eq!(write.workload, "tiotest write 16 MiB, 2 threads");
        has(&write, "throughput", "B/s", 1.663 * 1_048_576.0);
        has(&write, "latency mean", "ns", 2_348_000.0);
        has(&write, "latency max", "ns", 103_968_000.0);
        has(&write, "latency above 2 s", "%", 0.0);
        assert_eq!(
            random_write.workload,
            "tiotest random write 2 MiB, 2 threads"
        );
        has(&random_write, "throughput", "B/s", 21.753 * 1_048_576.0);
        has(&read, "throughput", "B/s", 308.279 * 1_048_576.0);
        has(&random_read, "latency max", "ns", 20_000.0);
        let old = from("tiotest/tiotest-0.3.3_default.txt");
        has(&old[3], "throughput", "B/s", 4064.776 * 1_048_576.0);
        assert_eq!(from("tiotest/tiotest-0.4.2_default.txt").len(), 4);
    }

    /// Without its latencies a text is read, and says that they are missing.
    #[test]
    fn what_is_missing_is_said() {
        let results = from("tiotest/tiotest-0.4.2_no-latency.txt");
        assert_eq!(results.len(), 2);
        has(&results[1], "throughput", "B/s", 927.967 * 1_048_576.0);
        assert_eq!(results[1].values[1..], [None; 4]);
        assert!(results[1].notes[1].contains("no table of latencies"));
        let [alone] = from("tiotest/tiotest-0.4.2_random-read.txt")
            .try_into()
            .unwrap();
        has(&alone, "throughput", "B/s", 1020.975 * 1_048_576.0);
        assert!(alone.notes[1].contains("as if it had moved the whole files"));
    }

    /// Such a version divides the size of the files by the time of the operations that were asked for.
    #[test]
    fn a_random_rate_that_may_be_miscounted_is_no_figure() {
        let [write, random_write, _, random_read] = from("tiotest/tiotest-0.4.2_before-2023.txt")
            .try_into()
            .unwrap();
        has(&write, "throughput", "B/s", 420.323 * 1_048_576.0);
        for result in [random_write, random_read] {
            assert_eq!(result.values[0], None);
            assert!(result.notes[1].starts_with("throughput: "), "{result:?}");
            has(
                &result,
                "latency mean",
                "ns",
                result.values[1].unwrap().value,
            );
        }
    }

    #[test]
    fn figures_that_contradict_each_other_are_refused() {
        let text = golden(SYNC);
        for (old, new, word) in [
            ("1.663 MB/s", "7.663 MB/s", "contradicts itself: MBs"),
            ("9.6 s", "4.6 s", "contradicts itself: MBs"),
            (
                "| Read           16",
                "| Read           17",
                "contradicts line 5: 16 MBs",
            ),
            (
                "103.968 ms |  0.00000 |   0.00000 |\n| Ran",
                "203.968 ms |  0.00000 |   0.00000 |\n| Ran",
                "the rows below line 12",
            ),
            ("2.348 ms", "202.348 ms", "contradicts itself: the mean"),
            ("1.090 ms", "9.090 ms", "the rows below line 12"),
            (
                "103.968 ms |  0.00000",
                "103.968 ms |  5.00000",
                "contradicts itself: the shares",
            ),
        ] {
            let changed = text.replacen(old, new, 1);
            assert_ne!(changed, text, "{old}");
            let why = refused(&changed);
            assert!(why.what.contains(word), "{old}: {why:?}");
        }
    }

    #[test]
    fn a_run_that_is_none_is_refused() {
        let why = refused(&golden("tiotest/tiotest-0.4.2_thread-without-file.txt"));
        assert_eq!(why.line, 1);
        let text = golden(SYNC);
        for gone in ["\n`-----", "\n,-----", "\n| Total"] {
            let (cut, _) = text.rsplit_once(gone).unwrap();
            assert!(refused(cut).what.contains("ends before"), "{gone}");
        }
        for (old, new, word) in [
            (
                "Item                  | Time",
                "Item                  | Hour",
                "Item",
            ),
            ("% >10 sec", "% >20 sec", "Item"),
            ("| Write          16", "| Wrote          16", "Wrote"),
            ("1.663 MB/s", "inf MB/s", "inf"),
            ("2 concurrent", "two concurrent", "two"),
            ("| Read         |", "| Write        |", "Write"),
        ] {
            let changed = text.replacen(old, new, 1);
            assert_ne!(changed, text, "{old}");
            let why = refused(&changed);
            assert!(why.what.contains(word), "{old}: {why:?}");
        }
    }
}
