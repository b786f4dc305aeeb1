//! Settings of a job in one spelling: `bs=4096B`, `blocksize=4k` and `bs=0x1000` are one.

use std::collections::BTreeMap;

use super::value;
use stackrace_base::event::Fact;
use stackrace_base::printed::text::size;

/// Options with a second name, which becomes the first.
const ALIASES: [(&str, &str); 7] = [
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("io_limit", "io_size"),
    ("sync_io", "sync"),
    ("ba", "blockalign"),
    ("fallocate_keep", "fallocate"),
];
/// Options that are sizes, one for all directions or one for each.
const SIZES: [&str; 8] = [
    "bs",
    "blockalign",
    "size",
    "filesize",
    "io_size",
    "offset",
    "offset_increment",
    "zonesize",
];
/// Options that are times, in seconds where they have no unit.
const TIMES: [&str; 3] = ["runtime", "ramp_time", "startdelay"];
/// Options that are true or false, and true where they have no value.
const SWITCHES: [&str; 9] = [
    "direct",
    "buffered",
    "time_based",
    "group_reporting",
    "norandommap",
    "end_fsync",
    "fsync_on_close",
    "invalidate",
    "refill_buffers",
];

/// Options by the name that fio's manual has first, each value in one spelling.
pub(super) fn plain(options: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let base = match options.get("kb_base").map(String::as_str) {
        Some("1000") => 1000,
        _ => 1024,
    };
    let options = options.into_iter();
    options
        .map(|(name, value)| {
            let alias = ALIASES.iter().find(|(other, _)| *other == name);
            let name = alias.map_or(name, |(_, first)| (*first).to_owned());
            let value = spelled(&name, value, base);
            (name, value)
        })
        .collect()
}

/// The options as facts.
pub(super) fn facts(options: &BTreeMap<String, String>) -> Vec<Fact> {
    let options = options.iter();
    options
        .map(|(name, value)| Fact::new(name, value))
        .collect()
}

fn spelled(name: &str, value: String, base: u64) -> String {
    if SIZES.contains(&name) {
        let parts: Vec<String> = value.split(',').map(|part| one_size(part, base)).collect();
        return parts.join(",");
    }
    if TIMES.contains(&name) {
        // What is no time stays as it is: it is shown, and compared as text.
        let ns = value::time_ns(&value, 1_000_000_000);
        return ns.map_or(value, |ns| format!("{}s", ns as f64 / 1e9));
    }
    match (name, value.as_str()) {
        (name, "" | "true") if SWITCHES.contains(&name) => "1".to_owned(),
        ("rw", "readwrite") => "rw".to_owned(),
        _ => value,
    }
}

/// Spells a size `4096`, `4k`, `4kb`, a range of them, or what is no size, as it is.
pub(super) fn one_size(word: &str, base: u64) -> String {
    let one = |word: &str| value::bytes(word.trim(), base).map(size);
    match word.split_once('-') {
        Some((low, high)) => one(low)
            .zip(one(high))
            .map_or_else(|| word.to_owned(), |(low, high)| format!("{low}-{high}")),
        None => one(word).unwrap_or_else(|| word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_setting_has_one_spelling() {
        let of = |name: &str, value: &str| {
            let options = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            plain(options).into_iter().next().unwrap()
        };
        for word in ["4k", "4096", "4096B", "4K", "4kb", "4Ki", "0x1000"] {
            assert_eq!(of("bs", word), ("bs".to_owned(), "4k".to_owned()), "{word}");
            assert_eq!(of("blocksize", word), of("bs", "4k"), "{word}");
        }
        // fio takes kib for 1000 bytes, so that old job files mean what they meant.
        assert_eq!(of("bs", "4kib").1, "4000B");
        assert_eq!(of("bs", "4096,8192").1, "4k,8k");
        assert_eq!(of("size", "100%").1, "100%");
        assert_eq!(of("runtime", "1m"), of("runtime", "60"));
        assert_eq!(of("direct", ""), of("direct", "1"));
        assert_eq!(of("readwrite", "readwrite"), of("rw", "rw"));
    }
}
