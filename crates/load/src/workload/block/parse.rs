//! Block I/O as it is asked for: every word read, and what contradicts another word refused.

use std::num::{NonZeroU32, NonZeroU64};

use stackrace_engine::WORKERS_MAX;
use stackrace_engine::spec::{AccessPattern, Content, Durability, IoEngine, Pacing};

use super::phase::{BlockIo, Frame};
use super::words::{
    ACCESS, ARRIVALS, AccessLaw, COMPRESS_RATIO, CONTENT, DATA_ONLY, DIRECT, DUPLICATES, ENGINE,
    FILES, FSYNC_AT_END, HOT_RANGE, HOT_SHARE, MODE, OpenSync, PASSES, PREALLOCATE, QUEUE_DEPTH,
    READ_FIRST, READ_SHARE, SAME_DATA, SYNC, THINK_TIME, THREADS, VERIFY, fsync_every,
};
use stackrace_base::setting::{Refusal, SettingDoc, SettingKey, Settings};
use stackrace_base::unit;

/// Zipf's exponent, unless given.
const ZIPF: f64 = 1.1;
/// Pareto's h, unless given: four of five operations on a fifth of the data.
const PARETO: f64 = 0.2;
/// Standard deviation of the normal distribution as a share of the data, unless given.
const NORMAL: f64 = 0.15;
/// Smallest and largest block, bytes.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 512..=64 << 20;

impl BlockIo {
    /// Reads the settings all share.
    pub fn parse(settings: &Settings, frame: &Frame) -> Result<Self, Refusal> {
        let size = size(settings)?;
        let files = at_least_one(settings, FILES)?;
        let direct = settings.flag(DIRECT)?;
        // A block must fit into one file, not only into all of them together.
        let file = size / u64::from(files);
        let block_sizes = block_sizes(settings, frame, file)?;
        let align = align(settings, frame.access, &block_sizes, file, direct)?;
        let io = Self {
            size: match (block_sizes.as_slice(), align) {
                // Whole blocks are read and written: what is left over is no part of the data.
                ([(block, _)], None) => {
                    file / u64::from(*block) * u64::from(*block) * u64::from(files)
                }
                _ => size,
            },
            files,
            align,
            block_sizes,
            threads: settings.count_within(THREADS, 1..=WORKERS_MAX)?,
            queue_depth: at_least_one(settings, QUEUE_DEPTH)?,
            access: frame.access,
            read_share: frame.read_share,
            preallocate: settings.flag(PREALLOCATE)?,
            new_files: frame.new_files,
            durability: durability(settings, frame)?,
            pacing: pacing(settings)?,
            time_ns: match settings.has_value("time") {
                true => Some(settings.lasting_ns("time")?),
                // Until the pass is complete.
                false => None,
            },
            operations: settings.optional_count("operations")?,
            engine: engine(settings, frame)?,
            direct,
            content: content(settings)?,
            verify: settings.flag(VERIFY)?,
            // Not every workload can use the data of another one.
            same_data: settings.has_value(SAME_DATA.name) && settings.flag(SAME_DATA)?,
            // Not every workload can repeat its pass.
            passes: match settings.has_value(PASSES.name) {
                true => settings.count(PASSES)?,
                false => 1,
            },
        };
        check_threads(settings, &io)?;
        check_passes(settings, &io)?;
        check_same_data(settings, &io)?;
        if io.verify {
            check_verify(settings, &io)?;
        }
        if io.operations == Some(0) {
            return Err(settings.refuse(
                "operations",
                "0 operations measure nothing",
                "leave operations out, or write how many",
            ));
        }
        // Otherwise the setting would be read, and nothing would come of it.
        if io.preallocate && !frame.new_files {
            return Err(settings.refuse(
                "preallocate",
                "there is nothing to reserve: the data are laid out before the clock starts",
                "leave preallocate out, or write a new file",
            ));
        }
        Ok(io)
    }
}

