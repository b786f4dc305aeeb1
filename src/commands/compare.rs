//! Existing directories compared with each other, without a study file.
//!
//! A comparison is an ordinary study that the program writes: `--print-study` shows it. Before
//! anything is measured, the directories are looked at for reasons why the answer would mislead.

use stackrace_base::unit::{InWords, ShownPath};
use std::path::PathBuf;
use std::sync::Arc;

use crate::commands::required;
use crate::commands::room::{self, FREE_SHARE, RoomAt};
use crate::commands::warned::{cache_warning, first_impression};
use crate::commands::watched::{self, WatchedDirs};
use crate::sizes::memory;
use crate::sizes::room::TrialRoom;
use crate::sizes::shape::{MEASURING_SHARE, Shape, round_seconds, with_time};
use crate::sizes::sizing::{SizedPart, Sizing, of_purpose};
use stackrace_base::event::{LeftBehind, Price, StorageIdentity};
use stackrace_base::failure::Failure;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::setting::Settings;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_machine::host::{Host, MountInfo, local::LocalHost};
use stackrace_places::place::clients::{self, AskedClients};
use stackrace_places::place::taken::TakenDirs;
use stackrace_run::execute::{self, FinishedRun};
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::first_round;
use stackrace_run::prepare::observer::{Caught, Observer, Preparation};
use stackrace_run::prepare::study_file::{self, Overrides};
use stackrace_study::purpose::{Purpose, RequiredBound};
use stackrace_study::study::{Study, StudyTable};

/// How long a comparison takes unless it is said, ns.
pub(crate) const TIME_NS: u64 = 120_000_000_000;
/// Rounds it does at most, if they turn out shorter than expected.
const ROUNDS_MAX: u32 = 200;
/// Least data of a workload on each client, unless one machine alone would have less, bytes.
const CLIENT_LEAST: u64 = 4 << 20;
/// Least files of a workload on each client, unless one machine alone would have fewer.
const CLIENT_FILES_LEAST: u64 = 100;

/// One directory of the comparison.
pub(crate) struct ComparedPath {
    /// Absolute path, without links.
    pub(crate) path: PathBuf,
    /// Its path as text.
    pub(crate) text: String,
    mount: MountInfo,
    /// Storage it lies on: the same until the run ends, or nothing counts.
    lies_on: StorageIdentity,
    free: u64,
}

/// Request for a comparison.
pub(crate) struct CompareRequest {
    /// Directories on the storage to compare.
    pub(crate) directories: Vec<PathBuf>,
    /// Purpose of the storage.
    pub(crate) purpose: &'static Purpose,
    /// Time that it may take, ns.
    pub(crate) time_ns: u64,
    /// True if it is a first impression, and said to be one.
    pub(crate) quick: bool,
    /// Bytes per workload; `None` for what fits the time.
    pub(crate) size: Option<u64>,
    /// A run whose sizes are to be repeated.
    pub(crate) like: Option<String>,
    /// Cost of each directory's storage, in their order; empty if none was told.
    pub(crate) costs: Vec<Price>,
    /// True to go on where the comparison would mislead.
    pub(crate) anyway: bool,
    /// True to keep caches warm.
    pub(crate) warm: bool,
    /// Clients that measure at the same time; `None` if this machine measures.
    pub(crate) clients: Option<AskedClients>,
    /// Bounds that are required; empty where nothing is.
    pub(crate) required: Vec<RequiredBound>,
    /// Settings that the command line gives instead of the study.
    pub(crate) overrides: Overrides,
}

