//! Which files a job has, and which blocks of them it visits in which order.

use stackrace_engine::spec::NameCall;

use super::super::language::shown;
use super::super::place::JobError;
use super::super::value;
use super::read::Reader;
use super::resolved::{Access, Engine, Extent, JobFiles, MANY, NAMES, Offset};
use stackrace_base::unit;

/// Names of a job's files unless told otherwise.
const PATTERN: &str = "$jobname.$jobnum.$filenum";
/// Smallest and largest block, bytes.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 512..=64 << 20;
/// Sizes of one job at most.
const SIZES_MAX: u64 = 256;

/// The files of a job: names, sizes, number, and the order over all of them.
pub(super) struct JobLayout {
    pub(super) access: Access,
    pub(super) files: JobFiles,
    pub(super) count: u32,
    pub(super) directories: Vec<String>,
    pub(super) file_bytes: Option<u64>,
}

/// The sizes of blocks, and where random ones begin.
pub(super) struct Blocks {
    /// Bytes of a block, and its weight among all.
    pub(super) sizes: Vec<(u32, u32)>,
    /// Random ones lie at multiples of it.
    pub(super) align: Option<u32>,
}

/// Reads the block sizes: one, or several.
pub(super) fn blocks(
    reader: &Reader<'_>,
    random: bool,
    read_share: f64,
) -> Result<Blocks, JobError> {
    let last = reader.last_of(&["bs", "bssplit", "bsrange"]);
    let name = last.unwrap_or("bs");
    let text = reader.text(name).unwrap_or("4k");
    let (of_reads, of_writes) = value::pair(text);
    let (reads, writes) = (of_reads.unwrap_or("4k"), of_writes.unwrap_or("4k"));
    if read_share > 0.0 && read_share < 1.0 && reads != writes {
        let what = format!(
            "{name}={}: reads and writes of different sizes",
            shown(text)
        );
        return Err(reader.refuse(
            name,
            what,
            "write two jobs, one that reads and one that writes",
        ));
    }
    let own = if read_share > 0.0 { reads } else { writes };
    let sizes = match name {
        "bssplit" => weights(reader, own)?,
        "bsrange" => range(reader, own)?,
        _ => vec![(block(reader, name, own)?, 1)],
    };
    let align = match reader.bytes("blockalign")? {
        Some(align) if random && BLOCK_BYTES.contains(&align) => Some(align as u32),
        Some(_) => {
            let what = "blockalign is for random jobs, and from 512 to 64m";
            return Err(reader.refuse(
                "blockalign",
                what,
                "leave it out, or write rw=randread, for example, and a size in that range",
            ));
        }
        // fio's default: the smallest block, so that a large one begins where a small one might.
        None if random && sizes.len() > 1 => sizes.iter().map(|(size, _)| *size).min(),
        None => None,
    };
    Ok(Blocks { sizes, align })
}

fn block(reader: &Reader<'_>, name: &str, word: &str) -> Result<u32, JobError> {
    let bytes = reader.size(name, word)?;
    if bytes.is_multiple_of(512) && BLOCK_BYTES.contains(&bytes) {
        return Ok(bytes as u32);
    }
    let what = format!("a block of {} does not work here", shown(word));
    Err(reader.refuse(name, what, "choose a multiple of 512 from 512 to 64m"))
}

/// Reads `4k-64k`: the multiples of the smallest, each as likely as another.
fn range(reader: &Reader<'_>, text: &str) -> Result<Vec<(u32, u32)>, JobError> {
    let next = "write it like 4k-64k, with sizes that are multiples of the first one";
    let refuse = |what: String| reader.refuse("bsrange", what, next);
    let (low, high) = text
        .split_once('-')
        .ok_or_else(|| refuse(format!("bsrange={} is no range", shown(text))))?;
    let (low, high) = (
        block(reader, "bsrange", low)?,
        block(reader, "bsrange", high)?,
    );
    if high < low || !high.is_multiple_of(low) {
        return Err(refuse(format!("bsrange={} does not fit", shown(text))));
    }
    if u64::from(high / low) > SIZES_MAX {
        let what = format!("bsrange={} has more than {SIZES_MAX} sizes", shown(text));
        let next = "write the sizes and their shares: bssplit=4k/50:64k/50";
        return Err(reader.refuse("bsrange", what, next));
    }
    Ok((1..=high / low).map(|times| (low * times, 1)).collect())
}

