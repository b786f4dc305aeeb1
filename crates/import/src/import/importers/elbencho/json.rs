//! elbencho's JSON: a line for each phase, an object of objects in which every figure is a text.
//!
//! Keys and units are those that the source of 3.0-37 to 3.1-12 writes (earlier versions wrote no
//! settings). An unknown key or a repeated key is refused. Histograms are not read.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::phase::Phase;
use stackrace_base::printed::ImportError;
use stackrace_base::printed::text::{self, TextLine};

/// Keys of a phase itself and of its settings, as the CSV calls them.
const KEYS: [(&str, &str); 23] = [
    ("phase_type", "operation"),
    ("phase_id", "phase id"),
    ("label", "label"),
    ("iso_start_date", "ISO date"),
    ("config.path_type", "path type"),
    ("config.paths", "paths"),
    ("config.hosts", "hosts"),
    ("config.threads", "threads"),
    ("config.dirs", "dirs"),
    ("config.files", "files"),
    ("config.custom_tree_dirs", "custom tree dirs"),
    (
        "config.custom_tree_files_shared",
        "custom tree files shared",
    ),
    ("config.files_not_shared", "files not shared"),
    ("config.file_size", "file size"),
    ("config.block_size", "block size"),
    ("config.direct_io", "direct IO"),
    ("config.random_offsets", "random"),
    ("config.random_aligned", "random aligned"),
    ("config.io_depth", "IO depth"),
    ("config.shared_service_paths", "shared paths"),
    ("config.truncate_files", "truncate"),
    ("config.version", "version"),
    ("config.command", "command"),
];
/// Settings that are `true` or `false`; the CSV has 1 and 0.
const SWITCHES: [&str; 5] = [
    "direct IO",
    "random",
    "random aligned",
    "shared paths",
    "truncate",
];
/// Keys of what was done until the first and until the last thread had ended.
const AMOUNTS: [(&str, &str); 5] = [
    ("entries/s", "entries/s"),
    ("iops", "IOPS"),
    ("bytes/s", "B/s"),
    ("entries", "entries"),
    ("bytes", "B"),
];
/// Keys without which it is no such phase.
const NEEDED: [&str; 6] = [
    "operation",
    "threads",
    "file size",
    "block size",
    "version",
    "time ms [last]",
];

/// Returns true if a line is a phase.
pub(super) fn is_phase(line: TextLine<'_>) -> bool {
    line.text.starts_with('{') && line.text.contains("\"phase_type\":")
}

/// Every phase of a file.
///
/// # Errors
/// Lines that are no phase, keys that are not known, there twice, or missing.
pub(super) fn read<'a>(all: &[TextLine<'a>]) -> Result<Vec<Phase<'a>>, ImportError> {
    let lines = all.iter().filter(|line| !line.text.trim().is_empty());
    lines.map(|line| phase(*line)).collect()
}

fn phase(line: TextLine<'_>) -> Result<Phase<'_>, ImportError> {
    let mut leaves = Vec::new();
    let mut json = serde_json::Deserializer::from_str(line.text);
    let root = Node {
        path: "",
        leaves: &mut leaves,
    };
    let read = root.deserialize(&mut json).and_then(|()| json.end());
    read.map_err(|error| refuse(line, text::cause(&error)))?;
    let mut cells: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    for (path, value) in leaves {
        let Some(name) = column(&path) else {
            return Err(refuse(
                line,
                format!("the key {} is not known", text::cut(&path)),
            ));
        };
        if cells.iter().any(|(known, _)| *known == name) {
            return Err(refuse(line, format!("{path} is there twice")));
        }
        // The CSV, from which the rest is read, has 1 and 0.
        let value = match (SWITCHES.contains(&name.as_str()), value.as_str()) {
            (false, _) => value,
            (true, "true") => "1".to_owned(),
            (true, "false") => "0".to_owned(),
            (true, _) => return Err(refuse(line, format!("{path} is neither true nor false"))),
        };
        cells.push((Cow::Owned(name), Cow::Owned(value)));
    }
    let phase = Phase { line, cells };
    if let Some(missing) = NEEDED.iter().find(|name| phase.cell(name).is_empty()) {
        return Err(refuse(line, format!("it has no {missing}")));
    }
    let version = phase.cell("version");
    if !version.starts_with("3.") {
        let what = format!("it is of version {}", text::cut(version));
        return Err(refuse(line, what));
    }
    Ok(phase)
}

fn refuse(line: TextLine<'_>, what: impl fmt::Display) -> ImportError {
    ImportError::at(
        line.index,
        format!("this is not a phase in elbencho's JSON as it is known: {what}"),
        "give it what elbencho 3.0-37 or later wrote with --jsonfile, unchanged; or its --csvfile",
    )
}

/// Returns the CSV's name of a key, which is known by all keys that lead to it:
/// `last_done.bytes/s`.
fn column(path: &str) -> Option<String> {
    let among = |keys: &[(&str, &'static str)], path: &str| {
        let mut keys = keys.iter();
        keys.find(|(key, _)| *key == path).map(|(_, name)| *name)
    };
    if let Some(name) = among(&KEYS, path) {
        return Some(name.to_owned());
    }
    let (tree, key) = path.split_once('.')?;
    let moment = among(&[("first_done", "first"), ("last_done", "last")], tree)?;
    if let Some(name) = among(&[("elapsed_time_ms", "time ms"), ("cpu%", "CPU%")], key) {
        return Some(format!("{name} [{moment}]"));
    }
    if let Some(latency) = key.strip_prefix("latency.").filter(|_| moment == "last") {
        let (of, key) = latency.split_once('.')?;
        let of = among(&[("entries", "Ent"), ("IO", "IO")], of)?;
        let (before, key) = mixed(key);
        let what = among(
            &[("min_us", "min"), ("avg_us", "avg"), ("max_us", "max")],
            key,
        )?;
        return Some(format!("{before}{of} lat us [{what}]"));
    }
    let (before, key) = mixed(key);
    Some(format!("{before}{} [{moment}]", among(&AMOUNTS, key)?))
}

/// Returns the prefix that tells apart the reads of a phase of both, and the rest of the key.
fn mixed(key: &str) -> (&'static str, &str) {
    key.strip_prefix("rwmix_read.")
        .map_or(("", key), |key| ("rwmix read ", key))
}

/// An object in an object, of which all texts are collected with the keys that lead to them.
struct Node<'p> {
    path: &'p str,
    leaves: &'p mut Vec<(String, String)>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "a text or an object")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.leaves.push((self.path.to_owned(), text.to_owned()));
        Ok(())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut object: M) -> Result<(), M::Error> {
        while let Some(key) = object.next_key::<String>()? {
            // It holds numbers, not texts, and nothing that the CSV has.
            if key == "histogram" && self.path.starts_with("last_done.latency.") {
                object.next_value::<IgnoredAny>()?;
                continue;
            }
            let path = match self.path {
                // No key has a dot of its own.
                _ if key.contains('.') => return Err(Error::custom("a key with a dot")),
                "" => key,
                path => format!("{path}.{key}"),
            };
            object.next_value_seed(Node {
                path: &path,
                leaves: &mut *self.leaves,
            })?;
        }
        Ok(())
    }
}
