//! Every setting changes what the engine is asked for, and nothing else.

use std::path::Path;
use std::sync::OnceLock;

use std::num::NonZeroU32;

use stackrace_engine::Control;
use stackrace_engine::spec::{
    AccessPattern, Content, Durability, IoEngine, IoTarget, Pacing, Spec, Stop,
};

use super::*;
use crate::workload::kind::{Place, SLICE_NS};
use stackrace_base::setting::{GivenSetting, Refusal, SettingDoc, Settings, Value};

/// A setting by its TOML value.
fn setting(line: &str) -> GivenSetting {
    let (name, value) = line.split_once(" = ").unwrap();
    let value = match value.parse::<toml::Value>().unwrap() {
        toml::Value::String(text) => Value::Text(text),
        toml::Value::Integer(number) => Value::Integer(number),
        toml::Value::Float(number) => Value::Float(number),
        toml::Value::Boolean(flag) => Value::Flag(flag),
        other => panic!("{other}"),
    };
    GivenSetting {
        name: name.to_owned(),
        value,
        span: 0..0,
        name_span: 0..0,
    }
}

/// Settings of which each workload has defaults of its own.
const DOCS: &[SettingDoc] = &[
    words::block_size("4 KiB"),
    words::fsync_every("0"),
    words::time("5 ns", ""),
];

fn settings(lines: &[&str]) -> Settings {
    let mut settings = vec![setting("size = \"1 MiB\"")];
    settings.extend(lines.iter().map(|line| setting(line)));
    Settings {
        owner: "block".to_owned(),
        span: 0..0,
        settings,
        docs: DOCS,
    }
}

fn parse(lines: &[&str], read_share: f64, new_files: bool) -> Result<BlockIo, Refusal> {
    let settings = settings(lines);
    let frame = Frame {
        access: access(&settings)?,
        read_share,
        new_files,
    };
    BlockIo::parse(&settings, &frame)
}

fn spec(io: &BlockIo, existing: Option<&Path>) -> Spec {
    io.spec(&Place {
        directory: Path::new("/d"),
        bare: None,
        existing,
        cold: true,
        ledger: &OnceLock::new(),
        elsewhere: None,
        seat: None,
        seed: 7,
        control: &Control::default(),
    })
}

/// Specification that the plain workload of these tests asks for: 1 MiB written at random in 4 KiB.
fn plain() -> Spec {
    Spec {
        targets: vec![IoTarget {
            path: "/d/data.0".into(),
            bytes: 1 << 20,
        }],
        block_sizes: vec![(4096, 1)],
        access: AccessPattern::OncePerPass,
        align: None,
        read_share: 0.0,
        threads: 1,
        queue_depth: 1,
        direct: false,
        preallocate: false,
        durability: Durability {
            fsync_at_end: true,
            ..Durability::default()
        },
        pacing: Pacing::Closed { think_time_ns: 0 },
        content: Content::Random,
        stop: Stop {
            ops: Some(256),
            time_ns: Some(5),
        },
        engine: IoEngine::Auto,
        seed: 7,
        again: None,
        part: None,
        slice_ns: SLICE_NS,
    }
}

/// Draws with repeats: no pass ends it.
fn endless(access: AccessPattern) -> Spec {
    let mut spec = plain();
    spec.access = access;
    spec.stop.ops = None;
    spec
}

#[test]
fn every_setting_of_order_is_passed_on() {
    let mut mixed = endless(AccessPattern::Uniform);
    mixed.block_sizes = vec![(4096, 70), (65536, 30)];
    let mut files = plain();
    files.targets = (0..4)
        .map(|file| IoTarget {
            path: format!("/d/data.{file}").into(),
            bytes: 1 << 18,
        })
        .collect();
    let hot = |hot_range, hot_ops| endless(AccessPattern::HotCold { hot_range, hot_ops });
    let orders: &[(&[&str], Spec)] = &[
        (&[], plain()),
        (&["access = \"uniform\""], endless(AccessPattern::Uniform)),
        (&["access = \"zipf\""], endless(AccessPattern::Zipf(1.1))),
        (
            &["access = \"zipf\"", "skew = 0.9"],
            endless(AccessPattern::Zipf(0.9)),
        ),
        (
            &["access = \"pareto\""],
            endless(AccessPattern::Pareto(0.2)),
        ),
        (
            &["access = \"pareto\"", "skew = 0.4"],
            endless(AccessPattern::Pareto(0.4)),
        ),
        (
            &["access = \"normal\""],
            endless(AccessPattern::Normal(0.15)),
        ),
        (
            &["access = \"normal\"", "skew = 0.3"],
            endless(AccessPattern::Normal(0.3)),
        ),
        (&["access = \"hot\""], hot(0.1, 0.9)),
        (
            &["access = \"hot\"", "hot-range = \"5 %\"", "hot-share = 0.8"],
            hot(0.05, 0.8),
        ),
        (
            &[
                "access = \"uniform\"",
                "block-sizes = \"4 KiB:70, 64 KiB:30\"",
            ],
            mixed,
        ),
        (&["files = 4"], files),
    ];
    passed_on(orders);
}

