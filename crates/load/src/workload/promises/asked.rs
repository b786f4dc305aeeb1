//! What a database is asked for, and the names of its rows in a ledger: known also where the program was built
//! without it.

/// The file of SQLite in the directory of a trial.
pub(super) const FILE: &str = "data.db";

/// The name that rows of PostgreSQL have in front of their number.
pub(super) const SERVED: &str = "postgresql";

/// The ledger's name of a row: of a file, or of the server.
pub(super) fn object(of: &str, row: u32) -> String {
    format!("{of}#{row}")
}

/// Modes that SQLite is asked for.
#[derive(Debug, Clone)]
pub(super) struct Durability {
    /// `PRAGMA journal_mode`.
    pub(super) journal: String,
    /// `PRAGMA synchronous`.
    pub(super) synchronous: String,
}

/// Switches that PostgreSQL is asked for, `on` or `off` each.
#[derive(Debug, Clone)]
pub(super) struct Switches {
    /// Switch by which the server ever waits for the disk.
    pub(super) fsync: String,
    /// Switch by which a commit waits until its log is on the disk.
    pub(super) synchronous_commit: String,
    /// Switch by which pages are logged whole after a checkpoint.
    pub(super) full_page_writes: String,
}