/// A comparison that can be run.
pub(crate) struct PreparedComparison {
    /// Its study as it was made.
    table: StudyTable,
    /// The same, checked.
    study: Study,
    /// The run whose sizes it has; `None` if they are new.
    like: Option<String>,
    /// Seconds of a round, as far as it is known.
    round_seconds: f64,
    /// Work that there is no time for, in one sentence.
    short: Option<String>,
    /// Time spent on preparing, ns: part of the time that is allowed.
    spent_ns: u64,
    /// Warnings for the reader of its result.
    warnings: Vec<String>,
    sides: Vec<ComparedPath>,
    /// Ctrl-C, caught since the first trial that finds a size.
    interrupt: Arc<Interrupt>,
    /// Its directories, so that no other run measures in them.
    taken: TakenDirs,
}

impl PreparedComparison {
    /// Returns what `compare --print-study` prints: the study with the limits, which the run itself keeps
    /// apart.
    pub(crate) fn printed(self, overrides: &Overrides) -> String {
        overrides.written_with_limits(self.table).text()
    }
}

/// Looks at the directories, finds out how fast they are, and makes the study.
///
/// # Errors
/// The directories cannot be compared, or the comparison would mislead.
pub(crate) fn prepare(
    context: &Context,
    request: &CompareRequest,
    observer: &dyn Observer,
) -> Result<PreparedComparison, Failure> {
    room::check_size(request.size, request.purpose)?;
    let host = LocalHost::new(Arc::new(|_| ()));
    let (sides, warnings, taken) = comparable(&host, request)?;
    reach_clients(request, &sides, observer)?;
    // Before the first file is laid out: from here on, Ctrl-C has something to remove.
    let interrupt = observer.catch_interrupt(LeftBehind::FILES)?;
    let began = SystemClock.now_ns();
    let shaped = match request.overrides.ends_by_time() {
        true => Shape::of,
        false => Shape::whole,
    };
    let mut shape = shaped(request.purpose, request.time_ns, sides.len())
        .for_rounds(request.overrides.rounds_max);
    let asked = |sized: &[SizedPart]| request.overrides.written(study(request, &sides, sized));
    let made = |sized: &[SizedPart]| required::written(asked(sized), &request.required);
    let whole = Shape::whole(request.purpose, request.time_ns, sides.len()).unsized_parts();
    let whole = typed::made(asked(&whole))?;
    shape = required::needed(&request.required, &request.overrides, &whole, shape)?;
    // What is required is held against sizes that are found only when they are.
    let with_size = request.size.is_some();
    check_room(request, &shape, &sides, &|it| {
        if with_size { made(it) } else { asked(it) }
    })?;
    let known = match &request.like {
        Some(run) => Some(memory::of_run(context, run, &whole)?),
        // With sizes given, those of earlier runs do not matter.
        None if request.size.is_some() => None,
        None => memory::same_question(context, made(&[]), &whole),
    };
    let (table, like, round) = match known {
        Some(earlier) => {
            let table = memory::with_those_of(made(&shape.unsized_parts()), &earlier);
            (table, Some(earlier.run), earlier.round_seconds)
        }
        None => {
            // It is on the screen until the sizes are known, which may take a third of the time.
            let under_way = (&*interrupt, &*observer.doing());
            let sized = sized(context, request, &sides, &shape, &host, under_way)?;
            // Sizes of another storage would be wrong for all rounds.
            watched(&host, &sides).unchanged()?;
            let seconds = round_seconds(&sized) / MEASURING_SHARE;
            (made(&sized), None, Some(seconds))
        }
    };
    let study = typed::made(table.clone())?;
    let heads = study.workload_heads.iter();
    let names: Vec<&str> = heads.map(|head| head.name.as_str()).collect();
    let shortest = shape.seconds * (sides.len() * names.len()) as f64;
    let measuring = round.map_or(0.0, |round| round * MEASURING_SHARE);
    // With --like, that run says which workloads there are.
    let short = request.like.is_none();
    let short = short.then(|| shape.left_out(&names, measuring, &context.command));
    Ok(PreparedComparison {
        table,
        study,
        like,
        round_seconds: round.unwrap_or(shortest / MEASURING_SHARE),
        short: short.flatten(),
        spent_ns: SystemClock.now_ns().saturating_sub(began),
        warnings,
        sides,
        interrupt,
        taken,
    })
}

