//! Job files of fio, put into the text of the study that names them: a log, another machine and `resume` then have them.

use stackrace_base::setting::{Refusal, Span, Value};
use stackrace_load::programs::fio::{CONTENT, FIO, JOB};

use super::document::{self, Field, Item, ItemKind};
use super::error::StudyError;
use super::read::TEXT_MAX;
use super::table::{doubled, one_line};

/// Has the text of the file of a name, or says what is wrong and what to do.
pub type JobReader<'a> = dyn Fn(&str) -> Result<String, (String, String)> + 'a;

/// A study's text with the text of every job file that it names.
///
/// # Errors
/// A job file cannot be read.
pub fn with_jobs(
    name: &str,
    bytes: Vec<u8>,
    read: &JobReader<'_>,
) -> Result<Vec<u8>, Box<StudyError>> {
    // What is no study is told by the parser, with its reasons.
    let fields = match std::str::from_utf8(&bytes) {
        Ok(text) if text.len() <= TEXT_MAX => document::read(text).unwrap_or_default(),
        _ => return Ok(bytes),
    };
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let workloads = fields.iter().find(|field| field.name == "workload");
    let tables: &[Item] = match workloads.map(|field| &field.item.node) {
        Some(ItemKind::List(tables)) => tables,
        _ => &[],
    };
    let jobs = tables.iter().flat_map(Item::fields);
    let jobs: Vec<(&Field, Span, &str)> = jobs.filter_map(named).collect();
    // From the end to the beginning: an edit then moves none that is still to be made.
    for (field, at, file) in jobs.into_iter().rev() {
        let refused = |(message, help): (String, String)| {
            let refusal = Refusal::at(&at, message, help);
            Box::new(StudyError::new(
                &name.into(),
                &text.as_str().into(),
                refusal,
                Vec::new(),
            ))
        };
        if file.contains('{') {
            return Err(refused((
                format!("{file} is no name of a file: a factor cannot vary it"),
                format!("write the job itself: {CONTENT} = \"…\" may have {{placeholders}}"),
            )));
        }
        let job = read(file).map_err(refused)?;
        let job = one_line(&doubled(&job));
        let before = between(&text, field);
        text.insert_str(at.end, &format!("{before}{CONTENT} = {job}"));
    }
    Ok(text.into_bytes())
}

/// A job that names a file and does not have its text: where the name stands.
fn named(field: &Field) -> Option<(&Field, Span, &str)> {
    let settings = field.item.fields();
    let of = |name: &str| settings.iter().find(|setting| setting.name == name);
    match (field.name == FIO, of(JOB), of(CONTENT)) {
        (true, Some(job), None) => match &job.item.node {
            ItemKind::Value(Value::Text(file)) => Some((field, job.item.span.clone(), file)),
            _ => None,
        },
        _ => None,
    }
}

/// What stands between two settings: of `fio = { … }`, `fio.job = …`, or `[workload.fio]`.
fn between(text: &str, field: &Field) -> String {
    match text[field.name_span.end..].trim_start().chars().next() {
        Some('=') => ", ".to_owned(),
        Some('.') => format!("\n{FIO}."),
        // A table of its own: a further line.
        _ => "\n".to_owned(),
    }
}
