//! The databases whose transactions are promised to survive: which settings each takes, and what is
//! done with it before, during and after a trial, also after a power cut.

use std::path::Path;

use stackrace_engine::promises::Commit;
use stackrace_engine::{OpError, PhaseOutcome};

use super::asked::{Durability, FILE, SERVED, Switches, object};
use super::{postgresql, sqlite};
use crate::workload::kind::WorkloadError;
use crate::workload::postgres_server;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_machine::host::Needs;

/// Settings with their choices: a journal mode and a mode of waiting in SQLite's words, switches in
/// PostgreSQL's.
pub(super) const SETTINGS: [SettingDoc; 5] = [
    SettingDoc::choice(
        "journal",
        &["delete", "truncate", "persist", "wal"],
        "delete",
        "Journal mode of SQLite.",
    ),
    SettingDoc::choice(
        "synchronous",
        &["off", "normal", "full", "extra"],
        "full",
        "When SQLite waits for the disk.",
    ),
    SettingDoc::choice(
        "fsync",
        SWITCH,
        "on",
        "Whether PostgreSQL ever waits for the disk.",
    ),
    SettingDoc::choice(
        "synchronous-commit",
        SWITCH,
        "on",
        "Whether a commit of PostgreSQL waits for its log to be on the disk.",
    ),
    SettingDoc::choice(
        "full-page-writes",
        SWITCH,
        "on",
        "Whether PostgreSQL logs a page whole when it is first changed after a checkpoint.",
    ),
];

const SWITCH: &[&str] = &["on", "off"];

/// Kind of database, as the words of its idiom and of its settings have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// A library that works on a file.
    Sqlite,
    /// A server of the trial's own.
    Postgresql,
}

/// A database with what its settings ask for.
#[derive(Debug, Clone)]
pub(super) enum ChosenDatabase {
    /// A library that works on a file.
    Sqlite(Durability),
    /// A server of the trial's own.
    Postgresql(Switches),
}

impl DatabaseKind {
    const ALL: [Self; 2] = [Self::Sqlite, Self::Postgresql];

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgresql => "PostgreSQL",
        }
    }

    /// The word of its idiom.
    fn word(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgresql => "postgresql",
        }
    }

    /// The names of those settings that mean something to it alone.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &["journal", "synchronous"],
            Self::Postgresql => &["fsync", "synchronous-commit", "full-page-writes"],
        }
    }

    /// Returns the ledger's name of a row.
    pub fn object(self, row: u32) -> String {
        match self {
            Self::Sqlite => object(FILE, row),
            Self::Postgresql => object(SERVED, row),
        }
    }

    /// The database that has an object of a ledger; `None` if the object is a file.
    pub fn of_object(object: &str) -> Option<Self> {
        let (first, _) = object.rsplit_once('#')?;
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.object(0).rsplit_once('#').map(|own| own.0) == Some(first))
    }

    /// Returns true if a server is needed to read it.
    pub fn has_server(self) -> bool {
        self == Self::Postgresql
    }

    /// Returns true if anything of it is there.
    pub fn exists(self, directory: &Path) -> bool {
        match self {
            Self::Sqlite => sqlite::exists(directory),
            Self::Postgresql => postgresql::exists(directory),
        }
    }

    /// Starts its server on what a power cut left; it answers when this returns. A library has none.
    /// `repair` is given what an operator had to do first, as typed.
    ///
    /// # Errors
    /// It does not start: the end of its log.
    pub fn start(self, directory: &Path, repair: &mut Vec<String>) -> Result<(), String> {
        let started = match self {
            Self::Sqlite => sqlite::start(directory, repair),
            Self::Postgresql => postgresql::start(directory, repair),
        };
        started.map_err(|error| error.said)
    }

    /// Reads all rows, as it finds them after it recovered itself; [`DatabaseKind::start`] was
    /// called.
    ///
    /// # Errors
    /// What it says: it is damaged.
    pub fn rows(self, directory: &Path) -> Result<Vec<(u32, Vec<u8>)>, String> {
        match self {
            Self::Sqlite => sqlite::rows(directory),
            Self::Postgresql => postgresql::rows(directory),
        }
    }

    /// Ends its server, if one runs.
    ///
    /// # Errors
    /// It does not end.
    pub fn end(self, directory: &Path) -> Result<(), String> {
        let ended = match self {
            Self::Sqlite => sqlite::end(directory),
            Self::Postgresql => postgresql::end(directory),
        };
        ended.map_err(|error| error.said)
    }
}

