//! The options of bonnie++ 2.00 and 1.03, read as those programs read them.

use std::path::PathBuf;

use stackrace_engine::bonnie::{BonnieVersion, CHUNK, FileKind, SEEKS};
use stackrace_engine::spec::Content;

use super::report::TOO_FAST_NS;
use super::workload::{CHUNKS, DIRECTORIES_MAX, FILES_MAX};

/// Options as the user gives them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BonnieOptions {
    pub(super) version: BonnieVersion,
    /// `-d`: the directory where the files are made.
    pub(super) directory: PathBuf,
    /// `-s`, MiB; `None` means what suits the memory.
    pub(super) size_mib: Option<u64>,
    pub(super) chunk: usize,
    pub(super) seeks: u32,
    pub(super) seekers: u32,
    /// `-n`: the number of files, in units of 1024.
    pub(super) files: u64,
    pub(super) made: FileKind,
    pub(super) directories: u32,
    pub(super) file_chunk: usize,
    /// `-r`, MiB; 0 means no checks, `None` the machine's memory.
    pub(super) ram_mib: Option<u64>,
    /// `-m`; `None` means the machine's name.
    pub(super) name: Option<String>,
    /// `-u` before its colon: the user.
    pub(super) user: Option<String>,
    /// `-u` behind its colon, or `-g`: the group.
    pub(super) group: Option<String>,
    /// `-x`: only CSV, so many times.
    pub(super) runs: Option<u32>,
    /// `-f`, MiB of characters; 0 means none, `None` the usual amount.
    pub(super) characters_mib: Option<u64>,
    /// `-b`: fsync after each file, directory and updating seek.
    pub(super) fsync: bool,
    /// `-q`: no progress, and the table on standard error.
    pub(super) quiet: bool,
    /// `-D`: direct I/O where data files are created.
    pub(super) direct: bool,
    /// `-z`: the seed; `None` means a random one.
    pub(super) seed: Option<u64>,
    /// `-c`: a label, and a factor in the check of the size.
    pub(super) concurrency: u32,
    /// `--too-fast`: phases shorter than this show no rate, ns.
    pub(super) too_fast_ns: u64,
    /// `--content`: what data blocks hold.
    pub(super) content: Content,
}

impl BonnieOptions {
    fn new(version: BonnieVersion) -> BonnieOptions {
        BonnieOptions {
            version,
            directory: PathBuf::from("."),
            size_mib: None,
            chunk: CHUNK,
            seeks: SEEKS,
            seekers: version.seekers(),
            files: 16,
            made: FileKind::Files { min: 0, max: 0 },
            directories: 1,
            file_chunk: CHUNK,
            ram_mib: None,
            name: None,
            user: None,
            group: None,
            runs: None,
            characters_mib: None,
            fsync: false,
            quiet: false,
            direct: false,
            seed: None,
            concurrency: 1,
            too_fast_ns: TOO_FAST_NS,
            content: Content::Zero,
        }
    }
}

/// Letters of an option that takes a word, and of one that takes a word only where it is attached.
const WORD_1_03: &str = "dgmnprsux";
const WORD_2_00: &str = "cdgmnprsuxyzZ";

/// Reads the words behind the command's name.
///
/// # Errors
/// What is wrong with them, a sentence.
pub(super) fn read(words: &[String]) -> Result<BonnieOptions, String> {
    let (long, words): (Vec<_>, Vec<_>) = long_options(words)?;
    // First of all, wherever it stands: it decides which letters take a word.
    let mut version = BonnieVersion::V2_00;
    if let Some((_, word)) = long.iter().find(|(name, _)| *name == "version") {
        version = match word.as_str() {
            "1.03" | "1.03e" => BonnieVersion::V1_03,
            "2.00" | "2.00a" => BonnieVersion::V2_00,
            _ => return Err(format!("--version {word}: it is 1.03 or 2.00")),
        };
    }
    let mut options = BonnieOptions::new(version);
    for (name, word) in &long {
        options.take_long(name, word)?;
    }
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some(mut letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return Err(format!("\"{word}\" is no option"));
        };
        // Letters may stand together; what follows one that takes a word is that word.
        while let Some(letter) = letters.chars().next() {
            letters = &letters[letter.len_utf8()..];
            if options.takes_word(letter) {
                let attached = std::mem::take(&mut letters);
                let value = match attached {
                    "" => words.next().ok_or(format!("-{letter} needs a value"))?,
                    attached => attached.to_owned(),
                };
                options.take_word(letter, &value)?;
            // The value of -f is optional, so it must be attached: "-f 2" would be a word of its
            // own.
            } else if letter == 'f' && version == BonnieVersion::V2_00 && !letters.is_empty() {
                options.characters_mib = Some(number("-f", std::mem::take(&mut letters))?);
            } else {
                options.take_flag(letter)?;
            }
        }
    }
    options.check()?;
    Ok(options)
}

