//! What a journal survives: torn lines, live runs, names that are not text.

use super::*;
use crate::host::Host;
use crate::host::local::LocalHost;
use crate::host::plan::{Fault, PlanHost};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Digits a run drew.
const MARK: &str = "0123456789abcdef";

/// A path that carries them.
fn ours(name: &str) -> PathBuf {
    PathBuf::from(format!("/srv/.stackrace-t-{MARK}-{name}"))
}

fn file(name: &str) -> Undo {
    Undo::RemoveFile(ours(name))
}

fn create(path: &Path) -> Journal {
    let journal = Journal::create(path).unwrap();
    journal.draw(MARK).unwrap();
    journal
}

/// Kept nowhere.
fn nowhere() -> Journal {
    let journal = Journal::nowhere();
    journal.draw(MARK).unwrap();
    journal
}

#[test]
fn what_was_not_undone_is_pending_newest_first_when_opened_again() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    let odd = ours("odd").join(OsStr::from_bytes(b"\xff \n%"));
    let journal = create(&path);
    journal.will("a", file("1")).unwrap();
    let second = journal.will("a", file("2")).unwrap();
    journal.will("b", Undo::Unmount(odd.clone())).unwrap();
    journal.done(second).unwrap();
    drop(journal);
    let journal = Journal::open(&path).unwrap();
    let pending: Vec<Undo> = journal.pending().into_iter().map(|e| e.undo).collect();
    assert_eq!(pending, [Undo::Unmount(odd), file("1")]);
    let fourth = journal.will("b", file("4")).unwrap();
    assert!(journal.pending().iter().all(|e| e.id <= fourth));
    assert_eq!(journal.pending().len(), 3);
}

#[test]
fn a_line_torn_by_a_crash_is_cut_off_and_the_journal_goes_on() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    let journal = create(&path);
    journal.will("a", file("1")).unwrap();
    drop(journal);
    File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"{\"entry\":2,\"gro")
        .unwrap();
    let journal = Journal::open(&path).unwrap();
    assert_eq!(journal.pending().len(), 1);
    journal.will("a", file("3")).unwrap();
    drop(journal);
    assert_eq!(Journal::open(&path).unwrap().pending().len(), 2);
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_with_its_number() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    let run = base.path().file_name().unwrap().display();
    let text = format!("{{\"journal\":3,\"run\":\"{run}\"}}\nrubbish\n{{\"done\":1}}\n");
    std::fs::write(&path, text).unwrap();
    let error = Journal::open(&path).err().unwrap();
    assert!(
        error
            .to_string()
            .ends_with("journal.jsonl:2: this line is not valid")
    );
    for (other, next) in [
        (1, "of the version that wrote it"),
        (5, "use a newer stackrace"),
    ] {
        std::fs::write(&path, format!("{{\"journal\":{other}}}\n")).unwrap();
        let error = Journal::open(&path).err().unwrap();
        assert!(matches!(error, JournalError::OtherFormat { format, .. } if format == other));
        assert!(error.next().contains(next), "{}", error.next());
    }
}

#[test]
fn a_live_run_keeps_its_journal() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    let journal = create(&path);
    assert!(matches!(
        Journal::open(&path).err(),
        Some(JournalError::Live { .. })
    ));
    drop(journal);
    Journal::open(&path).unwrap();
    assert!(Journal::create(&path).is_err());
}

/// The file, byte for byte.
#[test]
fn the_format_is_what_it_was() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    let journal = create(&path);
    let detach = UndoKind {
        layer: "loop",
        name: "detach",
        params: &[Param::Path],
        undo: |_, _| Ok(()),
    };
    let first = journal.will("r1-t0", Undo::RemoveDir(ours("a b"))).unwrap();
    journal
        .will("r1-t0", Undo::from(detach.of([ours("a b/disk-1").into()])))
        .unwrap();
    journal.done(first).unwrap();
    let run = base.path().file_name().unwrap().display();
    let lines = [
        &format!("{{\"journal\":4,\"run\":\"{run}\"}}"),
        "{\"mark\":\"0123456789abcdef\"}",
        "{\"place\":\"/srv\"}",
        "{\"entry\":1,\"group\":\"r1-t0\",\"undo\":{\"remove-dir\":\"/srv/.stackrace-t-0123456789abcdef-a%20b\"}}",
        "{\"entry\":2,\"group\":\"r1-t0\",\"undo\":{\"layer\":{\"name\":\"loop\",\"undo\":\"detach\",\"of\":[\"/srv/.stackrace-t-0123456789abcdef-a%20b/disk-1\"]}}}",
        "{\"done\":1}",
        "",
    ];
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines.join("\n"));
}

