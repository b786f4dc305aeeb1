//! A load for people: one table a phase, and what must be known to read it; as wide as it is shown.

use hdrhistogram::Histogram;
use stackrace_base::unit::ShownPath;
use stackrace_engine::{Op, OpOutcome, PhaseEnd, PhaseOutcome, Timing};

use super::super::engine;
use crate::commands::load::{LoadRequest, Loaded, LoadedPhase};
use crate::commands::load_target::LoadTarget;
use stackrace_base::event::histogram::quantile;
use stackrace_base::setting::Settings;
use stackrace_base::unit;
use stackrace_base::video::{self, StreamRates};
use stackrace_judge::audit::{self, TrialAudit};
use stackrace_show::report::{figure_text, stacked, table, wrap};

/// Width of the words that say what a line is about.
const LABEL: usize = 11;
/// Columns that the table takes; on a narrower terminal its cells stand below the name of their row.
const WIDTH: usize = 80;
/// Its columns behind the name of the operation: how many, and how long each took.
const COUNTED: [&str; 3] = ["count", "per s", "bytes/s"];
const TIMES: [&str; 5] = ["mean", "p50", "p99", "p99.9", "max"];

/// Text that is laid out to a width.
struct Page {
    text: String,
    width: usize,
}

impl Page {
    fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn paragraph(&mut self, words: &str) {
        for line in wrap(words, self.width) {
            self.push_str(&format!("{line}\n"));
        }
    }

    /// A labelled paragraph.
    fn fact(&mut self, label: &str, words: &str) {
        for (number, line) in wrap(words, self.width - LABEL).iter().enumerate() {
            let label = if number == 0 { label } else { "" };
            self.push_str(&format!("{label:<LABEL$}{line}\n"));
        }
    }
}

/// Everything, with a line break at its end.
pub(super) fn render(
    request: &LoadRequest<'_>,
    loaded: &Loaded,
    audit: Option<&TrialAudit>,
    width: usize,
) -> String {
    let mut text = Page {
        text: String::new(),
        width,
    };
    text.paragraph(&request.summary());
    let what = match &request.target {
        LoadTarget::Directory(_) => "a private directory, removed",
        LoadTarget::Existing { .. } => "only read",
    };
    text.fact("on", &format!("{} ({what})", request.target.path().shown()));
    // Measured after the phases: nothing may stand between the command and its first operation.
    let own_ns = engine::own_ns();
    let phases = loaded.phases.iter().zip(&loaded.outcomes);
    for (number, (measured, outcome)) in phases.enumerate() {
        text.push_str("\n");
        phase(&mut text, measured.name, outcome);
        let offered = request.workload.offered_per_s(number);
        facts(&mut text, request, measured, outcome, offered);
        // Of a program's work the engine knows no operations.
        if !outcome.ops.is_empty() {
            text.fact("cpu", &cpu(outcome, own_ns));
        }
    }
    // What was worked out of the operations stands in no line of theirs.
    let told = |outcome: &PhaseOutcome| outcome.ops.is_empty() || !outcome.reported.is_empty();
    if loaded.outcomes.iter().all(told) {
        text.push_str(&metrics(loaded, request));
    }
    if let Some(audit) = audit {
        text.push_str("\n");
        audited(&mut text, audit);
    }
    let value = |name: &str| {
        let mut metrics = loaded.metrics.iter();
        metrics.find(|(head, _)| head.name == name)?.1
    };
    let is_short = |outcome: &PhaseOutcome| outcome.elapsed_ns < video::WINDOW_NS;
    if let Some(rates) = StreamRates::of(value) {
        text.push_str("\n");
        match loaded.outcomes.iter().any(is_short) {
            true => text.paragraph(
                "no video format is judged: the slowest second decides, and a phase lasted less than one; give it more, like size=4GiB or time=10s",
            ),
            false => {
                text.paragraph(&rates.words());
                text.push_str(&formats(Some(&rates), width));
            }
        }
    }
    if loaded.interrupted {
        text.push_str("\ninterrupted: this is what was measured until then\n");
    }
    text.text
}

/// Rate that each video format needs, judged by `rates` if there are any.
pub(in crate::cli) fn formats(rates: Option<&StreamRates>, width: usize) -> String {
    match width >= WIDTH {
        true => video::text(rates),
        false => table(&video::columns(), &video::rows(rates), width),
    }
}

/// A step of a figure that is smaller than this share of it shows in no digit that is printed.
const STEP_SHOWN: f64 = 0.01;

