//! The real thing: loop devices, as root.

use super::{site, stack};
use crate::event::Fact;
use crate::host::Host;
use crate::host::local::LocalHost;
use crate::journal::Journal;
use crate::stack::undo_all;
use crate::stack::{Layer, StackError, StandingStack};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scratch directory that shows what was left in it.
pub(crate) struct Ground {
    _base: tempfile::TempDir,
    pub(crate) scratch: PathBuf,
    pub(crate) host: LocalHost,
}

/// None, said on the terminal, where this user may not mount.
pub(crate) fn ground(test: &str, needs: &[&dyn Layer]) -> Option<Ground> {
    let host = LocalHost::new(Arc::new(|_| {}));
    let missing = needs
        .iter()
        .flat_map(|layer| host.missing(&layer.needs()))
        .next();
    if let Some(missing) = missing {
        // Not println!, which a passing test swallows: a skipped test must be seen.
        writeln!(std::io::stderr(), "skipped: {test}: {missing}").unwrap();
        return None;
    }
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap().join("mnt");
    std::fs::create_dir(&scratch).unwrap();
    Some(Ground {
        _base: base,
        scratch,
        host,
    })
}

impl Ground {
    pub(crate) fn journal(&self) -> PathBuf {
        self.scratch.with_file_name("journal.jsonl")
    }

    /// No mount, no loop device, no file of this test is there any more.
    pub(crate) fn assert_nothing_left(&self) {
        let mounts = self.host.mounts().unwrap();
        assert!(
            mounts
                .iter()
                .all(|m| !m.mount_point.starts_with(&self.scratch))
        );
        for name in self.host.list(Path::new("/sys/block")).unwrap() {
            let file = Path::new("/sys/block").join(name).join("loop/backing_file");
            let file = self.host.read_text(&file).unwrap_or_default();
            assert!(!Path::new(&file).starts_with(&self.scratch), "{file}");
        }
        assert_eq!(self.host.list(&self.scratch).unwrap(), [""; 0]);
    }
}

pub(crate) fn value<'a>(facts: &'a [Fact], name: &str) -> &'a str {
    let found = facts.iter().find(|fact| fact.name == name);
    &found
        .unwrap_or_else(|| panic!("no {name} in {facts:#?}"))
        .value
}

/// Raises, writes, settles with a remount, looks for what was written, lowers.
pub(crate) fn whole_life(lines: &[&str], look: impl FnOnce(&StandingStack)) {
    let stack = stack(lines);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground(&lines.join(" + "), &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let site = site(&ground.host, &journal, &ground.scratch);
    let raised = stack.set_up(&site).unwrap();
    let directory = raised.directory().to_path_buf();
    assert_eq!(ground.host.list(&directory).unwrap(), [""; 0]);
    assert_eq!(raised.facts().len(), lines.len());
    look(&raised);
    std::fs::write(directory.join("data"), vec![7; 100_000]).unwrap();
    let settled = raised.settle(&site, false, true).unwrap();
    let in_memory = lines[0].starts_with("tmpfs");
    let ours = !lines[0].starts_with("dir");
    assert_eq!(settled.remounted, ours && !in_memory);
    assert_eq!(settled.caches, "none");
    assert_eq!(
        std::fs::read(directory.join("data")).unwrap(),
        vec![7; 100_000]
    );
    raised.tear_down(&site).unwrap();
    assert!(!directory.exists());
    assert!(journal.pending().is_empty());
    ground.assert_nothing_left();
}

#[test]
fn a_stack_whose_program_died_is_undone_from_the_journal() {
    let stack = stack(&[
        "loop = { size = \"130 MiB\", count = 2 }",
        "btrfs = { profile = \"raid1\" }",
    ]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("undone from the journal", &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let raised = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap();
    std::fs::write(raised.directory().join("data"), b"x").unwrap();
    drop(raised);
    drop(journal);
    assert_ne!(ground.host.list(&ground.scratch).unwrap(), [""; 0]);
    let journal = Journal::open(&ground.journal()).unwrap();
    let report = undo_all(&ground.host, &journal).unwrap();
    assert_eq!(report.failed, []);
    assert_eq!(report.undone.len(), 7);
    ground.assert_nothing_left();
    drop(journal);
    let journal = Journal::open(&ground.journal()).unwrap();
    assert_eq!(undo_all(&ground.host, &journal).unwrap().undone, []);
}

#[test]
fn a_refused_option_is_an_error_and_nothing_is_left() {
    let stack = stack(&[
        "loop = { size = \"320 MiB\" }",
        "xfs = { mount = [\"nobarrier\"] }",
    ]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("refused option", &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let error = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("xfs: `mount -t xfs -o nobarrier /dev/loop"),
        "{text}"
    );
    assert_eq!((error.layer, error.left), (Some(1), vec![]));
    assert!(journal.pending().is_empty());
    ground.assert_nothing_left();
}

/// What is busy is not torn away: the error names who holds it, the journal keeps it, and once it
/// is let go everything goes.
#[test]
fn a_busy_stack_is_not_forced_down() {
    let stack = stack(&["loop = { size = \"64 MiB\" }", "ext4 = {}"]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("busy stack", &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let site = site(&ground.host, &journal, &ground.scratch);
    let raised = stack.set_up(&site).unwrap();
    let held = std::fs::File::create(raised.directory().join("held")).unwrap();
    let error: StackError = raised.tear_down(&site).unwrap_err();
    let me = format!("(process {})", std::process::id());
    assert!(error.to_string().contains(&me), "{error}");
    assert_eq!(journal.pending().len(), 5);
    drop(held);
    assert_eq!(undo_all(&ground.host, &journal).unwrap().failed, []);
    ground.assert_nothing_left();
}

/// A path that is no text, with a blank and a line end, goes through every command and back.
#[test]
fn odd_paths_are_raised_and_undone() {
    use std::os::unix::ffi::OsStrExt;
    let stack = stack(&["loop = { size = \"64 MiB\" }", "ext4 = {}"]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("odd paths", &needs) else {
        return;
    };
    let odd = std::ffi::OsStr::from_bytes(b"a b\\\xff");
    let scratch = ground.scratch.join(odd);
    let journal = Journal::create(&ground.journal()).unwrap();
    let raised = stack
        .set_up(&site(&ground.host, &journal, &scratch))
        .unwrap();
    drop((raised, journal));
    let journal = Journal::open(&ground.journal()).unwrap();
    assert_eq!(undo_all(&ground.host, &journal).unwrap().failed, []);
    std::fs::remove_dir(&scratch).unwrap();
    ground.assert_nothing_left();
}
