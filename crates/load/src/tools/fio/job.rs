//! One job, resolved: every option read, and what contradicts another or cannot be kept refused.

mod alone;
mod files;
mod fill;
mod logs;
mod order;
mod read;
mod resolved;
mod when;

use std::rc::Rc;

use stackrace_engine::spec::NameCall;

use super::language::{Given, Section, Sections};
use super::place::{JobError, OptionPlace};
use super::report::PERCENTILES;

use read::Reader;
use resolved::MANY;
pub(super) use resolved::{
    Access, Content, Engine, ExitScope, Extent, FioJob, JobFiles, JobPace, LeastRate, LogKind,
    Reserve, StridedZones,
};

/// Reads every option of all jobs, and numbers their groups.
///
/// # Errors
/// Everything that is not understood, contradicts another option, or that no phase can keep; in the
/// order of the lines.
pub fn jobs(sections: &Sections) -> Result<Vec<FioJob>, Vec<JobError>> {
    let mut refused = sections.refused.clone();
    let mut jobs: Vec<FioJob> = Vec::new();
    for (at, section) in sections.all.iter().enumerate() {
        let before = jobs.last().map(|job| (job.group, job.stage));
        // A job that is refused is in no group, but is not the first either.
        let before = before.or((at > 0).then_some((0, 0)));
        let job = tried(section, before, &mut refused);
        refused.extend(
            job.iter()
                .filter_map(|job| unknown_wait(job, &sections.all[..at])),
        );
        jobs.extend(job);
    }
    if refused.is_empty() {
        return Ok(jobs);
    }
    refused.sort_by_key(|refusal| match &refusal.place {
        OptionPlace::Argument => (String::new(), 0),
        OptionPlace::Line { file, line } => (file.clone(), *line),
    });
    Err(refused)
}

/// A job, or everything that is wrong with it: after each refusal it is read again without that line.
fn tried(
    section: &Section,
    before: Option<(u64, u64)>,
    refused: &mut Vec<JobError>,
) -> Option<FioJob> {
    let mut rest = section.clone();
    loop {
        let refusal = match grouped(&rest, before) {
            Ok(job) => return Some(job),
            Err(refusal) => refusal,
        };
        let elsewhere = |given: &Given| given.place != refusal.place;
        let options = || rest.global.iter().chain(&rest.own);
        // Much follows from `rw`: what is said of the rest without it may be wrong.
        let unclear = options().any(|given| !elsewhere(given) && given.name == "rw");
        let in_line = matches!(refusal.place, OptionPlace::Line { .. });
        // The sizes of zones mean nothing without their kind.
        let zones = options().any(|given| !elsewhere(given) && given.name == "zonemode");
        let stays = |given: &Given| elsewhere(given) && !(zones && given.name.starts_with("zone"));
        let known = options().count();
        Rc::make_mut(&mut rest.global).retain(stays);
        rest.own.retain(stays);
        let fewer = rest.global.len() + rest.own.len() < known;
        // One line of [global] is said once, however many jobs it holds for.
        if !refused.contains(&refusal)
            && !refused
                .iter()
                .any(|it| in_line && it.place == refusal.place)
        {
            refused.push(refusal);
        }
        if unclear || !in_line || !fewer {
            return None;
        }
    }
}

/// Returns the error of a wait for another job; `None` if it can be waited for.
fn unknown_wait(job: &FioJob, before: &[Section]) -> Option<JobError> {
    let name = job.ties.waits_for.as_ref()?;
    let named = before
        .iter()
        .filter(|section| section.name == *name)
        .count();
    let what = match named {
        1 => return None,
        0 => "is no job before this one",
        _ => "is the name of more than one job",
    };
    let what = format!(
        "wait_for={} {what} (job {})",
        super::language::shown(name),
        job.name
    );
    Some(JobError::at(
        &job.place,
        what,
        "write the name of one job that stands before this one",
    ))
}

/// A job in its group; `before`: group and stage of the job before it.
fn grouped(section: &Section, before: Option<(u64, u64)>) -> Result<FioJob, JobError> {
    let reader = Reader::new(section)?;
    // fio runs all jobs between two walls together, and a wall begins a new group, too.
    let waits = reader.flag("stonewall")?.unwrap_or(false);
    let fresh = reader.flag("new_group")?.unwrap_or(false);
    let place = before.map_or((0, 0), |(group, stage)| {
        (group + u64::from(waits || fresh), stage + u64::from(waits))
    });
    job(section, &reader, place)
}