/// Refuses a comparison for which there is no room at its least, or at the size that is asked for, before anything is
/// tried; `made` gives its study.
fn check_room(
    request: &CompareRequest,
    shape: &Shape,
    sides: &[ComparedPath],
    made: &dyn Fn(&[SizedPart]) -> StudyTable,
) -> Result<(), Failure> {
    let with = |bytes| typed::made(made(&least_parts(shape, bytes)));
    let least = with(request.size).map_err(|refused| match request.size {
        Some(size) => room::too_small(size, request.purpose.name),
        None => refused,
    })?;
    let at = rooms(sides);
    room::check(&least, &at, || room::advice(&at, |bytes| with(Some(bytes))))
}

/// The workloads there is time for, each with the bytes that are asked for, or with the least.
fn least_parts(shape: &Shape, bytes: Option<u64>) -> Vec<SizedPart> {
    let mut parts = shape.unsized_parts();
    for part in &mut parts {
        part.size.bytes = bytes.unwrap_or(part.size.bytes);
    }
    parts
}

/// The workloads there is time for, with their sizes, found by trying them.
fn sized(
    context: &Context,
    request: &CompareRequest,
    sides: &[ComparedPath],
    shape: &Shape,
    host: &LocalHost,
    (interrupt, doing): (&Interrupt, &dyn Preparation),
) -> Result<Vec<SizedPart>, Failure> {
    // All sides do the same work, so the fullest one limits it.
    let free = sides.iter().map(|side| side.free).min().unwrap_or(0);
    let directories = sides.iter().map(|side| (&*side.text, &*side.path));
    let sizing = Sizing {
        directories: directories.collect(),
        parts: request.purpose.parts,
        seconds: shape.seconds,
        room: TrialRoom::of((free as f64 * FREE_SHARE) as u64, shape.parts.len()),
        bytes: request.size,
        cold: !request.warm,
        interrupt,
        doing,
        make: &of_purpose,
    };
    let began = SystemClock.now_ns();
    let mut sized = sizing.find(context, host, &shape.parts)?;
    // Found out from here, by one process: all of them together do as much.
    let processes = request.clients.as_ref().map_or(1, AskedClients::processes);
    for part in &mut sized {
        let size = &mut part.size;
        size.bytes = (size.bytes / processes).max(CLIENT_LEAST.min(size.bytes));
        size.files = (size.files / processes).max(CLIENT_FILES_LEAST.min(size.files));
    }
    if !request.overrides.ends_by_time() {
        return Ok(sized);
    }
    let names: Vec<&str> = sides.iter().map(|side| side.text.as_str()).collect();
    let sized = shape.fitting(sized, &names, &context.command)?;
    if request.size.is_some() {
        return Ok(sized);
    }
    let spent = SystemClock.now_ns().saturating_sub(began) as f64 / 1e9;
    let allowed = request.time_ns as f64 / 1e9;
    let left = allowed - spent;
    sizing.longer(&sized, shape.longer(&sized, left))
}