/// Without a ring each outstanding operation is a thread of its own.
fn check_threads(settings: &Settings, io: &BlockIo) -> Result<(), Refusal> {
    let workers = u64::from(io.threads) * u64::from(io.queue_depth);
    if io.engine != IoEngine::Sync || workers <= u64::from(WORKERS_MAX) {
        return Ok(());
    }
    Err(settings.refuse(
        "queue-depth",
        format!(
            "the sync engine has a thread for each outstanding operation: {} x {} are more than {WORKERS_MAX}",
            io.threads, io.queue_depth
        ),
        "write fewer, or engine = \"io_uring\"",
    ))
}

/// Refuses passes that would never end, or that there are none of.
fn check_passes(settings: &Settings, io: &BlockIo) -> Result<(), Refusal> {
    let refuse = |message: &str, help: &str| Err(settings.refuse(PASSES.name, message, help));
    // Each thread, and each place in its queue, may still write while another begins the next pass.
    let workers = u64::from(io.threads) * u64::from(io.queue_depth);
    match io.access {
        _ if io.passes == 1 => Ok(()),
        AccessPattern::Sequential | AccessPattern::OncePerPass => match io.time_ns {
            None if io.passes == 0 && io.operations.is_none() => refuse(
                "passes without an end",
                "write time = \"10 s\", or how many passes",
            ),
            // What it wrote in one pass is gone in the next, and could not be read back.
            _ if io.verify => refuse(
                "only one pass can be verified",
                "leave passes out, or verify",
            ),
            _ if io.new_files && workers > 1 => refuse(
                "a file that several threads write cannot be made anew in between",
                "leave passes out, or write threads = 1 and queue-depth = 1",
            ),
            _ => Ok(()),
        },
        _ => refuse(
            "passes have no meaning where blocks are drawn with repeats",
            "write access = \"once\", or leave passes out",
        ),
    }
}

/// Refuses data of another workload where there must be none.
fn check_same_data(settings: &Settings, io: &BlockIo) -> Result<(), Refusal> {
    let (message, help) = match (io.same_data, io.new_files, io.verify) {
        (true, true, _) => (
            "a new file is not the file of the workload before",
            "leave out same-data",
        ),
        (true, false, true) => (
            "what another workload wrote cannot be verified",
            "leave out verify or same-data",
        ),
        _ => return Ok(()),
    };
    Err(settings.refuse(SAME_DATA.name, message, help))
}

/// Refuses to verify what could not be told apart.
fn check_verify(settings: &Settings, io: &BlockIo) -> Result<(), Refusal> {
    let refuse = |name, message: &str, help| Err(settings.refuse(name, message, help));
    let off = "leave verify out, or";
    match io.content {
        Content::Zero => {
            let help = format!("{off} write content = \"random\"");
            return refuse(
                "content",
                "zeros cannot be verified: they are all alike",
                help,
            );
        }
        // Every block holds where and when it was written; equal blocks could not.
        Content::Shaped { duplicates, .. } if duplicates > 0.0 => {
            let message = "duplicates cannot be verified: every block has to be its own";
            return refuse("duplicates", message, format!("{off} leave out duplicates"));
        }
        Content::Random | Content::Shaped { .. } => {}
    }
    if io
        .align
        .is_some_and(|align| !align.get().is_multiple_of(512))
    {
        let message = "what is verified lies at multiples of 512 B";
        return refuse(
            "align",
            message,
            format!("{off} write align = \"512 B\" or a multiple"),
        );
    }
    Ok(())
}

/// Reads the share of reads, as `mode` and `read-share` say.
pub fn read_share(settings: &Settings) -> Result<f64, Refusal> {
    match settings.choice(MODE)? {
        Some(_) if settings.given(READ_SHARE.name) => Err(settings.refuse(
            READ_SHARE.name,
            format!(
                "read-share has no meaning with mode = \"{}\"",
                settings.text("mode")?
            ),
            "write mode = \"mixed\", or leave read-share out",
        )),
        Some(share) => Ok(share),
        None => settings.share(READ_SHARE),
    }
}

