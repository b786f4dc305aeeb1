//! Logs of runs, and what is made from them: verdicts and reports.

use std::io::Write;
use std::path::Path;

use base64::Engine as _;

use super::input::Input;
use super::kept::kept;
use stackrace_base::event::{
    Better, BoundSide, ConfigurationHead, Counted, Decide, Ended, Event, FORMAT, Fact, LogLine,
    MetricHead, Observation, OperationObservation, PhaseObservation, Precision, Requirement,
    RunStarted, Settled, SlicesEnded, TimingObservation, Until, WorkloadHead,
};
use stackrace_judge::verdict::{self, Evidence, Look};
use stackrace_results::record::Record;
use stackrace_show::report::{self, ReportOptions};

/// Largest table of values (configurations × workloads × rounds) that is judged: it is made whole, and
/// a short text can ask for one that no run would fill.
const VALUES_MAX: usize = 10_000;
/// Largest log that is reported on in every form.
const REPORTED_MAX: usize = 64 << 10;

/// The lines of a log are written as they were read, every report can be made of it, and neither
/// reading it nor going on with it touches anything else.
pub fn log(data: &[u8]) {
    kept(data);
    let record = match Record::parse(data, Path::new("log.jsonl")) {
        Ok(record) => record,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let lines = data.split(|&byte| byte == b'\n').count();
    assert!(record.lines.len() + record.notes.len() <= lines + 2);
    let written = written(&record);
    match Record::parse(&written, Path::new("again.jsonl")) {
        Ok(again) => assert!(
            self::written(&again) == written,
            "a line changed its meaning"
        ),
        Err(error) => panic!("what was read cannot be read again: {error}"),
    }
    if data.len() <= REPORTED_MAX {
        reported(&record);
    }
}

fn written(record: &Record) -> Vec<u8> {
    let mut written = Vec::new();
    for line in &record.lines {
        serde_json::to_writer(&mut written, line).unwrap_or_else(|error| panic!("{error}"));
        written.push(b'\n');
    }
    written
}

/// Every report of a record, well-formed.
pub(super) fn reported(record: &Record) {
    let head = &record.head;
    let rounds = record.complete_rounds().len();
    let values = (head.configurations.len() + 1)
        .saturating_mul(head.workloads.len() + 1)
        .saturating_mul(rounds + 1);
    if values > VALUES_MAX {
        return;
    }
    assert!(record.elapsed_seconds() >= 0.0);
    assert!(record.round_times().iter().all(|time| time.seconds >= 0.0));
    let evidence = Evidence::of(record);
    let verdict = verdict::judge(&evidence);
    let look = Look::at(&evidence);
    look.may_stop(&head.decide);
    for configuration in look.to_drop(&head.decide) {
        assert!(configuration < head.configurations.len());
    }
    stackrace_judge::audit::notes(head, &evidence.trials, &evidence.set_ups);
    let options = |width| ReportOptions {
        before_next: "mend it, then".to_owned(),
        placed: verdict::Placed::default(),
        beside: None,
        lines_max: None,
        screen: report::Screen { width },
        next: "stackrace report".to_owned(),
    };
    for report in report::ALL {
        let bytes = report.render(record, &verdict, &options(80));
        let text = String::from_utf8(bytes);
        let text = text.unwrap_or_else(|_| panic!("{} is no text", report.name));
        match report.name {
            "csv" => csv(&text),
            "json" => json(&text, record),
            "html" => html(&text),
            "markdown" => markdown(&text),
            "terminal" => {
                terminal(&text, false);
                let narrow = report::page(record, &verdict, &options(40));
                terminal(&narrow.render(true), true);
            }
            // Of a form that is not known here, only that it can be rendered.
            _ => {}
        }
    }
}

/// As many cells in every row as in the first (RFC 4180).
fn csv(text: &str) {
    let (mut cells, mut quoted) = (1, false);
    let mut first = None;
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => cells += 1,
            '\n' if !quoted => {
                assert_eq!(cells, *first.get_or_insert(cells), "{text}");
                cells = 1;
            }
            _ => {}
        }
    }
    assert!(!quoted && text.ends_with('\n'));
}

fn json(text: &str, record: &Record) {
    let value: serde_json::Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(value["run"]["title"], record.head.title);
    let trials = value["trials"].as_array().map(Vec::len);
    assert_eq!(trials, Some(record.trials().count()));
}

/// No element comes from a name: only those the page itself uses are there, and every letter that
/// opens one begins one of them.
fn html(text: &str) {
    for after in text.split('<').skip(1) {
        let name: String = after
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        assert!(
            !name.is_empty() || after.starts_with("!DOCTYPE") || after.starts_with("!--"),
            "<{after:.40}"
        );
        assert!(
            ![
                "script", "img", "iframe", "object", "embed", "link", "base", "form", "x"
            ]
            .contains(&name.as_str()),
            "<{after:.40}"
        );
    }
    assert!(text.trim_end().ends_with("</html>"));
}

