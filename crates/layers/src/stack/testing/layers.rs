//! The real thing: loop devices, as root.

use super::{Ended, ground, site, stack, value, whole_life};
use crate::stack::StackError;
use crate::stack::undo_all;
use stackrace_machine::host::Host;
use stackrace_machine::journal::Journal;

pub(super) fn an_existing_directory_needs_no_root() -> Ended {
    let base = tempfile::tempdir().unwrap();
    std::fs::write(base.path().join("photo"), b"x").unwrap();
    let line = format!("dir = {{ path = \"{}\" }}", base.path().display());
    whole_life(&[&line], |standing| {
        assert!(!value(&standing.facts()[0].facts, "file system").is_empty());
        // Worked in by its descriptor, which leads to the directory.
        let directory = standing.directory().canonicalize().unwrap();
        assert!(directory.starts_with(base.path().canonicalize().unwrap()));
    })?;
    assert!(base.path().join("photo").exists());
    assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1);
    Ok(())
}

pub(super) fn a_stack_whose_program_died_is_undone_from_the_journal() -> Ended {
    let stack = stack(&[
        "loop = { size = \"130 MiB\", count = 2 }",
        "btrfs = { profile = \"raid1\" }",
    ]);
    let ground = ground(&stack)?;
    let journal = Journal::create(&ground.journal()).unwrap();
    let standing = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap();
    std::fs::write(standing.directory().join("data"), b"x").unwrap();
    drop(standing);
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
    Ok(())
}

pub(super) fn a_refused_option_is_an_error_and_nothing_is_left() -> Ended {
    let stack = stack(&[
        "loop = { size = \"320 MiB\" }",
        "xfs = { mount = [\"logbsize=12345\"] }",
    ]);
    let ground = ground(&stack)?;
    let journal = Journal::create(&ground.journal()).unwrap();
    let error = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("xfs: `mount -t xfs -o logbsize=12345 /dev/loop"),
        "{text}"
    );
    assert_eq!((error.layer, error.left), (Some(1), vec![]));
    assert!(journal.pending().is_empty());
    ground.assert_nothing_left();
    Ok(())
}

/// A busy thing is not torn away: the error names who holds it, the journal keeps it, and once it
/// is let go everything goes. The lists of words are one fence; this is the one behind it.
pub(super) fn a_relative_path_leads_a_formatting_tool_nowhere() -> Ended {
    let stack = stack(&["loop = { size = \"64 MiB\" }", "ext4 = {}"]);
    let ground = ground(&stack)?;
    let image = ground.scratch.join("image");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    // From the root of the file system, `etc` is there to be copied into the new one.
    let words = ["mkfs.ext4", "-q", "-d", "etc"].map(std::ffi::OsString::from);
    let command = [words.to_vec(), vec![image.clone().into_os_string()]].concat();
    let output = ground.host.exec(&command).unwrap();
    assert_ne!(output.status, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("No such file"), "{}", output.stderr);
    std::fs::remove_file(image).unwrap();
    Ok(())
}

pub(super) fn a_busy_stack_is_not_forced_down() -> Ended {
    let stack = stack(&["loop = { size = \"64 MiB\" }", "ext4 = {}"]);
    let ground = ground(&stack)?;
    let journal = Journal::create(&ground.journal()).unwrap();
    let site = site(&ground.host, &journal, &ground.scratch);
    let standing = stack.set_up(&site).unwrap();
    let held = std::fs::File::create(standing.directory().join("held")).unwrap();
    let error: StackError = standing.tear_down(&site).unwrap_err();
    let me = format!("(process {})", std::process::id());
    assert!(error.to_string().contains(&me), "{error}");
    assert_eq!(journal.pending().len(), 5);
    drop(held);
    assert_eq!(undo_all(&ground.host, &journal).unwrap().failed, []);
    ground.assert_nothing_left();
    Ok(())
}

/// A path that is no text, with a blank and a line end, goes through every command and back.
pub(super) fn odd_paths_are_raised_and_undone() -> Ended {
    use std::os::unix::ffi::OsStrExt;
    let stack = stack(&["loop = { size = \"64 MiB\" }", "ext4 = {}"]);
    let ground = ground(&stack)?;
    let odd = std::ffi::OsStr::from_bytes(b"a b\\\xff");
    let scratch = ground.scratch.join(odd);
    let journal = Journal::create(&ground.journal()).unwrap();
    let standing = stack
        .set_up(&site(&ground.host, &journal, &scratch))
        .unwrap();
    drop((standing, journal));
    let journal = Journal::open(&ground.journal()).unwrap();
    assert_eq!(undo_all(&ground.host, &journal).unwrap().failed, []);
    std::fs::remove_dir(&scratch).unwrap();
    ground.assert_nothing_left();
    Ok(())
}