#[test]
fn every_setting_of_pace_is_passed_on() {
    let paced = |pacing| Spec { pacing, ..plain() };
    let aligned = |align, ops| {
        let mut spec = plain();
        spec.align = NonZeroU32::new(align);
        spec.stop.ops = Some(ops);
        spec
    };
    let paces: &[(&[&str], Spec)] = &[
        (&["align = \"8 KiB\""], aligned(8192, 128)),
        (&["rate = 2000"], paced(Pacing::Fixed(2000.0))),
        (
            &["rate = 0.5", "arrivals = \"even\""],
            paced(Pacing::Fixed(0.5)),
        ),
        (
            &["rate = 2000", "arrivals = \"poisson\""],
            paced(Pacing::Poisson(2000.0)),
        ),
        (
            &["think-time = \"3 ms\""],
            paced(Pacing::Closed {
                think_time_ns: 3_000_000,
            }),
        ),
    ];
    passed_on(paces);
}

/// Checks that what is written becomes this specification.
fn passed_on(cases: &[(&[&str], Spec)]) {
    for (lines, expected) in cases {
        let io = parse(lines, 0.0, true).unwrap();
        assert_eq!(spec(&io, None), *expected, "{lines:?}");
    }
}

#[test]
fn every_setting_of_durability_and_content_is_passed_on() {
    let durable = |change: fn(&mut Durability)| {
        let mut spec = plain();
        change(&mut spec.durability);
        spec
    };
    let content = |content| Spec { content, ..plain() };
    let stop = |ops| {
        let mut spec = plain();
        spec.stop.ops = Some(ops);
        spec
    };
    let mut direct = plain();
    direct.direct = true;
    let mut reserved = plain();
    reserved.preallocate = true;
    let cases: &[(&[&str], Spec)] = &[
        (
            &["fsync-every = 3"],
            durable(|d| d.fsync_every = std::num::NonZeroU64::new(3)),
        ),
        (
            &["fsync-at-end = false"],
            durable(|d| d.fsync_at_end = false),
        ),
        (&["data-only = true"], durable(|d| d.data_only = true)),
        (&["sync = \"dsync\""], durable(|d| d.open_dsync = true)),
        (&["sync = \"sync\""], durable(|d| d.open_sync = true)),
        (&["sync = \"none\""], plain()),
        (&["preallocate = true"], reserved),
        (&["direct = true"], direct),
        (&["operations = 10"], stop(10)),
        (&["operations = 1000"], stop(256)),
        (&["content = \"zero\""], content(Content::Zero)),
        (
            &["duplicates = \"25 %\""],
            content(Content::Shaped {
                ratio: 1.0,
                duplicates: 0.25,
            }),
        ),
        (
            &["duplicates = 0.5", "compress-ratio = 2"],
            content(Content::Shaped {
                ratio: 2.0,
                duplicates: 0.5,
            }),
        ),
        (&["verify = true"], plain()),
    ];
    for (lines, expected) in cases {
        let io = parse(lines, 0.0, true).unwrap();
        assert_eq!(spec(&io, None), *expected, "{lines:?}");
    }
}

/// Lines that contradict each other, the share of reads, and what is said.
type Contradiction<'a> = (&'a [&'a str], f64, &'a str);

