//! The engine's arithmetic on numbers a study can ask for.

use std::fs;
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use stackrace_engine::content::ContentPool;
use stackrace_engine::files::AtEnd;
use stackrace_engine::files::{CurrentNames, FileSet, RenameTo};
use stackrace_engine::pacing::Schedule;
use stackrace_engine::recorder::{Recorder, SLICES_MAX};
use stackrace_engine::shape::{OpSequence, WorkerShare};
use stackrace_engine::spec::{AccessPattern, Content, IoEngine, IoTarget, Spec, Stop};
use stackrace_engine::tree::{self, EntryKind};
use stackrace_engine::{Control, Op};
use stackrace_system::draw::Draw;

use super::input::Input;

/// How many steps of an endless sequence are tried.
const STEPS: usize = 1000;

/// Any phase is refused, or each of its steps lies inside its file and has a size and a kind that
/// were asked for.
pub fn shape(data: &[u8]) {
    let mut input = Input::new(data);
    let spec = spec(&mut input);
    let workers = 1 + input.u8() as u32 % 16;
    let share = WorkerShare::of_thread(u32::from(input.u8()) % workers, workers);
    let (Ok(shape), Ok(again)) = (
        OpSequence::new(&spec, &share),
        OpSequence::new(&spec, &share),
    ) else {
        return;
    };
    for (step, same) in shape.zip(again).take(STEPS) {
        assert_eq!(step, same, "the same seed gives other steps");
        let target = &spec.targets[step.target as usize];
        let end = step.offset.checked_add(u64::from(step.size));
        assert!(end.is_some_and(|end| end <= target.bytes), "{step:?}");
        let multiple = spec
            .align
            .is_none_or(|align| step.offset % u64::from(align.get()) == 0);
        assert!(multiple, "{step:?} with {:?}", spec.align);
        let mut sizes = spec.block_sizes.iter();
        assert!(
            sizes.any(|&(size, weight)| size == step.size && weight > 0),
            "{step:?}"
        );
        match (step.op, spec.read_share) {
            (Op::Read, share) => assert!(share > 0.0),
            (Op::Write, share) => assert!(share < 1.0),
            (other, _) => panic!("{other:?} is no step"),
        }
    }
}

fn spec(input: &mut Input<'_>) -> Spec {
    let targets = (0..input.below(5))
        .map(|number| IoTarget {
            path: format!("file-{number}").into(),
            bytes: input.up_to_bits(64),
        })
        .collect();
    let block_sizes = (0..input.below(4))
        .map(|_| (input.up_to_bits(32) as u32, input.up_to_bits(32) as u32))
        .collect();
    let access = match input.below(7) {
        0 => AccessPattern::Sequential,
        1 => AccessPattern::Uniform,
        2 => AccessPattern::OncePerPass,
        3 => AccessPattern::Zipf(input.f64()),
        4 => AccessPattern::Pareto(input.f64()),
        5 => AccessPattern::Normal(input.f64()),
        _ => AccessPattern::HotCold {
            hot_range: input.f64(),
            hot_ops: input.f64(),
        },
    };
    Spec {
        block_sizes,
        access,
        align: NonZeroU32::new(input.up_to_bits(20) as u32).filter(|_| input.below(2) == 0),
        read_share: match input.below(4) {
            0 => 0.0,
            1 => 1.0,
            2 => f64::from(input.u8()) / 255.0,
            _ => input.f64(),
        },
        content: Content::Zero,
        stop: Stop {
            ops: Some(input.up_to_bits(64)).filter(|_| input.below(2) == 0),
            time_ns: Some(1),
        },
        engine: IoEngine::Null,
        seed: input.u64(),
        again: None,
        slice_ns: 1,
        ..Spec::reads(targets, 0)
    }
}

/// Pools of any shape give every announced size of write; zeros are zeros, and content that must not
/// repeat does not.
pub fn content(data: &[u8]) {
    let mut input = Input::new(data);
    let content = match input.below(4) {
        0 => Content::Zero,
        1 => Content::Random,
        _ => Content::Shaped {
            ratio: input.f64(),
            duplicates: input.f64(),
        },
    };
    let one = 1 + input.up_to_bits(17) as usize;
    let other = 1 + input.up_to_bits(17) as usize;
    let (least, most) = (one.min(other), one.max(other));
    let slots = input.below(5);
    let stream = input.u32() % (1 << 20);
    let pool_bytes = input.up_to_bits(18) as usize;
    let pool = ContentPool::new(
        content,
        input.u64(),
        stream,
        slots,
        least..=most,
        pool_bytes,
    );
    let Ok(mut pool) = pool else {
        panic!("a small pool is refused");
    };
    assert!(pool.block_max() >= most);
    let mut sectors = std::collections::HashSet::new();
    for _ in 0..16 {
        let bytes = least + input.u32() as usize % (most - least + 1);
        let position = pool.place(input.below(slots.max(1)), bytes);
        assert_eq!(position % 512, 0);
        let written = pool.bytes(position, bytes);
        match content {
            Content::Zero => assert!(written.iter().all(|&byte| byte == 0)),
            Content::Random => {
                for sector in written.chunks_exact(512) {
                    assert!(sectors.insert(sector.to_vec()), "a sector repeats");
                }
            }
            Content::Shaped { .. } => assert_eq!(written.len(), bytes),
        }
    }
}

