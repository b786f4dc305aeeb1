//! IO500 written in C (2020 and later), what it prints and what its `result_summary.txt` has: a line
//! for each phase, then the score. The score must follow from the phases that count.

use libm::{exp, log as ln};

use stackrace_base::printed::text::{Figures, TextLine, end, lines};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "io500",
    summary: "the results of IO500: what it prints, or result_summary.txt",
    recognises: |text| text.contains("IO500 version ") && text.contains("[RESULT]"),
    read,
};

/// Bytes in a GiB.
const GIB: f64 = 1_073_741_824.0;

/// Uncertainty that the last printed digit leaves.
const ROUNDED: f64 = 5e-7;

/// Phases of an extended run, which has a score of its own.
const EXTENDED: [&str; 3] = ["find-easy", "find-hard", "mdworkbench-bench"];

/// One phase as it is printed.
#[derive(Debug, Clone, Copy)]
struct Phase<'a> {
    name: &'a str,
    /// GiB/s or kIOPS.
    score: PrintedFigure,
    unit: &'a str,
    seconds: PrintedFigure,
    invalid: bool,
    /// Set if the score of a standard run has it.
    counts: bool,
}

/// One run: a text may have several.
#[derive(Debug, Default)]
struct Run<'a> {
    version: &'a str,
    phases: Vec<Phase<'a>>,
    scored: bool,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for line in lines(text) {
        if let Some(version) = line.after("IO500 version ") {
            if runs.last().is_some_and(|run| !run.scored) {
                return Err(line.refuse("[SCORE ] of the run before it"));
            }
            runs.push(Run {
                version,
                ..Run::default()
            });
            continue;
        }
        let begin = |word| line.text.trim_start().strip_prefix(word);
        let Some(run) = runs.last_mut() else {
            continue;
        };
        if let Some(rest) = begin("[RESULT]") {
            run.phase(line, rest, true)?;
        } else if let Some(rest) = begin("[      ]") {
            run.phase(line, rest, false)?;
        } else if let Some(rest) = begin("[SCORE ]") {
            run.score(line, rest)?;
        } else if line.text.trim_start().starts_with('[') && begin("[SCOREX]").is_none() {
            return Err(line.refuse("[RESULT], [SCORE ] or [SCOREX]"));
        }
    }
    match runs.iter().all(|run| run.scored) && !runs.is_empty() {
        true => Ok(runs.iter().flat_map(Run::imported).collect()),
        false => Err(end(text, "[SCORE ]")),
    }
}

/// The words of a line, and whether it ends with IO500's word that its rules were not followed.
fn words(rest: &str) -> (Vec<&str>, bool) {
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    let invalid = words.pop_if(|word| *word == "[INVALID]").is_some();
    (words, invalid)
}

impl<'a> Run<'a> {
    /// Reads `ior-easy-write        0.677677 GiB/s : time 1.477 seconds [INVALID]`.
    fn phase(
        &mut self,
        line: TextLine<'a>,
        rest: &'a str,
        scored: bool,
    ) -> Result<(), ImportError> {
        let refuse = || line.refuse("PHASE … GiB/s or kIOPS : time … seconds");
        let (words, invalid) = words(rest);
        let [name, score, unit, ":", "time", seconds, "seconds"] = words[..] else {
            return Err(refuse());
        };
        // Its own rule: what begins with an i is IOR's, and a bandwidth.
        let expected = match name.starts_with('i') {
            true => "GiB/s",
            false => "kIOPS",
        };
        if unit != expected || self.scored {
            return Err(refuse());
        }
        if self.phases.iter().any(|known| known.name == name) {
            return Err(line.refuse("each phase once"));
        }
        let (score, seconds) = (line.number(score)?, line.number(seconds)?);
        self.phases.push(Phase {
            name,
            score,
            unit,
            seconds,
            invalid,
            counts: scored && !EXTENDED.contains(&name),
        });
        Ok(())
    }

