//! The workloads of a study: kind, name, weight and metric of each.

use std::collections::{HashMap, HashSet};

use stackrace_base::setting::{Refusal, Span, unknown_word};
use stackrace_load::workload::WorkloadKind;

use super::configuration::WorkloadEntry;
use super::design::Factor;
use super::document::{self, Field};
use super::entry::{self, StudyEntry, keep};
use super::factor::Selection;
use super::one_line;
use super::placeholder::Template;
use super::words::WORKLOAD_DOCS;

const WORKLOAD_EXAMPLE: &str = "random = { mode = \"read\", size = \"1 GiB\" }";

/// Reads `[[workload]]`; what is wrong goes to `refusals`.
pub(super) fn read(
    field: Option<&Field>,
    kinds: &[WorkloadKind],
    factors: &[Factor],
    refusals: &mut Vec<Refusal>,
) -> Vec<WorkloadEntry> {
    let mut reader = WorkloadReader {
        kinds,
        factors,
        refusals,
    };
    reader.all(field)
}

struct WorkloadReader<'a> {
    kinds: &'a [WorkloadKind],
    factors: &'a [Factor],
    refusals: &'a mut Vec<Refusal>,
}

impl WorkloadReader<'_> {
    fn all(&mut self, field: Option<&Field>) -> Vec<WorkloadEntry> {
        let Some(field) = field else {
            self.refusals.push(Refusal {
                span: None,
                message: "the study has no [[workload]]".to_owned(),
                help: format!("say what is to be measured:\n[[workload]]\n{WORKLOAD_EXAMPLE}"),
            });
            return Vec::new();
        };
        let tables = entry::tables("workload", WORKLOAD_EXAMPLE, &field.item, self.refusals);
        if tables.is_empty() {
            self.refusals.push(Refusal::at(
                &field.item.span,
                "there is no workload",
                format!("write\n[[workload]]\n{WORKLOAD_EXAMPLE}"),
            ));
        }
        let mut given = Vec::new();
        for (span, fields) in tables {
            given.extend(self.workload(span, fields));
        }
        // A weight of 0 keeps a workload out of the overall figure; with all of them there would be
        // none.
        if !given.is_empty() && given.iter().all(|(entry, _)| entry.weight == 0.0) {
            self.refusals.push(Refusal::at(
                &field.item.span,
                "every workload has weight 0: there is no overall figure",
                "give at least one a weight above 0",
            ));
        }
        self.named(given)
    }

    /// Reads one workload, and where its name is written.
    fn workload(&mut self, span: &Span, fields: &[Field]) -> Option<(WorkloadEntry, Option<Span>)> {
        let mut words = Vec::new();
        let mut kinds = Vec::new();
        for field in fields {
            if WORKLOAD_DOCS.iter().any(|doc| doc.name == field.name) {
                words.push(field);
            } else if field.name == "when" {
                self.refusals.push(Refusal::at(
                    &field.name_span,
                    "a workload has no \"when\": every configuration goes through the same workloads",
                    "use a {placeholder} in its settings, or take it out",
                ));
            } else {
                kinds.push(field);
            }
        }
        let words = document::settings("a workload", span, words, WORKLOAD_DOCS, self.refusals);
        self.refusals.extend(words.check_all());
        let name = words.optional_text("name").ok().flatten();
        if name
            .as_ref()
            .is_some_and(|name| name.trim().is_empty() || name.contains(['{', '}']))
        {
            self.refusals.push(Refusal::at(
                words.span_of("name"),
                "a workload has one name for all configurations, without braces",
                "leave the name out, or write a plain one",
            ));
        }
        let checked = one_line::check(
            name.as_deref().unwrap_or_default(),
            "the name of a workload",
            words.span_of("name"),
        );
        self.refusals.extend(checked.err());
        let name_span = name.as_ref().map(|_| words.span_of("name").clone());
        // A weight of another kind is refused above; any weight but 0 then adds no second refusal.
        let weight = words.number("weight").unwrap_or(1.0);
        let metric = words.optional_text("metric").ok().flatten();
        let entry = entry::read(
            "workload",
            WORKLOAD_EXAMPLE,
            span,
            &kinds,
            Selection::default(),
            self.factors,
            self.refusals,
        )?;
        let kind = keep(self.workload_kind(&entry, &kinds), self.refusals)?;
        Some((
            WorkloadEntry {
                entry,
                kind,
                name: name.unwrap_or_default(),
                weight,
                metric: metric.map(|metric| (metric, words.span_of("metric").clone())),
            },
            name_span,
        ))
    }

    fn workload_kind(&self, entry: &StudyEntry, kinds: &[&Field]) -> Result<String, Refusal> {
        let Template::Plain(_) = entry.kind else {
            return Err(Refusal::at(
                &entry.kind_span,
                "the kind of a workload cannot vary: every configuration goes through the same workloads",
                "vary a setting, or write one [[workload]] for each kind",
            ));
        };
        let name = kinds.first().map_or("", |field| field.name.as_str());
        if self.kinds.iter().any(|kind| kind.name == name) {
            return Ok(name.to_owned());
        }
        Err(unknown_word(
            &entry.kind_span,
            &format!("there is no workload \"{name}\""),
            name,
            self.kinds.iter().map(|kind| kind.name),
            "workloads",
        ))
    }

    /// Names those without a name after their kind, numbered where it is repeated.
    fn named(&mut self, given: Vec<(WorkloadEntry, Option<Span>)>) -> Vec<WorkloadEntry> {
        let unnamed = |kind: &str| {
            given
                .iter()
                .filter(|(entry, span)| span.is_none() && entry.kind == kind)
                .count()
        };
        let repeated: HashSet<String> = given
            .iter()
            .map(|(entry, _)| entry.kind.clone())
            .filter(|kind| unnamed(kind) > 1)
            .collect();
        let mut numbers = HashMap::new();
        let mut names = HashSet::new();
        let mut workloads = Vec::new();
        for (mut workload, span) in given {
            if span.is_none() {
                workload.name.clone_from(&workload.kind);
                // Numbers only where a kind is used twice: a single one keeps its short name.
                if repeated.contains(&workload.kind) {
                    let number = numbers.entry(workload.kind.clone()).or_insert(0);
                    *number += 1;
                    workload.name = format!("{} {number}", workload.kind);
                }
                // Sentences name the workload: "random, read latency p99" says what the figures beside it are.
                if let Some((metric, _)) = &workload.metric {
                    workload.name = format!("{}, {metric}", workload.name);
                }
            }
            if !names.insert(workload.name.clone()) {
                self.refusals.push(Refusal::at(
                    &span.unwrap_or_else(|| workload.entry.kind_span.clone()),
                    format!("two workloads are named \"{}\"", workload.name),
                    "give each a name of its own",
                ));
            }
            workloads.push(workload);
        }
        workloads
    }
}
