//! The words of a study for `mkfs` and `mount`: which there are, and whether they are in force.

use crate::foundation::words::{Allowed, OptionValue::Alone, Words, command_line, mount_options};
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;

/// The setting every file system has for words to its `mkfs`.
pub const MKFS: SettingDoc = SettingDoc::texts(
    "mkfs",
    "",
    "Words added to the mkfs command, as it takes them: those that docs/study.md lists.",
);

/// The setting every file system has for mount options.
pub const MOUNT: SettingDoc = SettingDoc::texts(
    "mount",
    "",
    "Mount options, those that docs/study.md lists; those the system refuses are an error, those it does not show are reported.",
);

/// mount(8), "filesystem-independent mount options", without those that hide what is mounted, let
/// other users in, or are carried out by a program.
const ANY_MOUNT: &[Allowed] = &[
    ("async", Alone),
    ("atime", Alone),
    ("defaults", Alone),
    ("dev", Alone),
    ("diratime", Alone),
    ("dirsync", Alone),
    ("exec", Alone),
    ("iversion", Alone),
    ("lazytime", Alone),
    ("mand", Alone),
    ("noatime", Alone),
    ("nodev", Alone),
    ("nodiratime", Alone),
    ("noexec", Alone),
    ("noiversion", Alone),
    ("nolazytime", Alone),
    ("nomand", Alone),
    ("norelatime", Alone),
    ("nostrictatime", Alone),
    ("nosuid", Alone),
    ("relatime", Alone),
    ("rw", Alone),
    ("strictatime", Alone),
    ("suid", Alone),
    ("sync", Alone),
];

/// [`ANY_MOUNT`] as a list.
pub const ANY: Words = Words {
    tool: "any mount",
    manual: "mount(8)",
    options: ANY_MOUNT,
};

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
/// A word that is not on the list.
pub fn mkfs(settings: &Settings, allowed: &Words) -> Result<Vec<String>, Refusal> {
    command_line(settings, MKFS.name, allowed)
}

/// The mount options, one each: those of the list, and those every file system has.
///
/// # Errors
/// An option that is on neither list.
pub fn mount(settings: &Settings, allowed: &Words) -> Result<Vec<String>, Refusal> {
    mount_options(settings, MOUNT.name, &[allowed, &ANY])
}

/// Options that were asked for and are not seen among those in force, one fact each.
pub fn missing(asked: &[String], in_force: &[String]) -> Vec<Fact> {
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
    // Defaults without an opposite are never in the table of mounts.
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
    // The kernel's k, m and g are powers of 1024.
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
