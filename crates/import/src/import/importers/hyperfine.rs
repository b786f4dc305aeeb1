//! hyperfine's JSON (`--export-json`): every single time is in it, and each is a round.
//!
//! Different commands are different work. The mean, median and extremes beside the times must be theirs. What hyperfine prints on the
//! terminal has means alone, of which no interval follows; that is refused with what to do.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use stackrace_base::event::Fact;
use stackrace_base::printed::text::{self, Figures, cut, end};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "hyperfine",
    summary: "the JSON of hyperfine (--export-json)",
    recognises: |text| is_json(text) || elsewhere(text).is_some(),
    read,
};

/// Words that only the terminal shows.
const CONSOLE: &str = "Time (mean ± σ):";
/// First line of `--export-csv`.
const CSV: &str = "command,mean,stddev,median,user,system,min,max";
/// Beginnings of the first line of `--export-markdown`, `--export-orgmode` and `--export-asciidoc`.
const TABLES: [&str; 3] = [
    "| Command | Mean [",
    "| Command  |  Mean [",
    "| Command |Mean [",
];
/// A mean has all digits of a float; this is what adding in another order leaves open.
const SUMMED: f64 = 1e-6;

#[derive(Deserialize)]
struct Document {
    results: Vec<Command>,
}

/// One command that was timed. Seconds.
#[derive(Deserialize)]
struct Command {
    command: String,
    mean: f64,
    median: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    times: Vec<f64>,
    /// Exit code for each time; `None` if a signal ended it.
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
    /// Values of `--parameter-scan` and `--parameter-list`.
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
}

fn is_json(text: &str) -> bool {
    let has = |key: &str| text.contains(key);
    has("\"results\"") && has("\"command\"") && has("\"mean\"") && has("\"stddev\"")
}

/// The line (from 0) of an output with means alone, and its name.
fn elsewhere(text: &str) -> Option<(usize, &'static str)> {
    let name = |line: &str| {
        let begins = |start: &&str| line.trim_start().starts_with(*start);
        match line {
            _ if line.contains(CONSOLE) => Some("what hyperfine shows on the terminal"),
            _ if begins(&CSV) => Some("hyperfine's CSV"),
            _ if TABLES.iter().any(begins) => Some("a table of hyperfine"),
            _ => None,
        }
    };
    let mut lines = text.lines().enumerate();
    lines.find_map(|(at, line)| Some((at, name(line)?)))
}

fn read(whole: &str) -> Result<Vec<Imported>, ImportError> {
    if !is_json(whole) {
        let (line, what) = elsewhere(whole).unwrap_or((0, "an output of hyperfine"));
        return Err(ImportError::at(
            line,
            format!("this is {what}, which has no single times"),
            "run it with --export-json FILE, and import FILE",
        ));
    }
    let begin = whole.find('{').unwrap_or(0);
    let before = whole[..begin].matches('\n').count();
    let mut stream = serde_json::Deserializer::from_str(&whole[begin..]).into_iter::<Document>();
    let document = match stream.next() {
        Some(Ok(document)) => document,
        Some(Err(error)) => {
            return Err(ImportError::at(
                before + error.line().saturating_sub(1),
                format!("this is not the JSON of hyperfine: {}", text::cause(&error)),
                "give it what hyperfine --export-json wrote, whole and unchanged",
            ));
        }
        None => return Err(end(whole, "the end of the JSON")),
    };
    let mut results = Vec::new();
    for command in &document.results {
        results.extend(command.imported(before)?);
    }
    Ok(results)
}

