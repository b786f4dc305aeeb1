//! One job, resolved: every option read, and what contradicts another or cannot be kept refused.

mod files;
mod fill;
mod read;
mod when;

use super::language::{Section, Sections};
use super::place::{Place, Refusal};
use super::report::PERCENTILES;

use read::Reader;

/// Order of the blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Access {
    /// Ascending.
    Sequential,
    /// Random, each block once a pass.
    Once,
    /// Random with repeats.
    Uniform,
    /// Zipf with this theta.
    Zipf(f64),
    /// Pareto with this power.
    Pareto(f64),
    /// Normal, with this standard deviation as a share of the range.
    Normal(f64),
}

/// Who does the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// `pread` and `pwrite`.
    Plain,
    /// io_uring.
    Ring,
    /// Nobody.
    Null,
}

/// An amount that may depend on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Bytes.
    Bytes(u64),
    /// Percent of what there is.
    Percent(u64),
}

/// What the files are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Files {
    /// As `filename=` lists them; all clones of the job share them.
    Named(Vec<String>),
    /// By a pattern with `$jobname`, `$jobnum` and `$filenum`.
    Pattern(String),
}

/// When the next operation starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// So long after one completed, ns.
    Think(u64),
    /// By the clock, evenly, so many a second.
    Even(f64),
    /// By the clock, with exponentially distributed gaps, so many a second on average.
    Poisson(f64),
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Content {
    /// Zeros.
    Zero,
    /// Random data; so large before over after compression, with this share of duplicates.
    Random {
        /// 1: it does not compress.
        ratio: f64,
        /// 0: no block is another's copy.
        duplicates: f64,
    },
}

/// What becomes of a file that is only written, before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// Its blocks are reserved where the file system can; else it gets its size.
    IfPossible,
    /// Its blocks are reserved.
    Blocks,
    /// It gets its size.
    Size,
    /// Nothing.
    Nothing,
}

/// When data is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Durable {
    /// After so many writes; 0: never.
    pub(crate) every: u64,
    /// By fdatasync instead of fsync.
    pub(crate) data_only: bool,
    /// At the end.
    pub(crate) at_end: bool,
    /// `O_SYNC`.
    pub(crate) open_sync: bool,
    /// `O_DSYNC`.
    pub(crate) open_dsync: bool,
}

/// One job.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// What its files are called, `$jobname`: the word in brackets.
    pub(crate) title: String,
    /// Its name.
    pub(crate) name: String,
    /// Where it begins.
    pub(crate) place: Place,
    /// Its group: those of one group run at the same time.
    pub(crate) group: u64,
    /// Reported with the other jobs of its group.
    pub(crate) grouped: bool,
    /// In words.
    pub(crate) description: Option<String>,
    /// What was said of all jobs, and of this: name and value.
    pub(crate) options: [Vec<(String, String)>; 2],
    /// As `rw` has it.
    pub(crate) mode: &'static str,
    /// Share of reads.
    pub(crate) read_share: f64,
    /// Order of the blocks.
    pub(crate) access: Access,
    /// Bytes and weights.
    pub(crate) block_sizes: Vec<(u32, u32)>,
    /// Random blocks lie at multiples of it.
    pub(crate) align: Option<u32>,
    /// Of all files together; none: what there is.
    pub(crate) size: Option<Extent>,
    /// Of each file.
    pub(crate) file_bytes: Option<u64>,
    /// To be moved; none: as much as there is.
    pub(crate) io_size: Option<Extent>,
    /// Passes.
    pub(crate) loops: u64,
    /// Operations at most.
    pub(crate) operations: Option<u64>,
    /// What the files are called.
    pub(crate) files: Files,
    /// How many there are.
    pub(crate) file_count: u32,
    /// Where they are; clones take them in turn. Empty: here.
    pub(crate) directories: Vec<String>,
    /// Jobs that are alike.
    pub(crate) clones: u32,
    /// Operations outstanding at once.
    pub(crate) queue_depth: u32,
    /// Who does the I/O.
    pub(crate) engine: Engine,
    /// As it was called.
    pub(crate) engine_name: String,
    /// Past the page cache.
    pub(crate) direct: bool,
    /// Longest time, ns.
    pub(crate) time_ns: Option<u64>,
    /// The whole of that time, however often the data is passed over.
    pub(crate) time_based: bool,
    /// When data is made durable.
    pub(crate) durable: Durable,
    /// When the next operation starts.
    pub(crate) pace: Pace,
    /// What is written.
    pub(crate) content: Content,
    /// What becomes of files that are only written, before.
    pub(crate) reserve: Reserve,
    /// They are laid out as those that are read.
    pub(crate) overwrite: bool,
    /// The kernel is told the order of the blocks.
    pub(crate) advise: bool,
    /// Files are dropped from the page cache before.
    pub(crate) invalidate: bool,
    /// Files are removed afterwards.
    pub(crate) unlink: bool,
    /// What is read must be what was written.
    pub(crate) verify: bool,
    /// Everything is read back at the end.
    pub(crate) read_back: bool,
    /// What everything random follows from; none: another each time.
    pub(crate) seed: Option<u64>,
    /// Percentiles to report, rising.
    pub(crate) percentiles: Vec<f64>,
    /// They are of the whole latency.
    pub(crate) whole_percentiles: bool,
    /// What is done in another way than fio does it, to be said.
    pub(crate) notes: Vec<String>,
}

