//! What a log says of the machine it was made on and of who made it: found in its values, counted, and replaced.
//!
//! What has a field of its own is known by the field. A name that was found so is looked for in every other value, too:
//! sentences quote directories and hosts. What has a shape of its own (a path, a UUID) is found anywhere.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::part::MachinePart;
use super::shapes;
use stackrace_base::event::{Event, Fact, RunPlace};
use stackrace_results::record::Record;

/// Words of machines, each with the number of places it stands at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineWords(BTreeMap<MachinePart, BTreeMap<String, usize>>);

impl MachineWords {
    /// The words of a part with their places, in order.
    pub fn of(&self, part: MachinePart) -> impl Iterator<Item = (&str, usize)> {
        let words = self.0.get(&part).into_iter().flatten();
        words.map(|(word, places)| (&**word, *places))
    }

    /// Those of some parts alone.
    pub(super) fn only(mut self, parts: &BTreeSet<MachinePart>) -> Self {
        self.0.retain(|part, _| parts.contains(part));
        self
    }

    /// Adds those of another log.
    pub fn add(&mut self, other: &Self) {
        for (part, words) in &other.0 {
            for (word, places) in words {
                let known = self.0.entry(*part).or_default();
                *known.entry(word.clone()).or_default() += places;
            }
        }
    }
}

/// Finds words of machines in values, and replaces those that are cut.
pub(super) struct WordFinder {
    /// Names known by their fields, the longest first.
    known: Vec<(MachinePart, String)>,
    cut: BTreeSet<MachinePart>,
    found: MachineWords,
    /// Number of each word that was replaced: two directories stay two.
    numbers: BTreeMap<(MachinePart, String), usize>,
}

/// Fields that never name a machine: kinds of events, moments, and coded figures.
const OUR_OWN: [&str; 4] = ["event", "at", "started_at", "histogram"];

impl WordFinder {
    /// A finder for one log, with the parts that it replaces.
    pub(super) fn new(record: &Record, cut: &BTreeSet<MachinePart>) -> Self {
        Self {
            known: known(record),
            cut: cut.clone(),
            found: MachineWords::default(),
            numbers: BTreeMap::new(),
        }
    }

    /// All that was found.
    pub(super) fn into_found(self) -> MachineWords {
        self.found
    }

    /// Goes over a value and everything in it.
    pub(super) fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(all) => all.iter_mut().for_each(|one| self.value(one)),
            Value::Object(fields) => {
                for (name, mut field) in std::mem::take(fields) {
                    if !OUR_OWN.contains(&&*name) {
                        self.value(&mut field);
                    }
                    // Settings are named after what they belong to: a device, a mount point.
                    fields.insert(self.text(&name), field);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut place = 0;
        while let Some(c) = text[place..].chars().next() {
            let rest = &text[place..];
            let hit = self.hit(rest, &text[..place]);
            let end = match hit {
                Some((part, length)) => {
                    // Counted also where it stays: what is published is listed.
                    let word = &rest[..length];
                    let places = self.found.0.entry(part).or_default();
                    *places.entry(word.to_owned()).or_default() += 1;
                    match self.cut.contains(&part) {
                        true => {
                            out.push_str(&self.in_place_of(part, word));
                            length
                        }
                        // Another word may lie within it: a user within a path.
                        false => self.kept(c, &mut out),
                    }
                }
                None => self.kept(c, &mut out),
            };
            place += end;
        }
        out
    }

    fn kept(&self, c: char, out: &mut String) -> usize {
        out.push(c);
        c.len_utf8()
    }

    fn hit(&self, rest: &str, before: &str) -> Option<(MachinePart, usize)> {
        // A host `box` is not meant where a text says `sandbox`.
        let begins = shapes::begins_behind(before.chars().next_back());
        let named = |(part, word): &&(MachinePart, String)| {
            let next = || rest[word.len()..].chars().next();
            let alone = begins || word.starts_with('/');
            // A short word is cheap to compare, and most texts have none.
            alone
                && rest.starts_with(&**word)
                && (*part == MachinePart::Paths || shapes::ends_before(next()))
        };
        let known = self.known.iter().find(named);
        known
            .map(|(part, word)| (*part, word.len()))
            .or_else(|| shapes::at(rest, before))
    }

    /// `(path 2)`
    fn in_place_of(&mut self, part: MachinePart, word: &str) -> String {
        let next = 1 + self
            .numbers
            .keys()
            .filter(|(known, _)| *known == part)
            .count();
        let number = self.numbers.entry((part, word.to_owned())).or_insert(next);
        format!("({} {number})", part.one())
    }
}

/// Names of facts that hold the kernel or the system; `kernel of far` begins with one of them.
const SYSTEM: [&str; 2] = ["kernel", "distribution"];
/// Words in names of facts whose value one device alone has.
const NUMBERED: [&str; 5] = ["uuid", "serial", "guid", "wwn", "hostid"];
/// Directories of the users' own directories.
const HOMES: [&str; 2] = ["home", "Users"];
/// A user of every machine: it names no person.
const ROOT: &str = "root";
/// Characters of a serial number, at least.
const SERIAL_LEAST: usize = 4;
/// Names of the machine that measures.
const HERE: [&str; 3] = ["local", "localhost", "none"];

/// Returns true if a fact says what system a machine has.
pub(super) fn is_system(fact: &Fact) -> bool {
    fact.name.split(' ').any(|word| SYSTEM.contains(&word)) && fact.figure.is_none()
}

fn is_numbered(fact: &Fact) -> bool {
    let name = fact.name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| NUMBERED.contains(&word))
}

