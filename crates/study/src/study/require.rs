//! `[require]`: what is enough, as bounds on metrics of the workloads.

use stackrace_base::event::{Decide, Requirement, WorkloadHead};
use stackrace_base::setting::{Refusal, Value};

use super::design::Configuration;
use super::document::Field;
use super::entry::keep;
use super::quantile;

/// A line as it is meant, for every refusal.
const EXAMPLE: &str = "[require] \"fsync latency p99\" = \"<= 10 ms\"";

/// Reads the table, if there is one: each word is a metric, alone or after the name of its workload, and each value one
/// bound or a list of them.
pub(super) fn read(
    (table, heads, configurations): (Option<&Field>, &[WorkloadHead], &[Configuration]),
    decide: &mut Option<Decide>,
    refusals: &mut Vec<Refusal>,
) {
    // Of workloads that are wrong there is no telling what they measure.
    let (Some(table), Some(decide), false) = (table, decide, heads.is_empty()) else {
        return;
    };
    let item = &table.item;
    let Some(fields) = keep(item.table("[require]", EXAMPLE), refusals) else {
        return;
    };
    if fields.is_empty() {
        let help = format!("write {EXAMPLE}, or leave it out");
        refusals.push(Refusal::at(&item.span, "[require] requires nothing", help));
    }
    let all = &mut decide.required;
    for field in fields {
        for required in keep(field_bounds(field, heads), refusals).unwrap_or_default() {
            if all.iter().any(|other| other.excludes(&required)) {
                let name = &field.name;
                refusals.push(Refusal::at(
                    &field.item.span,
                    format!("no storage can keep both bounds of \"{name}\""),
                    "leave one of them out, or let them overlap",
                ));
            }
            let head = &heads[required.workload];
            let judged = (head.name.as_str(), head.metrics.as_slice(), required.metric);
            let workloads = configurations.iter();
            let workloads = workloads.filter_map(|it| it.workloads.get(required.workload));
            refusals.extend(quantile::too_few(&field.item.span, judged, workloads));
            all.push(required);
        }
    }
}

/// The requirements of one line.
fn field_bounds(field: &Field, heads: &[WorkloadHead]) -> Result<Vec<Requirement>, Refusal> {
    let span = &field.item.span;
    let bounds = match field.item.value()? {
        Value::List(bounds) => bounds,
        one => vec![one],
    };
    if bounds.is_empty() {
        let message = format!("\"{}\" has no bound", field.name);
        return Err(Refusal::at(span, message, format!("write {EXAMPLE}")));
    }
    let mut all = Vec::new();
    for bound in &bounds {
        let Value::Text(bound) = bound else {
            let message = format!("a bound is a text, not {}", bound.what());
            return Err(Refusal::at(span, message, format!("write {EXAMPLE}")));
        };
        let found = Requirement::read(&field.name, bound, heads);
        all.extend(found.map_err(|why| Refusal::at(span, why.what, why.next))?);
    }
    Ok(all)
}