/// Engines that are for something else than files and block devices, and why they are refused.
const FOREIGN: &[(&[&str], &str)] = &[
    (&["net", "netsplice"], ": it measures networks"),
    (
        &[
            "rdma",
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
        ],
        ": it needs RDMA",
    ),
    (&["libcufile"], ": it needs a GPU"),
    (
        &["libpmem", "pmemblk", "dev-dax"],
        ": it needs persistent memory",
    ),
    (
        &["http", "nbd", "nfs", "libiscsi", "libhdfs"],
        ": it speaks to a server by itself; mount the storage, or attach it as a block device",
    ),
    (
        &[
            "rados",
            "rbd",
            "gfapi",
            "gfapi_async",
            "dfs",
            "ime_psync",
            "ime_psyncv",
            "ime_aio",
        ],
        ": it speaks to a storage cluster by itself; mount the storage, or attach it as a block device",
    ),
    (&["cpuio", "exec"], ": it does no I/O"),
    (
        &["sg", "io_uring_cmd", "libzbc", "mtd", "xnvme"],
        ": it sends commands past the kernel's block layer",
    ),
    (&["e4defrag"], ": it moves blocks of ext4 files"),
    (&["cpp_null", "external"], ": it is code that is loaded"),
];

fn engine(
    reader: &Reader<'_>,
    trims: bool,
    notes: &mut Vec<String>,
) -> Result<(Engine, String), JobError> {
    let word = reader.text("ioengine").unwrap_or("psync");
    let engine = match word {
        "psync" => Engine::Plain,
        "sync" | "pvsync" | "pvsync2" => {
            notes.push(format!(
                "ioengine={word} is done with pread and pwrite (psync)"
            ));
            return Ok((Engine::Plain, "psync".to_owned()));
        }
        "io_uring" => Engine::Ring,
        "libaio" => {
            notes.push("ioengine=libaio is done with io_uring".to_owned());
            return Ok((Engine::Ring, "io_uring".to_owned()));
        }
        "null" => Engine::Null,
        "filecreate" => Engine::Names(NameCall::Create),
        "filestat" => Engine::Names(NameCall::Stat),
        "filedelete" => Engine::Names(NameCall::Delete),
        "falloc" if trims => Engine::Punch,
        "falloc" => Engine::Reserve,
        "ftruncate" => Engine::Length,
        _ => {
            let is_listed = |(names, _): &&(&[&str], &str)| names.contains(&word);
            let why = FOREIGN.iter().find(is_listed).map_or("", |(_, why)| why);
            let what = format!(
                "ioengine={} is not supported{why}",
                super::language::shown(word)
            );
            let next = "choose among: psync, sync, pvsync, pvsync2, io_uring, libaio, null, falloc, \
                        filecreate, filedelete, filestat, ftruncate";
            return Err(reader.refuse("ioengine", what, next));
        }
    };
    Ok((engine, word.to_owned()))
}

/// Operations outstanding at once: with plain calls one, whatever is asked for.
fn queue_depth(
    reader: &Reader<'_>,
    engine: Engine,
    notes: &mut Vec<String>,
) -> Result<u32, JobError> {
    let asked = reader.count_in("iodepth", 1..=4096)?.unwrap_or(1) as u32;
    if engine != Engine::Ring && engine != Engine::Null && asked > 1 {
        notes.push(format!(
            "iodepth={asked} is 1: a plain call completes before the next"
        ));
        return Ok(1);
    }
    Ok(asked)
}

fn direct(reader: &Reader<'_>) -> Result<bool, JobError> {
    Ok(match reader.last_of(&["direct", "buffered"]) {
        // One switch under two names, the second one turned around.
        Some("direct") => reader.flag("direct")?.unwrap_or(false),
        Some(_) => !reader.flag("buffered")?.unwrap_or(true),
        None => false,
    })
}

fn percentiles(reader: &Reader<'_>) -> Result<Vec<f64>, JobError> {
    let Some(text) = reader.text("percentile_list") else {
        return Ok(PERCENTILES.to_vec());
    };
    let numbers: Option<Vec<f64>> = text
        .split([':', ','])
        .map(|part| part.trim().parse().ok())
        .collect();
    let valid = |at: &f64| (0.0..=100.0).contains(at);
    let mut numbers = numbers
        .filter(|all| all.len() <= 20 && all.iter().all(valid))
        .ok_or_else(|| {
            let what = "percentile_list is not a list of percentiles";
            reader.refuse(
                "percentile_list",
                what,
                "write up to 20 numbers: 50:99:99.9",
            )
        })?;
    // Both reports print them rising, and importers refuse others.
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    Ok(numbers)
}

