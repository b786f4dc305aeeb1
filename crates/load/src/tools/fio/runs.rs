//! Which of the jobs in a text are one: where it was asked to (`--status-interval`), a run prints the
//! same job again and again, and each such report has all of the one before it in it.

use super::results::JobResult;

/// The jobs without the reports of them under way; and how many of those were left out.
pub(super) fn last_reports(jobs: Vec<JobResult>) -> (Vec<JobResult>, usize) {
    let mut kept: Vec<JobResult> = Vec::new();
    let mut left_out = 0;
    for job in jobs {
        // The latest of the same name is the one that this may go on from.
        let before = kept.iter().rposition(|known| is_same(known, &job));
        match before {
            Some(before) if goes_on(&kept[before], &job) => {
                kept[before] = job;
                left_out += 1;
            }
            _ => kept.push(job),
        }
    }
    (kept, left_out)
}

fn is_same(one: &JobResult, other: &JobResult) -> bool {
    let (a, b) = (&one.reported, &other.reported);
    one.name == other.name
        && one.group == other.group
        && a.host == b.host
        && a.pid == b.pid
        // Normal output has a process for each job, and JSON has a document for each report.
        && (a.pid.is_some() || a.run != b.run)
}

/// Returns true if a report is a later one of the same job.
fn goes_on(one: &JobResult, next: &JobResult) -> bool {
    let (a, b) = (&one.reported, &next.reported);
    let moved = |job: &JobResult| -> f64 {
        let of = |seconds: f64| {
            job.directions
                .iter()
                .map(move |it| it.throughput.value * seconds)
        };
        of(job.reported.ran_s).sum()
    };
    // Rates are rounded to three digits, and amounts computed from them with them.
    if b.ran_s < a.ran_s || moved(next) < 0.98 * moved(one) {
        return false;
    }
    match (a.at_s, b.at_s) {
        // Another run begins after the first has ended, so that its whole time lies between the two
        // reports; of one run only the rest of its time does.
        (Some(first), Some(second)) => second >= first && second - first < b.ran_s - a.ran_s / 2.0,
        // A new run announces its jobs, so that this is the same process.
        _ => a.run == b.run,
    }
}
