//! Vdbench 5.04.07: the table that it prints. The figures of a run definition (RD) are those of its line
//! `avg_…`.
//!
//! A MB is 2²⁰ bytes (`1024**2` in the head), a time is in ms. The rate in bytes is the rate times
//! the bytes of an I/O, which has more digits than the MB beside it; both have to agree. The sample
//! and the columns are those of `vdbench -t` as an earlier version of `docs/vdbench.md` of
//! LyleLee/GoodCommand shows them.

use stackrace_base::printed::text::{Figures, TextLine, end, facts, lines};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "vdbench",
    summary: "what vdbench prints",
    recognises: |text| text.contains("Starting RD="),
    read,
};

/// Words a run begins with.
const START: &str = "Starting RD=";
/// Names of the columns, of which each has two lines.
const HEADS: [&str; 2] = [
    "interval i/o MB/sec bytes read resp read write read write resp queue cpu% cpu%",
    "rate 1024**2 i/o pct time resp resp max max stddev depth sys+u sys",
];
/// Figures of a row, without the two of the processor, which may be `NaN`.
const FIGURES: usize = 11;
const MIB: f64 = 1_048_576.0;

/// A run definition whose figures are still to come.
struct Open<'a> {
    line: TextLine<'a>,
    said: String,
    heads: usize,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let (mut results, mut open) = (Vec::new(), None::<Open<'_>>);
    let (mut version, mut ended) = (None, false);
    for line in lines(text) {
        let plain = line.text.trim();
        let rest = plain.get(12..).filter(|_| is_time(plain)).map(str::trim);
        if let Some((_, told)) = plain.split_once("Vdbench distribution:") {
            let word = told.split_whitespace().next();
            let word = word.ok_or_else(|| line.refuse("the version of vdbench behind it"))?;
            version = Some(word.to_owned());
            ended = false;
        } else if let Some(said) = rest.and_then(|rest| rest.strip_prefix(START)) {
            // Without its average a run was broken off, and the next one would hide that.
            if open.is_some() {
                return Err(line.refuse("the line avg_… of the run before it"));
            }
            // Kept until the average, which alone makes it a result.
            let said = said.to_owned();
            open = Some(Open {
                line,
                said,
                heads: 0,
            });
        } else if rest.is_some_and(|rest| rest.starts_with("Vdbench execution completed success")) {
            ended = true;
        } else if let Some(row) = rest.filter(|rest| is_row(rest)) {
            let run = open.as_ref().filter(|run| run.heads == HEADS.len());
            let run = run.ok_or_else(|| line.refuse("\"Starting RD=\" and a head before it"))?;
            let row = Row::new(line, row)?;
            if row.label.starts_with("avg_") {
                results.push(row.imported(run, version.as_deref())?);
                open = None;
            }
        } else if let (Some(run), true) = (&mut open, is_head(plain)) {
            let words: Vec<&str> = plain.split_whitespace().collect();
            let head = usize::from(!words.contains(&"interval"));
            if !words.join(" ").ends_with(HEADS[head]) {
                return Err(line.refuse("the columns of vdbench 5.04.07 for devices"));
            }
            run.heads = head + 1;
        } else if plain.contains("avg_") {
            return Err(line.refuse("a time, the label avg_… and the figures"));
        }
    }
    match open {
        Some(run) => Err(end(
            text,
            &format!("the line avg_… of line {}", run.line.index + 1),
        )),
        // A table that was copied without its beginning has no end to miss.
        None if version.is_some() && !ended => Err(end(text, "\"Vdbench execution completed\"")),
        None => Ok(results),
    }
}

/// Returns true if a line begins with a time: `16:24:36.053`.
fn is_time(line: &str) -> bool {
    let form = b"00:00:00.000";
    let fits = |(byte, form): (u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == *form,
    };
    line.len() > form.len() && line.bytes().zip(form).all(fits)
}

/// Returns true if the text after the time is a row of the table: messages begin with a word.
fn is_row(rest: &str) -> bool {
    let label = rest.split_whitespace().next().unwrap_or_default();
    label.starts_with("avg_") || label.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_head(line: &str) -> bool {
    line.contains(" interval ") || line.starts_with("rate ")
}

/// One row of the table.
struct Row<'a> {
    line: TextLine<'a>,
    label: String,
    figures: Vec<PrintedFigure>,
}

