//! What the ZFS of a machine can set at all: asked before anything is made.
//!
//! `zfs get` and `zpool get` without anything to get list every property of that ZFS with its values, on every
//! system and without a pool (zfs(8), "The following properties are supported").

use stackrace_foundation::foundation::{Danger, Inspection, LayerError};

/// Values that ZFS takes and does not list.
const UNLISTED: &[(&str, &str)] = &[("checksum", "noparity")];

/// A property that a ZFS has.
#[derive(Debug, PartialEq, Eq)]
struct Supported<'a> {
    name: &'a str,
    /// As listed: `on | off | lz4`, `<size>`, `512 to 1M, power of 2`.
    values: &'a str,
}

/// What of `asked` the ZFS of this machine does not have, by its `tool`, `zfs` or `zpool`. A machine that lists
/// nothing has its say when the property is set.
pub(crate) fn impossible(
    machine: &Inspection<'_>,
    tool: &str,
    asked: &[(String, String)],
) -> Vec<Danger> {
    if asked.is_empty() {
        return Vec::new();
    }
    let text = machine.told(&[tool, "get"]);
    let known = listed(&text);
    if known.is_empty() {
        return Vec::new();
    }
    let refused = |(name, value): &(String, String)| refusal(&known, name, value);
    asked
        .iter()
        .filter_map(refused)
        .map(Danger::Refused)
        .collect()
}

/// The rows below the head `PROPERTY EDIT …`: a name, one or two of YES and NO, and the values.
fn listed(text: &str) -> Vec<Supported<'_>> {
    let lines = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("PROPERTY"));
    let row = |line| {
        let (name, rest) = word(line)?;
        let (edit, mut values) = word(rest)?;
        if !["YES", "NO"].contains(&edit) {
            return None;
        }
        if let Some(("YES" | "NO", after)) = word(values) {
            values = after;
        }
        Some(Supported {
            name,
            values: values.trim(),
        })
    };
    lines.filter_map(row).collect()
}

/// The first word of a line, and what follows it.
fn word(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    (end > 0).then(|| line.split_at(end))
}

fn refusal(known: &[Supported<'_>], name: &str, value: &str) -> Option<LayerError> {
    // `feature@...` stands for all features.
    let is_it = |one: &&Supported<'_>| match one.name.strip_suffix("...") {
        Some(beginning) => name.starts_with(beginning),
        None => one.name == name,
    };
    let Some(property) = known.iter().find(is_it) else {
        return Some(LayerError::refused(
            format!("the ZFS of this machine has no property {name}"),
            format!("leave {name} out, or use a newer ZFS"),
        ));
    };
    let fits = property
        .values
        .split('|')
        .any(|one| takes(one.trim(), value));
    (!fits && !UNLISTED.contains(&(name, value))).then(|| {
        LayerError::refused(
            format!("the ZFS of this machine cannot set {name} to {value}"),
            format!("write one of: {}", property.values.replace(" | ", ", ")),
        )
    })
}

/// True if a value is the listed one, or may be: of `gzip-[1-9]` and `sha256[,verify]` only the beginning is
/// compared, and `<size>` or `512 to 1M, power of 2` are no words.
fn takes(listed: &str, value: &str) -> bool {
    let is_free = listed.starts_with('<') || listed.contains(char::is_whitespace);
    match listed.split_once('[') {
        Some((beginning, _)) => value.starts_with(beginning),
        None => is_free || listed == value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OpenZFS 0.8 prints it, cut.
    const OLD: &str = "missing property argument\nusage:\n\tget [-rHp] [-d max] ...\n\nThe following properties are supported:\n\n\tPROPERTY       EDIT  INHERIT   VALUES\n\n\tavailable        NO       NO   <size>\n\tchecksum        YES      YES   on | off | fletcher2 | fletcher4 | sha256 | sha512 | skein | edonr\n\tcompression     YES      YES   on | off | lzjb | gzip | gzip-[1-9] | zle | lz4\n\tdedup           YES      YES   on | off | verify | sha256[,verify] | sha512[,verify]\n\trecordsize      YES      YES   512 to 1M, power of 2\n\tcopies          YES      YES   1 | 2 | 3\n\tquota           YES       NO   <size> | none\n";
    const POOL: &str = "usage:\n\tget [-Hp] ...\n\nThe following properties are supported:\n\n\tPROPERTY             EDIT   VALUES\n\n\tallocated            NO     <size>\n\tashift               YES    <ashift, 9-16, or 0=default>\n\tautoexpand           YES    on | off\n\tfeature@...          YES    disabled | enabled | active\n";

    fn said(text: &str, name: &str, value: &str) -> Option<String> {
        let error = refusal(&listed(text), name, value)?;
        Some(format!("{error}; {}", error.next()))
    }

    #[test]
    fn what_this_zfs_lists_is_possible() {
        for (name, value) in [
            ("checksum", "sha256"),
            ("checksum", "noparity"),
            ("compression", "gzip-9"),
            ("dedup", "sha256"),
            ("recordsize", "131072"),
            ("copies", "2"),
            ("quota", "1G"),
        ] {
            assert_eq!(said(OLD, name, value), None, "{name}={value}");
        }
        assert_eq!(said(POOL, "feature@blake3", "disabled"), None);
        assert_eq!(said(POOL, "autoexpand", "on"), None);
    }

    #[test]
    fn what_this_zfs_does_not_list_is_named_with_what_it_has() {
        assert_eq!(
            said(OLD, "checksum", "blake3").unwrap(),
            "the ZFS of this machine cannot set checksum to blake3; write one of: on, off, fletcher2, fletcher4, sha256, sha512, skein, edonr"
        );
        assert_eq!(
            said(OLD, "special_small_blocks", "0").unwrap(),
            "the ZFS of this machine has no property special_small_blocks; leave special_small_blocks out, or use a newer ZFS"
        );
        assert!(said(OLD, "compression", "zstd").is_some());
        assert!(said(POOL, "autotrim", "on").is_some());
    }

    #[test]
    fn a_machine_that_lists_nothing_has_no_say_before() {
        assert_eq!(listed("The ZFS modules are not loaded.\n"), []);
    }
}
