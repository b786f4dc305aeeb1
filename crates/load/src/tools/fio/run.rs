//! The jobs between two walls: their files made ready, then all of them at once.

mod together;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use stackrace_engine::spec::IoTarget;
use stackrace_engine::system::{FallocateFlags, fallocate};
use stackrace_engine::verify::{self, ContentLedger};
use stackrace_engine::{
    Control, FlowGroup, FlowShare, Op, PhaseEnd, PhaseOutcome, StartError, residency,
};

use super::job::{Engine, FioJob, Reserve};
use super::plan::Planned;
pub(super) use together::JobStage;
use together::Member;

/// Outcome of one clone.
#[derive(Debug)]
pub(super) struct Ran {
    /// Position of the job in the file, from 0.
    pub(super) job: usize,
    /// Its number among all clones of all jobs, from 1.
    pub(super) number: usize,
    /// Reason why it ended, if it moved less than it had to.
    pub(super) slow: Option<String>,
    pub(super) measured: Result<PhaseOutcome, StartError>,
    /// Outcome of reading everything back.
    pub(super) back: Option<Result<PhaseOutcome, StartError>>,
}

/// A clone whose files are ready.
struct Ready<'a> {
    planned: &'a Planned,
    job: &'a FioJob,
    ledger: Option<ContentLedger>,
}

/// Gives each clone of a job with `flow` its share of the flow it names.
pub(super) fn join_flows(jobs: &[FioJob], planned: &[&Planned], controls: &[Arc<Control>]) {
    let mut groups: BTreeMap<u64, Arc<FlowGroup>> = BTreeMap::new();
    for (planned, control) in planned.iter().zip(controls) {
        let Some(flow) = jobs[planned.job].ties.flow else {
            continue;
        };
        let share = FlowShare {
            group: Arc::clone(groups.entry(flow.id).or_default()),
            parts: flow.parts,
            pause_ns: flow.pause_ns,
        };
        // A control is of one stage alone: there is no share yet.
        let _ = control.flow.set(share);
    }
}

