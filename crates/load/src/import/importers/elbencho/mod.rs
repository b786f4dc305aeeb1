//! elbencho 3: its CSV (`--csvfile`) and its JSON (`--jsonfile`) of results, one result per phase.
//!
//! Both are read into the columns of the CSV, found by their names; an empty cell is what the phase
//! has no figure for. Figures are those of `[last]`, when the last thread had ended.

mod csv;
mod json;
mod phase;

use phase::Phase;
use stackrace_base::printed::text::lines;
use stackrace_base::printed::{ImportError, Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "elbencho",
    summary: "the CSV of elbencho (--csvfile) with its line of names, or its JSON (--jsonfile)",
    recognises: |text| {
        let all = lines(text);
        all.iter().any(|line| csv::is_head(*line)) || all.iter().any(|line| json::is_phase(*line))
    },
    read,
};

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let all = lines(text);
    let phases = if all.iter().any(|line| json::is_phase(*line)) {
        json::read(&all)?
    } else {
        csv::read(&all)?
    };
    phases.iter().map(Phase::imported).collect()
}
