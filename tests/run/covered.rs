//! Something that is mounted over a file of the data, and not over a directory.

use std::path::Path;

use super::*;
use crate::support::quietly;

/// The first file below a directory that is as large as the data.
fn data_below(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    entries.map(|entry| entry.path()).find_map(|path| {
        let about = fs::symlink_metadata(&path).ok()?;
        match about.is_dir() {
            true => data_below(&path),
            false => (about.len() == 1 << 20).then_some(path),
        }
    })
}

/// Waits for a file of the data below a directory, and mounts another one over it.
fn cover(below: &Path, other: &Path) -> PathBuf {
    loop {
        // Each trial has a file of its own, which is there for its time alone.
        if let Some(file) = data_below(below) {
            let words = ["--bind", other.to_str().unwrap(), file.to_str().unwrap()];
            if quietly("mount", &words).status.success() {
                return file;
            }
        }
        wait(5);
    }
}

pub(crate) fn a_file_that_another_one_is_mounted_over_fails_a_load() {
    needs::root();
    let ground = Ground::new();
    let place = ground.make_dir("place");
    let other = ground.path().join("other");
    fs::write(&other, vec![1; 1 << 20]).unwrap();
    let words = [
        "load",
        "place",
        "random",
        "mode=write",
        "size=1MiB",
        "time=3s",
    ];
    let mut command = ground.program(&words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let covered = cover(&place, &other);
    let said = Said::of(&child.wait_with_output().unwrap());
    quietly("umount", &["-l", covered.to_str().unwrap()]);
    assert_ne!(said.code, Some(0), "{}{}", said.out, said.err);
    let told = format!("{}{}", said.out, said.err).replace('\n', " ");
    for part in ["the storage was exchanged", " and is now on "] {
        assert!(told.contains(part), "no {part} in {told}");
    }
    ground.stackrace(&["clean"]);
    assert_eq!(ground.left(), [""; 0]);
}

pub(crate) fn a_file_of_the_data_that_another_one_is_mounted_over_is_out() {
    needs::root();
    let ground = Ground::new();
    two_directories(&ground);
    let two = ground.path().join("two");
    let other = ground.path().join("other");
    fs::write(&other, vec![1; 1 << 20]).unwrap();
    let mut covered = None;
    let (said, log) = exchanged_by(&ground, || {
        covered = Some(cover(&two, &other));
    });
    let covered = covered.unwrap();
    quietly("umount", &["-l", covered.to_str().unwrap()]);
    let second = log.configuration("two");
    let failures = log.failures();
    let told = failures.iter().find(|failure| failure.0 == second);
    let told = told.unwrap_or_else(|| panic!("nothing failed\n{}{}", said.out, said.err));
    for part in [
        "the storage was exchanged",
        covered.to_str().unwrap(),
        " and is now on ",
    ] {
        assert!(told.1.contains(part), "no {part} in {}", told.1);
    }
    let trials = log.all("trial");
    let failed = trials
        .iter()
        .find(|trial| trial["ended"]["state"] == "failed");
    let failed_in = failed.unwrap()["round"].as_u64().unwrap();
    let complete = log.trials("complete");
    let later = |(round, of, _): &&(u64, u64, u64)| *of == second && *round >= failed_in;
    assert_eq!(complete.iter().find(later), None);
    ground.stackrace(&["clean"]);
    assert_eq!(ground.left(), [""; 0]);
}