/// A table's rows have the columns of its head.
fn markdown(text: &str) {
    let mut columns = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let plain = line.replace("\\\\", "").replace("\\|", "");
        let bars = plain.matches('|').count();
        assert_eq!(*columns.get_or_insert(bars), bars, "{line}");
    }
}

/// No control sequence reaches the terminal, except colours that were asked for.
fn terminal(text: &str, colour: bool) {
    for letter in text.chars() {
        let colours = colour && letter == '\u{1b}';
        assert!(
            letter == '\n' || colours || !letter.is_control(),
            "{letter:?} in {text}"
        );
    }
}

/// Every report can be made of a run with any names and figures, and no name is read as markup.
pub fn report(data: &[u8]) {
    let mut input = Input::new(data);
    let head = head(&mut input);
    let rounds = input.below(7) as u32;
    let mut events = Vec::new();
    for round in 1..=rounds {
        for configuration in 0..head.configurations.len() {
            for workload in 0..head.workloads.len() {
                let place = (round, configuration, workload);
                events.push(Event::Trial(Box::new(trial(&mut input, &head, place))));
            }
        }
        events.push(Event::RoundFinished {
            round,
            trials: None,
        });
        if input.below(4) == 0 {
            events.push(Event::Checked {
                rounds: round,
                sentence: input.text(),
                dropped: vec![input.below(5)],
                whole: vec![SlicesEnded {
                    workload: input.below(5),
                    why: input.text(),
                }],
            });
        }
    }
    events.push(Event::Warned { text: input.text() });
    events.push(Event::RunEnded {
        reason: input.text(),
        detail: input.text(),
    });
    let first = line(&mut input, 0, Event::RunStarted(Box::new(head)));
    let Some(mut record) = Record::begin(first) else {
        panic!("a head begins a record");
    };
    for (at, event) in events.into_iter().enumerate() {
        record.push(line(&mut input, at, event));
    }
    // A log cannot hold what is not a number: it is written and read as a run would.
    log(&written(&record));
}

fn line(input: &mut Input<'_>, at: usize, event: Event) -> LogLine {
    let at = match input.below(8) {
        7 => input.text(),
        _ => format!("2026-11-21T14:{:02}:{:02}.000Z", at / 60 % 60, at % 60),
    };
    LogLine {
        at,
        since_ns: None,
        event,
    }
}

fn head(input: &mut Input<'_>) -> RunStarted {
    let factors: Vec<String> = (0..input.below(3)).map(|_| input.text()).collect();
    let configurations = (0..=input.below(4))
        .map(|_| ConfigurationHead {
            cost: None,
            name: input.text(),
            levels: factors.iter().map(|_| input.text()).collect(),
        })
        .collect();
    let units = ["B/s", "op/s", "s", "ns", "%", "B", "", "furlongs"];
    let workloads = (0..=input.below(3))
        .map(|_| WorkloadHead {
            name: input.text(),
            kind: input.text(),
            summary: input.text(),
            weight: finite(input).abs(),
            drawn_sizes: None,
            level: None,
            operations: None,
            gives_commands: false,
            imported: None,
            recorded: None,
            metrics: (0..=input.below(3))
                .map(|_| MetricHead {
                    name: input.text(),
                    unit: units[input.below(units.len())].to_owned(),
                    better: [Better::Higher, Better::Lower][input.below(2)],
                })
                .collect(),
        })
        .collect();
    RunStarted {
        format: FORMAT,
        run: input.text(),
        stackrace: input.text(),
        command: vec![input.text()],
        study: input.text(),
        study_name: input.text(),
        study_hash: input.text(),
        title: input.text(),
        decide: Decide {
            comparison: factors.first().filter(|_| input.below(2) == 0).cloned(),
            margin: finite(input).abs().min(1.0),
            confidence: 0.5 + f64::from(input.u8()) / 512.0,
            rounds_max: input.u32() % 10_000,
            time_max_ns: input.u64(),
            until: [Until::Overall, Until::Each, Until::Never][input.below(3)],
            precision: match input.below(3) {
                0 => Precision::Direction,
                1 => Precision::Size,
                _ => Precision::Within(finite(input).abs()),
            },
            required: (0..input.below(3))
                .map(|_| Requirement {
                    workload: input.below(4),
                    metric: input.below(4),
                    limit: [BoundSide::AtMost, BoundSide::AtLeast][input.below(2)],
                    bound: finite(input).abs(),
                })
                .collect(),
        },
        factors,
        configurations,
        workloads,
        seed: input.u64(),
        place: None,
        environment: vec![Fact::new(input.text(), input.text())],
    }
}

