//! What one directory must do to be enough, as the study of a comparison says it.

use crate::sizes::shape::Shape;
use stackrace_base::event::{Requirement, WorkloadHead};
use stackrace_base::failure::Failure;
use stackrace_base::setting::Value;
use stackrace_run::prepare::study_file::{self, Overrides};
use stackrace_study::purpose::RequiredBound;
use stackrace_study::study::{Study, StudyTable};

/// `required: fsync latency p99 <= 10 ms (etcd's FAQ, https://…)`
pub(super) fn words(one: &RequiredBound) -> String {
    let source = one.source.as_ref().map(|it| format!(" ({it})"));
    let source = source.unwrap_or_default();
    format!("required: {} {}{source}", one.metric, one.bound)
}

/// The study with its bounds, in the order of the first mention of each metric.
pub(super) fn written(study: StudyTable, all: &[RequiredBound]) -> StudyTable {
    if all.is_empty() {
        return study;
    }
    let mut table = StudyTable::default();
    for (at, one) in all.iter().enumerate() {
        let same = |other: &&RequiredBound| other.metric == one.metric;
        if all[..at].iter().any(|before| same(&before)) {
            continue;
        }
        let bounds = all[at..].iter().filter(same).map(|it| it.bound.as_str());
        let bounds: Vec<Value> = bounds.map(Value::from).collect();
        table = match <[Value; 1]>::try_from(bounds) {
            Ok([bound]) => table.value(&one.metric, bound),
            Err(bounds) => table.value(&one.metric, Value::List(bounds)),
        };
    }
    study.table("require", table)
}

/// The shape with the workloads that what is required takes; `whole` has all of the purpose. Refused before a trial is
/// waited for.
///
/// # Errors
/// No workload has a metric, or it is to go on until something is decided, and nothing is required.
pub(super) fn needed(
    required: &[RequiredBound],
    overrides: &Overrides,
    whole: &Study,
    shape: Shape,
) -> Result<Shape, Failure> {
    if required.is_empty() {
        study_file::check_question(whole, overrides.until_decided)?;
        return Ok(shape);
    }
    let needed = workloads(required, &whole.workload_heads)?;
    Ok(shape.needing(needed))
}

/// The workloads of which something is required, in their order.
///
/// # Errors
/// None measures such a metric, the unit does not fit, or no storage can keep two of the bounds.
fn workloads(all: &[RequiredBound], heads: &[WorkloadHead]) -> Result<Vec<usize>, Failure> {
    let mut read: Vec<(Requirement, &RequiredBound)> = Vec::new();
    for one in all {
        let found = Requirement::read(&one.metric, &one.bound, heads)
            .map_err(|why| Failure::usage(format!("--require: {}", why.what)).next(why.next))?;
        for required in found {
            let other = read.iter().find(|(other, _)| other.excludes(&required));
            if let Some((_, other)) = other {
                let text = format!(
                    "--require: no storage can keep both: {} {} and {}",
                    one.metric, other.bound, one.bound
                );
                return Err(Failure::usage(text).next("leave one of them out, or let them overlap"));
            }
            read.push((required, one));
        }
    }
    let mut asked: Vec<usize> = read.iter().map(|(it, _)| it.workload).collect();
    asked.sort_unstable();
    asked.dedup();
    Ok(asked)
}
