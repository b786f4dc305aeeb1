//! What was measured, as fio reports it.

use hdrhistogram::Histogram;
use stackrace_engine::{Op, OpOutcome, PhaseOutcome, Slice, StartError};

use super::job::{Engine, FioJob};
use super::report::{CLASSES, FioLatency, JobReport, Moved, Own, Samples, Varied};
use super::run::Ran;

/// Error of a job that could not begin (`EINVAL`), as fio's do.
const NOT_BEGUN: i32 = 22;

/// Error of a job that moved less than it had to (`ETIME`), as fio's do.
const TOO_SLOW: i32 = 62;

/// Duration of a sample of the rates, ns.
const SAMPLE_NS: u64 = 500_000_000;

/// Times of several jobs together.
#[derive(Default)]
struct Times {
    sum_ns: u128,
    histogram: Option<Histogram<u64>>,
}

impl Times {
    fn add(&mut self, histogram: &Histogram<u64>, sum_ns: u128) {
        self.sum_ns += sum_ns;
        match &mut self.histogram {
            // All are made with the same bounds: adding them cannot fail.
            Some(all) => drop(all.add(histogram)),
            None => self.histogram = Some(histogram.clone()),
        }
    }

    fn latency(&self, percentiles: &[f64]) -> Option<FioLatency> {
        let all = self.histogram.as_ref()?;
        // Exact to 0.1 %: the histogram keeps three digits.
        let at = |percent: &f64| (*percent, all.value_at_quantile(percent / 100.0));
        let recorded = all.iter_recorded().map(|step| {
            let from = all.lowest_equivalent(step.value_iterated_to());
            (from, step.count_since_last_iteration())
        });
        Some(FioLatency {
            count: all.len(),
            min: all.min(),
            max: all.max(),
            // Of the exact sum: the histogram's own mean is that of its buckets.
            mean: self.sum_ns as f64 / all.len().max(1) as f64,
            deviation: all.stdev(),
            percentiles: percentiles.iter().map(at).collect(),
            bins: recorded.collect(),
        })
    }
}

/// One direction of several jobs together.
#[derive(Default)]
struct Direction {
    bytes: u64,
    operations: u64,
    elapsed_ns: u64,
    short: u64,
    latency: Times,
    response: Times,
    series: Series,
}

/// Amounts moved over time, in all jobs together.
#[derive(Default)]
struct Series {
    slice_ns: u64,
    slices: Vec<Slice>,
    /// Set if it is not known of some job.
    unknown: bool,
}

impl Series {
    fn add(&mut self, outcome: &PhaseOutcome, alone: bool) {
        // The slices of a phase count all its directions together; a long phase has wider ones.
        let fits = self.slice_ns == 0 || self.slice_ns == outcome.slice_ns;
        self.unknown |= !alone || !fits;
        self.slice_ns = outcome.slice_ns;
        // The last slice ends with the phase, and is no whole one.
        let whole = (outcome.elapsed_ns / outcome.slice_ns.max(1)) as usize;
        let known = outcome.series.iter().take(whole);
        self.slices
            .resize(self.slices.len().max(whole), Slice::default());
        for (all, slice) in self.slices.iter_mut().zip(known) {
            all.ops += slice.ops;
            all.bytes += slice.bytes;
        }
    }

    fn samples(&self) -> Option<Samples> {
        // As fio takes them: two in a second, or as fine as they are.
        let together = (SAMPLE_NS / self.slice_ns.max(1)).max(1) as usize;
        let samples = self.slices.chunks_exact(together);
        if self.unknown || samples.len() == 0 {
            return None;
        }
        let seconds = self.slice_ns as f64 * together as f64 / 1e9;
        let rates = |of: fn(&Slice) -> u64| {
            let rate = |sample: &[Slice]| sample.iter().map(of).sum::<u64>() as f64 / seconds;
            varied(&samples.clone().map(rate).collect::<Vec<f64>>())
        };
        Some(Samples {
            count: samples.len() as u64,
            operations: rates(|slice| slice.ops),
            bytes: rates(|slice| slice.bytes),
        })
    }
}

