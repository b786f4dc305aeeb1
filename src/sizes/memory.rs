//! The same question gets the same sizes: those of the run that asked it last.
//!
//! A probe says something else each time. Two runs of the same comparison would then measure different
//! work, and their answers could differ for that reason alone.

use stackrace_base::failure::Failure;
use stackrace_judge::verdict::Evidence;
use stackrace_results::record::Record;
use stackrace_run::prepare::context::Context;

/// Number of the newest runs that are looked through.
const RUNS_MAX: usize = 50;
/// Names of studies that `compare` wrote.
const COMPARE: &str = "compare";

/// The workloads of an earlier comparison.
pub(crate) struct EarlierSizes {
    /// The run that had them.
    pub(crate) run: String,
    /// The text of that run's study.
    study: String,
    /// Seconds one of its rounds took; `None` if it has none that is complete.
    pub(crate) round_seconds: Option<f64>,
}

/// The sizes of a run.
///
/// # Errors
/// There is no such run, or it is no comparison of directories.
pub(crate) fn of_run(context: &Context, name: &str) -> Result<EarlierSizes, Failure> {
    let store = context.open_store()?;
    let record = store
        .read(name)
        .map_err(|error| Failure::usage(error.to_string()).next(error.next()))?;
    let round_seconds = Evidence::of(&record).round_seconds;
    let head = record.head;
    if head.study_name != COMPARE {
        let text = format!("--like {name}: {} is no run of `compare`", head.run);
        return Err(Failure::usage(text).next("repeat it with: stackrace run STUDY"));
    }
    Ok(EarlierSizes {
        run: head.run,
        study: head.study,
        round_seconds,
    })
}

/// Returns the sizes of the newest run that asked the same as `study`, whatever its sizes; `None`
/// if it was not asked before.
pub(crate) fn same_question(context: &Context, study: &str) -> Option<EarlierSizes> {
    let asked = question(study);
    let store = context.open_store().ok()?;
    let mut ids = store.ids().ok()?;
    // Ids begin with date and time, so the last one in order is the newest.
    ids.sort_unstable();
    let records = ids
        .iter()
        .rev()
        .take(RUNS_MAX)
        .filter_map(|id| store.read(id).ok());
    let same = |record: &Record| {
        let head = &record.head;
        head.study_name == COMPARE && question(&head.study) == asked
    };
    let mut records = records;
    let record = records.find(same)?;
    let round_seconds = Evidence::of(&record).round_seconds;
    Some(EarlierSizes {
        run: record.head.run,
        study: record.head.study,
        round_seconds,
    })
}

/// A study with the workloads of an earlier one.
pub(crate) fn with_those_of(study: &str, earlier: &EarlierSizes) -> String {
    let (before, _, after) = parts(study);
    let (_, workloads, _) = parts(&earlier.study);
    format!("{before}{workloads}{after}")
}

/// Splits a study into what stands before the workloads, they themselves, and what follows.
fn parts(study: &str) -> (&str, &str, &str) {
    // As `compare` writes them: workloads between the stacks and the decision.
    let first = study.find("[[workload]]").unwrap_or(study.len());
    let (before, rest) = study.split_at(first);
    let (workloads, after) = rest.split_at(rest.find("[decide]").unwrap_or(rest.len()));
    (before, workloads, after)
}

/// A study without its workloads and its title, which names them: which of them the storage left time
/// for is no part of the question.
fn question(study: &str) -> String {
    let (before, _, after) = parts(study);
    let lines = before.lines().filter(|line| !line.starts_with("title = "));
    lines.chain(after.lines()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(directory: &str, size: u32, name: &str) -> String {
        format!(
            "title = \"{directory} for {name}\"\n[factors]\ndirectory = [\"{directory}\"]\n[[workload]]\nname = \"{name}\"\nweight = 1\n\
             random = {{ size = {size}, time = \"{size} ms\" }}\n\n[decide]\nat-most = \"1 s\"\n"
        )
    }

    #[test]
    fn a_question_is_the_same_whatever_its_sizes_are() {
        let [asked, same, fewer, other] = [
            study("/mnt/1", 100, "read 4 KiB"),
            study("/mnt/1", 2048, "read 4 KiB"),
            study("/mnt/1", 2048, "write"),
            study("/mnt/2", 100, "read 4 KiB"),
        ];
        assert_eq!(question(&same), question(&asked));
        assert_eq!(question(&fewer), question(&asked));
        assert_ne!(question(&other), question(&asked));
    }

    #[test]
    fn sizes_are_taken_over_and_nothing_else() {
        let earlier = EarlierSizes {
            run: "one".to_owned(),
            round_seconds: None,
            study: study("/mnt/1", 100, "read"),
        };
        let now = with_those_of(&study("/mnt/2", 7, "read"), &earlier);
        assert!(now.contains("size = 100, time = \"100 ms\""), "{now}");
        assert!(now.contains("directory = [\"/mnt/2\"]"), "{now}");
    }
}