/// Reads `4k/60:64k/40`; who has no share has an even part of what is left.
fn weights(reader: &Reader<'_>, text: &str) -> Result<Vec<(u32, u32)>, JobError> {
    let mut sizes = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let size = block(reader, "bssplit", size)?;
        let share = match share.trim_end_matches('%') {
            "" => None,
            word => Some(
                value::count(word)
                    .filter(|share| *share <= 100)
                    .ok_or_else(|| {
                        let what =
                            format!("bssplit={}: \"{}\" is no share", shown(text), shown(word));
                        reader.refuse("bssplit", what, "write percent: 4k/60:64k/40")
                    })?,
            ),
        };
        sizes.push((size, share));
    }
    let said: u64 = sizes.iter().filter_map(|(_, share)| *share).sum();
    let open = sizes.iter().filter(|(_, share)| share.is_none()).count() as u64;
    if said > 100 || (said < 100 && open == 0) || (said == 100 && open > 0) || open > 100 {
        let what = format!(
            "the shares of bssplit={} do not make 100 percent",
            shown(text)
        );
        return Err(reader.refuse("bssplit", what, "write percent: 4k/60:64k/40"));
    }
    // In parts of a percent, so that the rest divides evenly.
    let parts = open.max(1);
    let weight = |share: Option<u64>| match share {
        Some(share) => share * parts,
        None => 100 - said,
    };
    let weighed = sizes
        .into_iter()
        .map(|(size, share)| (size, weight(share) as u32));
    let mut all: Vec<(u32, u32)> = weighed.filter(|(_, weight)| *weight > 0).collect();
    all.sort_unstable();
    Ok(all)
}

/// Refuses blocks that cannot come once each.
pub(super) fn check_blocks(
    reader: &Reader<'_>,
    access: Access,
    sizes: &[(u32, u32)],
    align: Option<u32>,
) -> Result<(), JobError> {
    if access == Access::Once && align.is_some() {
        let what = "with blockalign, blocks that come once each would overlap";
        return Err(reader.refuse("blockalign", what, "write norandommap as well"));
    }
    if matches!(access, Access::InTurn(_)) && sizes.len() > 1 {
        let what = "blocks of several sizes of several files in turn are not supported";
        let next = "write file_service_type=sequential, or one block size";
        return Err(reader.refuse("file_service_type", what, next));
    }
    let unit = align.unwrap_or(1).max(1);
    if access == Access::Covering && !sizes.iter().all(|(size, _)| size.is_multiple_of(unit)) {
        let what = format!("blocks that come once each are multiples of the smallest, {unit}");
        let next = "write such sizes, or norandommap";
        return Err(reader.refuse("bssplit", what, next));
    }
    Ok(())
}

/// Reads which files a job works on.
pub(super) fn layout(
    reader: &Reader<'_>,
    access: Access,
    engine: Engine,
) -> Result<JobLayout, JobError> {
    // No more are open than descriptors are there for; names need none.
    let most = if engine.is_names() { NAMES } else { MANY };
    let asked = reader.count_in("nrfiles", 1..=most)?;
    let files = files(reader, asked)?;
    let count = match &files {
        JobFiles::Named(names) => names.len() as u32,
        JobFiles::Pattern(_) => asked.unwrap_or(1) as u32,
    };
    let access = if count > 1 {
        service(reader, access)?
    } else {
        access
    };
    opened(reader, engine, u64::from(count))?;
    let file_bytes = reader.bytes("filesize")?;
    if file_bytes == Some(0) {
        return Err(reader.refuse(
            "filesize",
            "filesize=0 measures nothing",
            "write a size: 64m",
        ));
    }
    let directories = reader.text("directory").map(parts).unwrap_or_default();
    Ok(JobLayout {
        access,
        files,
        count,
        directories,
        file_bytes,
    })
}

/// Reads where the files begin for the job.
pub(super) fn offset(reader: &Reader<'_>, count: u32) -> Result<Offset, JobError> {
    let start = |name: &str| match reader.text(name) {
        // fio's default, which a size must not be.
        None | Some("0" | "0%") => Ok(None),
        Some(_) => reader.extent(name),
    };
    let offset = Offset {
        first: start("offset")?,
        increment: start("offset_increment")?,
        align: reader.bytes("offset_align")?.unwrap_or(0),
    };
    for (name, part) in [
        ("offset", offset.first),
        ("offset_increment", offset.increment),
    ] {
        match part {
            Some(Extent::Bytes(bytes)) if !bytes.is_multiple_of(*BLOCK_BYTES.start()) => {
                let what = format!("{name} is no multiple of 512");
                return Err(reader.refuse(name, what, "write a multiple of 512"));
            }
            Some(Extent::Percent(_)) if count > 1 => {
                let what = format!("{name} in percent of several files is not supported");
                return Err(reader.refuse(name, what, "write bytes"));
            }
            _ => {}
        }
    }
    Ok(offset)
}