/// Returns the spread of at least one rate.
fn varied(rates: &[f64]) -> Varied {
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares = rates.iter().map(|rate| (rate - mean).powi(2));
    Varied {
        min: rates.iter().copied().fold(f64::INFINITY, f64::min),
        max: rates.iter().copied().fold(0.0, f64::max),
        mean,
        // One sample alone varies from nothing.
        deviation: (squares.sum::<f64>() / (count - 1.0).max(1.0)).sqrt(),
    }
}

impl Direction {
    fn add(&mut self, op: &OpOutcome, outcome: &PhaseOutcome) {
        self.bytes += op.bytes;
        self.operations += op.count;
        let moved = outcome
            .ops
            .iter()
            .filter(|it| it.op != Op::Fsync && it.count > 0);
        let alone = moved.count() == 1;
        // Which of two directions fell short is not told apart.
        if alone {
            self.short += outcome.short;
        }
        self.series.add(outcome, alone);
        // fio's latency begins with the issue, whenever it was due.
        match &op.service {
            Some(service) => {
                self.latency.add(&service.histogram, service.sum_ns);
                self.response.add(&op.latency, op.latency_sum_ns);
            }
            None => self.latency.add(&op.latency, op.latency_sum_ns),
        }
    }

    fn moved(&self, percentiles: &[f64]) -> Option<Moved> {
        Some(Moved {
            bytes: self.bytes,
            operations: self.operations,
            elapsed_ns: self.elapsed_ns,
            short: self.short,
            samples: self.series.samples(),
            latency: self.latency.latency(percentiles)?,
            response: self.response.latency(percentiles),
        })
    }
}

/// Jobs that are reported as one.
struct Gathered<'a> {
    job: &'a FioJob,
    /// Outcomes of each job: of the measured phase, and of the one that read everything back.
    outcomes: Vec<Vec<&'a PhaseOutcome>>,
    /// True for each job that gives blocks back by what it writes.
    trims: Vec<bool>,
    jobs: u32,
    error: i32,
    elapsed_ns: u64,
    /// Jobs that ran at the same time, these among them.
    together: usize,
}

fn error_of(result: &Result<PhaseOutcome, StartError>) -> i32 {
    match result {
        // An error without a number must not become 0, which means success.
        Ok(outcome) => outcome.error.as_ref().map_or(0, |error| error.errno.max(1)),
        Err(_) => NOT_BEGUN,
    }
}

impl<'a> Gathered<'a> {
    fn add(&mut self, job: &FioJob, ran: &'a Ran) {
        self.trims.push(job.engine == Engine::Punch);
        self.jobs += 1;
        if ran.slow.is_some() && self.error == 0 {
            self.error = TOO_SLOW;
        }
        let (mut elapsed_ns, mut outcomes) = (0, Vec::new());
        for result in std::iter::once(&ran.measured).chain(&ran.back) {
            if self.error == 0 {
                self.error = error_of(result);
            }
            if let Ok(outcome) = result {
                elapsed_ns += outcome.elapsed_ns;
                outcomes.push(outcome);
            }
        }
        self.outcomes.push(outcomes);
        // Jobs that are reported as one ran at the same time: the longest counts, not the sum.
        self.elapsed_ns = self.elapsed_ns.max(elapsed_ns);
    }

    fn direction(&self, op: Op, trims: bool) -> Direction {
        let mut direction = Direction::default();
        let each = self.outcomes.iter().zip(&self.trims);
        for (outcomes, _) in each.filter(|(_, it)| **it == trims) {
            // One after the other in a job, while jobs ran at the same time.
            let mut elapsed_ns = 0;
            for outcome in outcomes {
                let done = outcome.ops.iter().find(|it| it.op == op && it.count > 0);
                if let Some(done) = done {
                    direction.add(done, outcome);
                    elapsed_ns += outcome.elapsed_ns;
                }
            }
            direction.elapsed_ns = direction.elapsed_ns.max(elapsed_ns);
        }
        direction
    }

