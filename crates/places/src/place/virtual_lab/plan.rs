//! What a run in virtual time costs, before anything is started: virtual hours, real minutes, memory.

use stackrace_drives::{Claim, Load, Origin};

use stackrace_base::event::Until;
use stackrace_base::failure::Failure;
use stackrace_base::unit;
use stackrace_machine::host::LabDisk;
use stackrace_machine::host::drives::CONTENT_BYTES;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::preflight::{self, ElsewhereFacts};
use stackrace_study::plan::{Bounds, Plan, StorageSpeed, VirtualTime};
use stackrace_study::study::{Configuration, Study};

/// Memory that a guest keeps for itself when its drives are filled, bytes: as `host::drives` has it.
const KEPT_BY_GUEST: u64 = 384 << 20;

/// Virtual time that is refused, seconds: two days. On the way there a model serves more requests than
/// any question needs.
const VIRTUAL_MAX: f64 = 48.0 * 3600.0;

/// Seconds of real time from the start of a guest until it works and from its work to its end, on a
/// processor of its own.
const GUEST_SECONDS: Bounds = Bounds {
    least: 5.0,
    most: 20.0,
};

/// Seconds of real time for each second of virtual time: a guest that waits for its drives costs
/// nothing, one that never waits takes as long as its instructions take to be emulated. Measured on a
/// virtual machine: 1.4 for `zfs-ashift` and `drbd-gfs2`, whose starts take 9 s.
const WALL_SHARE: Bounds = Bounds {
    least: 0.1,
    most: 3.0,
};

/// Speed at which the drives of a study stream, B/s: the slowest one alone, and all of the fastest stack.
///
/// # Errors
/// A card contradicts itself.
fn speed(study: &Study) -> Result<StorageSpeed, Failure> {
    let (mut slowest, mut fastest) = (f64::INFINITY, 0.0_f64);
    for configuration in &study.configurations {
        let mut together = 0.0;
        let mut last: Option<(LabDisk, f64)> = None;
        for disk in configuration.stack.lab_disks() {
            // Disks of one layer are alike, and a model takes a moment.
            let known = last.filter(|(other, _)| other.model == disk.model);
            let rate = match known {
                Some((_, rate)) => rate,
                None => streamed(&disk)?,
            };
            slowest = slowest.min(rate);
            together += rate;
            last = Some((disk, rate));
        }
        fastest = fastest.max(together);
    }
    Ok(match fastest > 0.0 {
        true => StorageSpeed::Modelled(Bounds {
            least: slowest,
            most: fastest,
        }),
        false => StorageSpeed::Unknown,
    })
}

/// The rate at which the model of a disk is written from its beginning on, B/s.
fn streamed(disk: &LabDisk) -> Result<f64, Failure> {
    let Some(model) = &disk.model else {
        return Err(Failure::internal("a modelled disk without a model"));
    };
    let stream = Claim {
        load: Load::SequentialWrite,
        block: 512,
        queue_depth: 32,
        value: 0.0,
        from: Origin::Assumed,
        source: String::new(),
    };
    let rate = model.card.card().modelled(&stream, disk.bytes);
    // The unit of such a claim is MB/s.
    rate.map(|rate| rate * 1e6)
        .map_err(|error| Failure::internal(error.to_string()))
}

/// Plans what a study would do in guests in virtual time, each with so much memory.
///
/// # Errors
/// There is no place for results.
pub fn plan(
    context: &Context,
    study: &Study,
    memory_bytes: u64,
    jobs: Option<usize>,
) -> Result<Plan, Failure> {
    let known = ElsewhereFacts {
        speed: speed(study)?,
        ..ElsewhereFacts::default()
    };
    let mut plan = preflight::plan_elsewhere(context, study, known)?;
    let free = preflight::free_for_runs(context)?;
    // After the rest: the wait follows from the virtual time.
    plan.virtual_time = Some(cost(study, &plan, memory_bytes, jobs, free));
    Ok(plan)
}

