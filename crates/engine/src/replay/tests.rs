//! Planted calls with known results, order and hostile trees.

use std::ffi::CString;
use std::path::Path;

use super::*;
use crate::control::Control;
use crate::outcome::{Op, PhaseEnd, PhaseOutcome};

const CREATE: u32 = libc::O_RDWR as u32 | libc::O_CREAT as u32;

/// A replay that is written down step by step.
#[derive(Default)]
struct Written {
    threads: Vec<Vec<ReplayStep>>,
    order: OrderBuilder,
}

impl Written {
    fn step(&mut self, thread: usize, step: ReplayStep, touches: &[(u64, bool)]) {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Vec::new);
        }
        self.threads[thread].push(step);
        let touches = touches
            .iter()
            .map(|&(thing, changes)| Touch { thing, changes });
        self.order.step(thread as u32, &touches.collect::<Vec<_>>());
    }

    fn call(&mut self, thread: usize, call: ReplayCall, result: i64, touches: &[(u64, bool)]) {
        self.step(thread, ReplayStep::of(call, result), touches);
    }

    fn run(self, root: &Path, names: &[&str], files: u32) -> PhaseOutcome {
        let plan = ReplayPlan {
            names: names
                .iter()
                .map(|name| CString::new(*name).unwrap())
                .collect(),
            held: Vec::new(),
            warm: Vec::new(),
            files,
            threads: self.threads,
            order: self.order.build(),
        };
        plan.run(root, 1, 100_000_000, &Control::default()).unwrap()
    }
}

fn open(name: u32, file: u32) -> ReplayCall {
    let (flags, mode) = (CREATE, 0o644);
    ReplayCall::Open {
        name,
        flags,
        mode,
        file,
    }
}

#[test]
fn calls_of_several_threads_keep_the_order_of_wakes_names_and_files_and_no_result_differs() {
    let base = tempfile::tempdir().unwrap();
    let mut written = Written::default();
    // 1: a wake; 2: a name; 3: an open file; 4: a directory.
    let slow = ReplayStep {
        compute_ns: 3_000_000,
        sleep_ns: 3_000_000,
        ..ReplayStep::of(
            ReplayCall::MakeDir {
                name: 1,
                mode: 0o755,
            },
            0,
        )
    };
    written.step(0, slow, &[(4, true)]);
    written.call(1, open(0, 1), 3, &[(2, true), (3, true), (4, false)]);
    written.call(
        1,
        ReplayCall::Write {
            file: 1,
            length: 10_000,
        },
        10_000,
        &[(3, true)],
    );
    written.call(1, ReplayCall::Nothing, 0, &[(1, true)]);
    written.call(0, ReplayCall::Nothing, 0, &[(1, false)]);
    written.call(
        2,
        ReplayCall::ReadAt {
            file: 1,
            offset: 0,
            length: 20_000,
        },
        10_000,
        &[(3, false)],
    );
    written.call(0, ReplayCall::Unlink { name: 0 }, 0, &[(2, true)]);
    written.call(1, ReplayCall::Stat { on: On::Name(0) }, -2, &[(2, false)]);
    written.call(0, ReplayCall::Close { file: 1 }, 0, &[(3, true)]);
    let outcome = written.run(base.path(), &["a/file", "a"], 1);
    assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
    let results = outcome.replayed.unwrap();
    assert_eq!((results.calls, results.differing), (7, 0), "{results:?}");
    assert!(outcome.elapsed_ns >= 6_000_000);
    let write = outcome
        .ops
        .iter()
        .find(|entry| entry.op == Op::Write)
        .unwrap();
    assert_eq!((write.count, write.bytes), (1, 10_000));
}

#[test]
fn a_result_that_differs_is_counted_and_named_and_ends_nothing() {
    let base = tempfile::tempdir().unwrap();
    let mut written = Written::default();
    written.call(0, ReplayCall::Unlink { name: 0 }, 0, &[]);
    // The file could not be opened either, so that its calls differ as well.
    let there = ReplayCall::Open {
        name: 0,
        flags: 0,
        mode: 0,
        file: 1,
    };
    written.call(0, there, 3, &[]);
    written.call(0, ReplayCall::Read { file: 1, length: 5 }, 5, &[]);
    written.call(
        0,
        ReplayCall::MakeDir {
            name: 0,
            mode: 0o700,
        },
        0,
        &[],
    );
    let results = written.run(base.path(), &["gone"], 1).replayed.unwrap();
    assert_eq!((results.calls, results.differing), (4, 3));
    let first = results.first.unwrap();
    assert_eq!((first.op, first.name.as_str()), (Op::Unlink, "gone"));
    assert_eq!(
        (first.recorded, first.replayed),
        (0, -i64::from(libc::ENOENT))
    );
}