    /// Reads `Bandwidth 2.957185 GiB/s : IOPS 235.295365 kiops : TOTAL 26.378245 [INVALID]`.
    fn score(&mut self, line: TextLine<'a>, rest: &'a str) -> Result<(), ImportError> {
        let (words, _) = words(rest);
        let [
            "Bandwidth",
            bandwidth,
            "GiB/s",
            ":",
            "IOPS",
            rate,
            "kiops",
            ":",
            "TOTAL",
            total,
        ] = words[..]
        else {
            return Err(line.refuse("Bandwidth … GiB/s : IOPS … kiops : TOTAL …"));
        };
        if self.scored {
            return Err(line.refuse("one score for each run"));
        }
        let (bandwidth, rate) = (line.number(bandwidth)?.value, line.number(rate)?.value);
        for (printed, unit) in [(bandwidth, "GiB/s"), (rate, "kIOPS")] {
            if !self.agrees(printed, unit) {
                return Err(line.contradicts(format!("the phases in {unit}")));
            }
        }
        let between = |with: f64| ((bandwidth + with).max(0.0) * (rate + with).max(0.0)).sqrt();
        let possible = between(-ROUNDED) - ROUNDED..=between(ROUNDED) + ROUNDED;
        if !possible.contains(&line.number(total)?.value) {
            return Err(line.contradicts("itself: TOTAL is the geometric mean of both"));
        }
        self.scored = true;
        Ok(())
    }

    /// Returns true if a part of the score is the geometric mean of its phases, as far as they were
    /// rounded.
    fn agrees(&self, printed: f64, unit: &str) -> bool {
        // Its own rule, too: what was not run has 0 and is no factor.
        let counted =
            |phase: &&Phase<'_>| phase.unit == unit && phase.score.value > 0.0 && phase.counts;
        let scores: Vec<f64> = self
            .phases
            .iter()
            .filter(counted)
            .map(|p| p.score.value)
            .collect();
        if scores.is_empty() {
            return printed == 0.0;
        }
        let mean = |with: f64| {
            let logs = scores.iter().map(|score| ln((score + with).max(1e-9)));
            exp(logs.sum::<f64>() / scores.len() as f64)
        };
        (mean(-ROUNDED) - ROUNDED..=mean(ROUNDED) + ROUNDED).contains(&printed)
    }

    fn imported(&self) -> Vec<Imported> {
        // The time stamp is no measurement.
        let phases = self.phases.iter().filter(|phase| phase.name != "timestamp");
        let one = |phase: &Phase<'a>| {
            let mut figures = Figures::default();
            let score = phase.score.above_zero();
            match phase.unit {
                "GiB/s" => figures.rate("throughput", "B/s", score.map(|score| score * GIB)),
                _ => figures.rate("operations", "op/s", score.map(|score| score * 1000.0)),
            }
            figures.time("elapsed", "s", Some(phase.seconds));
            let mut notes = figures.missing("0.000000, that is not run");
            if phase.invalid {
                notes.push(
                    "IO500 calls this phase invalid: it did not follow the rules of the list"
                        .into(),
                );
            }
            Imported {
                version: Some(self.version.to_owned()),
                kind: "IO500".to_owned(),
                notes,
                ..figures.imported("io500", format!("IO500 {}", phase.name))
            }
        };
        phases.map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::tests::{from, golden, has, refused};

    const SHORT: &str = "io500/io500-isc26_v2_short.txt";

    #[test]
    fn every_phase_is_a_result_in_bytes_or_operations_a_second() {
        let results = from(SHORT);
        assert_eq!(results.len(), 13);
        assert_eq!(results[0].workload, "IO500 ior-easy-write");
        has(&results[0], "throughput", "B/s", 0.677_677 * GIB);
        has(&results[0], "elapsed", "s", 1.477);
        assert!(
            results[0].notes[0].contains("invalid"),
            "{:?}",
            results[0].notes
        );
        assert_eq!(results[4].workload, "IO500 find");
        has(&results[4], "operations", "op/s", 2_098_064.286);
        assert!(results[4].notes.is_empty());
    }

    #[test]
    fn a_run_that_was_stopped_has_no_score_and_is_refused() {
        let why = refused(&golden("io500/io500-isc26_v2_stopped.txt"));
        assert!(
            why.what.contains("[SCORE ]") || why.next.contains("[SCORE ]"),
            "{why:?}"
        );
    }

    #[test]
    fn a_score_that_does_not_follow_from_the_phases_is_refused() {
        let text = golden(SHORT);
        for (from, to) in [
            ("0.677677", "0.677977"),
            ("63.740340", "63.790340"),
            ("TOTAL 26.378245", "TOTAL 26.378345"),
        ] {
            let why = refused(&text.replacen(from, to, 1));
            assert_eq!(why.line, 16, "{why:?}");
        }
    }
}
