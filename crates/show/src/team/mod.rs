//! The results of a team: runs of many people in one PostgreSQL.
//!
//! A pushed run keeps the lines of its log as they are; the tables beside them are made from the
//! lines and serve queries ([schema](../../docs/formats/team.md)). Pushing is one transaction for
//! each run, so what a kill or a lost connection interrupts has not happened, and pushing again
//! enters nothing twice. What comes out of the database was written by others: it goes through the
//! reader of logs, within limits.

mod address;
mod connection;
mod fill;
mod limited;
mod password;
mod push;
mod read;
#[cfg(test)]
mod tests;

pub use address::TeamAddress;
pub use push::{PushedRun, Pushing, TeamWriter};
pub use read::TeamRuns;

/// Version of the tables, in `stackrace.schema_version`.
const SCHEMA: i32 = 1;
/// Statements the first push into a database carries out.
const TABLES: &str = include_str!("schema.sql");