/// Runs a comparison to its end.
///
/// # Errors
/// There is too little room for it, or it cannot be run.
pub(crate) fn run(
    context: &Context,
    request: &CompareRequest,
    prepared: PreparedComparison,
    observer: &dyn Observer,
) -> Result<FinishedRun, Failure> {
    // Ctrl-C was caught when the sizes were found, and can be caught once.
    let observer = &Caught {
        interrupt: Arc::clone(&prepared.interrupt),
        inner: observer,
    };
    let mut study = prepared.study;
    // How long it may go on is not part of the text.
    request.overrides.apply(&mut study);
    // Before anything is counted: all of them need room.
    if let Some(asked) = &request.clients {
        asked.join(&mut study)?;
    }
    study_file::spend(&mut study.decide, prepared.spent_ns);
    for bound in &request.required {
        observer.remark(&required::words(bound));
    }
    if let Some(run) = &prepared.like {
        observer.remark(&format!(
            "the same sizes as in run {run}; --size BYTES gives others"
        ));
    }
    room::check(&study, &rooms(&prepared.sides), || {
        "free space there, or give less data with --size".to_owned()
    })?;
    // Sizes of a run that had more time may be too large for this one.
    let longer = |seconds| with_time(&context.command, seconds);
    first_round::check(
        &study.decide,
        prepared.round_seconds,
        prepared.spent_ns,
        &longer,
    )?;
    let host = LocalHost::new(Arc::new(|_| ()));
    // The run fixes what each side lies on when it sets it up: that must be what was looked at here.
    watched(&host, &prepared.sides).unchanged()?;
    let mut warnings = prepared.warnings;
    // Who reads the result later must know what is missing in it, too.
    warnings.extend(prepared.short);
    warnings.extend(cache_warning(&study, request.warm));
    if request.quick {
        warnings.push(first_impression(request.time_ns));
    }
    for warning in &warnings {
        observer.remark(&format!("warning: {warning}"));
    }
    if let Some(asked) = &request.clients {
        // The first client takes the directories, which may be this very machine.
        drop(prepared.taken);
        let (of, by) = ((&study, &context.open_store()?), (asked, request.anyway));
        return clients::run(context, of, None, by, observer, &warnings);
    }
    let of = (&study, &execute::checked_store(context, &study)?);
    execute::start(context, of, &warnings, &[], observer)
}

/// Reaches the clients that are to measure: what was begun without one of them would be in vain.
///
/// # Errors
/// The one that is not reached, or does not see a directory.
pub(crate) fn reach_clients(
    request: &CompareRequest,
    sides: &[ComparedPath],
    observer: &dyn Observer,
) -> Result<(), Failure> {
    let Some(asked) = &request.clients else {
        return Ok(());
    };
    let directories: Vec<PathBuf> = sides.iter().map(|side| side.path.clone()).collect();
    asked.reach(&directories, observer)
}

/// The directories of a comparison, and why it misleads: empty, unless it is made all the same.
///
/// # Errors
/// A directory cannot be used, or the comparison would mislead.
pub(crate) fn comparable(
    host: &dyn Host,
    request: &CompareRequest,
) -> Result<(Vec<ComparedPath>, Vec<String>, TakenDirs), Failure> {
    let sides = sides(host, &request.directories)?;
    let mut warnings = misleading(&sides);
    warnings.extend(in_memory(&sides, request));
    let (taken, others) = TakenDirs::take(sides.iter().map(|side| side.path.as_path()));
    warnings.extend(others);
    if !warnings.is_empty() && !request.anyway {
        return Err(Failure::refused(warnings.join("\n       "))
            .next("--anyway measures all the same and keeps this with the result"));
    }
    Ok((sides, warnings, taken))
}

/// The directories, each of which can be used.
pub(crate) fn sides(
    host: &dyn Host,
    directories: &[PathBuf],
) -> Result<Vec<ComparedPath>, Failure> {
    let mut sides: Vec<ComparedPath> = Vec::new();
    for directory in directories {
        // Links resolved: two names of one directory are one.
        let path = std::fs::canonicalize(directory).map_err(|error| {
            Failure::refused(format!(
                "{}: {error}",
                directory.shown(),
                error = error.in_words()
            ))
            .next("name an existing directory")
        })?;
        if !path.is_dir() {
            return Err(
                Failure::refused(format!("{} is no directory", path.shown()))
                    .next("name a directory on the storage you want to know about"),
            );
        }
        let Some(text) = path.to_str().map(str::to_owned) else {
            return Err(Failure::refused(format!(
                "the name of {} is not UTF-8, and a study is text",
                path.shown()
            ))
            .next("rename it, or give it a plain name: mount --bind DIR /mnt/NAME"));
        };
        if let Some(other) = sides
            .iter()
            .find(|side| one_directory::is_one(&side.path, &path))
        {
            let why = match other.path == path {
                true => format!("{text} is named twice"),
                false => format!("{} and {text} are two names of one directory", other.text),
            };
            return Err(Failure::refused(why).next("compare two different directories"));
        }
        let mount = host
            .mount_of(&path)
            .map_err(|error| Failure::refused(error.to_string()).next(error.next()))?;
        let free = host
            .free_bytes(&path)
            .map_err(|error| Failure::refused(error.to_string()).next(error.next()))?;
        let lies_on = watched::lies_on(host, &path)?;
        sides.push(ComparedPath {
            path,
            text,
            mount,
            lies_on,
            free,
        });
    }
    Ok(sides)
}