/// Options that may only say what is done anyway.
fn check_fixed(reader: &Reader<'_>, notes: &mut Vec<String>) -> Result<(), JobError> {
    for (name, why) in [
        ("create_fsync", "files that are laid out are always synced"),
        ("create_serialize", "files are laid out one after the other"),
        ("scramble_buffers", "what is written never repeats"),
    ] {
        if reader.flag(name)? == Some(false) {
            return Err(reader.refuse(
                name,
                format!("{name}=0 is not supported"),
                format!("leave it out: {why}"),
            ));
        }
    }
    for name in [
        "gtod_reduce",
        "disable_lat",
        "disable_clat",
        "disable_slat",
        "disable_bw_measurement",
    ] {
        if reader.flag(name)?.unwrap_or(false) {
            notes.push(format!("{name}: what is measured is recorded all the same"));
        }
    }
    for name in [
        "iodepth_batch",
        "iodepth_batch_complete",
        "iodepth_batch_complete_max",
        "iodepth_low",
    ] {
        if reader.count_in(name, 0..=4096)?.is_some() {
            notes.push(format!(
                "{name}: an operation is submitted as soon as another completes"
            ));
        }
    }
    submission(reader, notes)?;
    if reader.flag("clat_percentiles")? == Some(false) {
        notes.push("clat_percentiles=0: percentiles are reported all the same".to_owned());
    }
    Ok(())
}

/// Options of how operations are drawn and submitted, which is done in one way here.
fn submission(reader: &Reader<'_>, notes: &mut Vec<String>) -> Result<(), JobError> {
    match reader.text("io_submit_mode") {
        None | Some("inline") => {}
        Some("offload") => notes.push(
            "io_submit_mode=offload: a rate is kept by the clock in either case, and `response` is \
             counted from when an operation was due"
                .to_owned(),
        ),
        Some(word) => {
            let what = format!("io_submit_mode={} is not understood", super::language::shown(word));
            return Err(reader.refuse("io_submit_mode", what, "choose among: inline, offload"));
        }
    }
    if let Some(word) = reader.text("random_generator") {
        let known = ["tausworthe", "tausworthe64", "lfsr"];
        if !known.contains(&word) {
            let what = format!(
                "random_generator={} is not understood",
                super::language::shown(word)
            );
            return Err(reader.refuse(
                "random_generator",
                what,
                format!("choose among: {}", known.join(", ")),
            ));
        }
        notes.push(format!(
            "random_generator={word}: the random numbers are our own"
        ));
    }
    Ok(())
}

fn job(
    section: &Section,
    reader: &Reader<'_>,
    (group, stage): (u64, u64),
) -> Result<FioJob, JobError> {
    let mut notes = Vec::new();
    check_fixed(reader, &mut notes)?;
    let mode = order::mode(reader, &mut notes)?;
    let read_share = order::share(reader, &mode)?;
    let (engine, engine_name) = engine(reader, mode.trims(), &mut notes)?;
    let queue_depth = queue_depth(reader, engine, &mut notes)?;
    let blocks = files::blocks(reader, mode.random, read_share)?;
    let layout = files::layout(reader, order::access(reader, &mode, &blocks)?, engine)?;
    let files::Blocks { sizes, align } = blocks;
    files::check_blocks(reader, layout.access, &sizes, align)?;
    let (time_ns, time_based) = when::time(reader)?;
    // Before `verify`, which depends on what is written.
    let content = fill::content(reader)?;
    let clones = reader.count_in("numjobs", 1..=MANY)?.unwrap_or(1) as u32;
    let (verify, read_back) =
        fill::verify(reader, read_share, content, &layout, clones, &mut notes)?;
    alone::check(reader, engine, read_share)?;
    let job = FioJob {
        title: section.title.clone(),
        name: section.name.clone(),
        place: section.place.clone(),
        group,
        stage,
        ties: when::ties(reader, read_share, &sizes)?,
        grouped: reader.flag("group_reporting")?.unwrap_or(false),
        description: reader.text("description").map(str::to_owned),
        options: reader.options(),
        mode: mode.word,
        read_share,
        access: layout.access,
        pace: when::pace(reader, read_share, &sizes, queue_depth)?,
        block_sizes: sizes,
        align,
        size: reader.extent("size")?,
        file_bytes: layout.file_bytes,
        io_size: reader.extent("io_size")?,
        offset: files::offset(reader, layout.count)?,
        ramp_ns: when::ramp(reader)?,
        logs: logs::logs(reader, &section.name)?,
        loops: when::loops(reader)?,
        operations: when::operations(reader)?,
        files: layout.files,
        file_count: layout.count,
        makes_files: reader.flag("allow_file_create")?.unwrap_or(true),
        directories: layout.directories,
        clones,
        queue_depth,
        engine,
        engine_name,
        direct: direct(reader)?,
        start_delay_ns: when::start_delay(reader)?,
        time_ns,
        time_based,
        durable: when::durable(reader, read_share)?,
        content,
        care: fill::care(reader)?,
        verify,
        read_back,
        seed: fill::seed(reader)?,
        percentiles: percentiles(reader)?,
        whole_percentiles: reader.flag("lat_percentiles")?.unwrap_or(false),
        notes,
    };
    Ok(job)
}