fn files(reader: &Reader<'_>, asked: Option<u64>) -> Result<JobFiles, JobError> {
    if let Some(text) = reader.text("filename") {
        if reader.times("filename") > 1 {
            let what = "filename is given more than once, and fio would use all of them";
            return Err(reader.refuse("filename", what, "write it once: filename=one:other"));
        }
        let names = parts(text);
        // "-" is standard input or output to fio, which no phase can seek in.
        if names.is_empty() || names.iter().any(|name| name == "-") {
            let what = format!("filename={} names no file", shown(text));
            return Err(reader.refuse("filename", what, "write a path, or leave it out"));
        }
        if names.len() as u64 > MANY || asked.is_some_and(|asked| asked != names.len() as u64) {
            let what = format!(
                "filename lists {}, and nrfiles another number",
                unit::counted(names.len(), "file")
            );
            return Err(reader.refuse("nrfiles", what, "leave nrfiles out"));
        }
        return Ok(JobFiles::Named(names));
    }
    let pattern = reader.text("filename_format").unwrap_or(PATTERN);
    // Any other "$" is a variable of fio that would end up in the name as it stands.
    let rest = ["$jobname", "$jobnum", "$filenum"]
        .iter()
        .fold(pattern.to_owned(), |rest, word| rest.replace(word, ""));
    if rest.contains('$') || pattern.is_empty() {
        let what = format!("filename_format={} is not understood", shown(pattern));
        let next = "write it with $jobname, $jobnum and $filenum alone";
        return Err(reader.refuse("filename_format", what, next));
    }
    if !pattern.contains("$filenum") && asked.is_some_and(|asked| asked > 1) {
        let what = "filename_format without $filenum, for several files";
        return Err(reader.refuse(
            "filename_format",
            what,
            "write $filenum in it, or nrfiles=1",
        ));
    }
    Ok(JobFiles::Pattern(pattern.to_owned()))
}

/// Refuses files that are opened in a way no phase keeps.
fn opened(reader: &Reader<'_>, engine: Engine, count: u64) -> Result<(), JobError> {
    let open = reader.count_in("openfiles", 1..=u64::MAX)?;
    if open.is_some_and(|open| open < count) && !engine.is_names() {
        let what = "openfiles below the number of files is not supported";
        return Err(reader.refuse(
            "openfiles",
            what,
            "leave it out: all files are opened before",
        ));
    }
    let late = reader.flag("create_on_open")?.unwrap_or(false);
    if late && engine != Engine::Names(NameCall::Create) {
        let what = "create_on_open is not supported: files are made before the clock starts";
        return Err(reader.refuse(
            "create_on_open",
            what,
            "leave it out, or write ioengine=filecreate",
        ));
    }
    Ok(())
}

/// The order of a job over several files.
fn service(reader: &Reader<'_>, access: Access) -> Result<Access, JobError> {
    let name = "file_service_type";
    let said = reader.text(name).unwrap_or("roundrobin");
    let (order, blocks) = match said.split_once(':') {
        Some((order, blocks)) => (order, value::count(blocks)),
        None => (said, Some(1)),
    };
    let blocks = blocks
        .and_then(|blocks| u32::try_from(blocks).ok())
        .filter(|it| *it > 0);
    let unknown = |next: &str| {
        let what = format!(
            "file_service_type={} of this job is not supported",
            shown(said)
        );
        reader.refuse(name, what, next)
    };
    match (access, order, blocks) {
        (Access::Sequential, "sequential", _) => Ok(access),
        (Access::Sequential, "roundrobin", Some(blocks)) => Ok(Access::InTurn(blocks)),
        (Access::Sequential, ..) => Err(unknown("choose among: sequential, roundrobin")),
        (Access::Once | Access::Uniform | Access::Covering, "random" | "roundrobin", Some(_)) => {
            Ok(access)
        }
        (Access::Once | Access::Uniform | Access::Covering, ..) => {
            Err(unknown("choose among: random, roundrobin"))
        }
        (Access::Gap(_) | Access::Strided(_), ..) => Err(reader.refuse(
            "nrfiles",
            "gaps and zones over several files are not supported",
            "write one file",
        )),
        _ => Err(reader.refuse(
            "random_distribution",
            "fio skews the access within each file, and here it is within all of them together",
            "write one file",
        )),
    }
}

/// The parts of a list with `:` between them; `\:` is a colon.
fn parts(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&':') => {
                letters.next();
                if let Some(last) = all.last_mut() {
                    last.push(':');
                }
            }
            ':' => all.push(String::new()),
            letter => {
                if let Some(last) = all.last_mut() {
                    last.push(letter);
                }
            }
        }
    }
    all.retain(|part| !part.is_empty());
    all
}