/// Reads the order in which blocks are visited, as `access` and its parameters say.
pub fn access(settings: &Settings) -> Result<AccessPattern, Refusal> {
    let law = settings.choice(ACCESS)?;
    for parameter in ["hot-range", "hot-share"] {
        // A setting without effect is often a misunderstanding of another one.
        if law != AccessLaw::Hot && settings.given(parameter) {
            return Err(settings.refuse(
                parameter,
                format!("{parameter} has no meaning without access = \"hot\""),
                format!("write access = \"hot\", or leave {parameter} out"),
            ));
        }
    }
    let skewed = matches!(law, AccessLaw::Zipf | AccessLaw::Pareto | AccessLaw::Normal);
    if settings.given("skew") && !skewed {
        return Err(settings.refuse(
            "skew",
            "skew has no meaning with this access",
            "write access = \"zipf\", \"pareto\" or \"normal\", or leave skew out",
        ));
    }
    Ok(match law {
        AccessLaw::Once => AccessPattern::OncePerPass,
        AccessLaw::Uniform => AccessPattern::Uniform,
        AccessLaw::Zipf => AccessPattern::Zipf(skew(settings, ZIPF, 100.0)?),
        AccessLaw::Pareto => AccessPattern::Pareto(skew(settings, PARETO, 1.0)?),
        AccessLaw::Normal => AccessPattern::Normal(skew(settings, NORMAL, 1.0)?),
        AccessLaw::Hot => AccessPattern::HotCold {
            hot_range: part(settings, HOT_RANGE)?,
            hot_ops: part(settings, HOT_SHARE)?,
        },
    })
}

/// A skew above 0 and below `limit`.
fn skew(settings: &Settings, default: f64, limit: f64) -> Result<f64, Refusal> {
    let skew = settings.optional_number("skew")?.unwrap_or(default);
    if skew > 0.0 && skew < limit {
        return Ok(skew);
    }
    Err(settings.refuse(
        "skew",
        format!("a skew of {skew} does not work with this access"),
        format!("write a number above 0 and below {limit}, for example {default}"),
    ))
}

/// A share that is neither nothing nor all.
fn part(settings: &Settings, doc: SettingDoc) -> Result<f64, Refusal> {
    let (name, share) = (doc.name, settings.share(doc)?);
    // At the ends one of the two parts is empty, and nothing is uneven.
    if share > 0.0 && share < 1.0 {
        return Ok(share);
    }
    Err(settings.refuse(
        name,
        format!("{name} must be above 0 and below 100 %"),
        "write access = \"uniform\" where all is alike",
    ))
}

/// Reads one block size, or several with their weights.
fn block_sizes(
    settings: &Settings,
    frame: &Frame,
    largest: u64,
) -> Result<Vec<(u32, u32)>, Refusal> {
    let Some(several) = settings.optional_weights("block-sizes")? else {
        let size = settings.bytes("block-size")?;
        return Ok(vec![(
            block_size(settings, "block-size", size, largest)?,
            1,
        )]);
    };
    let refuse = |message: &str, help: &str| Err(settings.refuse("block-sizes", message, help));
    if settings.given("block-size") {
        return refuse(
            // Which of the two is meant cannot be told.
            "block-size and block-sizes exclude each other",
            "leave one of them out",
        );
    }
    if frame.access == AccessPattern::OncePerPass && several.len() > 1 {
        return refuse(
            "blocks of different sizes overlap, so they cannot be visited once each",
            "write access = \"uniform\"",
        );
    }
    several
        .into_iter()
        .map(|(size, weight)| Ok((block_size(settings, "block-sizes", size, largest)?, weight)))
        .collect()
}