/// The figures of a workload whose operations are not known one by one; where one lies in an interval, with that.
fn metrics(loaded: &Loaded, request: &LoadRequest<'_>) -> String {
    let values: Vec<Option<f64>> = loaded.metrics.iter().map(|(_, value)| *value).collect();
    let mut steps = request
        .workload
        .resolution(&loaded.outcomes, &values)
        .into_iter();
    let mut text = String::new();
    for (head, value) in &loaded.metrics {
        let step = steps.next().flatten().unwrap_or(0.0);
        let Some(value) = *value else { continue };
        let shown = |value: f64| figure_text(&head.unit, value);
        let within = match step > STEP_SHOWN * value {
            true => format!(
                " ({} to {})",
                shown(value - step / 2.0),
                shown(value + step / 2.0)
            ),
            false => String::new(),
        };
        text.push_str(&format!("{:<40}{:>14}{within}\n", head.name, shown(value)));
    }
    match text.is_empty() {
        true => text,
        false => format!("\n{text}"),
    }
}

/// The bottleneck, and whatever must be known before the figures are believed.
fn audited(text: &mut Page, audit: &TrialAudit) {
    if let Some(by) = audit.limited_by {
        text.fact(
            "limited by",
            &format!("{} ({})", by.words(), audit.limited_how),
        );
    }
    for ((check, grade), sentence) in audit.remarks.iter().zip(&audit.sentences) {
        // What is no more than a note is said to be one in the margin.
        let graded = match grade.word() {
            "note" => String::new(),
            word => format!(", {word}"),
        };
        text.fact("note", &format!("{check}{graded}: {sentence}"));
    }
}

fn phase(text: &mut Page, name: &str, outcome: &PhaseOutcome) {
    text.push_str(&format!(
        "{name}, {} after {}\n",
        ended(outcome.ended),
        unit::time_ns(outcome.elapsed_ns as f64)
    ));
    if !outcome.ops.is_empty() {
        operations(text, outcome);
    }
    if let Some(error) = &outcome.error {
        text.fact("failed", &error.to_string());
    }
}

/// A row for each kind of operation of a phase.
fn operations(text: &mut Page, outcome: &PhaseOutcome) {
    if text.width >= WIDTH {
        let [count, per_second, rate] = COUNTED;
        text.push_str(&format!(
            "{:<10}{count:>11}{per_second:>9}{rate:>10}",
            "operation"
        ));
        text.push_str(&TIMES.map(|name| format!("{name:>8}")).concat());
        text.push_str("\n");
    }
    for op in outcome.ops.iter().filter(|op| op.count > 0) {
        let counted = counted(op, outcome.elapsed_ns);
        row(
            text,
            op.op.name(),
            Some(counted),
            &figures(&op.latency, op.latency_sum_ns),
        );
        if let Some(service) = &op.service {
            timing(text, " service", service);
        }
    }
    if let Some(lateness) = &outcome.lateness {
        timing(text, " late", lateness);
        let words = "counted from the moment an operation was due (response time); \
                     service: from its issue; late: what the generator itself added";
        text.fact("latency", words);
    }
}

fn ended(ended: PhaseEnd) -> &'static str {
    match ended {
        PhaseEnd::Complete => "complete",
        PhaseEnd::Stopped => "interrupted",
        PhaseEnd::Failed => "failed",
    }
}

/// Number of operations, and the bytes they moved.
fn counted(op: &OpOutcome, elapsed_ns: u64) -> [String; 3] {
    let per_second = |amount: u64| amount as f64 * 1e9 / elapsed_ns.max(1) as f64;
    let bytes = match op.bytes {
        // An operation that moves no data has no rate of bytes.
        0 => "–".to_owned(),
        bytes => unit::bytes_per_second(per_second(bytes)),
    };
    let operations = unit::operations_per_second(per_second(op.count));
    [unit::count(op.count), operations, bytes]
}

fn timing(text: &mut Page, label: &str, timing: &Timing) {
    row(
        text,
        label,
        None,
        &figures(&timing.histogram, timing.sum_ns),
    );
}

/// A row of the table, or what it says below its name where the terminal is too narrow for the table.
fn row(text: &mut Page, name: &str, counted: Option<[String; 3]>, times: &[String; 5]) {
    if text.width >= WIDTH {
        let [count, operations, bytes] = counted.unwrap_or_default();
        text.push_str(&format!("{name:<10}{count:>11}{operations:>9}{bytes:>10}"));
        text.push_str(&times.each_ref().map(|time| format!("{time:>8}")).concat());
        text.push_str("\n");
        return;
    }
    let counted = counted.unwrap_or_default();
    // A rate names itself by its unit.
    let heads = ["count", "", ""].into_iter().chain(TIMES);
    let cells = heads.zip(counted.iter().chain(times).map(String::as_str));
    text.push_str(&format!("{name}\n"));
    for line in stacked(cells, text.width - 2) {
        text.push_str(&format!("  {line}\n"));
    }
}

