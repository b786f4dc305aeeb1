//! Data that serve several trials, on this machine's own files.

use std::cell::RefCell;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use super::*;
use stackrace_machine::host::local::LocalHost;
use stackrace_remote::agent::message::Turn;

/// One directory in which a workload is tried again and again.
struct Tried {
    base: tempfile::TempDir,
    study: Study,
    host: LocalHost,
}

impl Tried {
    fn new(workload: &str) -> Self {
        let base = tempfile::tempdir().unwrap();
        let text = format!(
            "[[stack]]\ndir = {{ path = {:?} }}\n[[workload]]\n{workload}\n\
             [trial]\ndrop-caches = false\nprovision = \"once\"\n",
            base.path()
        );
        let study =
            stackrace_study::study::parse("s.toml", text.as_bytes(), &Kinds::real()).unwrap();
        let host = LocalHost::new(Arc::new(|_| ()));
        Self { base, study, host }
    }

    /// Tries once in each round; after each trial, `look` gets the path of the data and what the system
    /// says of them.
    fn rounds(&self, rounds: u32, mut look: impl FnMut(u32, &Path, Option<Metadata>)) {
        let tell = |event: Event| match event {
            Event::Trial(trial) if trial.ended != Ended::Complete => {
                Err(Broken(format!("{:?}", trial.ended)))
            }
            _ => Ok(()),
        };
        let mut here = here(&self.study, &self.host, &tell, &Unwatched, Arc::default());
        for round in 1..=rounds {
            let turn = Turn {
                round,
                position: 0,
                configuration: 0,
                missing: vec![0],
                keep: round < rounds,
                lies_on: Vec::new(),
            };
            here.execute(&turn).unwrap();
            let mut inside = std::fs::read_dir(self.base.path()).unwrap();
            let path = inside
                .next()
                .map(|stack| stack.unwrap().path().join(".stackrace-0/data.0"));
            let path = path.unwrap_or_default();
            look(round, &path, std::fs::metadata(&path).ok());
        }
        here.end().unwrap();
    }
}

const READ: &str =
    "random = { mode = \"read\", size = \"1 MiB\", time = \"10 ms\", fsync-at-end = false }";

#[test]
fn data_that_are_only_read_are_laid_out_once_and_removed_with_the_stack() {
    let mut seen = Vec::new();
    Tried::new(READ).rounds(3, |_, _, data| {
        seen.push(data.map(|data| (data.ino(), data.mtime_nsec())))
    });
    assert!(seen[0].is_some());
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[2], None, "the stack was not to stay");
}

#[test]
fn data_that_changed_between_two_trials_are_laid_out_anew() {
    let mut first = Vec::new();
    Tried::new(READ).rounds(3, |round, path, _| {
        if round > 2 {
            return;
        }
        let now = std::fs::read(path).unwrap();
        match round {
            1 => std::fs::write(path, vec![0; now.len()]).unwrap(),
            _ => assert!(
                now.iter().any(|byte| *byte != 0),
                "they are still the changed ones"
            ),
        }
        first.push(now);
    });
    assert_eq!(first[0].len(), first[1].len());
}

#[test]
fn a_workload_that_makes_its_files_finds_none_of_an_earlier_trial() {
    let write = "sequential = { mode = \"write\", size = \"1 MiB\" }";
    Tried::new(write).rounds(2, |round, path, data| {
        assert!(data.is_none(), "round {round}: {} is left", path.display());
    });
}

#[test]
fn data_that_would_leave_too_little_room_are_not_kept() {
    let tried = Tried::new("random = { mode = \"read\", size = \"1 MiB\", time = \"10 ms\" }");
    // What is needed is compared with what is free: a study that asks for all there is keeps nothing.
    let free = stackrace_machine::host::Host::free_bytes(&tried.host, tried.base.path()).unwrap();
    let greedy = format!(
        "{READ}\n[[workload]]\nname = \"large\"\nrandom = {{ mode = \"read\", size = {free} }}"
    );
    Tried::new(&greedy).rounds(2, |round, path, data| {
        assert!(data.is_none(), "round {round}: {} is left", path.display());
    });
}

