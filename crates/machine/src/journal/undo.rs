//! Undoing what the journal names, newest first.
//!
//! Nothing is forced: no lazy unmount, no detaching of what is in use. What cannot be undone stays
//! in the journal with everything older of its group, and the report says who is in the way.

use super::check::accepts;
use super::entry::{Entry, EntryId, GROUND, Undo};
use super::error::JournalError;
use super::file::Journal;
use super::layer::UndoKind;
use super::proof::Proof;
use super::{busy::unmount, devices, gone, peers};
use crate::host::{Host, HostError};
use std::collections::BTreeSet;

/// Result of undoing: what was undone, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoReport {
    /// Steps undone, in the order it was done.
    pub undone: Vec<Undo>,
    /// Steps not undone, each with why.
    pub failed: Vec<(Undo, String)>,
}

/// Undoes everything that is pending; `kinds` are the ways of all layers.
///
/// # Errors
/// When an entry does not prove to be of the journal's own run: then nothing is undone. When the
/// journal itself cannot be written. What could not be undone is in the report.
pub fn undo_all(
    host: &dyn Host,
    journal: &Journal,
    kinds: &[&UndoKind],
) -> Result<UndoReport, JournalError> {
    undo(host, journal, journal.pending(), kinds)
}

/// Entries that are pending, newest first, checked as before they are undone.
///
/// # Errors
/// An entry does not prove to be of the journal's own run.
pub fn check_all(journal: &Journal, kinds: &[&UndoKind]) -> Result<Vec<Undo>, JournalError> {
    let entries = journal.pending();
    check(&entries, &journal.proof(), kinds)?;
    Ok(entries.into_iter().map(|entry| entry.undo).collect())
}

fn check(entries: &[Entry], proof: &Proof, kinds: &[&UndoKind]) -> Result<(), JournalError> {
    let mut entries = entries.iter();
    match entries.find(|entry| !accepts(proof, &entry.undo, Some(kinds))) {
        Some(entry) => Err(JournalError::Foreign(entry.undo.to_string())),
        None => Ok(()),
    }
}

/// Undoes those of these entries that are pending, newest first.
///
/// # Errors
/// As [`undo_all`].
pub fn undo_entries(
    host: &dyn Host,
    journal: &Journal,
    ids: &[EntryId],
    kinds: &[&UndoKind],
) -> Result<UndoReport, JournalError> {
    let mut entries = journal.pending();
    entries.retain(|entry| ids.contains(&entry.id));
    undo(host, journal, entries, kinds)
}

fn undo(
    host: &dyn Host,
    journal: &Journal,
    entries: Vec<Entry>,
    kinds: &[&UndoKind],
) -> Result<UndoReport, JournalError> {
    // Before the first entry is undone: a file that was edited or damaged is not obeyed in part.
    let proof = journal.proof();
    check(&entries, &proof, kinds)?;
    let mut report = UndoReport::default();
    let mut stuck: BTreeSet<String> = BTreeSet::new();
    for entry in entries {
        if stuck.contains(&entry.group) || (entry.group == GROUND && !stuck.is_empty()) {
            let why = "what was made later could not be undone".to_string();
            report.failed.push((entry.undo, why));
            continue;
        }
        let thing = entry.thing.as_ref();
        let undone = gone::check_before(host, &entry.undo, thing)
            .and_then(|()| undo_one(host, &entry.undo, kinds, &proof))
            .and_then(|()| gone::check_after(host, &entry.undo, thing));
        match undone {
            Ok(()) => {
                journal.done(entry.id)?;
                report.undone.push(entry.undo);
            }
            Err(error) => {
                // What is older carries what could not be undone: to remove it would only fail in a
                // less clear way.
                stuck.insert(entry.group);
                let next = error.next();
                let why = match error.is_elsewhere() {
                    // What to do is all that helps here.
                    true => format!("{error}; {next}"),
                    false => error.to_string(),
                };
                report.failed.push((entry.undo, why));
            }
        }
    }
    Ok(report)
}

fn undo_one(
    host: &dyn Host,
    undo: &Undo,
    kinds: &[&UndoKind],
    proof: &Proof,
) -> Result<(), HostError> {
    carry_out(host, undo, kinds, proof)?;
    // To a machine that is lost it looked as if there were nothing to undo.
    host.answers()
}

fn carry_out(
    host: &dyn Host,
    undo: &Undo,
    kinds: &[&UndoKind],
    proof: &Proof,
) -> Result<(), HostError> {
    match undo {
        Undo::RemoveFile(path) => host.remove_file(path),
        Undo::RemoveDir(path) => host.remove_dir(path),
        Undo::RemoveTree(path) => host.remove_tree(path),
        Undo::Unmount(path) => unmount(host, path),
        Undo::Blank { device, mark } => devices::blank(host, device, mark),
        Undo::WriteBack { file, ours, before } => devices::write_back(host, file, ours, before),
        Undo::EndMachine(path) => host.end_machine(path),
        Undo::EndProcess { program, mark } => host.end_daemon(program, mark),
        // That there is such a kind was checked before.
        Undo::Layer(entry) => {
            let kind = entry.kind(kinds, proof);
            kind.map_or(Ok(()), |kind| (kind.undo)(host, &entry.of))
        }
        // By its name: another machine may have its number by now.
        Undo::OnPeer {
            host: name, undo, ..
        } => undo_one(peers::named(host, name)?, undo, kinds, proof),
    }
}