/// Everything random follows from this unless a job says otherwise.
const SEED: u64 = 1;
/// Clones of a job, and files of one, at most.
const MANY: u64 = 1024;

/// Resolves all jobs.
///
/// # Errors
/// The first option that contradicts another, or that no phase can keep.
pub(crate) fn jobs(sections: &Sections) -> Result<Vec<Job>, Refusal> {
    let mut group = 0;
    let mut jobs: Vec<Job> = Vec::new();
    for section in &sections.all {
        let reader = Reader::new(section)?;
        let waits = reader.flag("stonewall")?.unwrap_or(false);
        let fresh = reader.flag("new_group")?.unwrap_or(false);
        if fresh && !waits && !jobs.is_empty() {
            let what = "new_group without stonewall is not supported";
            let next = "write stonewall as well: groups run one after the other";
            return Err(reader.refuse("new_group", what, next));
        }
        if waits && !jobs.is_empty() {
            group += 1;
        }
        jobs.push(job(section, &reader, group)?);
    }
    Ok(jobs)
}

/// What `rw` is, whether it is random, and the share of reads; none: mixed.
fn mode(
    reader: &Reader<'_>,
    notes: &mut Vec<String>,
) -> Result<(&'static str, bool, Option<f64>), Refusal> {
    let word = reader.text("rw").unwrap_or("read");
    Ok(match word {
        "read" => ("read", false, Some(1.0)),
        "write" => ("write", false, Some(0.0)),
        "rw" | "readwrite" => {
            let what = "rw=rw is one stream of blocks, each read or written";
            notes.push(format!("{what}; fio has a stream for each"));
            ("rw", false, None)
        }
        "randread" => ("randread", true, Some(1.0)),
        "randwrite" => ("randwrite", true, Some(0.0)),
        "randrw" => ("randrw", true, None),
        _ => {
            let next = match word {
                word if word.contains("trim") => {
                    "trims are not done; choose among: read, write, rw, randread, randwrite, randrw"
                }
                word if word.contains(':') => {
                    "leave out what follows the colon: sequential jobs have no gaps, random ones no runs"
                }
                _ => "choose among: read, write, rw, randread, randwrite, randrw",
            };
            let what = format!("rw={} is not supported", super::language::shown(word));
            return Err(reader.refuse("rw", what, next));
        }
    })
}

/// The share of reads of a mixed job: what was said last of reads or of writes.
fn mix(reader: &Reader<'_>) -> Result<f64, Refusal> {
    let last = reader.last_of(&["rwmixread", "rwmixwrite"]);
    let Some(name) = last else { return Ok(0.5) };
    let percent = reader.percent(name)?.unwrap_or(50);
    Ok(match name {
        "rwmixread" => percent as f64 / 100.0,
        _ => (100 - percent) as f64 / 100.0,
    })
}

