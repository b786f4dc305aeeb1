//! Properties of pools, datasets and volumes of ZFS: asked for, read back, compared.

use stackrace_base::event::Fact;
use stackrace_base::setting::{OverShell, Refusal, SettingDoc, Settings};
use stackrace_foundation::foundation::LayerError;
use stackrace_foundation::foundation::words::{
    OptionValue::{Amount, OneOf, Word},
    Words, pairs,
};
use stackrace_machine::host::{Host, Package, argv};
use std::ffi::OsString;
use std::path::Path;

/// The like of all of them, which the tools of a machine make by themselves.
pub(super) const OVER_SHELL: OverShell = OverShell::Nearest(
    "native = { file-system = \"zfs\", size = \"1 GiB\" }, or dir on a pool of yours",
);

/// Properties there is no setting for.
pub(crate) const PROPERTIES: SettingDoc = SettingDoc::texts(
    "properties",
    "",
    "Further properties, each \"name=value\": those that docs/study.md lists.",
);

/// Properties that datasets and volumes share, each a setting of the same name.
pub(super) const COMPRESSION: SettingDoc = SettingDoc::text(
    "compression",
    "",
    "off, on, lz4, zstd, zstd-1 to zstd-19, zstd-fast-N, gzip, gzip-1 to gzip-9, lzjb or zle; what ZFS chooses unless given.",
);
pub(super) const SYNC: SettingDoc = SettingDoc::choice(
    "sync",
    &["standard", "always", "disabled"],
    "",
    "Which writes wait until they are safe.",
);
pub(super) const PRIMARYCACHE: SettingDoc = SettingDoc::choice(
    "primarycache",
    &["all", "metadata", "none"],
    "",
    "What is cached in memory.",
);
pub(super) const LOGBIAS: SettingDoc = SettingDoc::choice(
    "logbias",
    &["latency", "throughput"],
    "",
    "What writes that wait are treated for.",
);
pub(super) const DEDUP: SettingDoc = SettingDoc::choice(
    "dedup",
    &["off", "on", "verify", "sha256", "sha512", "skein"],
    "",
    "Whether blocks that are the same are stored once.",
);

/// Words of the shared settings.
const SHARED: [&str; 5] = ["compression", "sync", "primarycache", "logbias", "dedup"];

/// zpoolprops(7) and zpool-features(7). Not on the list: files and mounts (`cachefile`, `altroot`,
/// `bootfs`), and what has a setting (`ashift`).
pub(super) const POOL: Words = Words {
    tool: "a pool of ZFS",
    manual: "zpoolprops(7)",
    options: &[
        ("autoexpand", OneOf(ON_OFF)),
        ("autoreplace", OneOf(ON_OFF)),
        ("autotrim", OneOf(ON_OFF)),
        ("compatibility", Word),
        ("dedup_table_quota", Word),
        ("dedupditto", Amount),
        ("delegation", OneOf(ON_OFF)),
        ("failmode", OneOf(&["wait", "continue", "panic"])),
        ("feature@allocation_classes", OneOf(FEATURE)),
        ("feature@async_destroy", OneOf(FEATURE)),
        ("feature@blake3", OneOf(FEATURE)),
        ("feature@block_cloning", OneOf(FEATURE)),
        ("feature@device_rebuild", OneOf(FEATURE)),
        ("feature@dynamic_gang_header", OneOf(FEATURE)),
        ("feature@edonr", OneOf(FEATURE)),
        ("feature@embedded_data", OneOf(FEATURE)),
        ("feature@empty_bpobj", OneOf(FEATURE)),
        ("feature@enabled_txg", OneOf(FEATURE)),
        ("feature@extensible_dataset", OneOf(FEATURE)),
        ("feature@fast_dedup", OneOf(FEATURE)),
        ("feature@hole_birth", OneOf(FEATURE)),
        ("feature@large_blocks", OneOf(FEATURE)),
        ("feature@large_dnode", OneOf(FEATURE)),
        ("feature@large_microzap", OneOf(FEATURE)),
        ("feature@livelist", OneOf(FEATURE)),
        ("feature@log_spacemap", OneOf(FEATURE)),
        ("feature@lz4_compress", OneOf(FEATURE)),
        ("feature@raidz_expansion", OneOf(FEATURE)),
        ("feature@sha512", OneOf(FEATURE)),
        ("feature@skein", OneOf(FEATURE)),
        ("feature@spacemap_histogram", OneOf(FEATURE)),
        ("feature@spacemap_v2", OneOf(FEATURE)),
        ("feature@zilsaxattr", OneOf(FEATURE)),
        ("feature@zstd_compress", OneOf(FEATURE)),
    ],
};

