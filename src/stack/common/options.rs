//! The user's own words for `mkfs` and `mount`: what is refused, and whether they are in force.
//!
//! Such words go to the tools as they are, with two borders: none may name a device or a path,
//! because that could touch what is not ours, and none may turn a mount into something else.

use crate::event::Fact;
use crate::setting::{Refusal, SettingDoc, Settings};
use crate::unit;

/// The setting every file system has for words to its `mkfs`.
pub(crate) const MKFS: SettingDoc = SettingDoc::texts(
    "mkfs",
    "",
    "Words added to the mkfs command, as it takes them; none may name a device or a path.",
);

/// The setting every file system has for mount options.
pub(crate) const MOUNT: SettingDoc = SettingDoc::texts(
    "mount",
    "",
    "Mount options; those the system refuses are an error, those it does not show are reported.",
);

/// Options that make a mount something else than the file system just made.
const MOUNT_REFUSED: [&str; 7] = [
    "bind",
    "loop",
    "move",
    "rbind",
    "remount",
    "ro",
    "X-mount.mkdir",
];

/// Beginnings of words that name another device, even without a path.
const DEVICE_WORDS: [&str; 5] = [
    "device=",
    "logdev=",
    "rtdev=",
    "journal_dev=",
    "journal_path=",
];

/// Options in force that Linux does not show, because they are the default and have no opposite in
/// the table of mounts (mount(8), "filesystem-independent mount options").
const NOT_SHOWN: [&str; 14] = [
    "async",
    "atime",
    "auto",
    "defaults",
    "dev",
    "diratime",
    "exec",
    "loud",
    "nofail",
    "nolazytime",
    "nomand",
    "nouser",
    "strictatime",
    "suid",
];

/// The words for `mkfs`.
///
/// # Errors
/// A word that names a device or a path.
pub(crate) fn mkfs(settings: &Settings) -> Result<Vec<String>, Refusal> {
    let words = settings.optional_texts(MKFS.name)?.unwrap_or_default();
    match words.iter().find(|word| names_device(word)) {
        Some(word) => Err(Refusal::at(
            settings.span_of(MKFS.name),
            format!("\"{word}\" names a path or a device"),
            "leave it out: only the devices of this stack are formatted",
        )),
        None => Ok(words),
    }
}

/// The mount options, one each.
///
/// # Errors
/// An option that names a device or a path, or makes the mount something else.
pub(crate) fn mount(settings: &Settings) -> Result<Vec<String>, Refusal> {
    let options: Vec<String> = settings
        .optional_texts(MOUNT.name)?
        .unwrap_or_default()
        .iter()
        .flat_map(|text| text.split(','))
        .map(|option| option.trim().to_string())
        .filter(|option| !option.is_empty())
        .collect();
    let refused = |option: &&String| {
        names_device(option) || MOUNT_REFUSED.contains(&option.split('=').next().unwrap_or(option))
    };
    match options.iter().find(refused) {
        Some(option) => Err(Refusal::at(
            settings.span_of(MOUNT.name),
            format!("the mount option \"{option}\" would mount something else than this stack"),
            "leave it out",
        )),
        None => Ok(options),
    }
}

fn names_device(word: &str) -> bool {
    word.contains('/')
        || DEVICE_WORDS.iter().any(|beginning| {
            word.split(',')
                .any(|part| part.trim().starts_with(beginning))
        })
}

/// What was asked for and is not seen in the options in force, one fact each.
pub(crate) fn missing(asked: &[String], in_force: &[String]) -> Vec<Fact> {
    let fact = |text: String| Some(Fact::new("mount option not as asked", text));
    asked
        .iter()
        .filter_map(|option| match seen(option, in_force) {
            Seen::Yes => None,
            Seen::Other(other) => fact(format!("asked for {option}, the system shows {other}")),
            Seen::No => fact(format!(
                "asked for {option}, not shown in the options in force"
            )),
        })
        .collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Seen<'a> {
    Yes,
    Other(&'a str),
    No,
}

fn seen<'a>(option: &str, in_force: &'a [String]) -> Seen<'a> {
    let shown = |word: &str| in_force.iter().any(|other| other == word);
    if shown(option) || NOT_SHOWN.contains(&option) {
        return Seen::Yes;
    }
    let Some((key, value)) = option.split_once('=') else {
        return Seen::No;
    };
    // `barrier=1` is shown as `barrier`, `barrier=0` as `nobarrier`.
    if (value == "1" && shown(key)) || (value == "0" && shown(&format!("no{key}"))) {
        return Seen::Yes;
    }
    let other = in_force
        .iter()
        .find(|other| other.split_once('=').is_some_and(|(name, _)| name == key));
    match other.and_then(|other| other.split_once('=').map(|(_, shown)| (other, shown))) {
        None => Seen::No,
        Some((other, shown)) => {
            // `compress=zstd` is shown with the level it chose, `allocsize=1m` in other units.
            let same_amount = amount(value).is_some() && amount(value) == amount(shown);
            let chosen = shown
                .strip_prefix(value)
                .is_some_and(|rest| rest.starts_with(':'));
            if same_amount || chosen {
                Seen::Yes
            } else {
                Seen::Other(other)
            }
        }
    }
}

/// An amount the way the kernel's option parsers write it: `65536k`, `1m`, `4096`.
fn amount(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let (number, unit) = match text.char_indices().next_back()? {
        (at, 'k') => (&text[..at], " KiB"),
        (at, 'm') => (&text[..at], " MiB"),
        (at, 'g') => (&text[..at], " GiB"),
        _ => (text.as_str(), " B"),
    };
    number.parse::<u64>().ok()?;
    unit::parse_bytes(&format!("{number}{unit}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(',').map(str::to_string).collect()
    }

    #[test]
    fn what_is_in_force_under_another_spelling_is_found() {
        let xfs = words("rw,noatime,inode64,allocsize=1024k,logbufs=8,logbsize=256k");
        assert_eq!(
            missing(&words("noatime,allocsize=1m,logbsize=262144"), &xfs),
            []
        );
        let btrfs = words("rw,relatime,compress=zstd:3,space_cache=v2");
        assert_eq!(missing(&words("compress=zstd,defaults"), &btrfs), []);
        let ext4 = words("rw,nobarrier,commit=5,delalloc");
        assert_eq!(missing(&words("barrier=0,delalloc,commit=5"), &ext4), []);
    }

    #[test]
    fn what_is_not_in_force_is_said() {
        let shown = words("rw,commit=5,compress=zstd:3");
        let facts = missing(&words("commit=30,discard,compress=zstd:1"), &shown);
        let texts: Vec<&str> = facts.iter().map(|fact| fact.value.as_str()).collect();
        assert_eq!(
            texts,
            [
                "asked for commit=30, the system shows commit=5",
                "asked for discard, not shown in the options in force",
                "asked for compress=zstd:1, the system shows compress=zstd:3",
            ]
        );
    }
}