/// Long options with their words, and what is left.
type Sorted = (Vec<(&'static str, String)>, Vec<String>);

/// Our own options, which stand anywhere: the originals have none of two dashes.
fn long_options(words: &[String]) -> Result<Sorted, String> {
    const NAMES: [&str; 3] = ["version", "too-fast", "content"];
    let (mut long, mut rest) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--").filter(|name| !name.is_empty()) else {
            rest.push(word.clone());
            continue;
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        let Some(name) = NAMES.into_iter().find(|known| *known == name) else {
            return Err(format!("--{name} is no option"));
        };
        let value = value.or_else(|| words.next().cloned());
        long.push((name, value.ok_or(format!("--{name} needs a value"))?));
    }
    Ok((long, rest))
}

fn number(option: &str, text: &str) -> Result<u64, String> {
    // `parse` alone would take "+5".
    let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or(format!("{option} {text}: it takes a whole number"))
}

fn small(option: &str, text: &str) -> Result<u32, String> {
    let number = u32::try_from(number(option, text)?).ok();
    number.ok_or(format!("{option} {text}: that is too many"))
}

/// MiB, or GiB with a `g` behind it.
fn mib(option: &str, text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix(['g', 'G']) {
        Some(digits) => (digits, 1024),
        None => (text.strip_suffix(['m', 'M']).unwrap_or(text), 1),
    };
    let size = number(option, digits)?.checked_mul(factor);
    // Shifted to bytes later: 2^32 MiB are 2^52 bytes, which cannot overflow and no machine has.
    size.filter(|mib| *mib < 1 << 32)
        .ok_or(format!("{option} {text}: that is too much"))
}

/// Reads bytes, or KiB with a `k` behind them.
fn chunk(option: &str, text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (text, 1),
    };
    // What saturates lies outside `CHUNKS` and is refused with the rest.
    let bytes = number(option, digits)?.saturating_mul(factor);
    if !CHUNKS.contains(&bytes) || !bytes.is_power_of_two() {
        return Err(format!(
            "{option}: a chunk is a power of two from 256 bytes to 1024k, not {text}"
        ));
    }
    Ok(bytes as usize)
}

impl BonnieOptions {
    fn takes_word(&self, letter: char) -> bool {
        match self.version {
            BonnieVersion::V1_03 => WORD_1_03.contains(letter),
            BonnieVersion::V2_00 => WORD_2_00.contains(letter),
        }
    }

    fn take_long(&mut self, name: &str, word: &str) -> Result<(), String> {
        match (name, word) {
            ("content", "original") => self.content = Content::Zero,
            ("content", "random") => self.content = Content::Random,
            ("content", _) => return Err(format!("--content {word}: it is original or random")),
            ("too-fast", _) => {
                let seconds = word.parse::<f64>().ok();
                // Kept in ns: 1e9 s are 1e18, which 64 bits hold.
                let seconds = seconds.filter(|seconds| (0.0..1e9).contains(seconds));
                let seconds = seconds.ok_or(format!("--too-fast {word}: it takes seconds"))?;
                self.too_fast_ns = (seconds * 1e9) as u64;
            }
            _ => {}
        }
        Ok(())
    }

    fn take_flag(&mut self, letter: char) -> Result<(), String> {
        match letter {
            'b' => self.fsync = true,
            'D' => self.direct = true,
            'f' => self.characters_mib = Some(0),
            'q' => self.quiet = true,
            // In 1.03 -y stands alone; in 2.00 it takes a word and is refused there.
            'y' => return Err(together('y')),
            _ => return Err(format!("-{letter} is no option")),
        }
        Ok(())
    }