fn engine(reader: &Reader<'_>, notes: &mut Vec<String>) -> Result<(Engine, String), Refusal> {
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
        _ => {
            let what = format!("ioengine={} is not supported", super::language::shown(word));
            let next = "choose among: psync, sync, pvsync, pvsync2, io_uring, libaio, null";
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
) -> Result<u32, Refusal> {
    let asked = reader.count_in("iodepth", 1..=4096)?.unwrap_or(1) as u32;
    if engine == Engine::Plain && asked > 1 {
        notes.push(format!(
            "iodepth={asked} is 1: a plain call completes before the next"
        ));
        return Ok(1);
    }
    Ok(asked)
}

fn direct(reader: &Reader<'_>) -> Result<bool, Refusal> {
    Ok(match reader.last_of(&["direct", "buffered"]) {
        Some("direct") => reader.flag("direct")?.unwrap_or(false),
        Some(_) => !reader.flag("buffered")?.unwrap_or(true),
        None => false,
    })
}

fn percentiles(reader: &Reader<'_>) -> Result<Vec<f64>, Refusal> {
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
            let what = "percentile_list is no list of percentiles";
            reader.refuse(
                "percentile_list",
                what,
                "write up to 20 numbers: 50:99:99.9",
            )
        })?;
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    Ok(numbers)
}

/// Options that may only say what is done anyway.
fn check_fixed(reader: &Reader<'_>, notes: &mut Vec<String>) -> Result<(), Refusal> {
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
    if reader.flag("gtod_reduce")?.unwrap_or(false) {
        notes.push("gtod_reduce: latencies are recorded all the same".to_owned());
    }
    Ok(())
}

fn job(section: &Section, reader: &Reader<'_>, group: u64) -> Result<Job, Refusal> {
    let mut notes = Vec::new();
    check_fixed(reader, &mut notes)?;
    let (mode, random, share) = mode(reader, &mut notes)?;
    let read_share = match share {
        Some(share) => share,
        None => mix(reader)?,
    };
    let (engine, engine_name) = engine(reader, &mut notes)?;
    let queue_depth = queue_depth(reader, engine, &mut notes)?;
    let files::Blocks { sizes, align } = files::blocks(reader, random, read_share)?;
    let access = files::access(reader, random)?;
    let layout = files::layout(reader, access)?;
    files::check_blocks(reader, access, &sizes, align)?;
    let (time_ns, time_based) = when::time(reader)?;
    let content = fill::content(reader)?;
    let clones = reader.count_in("numjobs", 1..=MANY)?.unwrap_or(1) as u32;
    let (verify, read_back) =
        fill::verify(reader, read_share, content, &layout, clones, &mut notes)?;
    let job = Job {
        title: section.title.clone(),
        name: section.name.clone(),
        place: section.place.clone(),
        group,
        grouped: reader.flag("group_reporting")?.unwrap_or(false),
        description: reader.text("description").map(str::to_owned),
        options: reader.options(),
        mode,
        read_share,
        access,
        pace: when::pace(reader, read_share, &sizes, queue_depth)?,
        block_sizes: sizes,
        align,
        size: reader.extent("size")?,
        file_bytes: layout.file_bytes,
        io_size: reader.extent("io_size")?,
        loops: reader
            .count_in("loops", 1..=u64::from(u32::MAX))?
            .unwrap_or(1),
        operations: reader
            .count_in("number_ios", 0..=u64::MAX)?
            .filter(|number| *number > 0),
        files: layout.files,
        file_count: layout.count,
        directories: layout.directories,
        clones,
        queue_depth,
        engine,
        engine_name,
        direct: direct(reader)?,
        time_ns,
        time_based,
        durable: when::durable(reader, read_share)?,
        content,
        reserve: fill::reserve(reader)?,
        overwrite: reader.flag("overwrite")?.unwrap_or(false),
        advise: reader.flag("fadvise_hint")?.unwrap_or(true),
        invalidate: reader.flag("invalidate")?.unwrap_or(true),
        unlink: reader.flag("unlink")?.unwrap_or(false),
        verify,
        read_back,
        seed: fill::seed(reader)?,
        percentiles: percentiles(reader)?,
        whole_percentiles: reader.flag("lat_percentiles")?.unwrap_or(false),
        notes,
    };
    Ok(job)
}
