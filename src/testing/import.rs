//! Printed results of other tools.

use stackrace_base::event::{Event, FORMAT, LogLine, RunStarted};
use stackrace_base::printed::Imported;
use stackrace_base::printed::{self, ImportSource};
use stackrace_import::import;
use stackrace_load::programs::{Printed, found_in};
use stackrace_load::tools::importers;
use stackrace_results::record::Record;

/// Configurations, workloads and rounds of a design that is reported on.
const REPORTED_MAX: usize = 60;

/// Reads a text as each tool's, and as the tool that is recognised.
pub fn import(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for importer in importers() {
        read(&text, Some(importer.name));
    }
    read(&text, None);
}

/// What a program printed, on one output or the other, has figures that make sense, or it is said why not; with a tool,
/// and with the one that is recognised.
pub fn printed(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let tools = importers().iter().map(|importer| Some(importer.name));
    for tool in tools.chain([None]) {
        for [out, errors] in [[&*text, ""], ["", &*text]] {
            match found_in(Printed { out, errors }, tool) {
                Ok(figures) => {
                    for figure in figures.figures.iter().filter_map(|(_, figure)| *figure) {
                        let sound = |part: f64| part.is_finite() && part >= 0.0;
                        assert!(sound(figure.value) && sound(figure.step), "{figure:?}");
                    }
                }
                Err(why) => assert!(!why.is_empty(), "{tool:?}"),
            }
        }
    }
}

/// A text is refused with its line, or gives finite figures that every report can show.
fn read(text: &str, tool: Option<&str>) {
    let results = match import::read(importers(), text, tool) {
        Ok(results) => results,
        Err(misread) => {
            let lines = text.split('\n').count();
            assert!((1..=lines).contains(&misread.line), "{misread:?}");
            assert!(!misread.what.is_empty() && !misread.next.is_empty());
            assert!(!misread.what.contains('\n'), "{misread:?}");
            return;
        }
    };
    for result in &results {
        assert_eq!(result.metrics.len(), result.values.len());
        assert!(!result.workload.is_empty() && !result.kind.is_empty());
        for figure in result.values.iter().flatten() {
            let sound = |part: f64| part.is_finite() && part >= 0.0;
            assert!(sound(figure.value) && sound(figure.step), "{result:?}");
        }
    }
    if results.len() > REPORTED_MAX {
        return;
    }
    let half = results.len() / 2;
    let source = |name: &str, results: &[Imported]| ImportSource {
        name: Some(name.to_owned()),
        file: "a.txt".to_owned(),
        stem: "a".to_owned(),
        hash: String::new(),
        text: text.to_owned(),
        results: results.to_vec(),
    };
    let sources = [source("a", &results[..half]), source("b", &results[half..])];
    super::record::reported(&record(&sources));
}

/// The record that an import of these results would leave.
fn record(sources: &[ImportSource]) -> Record {
    let design = printed::Design::of(sources, "2026-11-21T14:05:00.000Z");
    let rounds = design.decide.rounds_max;
    let head = Event::RunStarted(Box::new(RunStarted {
        format: FORMAT,
        run: "r".to_owned(),
        stackrace: "0".to_owned(),
        command: Vec::new(),
        study: design.study,
        study_name: "import".to_owned(),
        study_hash: String::new(),
        title: "t".to_owned(),
        factors: Vec::new(),
        configurations: design.configurations,
        workloads: design.workloads,
        decide: design.decide,
        seed: 0,
        place: None,
        environment: design.environment,
    }));
    let line = |event| LogLine {
        at: "2026-11-21T14:05:00.000Z".to_owned(),
        since_ns: None,
        event,
    };
    let Some(mut record) = Record::begin(line(head)) else {
        panic!("a head begins a record");
    };
    for origin in design.origins {
        record.push(line(Event::Imported(Box::new(origin))));
    }
    for trial in design.trials {
        record.push(line(Event::Trial(Box::new(trial))));
    }
    for round in 1..=rounds {
        record.push(line(Event::RoundFinished {
            round,
            trials: None,
        }));
    }
    record
}