#[test]
fn what_cannot_be_undone_keeps_the_older_of_its_group_and_no_other() {
    let host = PlanHost::new(Vec::new(), Fault::Never);
    let base = tempfile::tempdir().unwrap();
    let full = base.path().join(ours("full").file_name().unwrap());
    host.create_dir(&full).unwrap();
    host.create_dir(&full.join("child")).unwrap();
    let journal = nowhere();
    journal.will("a", file("never-made")).unwrap();
    journal.will("b", file("never-made-either")).unwrap();
    journal.will("a", Undo::RemoveDir(full.clone())).unwrap();
    let report = undo_all(&host, &journal, &[]).unwrap();
    assert_eq!(report.undone, [file("never-made-either")]);
    assert_eq!(report.failed.len(), 2);
    assert_eq!(journal.pending().len(), 2);
    host.remove_dir(&full.join("child")).unwrap();
    let report = undo_all(&host, &journal, &[]).unwrap();
    assert_eq!(report.undone, [Undo::RemoveDir(full), file("never-made")]);
    assert!(journal.pending().is_empty());
}

#[test]
fn what_was_made_on_a_peer_is_undone_there() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    let host = PlanHost::new(Vec::new(), Fault::Never);
    let peer = host.peer(2).unwrap();
    let made = base.path().join(ours("made").file_name().unwrap());
    let journal = create(&path);
    let undo = Undo::on(2, peer, Undo::RemoveDir(made.clone()));
    journal.will("a", undo.clone()).unwrap();
    peer.create_dir(&made).unwrap();
    drop(journal);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains(
            "\"undo\":{\"on-peer\":{\"node\":2,\"host\":\"node2\",\"undo\":{\"remove-dir\":"
        ),
        "{text}"
    );
    assert_eq!(
        undo.to_string(),
        format!("remove the directory {} on node2", made.display())
    );
    let journal = Journal::open(&path).unwrap();
    // A machine without that peer cannot, and says so; nothing is forgotten.
    let alone = LocalHost::new(std::sync::Arc::new(|_| ()));
    let failed = undo_all(&alone, &journal, &[]).unwrap().failed;
    assert!(failed[0].1.contains("--peer node2"), "{failed:?}");
    assert_eq!(undo_all(&host, &journal, &[]).unwrap().undone, [undo]);
    assert!(host.left().is_empty());
}

/// Another machine may have that number by now: the entry is undone on the one of its name.
#[test]
fn a_peer_is_found_by_its_name_whatever_number_it_had() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    let made = base.path().join(ours("made").file_name().unwrap());
    let run = base.path().file_name().unwrap().display();
    let place = base.path().display();
    let text = format!(
        "{{\"journal\":3,\"run\":\"{run}\"}}\n{{\"mark\":\"{MARK}\"}}\n{{\"place\":\"{place}\"}}\n{{\"entry\":1,\"group\":\"a\",\"undo\":{{\"on-peer\":{{\"node\":2,\"host\":\"node3\",\"undo\":{{\"remove-dir\":\"{}\"}}}}}}}}\n",
        made.display()
    );
    std::fs::write(&path, text).unwrap();
    let host = PlanHost::new(Vec::new(), Fault::Never);
    host.peer(3).unwrap().create_dir(&made).unwrap();
    let journal = Journal::open(&path).unwrap();
    assert_eq!(undo_all(&host, &journal, &[]).unwrap().undone.len(), 1);
    assert!(host.left().is_empty(), "{:?}", host.left());
}