/// Returns what is below a directory after each trial of `rounds` rounds of a study with several workloads: the inode
/// of each file by its path, and what was noted.
fn shared(workloads: &[&str], rounds: u32, between: impl Fn(usize, &Path)) -> Vec<Vec<Shared>> {
    let text: Vec<String> = (workloads.iter().enumerate())
        .map(|(number, text)| format!("[[workload]]\nname = \"{number}\"\n{text}"))
        .collect();
    let tried = Tried::new(text.join("\n").strip_prefix("[[workload]]\n").unwrap());
    let trials = RefCell::new(Vec::new());
    let look = |workload: usize, notes: Vec<String>| {
        let stack = std::fs::read_dir(tried.base.path()).unwrap().next();
        let stack = stack.unwrap().unwrap().path();
        between(workload, &stack);
        let inode = |path: &str| {
            let found = std::fs::metadata(stack.join(path)).ok();
            found.map(|data| data.ino())
        };
        Shared {
            first: inode(".stackrace-0/data.0"),
            own: inode(&format!(".stackrace-{workload}/data.0")),
            notes,
        }
    };
    let tell = |event: Event| {
        if let Event::Trial(trial) = event {
            assert_eq!(trial.ended, Ended::Complete);
            trials
                .borrow_mut()
                .push((trial.workload, look(trial.workload, trial.notes)));
        }
        Ok(())
    };
    let mut here = here(&tried.study, &tried.host, &tell, &Unwatched, Arc::default());
    let mut seen = Vec::new();
    for round in 1..=rounds {
        let turn = Turn {
            round,
            position: 0,
            configuration: 0,
            missing: (0..workloads.len()).collect(),
            keep: true,
            lies_on: Vec::new(),
        };
        here.execute(&turn).unwrap();
        let trials = std::mem::take(&mut *trials.borrow_mut());
        seen.push(trials.into_iter().map(|(_, shared)| shared).collect());
    }
    here.end().unwrap();
    seen
}

/// Traces that a trial left of the data that several workloads share.
#[derive(Debug)]
struct Shared {
    /// Inode of the file in the directory of the first workload.
    first: Option<u64>,
    /// Inode of the one in its own directory.
    own: Option<u64>,
    notes: Vec<String>,
}

const WRITE: &str = "sequential = { mode = \"write\", size = \"1 MiB\" }";
const REWRITE_SAME: &str =
    "sequential = { mode = \"rewrite\", size = \"1 MiB\", same-data = true }";
const READ_SAME: &str =
    "random = { mode = \"read\", size = \"1 MiB\", time = \"10 ms\", same-data = true }";

#[test]
fn workloads_with_the_same_data_work_on_one_file_that_is_gone_after_the_last() {
    let alone = "files = { count = 2 }";
    for rounds in shared(&[WRITE, REWRITE_SAME, READ_SAME, alone], 2, |_, _| ()) {
        let [write, rewrite, read, alone] = <[Shared; 4]>::try_from(rounds).unwrap();
        assert!(write.first.is_some());
        assert_eq!(write.first, rewrite.first);
        assert_eq!((read.first, rewrite.own, read.own), (None, None, None));
        assert_eq!((alone.first, alone.own), (None, None));
        let notes = [write.notes, rewrite.notes, read.notes].concat();
        assert_eq!(notes, [""; 0]);
    }
}

#[test]
fn a_file_that_was_changed_between_two_workloads_is_laid_out_anew_and_this_is_noted() {
    let cut = |workload: usize, stack: &Path| {
        if workload == 0 {
            std::fs::write(stack.join(".stackrace-0/data.0"), "short").unwrap();
        }
    };
    let rounds = shared(&[WRITE, READ_SAME], 1, cut);
    assert_eq!(rounds[0][1].notes, [stack_trial::LAID_OUT_ANEW]);
}
