//! Which files a job has, and which blocks of them it visits in which order.

use super::super::language::shown;
use super::super::place::JobError;
use super::super::value;
use super::read::Reader;
use super::resolved::{Access, JobFiles, MANY};

/// What the files of a job are called unless told otherwise.
const PATTERN: &str = "$jobname.$jobnum.$filenum";
/// Smallest and largest block, bytes.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 512..=64 << 20;
/// Sizes of one job at most.
const SIZES_MAX: u64 = 256;
/// Parameters of the distributions unless given.
const ZIPF: f64 = 1.1;
const PARETO: f64 = 0.2;

/// The files of a job: names, sizes, number.
pub(super) struct JobLayout {
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

/// Which blocks: of one size, or of several.
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

/// `4k-64k`: the multiples of the smallest, each as likely as another.
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

/// `4k/60:64k/40`; who has no share has an even part of what is left.
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

/// The order in which blocks are visited.
pub(super) fn access(reader: &Reader<'_>, random: bool) -> Result<Access, JobError> {
    let word = reader.text("random_distribution").unwrap_or("random");
    if !random {
        return Ok(Access::Sequential);
    }
    let (kind, parameter) = match word.split_once(':') {
        Some((kind, parameter)) => (kind, Some(parameter)),
        None => (word, None),
    };
    let number = |default: Option<f64>, most: f64| {
        let number = match parameter {
            Some(word) => word.parse::<f64>().ok(),
            None => default,
        };
        number.filter(|it| *it > 0.0 && *it < most).ok_or_else(|| {
            let what = format!("random_distribution={} is not understood", shown(word));
            let next = "write zipf:1.1, pareto:0.2 or normal:10, with one number";
            reader.refuse("random_distribution", what, next)
        })
    };
    Ok(match kind {
        "random" if reader.flag("norandommap")?.unwrap_or(false) => Access::Uniform,
        "random" => Access::Once,
        "zipf" => Access::Zipf(number(Some(ZIPF), 100.0)?),
        "pareto" => Access::Pareto(number(Some(PARETO), 1.0)?),
        // fio gives percent, the engine takes a share of the range. There is no default.
        "normal" => Access::Normal(number(None, 100.0)? / 100.0),
        _ => {
            let what = format!("random_distribution={} is not supported", shown(word));
            let next = "choose among: random, zipf:1.1, pareto:0.2, normal:10";
            return Err(reader.refuse("random_distribution", what, next));
        }
    })
}

/// Refuses blocks that cannot come once each.
pub(super) fn check_blocks(
    reader: &Reader<'_>,
    access: Access,
    sizes: &[(u32, u32)],
    align: Option<u32>,
) -> Result<(), JobError> {
    let name = if sizes.len() > 1 {
        "bssplit"
    } else {
        "blockalign"
    };
    if access == Access::Once && (sizes.len() > 1 || align.is_some()) {
        let what = format!("with {name}, blocks that come once each would overlap");
        return Err(reader.refuse(name, what, "write norandommap as well"));
    }
    Ok(())
}

/// Reads which files a job works on.
pub(super) fn layout(reader: &Reader<'_>, access: Access) -> Result<JobLayout, JobError> {
    let asked = reader.count_in("nrfiles", 1..=MANY)?;
    let files = files(reader, asked)?;
    let count = match &files {
        JobFiles::Named(names) => names.len() as u32,
        JobFiles::Pattern(_) => asked.unwrap_or(1) as u32,
    };
    if count > 1 {
        service(reader, access)?;
    }
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
        files,
        count,
        directories,
        file_bytes,
    })
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
                "filename lists {} file(s), and nrfiles another number",
                names.len()
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

/// Refuses an order of files that no phase keeps.
fn service(reader: &Reader<'_>, access: Access) -> Result<(), JobError> {
    let name = "file_service_type";
    let order = reader.text(name).unwrap_or("roundrobin");
    match (access, order) {
        (Access::Sequential, "sequential") => Ok(()),
        (Access::Sequential, _) => Err(reader.refuse(
            name,
            "a sequential job takes one file after the other here, and the first block of each \
             file in turn in fio",
            "write file_service_type=sequential, or nrfiles=1",
        )),
        (Access::Once | Access::Uniform, "random" | "roundrobin") => Ok(()),
        (Access::Once | Access::Uniform, _) => Err(reader.refuse(
            name,
            format!(
                "file_service_type={} of a random job is not supported",
                shown(order)
            ),
            "choose among: random, roundrobin",
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
