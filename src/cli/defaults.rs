//! The file of defaults: what a user would otherwise type again with every command.
//!
//! The command line comes first, then the environment, then this file. It is checked as a whole by
//! every command, so that a misspelt key is found on the day it is written.

use stackrace_base::unit::{InWords, ShownPath};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;
use toml::de::{DeTable, DeValue};

use super::args::{Colour, Compare};
use super::failure::Failure;
use super::variable::{base_dir, home};
use stackrace_base::bounded::ByteLimit;
use stackrace_base::setting::nearest;
use stackrace_base::unit;
use stackrace_study::purpose;

/// Most bytes of the file: all keys with long comments need a hundredth of it.
const TEXT_MAX: ByteLimit = ByteLimit::new(64 << 10);

/// One key: its table (empty: none), its name, and what its text must be.
struct Key {
    table: &'static str,
    name: &'static str,
    check: fn(&str) -> Result<(), String>,
}

/// Every key. Nothing that runs a command is among them: root may read a file of another user.
const KEYS: &[Key] = &[
    key("", "store", a_directory),
    key("", "colour", a_colour),
    key("compare", "time", |text| {
        let time = unit::parse_lasting_ns(text);
        time.map(drop).map_err(|error| error.to_string())
    }),
    key("compare", "for", a_purpose),
    key("compare", "margin", a_share),
    key("compare", "confidence", a_share),
];

const fn key(
    table: &'static str,
    name: &'static str,
    check: fn(&str) -> Result<(), String>,
) -> Key {
    Key { table, name, check }
}

impl Key {
    /// As people name it: `compare.time`.
    fn path(&self) -> String {
        match self.table {
            "" => self.name.to_owned(),
            table => format!("{table}.{}", self.name),
        }
    }
}

/// The defaults of a user.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    /// Path they have, or would have; `None` if the environment names no home.
    path: Option<PathBuf>,
    /// Key and text of each that is set.
    set: Vec<(String, String)>,
}