/// The directory of a run on a peer holds the files of what stands: it goes when nothing does.
#[test]
fn the_ground_is_undone_when_nothing_else_is_left() {
    let base = tempfile::tempdir().unwrap();
    let host = PlanHost::new(Vec::new(), Fault::Never);
    let journal = Journal::create(&base.path().join("journal.jsonl")).unwrap();
    let [ground, full] =
        ["ground", "full"].map(|name| base.path().join(ours(name).file_name().unwrap()));
    for (group, path) in [(GROUND, &ground), ("a", &full)] {
        journal.will(group, Undo::RemoveDir(path.clone())).unwrap();
        host.create_dir(path).unwrap();
    }
    host.create_dir(&full.join("child")).unwrap();
    let report = undo_all(&host, &journal, &[]).unwrap();
    assert_eq!((report.undone.len(), report.failed.len()), (0, 2));
    host.remove_dir(&full.join("child")).unwrap();
    let report = undo_all(&host, &journal, &[]).unwrap();
    assert_eq!(report.undone, [full, ground].map(Undo::RemoveDir));
}

/// A text that is no journal stays as it is, whatever its last line looks like.
#[test]
fn nothing_is_cut_off_a_file_that_is_not_understood() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    for text in [
        "my diary",
        "line\nlast line",
        "{\"journal\":3}\nno",
        "1\n2\nx",
    ] {
        std::fs::write(&path, text).unwrap();
        assert!(Journal::open(&path).is_err(), "{text}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    // What a crash leaves at the very beginning is no text.
    for rest in ["", "{\"jour", "\0\0\0"] {
        std::fs::write(&path, rest).unwrap();
        assert!(Journal::open(&path).unwrap().pending().is_empty());
    }
}

#[test]
fn a_journal_of_another_run_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    for run in ["", "../../x", "2026-11-21T1405-aaaa"] {
        std::fs::write(&path, format!("{{\"journal\":3,\"run\":\"{run}\"}}\n")).unwrap();
        let error = Journal::open(&path).err().unwrap();
        assert!(matches!(error, JournalError::OtherRun { .. }), "{error}");
    }
}

#[test]
fn an_older_journal_counts_only_where_nothing_is_left_to_undo() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("journal.jsonl");
    let text = "{\"journal\":2}\n{\"entry\":1,\"group\":\"a\",\"undo\":{\"remove-dir\":\"/a\"}}\n";
    std::fs::write(&path, text).unwrap();
    let error = Journal::open(&path).err().unwrap();
    assert!(matches!(error, JournalError::OtherFormat { format: 2, .. }));
    std::fs::write(&path, format!("{text}{{\"done\":1}}\n")).unwrap();
    for _ in 0..2 {
        let journal = Journal::open(&path).unwrap();
        assert!(journal.pending().is_empty());
    }
}

/// A thing that could not be undone later is not created.
#[test]
fn an_entry_that_proves_nothing_is_not_written() {
    let journal = nowhere();
    for undo in [
        Undo::RemoveTree("/srv/photos".into()),
        Undo::RemoveFile("/srv/.stackrace-t-fedcba9876543210-x".into()),
    ] {
        let error = journal.will("a", undo.clone()).unwrap_err();
        assert_eq!(error, JournalError::Foreign(undo.to_string()));
    }
    assert!(journal.pending().is_empty());
    assert!(journal.draw("short").is_err() && journal.draw("0123456789ABCDEF").is_err());
}

/// This machine, with a directory for a run's things.
fn here() -> (LocalHost, tempfile::TempDir, PathBuf) {
    let base = tempfile::tempdir().unwrap();
    let place = base.path().canonicalize().unwrap().join("place");
    std::fs::create_dir(&place).unwrap();
    (LocalHost::new(std::sync::Arc::new(|_| ())), base, place)
}

/// A tree of the run in a place, in its journal.
fn made_in(host: &LocalHost, journal: &Journal, place: &Path) -> PathBuf {
    let path = place.join(ours("tree").file_name().unwrap());
    let id = journal.will("a", Undo::RemoveTree(path.clone())).unwrap();
    host.create_dir(&path).unwrap();
    journal.made(host, id).unwrap();
    path
}

