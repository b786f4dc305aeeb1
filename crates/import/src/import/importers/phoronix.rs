//! Results of the Phoronix Test Suite (`composite.xml`): one result per test and system, and per run
//! of it where the single runs are in the file and their mean is the figure.

use serde::Deserialize;

use stackrace_base::event::Better;
use stackrace_base::printed::text::{Figures, agree, cause, cut, facts};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "phoronix",
    summary: "a result file of the Phoronix Test Suite (composite.xml)",
    recognises: |text| text.contains("<PhoronixTestSuite>") && text.contains("<Result>"),
    read,
};

#[derive(Deserialize)]
struct Suite {
    #[serde(rename = "Generated")]
    generated: Option<Generated>,
    #[serde(rename = "System", default)]
    systems: Vec<System>,
    #[serde(rename = "Result", default)]
    results: Vec<Test>,
}

#[derive(Deserialize)]
struct Generated {
    #[serde(rename = "TestClient")]
    client: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct System {
    identifier: String,
    #[serde(default)]
    hardware: String,
    #[serde(default)]
    software: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Test {
    identifier: String,
    title: String,
    #[serde(default)]
    app_version: String,
    #[serde(default)]
    arguments: String,
    #[serde(default)]
    description: String,
    scale: String,
    proportion: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "Entry", default)]
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    identifier: String,
    value: String,
    #[serde(default)]
    raw_string: String,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let suite: Suite = quick_xml::de::from_str(text).map_err(|error| {
        ImportError::at(
            broken_at(text),
            format!(
                "this is not a result file of the Phoronix Test Suite: {}",
                cause(&error)
            ),
            "give it the composite.xml of a result, whole and unchanged",
        )
    })?;
    if let Some(line) = broken_word(text) {
        let what = "a line break stands within the words of one field";
        let next = "the lines were folded; give it the composite.xml as it was written";
        return Err(ImportError::at(line, what, next));
    }
    let mut results = Vec::new();
    for test in &suite.results {
        for entry in &test.data.entries {
            results.extend(entry_results(text, &suite, test, entry)?);
        }
    }
    Ok(results)
}

/// The line, from 0, in which a field begins that goes on in the next one: whether a blank stood there is lost.
fn broken_word(text: &str) -> Option<usize> {
    let fields = text.match_indices('>').map(|(at, _)| {
        let field = &text[at + 1..];
        (at, field.split('<').next().unwrap_or_default())
    });
    let broken = |field: &str| field.trim().contains('\n');
    let (at, _) = fields.into_iter().find(|(_, field)| broken(field))?;
    Some(text[..at].matches('\n').count())
}

/// The line, from 0, at which the text stops being XML; the last one where it is well-formed.
fn broken_at(text: &str) -> usize {
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => break,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    // The reader that fills structures tells no place; read again, the text tells where it breaks.
    let place = usize::try_from(reader.error_position().max(reader.buffer_position()));
    let place = place.unwrap_or(usize::MAX).min(text.len());
    let before = &text.as_bytes()[..place];
    before.iter().filter(|byte| **byte == b'\n').count()
}

/// The line, from 0, where a test is described.
fn line_of(text: &str, test: &Test) -> usize {
    let place = text.find(&test.identifier).unwrap_or(0);
    text[..place].matches('\n').count()
}

/// Returns one result per run, or one of all runs, or one without a figure.
fn entry_results(
    text: &str,
    suite: &Suite,
    test: &Test,
    entry: &Entry,
) -> Result<Vec<Imported>, ImportError> {
    let better = match test.proportion.trim() {
        "HIB" => Better::Higher,
        "LIB" => Better::Lower,
        other => {
            return Err(ImportError::at(
                line_of(text, test),
                format!(
                    "the Proportion of {} is \"{}\"",
                    cut(&test.title),
                    cut(other)
                ),
                "HIB (higher is better) or LIB is expected; leave this result out",
            ));
        }
    };
    let (unit, factor) = unit(test.scale.trim());
    let one = |value: Option<PrintedFigure>, notes: Vec<String>| {
        imported(suite, test, entry, (unit, better), value, notes)
    };
    let value = match entry.value.trim() {
        "" => return Ok(vec![one(None, vec!["the test gave no figure".to_owned()])]),
        // One figure of a curve would be our choice, not the test's result.
        curve if curve.contains(',') => {
            let note = "a curve over time, not one figure".to_owned();
            return Ok(vec![one(None, vec![note])]);
        }
        word => PrintedFigure::read(word).ok_or_else(|| {
            let what = format!("the Value of {} is \"{}\"", cut(&test.title), cut(word));
            ImportError::at(line_of(text, test), what, "a number is expected")
        })?,
    };
    // Single runs are worth more than their mean: with them the spread between runs is known.
    let runs = entry.raw_string.trim().split(':').map(PrintedFigure::read);
    let runs: Option<Vec<PrintedFigure>> = runs.collect();
    let runs = runs.filter(|runs| runs.len() > 1);
    let Some(runs) = runs else {
        return Ok(vec![one(Some(value * factor), Vec::new())]);
    };
    let mean = runs.iter().map(|run| run.value).sum::<f64>() / runs.len() as f64;
    if !agree(mean, value.value) {
        let note = format!("the figure is not the mean of its {} runs", runs.len());
        return Ok(vec![one(Some(value * factor), vec![note])]);
    }
    Ok(runs
        .iter()
        .map(|run| one(Some(*run * factor), Vec::new()))
        .collect())
}

fn imported(
    suite: &Suite,
    test: &Test,
    entry: &Entry,
    (unit, better): (&str, Better),
    value: Option<PrintedFigure>,
    notes: Vec<String>,
) -> Imported {
    let mut figures = Figures::default();
    let name = match (unit, better) {
        ("B/s", _) => "throughput",
        ("op/s", _) => "operations",
        ("s", _) => "elapsed",
        _ => "result",
    };
    figures.add(name, unit, better, value);
    let system = suite
        .systems
        .iter()
        .find(|system| system.identifier == entry.identifier);
    let described = match test.description.trim() {
        "" => String::new(),
        description => format!(", {description}"),
    };
    Imported {
        version: suite
            .generated
            .as_ref()
            .and_then(|generated| generated.client.clone()),
        label: Some(entry.identifier.clone()),
        kind: test.identifier.clone(),
        settings: facts([
            ("test", test.identifier.as_str()),
            ("version", test.app_version.as_str()),
            ("arguments", test.arguments.as_str()),
        ]),
        environment: facts(system.into_iter().flat_map(|system| {
            [
                ("hardware", system.hardware.as_str()),
                ("software", system.software.as_str()),
            ]
        })),
        notes,
        ..figures.imported("phoronix", format!("{}{described}", test.title.trim()))
    }
}

/// Our unit for a scale, and what to multiply with. A scale that is none of ours stays as it is, and
/// so does `MB/s`: some tests mean 10⁶ bytes by it, some 2²⁰.
fn unit(scale: &str) -> (&str, f64) {
    match scale {
        "KiB/s" => ("B/s", 1024.0),
        "MiB/s" => ("B/s", 1024.0 * 1024.0),
        "GiB/s" => ("B/s", 1024.0 * 1024.0 * 1024.0),
        "IOPS" => ("op/s", 1.0),
        "Seconds" => ("s", 1.0),
        "ms" | "Milliseconds" => ("s", 1e-3),
        // A unit of the test's own stays as it is: nothing is converted that is not known.
        other => (other, 1.0),
    }
}