/// Any bytes as a tar archive are unpacked or refused with a place. Nothing outside of the destination
/// is created, changed or deleted.
pub fn archive(data: &[u8]) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let home = format!("stackrace-archive-{}-{number}", std::process::id());
    let home = std::env::temp_dir().join(home);
    let (archive, beside) = (home.join("a.tar"), home.join("beside"));
    let made = fs::create_dir(&home)
        .and_then(|()| fs::write(&archive, data))
        .and_then(|()| fs::write(&beside, b"beside"));
    made.expect("a directory for temporary files can be written to");
    let control = Control::default();
    let to = home.join("to");
    let outcome = tree::extract_tar(&archive, &to, AtEnd::Return, 1_000_000, &control);
    let error = outcome.map_or_else(Some, |outcome| outcome.error);
    if let Some(error) = error {
        assert!(error.path.starts_with(&home), "{error}");
        assert!(error.path != archive || error.offset.is_some(), "{error}");
    }
    let found = fs::read_dir(&home).map(Iterator::count).ok();
    assert_eq!(found, Some(3), "something came into being outside");
    let kept = |path: &Path| fs::read(path).ok();
    assert_eq!(kept(&archive).as_deref(), Some(data));
    assert_eq!(kept(&beside).as_deref(), Some(&b"beside"[..]));
    let owner_may_do_all = fs::Permissions::from_mode(0o700);
    let opened = tree::scan(&to)
        .map(|found| found.entries)
        .unwrap_or_default();
    for entry in opened
        .iter()
        .filter(|entry| entry.kind == EntryKind::Directory)
    {
        let _ = fs::set_permissions(to.join(&entry.path), owner_may_do_all.clone());
    }
    fs::remove_dir_all(&home).expect("what was unpacked can be removed");
}

/// No operation is lost, whatever its times, wherever it is counted.
pub fn recorder(data: &[u8]) {
    const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Fsync];
    let mut input = Input::new(data);
    let slice_ns = input.up_to_bits(40);
    let mut recorders = vec![Recorder::new(slice_ns, &OPS), Recorder::new(slice_ns, &OPS)];
    let mut expected = (0, 0, 0);
    while !input.is_empty() {
        let which = input.below(6);
        let (start, end) = (input.up_to_bits(44), input.up_to_bits(44));
        let bytes = input.up_to_bits(32);
        recorders[which % 2].record(OPS[which / 2], start, end, bytes);
        expected.0 += 1;
        if OPS[which / 2] != Op::Fsync {
            expected.1 += 1;
            expected.2 += bytes;
        }
    }
    let merged = Recorder::merge(recorders, slice_ns);
    assert_eq!(
        merged.ops.iter().map(|op| op.count).sum::<u64>(),
        expected.0
    );
    assert!(merged.ops.iter().all(|op| op.latency.len() == op.count));
    assert!(merged.series.len() <= SLICES_MAX);
    let series = merged.series.iter();
    let counted = series.fold((0, 0), |sum, slice| {
        (sum.0 + slice.ops, sum.1 + slice.bytes)
    });
    assert_eq!(counted, (expected.1, expected.2));
}

/// Intended starts never go back in time, at any rate.
pub fn schedule(data: &[u8]) {
    let mut input = Input::new(data);
    let rate = input.f64().abs();
    let workers = 1 + input.u32() % 1024;
    let worker = input.u32() % workers;
    // What `Spec` is refused for.
    if !rate.is_finite() || rate == 0.0 {
        return;
    }
    let mut schedules = [
        Schedule::fixed(rate, worker, workers),
        Schedule::poisson(rate, workers, Draw::new(input.u64(), 0)),
    ];
    let mut before = [0, 0];
    for _ in 0..STEPS / 4 {
        for (schedule, before) in schedules.iter_mut().zip(&mut before) {
            let next = schedule.next_ns();
            assert!(next >= *before, "{rate} per second: {next} after {before}");
            *before = next;
            schedule.advance();
        }
    }
}

/// In any set of files each name appears once, lies below the root and has a size in range.
pub fn files(data: &[u8]) {
    let mut input = Input::new(data);
    let set = FileSet {
        root: "/set".into(),
        directories: 1 + input.u32() % 256,
        files: 1 + u64::from(input.u32() % 512),
        size_min: input.up_to_bits(53),
        size_max: input.up_to_bits(53),
        threads: 1,
        fsync_each: false,
        content: Content::Zero,
        seed: input.u64(),
        names: CurrentNames {
            rename_to: [RenameTo::SameDirectory, RenameTo::NextDirectory][input.below(2)],
            renamed: input.below(2) == 0,
            linked: false,
        },
    };
    let mut names = std::collections::HashSet::new();
    let directories: std::collections::HashSet<_> = set.directory_paths().collect();
    assert_eq!(directories.len(), set.directories as usize);
    for path in set.paths() {
        assert!(
            path.parent()
                .is_some_and(|parent| directories.contains(parent))
        );
        assert!(names.insert(path));
    }
    assert_eq!(names.len() as u64, set.files);
    let most = set.size_max.max(set.size_min);
    let mut total = 0;
    for index in 0..set.files {
        let size = set.size(index);
        assert!((set.size_min..=most).contains(&size), "{size}");
        total += size;
    }
    assert_eq!(total, set.total_bytes());
}