    fn take_word(&mut self, letter: char, word: &str) -> Result<(), String> {
        match letter {
            'c' => self.concurrency = small("-c", word)?.max(1),
            'd' => self.directory = PathBuf::from(word),
            'g' => self.group = Some(word.to_owned()),
            'm' => self.name = Some(word.to_owned()),
            'n' => self.take_files(word)?,
            'r' => self.ram_mib = Some(mib("-r", word)?),
            's' => self.take_size(word)?,
            'u' => {
                let (user, group) = match word.split_once(':') {
                    Some((user, group)) => (user, Some(group.to_owned())),
                    None => (word, None),
                };
                self.user = Some(user.to_owned());
                // -g may come before -u, and a user without a group must not undo it.
                self.group = group.or(self.group.take());
            }
            'x' => self.runs = Some(small("-x", word)?),
            'z' => self.seed = Some(number("-z", word)?),
            'Z' => {
                return Err(
                    "-Z: random numbers from a file are not read; -z takes a seed".to_owned(),
                );
            }
            letter => return Err(together(letter)),
        }
        Ok(())
    }

    /// Reads `size[:chunk[:seeks[:seekers]]]`. Empty parts are passed over, as in the original.
    fn take_size(&mut self, word: &str) -> Result<(), String> {
        let mut parts = word.split(':').filter(|part| !part.is_empty());
        self.size_mib = Some(mib("-s", parts.next().unwrap_or_default())?);
        if let Some(part) = parts.next() {
            self.chunk = chunk("-s", part)?;
            // 1.03 has one chunk: that of the data is also that of the small files.
            if self.version == BonnieVersion::V1_03 {
                self.file_chunk = self.chunk;
            }
        }
        if self.version == BonnieVersion::V2_00 {
            if let Some(part) = parts.next() {
                self.seeks = small("-s", part)?;
            }
            if let Some(part) = parts.next() {
                self.seekers = small("-s", part)?;
            }
        }
        match parts.next() {
            None => Ok(()),
            Some(part) => Err(format!("-s {word}: {part} is one part too many")),
        }
    }

    /// Reads `number[:max[:min[:directories[:chunk]]]]`; max -1 are hard links, -2 symbolic ones.
    fn take_files(&mut self, word: &str) -> Result<(), String> {
        let mut parts = word.split(':').filter(|part| !part.is_empty());
        self.files = number("-n", parts.next().unwrap_or_default())?;
        let max = parts.next().unwrap_or("0");
        let min = parts.next().map_or(Ok(0), |part| number("-n", part))?;
        self.made = match max {
            "-1" => FileKind::HardLinks,
            "-2" => FileKind::SymbolicLinks,
            max => FileKind::Files {
                min,
                max: number("-n", max)?,
            },
        };
        if let Some(part) = parts.next() {
            self.directories = small("-n", part)?;
        }
        if let Some(part) = parts
            .next()
            .filter(|_| self.version == BonnieVersion::V2_00)
        {
            self.file_chunk = chunk("-n", part)?;
        }
        match parts.next() {
            None => Ok(()),
            Some(part) => Err(format!("-n {word}: {part} is one part too many")),
        }
    }

    /// Refuses options that contradict each other or that no machine can carry out.
    fn check(&self) -> Result<(), String> {
        let wrong = |text: &str| Err(text.to_owned());
        if matches!(self.made, FileKind::Files { min, max } if min > max) {
            return wrong("-n: the smallest size is above the largest");
        }
        if !(1..=DIRECTORIES_MAX).contains(&self.directories) {
            return wrong("-n takes 1 to 99999 directories");
        }
        if self.made == FileKind::SymbolicLinks && self.directories > 1 {
            return wrong("-n: symbolic links into other directories would lead nowhere");
        }
        // 2^21 units of 1024 files: names number 2^31 at most.
        if self.files >= 1 << 21 {
            return wrong("-n: at most 2097151 times 1024 files can be named");
        }
        if self.size_mib == Some(0) && self.files == 0 {
            return wrong("-s 0 and -n 0 leave nothing to do");
        }
        if self.seeks == 0 || !(1..=4096).contains(&self.seekers) {
            return wrong("-s takes at least one seek, and 1 to 4096 seekers");
        }
        if self.version == BonnieVersion::V1_03
            && self.size_mib.is_some_and(|mib| mib > FILES_MAX * 1024)
        {
            return wrong("-s: 1.03 has at most 1000 files of 1 GiB");
        }
        // O_DIRECT takes whole blocks only (open(2)), so a write of one byte fails with EINVAL.
        let characters = self.characters_mib != Some(0) && self.size_mib != Some(0);
        if self.direct && characters && self.version == BonnieVersion::V2_00 {
            return wrong(
                "-D needs -f: characters are written one by one, which no direct I/O takes",
            );
        }
        let named = self.name.as_deref().unwrap_or_default();
        if named.contains(|c: char| c == ',' || c.is_control()) {
            return wrong("-m: a name with a comma or a control character breaks the CSV");
        }
        Ok(())
    }
}