#[track_caller]
fn refused(cases: &[Contradiction<'_>]) {
    for (lines, read_share, word) in cases {
        let refusal = parse(lines, *read_share, false).expect_err(word);
        let message = &refusal.message;
        assert!(message.contains(word), "{lines:?}: {message}");
        assert!(!refusal.help.is_empty(), "{lines:?}: no advice");
    }
}

#[test]
fn contradictions_of_order_and_pace_are_refused_with_advice() {
    refused(&[
        (
            &["rate = 5", "think-time = \"1 s\""],
            0.0,
            "exclude each other",
        ),
        (&["rate = 0"], 0.0, "0 operations per second"),
        (&["arrivals = \"poisson\""], 0.0, "without a rate"),
        (&["skew = 1.2"], 0.0, "no meaning with this access"),
        (
            &["access = \"hot\"", "skew = 1.2"],
            0.0,
            "no meaning with this access",
        ),
        (&["access = \"zipf\"", "skew = 0"], 0.0, "a skew of 0"),
        (&["access = \"pareto\"", "skew = 1"], 0.0, "a skew of 1"),
        (
            &["access = \"zipf\"", "hot-share = 0.5"],
            0.0,
            "hot-share has no meaning",
        ),
        (
            &["access = \"hot\"", "hot-range = 1.0"],
            0.0,
            "must be above 0",
        ),
        (&["block-sizes = \"4 KiB, 8 KiB\""], 0.0, "overlap"),
        (
            &[
                "access = \"uniform\"",
                "block-sizes = \"4 KiB\"",
                "block-size = \"4 KiB\"",
            ],
            0.0,
            "exclude each other",
        ),
        (
            &["access = \"uniform\"", "block-sizes = \"4 KiB, 8 MiB\""],
            0.0,
            "block size 8 MiB",
        ),
        (
            &["access = \"uniform\"", "block-sizes = \"4 KiB, 1000 B\""],
            0.0,
            "block size 1000 B",
        ),
        (&["align = 0"], 0.0, "multiples of 0 B"),
        (&["align = 512"], 0.0, "overlap"),
        (&["align = \"2 MiB\""], 0.0, "more than a file holds"),
        (
            &["access = \"uniform\"", "align = 700", "direct = true"],
            0.0,
            "512 B",
        ),
    ]);
}

#[test]
fn contradictions_of_durability_and_content_are_refused_with_advice() {
    refused(&[
        (&["data-only = true"], 1.0, "never is"),
        (
            &["data-only = true", "fsync-at-end = false"],
            0.0,
            "never is",
        ),
        (&["sync = \"dsync\""], 1.0, "nothing is written"),
        (&["preallocate = true"], 0.0, "laid out before"),
        (&["operations = 0"], 0.0, "0 operations"),
        (
            &["duplicates = 0.5", "content = \"zero\""],
            0.0,
            "all alike",
        ),
        (
            &["verify = true", "content = \"zero\""],
            0.0,
            "zeros cannot be verified",
        ),
        (
            &["verify = true", "duplicates = 0.5"],
            0.0,
            "duplicates cannot be verified",
        ),
        (
            &["verify = true", "access = \"uniform\"", "align = 700"],
            0.0,
            "multiples of 512 B",
        ),
    ]);
}

#[test]
fn what_exists_takes_the_place_of_the_data_if_it_is_only_read() {
    let path = Path::new("/dev/disk");
    let io = parse(&[], 1.0, false).unwrap();
    assert_eq!(io.on_existing(), Ok(()));
    assert_eq!(spec(&io, Some(path)).targets[0].path, path);
    for (lines, read_share) in [
        (&["files = 2"][..], 1.0),
        (&["verify = true"], 1.0),
        (&[], 0.5),
        (&[], 0.0),
    ] {
        let io = parse(lines, read_share, false).unwrap();
        assert!(io.on_existing().is_err(), "{lines:?} {read_share}");
    }
}

#[test]
fn everything_is_read_back_whatever_its_blocks() {
    for (lines, block, ops) in [
        (&["size = \"3 MiB\""][..], 1 << 20, 3),
        (&["size = \"1028 KiB\"", "files = 1"], 4096, 257),
        (&["block-size = 12288", "files = 3"], 344_064, 3),
    ] {
        let mut settings = settings(&lines[1..]);
        settings.settings[0] = setting(lines[0]);
        if !lines[0].starts_with("size") {
            settings = self::settings(lines);
        }
        let frame = Frame {
            access: AccessPattern::Uniform,
            read_share: 0.3,
            new_files: false,
        };
        let io = BlockIo::parse(&settings, &frame).unwrap();
        let asked = spec(&io, None);
        let back = io.read_back(asked.clone());
        assert_eq!(back.targets, asked.targets);
        assert_eq!(back.block_sizes, [(block, 1)], "{lines:?}");
        assert_eq!(back.stop.ops, Some(ops), "{lines:?}");
        let bytes: u64 = back.targets.iter().map(|target| target.bytes).sum();
        assert_eq!(u64::from(block) * ops, bytes, "{lines:?}");
        assert_eq!(
            (back.read_share, back.access),
            (1.0, AccessPattern::Sequential)
        );
    }
}