/// The names that fields of a log hold, the longest first.
fn known(record: &Record) -> Vec<(MachinePart, String)> {
    let mut known = BTreeSet::new();
    let mut add = |part, word: &str| {
        let word = word.trim();
        // A number of few digits is found in texts that have nothing to do with it.
        let short = part == MachinePart::Serials && word.len() < SERIAL_LEAST;
        if !word.is_empty() && !short && word != ROOT && !HERE.contains(&word) {
            known.insert((part, word.to_owned()));
        }
    };
    place(&record.head.place(), &mut add);
    for fact in &record.head.environment {
        self::fact(fact, &mut add);
    }
    for event in record.events() {
        match event {
            Event::Command(command) => {
                machine(&command.host, &mut add);
                command.argv.iter().for_each(|word| path(word, &mut add));
            }
            Event::StackSetUp {
                layers, lies_on, ..
            } => {
                let facts = layers.iter().flat_map(|layer| &layer.facts);
                facts.for_each(|fact| self::fact(fact, &mut add));
                for it in lies_on {
                    path(&it.directory, &mut add);
                    path(&it.mount_point, &mut add);
                    path(&it.root, &mut add);
                    if let Some(remote) = &it.remote {
                        machine(&remote.server, &mut add);
                    }
                    if let Some(zfs) = &it.zfs {
                        add(MachinePart::Serials, &zfs.pool);
                        add(MachinePart::Serials, &zfs.dataset);
                    }
                    let numbers = it.uuid.iter().chain(&it.boot);
                    numbers.for_each(|number| add(MachinePart::Serials, number));
                }
            }
            _ => {}
        }
    }
    // Of a directory and one below it, the whole name is met first.
    let mut known: Vec<_> = known.into_iter().collect();
    known.sort_by_key(|(_, word)| std::cmp::Reverse(word.len()));
    known
}

type Add<'a> = dyn FnMut(MachinePart, &str) + 'a;

fn place(place: &RunPlace, add: &mut Add<'_>) {
    match place {
        RunPlace::Ssh(there) | RunPlace::Shell(there) | RunPlace::RealCut(there) => {
            let all = there.on.iter().chain(&there.peers);
            all.for_each(|named| machine(named, add));
        }
        RunPlace::Clients { started, .. } => {
            // `ssh:one,two`: how they are started comes before their names.
            let (_, hosts) = started.split_once(':').unwrap_or(("", started));
            hosts.split(',').for_each(|named| machine(named, add));
        }
        RunPlace::Here { .. } | RunPlace::Lab(_) | RunPlace::Virtual(_) => {}
    }
    place.directory().into_iter().for_each(|it| path(it, add));
}

/// `ann@far`, `far=10.0.0.2`: the user, and each name of the machine.
fn machine(named: &str, add: &mut Add<'_>) {
    let (user, host) = named.split_once('@').unwrap_or(("", named));
    add(MachinePart::User, user);
    host.split(['=', ':'])
        .for_each(|name| add(MachinePart::Host, name));
}

fn fact(fact: &Fact, add: &mut Add<'_>) {
    if is_system(fact) {
        add(MachinePart::Kernel, &fact.value);
    }
    if is_numbered(fact) {
        add(MachinePart::Serials, &fact.value);
    }
    path(&fact.value, add);
}

/// A whole value that is a path: one with blanks has no shape by which it would be found in a sentence. Its user, too.
fn path(word: &str, add: &mut Add<'_>) {
    let mut parts = word.split('/');
    if parts.next() != Some("") {
        return;
    }
    if let (Some(root), Some(user)) = (parts.next(), parts.next())
        && HOMES.contains(&root)
    {
        add(MachinePart::User, user);
    }
    // One without has its shape, which also knows the paths of every machine.
    if word.contains(char::is_whitespace) {
        add(MachinePart::Paths, word);
    }
}
