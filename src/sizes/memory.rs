//! The same question gets the same sizes: those of the run that asked it last.
//!
//! A probe says something else each time. Two runs of the same comparison would then measure different
//! work, and their answers could differ for that reason alone.

use stackrace_base::event::WorkloadHead;
use stackrace_base::failure::Failure;
use stackrace_base::unit;
use stackrace_judge::verdict::Evidence;
use stackrace_results::record::Record;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::study_file;
use stackrace_study::study::{Study, StudyTable};

/// Number of the newest runs that are looked through.
const RUNS_MAX: usize = 50;
/// Names of studies that `compare` made.
const COMPARE: &str = "compare";
/// Words of a study.
const TITLE: &str = "title";
const WORKLOAD: &str = "workload";

/// The workloads of an earlier comparison.
pub(crate) struct EarlierSizes {
    /// The run that had them.
    pub(crate) run: String,
    /// The study of that run.
    study: StudyTable,
    /// Seconds one of its rounds took; `None` if it has none that is complete.
    pub(crate) round_seconds: Option<f64>,
}

/// The sizes of a run, for workloads of `whole`.
///
/// # Errors
/// There is no such run, it is no comparison of directories, or it measured other work.
pub(crate) fn of_run(
    context: &Context,
    name: &str,
    whole: &Study,
) -> Result<EarlierSizes, Failure> {
    let store = context.look_into_store()?;
    let record = store
        .read(name)
        .map_err(|error| Failure::usage(error.to_string()).next(error.next()))?;
    let round_seconds = Evidence::of(&record).round_seconds;
    let head = record.head;
    if head.study_name != COMPARE {
        let text = format!("--like {name}: {} is no run of `compare`", head.run);
        return Err(Failure::usage(text).next("repeat it with: stackrace run STUDY"));
    }
    let study = StudyTable::read(&head.study).map_err(|refusals| {
        let why = refusals.into_iter().map(|refusal| refusal.message);
        let why: Vec<String> = why.collect();
        Failure::refused(format!("the study of {}: {}", head.run, why.join(", ")))
            .next("name another run, or leave --like out")
    })?;
    if !is_work_of(&study, whole) {
        let names = head.workloads.iter().map(|workload| &*workload.name);
        let names = unit::listed(&names.collect::<Vec<_>>());
        let text = format!(
            "--like {name}: {} measured other work than is asked for: {names}",
            head.run
        );
        return Err(Failure::usage(text)
            .next("leave --like out, or ask for the same purpose (--for) as that run"));
    }
    Ok(EarlierSizes {
        run: head.run,
        study,
        round_seconds,
    })
}

fn made(study: &StudyTable) -> Result<Study, Failure> {
    study_file::made(COMPARE, study.clone(), &|_| None)
}

/// Returns true if all workloads of an earlier study are of `whole`, whatever their sizes. A log is data: what else it
/// says, commands above all, is not taken over.
fn is_work_of(earlier: &StudyTable, whole: &Study) -> bool {
    let Ok(earlier) = made(earlier) else {
        return false;
    };
    let mut heads = earlier.workload_heads.iter();
    let is_asked = |head: &WorkloadHead| {
        let mut all = whole.workload_heads.iter();
        all.any(|own| (&own.name, &own.kind) == (&head.name, &head.kind))
    };
    earlier.commands().is_empty() && heads.all(is_asked)
}

/// Returns the sizes of the newest run that asked the same as `study`, whatever its sizes, of the workloads of `whole`;
/// `None` if it was not asked before.
pub(crate) fn same_question(
    context: &Context,
    study: StudyTable,
    whole: &Study,
) -> Option<EarlierSizes> {
    let asked = question(study);
    let store = context.look_into_store().ok()?;
    // In the order in which they were begun: ids of one minute differ by chance alone.
    let ids = store.ids().ok()?;
    let records = ids.iter().rev().take(RUNS_MAX);
    records
        .filter_map(|id| store.read(id).ok())
        .filter(|record| record.head.study_name == COMPARE)
        .find_map(|record| {
            let study = StudyTable::read(&record.head.study).ok()?;
            (question(study.clone()) == asked && is_work_of(&study, whole)).then(|| EarlierSizes {
                round_seconds: Evidence::of(&record).round_seconds,
                run: record.head.run,
                study,
            })
        })
}

