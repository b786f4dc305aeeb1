//! Reads all files of a directory, sector by sector.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use stackrace_engine::promises::content::SectorFound;

use crate::event::{OperationKind, Promised};
use crate::workload::promises::sqlite;

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// What is there of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SeenObject {
    /// It is not there.
    Absent,
    /// It is there and cannot be read: what the system said.
    Unreadable(String),
    /// Its sectors; the last may be cut short.
    Sectors(Vec<SectorFound>),
}

/// What is there of all objects of a ledger.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    objects: HashMap<String, SeenObject>,
    other: SeenObject,
}

impl Seen {
    /// Of objects by name; all others are absent.
    pub(super) fn new(objects: HashMap<String, SeenObject>) -> Self {
        let other = SeenObject::Absent;
        Self { objects, other }
    }

    /// Nothing can be read.
    pub(super) fn nothing() -> Self {
        Self {
            objects: HashMap::new(),
            other: SeenObject::Unreadable("the file system could not be mounted".to_owned()),
        }
    }

    /// What was found of an object, or what is said of all that were not looked for.
    pub(super) fn of(&self, object: &str) -> &SeenObject {
        self.objects.get(object).unwrap_or(&self.other)
    }
}

/// Reads every object that the ledger names.
pub(super) fn look(directory: &Path, promised: &Promised) -> Seen {
    let mut objects = HashMap::new();
    let transactions = |kind| kind == OperationKind::Transaction;
    // A database is read once, after it recovered itself: its rows are the objects.
    if promised.lines.iter().any(|line| transactions(line.kind)) {
        objects.extend(rows(directory, promised));
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

/// Every row that the ledger names.
fn rows(directory: &Path, promised: &Promised) -> HashMap<String, SeenObject> {
    let path = directory.join(sqlite::FILE);
    let names = promised.lines.iter().map(|line| &line.object);
    let names = names.filter(|name| name.starts_with(&format!("{}#", sqlite::FILE)));
    match sqlite::rows(&path) {
        Ok(rows) => {
            // A row that is not in the table is absent, and no file of that name.
            let mut all: HashMap<_, _> = names
                .map(|name| (name.clone(), SeenObject::Absent))
                .collect();
            let found = rows.into_iter();
            all.extend(found.map(|(row, content)| (sqlite::object(row), sectors(&content))));
            all
        }
        Err(why) => {
            // Gone and damaged are different losses.
            let seen = match path.exists() {
                true => SeenObject::Unreadable(format!("SQLite: {why}")),
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
        Err(error) => SeenObject::Unreadable(error.to_string()),
    }
}

fn sectors(content: &[u8]) -> SeenObject {
    let sectors = content.chunks(SECTOR as usize);
    SeenObject::Sectors(sectors.map(SectorFound::of).collect())
}