/// Reason why an option that starts several processes together is refused.
fn together(letter: char) -> String {
    format!("-{letter}: several processes cannot be made to begin each phase together here")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<BonnieOptions, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words)
    }

    #[test]
    fn options_are_read_as_the_originals_read_them() {
        let usual = of("").unwrap();
        assert_eq!(
            (usual.version, usual.seekers, usual.files),
            (BonnieVersion::V2_00, 5, 16)
        );
        let all = of("-d /mnt -s 1g:64k:20000:8 -r 256 -n 4:8192:1024:5:4096 -f2 -m hostA -z 1 -c 2 -qbu root:disk -x3").unwrap();
        assert_eq!(
            (all.size_mib, all.chunk, all.seeks, all.seekers),
            (Some(1024), 65536, 20_000, 8)
        );
        assert_eq!(
            (all.files, all.made, all.directories, all.file_chunk),
            (
                4,
                FileKind::Files {
                    min: 1024,
                    max: 8192
                },
                5,
                4096
            )
        );
        assert_eq!(
            (all.characters_mib, all.seed, all.concurrency, all.runs),
            (Some(2), Some(1), 2, Some(3))
        );
        assert!(all.quiet && all.fsync && !all.direct);
        assert_eq!(
            (all.user.as_deref(), all.group.as_deref()),
            (Some("root"), Some("disk"))
        );
        assert_eq!(
            (
                of("-g disk -u root").unwrap().group.as_deref(),
                of("-f").unwrap().characters_mib
            ),
            (Some("disk"), Some(0))
        );
        // An empty part is passed over: 7 seeks, not 7 seekers.
        let short = of("-s 16:8k::7").unwrap();
        assert_eq!((short.seeks, short.seekers), (7, 5));
        let old = of("--version 1.03 -y -s 512:64k");
        assert!(old.unwrap_err().contains("-y"));
        let old = of("-fs 512:64k --version=1.03 -n 8:-1 --too-fast 0.1 --content random").unwrap();
        assert_eq!(
            (old.version, old.seekers, old.file_chunk),
            (BonnieVersion::V1_03, 3, 65536)
        );
        assert_eq!(
            (old.characters_mib, old.made, old.too_fast_ns),
            (Some(0), FileKind::HardLinks, 100_000_000)
        );
        assert_eq!(old.content, Content::Random);
    }

    #[test]
    fn impossible_options_are_refused_by_name() {
        for (line, name) in [
            ("-p 3", "-p"),
            ("-ys", "-y"),
            ("-Z /dev/random", "-Z"),
            ("-s 16:100", "-s"),
            ("-s 16:2m", "-s"),
            ("-s x", "-s"),
            ("-s 16:8k:0", "-s"),
            ("-n 1:10:20", "-n"),
            ("-n 1:10:5:0", "-n"),
            ("-n 1:-2:0:3", "-n"),
            ("-s 0 -n 0", "-s 0"),
            ("-f 2", "\"2\""),
            ("foo", "\"foo\""),
            ("-s", "-s"),
            ("-k", "-k"),
            ("--version 3", "--version"),
            ("--version 1.03 -c 2", "-c"),
            ("--version 1.03 -s 1:8k:5", "-s"),
            ("--frobnicate 1", "--frobnicate"),
            ("-D -s 16", "-D"),
            ("-m a,b", "-m"),
        ] {
            let error = of(line).unwrap_err();
            assert!(error.contains(name), "{line}: {error}");
        }
    }
}
