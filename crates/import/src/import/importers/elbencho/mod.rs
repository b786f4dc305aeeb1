//! elbencho: its CSV (`--csvfile`), its JSON (`--jsonfile`) and its table on the terminal, one result per
//! phase.
//!
//! Both are read into the columns of the CSV, found by their names; an empty cell is what the phase
//! has no figure for. Figures are those of `[last]`, when the last thread had ended.

mod console;
mod csv;
mod json;
mod phase;

use phase::Phase;
use stackrace_base::printed::text::{TextLine, lines};
use stackrace_base::printed::{ImportError, Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "elbencho",
    summary: "the CSV of elbencho (--csvfile) with its line of names, its JSON (--jsonfile), or its table",
    recognises: |text| {
        let all = lines(text);
        let any = |is: fn(TextLine<'_>) -> bool| all.iter().any(|line| is(*line));
        any(csv::is_head) || any(json::is_phase) || any(console::is_head)
    },
    read,
};

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let all = lines(text);
    let any = |is: fn(TextLine<'_>) -> bool| all.iter().any(|line| is(*line));
    if any(console::is_head) && !any(csv::is_head) && !any(json::is_phase) {
        return console::read(text, &all);
    }
    let phases = if all.iter().any(|line| json::is_phase(*line)) {
        json::read(&all)?
    } else {
        csv::read(&all)?
    };
    phases.iter().map(Phase::imported).collect()
}