/// Estimates what the run costs here; `jobs`: guests side by side, where `None` means one for each processor.
///
/// `free`: bytes that may be written where the files of the guests lie.
fn cost(
    study: &Study,
    plan: &Plan,
    memory_bytes: u64,
    jobs: Option<usize>,
    free: u64,
) -> VirtualTime {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let guests = study.configurations.len();
    let jobs = jobs.unwrap_or(cores).clamp(1, guests.max(1));
    let (round, run) = (plan.time.round_seconds, plan.time.run_seconds);
    // The same number of rounds as in the estimate of virtual time.
    let wall = |guest: f64, share: f64, round: f64, run: f64| {
        let rounds = if round > 0.0 { run / round } else { 0.0 };
        (rounds * guests as f64 * guest + run * share) / jobs as f64
    };
    let held = study.configurations.iter().map(content);
    VirtualTime {
        guests,
        jobs,
        wall_seconds: Bounds {
            least: wall(
                GUEST_SECONDS.least,
                WALL_SHARE.least,
                round.least,
                run.least,
            ),
            most: wall(GUEST_SECONDS.most, WALL_SHARE.most, round.most, run.most),
        },
        content_bytes: held.fold((0, 0), |(least, most), one| {
            (least.max(one.0), most.max(one.1))
        }),
        room_bytes: memory_bytes.saturating_sub(KEPT_BY_GUEST),
        disk_bytes: (free / jobs as u64).min(CONTENT_BYTES),
    }
}

/// Bytes that the drives of a configuration hold: with the largest trial alone, and with all of them.
fn content(configuration: &Configuration) -> (u64, u64) {
    let (mut largest, mut all) = (0_u64, 0_u64);
    for cost in configuration.costs() {
        // Copies and parity are kept like everything else.
        let written = configuration.stack.written_to_disks(cost.disk_bytes);
        largest = largest.max(written);
        all = all.saturating_add(written);
    }
    (largest, all)
}

/// Refuses what a run in virtual time could not end with, before anything is started.
///
/// # Errors
/// Its data fit neither into a guest's memory nor onto this machine's disk, or its virtual time would take days.
pub fn check(
    context: &Context,
    study: &Study,
    memory_bytes: u64,
    jobs: Option<usize>,
) -> Result<(), Failure> {
    let plan = plan(context, study, memory_bytes, jobs)?;
    preflight::check_plan(&plan)?;
    let Some(cost) = plan.virtual_time else {
        return Err(Failure::internal("a plan without virtual time"));
    };
    let (least, _) = cost.content_bytes;
    let (room, disk) = (cost.room_bytes, cost.disk_bytes);
    if least > room + disk {
        let [needed, room, disk] = [least, room, disk].map(unit::bytes);
        return Err(Failure::refused(format!(
            "the largest trial writes {needed}; a guest has room for {room} in its memory, and for {disk} in a \
             file on this machine's disk ({} side by side)",
            cost.jobs
        ))
        .next(
            "make the study's data smaller, run fewer guests side by side (--jobs 1), or keep results \
             where more is free (--store DIR)",
        ));
    }
    check_time(study, &plan)
}

/// Refuses days of virtual time.
fn check_time(study: &Study, plan: &Plan) -> Result<(), Failure> {
    let rounds = match (study.decide.until, plan.looks.first()) {
        (Until::Never, _) | (_, None) => study.decide.rounds_max,
        (_, Some(look)) => look.rounds,
    };
    // Without the study's own limit: a limit that ends the first round decides nothing.
    let least = plan.time.round_seconds.least * f64::from(rounds);
    if least <= VIRTUAL_MAX {
        return Ok(());
    }
    let one = plan.time.round_seconds.least / study.configurations.len().max(1) as f64;
    Err(Failure::refused(format!(
        "this study needs at least {} of virtual time ({} for each configuration and round, {rounds} rounds)",
        unit::long_time(least),
        unit::long_time(one),
    ))
    .next("shorten the workloads' time, write less data, or compare fewer configurations: virtual time ends at two days"))
}
