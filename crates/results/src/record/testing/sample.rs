//! Made-up records for tests: plausible figures from a fixed seed, no measurement behind them.

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use libm::exp;

use crate::record::Record;
use stackrace_base::event::{
    Better, CommandRun, ConfigurationHead, Counted, Decide, DeviceCounted, Ended, Event, FORMAT,
    Fact, LayerFacts, LogLine, MetricHead, Observation, OperationObservation, PhaseObservation,
    Precision, RunStarted, Settled, SliceSum, Sliced, Until, WorkloadHead,
};

/// The shape of a made-up run.
pub struct SampleShape {
    /// Title of the study.
    pub title: &'static str,
    /// The names of the factors; empty: a study that lists its configurations.
    pub factors: Vec<&'static str>,
    /// Configurations, each with a name and its level of every factor.
    pub configurations: Vec<(String, Vec<String>)>,
    /// Workloads in the order they run in each trial.
    pub workloads: Vec<WorkloadHead>,
    /// The configuration that the others are compared with; `None` means each with each.
    pub comparison: Option<&'static str>,
    /// Number of complete rounds; each tries every configuration once.
    pub rounds: u32,
    /// Bytes a second of (configuration, workload), before noise.
    pub speed: fn(usize, usize) -> f64,
}

struct Dice(u64);