/// zfsprops(7). Not on the list: where something is mounted, shared or read from (`mountpoint`,
/// `sharenfs`, `keylocation`), encryption, and what has a setting.
pub(crate) const DATASET: Words = Words {
    tool: "a dataset or volume of ZFS",
    manual: "zfsprops(7)",
    options: &[
        ("aclinherit", Word),
        ("aclmode", Word),
        ("acltype", OneOf(&["off", "posix", "nfsv4"])),
        (
            "casesensitivity",
            OneOf(&["sensitive", "insensitive", "mixed"]),
        ),
        (
            "checksum",
            OneOf(&[
                "on",
                "off",
                "fletcher2",
                "fletcher4",
                "sha256",
                "noparity",
                "sha512",
                "skein",
                "edonr",
                "blake3",
            ]),
        ),
        ("copies", OneOf(&["1", "2", "3"])),
        ("devices", OneOf(ON_OFF)),
        ("direct", OneOf(&["disabled", "standard", "always"])),
        (
            "dnodesize",
            OneOf(&["legacy", "auto", "1k", "2k", "4k", "8k", "16k"]),
        ),
        ("exec", OneOf(ON_OFF)),
        ("normalization", Word),
        ("prefetch", OneOf(&["all", "none", "metadata"])),
        ("quota", Amount),
        (
            "redundant_metadata",
            OneOf(&["all", "most", "some", "none"]),
        ),
        ("refquota", Amount),
        ("refreservation", Word),
        ("relatime", OneOf(ON_OFF)),
        ("reservation", Amount),
        ("secondarycache", OneOf(&["all", "none", "metadata"])),
        ("setuid", OneOf(ON_OFF)),
        ("snapdev", OneOf(&["hidden", "visible"])),
        ("snapdir", OneOf(&["hidden", "visible"])),
        ("special_small_blocks", Amount),
        ("utf8only", OneOf(ON_OFF)),
        ("volthreading", OneOf(ON_OFF)),
    ],
};

/// Those of zfsprops(7) that have a setting in `dataset`, and none in `native`.
pub(crate) const NATIVE: Words = Words {
    tool: "ZFS in native",
    manual: "zfsprops(7)",
    options: &[
        ("atime", OneOf(ON_OFF)),
        ("compression", Word),
        (
            "dedup",
            OneOf(&["off", "on", "verify", "sha256", "sha512", "skein"]),
        ),
        ("logbias", OneOf(&["latency", "throughput"])),
        ("primarycache", OneOf(&["all", "metadata", "none"])),
        ("recordsize", Amount),
        ("sync", OneOf(&["standard", "always", "disabled"])),
        ("xattr", OneOf(&["on", "off", "sa", "dir"])),
    ],
};

const ON_OFF: &[&str] = &["on", "off"];

const FEATURE: &[&str] = &["enabled", "disabled"];

/// The package with all tools of ZFS.
pub(super) const PACKAGES: &[Package] = &[Package::new("zfsutils-linux", &["zpool", "zfs", "zdb"])];

/// Loads the module, which no command of ZFS does by itself. A ZFS in user space has none; where
/// there is no ZFS at all, the first command says so.
pub(super) fn load(host: &dyn Host) {
    // Ignored where it fails: a ZFS in user space has no module.
    if !host.exists(Path::new("/sys/module/zfs")) {
        let _ = host.exec(&argv(["modprobe", "zfs"]));
    }
}

/// A property as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Property {
    name: String,
    value: String,
    /// `local`, `default`, `inherited from …`, `-`.
    source: String,
}