impl Command {
    /// A result for each time, in order.
    fn imported(&self, line: usize) -> Result<Vec<Imported>, ImportError> {
        let refuse = |what: &str| {
            ImportError::at(
                line,
                format!("{what}: \"{}\"", cut(&self.command)),
                "give it what hyperfine --export-json wrote, unchanged",
            )
        };
        if self.times.is_empty() {
            return Err(refuse("there are no single times of this command"));
        }
        if self
            .times
            .iter()
            .any(|time| !(time.is_finite() && *time > 0.0))
        {
            return Err(refuse("a time that is none, of this command"));
        }
        let count = self.times.len() as f64;
        let mean = self.times.iter().sum::<f64>() / count;
        let mut sorted = self.times.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        let stated = [
            ("mean", Some(self.mean), mean),
            ("median", self.median, middle),
            ("min", self.min, sorted[0]),
            ("max", self.max, sorted[sorted.len() - 1]),
        ];
        for (name, stated, found) in stated {
            if stated.is_some_and(|stated| (stated - found).abs() > SUMMED * found) {
                return Err(refuse(&format!(
                    "the times contradict the {name} of this command"
                )));
            }
        }
        let one = |(at, time): (usize, &f64)| {
            let mut figures = Figures::default();
            figures.time("elapsed", "s", Some(PrintedFigure::in_full(*time)));
            Imported {
                settings: self.settings(),
                notes: self.ended(at).into_iter().collect(),
                against: self.ended(at).into_iter().collect(),
                ..figures.imported("hyperfine", format!("hyperfine: {}", self.command))
            }
        };
        Ok(self.times.iter().enumerate().map(one).collect())
    }

    fn settings(&self) -> Vec<Fact> {
        let parameters = self.parameters.iter();
        let plain = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        parameters
            .map(|(name, value)| Fact::new(name, plain(value)))
            .collect()
    }

    /// Describes how a run ended; `None` if it ended well.
    fn ended(&self, at: usize) -> Option<String> {
        match self.exit_codes.get(at)? {
            Some(0) => None,
            // A command that failed may have done less work than one that did not.
            Some(code) => Some(format!("the command ended with exit status {code}")),
            None => Some("the command was ended by a signal".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{from, golden, has, refused};

    #[test]
    fn every_single_time_is_a_result() {
        let results = from("hyperfine/hyperfine_two.json");
        assert_eq!(results.len(), 8);
        assert_eq!(results[0].workload, "hyperfine: sleep 0.1");
        assert_eq!(results[3].workload, results[0].workload);
        assert_eq!(results[4].workload, "hyperfine: sleep 0.15");
        has(&results[2], "elapsed", "s", 0.108904284475);
        has(&results[7], "elapsed", "s", 0.155996395475);
    }

    #[test]
    fn a_command_that_failed_is_noted() {
        let results = from("hyperfine/hyperfine_exit-codes.json");
        let notes: Vec<usize> = results.iter().map(|result| result.notes.len()).collect();
        assert_eq!(notes, [0, 1, 1]);
        assert!(results[1].notes[0].contains("exit status 2"));
        assert!(results[2].notes[0].contains("signal"));
        assert_eq!(results[0].settings[0].value, "4k");
    }

    #[test]
    fn what_has_no_single_times_is_refused_with_what_to_do() {
        for (text, what) in [
            (
                "command,mean,stddev,median,user,system,min,max\nls,0.1,0.1,0.1,0.1,0.1,0.1,0.1\n",
                "hyperfine's CSV",
            ),
            (
                "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n|:---|---:|\n",
                "a table of hyperfine",
            ),
        ] {
            let misread = refused(text);
            assert!(misread.what.contains(what), "{misread}");
            assert!(misread.next.contains("--export-json"), "{misread}");
        }
        let console = "Benchmark 1: sleep 0.1\n  Time (mean ± σ):     104.8 ms ±   2.9 ms    [User: 1.9 ms, System: 2.8 ms]\n  Range (min … max):   102.5 ms … 108.9 ms    4 runs\n";
        let misread = refused(console);
        assert_eq!(misread.line, 2);
        assert!(misread.next.contains("--export-json"), "{misread}");
        let text = golden("hyperfine/hyperfine_two.json");
        for (right, wrong) in [
            (
                "0.108904284475,\n        0.104",
                "0.208904284475,\n        0.104",
            ),
            ("0.103097240475", "-0.103097240475"),
            ("0.103097240475", "NaN"),
            ("\"median\": 0.", "\"median\": 1."),
            ("\"min\": 0.", "\"min\": 0.0"),
            ("\"max\": 0.", "\"max\": 7."),
            ("\"times\"", "\"tines\""),
        ] {
            assert!(text.contains(right), "{right}");
            refused(&text.replacen(right, wrong, 1));
        }
    }
}