#[test]
fn a_link_that_leads_out_of_the_directory_is_never_followed() {
    let base = tempfile::tempdir().unwrap();
    let (root, outside) = (base.path().join("root"), base.path().join("outside"));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(&outside, "kept").unwrap();
    // It was planted: no replay makes one.
    std::os::unix::fs::symlink(&outside, root.join("out")).unwrap();
    let mut written = Written::default();
    let flags = (libc::O_WRONLY | libc::O_TRUNC | libc::O_CREAT) as u32;
    written.call(
        0,
        ReplayCall::Open {
            name: 0,
            flags,
            mode: 0o666,
            file: 1,
        },
        3,
        &[],
    );
    written.call(
        0,
        ReplayCall::Write {
            file: 1,
            length: 4096,
        },
        4096,
        &[],
    );
    written.call(
        0,
        ReplayCall::Truncate {
            on: On::Name(0),
            length: 0,
        },
        0,
        &[],
    );
    let results = written.run(&root, &["out"], 1).replayed.unwrap();
    assert_eq!(results.differing, 3, "{results:?}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "kept");
}

#[test]
fn a_file_is_closed_by_its_last_user_alone() {
    let base = tempfile::tempdir().unwrap();
    let mut written = Written::default();
    written.call(0, open(0, 1), 3, &[(3, true)]);
    // A process that inherited it closes its own.
    written.call(1, ReplayCall::Close { file: 1 }, 0, &[(3, true)]);
    written.call(0, ReplayCall::Write { file: 1, length: 9 }, 9, &[(3, true)]);
    written.call(0, ReplayCall::Close { file: 1 }, 0, &[(3, true)]);
    let before = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let results = written.run(base.path(), &["file"], 1).replayed.unwrap();
    assert_eq!((results.calls, results.differing), (4, 0), "{results:?}");
    assert!(std::fs::read_dir("/proc/self/fd").unwrap().count() <= before + 1);
    assert_eq!(
        std::fs::metadata(base.path().join("file")).unwrap().len(),
        9
    );
}

#[test]
fn a_replay_that_cannot_begin_leaves_no_file_open() {
    let base = tempfile::tempdir().unwrap();
    std::fs::write(base.path().join("there"), "x").unwrap();
    let held = |file, name| HeldFile {
        file,
        name,
        flags: 0,
        position: 0,
    };
    let plan = ReplayPlan {
        names: ["there", "gone"]
            .map(|name| CString::new(name).unwrap())
            .into(),
        held: vec![held(1, 0), held(2, 1)],
        warm: Vec::new(),
        files: 2,
        threads: Vec::new(),
        order: OrderBuilder::default().build(),
    };
    let refused = plan.run(base.path(), 1, 100_000_000, &Control::default());
    assert!(refused.is_err());
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let mut open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    assert!(!open.any(|path| path.starts_with(base.path())));
}

#[test]
fn a_part_of_any_length_is_read_no_further_once_it_is_stopped() {
    let base = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(base.path().join("long")).unwrap();
    file.set_len(1 << 42).unwrap();
    drop(file);
    let plan = ReplayPlan {
        names: vec![CString::new("long").unwrap()],
        held: Vec::new(),
        warm: vec![WarmPart {
            name: 0,
            offset: 0,
            length: 1 << 42,
        }],
        files: 0,
        threads: Vec::new(),
        order: OrderBuilder::default().build(),
    };
    let control = Control::default();
    std::thread::scope(|scope| {
        let warms = scope.spawn(|| plan.warm(base.path(), &control));
        // In the middle of it: a stop before would end it, too.
        let long = base.path().join("long");
        let reads = || {
            let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            let mut open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            open.any(|path| path == long)
        };
        while !reads() {
            std::thread::yield_now();
        }
        control
            .stop
            .store(true, std::sync::atomic::Ordering::SeqCst);
        warms.join().unwrap().unwrap();
    });
}

#[test]
fn modes_that_give_rights_of_others_are_not_taken_over() {
    use std::os::unix::fs::MetadataExt;
    let base = tempfile::tempdir().unwrap();
    let mut written = Written::default();
    let made = ReplayCall::Open {
        name: 0,
        flags: CREATE,
        mode: 0o6777,
        file: 1,
    };
    written.call(0, made, 3, &[]);
    written.call(
        0,
        ReplayCall::Mode {
            on: On::File(1),
            mode: 0o6755,
        },
        0,
        &[],
    );
    written.run(base.path(), &["file"], 1);
    let mode = std::fs::metadata(base.path().join("file")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o755);
}