/// The room that there is in each.
pub(crate) fn rooms(sides: &[ComparedPath]) -> Vec<RoomAt<'_>> {
    sides
        .iter()
        .map(|side| RoomAt {
            text: &side.text,
            free: side.free,
        })
        .collect()
}

/// The directories as they were when they were first looked at.
pub(crate) fn watched<'a>(host: &'a dyn Host, sides: &[ComparedPath]) -> WatchedDirs<'a> {
    let before = sides.iter().map(|side| side.lies_on.clone());
    WatchedDirs::known(host, before.collect())
}

/// Lists the reasons why comparing these would mislead, one sentence each.
fn misleading(sides: &[ComparedPath]) -> Vec<String> {
    let mut reasons = Vec::new();
    for (index, side) in sides.iter().enumerate() {
        for other in &sides[..index] {
            if side.mount.st_dev == other.mount.st_dev {
                reasons.push(format!("{} and {} are on the same file system ({}): a difference between them would say nothing about storage", other.text, side.text, side.mount.file_system));
            }
        }
    }
    let (in_memory, on_disk): (Vec<&ComparedPath>, Vec<&ComparedPath>) =
        sides.iter().partition(|side| side.lies_on.is_in_memory());
    if let (Some(ram), Some(disk)) = (in_memory.first(), on_disk.first()) {
        let below = ram.lies_on.loop_file.as_ref();
        let below = below.and_then(|file| file.file_system.as_ref());
        let below = below.map_or(String::new(), |memory| format!(" on a file in {memory}"));
        reasons.push(format!("{} is {}{below} (memory, lost at power-off) and {} is {} on storage: memory wins, and nothing is learned", ram.text, ram.mount.file_system, disk.text, disk.mount.file_system));
    }
    reasons
}

/// Why an answer on one directory would mislead: memory keeps nothing, whatever it answers and how fast.
fn in_memory(sides: &[ComparedPath], request: &CompareRequest) -> Option<String> {
    let asked = !request.required.is_empty()
        || request.purpose.name != stackrace_study::purpose::ALL[0].name;
    match sides {
        [only] if asked && only.lies_on.is_in_memory() => Some(format!(
            "{} lies in memory ({}), which keeps nothing when the machine is switched off: its figures say nothing about storage",
            only.text, only.lies_on.file_system
        )),
        _ => None,
    }
}

/// The text of the study that `compare` makes for these directories where nothing else is asked for.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn written_for(paths: &[PathBuf]) -> String {
    let (request, sides) = (request_for(paths), sides_of(paths));
    let shape = Shape::of(request.purpose, request.time_ns, sides.len());
    study(&request, &sides, &shape.unsized_parts()).text()
}

/// Directories of which nothing is known.
#[cfg(any(test, feature = "testing"))]
pub(super) fn sides_of(paths: &[PathBuf]) -> Vec<ComparedPath> {
    let side = |path: &PathBuf| ComparedPath {
        path: path.clone(),
        text: path.to_string_lossy().into_owned(),
        mount: MountInfo {
            id: 0,
            st_dev: (0, 0),
            root: path.clone(),
            mount_point: path.clone(),
            options: Vec::new(),
            file_system: String::new(),
            source: std::ffi::OsString::new(),
        },
        lies_on: StorageIdentity::default(),
        free: u64::MAX,
    };
    paths.iter().map(side).collect()
}