/// Mostly an ordinary number, sometimes any float.
fn finite(input: &mut Input<'_>) -> f64 {
    let number = match input.below(4) {
        0 => input.f64(),
        _ => f64::from(input.u32()) / 1024.0,
    };
    if number.is_finite() { number } else { 1.0 }
}

fn trial(
    input: &mut Input<'_>,
    head: &RunStarted,
    (round, configuration, workload): (u32, usize, usize),
) -> Observation {
    let metrics = head.workloads[workload].metrics.iter();
    Observation {
        round,
        position: configuration,
        configuration,
        workload,
        ended: match input.below(16) {
            14 => Ended::Interrupted,
            15 => Ended::Failed {
                error: input.text(),
            },
            _ => Ended::Complete,
        },
        started_at: input.text(),
        prepare_ns: input.up_to_bits(64),
        settle_ns: input.up_to_bits(64),
        settled: Settled {
            caches: input.text(),
            resident_bytes: Some(input.up_to_bits(64)),
            ..Settled::default()
        },
        preconditioned: None,
        elapsed_ns: input.up_to_bits(64),
        counted: Counted {
            cpu_steal_ns: input.up_to_bits(64),
            cpus: input.u32(),
            cache_hit_bytes: Some(input.up_to_bits(64)),
            ..Counted::default()
        },
        phases: (0..input.below(3)).map(|_| phase(input)).collect(),
        metrics: metrics
            .map(|_| Some(finite(input)).filter(|_| input.below(8) > 0))
            .collect(),
        resolution: (0..input.below(4))
            .map(|_| Some(finite(input)).filter(|_| input.below(2) > 0))
            .collect(),
        notes: vec![input.text()],
        against: Vec::new(),
        others: Vec::new(),
        clients: None,
        sliced: None,
        beside: None,
        exchanged: None,
        advice: String::new(),
        cause: None,
    }
}

fn phase(input: &mut Input<'_>) -> PhaseObservation {
    PhaseObservation {
        name: input.text(),
        elapsed_ns: input.up_to_bits(64),
        cpu_user_ns: None,
        cpu_system_ns: None,
        engine: input.text(),
        clock: input.text(),
        depth_achieved: finite(input),
        operations: vec![OperationObservation {
            op: ["read", "write", "fsync", "<b>"][input.below(4)].to_owned(),
            count: input.up_to_bits(64),
            bytes: input.up_to_bits(64),
            latency_ns_min: input.up_to_bits(64),
            latency_ns_mean: finite(input),
            latency_ns_p50: input.up_to_bits(64),
            latency_ns_p95: input.up_to_bits(64),
            latency_ns_p99: input.up_to_bits(64),
            latency_ns_p999: None,
            latency_ns_max: input.up_to_bits(64),
            histogram: input.text(),
            service: Some(timing(input)).filter(|_| input.below(2) == 0),
        }],
        step_ns: input.up_to_bits(64),
        series: (0..input.below(8))
            .map(|_| (input.up_to_bits(64), input.up_to_bits(64)))
            .collect(),
        offered_per_s: Some(finite(input)).filter(|_| input.below(2) == 0),
        lateness: Some(timing(input)).filter(|_| input.below(2) == 0),
        unissued: Some(input.up_to_bits(64)).filter(|_| input.below(2) == 0),
        told: (0..input.below(3)).map(|_| input.text()).collect(),
        work: None,
        replayed: None,
        threads: Vec::new(),
    }
}

fn timing(input: &mut Input<'_>) -> TimingObservation {
    TimingObservation {
        ns_mean: finite(input),
        ns_p50: input.up_to_bits(64),
        ns_p99: input.up_to_bits(64),
        ns_max: input.up_to_bits(64),
        histogram: input.text(),
    }
}

/// A histogram as a log holds it, base64 and deflation already taken off: the curve falls from 1, and the
/// latencies rise.
pub fn histogram(data: &[u8]) {
    let mut packed = vec![0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 0];
    let mut deflater = flate2::write::ZlibEncoder::new(&mut packed, flate2::Compression::fast());
    assert!(deflater.write_all(data).is_ok() && deflater.finish().is_ok());
    let length = (packed.len() - 8) as u32;
    packed[4..8].copy_from_slice(&length.to_be_bytes());
    let text = base64::engine::general_purpose::STANDARD.encode(packed);
    let Some(points) = report::latency_tail(&text) else {
        return;
    };
    assert_eq!(points.first().map(|point| point.1), Some(1.0));
    for pair in points.windows(2) {
        assert!(pair[0].0 <= pair[1].0 && pair[0].1 >= pair[1].1, "{pair:?}");
    }
    assert!(points.iter().all(|point| point.0 >= 1.0 && point.1 >= 0.0));
}
