//! Reads all files of a directory, sector by sector.

use stackrace_base::unit::InWords;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use stackrace_engine::promises::content::{PromisedContent, SectorFound};

use stackrace_base::event::{LedgerLine, OperationKind, Promised};
use stackrace_load::workload::OwnFindings;
use stackrace_load::workload::promises::database::DatabaseKind;

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// Remains of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SeenObject {
    /// The object is not there.
    Absent,
    /// The object is there and cannot be read: the message of the system.
    Unreadable(String),
    /// Its sectors; the last may be cut short.
    Sectors(Vec<SectorFound>),
}

/// Remains of all objects of a ledger.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    objects: HashMap<String, SeenObject>,
    other: SeenObject,
}

impl Seen {
    /// Keeps what was seen of objects by name; all others are absent.
    pub(super) fn new(objects: HashMap<String, SeenObject>) -> Self {
        let other = SeenObject::Absent;
        Self { objects, other }
    }

    /// Makes remains of which nothing can be read.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn nothing() -> Self {
        Self {
            objects: HashMap::new(),
            other: SeenObject::Unreadable("the file system could not be mounted".to_owned()),
        }
    }

    /// Returns what was found of an object, or what is said of all that were not looked for.
    pub(super) fn of(&self, object: &str) -> &SeenObject {
        self.objects.get(object).unwrap_or(&self.other)
    }
}

/// Reads every object that the ledger names. `refused`: what the server of its database said, if it
/// did not start.
pub(super) fn look(directory: &Path, promised: &Promised, refused: Option<&str>) -> Seen {
    let mut objects = HashMap::new();
    // A database is read once, after it recovered itself: its rows are the objects.
    if let Some(kind) = database(promised) {
        let rows = match refused {
            Some(why) => Err(why.to_owned()),
            None => kind.rows(directory),
        };
        objects.extend(of_rows(promised, kind, rows, kind.exists(directory)));
    }
    // Each file is read once, however many operations were done on it.
    for line in &promised.lines {
        if !objects.contains_key(&line.object) {
            let seen = file(&directory.join(&line.object));
            objects.insert(line.object.clone(), seen);
        }
    }
    Seen::new(objects)
}

/// What a check of the workload's own found: an object that is there has all of its content.
pub(super) fn checked(promised: &Promised, found: &OwnFindings) -> Seen {
    let content = PromisedContent::new(promised.seed);
    // Looked up once for each operation, of which there may be a million.
    let there: Result<HashSet<&String>, &String> = match found {
        Ok(found) => Ok(found.iter().collect()),
        Err(why) => Err(why),
    };
    let seen = |line: &LedgerLine| match &there {
        Err(why) => SeenObject::Unreadable((*why).clone()),
        Ok(there) if !there.contains(&line.object) => SeenObject::Absent,
        Ok(_) => {
            let mut buffer = vec![0; line.bytes as usize];
            content.fill(&mut buffer, &line.object, line.offset, line.generation);
            sectors(&buffer)
        }
    };
    let objects = promised.lines.iter();
    Seen::new(
        objects
            .map(|line| (line.object.clone(), seen(line)))
            .collect(),
    )
}

/// The database whose transactions a ledger has.
pub(super) fn database(promised: &Promised) -> Option<DatabaseKind> {
    let mut lines = promised.lines.iter();
    let line = lines.find(|line| line.kind == OperationKind::Transaction)?;
    DatabaseKind::of_object(&line.object)
}

/// Every row that the ledger names, of those that a database found; `there`: it has files.
pub(super) fn of_rows(
    promised: &Promised,
    kind: DatabaseKind,
    rows: Result<Vec<(u32, Vec<u8>)>, String>,
    there: bool,
) -> HashMap<String, SeenObject> {
    let names = promised.lines.iter().map(|line| &line.object);
    let names = names.filter(|name| DatabaseKind::of_object(name) == Some(kind));
    match rows {
        Ok(rows) => {
            // A row that is not in the table is absent, and no file of that name.
            let mut all: HashMap<_, _> = names
                .map(|name| (name.clone(), SeenObject::Absent))
                .collect();
            let found = rows.into_iter();
            all.extend(found.map(|(row, content)| (kind.object(row), sectors(&content))));
            all
        }
        Err(why) => {
            // Gone and damaged are different losses.
            let seen = match there {
                true => SeenObject::Unreadable(format!("{}: {why}", kind.name())),
                false => SeenObject::Absent,
            };
            names.map(|name| (name.clone(), seen.clone())).collect()
        }
    }
}

fn file(path: &Path) -> SeenObject {
    match std::fs::read(path) {
        Ok(content) => sectors(&content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => SeenObject::Absent,
        // EIO after a cut is damage like any other: it must not end the check.
        Err(error) => SeenObject::Unreadable(error.in_words()),
    }
}

fn sectors(content: &[u8]) -> SeenObject {
    let sectors = content.chunks(SECTOR as usize);
    SeenObject::Sectors(sectors.map(SectorFound::of).collect())
}