impl Dice {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal, variance 1.
    fn noise(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

fn metric(name: &str, unit: &str, better: Better) -> MetricHead {
    MetricHead {
        name: name.to_owned(),
        unit: unit.to_owned(),
        better,
    }
}

fn workload(name: &str, kind: &str, summary: &str, weight: f64) -> WorkloadHead {
    WorkloadHead {
        name: name.to_owned(),
        kind: kind.to_owned(),
        summary: summary.to_owned(),
        weight,
        metrics: vec![
            metric("throughput", "B/s", Better::Higher),
            metric("operations", "op/s", Better::Higher),
            metric("elapsed", "s", Better::Lower),
            metric("read latency p99", "ns", Better::Lower),
        ],
        drawn_sizes: None,
        level: None,
        operations: None,
        gives_commands: false,
        imported: None,
        recorded: None,
    }
}

/// Two configurations, three workloads, five rounds.
pub fn small() -> SampleShape {
    SampleShape {
        title: "Is xfs faster than ext4 for my photos?",
        factors: vec!["fs"],
        configurations: vec![
            ("ext4".into(), vec!["ext4".into()]),
            ("xfs".into(), vec!["xfs".into()]),
        ],
        workloads: vec![
            workload(
                "import",
                "files",
                "writes 800 files of 14 MB, fsync at the end of each",
                1.0,
            ),
            workload(
                "browse",
                "random",
                "reads 4 KiB at random from 2 GiB, queue depth 1, 10 s",
                1.0,
            ),
            workload(
                "copy",
                "files",
                "copies a tree of 800 files, 2 GiB, 4 threads",
                0.5,
            ),
        ],
        comparison: Some("fs"),
        rounds: 5,
        speed: |configuration, workload| {
            [240e6, 38e6, 310e6][workload]
                * [[1.0, 1.0, 1.0], [1.18, 0.99, 0.86]][configuration][workload]
        },
    }
}

/// Twelve block sizes on two file systems: 24 configurations.
pub fn sweep() -> SampleShape {
    let mut configurations = Vec::new();
    for fs in ["ext4", "xfs"] {
        for exponent in 9..21 {
            let size = stackrace_base::unit::bytes(1 << exponent);
            configurations.push((format!("{fs}, {size}"), vec![fs.to_owned(), size]));
        }
    }
    SampleShape {
        title: "Which block size, and does the file system matter?",
        factors: vec!["fs", "block-size"],
        configurations,
        workloads: vec![workload(
            "random-read",
            "random",
            "reads at random from 4 GiB",
            1.0,
        )],
        comparison: Some("fs"),
        rounds: 4,
        speed: |configuration, _| {
            let size = f64::from(1 << (9 + configuration % 12));
            let fs = if configuration < 12 { 1.0 } else { 1.08 };
            fs * size / (90e-6 + size / 1.9e9)
        },
    }
}

/// One study whose workloads sweep block sizes, two configurations.
pub fn workload_sweep() -> SampleShape {
    let sizes = ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"];
    SampleShape {
        title: "What does compression cost at each block size?",
        factors: vec!["compression"],
        configurations: vec![
            ("off".into(), vec!["off".into()]),
            ("zstd".into(), vec!["zstd".into()]),
            ("lz4".into(), vec!["lz4".into()]),
        ],
        workloads: sizes
            .iter()
            .map(|size| {
                workload(
                    &format!("random write {size}"),
                    "random",
                    &format!("writes {size} at random, 1 GiB, queue depth 32"),
                    1.0,
                )
            })
            .collect(),
        comparison: None,
        rounds: 8,
        speed: |configuration, workload| {
            let size = f64::from(4096 << (2 * workload));
            [1.0, 0.7, 0.93][configuration] * size / (60e-6 + size / 1.2e9)
        },
    }
}

/// Names that would break a careless report.
pub fn hostile() -> SampleShape {
    let mut shape = small();
    shape.title = "<script>alert(1)</script> & \"Größe\" | 日本語 \u{1b}[31m";
    shape.configurations = vec![
        (
            "<script>alert('a')</script>, \"ext4\", data=ordered,noatime,discard and a very long list of mount options | to the end".into(),
            vec!["<b>".into()],
        ),
        (
            "日本語ファイルシステム日本語ファイルシステム日本語ファイルシステム, größer\n\u{1b}[31m=1+1".into(),
            vec!["größer|kleiner".into()],
        ),
    ];
    shape.workloads[0].name = "</title></svg><script>x</script>".into();
    shape.workloads[1].summary = "\"a\",b\r\n<img src=x onerror=alert(1)>".into();
    shape
}

/// A run after which every trial of one configuration in one round failed.
pub fn with_failure() -> Record {
    let mut record = record(&small());
    for line in &mut record.lines {
        if let Event::Trial(trial) = &mut line.event
            && trial.round == 3
            && trial.configuration == 1
        {
            trial.ended = Ended::Failed {
                error: "write of /mnt/a/file-000017 at offset 8192 failed: No space left on device"
                    .into(),
            };
            trial.metrics.fill(None);
        }
    }
    record
        .lines
        .retain(|line| !matches!(line.event, Event::RoundFinished { round: 3, .. }));
    record
}

/// A run whose second workload was measured in slices, the same in either order.
pub fn in_slices() -> Record {
    let mut record = record(&small());
    let sum = |operations| SliceSum {
        ns: 1_000_000_000,
        operations,
        bytes: 0,
        latency_ns: 1,
    };
    for line in &mut record.lines {
        if let Event::Trial(trial) = &mut line.event
            && trial.workload == 1
        {
            trial.sliced = Some(Sliced {
                slice_ns: 50_000_000,
                slices: 40,
                forwards: sum(1000),
                backwards: sum(1000),
            });
        }
    }
    record
}

/// A run that ended before its first round did.
pub fn without_rounds() -> Record {
    let shape = small();
    let mut record = record(&shape);
    let first_trial = record
        .lines
        .iter()
        .position(|line| matches!(line.event, Event::Trial(_)))
        .unwrap();
    record.lines.truncate(first_trial + 1);
    record
}

/// The first line of the log of such a run.
pub fn head(shape: &SampleShape) -> RunStarted {
    RunStarted {
        format: FORMAT,
        run: "2026-11-21T1405-k3f9".into(),
        stackrace: "0.1.0".into(),
        command: vec!["stackrace".into(), "run".into(), "photos.toml".into()],
        study: format!("title = \"{}\"\n[factors]\n# <made up>\n", shape.title),
        study_name: "photos.toml".into(),
        study_hash: "5c1f".repeat(16),
        title: shape.title.into(),
        factors: shape.factors.iter().map(|&name| name.into()).collect(),
        configurations: shape
            .configurations
            .iter()
            .map(|(name, levels)| ConfigurationHead {
                cost: None,
                name: name.clone(),
                levels: levels.clone(),
            })
            .collect(),
        workloads: shape.workloads.clone(),
        decide: Decide {
            comparison: shape.comparison.map(Into::into),
            margin: 0.05,
            confidence: 0.95,
            rounds_max: 12,
            time_max_ns: 3_600_000_000_000,
            until: Until::Overall,
            precision: Precision::Size,
            required: Vec::new(),
        },
        seed: 0xdead_beef_dead_beef,
        place: None,
        environment: vec![
            Fact::new("kernel", "6.12.48"),
            Fact::new("processor", "AMD EPYC 7763, 2 processors"),
            Fact::new("memory", "8 GiB"),
        ],
    }
}

/// A time of day so many seconds after the run began.
fn at(seconds: f64) -> String {
    let milliseconds = (seconds * 1000.0).round() as u64;
    let (s, ms) = (milliseconds / 1000, milliseconds % 1000);
    format!(
        "2026-11-21T{:02}:{:02}:{:02}.{ms:03}Z",
        14 + s / 3600,
        s / 60 % 60,
        s % 60
    )
}

/// A line as older versions wrote it: with the time of day alone.
fn line(at: String, event: Event) -> LogLine {
    LogLine {
        at,
        since_ns: None,
        event,
    }
}

/// The whole run.
pub fn record(shape: &SampleShape) -> Record {
    let mut dice = Dice(1);
    let mut now = 0.0;
    let mut record =
        Record::begin(line(at(now), Event::RunStarted(Box::new(head(shape))))).unwrap();
    for round in 1..=shape.rounds {
        let mut order: Vec<usize> = (0..shape.configurations.len()).collect();
        for at in (1..order.len()).rev() {
            let other = (dice.next() % (at as u64 + 1)) as usize;
            order.swap(at, other);
        }
        let mut events = vec![Event::RoundStarted {
            round,
            order: order.clone(),
            orders: Vec::new(),
        }];
        for (position, &configuration) in order.iter().enumerate() {
            events.push(command(&["mkfs.xfs", "-f", "/dev/loop3"], "meta-data=…\n"));
            events.push(raised(shape, round, configuration));
            for workload in 0..shape.workloads.len() {
                let speed = (shape.speed)(configuration, workload) * exp(0.02 * dice.noise());
                events.push(Event::Trial(Box::new(trial(
                    &mut dice,
                    (round, position, configuration, workload),
                    speed,
                    &at(now + position as f64 * 4.0 + workload as f64),
                ))));
            }
            events.push(command(&["umount", "/run/mnt/it's here"], ""));
            events.push(Event::StackTornDown {
                served: Vec::new(),
                round,
                configuration,
            });
        }
        if round == 2 {
            events.push(Event::Warned {
                text: "2.1 % of the processor's time was taken away by the hypervisor".into(),
            });
        }
        events.push(Event::RoundFinished {
            round,
            trials: None,
        });
        if round % 4 == 0 || round == 3 {
            events.push(Event::Checked {
                rounds: round,
                sentence: format!("Checked after {round} rounds."),
                dropped: Vec::new(),
                whole: Vec::new(),
            });
        }
        let step = 4.0 * order.len() as f64 / events.len() as f64;
        for event in events {
            now += step;
            record.push(line(at(now), event));
        }
    }
    record.push(line(
        at(now + 1.0),
        Event::RunEnded {
            reason: "interrupted".into(),
            detail: format!("stopped by Ctrl-C after {} rounds", shape.rounds),
        },
    ));
    record
}

fn command(argv: &[&str], stdout: &str) -> Event {
    Event::Command(CommandRun {
        host: "local".into(),
        argv: argv.iter().map(|&word| word.into()).collect(),
        status: Some(0),
        stdout: stdout.into(),
        stderr: String::new(),
        elapsed_ns: 12_345_678,
    })
}

fn raised(shape: &SampleShape, round: u32, configuration: usize) -> Event {
    let level = shape.configurations[configuration].1[0].clone();
    Event::StackSetUp {
        round,
        configuration,
        layers: vec![
            LayerFacts {
                layer: "loop".into(),
                facts: vec![Fact::new("size", "4 GiB"), Fact::new("direct I/O", "on")],
            },
            LayerFacts {
                layer: level,
                facts: vec![
                    Fact::new("mount options in force", "rw,noatime"),
                    Fact::new("block size", "4 KiB"),
                    Fact::new("mount number", format!("{round}")),
                ],
            },
        ],
        lies_on: Vec::new(),
        elapsed_ns: 812_000_000,
    }
}

/// An observation of so many reads of so many bytes together, with a mean latency in ns.
fn reads(dice: &mut Dice, count: u64, bytes: u64, mean: f64) -> OperationObservation {
    let (latency, histogram) = latencies(dice, count, mean);
    OperationObservation {
        op: "read".into(),
        count,
        bytes,
        latency_ns_min: latency.min(),
        latency_ns_mean: latency.mean(),
        latency_ns_p50: latency.value_at_quantile(0.5),
        latency_ns_p95: latency.value_at_quantile(0.95),
        latency_ns_p99: latency.value_at_quantile(0.99),
        latency_ns_p999: None,
        latency_ns_max: latency.max(),
        histogram,
        service: None,
    }
}

fn trial(
    dice: &mut Dice,
    (round, position, configuration, workload): (u32, usize, usize, usize),
    speed: f64,
    started_at: &str,
) -> Observation {
    let size = 4096.0;
    let seconds = 3.0;
    let count = 4000u64;
    let moved = (speed * seconds) as u64;
    let op = reads(dice, count, moved, size / speed * 1e9);
    let slowest = op.latency_ns_p99 as f64;
    let series = (0..30)
        .map(|_| {
            let part = speed * 0.1 * exp(0.05 * dice.noise());
            ((part / size) as u64, part as u64)
        })
        .collect();
    Observation {
        round,
        position,
        configuration,
        workload,
        started_at: started_at.to_owned(),
        prepare_ns: 900_000_000,
        settle_ns: 300_000_000,
        settled: Settled {
            caches: "drop_caches".into(),
            remounted: true,
            resident_bytes: Some(0),
            prepared_bytes: Some(2 << 30),
            ..Settled::default()
        },
        elapsed_ns: (seconds * 1e9) as u64,
        counted: counted(configuration, moved),
        phases: vec![PhaseObservation {
            name: "measure".into(),
            elapsed_ns: (seconds * 1e9) as u64,
            cpu_user_ns: None,
            cpu_system_ns: None,
            engine: "io_uring: depth above 1".into(),
            clock: "tsc".into(),
            depth_achieved: 0.98,
            offered_per_s: None,
            operations: vec![op],
            step_ns: 100_000_000,
            series,
            lateness: None,
            unissued: None,
            threads: Vec::new(),
            told: Vec::new(),
            work: None,
            replayed: None,
        }],
        metrics: vec![
            Some(speed),
            Some(speed / size),
            Some(2e9 / speed),
            Some(slowest),
        ],
        ..Observation::unmeasured(Ended::Complete)
    }
}

fn counted(configuration: usize, moved: u64) -> Counted {
    Counted {
        cpu_user_ns: 210_000_000 + configuration as u64 * 3_000_000,
        cpu_system_ns: 480_000_000,
        cpu_machine_busy_ns: 900_000_000,
        cpu_steal_ns: 10_000_000,
        cpus: 2,
        devices: vec![
            DeviceCounted {
                device: "loop3".into(),
                reads: moved / 4096,
                read_bytes: moved + moved / 20,
                writes: 12,
                written_bytes: 49_152,
                flushes: Some(3),
                busy_ns: 2_700_000_000,
                weighted_ns: 2_900_000_000,
                write_cache: None,
            },
            DeviceCounted {
                device: "vda".into(),
                reads: moved / 65_536,
                read_bytes: moved + moved / 10,
                ..DeviceCounted::default()
            },
        ],
        asked_read_bytes: moved,
        fetched_bytes: moved - moved / 50,
        sent_bytes: 49_152,
        cache_hit_bytes: Some(moved / 50),
        pressure_cpu_ns: Some(20_000_000),
        pressure_io_ns: Some(2_100_000_000),
        pressure_memory_ns: None,
        ..Counted::default()
    }
}

/// A histogram around a mean, ns, and as it is kept.
fn latencies(dice: &mut Dice, count: u64, mean: f64) -> (Histogram<u64>, String) {
    let mut latency = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    for _ in 0..count {
        let slow = if dice.unit() < 0.01 { 12.0 } else { 1.0 };
        let ns = mean * exp(0.3 * dice.noise()) * slow;
        latency.record((ns as u64).max(1)).unwrap();
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&latency, &mut bytes)
        .unwrap();
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    (latency, text)
}