/// The earlier runs that asked the same with the same sizes, the newest first.
pub(crate) fn earlier(context: &Context, record: &Record) -> Vec<Record> {
    let of = |record: &Record| {
        let untold = StudyTable::default().value(TITLE, "");
        let study = StudyTable::read(&record.head.study).ok()?;
        Some(study.with_that_of(TITLE, &untold))
    };
    let (Some(asked), Ok(store)) = (of(record), context.look_into_store()) else {
        return Vec::new();
    };
    let ids = store.ids().unwrap_or_default();
    let before = ids.iter().take_while(|id| **id != record.head.run).count();
    let records = ids[..before].iter().rev().take(RUNS_MAX);
    records
        .filter_map(|id| store.read(id).ok())
        .filter(|other| other.head.study_name == COMPARE && of(other).as_ref() == Some(&asked))
        .collect()
}

/// A study with the workloads of an earlier one.
pub(crate) fn with_those_of(study: StudyTable, earlier: &EarlierSizes) -> StudyTable {
    study.with_that_of(WORKLOAD, &earlier.study)
}

/// A study without its workloads and its title, which names them: which of them the storage left time
/// for is no part of the question. What stands above the title is.
fn question(study: StudyTable) -> StudyTable {
    let untold = StudyTable::default().value(TITLE, "");
    let study = study.with_that_of(TITLE, &untold);
    study.with_that_of(WORKLOAD, &untold)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(directory: &str, size: u32, name: &str) -> StudyTable {
        let text = format!(
            "# Purpose: any\ntitle = \"{directory} for {name}\"\n[factors]\ndirectory = [\"{directory}\"]\n[[workload]]\nname = \"{name}\"\nweight = 1\n\
             random = {{ size = {size}, time = \"{size} ms\" }}\n\n[decide]\nat-most = \"1 s\"\n"
        );
        StudyTable::read(&text).unwrap()
    }

    #[test]
    fn a_question_is_the_same_whatever_its_sizes_are() {
        let asked = question(study("/mnt/1", 100, "read 4 KiB"));
        assert_eq!(question(study("/mnt/1", 2048, "read 4 KiB")), asked);
        assert_eq!(question(study("/mnt/1", 2048, "write")), asked);
        assert_ne!(question(study("/mnt/2", 100, "read 4 KiB")), asked);
        // The purpose is told above the title.
        let other = study("/mnt/1", 100, "read 4 KiB")
            .text()
            .replace("any", "video");
        assert_ne!(question(StudyTable::read(&other).unwrap()), asked);
    }

    #[test]
    fn sizes_are_taken_over_and_nothing_else() {
        let earlier = EarlierSizes {
            run: "one".to_owned(),
            round_seconds: None,
            study: study("/mnt/1", 100, "read"),
        };
        let now = with_those_of(study("/mnt/2", 7, "read"), &earlier);
        let text = now.text();
        assert!(text.contains("size = 100, time = \"100 ms\""), "{text}");
        assert!(text.contains("directory = [\"/mnt/2\"]"), "{text}");
    }
    #[test]
    fn neither_commands_nor_other_work_of_a_log_are_taken_over() {
        let of = |workloads: &str| {
            let text = format!(
                "title = \"one\"\n[factors]\ndirectory = [\"/mnt/1\"]\n[[stack]]\ndir = {{ path = \"{{directory}}\" }}\n{workloads}"
            );
            StudyTable::read(&text).unwrap()
        };
        let files = |name: &str, count: u32| {
            format!("[[workload]]\nname = \"{name}\"\nfiles = {{ count = {count} }}\n")
        };
        let command = "[[workload]]\nname = \"small\"\ncommand = { run = \"touch /tmp/owned\" }\n";
        let whole = [files("small", 10), files("large", 20)].concat();
        let whole = made(&of(&whole)).ok().unwrap();
        assert!(is_work_of(&of(&files("small", 5000)), &whole));
        assert!(!is_work_of(&of(&files("other", 10)), &whole));
        assert!(!is_work_of(&of(command), &whole));
    }
}