/// Returns the request where nothing else is said than the directories.
#[cfg(any(test, feature = "testing"))]
pub(super) fn request_for(paths: &[PathBuf]) -> CompareRequest {
    CompareRequest {
        directories: paths.to_vec(),
        purpose: &stackrace_study::purpose::ALL[0],
        time_ns: TIME_NS,
        quick: false,
        costs: Vec::new(),
        size: None,
        like: None,
        anyway: false,
        warm: false,
        clients: None,
        required: Vec::new(),
        overrides: Overrides::default(),
    }
}

/// The study that asks this purpose of these directories, with workloads of these sizes.
fn study(request: &CompareRequest, sides: &[ComparedPath], sized: &[SizedPart]) -> StudyTable {
    let purpose = request.purpose;
    let mut comment = format!("# Purpose: {}\n", purpose.name);
    // Sizes that were asked for are not those of the same command without asking.
    match (request.size, &request.like) {
        (Some(_), _) => comment.push_str("# Sizes: given with --size\n"),
        (None, Some(_)) => comment.push_str("# Sizes: given with --like\n"),
        (None, None) => {}
    }
    for bound in request.required.iter().filter(|it| it.source.is_some()) {
        comment.push_str(&format!("# {}\n", required::words(bound)));
    }
    let names_of_parts = sized.iter().map(|part| purpose.parts[part.index].name);
    let asked = match sized.len() < purpose.parts.len() {
        true => names_of_parts.collect::<Vec<_>>().join(", "),
        false => purpose.summary.to_owned(),
    };
    let workloads = sized.iter().map(|SizedPart { index, size, .. }| {
        let part = &purpose.parts[*index];
        let named = StudyTable::default().value("name", part.name);
        workload(named.value("weight", part.weight), &part.settings(size))
    });
    study_of(request, sides, (&asked, &comment), workloads)
}

/// A workload of a study: its name and what is said of it outside of its settings, then these.
pub(crate) fn workload(named: StudyTable, settings: &Settings) -> StudyTable {
    named.table(&settings.owner, StudyTable::of(settings))
}

/// A study of directories: what is `asked` of which, under a comment, with these workloads; when it stops,
/// and how a trial begins.
pub(crate) fn study_of(
    request: &CompareRequest,
    sides: &[ComparedPath],
    (asked, comment): (&str, &str),
    workloads: impl IntoIterator<Item = StudyTable>,
) -> StudyTable {
    let new = StudyTable::default;
    let names = names::of(sides.iter().map(|side| side.path.as_path()));
    let title = format!("{} for {asked}", names.join(" or "));
    let level = |(at, (name, side)): (usize, (&String, &ComparedPath))| {
        let level = new().value("label", name.as_str());
        let level = level.value("value", side.text.as_str());
        match request.costs.get(at) {
            Some(cost) => level.value("cost", cost.exact()),
            None => level,
        }
    };
    let levels = names.iter().zip(sides).enumerate().map(level);
    // The level of the factor stands here.
    let directory = new().value("path", "{directory}");
    let decide = new()
        .value("rounds-at-most", u64::from(ROUNDS_MAX))
        .value("at-most", unit::whole_time(request.time_ns))
        .value("until", "overall");
    let trial = new()
        .value("drop-caches", !request.warm)
        // They are not ours: they stay mounted, and nothing is built.
        .value("remount", false)
        .value("provision", "once");
    new()
        .value("title", title)
        .comment(comment)
        .table("factors", new().tables("directory", levels))
        .tables("stack", [new().table("dir", directory)])
        .tables("workload", workloads)
        .table("decide", decide)
        .table("trial", trial)
}

pub(super) mod names;
mod one_directory;
#[cfg(test)]
mod tests;
pub(super) mod typed;

pub(crate) use typed::COMPARE;