/// A block size: a multiple of 512 from 512 B to 64 MiB, at most `largest`.
fn block_size(settings: &Settings, name: &str, value: u64, largest: u64) -> Result<u32, Refusal> {
    let valid = value.is_multiple_of(512) && BLOCK_BYTES.contains(&value);
    match u32::try_from(value) {
        Ok(block) if valid && value <= largest => Ok(block),
        _ if largest < *BLOCK_BYTES.start() => Err(settings.refuse(
            "size",
            format!("a file of {} holds no block", unit::bytes(largest)),
            "give each file at least one block: 512 B or more",
        )),
        _ => Err(settings.refuse(
            name,
            // Rounded, 3000 B would look like a size that works.
            match value % 512 {
                0 => format!("block size {} does not work here", unit::bytes(value)),
                _ => format!("block size {value} B does not work here"),
            },
            format!(
                "choose a multiple of 512 B from 512 B to 64 MiB, at most the size ({})",
                unit::bytes(largest)
            ),
        )),
    }
}

/// Reads where blocks may begin; `None` means at multiples of their own size.
fn align(
    settings: &Settings,
    access: AccessPattern,
    block_sizes: &[(u32, u32)],
    largest: u64,
    direct: bool,
) -> Result<Option<NonZeroU32>, Refusal> {
    let Some(value) = settings.optional_bytes("align")? else {
        return Ok(None);
    };
    let refuse = |message: String, help: &str| Err(settings.refuse("align", message, help));
    let Some(align) = u32::try_from(value).ok().and_then(NonZeroU32::new) else {
        return refuse(
            format!("blocks cannot begin at multiples of {}", unit::bytes(value)),
            "write from 1 B to less than 4 GiB",
        );
    };
    if value > largest {
        return refuse(
            format!("align is more than a file holds ({})", unit::bytes(largest)),
            "write a smaller one, or more data",
        );
    }
    if direct && !value.is_multiple_of(512) {
        return refuse(
            "direct I/O begins at multiples of 512 B".to_owned(),
            "write align = \"512 B\" or a multiple of it, or direct = false",
        );
    }
    if access == AccessPattern::OncePerPass
        && block_sizes.iter().any(|(size, _)| *size > align.get())
    {
        return refuse(
            "blocks larger than align overlap, so they cannot be visited once each".to_owned(),
            "write access = \"uniform\", or an align of at least the block size",
        );
    }
    Ok(Some(align))
}

/// Reads when data is made durable.
fn durability(settings: &Settings, frame: &Frame) -> Result<Durability, Refusal> {
    let every = settings.count(fsync_every("0"))?;
    let sync = settings.choice(SYNC)?;
    let durability = Durability {
        fsync_every: NonZeroU64::new(every),
        fsync_in_write: false,
        data_only: settings.flag(DATA_ONLY)?,
        fsync_at_end: settings.flag(FSYNC_AT_END)?,
        open_dsync: sync == OpenSync::Dsync,
        open_sync: sync == OpenSync::Sync,
    };
    let reads_only = frame.read_share == 1.0;
    if reads_only && (durability.open_dsync || durability.open_sync) {
        return Err(settings.refuse(
            "sync",
            "nothing is written that could be made durable",
            "write sync = \"none\", or leave it out",
        ));
    }
    // What was asked for is not left undone without a word.
    for (name, asked) in [
        (fsync_every("0").name, every > 0),
        (FSYNC_AT_END.name, durability.fsync_at_end),
    ] {
        if reads_only && asked && settings.given(name) {
            return Err(settings.refuse(
                name,
                "nothing is written that could be made durable",
                format!("leave {name} out, or let it write"),
            ));
        }
    }
    // A read-only phase calls no fsync, whatever is set.
    let never = reads_only || (durability.fsync_every.is_none() && !durability.fsync_at_end);
    if durability.data_only && never {
        return Err(settings.refuse(
            "data-only",
            "data-only says how fsync is called, and it never is",
            "leave data-only out, or give fsync-every or fsync-at-end = true with writes",
        ));
    }
    Ok(durability)
}

