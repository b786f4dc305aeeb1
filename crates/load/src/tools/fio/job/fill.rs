//! What a job writes, how that is checked, and what its files are before.

use super::super::language::shown;
use super::super::place::JobError;
use super::files::JobLayout;
use super::read::Reader;
use super::resolved::{Content, FileCare, JobFiles, Reserve};

/// Seed from which everything random follows unless a job says otherwise.
const SEED: u64 = 1;
/// Values of `verify`; the checksum is ours whichever of them it is.
const CHECKSUMS: [&str; 18] = [
    "md5",
    "crc16",
    "crc32",
    "crc32c",
    "crc32c-intel",
    "crc64",
    "crc7",
    "sha256",
    "sha512",
    "sha1",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "header",
    "1",
];

pub(super) fn content(reader: &Reader<'_>) -> Result<Content, JobError> {
    let compress = reader.percent("buffer_compress_percentage")?.unwrap_or(0);
    let duplicates = reader.percent("dedupe_percentage")?.unwrap_or(0);
    if reader.flag("zero_buffers")?.unwrap_or(false) {
        if compress > 0 || duplicates > 0 {
            let what =
                "zero_buffers and a percentage exclude each other: zeros compress completely";
            return Err(reader.refuse("zero_buffers", what, "leave it out, or the percentages"));
        }
        return Ok(Content::Zero);
    }
    if compress == 100 {
        let what = "buffer_compress_percentage=100 leaves nothing";
        return Err(reader.refuse("buffer_compress_percentage", what, "write zero_buffers"));
    }
    // Random data has nothing to be refilled: no block is written twice.
    reader.flag("refill_buffers")?;
    Ok(Content::Random {
        // fio says how much goes away, the engine the size before over the size after: 50 % is a
        // ratio of 2.
        ratio: 100.0 / (100 - compress) as f64,
        duplicates: duplicates as f64 / 100.0,
    })
}

/// Reads what becomes of the files before and afterwards.
pub(super) fn care(reader: &Reader<'_>) -> Result<FileCare, JobError> {
    Ok(FileCare {
        reserve: reserve(reader)?,
        overwrite: reader.flag("overwrite")?.unwrap_or(false),
        advise: reader.flag("fadvise_hint")?.unwrap_or(true),
        invalidate: reader.flag("invalidate")?.unwrap_or(true),
        unlink: reader.flag("unlink")?.unwrap_or(false),
    })
}

fn reserve(reader: &Reader<'_>) -> Result<Reserve, JobError> {
    Ok(match reader.text("fallocate") {
        None | Some("native") => Reserve::IfPossible,
        Some("posix" | "1") => Reserve::Blocks,
        Some("truncate") => Reserve::Size,
        Some("none" | "0") => Reserve::Nothing,
        Some(word) => {
            let what = format!("fallocate={} is not supported", shown(word));
            let next = "choose among: native, posix, truncate, none";
            return Err(reader.refuse("fallocate", what, next));
        }
    })
}

/// Reads the seed from which everything random follows.
pub(super) fn seed(reader: &Reader<'_>) -> Result<Option<u64>, JobError> {
    let repeats = [reader.flag("randrepeat")?, reader.flag("allrandrepeat")?];
    let seed = reader.count_in("randseed", 0..=u64::MAX)?;
    Ok(match (seed, repeats) {
        (Some(seed), _) => Some(seed),
        // Either of the two asks for a repeatable sequence; randrepeat does unless it is switched
        // off.
        (None, [Some(false), None | Some(false)] | [None, Some(false)]) => None,
        _ => Some(SEED),
    })
}

/// Reads whether reads are checked, and everything is read back in the end.
pub(super) fn verify(
    reader: &Reader<'_>,
    read_share: f64,
    content: Content,
    layout: &JobLayout,
    clones: u32,
    notes: &mut Vec<String>,
) -> Result<(bool, bool), JobError> {
    let read_back = reader.flag("do_verify")?.unwrap_or(true);
    let fatal = reader.flag("verify_fatal")?;
    let checked = verify_details(reader)?;
    let Some(word) = reader.text("verify").filter(|word| *word != "0") else {
        return Ok((false, false));
    };
    let refuse = |name: &str, what: &str, next: &str| Err(reader.refuse(name, what, next));
    if !CHECKSUMS.contains(&word) {
        let what = format!("verify={} is not supported", shown(word));
        return refuse("verify", &what, "write verify=crc32c");
    }
    if read_share == 1.0 {
        let what = "a job that only reads cannot verify: it does not know what was written";
        return refuse("verify", what, "verify in the job that writes");
    }
    if fatal == Some(false) {
        let what = "verify_fatal=0 is not supported";
        return refuse(
            "verify_fatal",
            what,
            "leave it out: a job ends at the first wrong block",
        );
    }
    if clones > 1 && matches!(layout.files, JobFiles::Named(_)) {
        let what = "verify is not supported where several clones write the same file";
        return refuse("verify", what, "leave filename out, or write numjobs=1");
    }
    match content {
        Content::Zero => refuse(
            "zero_buffers",
            "zeros cannot be verified: they are all alike",
            "leave out zero_buffers or verify",
        ),
        Content::Random { duplicates, .. } if duplicates > 0.0 => refuse(
            "dedupe_percentage",
            "duplicates cannot be verified: every block has to be its own",
            "leave out dedupe_percentage or verify",
        ),
        Content::Random { .. } => {
            // Reads of the null engine return whatever is in the buffer.
            if reader.text("ioengine") == Some("null") {
                return refuse(
                    "verify",
                    "the null engine keeps nothing",
                    "leave out verify",
                );
            }
            notes.push(format!(
                "verify={word}: each 512 bytes carry file, offset, generation and a checksum of our own"
            ));
            notes.extend(checked);
            Ok((true, read_back))
        }
    }
}

/// Reads how a check is made, and returns notes on it, as far as the check of our own has it.
fn verify_details(reader: &Reader<'_>) -> Result<Vec<String>, JobError> {
    let mut notes = Vec::new();
    if reader
        .count_in("verify_async", 0..=1024)?
        .is_some_and(|threads| threads > 0)
    {
        notes.push("verify_async: the thread that reads checks what it read".to_owned());
    }
    if reader.bytes("verify_interval")?.is_some() {
        notes.push("verify_interval: every 512 bytes are checked by themselves".to_owned());
    }
    if reader.flag("verify_dump")?.unwrap_or(false) {
        notes.push("verify_dump: a wrong block is named, and not written to a file".to_owned());
    }
    Ok(notes)
}