    fn report(&self) -> JobReport {
        let job = self.job;
        let read = self.direction(Op::Read, false);
        let written = self.direction(Op::Write, false);
        let trimmed = self.direction(Op::Write, true);
        let synced = self.direction(Op::Fsync, false);
        let share = |ns: fn(&PhaseOutcome) -> u64| {
            // getrusage(2) counts the whole process: each of several jobs has seen the same, and the
            // longest has seen it all.
            let spent = self
                .outcomes
                .iter()
                .map(|all| all.iter().map(|it| ns(it)).sum::<u64>());
            spent.max().unwrap_or(0) as f64
                / self.elapsed_ns.max(1) as f64
                / f64::from(self.jobs.max(1))
        };
        let cpu = (share(|it| it.cpu_user_ns), share(|it| it.cpu_system_ns));
        let first = self.outcomes.iter().flatten().next();
        JobReport {
            name: job.name.clone(),
            group: job.group,
            jobs: self.jobs,
            error: self.error,
            description: job.description.clone(),
            options: job.options.clone(),
            queue_depth: job.queue_depth,
            classes: classes([&read, &written, &trimmed]),
            trimmed: trimmed.moved(&job.percentiles),
            read: read.moved(&job.percentiles),
            written: written.moved(&job.percentiles),
            synced: synced.latency.latency(&job.percentiles),
            // Beside jobs that are reported apart, nothing says which of them took it.
            cpu: (self.together == self.jobs as usize && first.is_some()).then_some(cpu),
            elapsed_ns: self.elapsed_ns,
            plain: job.engine != Engine::Ring,
            whole_percentiles: job.whole_percentiles,
            own: Own {
                engine: first.map_or("", |it| it.engine).to_owned(),
                engine_why: first.map_or("", |it| &it.engine_why).to_owned(),
                // Of jobs that ran at once together, and of their measured phases.
                depth_achieved: self
                    .outcomes
                    .iter()
                    .filter_map(|outcomes| outcomes.first())
                    .map(|it| it.depth_achieved)
                    .sum(),
                verified_bytes: self
                    .outcomes
                    .iter()
                    .flatten()
                    .map(|it| it.verified_bytes)
                    .sum(),
            },
        }
    }
}

/// Counts the latencies below each end of a class, and above the last.
fn classes(directions: [&Direction; 3]) -> Vec<u64> {
    let mut counts = vec![0; CLASSES.len() + 1];
    for all in directions
        .iter()
        .filter_map(|it| it.latency.histogram.as_ref())
    {
        for step in all.iter_recorded() {
            // The iterator gives the upper end of a bucket, which may lie in the class above.
            let ns = all.lowest_equivalent(step.value_iterated_to());
            counts[CLASSES.partition_point(|end| *end <= ns)] += step.count_since_last_iteration();
        }
    }
    counts
}

/// Makes one report for each clone, or for all of a group that follow each other and asked for it.
pub(super) fn reports(jobs: &[FioJob], ran: &[Ran]) -> Vec<JobReport> {
    let mut all: Vec<Gathered<'_>> = Vec::new();
    for one in ran {
        let job = &jobs[one.job];
        let together = |last: &&mut Gathered<'_>| {
            last.job.group == job.group && job.grouped && last.job.grouped
        };
        match all.last_mut().filter(together) {
            Some(last) => last.add(job, one),
            None => {
                let mut fresh = Gathered {
                    job,
                    outcomes: Vec::new(),
                    trims: Vec::new(),
                    jobs: 0,
                    error: 0,
                    elapsed_ns: 0,
                    together: ran
                        .iter()
                        .filter(|other| jobs[other.job].stage == job.stage)
                        .count(),
                };
                fresh.add(job, one);
                all.push(fresh);
            }
        }
    }
    all.iter().map(Gathered::report).collect()
}
