//! How the phases over many small files fail and stop.

use super::*;

#[test]
fn failures_name_the_path_and_what_the_system_said() {
    let home = tempfile::tempdir().unwrap();
    let set = by_one_thread(home.path());
    let control = Control::default();
    let pass = plain(&control);
    set.prepare().unwrap();
    let expect = |error: OpError, op: Op, path: PathBuf, errno: Errno| {
        let found = (error.op, error.path, error.errno);
        assert_eq!(found, (op, path, errno.raw_os_error()));
    };
    let first = home.path().join("d000000");
    expect(
        failed(&set, FileSet::mkdir, pass),
        Op::Mkdir,
        first.clone(),
        Errno::EXIST,
    );
    let nothing = set.path(0, NameKind::Made);
    for (run, op) in [
        (FileSet::open_close as Run, Op::Open),
        (FileSet::rename, Op::Rename),
        (FileSet::link, Op::Link),
        (FileSet::unlink, Op::Unlink),
    ] {
        expect(failed(&set, run, pass), op, nothing.clone(), Errno::NOENT);
    }
    set.create(pass).unwrap();
    expect(
        failed(&set, FileSet::rmdir, pass),
        Op::Rmdir,
        first.clone(),
        Errno::NOTEMPTY,
    );
    // The seventh file's second name is taken.
    let taken = set.path(6, NameKind::Linked);
    std::fs::write(&taken, b"").unwrap();
    let outcome = set.link(pass).unwrap();
    assert_eq!(counts(&outcome), [(Op::Link, 6, 0)]);
    expect(outcome.error.unwrap(), Op::Link, taken, Errno::EXIST);
    // A directory stands where the third file would be renamed to.
    let blocked = set.path(2, NameKind::Renamed);
    std::fs::create_dir(&blocked).unwrap();
    let outcome = set.rename(pass).unwrap();
    assert_eq!(counts(&outcome), [(Op::Rename, 2, 0)]);
    expect(outcome.error.unwrap(), Op::Rename, blocked, Errno::ISDIR);
    let last = home.path().join("d000002");
    std::fs::remove_dir_all(&last).unwrap();
    expect(
        set.readdir(pass).unwrap_err(),
        Op::Readdir,
        last,
        Errno::NOENT,
    );
}

#[test]
fn a_directory_that_lists_another_number_of_entries_fails_with_both_numbers() {
    let home = tempfile::tempdir().unwrap();
    let set = by_one_thread(home.path());
    let control = Control::default();
    set.prepare().unwrap();
    set.create(plain(&control)).unwrap();
    let second = home.path().join("d000001");
    std::fs::write(second.join("stranger"), b"").unwrap();
    let outcome = set.readdir(plain(&control)).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Failed);
    // The listing itself was done, and stays counted.
    assert_eq!(counts(&outcome), [(Op::Readdir, 2, 0)]);
    let error = outcome.error.unwrap();
    assert_eq!(error.path, second);
    assert!(
        error.detail.contains("lists 168 entries where 167"),
        "{error}"
    );
}

/// A set makes two names of a file, which every file system allows, so the limit is made up here.
#[test]
fn a_file_with_too_many_names_fails_the_phase() {
    let home = tempfile::tempdir().unwrap();
    let set = by_one_thread(home.path());
    set.prepare().unwrap();
    let allowed = AtomicU64::new(17);
    let outcome = set.between(
        Op::Link,
        NameKind::Linked,
        plain(&Control::default()),
        |_, _| match allowed.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(Errno::MLINK),
            _ => Ok(()),
        },
    );
    let outcome = outcome.unwrap();
    assert_eq!(counts(&outcome), [(Op::Link, 17, 0)]);
    let error = outcome.error.unwrap();
    assert_eq!(error.path, set.path(17, NameKind::Linked));
    assert_eq!(error.errno, Errno::MLINK.raw_os_error());
}

/// A phase stopped in the middle reports the work until then, and does no more.
#[test]
fn stop_ends_a_phase_in_its_middle() {
    let home = tempfile::tempdir().unwrap();
    let set = by_one_thread(home.path());
    let control = Control::default();
    let handles = set.open(Op::Stat).unwrap();
    let outcome = set.pass(
        (Op::Stat, 500),
        &handles,
        durable(&control),
        || Ok(()),
        |index, (), worker| {
            worker.time::<Halt>(Op::Stat, || Ok(0))?;
            control.stop.store(index == 122, Ordering::Relaxed);
            Ok(())
        },
    );
    let outcome = outcome.unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Stopped);
    assert_eq!(
        counts(&outcome),
        [(Op::Stat, 123, 0)],
        "and nothing flushed"
    );
}

#[test]
fn a_failure_of_one_thread_stops_the_others_and_counts_what_they_did() {
    let home = tempfile::tempdir().unwrap();
    let set = set(home.path());
    let control = Control::default();
    set.prepare().unwrap();
    set.create(plain(&control)).unwrap();
    let victim = set.path(499, NameKind::Made);
    std::fs::remove_file(&victim).unwrap();
    let outcome = set.unlink(plain(&control)).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Failed);
    assert_eq!(outcome.error.as_ref().unwrap().path, victim);
    let removed = 499 - on_disk(home.path()).len() as u64;
    assert_eq!(counts(&outcome), [(Op::Unlink, removed, 0)]);
}