/// Mean, median, 99th and 99.9th percentile, and the largest: as [`TIMES`] names them.
fn figures(histogram: &Histogram<u64>, sum_ns: u128) -> [String; 5] {
    let count = histogram.len();
    let tail = |share: f64| {
        quantile(histogram, share).map_or_else(|| "–".to_owned(), |ns| time(ns as f64))
    };
    [
        time(sum_ns as f64 / count.max(1) as f64),
        time(histogram.value_at_quantile(0.50) as f64),
        tail(0.99),
        tail(0.999),
        time(histogram.max() as f64),
    ]
}

/// A time in seven columns at most.
fn time(ns: f64) -> String {
    // From here on the rounded figure would need a column more.
    if ns >= 59.95e9 {
        format!("{:.0} s", ns / 1e9)
    } else {
        unit::time_ns(ns)
    }
}

/// Operations outstanding at once, as asked for.
fn depth(settings: &Settings) -> u64 {
    // A word that is no count has been refused already.
    let count = |name| settings.count(name).unwrap_or(1);
    count("threads") * count("queue-depth")
}

/// Facts that must be known to read the figures.
fn facts(
    text: &mut Page,
    request: &LoadRequest<'_>,
    measured: &LoadedPhase,
    outcome: &PhaseOutcome,
    offered: Option<f64>,
) {
    let engine = match outcome.engine_why.as_str() {
        "" => outcome.engine.to_owned(),
        why => format!("{}: {why}", outcome.engine),
    };
    text.fact("engine", &engine);
    for told in &outcome.told {
        text.fact("note", told);
    }
    let achieved = unit::digits(outcome.depth_achieved);
    let offered_depth = match depth(&request.settings) {
        offered if outcome.depth_achieved <= 1.05 * offered as f64 => {
            format!("{offered} offered over all threads, {achieved} achieved")
        }
        // A workload that keeps several outstanding by a rule of its own.
        _ => format!("{achieved} outstanding at once, on average"),
    };
    if !outcome.ops.is_empty() {
        text.fact("depth", &offered_depth);
    }
    if let Some(offered) = offered {
        text.fact("load", &load(offered, outcome));
    }
    text.fact("caches", &caches(request, measured));
    if outcome.short > 0 {
        let short = format!("{} operations moved fewer bytes than asked", outcome.short);
        text.fact("short", &short);
    }
    if outcome.verified_bytes > 0 {
        let checked = unit::bytes(outcome.verified_bytes);
        text.fact(
            "verified",
            &format!("{checked} read, every block as written"),
        );
    }
}

/// Processor time it took, and the share of it that was the generator's own work.
fn cpu(outcome: &PhaseOutcome, own_ns: f64) -> String {
    let ops: u64 = outcome.ops.iter().map(|op| op.count).sum();
    let cpu_ns = outcome.cpu_ns() as f64;
    let each_ns = cpu_ns / ops.max(1) as f64;
    format!(
        "{} of one processor, {} per operation; of it the generator itself {} ({})",
        unit::percent(cpu_ns / outcome.elapsed_ns.max(1) as f64),
        unit::time_ns(each_ns),
        unit::time_ns(own_ns),
        // Measured apart, so noise may push it beyond the whole.
        unit::percent((own_ns / each_ns.max(1.0)).min(1.0))
    )
}

/// Load that an open loop offered, and the part of it that was served.
fn load(offered: f64, outcome: &PhaseOutcome) -> String {
    // The rate that was asked for is that of reads and writes.
    let ops = outcome.ops.iter().filter(|op| op.op != Op::Fsync);
    let count: u64 = ops.map(|op| op.count).sum();
    let achieved = count as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64;
    let mut words = format!(
        "offered {}, achieved {} ({:.1} %)",
        unit::operations_per_second(offered),
        unit::operations_per_second(achieved),
        achieved / offered * 100.0
    );
    if outcome.unissued > 0 {
        words.push_str(&format!(
            ", {} due at the end not issued",
            unit::count(outcome.unissued)
        ));
    }
    if audit::not_achieved(offered, achieved) {
        words.push_str(": did not keep up, so response times grow with the length of the phase");
    }
    words
}

fn caches(request: &LoadRequest<'_>, measured: &LoadedPhase) -> String {
    match (request.cold, measured.resident) {
        // Nothing was asked of the caches, so nothing is said of what they held.
        (false, _) => "as they lay".to_owned(),
        (true, None) => "asked to be dropped; what is still in memory is not known".to_owned(),
        (true, Some((_, 0))) => "there were no data that could be in memory".to_owned(),
        (true, Some((left, all))) => format!(
            "dropped: {} of the {} that were looked at are still in memory",
            unit::bytes(left),
            unit::bytes(all)
        ),
    }
}