/// Reads when the next operation may start.
fn pacing(settings: &Settings) -> Result<Pacing, Refusal> {
    let poisson = settings.choice(ARRIVALS)?;
    let Some(rate) = settings.optional_number("rate")? else {
        if settings.given("arrivals") {
            return Err(settings.refuse(
                "arrivals",
                "arrivals have no meaning without a rate",
                "write rate = 1000, or leave arrivals out",
            ));
        }
        return Ok(Pacing::Closed {
            think_time_ns: settings.time_ns(THINK_TIME)?,
        });
    };
    if settings.given("think-time") {
        return Err(settings.refuse(
            "think-time",
            "rate and think-time exclude each other: with a rate the clock starts each operation",
            "leave out think-time or rate",
        ));
    }
    // Below it a phase would end before its first operation; above it the clock is too coarse.
    if !(0.001..=1e9).contains(&rate) {
        return Err(settings.refuse(
            "rate",
            format!("{rate} operations per second are not possible"),
            "write from 0.001 to 1000000000, or leave rate out: as fast as possible",
        ));
    }
    Ok(if poisson {
        Pacing::Poisson(rate)
    } else {
        Pacing::Fixed(rate)
    })
}

/// The content asked for by `content`, `compress-ratio` and `duplicates`.
pub fn content(settings: &Settings) -> Result<Content, Refusal> {
    let ratio = settings.number(COMPRESS_RATIO)?;
    let duplicates = settings.share(DUPLICATES)?;
    if ratio < 1.0 {
        return Err(settings.refuse(
            "compress-ratio",
            "a compress-ratio cannot be below 1",
            "write 1 for data that does not compress, 2 for data that halves",
        ));
    }
    // Zeros compress to nothing, and each repeats the other: both settings would be untrue.
    let zero = settings.choice(CONTENT)?;
    if zero && ratio > 1.0 {
        return Err(settings.refuse(
            "compress-ratio",
            "zeros have no compress-ratio of their own",
            "leave out compress-ratio, or write content = \"random\"",
        ));
    }
    if zero && duplicates > 0.0 {
        return Err(settings.refuse(
            "duplicates",
            "blocks of zeros are all alike already",
            "leave out duplicates, or write content = \"random\"",
        ));
    }
    Ok(match (zero, ratio > 1.0 || duplicates > 0.0) {
        (true, _) => Content::Zero,
        (false, true) => Content::Shaped { ratio, duplicates },
        (false, false) => Content::Random,
    })
}

/// The engine asked for, or the one that reads before it writes.
fn engine(settings: &Settings, frame: &Frame) -> Result<IoEngine, Refusal> {
    if settings.has_value(READ_FIRST.name) && settings.flag(READ_FIRST)? {
        let refuse =
            |message: &str, help: &str| Err(settings.refuse(READ_FIRST.name, message, help));
        if frame.read_share == 1.0 {
            return refuse(
                "nothing is written that could be read first",
                "leave out read-first",
            );
        }
        if frame.new_files {
            return refuse(
                "a new file has nothing to read first",
                "leave out read-first, or overwrite a file: mode = \"rewrite\"",
            );
        }
        if settings.flag(VERIFY)? {
            return refuse(
                "what is read first and changed cannot be verified",
                "leave out verify or read-first",
            );
        }
        if settings.choice(ENGINE)? == IoEngine::Uring {
            return refuse(
                "io_uring does not write what it has just read",
                "leave out engine or read-first",
            );
        }
        return Ok(IoEngine::Update);
    }
    settings.choice(ENGINE)
}

/// A count that must be at least 1 and fit.
pub fn at_least_one(
    settings: &Settings,
    key: impl Into<SettingKey<'static>>,
) -> Result<u32, Refusal> {
    settings.count_within(key, 1..=4096)
}

/// A size that must be given and be above nothing.
pub fn size(settings: &Settings) -> Result<u64, Refusal> {
    // Only `read-file` may leave it out, and then another file has to be named.
    match settings.optional_bytes("size")? {
        Some(0) | None => Err(settings.refuse(
            "size",
            "a size of 0 measures nothing",
            "write for example size = \"1 GiB\"",
        )),
        Some(value) => Ok(value),
    }
}