/// Properties that the shared settings and `texts` ask for, in order; then `properties`.
///
/// # Errors
/// A compression ZFS does not have, a property that cannot be asked for.
pub(super) fn asked(
    settings: &Settings,
    texts: &[&str],
    bytes: &[&str],
) -> Result<Vec<(String, String)>, Refusal> {
    let mut asked = Vec::new();
    for name in SHARED.iter().chain(texts) {
        asked.extend(
            settings
                .optional_text(name)?
                .map(|value| ((*name).to_string(), value)),
        );
    }
    for name in bytes {
        let Some(value) = settings.optional_bytes(name)? else {
            continue;
        };
        // What any ZFS may take; whether this one does is read back.
        if !value.is_power_of_two() || !(512..=16 << 20).contains(&value) {
            return Err(Refusal::at(
                settings.span_of(name),
                format!("{name} cannot be {value} B"),
                "write a power of two from 512 B to 16 MiB, like \"128 KiB\"",
            ));
        }
        asked.push(((*name).to_string(), value.to_string()));
    }
    if let Some((_, word)) = asked.iter().find(|(name, _)| name == "compression")
        && !is_compression(word)
    {
        return Err(Refusal::at(
            settings.span_of("compression"),
            format!("ZFS has no compression \"{word}\""),
            "write off, on, lz4, zstd, zstd-1 to zstd-19, zstd-fast-N, gzip, gzip-1 to gzip-9, lzjb or zle",
        ));
    }
    asked.extend(properties(settings, &[&DATASET])?);
    Ok(asked)
}

fn is_compression(word: &str) -> bool {
    let level = |text: &str, levels: std::ops::RangeInclusive<u32>| {
        text.parse().is_ok_and(|level: u32| levels.contains(&level))
    };
    match word.split_once('-') {
        None => ["off", "on", "lz4", "zstd", "gzip", "lzjb", "zle"].contains(&word),
        Some(("gzip", text)) => level(text, 1..=9),
        // The same as zstd-fast-1 (zfsprops(7)).
        Some(("zstd", "fast")) => true,
        Some(("zstd", text)) => match text.strip_prefix("fast-") {
            Some(text) => level(text, 1..=1000),
            None => level(text, 1..=19),
        },
        Some(_) => false,
    }
}

/// The `properties` of a study, each split at its equals sign.
///
/// # Errors
/// One that is not on the list.
pub(crate) fn properties(
    settings: &Settings,
    allowed: &[&Words],
) -> Result<Vec<(String, String)>, Refusal> {
    pairs(settings, PROPERTIES.name, allowed)
}

/// The words `-o name=value` for `zfs create` and `zpool create`.
pub(crate) fn words(asked: &[(String, String)]) -> Vec<OsString> {
    let words = asked
        .iter()
        .flat_map(|(name, value)| ["-o".to_string(), format!("{name}={value}")]);
    argv(words)
}

/// `, name value` for the plan.
pub(crate) fn shown(asked: &[(String, String)]) -> String {
    asked
        .iter()
        .map(|(name, value)| format!(", {name} {value}"))
        .collect()
}

/// Reads every property of a dataset or volume back.
///
/// # Errors
/// When what was obtained is not what was asked for.
pub(crate) fn obtained(
    host: &dyn Host,
    name: &str,
    asked: &[(String, String)],
) -> Result<Vec<Fact>, LayerError> {
    // -H: tabs and no head; -p: exact numbers.
    let all = host.must(&argv(["zfs", "get", "-Hp", "all", name]))?;
    let found = lines(&all.stdout);
    check(name, asked, &found)?;
    Ok(facts(asked, &found))
}

/// Reads the output of `zfs get -Hp`: name, property, value, source between tabs.
pub(super) fn lines(text: &str) -> Vec<Property> {
    let property = |line: &str| {
        let mut words = line.split('\t').skip(1);
        Some(Property {
            name: words.next()?.to_string(),
            value: words.next()?.to_string(),
            source: words.next()?.to_string(),
        })
    };
    text.lines().filter_map(property).collect()
}

/// The table of `zpool get`: columns between blanks, under a head.
pub(super) fn table(text: &str) -> Vec<Property> {
    let property = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        Some(Property {
            name: words.next().filter(|name| *name != "PROPERTY")?.to_string(),
            value: words.next()?.to_string(),
            source: words.next()?.to_string(),
        })
    };
    text.lines().filter_map(property).collect()
}

/// # Errors
/// The first property that is not what was asked for.
pub(super) fn check(
    what: &str,
    asked: &[(String, String)],
    found: &[Property],
) -> Result<(), LayerError> {
    for (name, asked) in asked {
        // ZFS takes some words as wishes only.
        let value = found.iter().find(|property| property.name == *name);
        match value {
            Some(property) if same(name, asked, &property.value) => {}
            Some(property) => {
                return Err(LayerError::refused(
                    format!(
                        "{what} has {name} = {} although {asked} was asked for",
                        property.value
                    ),
                    "write what this ZFS gives, or use another",
                ));
            }
            None => {
                return Err(LayerError::refused(
                    format!("{what} has no property {name} although {asked} was asked for"),
                    "leave it out, or use another ZFS",
                ));
            }
        }
    }
    Ok(())
}