impl Defaults {
    /// Reads the user's file. One that does not exist, or is in a folder that this user may not enter, sets
    /// nothing.
    ///
    /// # Errors
    /// It cannot be read, or something in it is wrong: all of it at once.
    pub(super) fn read() -> Result<Self, Failure> {
        let Some(path) = place() else {
            return Ok(Self::default());
        };
        let set = match TEXT_MAX.read(&path) {
            Ok(bytes) => parse(&path, &bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            // Under sudo or setpriv HOME may be that of another user: there is no file of this one.
            Err(_) if path.symlink_metadata().is_err() => Vec::new(),
            Err(error) => {
                let what = format!(
                    "cannot read the defaults {}: {error}",
                    path.shown(),
                    error = error.in_words()
                );
                return Err(Failure::refused(what).next("mend or remove that file"));
            }
        };
        Ok(Self {
            path: Some(path),
            set,
        })
    }

    fn get(&self, path: &str) -> Option<&str> {
        let found = self.set.iter().find(|(key, _)| key == path);
        found.map(|(_, text)| text.as_str())
    }

    /// Directory that runs are kept in.
    pub(super) fn store(&self) -> Option<PathBuf> {
        self.get("store").map(PathBuf::from)
    }

    /// When to use colour, unless the command line says so.
    pub(super) fn colour(&self, typed: Colour, matches: &ArgMatches) -> Colour {
        let own = self.get("colour").and_then(colour_named);
        match matches.value_source("colour") {
            Some(ValueSource::DefaultValue) | None => own.unwrap_or(typed),
            Some(_) => typed,
        }
    }

    /// The command line of `compare`, with what it leaves open.
    pub(super) fn compare(&self, mut verb: Compare, matches: &ArgMatches) -> Compare {
        let own = |key: &str| self.get(key).map(str::to_owned);
        let words = matches.subcommand_matches("compare");
        let source = words.and_then(|words| words.value_source("purpose"));
        if source == Some(ValueSource::DefaultValue)
            && let Some(purpose) = own("compare.for")
        {
            verb.purpose = purpose;
        }
        let how_long = &verb.how_long;
        // Each of these says how long it takes; a time beside it would mean something else.
        if !verb.quick && how_long.rounds.is_none() && !how_long.until_decided {
            verb.time = verb.time.or_else(|| own("compare.time"));
        }
        let deciding = &mut verb.deciding;
        deciding.margin = deciding.margin.take().or_else(|| own("compare.margin"));
        deciding.confidence = deciding
            .confidence
            .take()
            .or_else(|| own("compare.confidence"));
        verb
    }

    /// For `doctor`: where they are and what they set.
    pub(super) fn words(&self) -> String {
        let Some(path) = &self.path else {
            return "none: HOME is not set, or not a whole path".to_owned();
        };
        let path = path.shown();
        if self.set.is_empty() {
            let all: Vec<String> = KEYS.iter().map(Key::path).collect();
            return format!("none; {path} can set {}", unit::listed(&all));
        }
        let set = self.set.iter().map(|(key, text)| format!("{key} = {text}"));
        format!("{path}: {}", set.collect::<Vec<_>>().join(", "))
    }
}

/// Path of the file: `$XDG_CONFIG_HOME/stackrace/config.toml`, else below `~/.config`.
fn place() -> Option<PathBuf> {
    let base = match base_dir("XDG_CONFIG_HOME") {
        Some(base) => base,
        None => home()?.join(".config"),
    };
    Some(base.join("stackrace/config.toml"))
}

/// Key and text of everything that a file sets.
fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<(String, String)>, Failure> {
    let text = String::from_utf8_lossy(bytes);
    let (table, broken) = DeTable::parse_recoverable(&text);
    let mut found = Found {
        path,
        text: &text,
        set: Vec::new(),
        wrong: Vec::new(),
    };
    for error in &broken {
        let at = error.span().map_or(0, |span| span.start);
        found.wrong(at, error.message(), "write it like colour = \"never\"");
    }
    // What was recovered of a broken text is not looked at: complaints about it would be echoes.
    if broken.is_empty() {
        found.table("", table.get_ref());
    }
    if found.wrong.is_empty() {
        return Ok(found.set);
    }
    found.wrong.sort();
    let lines: Vec<String> = found.wrong.into_iter().map(|(_, line)| line).collect();
    Err(Failure::refused(lines.join("\n")))
}

/// Settings of a file, and its errors.
struct Found<'a> {
    path: &'a Path,
    text: &'a str,
    set: Vec<(String, String)>,
    /// Line and message.
    wrong: Vec<(usize, String)>,
}

impl Found<'_> {
    fn wrong(&mut self, at: usize, what: &str, next: &str) {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        let path = self.path.shown();
        self.wrong.push((
            line,
            format!("error: {path}:{line}: {what}\n  next: {next}"),
        ));
    }

    fn table(&mut self, table: &str, entries: &DeTable<'_>) {
        for (name, value) in entries {
            let (at, name) = (name.span().start, name.get_ref().as_ref());
            let is_table = table.is_empty() && KEYS.iter().any(|key| key.table == name);
            match value.get_ref() {
                DeValue::Table(below) if is_table => self.table(name, below),
                value => self.value(at, table, name, value),
            }
        }
    }

    fn value(&mut self, at: usize, table: &str, name: &str, value: &DeValue<'_>) {
        let path = match table {
            "" => name.to_owned(),
            table => format!("{table}.{name}"),
        };
        let Some(key) = KEYS.iter().find(|key| key.path() == path) else {
            return self.wrong(at, &format!("there is no default \"{path}\""), &near(&path));
        };
        let text = match value {
            DeValue::String(text) => text.as_ref(),
            // A share can be a number, and a time without a unit has an advice of its own.
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => {
                let next = format!("write it in quotes: {name} = \"...\"");
                return self.wrong(at, &format!("{path} must be a text"), &next);
            }
        };
        match (key.check)(text) {
            Ok(()) => self.set.push((path, text.to_owned())),
            Err(why) => self.wrong(at, &format!("{path}: {why}"), "mend this line"),
        }
    }
}