impl<'a> Row<'a> {
    fn new(line: TextLine<'a>, row: &str) -> Result<Self, ImportError> {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [label, figures @ .., user, system] = words.as_slice() else {
            return Err(line.refuse("a row of the table"));
        };
        if figures.len() != FIGURES {
            return Err(line.refuse("14 columns"));
        }
        for processor in [user, system] {
            // An interval without a sample of the processor has no share of it.
            if *processor != "NaN" {
                line.number(processor)?;
            }
        }
        let figures: Result<Vec<PrintedFigure>, _> =
            figures.iter().map(|word| line.number(word)).collect();
        let row = Self {
            line,
            label: (*label).to_owned(),
            figures: figures?,
        };
        let [rate, mib, bytes, ..] = row.figures[..] else {
            return Err(line.refuse("a row of the table"));
        };
        let [rate, mib, bytes] = [rate, mib, bytes].map(|figure| figure.value);
        // Each is rounded: the rate to 0.1, the MB to 0.01, the bytes to 1.
        let slack = 0.0051 + (0.051 * bytes + 0.51 * rate + 0.03) / MIB;
        if (rate * bytes / MIB - mib).abs() > slack {
            return Err(line.contradicts("itself: MB/sec is not the rate times the bytes"));
        }
        Ok(row)
    }

    fn imported(&self, run: &Open<'_>, version: Option<&str>) -> Result<Imported, ImportError> {
        let refuse = || {
            run.line
                .refuse("RD=…; I/O rate: …; elapsed=…; For loops: …")
        };
        // A text cut in this line would name another workload.
        let parts: Vec<&str> = run.said.split("; ").collect();
        let [name, rate, elapsed, loops] = parts[..] else {
            return Err(refuse());
        };
        let rate = rate.strip_prefix("I/O rate: ").ok_or_else(refuse)?;
        let elapsed = elapsed.strip_prefix("elapsed=").ok_or_else(refuse)?;
        let loops = loops.strip_prefix("For loops: ").ok_or_else(refuse)?;
        // The next line, put to this one wrongly.
        if loops.split_inclusive(' ').any(is_time) {
            return Err(refuse());
        }
        let figures = self.figures()?;
        // Rounds of a loop differ in what is varied: without it they would be one workload.
        let varied = match loops {
            "None" => String::new(),
            loops => format!(", {loops}"),
        };
        Ok(Imported {
            version: version.map(str::to_owned),
            settings: facts([
                ("I/O rate", rate),
                ("elapsed", elapsed),
                ("for loops", loops),
                ("intervals", self.label.trim_start_matches("avg_")),
            ]),
            notes: figures.missing("there was no such I/O in the intervals that count"),
            ..figures.imported(
                "vdbench",
                format!("vdbench {name}, I/O rate {rate}{varied}"),
            )
        })
    }

    fn figures(&self) -> Result<Figures, ImportError> {
        let [
            rate,
            _,
            bytes,
            reads,
            mean,
            read,
            write,
            read_max,
            write_max,
            ..,
        ] = self.figures[..]
        else {
            return Err(self.line.refuse("14 columns"));
        };
        if reads.value > 100.0 {
            return Err(self.line.contradicts("itself: more than 100 % are reads"));
        }
        let any = rate.value > 0.0;
        // 0.000 is printed where there was nothing to time: that is no latency.
        let (reading, writing) = (any && reads.value > 0.0, any && reads.value < 100.0);
        let mut figures = Figures::default();
        figures.rate("operations", "op/s", any.then_some(rate));
        figures.rate("throughput", "B/s", any.then_some(rate.times(bytes)));
        for (name, there, ms) in [
            ("latency mean", any, mean),
            ("read latency mean", reading, read),
            ("write latency mean", writing, write),
            ("read latency max", reading, read_max),
            ("write latency max", writing, write_max),
        ] {
            figures.time(name, "ns", there.then_some(ms * 1e6));
        }
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{from, golden, has, refused};

    const NAME: &str = "vdbench/vdbench-50407_t.txt";

    #[test]
    fn each_run_definition_has_the_figures_of_its_average() {
        let [format, run] = from(NAME).try_into().unwrap();
        assert!(format.values.iter().all(Option::is_none), "{format:?}");
        assert!(format.notes[0].starts_with("operations, "), "{format:?}");
        assert_eq!(run.workload, "vdbench rd1, I/O rate 100");
        assert_eq!(run.version.as_deref(), Some("vdbench50407"));
        has(&run, "operations", "op/s", 104.5);
        has(&run, "throughput", "B/s", 104.5 * 1024.0);
        has(&run, "latency mean", "ns", 12_000.0);
        has(&run, "write latency max", "ns", 120_000.0);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let text = golden(NAME);
        for (old, new, word) in [
            ("104.5     0.10", "104.5     0.20", "contradicts"),
            ("    avg_2-5", "    sum_2-5", "ends before"),
            ("0.007    0.0   4.6", "0.007   4.6", "avg_2-5"),
            ("1024**2", "1000**2", "1000**2"),
            ("Vdbench execution", "Vdbench", "ends before"),
        ] {
            let changed = text.replacen(old, new, 1);
            assert_ne!(changed, text, "{old}");
            let why = refused(&changed);
            assert!(why.what.contains(word), "{old}: {why:?}");
        }
    }
}