impl ChosenDatabase {
    /// Reads the database of an idiom with its settings; `None` if the idiom uses files.
    ///
    /// # Errors
    /// A setting is of another database, there are several threads, or this program was built without
    /// that database.
    pub(super) fn parse(
        settings: &Settings,
        kind: Option<DatabaseKind>,
        word: &str,
    ) -> Result<Option<Self>, Refusal> {
        refuse_foreign(settings, kind, word)?;
        let Some(kind) = kind else {
            return Ok(None);
        };
        let text = |name| settings.text(name);
        let (is_there, database) = match kind {
            DatabaseKind::Sqlite => {
                let durability = Durability {
                    journal: text("journal")?,
                    synchronous: text("synchronous")?,
                };
                (sqlite::THERE, Self::Sqlite(durability))
            }
            DatabaseKind::Postgresql => {
                let switches = Switches {
                    fsync: text("fsync")?,
                    synchronous_commit: text("synchronous-commit")?,
                    full_page_writes: text("full-page-writes")?,
                };
                (postgresql::THERE, Self::Postgresql(switches))
            }
        };
        // Refused before anything is touched, not in the middle of a run.
        if !is_there {
            let name = kind.name();
            let why = format!("built without {name} (cargo install --path . --features full)");
            return Err(settings.refuse("idiom", why, ""));
        }
        if settings.count("threads")? > 1 {
            let why = match kind {
                DatabaseKind::Sqlite => "SQLite commits one transaction at a time",
                DatabaseKind::Postgresql => "the transactions are done over one connection",
            };
            return Err(settings.refuse("threads", why, "leave threads out"));
        }
        Ok(Some(database))
    }

    /// Returns the kind of database, as a ledger names it.
    pub(super) fn kind(&self) -> DatabaseKind {
        match self {
            Self::Sqlite(_) => DatabaseKind::Sqlite,
            Self::Postgresql(_) => DatabaseKind::Postgresql,
        }
    }

    /// Its settings, for people.
    pub(super) fn summary(&self) -> String {
        match self {
            Self::Sqlite(asked) => {
                format!(
                    "journal {}, synchronous {}",
                    asked.journal, asked.synchronous
                )
            }
            Self::Postgresql(asked) => format!(
                "fsync {}, synchronous_commit {}, full_page_writes {}",
                asked.fsync, asked.synchronous_commit, asked.full_page_writes
            ),
        }
    }

    /// Returns what it needs of a machine.
    pub(super) fn needs(&self) -> Needs {
        match self {
            Self::Sqlite(_) => Needs::default(),
            Self::Postgresql(_) => postgres_server::needs(&["initdb", "pg_ctl", "setpriv"]),
        }
    }

    /// Bytes and files it takes beside its rows, with so many transactions of so many bytes.
    pub(super) fn overhead(&self, operations: u64, bytes: u64) -> (u64, u64) {
        match self {
            Self::Sqlite(_) => (0, 0),
            // An empty cluster and two segments of the log; then a page and more for each commit, until
            // the log is used again (max_wal_size).
            Self::Postgresql(_) => (
                (100 << 20) + operations.saturating_mul(bytes + (16 << 10)).min(1 << 30),
                1000,
            ),
        }
    }

    /// Makes it with all rows in their first generation, on the disk, and closes it.
    ///
    /// # Errors
    /// What it says.
    pub(super) fn lay_out(
        &self,
        directory: &Path,
        rows: (u32, u32),
        seed: u64,
    ) -> Result<(), WorkloadError> {
        match self {
            Self::Sqlite(asked) => sqlite::lay_out(directory, asked, rows, seed),
            Self::Postgresql(asked) => postgresql::lay_out(directory, asked, rows, seed),
        }
    }

    /// Opens it, calls with what commits a row, and closes it.
    ///
    /// # Errors
    /// It cannot be opened or closed; those of `work`.
    pub(super) fn during(
        &self,
        directory: &Path,
        work: impl FnOnce(&mut Commit<'_>) -> Result<PhaseOutcome, OpError>,
    ) -> Result<PhaseOutcome, WorkloadError> {
        match self {
            Self::Sqlite(asked) => sqlite::during(directory, asked, work),
            Self::Postgresql(asked) => postgresql::during(directory, asked, work),
        }
    }
}

/// Refuses a setting of another database than that of the idiom.
fn refuse_foreign(
    settings: &Settings,
    kind: Option<DatabaseKind>,
    word: &str,
) -> Result<(), Refusal> {
    for other in DatabaseKind::ALL {
        if Some(other) == kind {
            continue;
        }
        let mut given = other.settings().iter();
        let Some(name) = given.find(|name| settings.given(name)) else {
            continue;
        };
        let (of, idiom) = (other.name(), other.word());
        let (why, own) = match kind {
            Some(kind) => (
                format!("{name} is a setting of {of}, not of {}", kind.name()),
                format!("use its own ({})", kind.settings().join(", ")),
            ),
            None => (
                format!("{name} is a setting of {of}, and {word} uses no database"),
                "leave it out".to_owned(),
            ),
        };
        return Err(settings.refuse(name, why, format!("{own}, or use idiom = \"{idiom}\"")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_a_ledger_says_which_database_has_it() {
        for kind in DatabaseKind::ALL {
            assert_eq!(DatabaseKind::of_object(&kind.object(17)), Some(kind));
        }
        // Names of files that other idioms make, and one with the mark of a row.
        for file in ["data-0", "active/0-1", "data.db", "rest#1"] {
            assert_eq!(DatabaseKind::of_object(file), None, "{file}");
        }
    }
}
