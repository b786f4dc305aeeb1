//! Which of the jobs in a text are one: where it was asked to (`--status-interval`), a run prints the
//! same job again and again, and each such report has all of the one before it in it.

use super::results::{Direction, JobResult};

/// The jobs of a text without what says of them what another report says as well.
#[derive(Default)]
pub(super) struct Last {
    pub(super) jobs: Vec<JobResult>,
    /// Reports under way, which the last one has in it.
    pub(super) left_out: usize,
    /// Copies of a report that is there.
    pub(super) copies: usize,
}

/// The last report of each job.
pub(super) fn last_reports(jobs: Vec<JobResult>) -> Last {
    let mut last = Last::default();
    for job in jobs {
        // The latest of the same name is the one that this may go on from.
        let before = last.jobs.iter().rposition(|known| is_same(known, &job));
        match before.map(|at| &mut last.jobs[at]) {
            Some(known) if is_copy(known, &job) => last.copies += 1,
            Some(known) if goes_on(known, &job) => {
                *known = job;
                last.left_out += 1;
            }
            _ => last.jobs.push(job),
        }
    }
    last
}

/// Returns true if two reports are one that was pasted twice: of another run some figure is another one, and its
/// process or its time too.
fn is_copy(one: &JobResult, other: &JobResult) -> bool {
    let figures = |job: &JobResult| -> Vec<f64> {
        let of = |it: &Direction| [it.throughput.value, it.operations.value];
        job.directions.iter().flat_map(of).collect()
    };
    let (a, b) = (&one.reported, &other.reported);
    a.run != b.run && a.at_s == b.at_s && a.ran_s == b.ran_s && figures(one) == figures(other)
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