/// Makes the files ready and runs all clones of a stage, from one start. `say` is told what is
/// laid out.
///
/// # Errors
/// Files that could not be made ready; nothing was measured.
pub(super) fn stage(
    jobs: &[FioJob],
    planned: &[&Planned],
    controls: &[Arc<Control>],
    stage: &JobStage,
    say: &dyn Fn(&str),
) -> Result<Vec<Ran>, String> {
    let mut ready = Vec::with_capacity(planned.len());
    for (planned, control) in planned.iter().zip(controls) {
        let job = &jobs[planned.job];
        let ledger = prepare(job, planned, control, say)?;
        ready.push(Ready {
            planned,
            job,
            ledger,
        });
        if control.stopped() {
            // Ctrl-C while files were laid out: there is nothing to report.
            return Ok(Vec::new());
        }
    }
    // Last, so that what was laid out for one job is in the cache of none.
    for ready in ready
        .iter()
        .filter(|ready| ready.job.care.invalidate && ready.job.engine.moves_data())
    {
        for target in ready
            .planned
            .spec
            .targets
            .iter()
            .filter(|target| target.path.exists())
        {
            // What cannot be dropped stays: fio goes on as well.
            let _ = residency::evict(&target.path);
        }
    }
    let members = ready.iter().zip(controls).map(|(ready, control)| Member {
        job: ready.job,
        control: control.as_ref(),
    });
    let members: Vec<Member<'_>> = members.collect();
    let ran = std::thread::scope(|scope| {
        let members = &members;
        let threads: Vec<_> = ready
            .iter()
            .enumerate()
            .map(|(at, ready)| {
                scope.spawn(move || {
                    stage.wait(members, at);
                    let ran = ready.run(members[at].control, stage);
                    stage.ended(members, at);
                    ran
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(ran) => ran,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    for ready in ready.iter().filter(|ready| ready.job.care.unlink) {
        for target in &ready.planned.spec.targets {
            // A clone that shares the file may have removed it.
            let _ = std::fs::remove_file(&target.path);
        }
    }
    Ok(ran)
}

/// Makes a clone's files ready: laid out where they are read, else reserved.
fn prepare(
    job: &FioJob,
    planned: &Planned,
    control: &Control,
    say: &dyn Fn(&str),
) -> Result<Option<ContentLedger>, String> {
    let spec = &planned.spec;
    let told = |error: StartError| format!("{}: {error}\n  next: {}", job.name, error.next());
    let ledger = job.verify.then(|| {
        ContentLedger::new(
            &spec.targets,
            verify::unit_bytes(spec),
            spec.content,
            spec.seed,
        )
    });
    let ledger = ledger.transpose().map_err(told)?;
    let wanting = planned.wanting();
    if planned.reads_first(job) {
        // What a job before wrote is not known to this one.
        let missing = match &ledger {
            Some(_) => spec.targets.clone(),
            None => wanting.into_iter().filter(too_short).collect(),
        };
        if missing.is_empty() {
            return Ok(ledger);
        }
        announce(job, &missing, say);
        match &ledger {
            Some(ledger) => stackrace_engine::lay_out_verified(ledger, control),
            None => stackrace_engine::lay_out(&missing, spec.content, spec.seed, control),
        }
        .map_err(told)?;
    } else if !job.engine.is_names()
        && job.engine != Engine::Null
        && job.care.reserve != Reserve::Nothing
    {
        let short: Vec<IoTarget> = wanting.into_iter().filter(too_short).collect();
        if !short.is_empty() {
            announce(job, &short, say);
        }
        for target in &short {
            reserve(job, target).map_err(|error| {
                format!(
                    "{}: cannot make {}: {error}\n  next: free space there, or write fallocate=none",
                    job.name,
                    target.path.display()
                )
            })?;
        }
    }
    Ok(ledger)
}

/// Returns true if a file is still too short: a clone before may have made it.
fn too_short(target: &IoTarget) -> bool {
    std::fs::metadata(&target.path).map_or(0, |data| data.len()) < target.bytes
}

fn announce(job: &FioJob, targets: &[IoTarget], say: &dyn Fn(&str)) {
    let mib = targets.iter().map(|target| target.bytes).sum::<u64>() >> 20;
    say(&match targets.len() {
        1 => format!("{}: Laying out IO file (1 file / {mib}MiB)\n", job.name),
        files => format!(
            "{}: Laying out IO files ({files} files / total {mib}MiB)\n",
            job.name
        ),
    });
}

/// Makes a file as long as it will be.
fn reserve(job: &FioJob, target: &IoTarget) -> std::io::Result<()> {
    let file = File::options()
        .write(true)
        .create(true)
        // Data of the user's stay: a job only adds the length that is missing.
        .truncate(false)
        .open(&target.path)?;
    if job.care.reserve != Reserve::Size {
        // Without FALLOC_FL_KEEP_SIZE, so that the file gets its length, too (fallocate(2)).
        match fallocate(&file, FallocateFlags::empty(), 0, target.bytes) {
            Ok(()) => return Ok(()),
            // Only "this file system cannot": on a full disk (ENOSPC) a sparse file would fail
            // later, in the middle of the measurement.
            Err(Errno::OPNOTSUPP) if job.care.reserve == Reserve::IfPossible => {}
            Err(error) => return Err(error.into()),
        }
    }
    file.set_len(target.bytes)
}

impl Ready<'_> {
    fn run(&self, control: &Control, stage: &JobStage) -> Ran {
        let (measured, slow) = stage.watched(self.job.ties.least, control, || {
            self.phase(&self.planned.spec, control)
        });
        let back = match &measured {
            // After an error or Ctrl-C the answer is known already, or not wanted any more.
            Ok(outcome) if self.job.read_back && outcome.ended == PhaseEnd::Complete => {
                let writes = outcome.ops.iter().find(|it| it.op == Op::Write);
                let writes = writes.map_or(0, |it| it.count);
                (writes > 0).then(|| {
                    let spec = self.planned.read_back(writes);
                    spec.targets
                        .iter()
                        .for_each(|target| lengthen(&target.path, target.bytes));
                    self.phase(&spec, control)
                })
            }
            _ => None,
        };
        Ran {
            job: self.planned.job,
            number: self.planned.number,
            slow,
            measured,
            back,
        }
    }

    fn phase(
        &self,
        spec: &stackrace_engine::spec::Spec,
        control: &Control,
    ) -> Result<PhaseOutcome, StartError> {
        match &self.ledger {
            Some(ledger) => stackrace_engine::run_verified(spec, ledger, control),
            None => stackrace_engine::run(spec, control),
        }
    }
}

/// Makes a file that was not written to its end as long as it was to be: of the rest nothing is
/// known, and nothing is checked there. If it cannot be, the read finds its end and says so.
fn lengthen(path: &Path, bytes: u64) {
    let file = File::options().write(true).open(path);
    if let Ok(file) = file
        && file.metadata().is_ok_and(|data| data.len() < bytes)
    {
        let _ = file.set_len(bytes);
    }
}