/// The key that is meant, and all of them.
fn near(path: &str) -> String {
    let all: Vec<String> = KEYS.iter().map(Key::path).collect();
    // `tme` at the top means `compare.time`: the last part counts as well as the whole.
    let last = |text: &str| text.rsplit('.').next().unwrap_or_default().to_owned();
    let likeness = |key: &String| {
        strsim::jaro_winkler(path, key).max(strsim::jaro_winkler(&last(path), &last(key)))
    };
    let meant = all
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .map_or("", String::as_str);
    format!("did you mean \"{meant}\"? There are: {}", all.join(", "))
}

fn a_directory(text: &str) -> Result<(), String> {
    // Relative to what would depend on where a command is typed.
    match Path::new(text).is_absolute() {
        true => Ok(()),
        false => Err(format!("\"{text}\" is no path from /")),
    }
}

fn colour_named(text: &str) -> Option<Colour> {
    <Colour as clap::ValueEnum>::from_str(text, false).ok()
}

fn a_colour(text: &str) -> Result<(), String> {
    match colour_named(text) {
        Some(_) => Ok(()),
        None => Err(format!("\"{text}\" is not auto, always or never")),
    }
}

fn a_purpose(text: &str) -> Result<(), String> {
    let names: Vec<&str> = purpose::ALL.iter().map(|purpose| purpose.name).collect();
    if names.contains(&text) {
        return Ok(());
    }
    // As the option says it.
    let meant = purpose::meant(text)
        .or_else(|| nearest(text, names.iter().copied()))
        .map_or_else(String::new, |meant| format!("did you mean \"{meant}\"? "));
    let names = names.join(", ");
    Err(format!(
        "\"{text}\" is no purpose: {meant}There are: {names}"
    ))
}

fn a_share(text: &str) -> Result<(), String> {
    match unit::parse_share(text).map_err(|error| error.to_string())? {
        share if share > 0.0 && share < 1.0 => Ok(()),
        _ => Err(format!("\"{text}\" is no share above 0 and below 100 %")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Result<Vec<(String, String)>, String> {
        parse(Path::new("c.toml"), text.as_bytes()).map_err(|failure| failure.render())
    }

    #[test]
    fn what_is_set_is_read() {
        let text = "store = \"/srv/s\"\n[compare]\ntime = \"10 min\"\nmargin = \"3 %\"\n";
        let mut found = set(text).unwrap();
        found.sort();
        let expected = [
            ("compare.margin", "3 %"),
            ("compare.time", "10 min"),
            ("store", "/srv/s"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(set(""), Ok(Vec::new()));
    }

    #[test]
    fn everything_wrong_is_said_at_once_with_its_line_and_the_nearest_key() {
        let text = "color = \"never\"\nstore = \"here\"\n[compare]\ntime = 10\ntme = \"1 s\"\n\
            for = \"postgres\"\nmargin = \"200 %\"\n[other]\nx = \"y\"\n";
        let said = set(text).unwrap_err();
        for part in [
            "c.toml:1: there is no default \"color\"\n  next: did you mean \"colour\"?",
            "c.toml:2: store: \"here\" is no path from /",
            "c.toml:4: compare.time: \"10\" has no unit of time: write 10s or 10min",
            "c.toml:5: there is no default \"compare.tme\"\n  next: did you mean \"compare.time\"?",
            "c.toml:6: compare.for: \"postgres\" is no purpose: did you mean \"postgresql\"?",
            "c.toml:7: compare.margin: \"200 %\" is no share",
            "c.toml:8: there is no default \"other\"",
            "nothing was changed",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(said.matches("error: ").count(), 7, "{said}");
    }

    #[test]
    fn a_time_without_a_unit_is_refused_with_the_fix() {
        let said = set("[compare]\ntime = \"10\"\n").unwrap_err();
        assert!(said.contains("write 10s or 10min"), "{said}");
        assert!(set("store = true").unwrap_err().contains("must be a text"));
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        let said = set("\ncolour = never\n").unwrap_err();
        assert!(said.contains("c.toml:2: "), "{said}");
    }
}