/// Returns true if two values are one: levels that have two names, and sizes with and without a unit.
fn same(name: &str, asked: &str, found: &str) -> bool {
    let bytes = |text: &str| {
        // `zpool get` prints 128K where 131072 was asked.
        let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
        let shift = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_shl(shift)
    };
    // zfsprops(7) names several values twice, and `zfs get` may answer with the other name.
    asked == found
        || (bytes(asked).is_some() && bytes(asked) == bytes(found))
        // Some are in use as soon as they are enabled (zpool-features(7)).
        || (name.starts_with("feature@") && (asked, found) == ("enabled", "active"))
        || matches!(
            (name, asked, found),
            ("compression", "gzip-6", "gzip")
                | ("compression", "zstd-3", "zstd")
                | ("compression", "zstd-fast-1", "zstd-fast")
                | ("xattr", "on", "sa" | "dir")
                | ("dedup", "on", "sha256")
        )
}

/// One fact for each property that was asked for, or is not at its default.
pub(super) fn facts(asked: &[(String, String)], found: &[Property]) -> Vec<Fact> {
    let told = |property: &&Property| {
        // "-" are figures (used, available), which differ from trial to trial.
        let set = property.source != "default" && property.source != "-";
        set || asked.iter().any(|(name, _)| *name == property.name)
    };
    let fact = |property: &Property| Fact::new(&property.name, &property.value);
    found.iter().filter(told).map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of zfs-fuse 0.7.0.
    const DATASET: &str = concat!(
        "p/data\ttype\tfilesystem\t-\n",
        "p/data\trecordsize\t8192\tlocal\n",
        "p/data\tcompression\tlzjb\tlocal\n",
        "p/data\tatime\ton\tdefault\n",
    );

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_string(), value.to_string())
    }

    #[test]
    fn a_feature_that_is_in_use_is_enabled() {
        let found = table("p  feature@lz4_compress  active  local\n");
        let asked = |value: &str| [pair("feature@lz4_compress", value)];
        check("the pool", &asked("enabled"), &found).unwrap();
        assert!(check("the pool", &asked("disabled"), &found).is_err());
    }

    #[test]
    fn what_is_asked_and_what_is_set_is_told() {
        let found = lines(DATASET);
        let asked = [pair("recordsize", "8192"), pair("atime", "on")];
        check("p/data", &asked, &found).unwrap();
        let facts = facts(&asked, &found);
        let names: Vec<&str> = facts.iter().map(|fact| fact.name.as_str()).collect();
        assert_eq!(names, ["recordsize", "compression", "atime"]);
    }

    #[test]
    fn what_is_not_as_asked_is_an_error() {
        let found = lines(DATASET);
        for (asked, words) in [
            (
                pair("compression", "lz4"),
                "compression = lzjb although lz4",
            ),
            (pair("sync", "always"), "no property sync"),
        ] {
            let error = check("p/data", &[asked], &found).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(same("recordsize", "131072", "128K"));
        assert!(same("compression", "gzip-6", "gzip"));
        assert!(!same("compression", "gzip-9", "gzip"));
    }

    #[test]
    fn the_table_of_a_pool_is_understood() {
        let text = concat!(
            "NAME  PROPERTY       VALUE       SOURCE\n",
            "p     size           123M        -\n",
            "p     ashift         12          local\n",
        );
        let found = table(text);
        assert_eq!(found.len(), 2);
        check("the pool", &[pair("ashift", "12")], &found).unwrap();
    }

    #[test]
    fn compressions_are_those_of_the_manual() {
        for word in [
            "off",
            "lz4",
            "zstd",
            "zstd-19",
            "zstd-fast-1000",
            "gzip-9",
            "zle",
        ] {
            assert!(is_compression(word), "{word}");
        }
        for word in ["lzo", "zstd-0", "zstd-20", "gzip-0", "lz4-1", "zstd:3", ""] {
            assert!(!is_compression(word), "{word}");
        }
    }
}