#[test]
fn what_is_not_at_its_path_is_not_called_undone() {
    let (host, _base, place) = here();
    let journal = nowhere();
    let path = made_in(&host, &journal, &place);
    let renamed = path.with_extension("x");
    let away = place.with_file_name("away");
    // The thing itself, then a directory above it.
    for (from, to, told) in [(&path, &renamed, &renamed), (&place, &away, &away)] {
        std::fs::rename(from, to).unwrap();
        let report = undo_all(&host, &journal, &[]).unwrap();
        assert_eq!(report.undone, []);
        let why = &report.failed[0].1;
        let moved = format!("was moved to {}; move it back", told.display());
        assert!(
            why.contains("it is not gone") && why.contains(&moved),
            "{why}"
        );
        assert_eq!(journal.pending().len(), 1);
        std::fs::rename(to, from).unwrap();
    }
    let report = undo_all(&host, &journal, &[]).unwrap();
    assert_eq!(report.undone, [Undo::RemoveTree(path.clone())]);
    assert!(!path.exists() && journal.pending().is_empty());
}

#[test]
fn what_a_user_removed_is_gone_and_what_took_its_place_stays() {
    let (host, _base, place) = here();
    let journal = nowhere();
    let path = made_in(&host, &journal, &place);
    std::fs::rename(&path, place.join("kept")).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("photo"), "x").unwrap();
    let report = undo_all(&host, &journal, &[]).unwrap();
    assert_eq!((report.undone.len(), report.failed.len()), (0, 1));
    assert!(path.join("photo").exists());
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::remove_dir_all(place.join("kept")).unwrap();
    undo_all(&host, &journal, &[]).unwrap();
    assert!(journal.pending().is_empty());
}

#[test]
fn what_was_made_is_known_to_the_program_that_cleans() {
    let (host, base, place) = here();
    let file = base.path().join("journal.jsonl");
    let journal = create(&file);
    let path = made_in(&host, &journal, &place);
    drop(journal);
    std::fs::rename(&path, path.with_extension("x")).unwrap();
    let journal = Journal::open(&file).unwrap();
    let report = undo_all(&host, &journal, &[]).unwrap();
    assert_eq!((report.undone.len(), report.failed.len()), (0, 1));
}

#[test]
fn a_journal_of_the_format_before_is_cleaned_and_goes_on() {
    let (host, base, place) = here();
    let file = base.path().join("journal.jsonl");
    let run = base.path().file_name().unwrap().display();
    let path = place.join(ours("tree").file_name().unwrap());
    std::fs::create_dir(&path).unwrap();
    let text = format!(
        "{{\"journal\":3,\"run\":\"{run}\"}}\n{{\"mark\":\"{MARK}\"}}\n{{\"place\":\"{}\"}}\n{{\"entry\":1,\"group\":\"a\",\"undo\":{{\"remove-tree\":\"{}\"}}}}\n",
        place.display(),
        path.display()
    );
    std::fs::write(&file, text).unwrap();
    assert_eq!(Journal::look(&file).unwrap().pending().len(), 1);
    let journal = Journal::open(&file).unwrap();
    assert_eq!(undo_all(&host, &journal, &[]).unwrap().undone.len(), 1);
    assert!(!path.exists());
    made_in(&host, &journal, &place);
    drop(journal);
    assert_eq!(Journal::open(&file).unwrap().pending().len(), 1);
}

#[test]
fn a_run_whose_store_was_moved_creates_nothing_and_is_cleaned_where_it_is() {
    let (host, base, _place) = here();
    let base = base.path().canonicalize().unwrap();
    let [store, moved] = ["store", "moved"].map(|name| base.join(name));
    let own = store.join("runs/r");
    std::fs::create_dir_all(own.join("mnt")).unwrap();
    let journal = create(&own.join(FILE));
    let path = made_in(&host, &journal, &own.join("mnt"));
    std::fs::rename(&store, &moved).unwrap();
    let refused = journal.will("a", Undo::RemoveDir(own.join("mnt/more")));
    let error = refused.unwrap_err();
    assert!(matches!(error, JournalError::Moved { hidden: false, .. }));
    let clean = format!("stackrace clean --store {}", moved.display());
    assert!(error.next().contains(&clean), "{}", error.next());
    let report = undo_all(&host, &journal, &[]).unwrap();
    assert!(report.failed[0].1.contains(&clean), "{report:?}");
    drop(journal);
    let journal = Journal::open(&moved.join("runs/r").join(FILE)).unwrap();
    assert_eq!(undo_all(&host, &journal, &[]).unwrap().undone.len(), 1);
    let name = path.file_name().unwrap();
    assert!(!moved.join("runs/r/mnt").join(name).exists());
}
