//! `stackrace trace` and `stackrace show trace`: what was recorded of an application.

use stackrace_base::event::shell;
use stackrace_base::unit::InWords;
use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

use serde_json::{Value, json};

use super::args::TraceVerb;
use super::failure::Failure;
use super::terminal::{columns, print_data, say};
use stackrace_base::unit::{self, ShownPath};
use stackrace_show::report::table;
use stackrace_trace::trace::{
    Bound, Class, Ending, REPLAYED_MAX, SharedSyncs, Spent, Summary, TraceError, TraceReader, cut,
};

/// Share of the critical path that waits for others from which the elapsed time says little of storage.
const MOSTLY_OUTSIDE: f64 = 0.1;
/// Share of lost events, and of what is not covered, above which the figures do not describe the application.
const LOST: f64 = 0.001;
const NOT_COVERED: f64 = 0.02;
/// Share of the critical path from which a part of it is named.
const SEEN: f64 = 0.000_5;

pub(super) fn exec(verb: &TraceVerb) -> Result<u8, Failure> {
    match verb {
        TraceVerb::Info { file, json: false } => {
            say(&shown(file, columns(&std::io::stdout()))?);
        }
        TraceVerb::Info { file, json: true } => {
            let text = format!("{:#}\n", as_json(&summary(file)?));
            print_data(text.as_bytes());
        }
        TraceVerb::Cut {
            file,
            from,
            to,
            output,
        } => say(&part(file, from, to.as_deref(), output)?),
    }
    Ok(0)
}

/// What a trace holds, for people.
pub(super) fn shown(file: &Path, columns: usize) -> Result<String, Failure> {
    Ok(text(&file.shown().to_string(), &summary(file)?, columns))
}

fn reader(file: &Path) -> Result<TraceReader<BufReader<File>>, Failure> {
    let opened = File::open(file).map_err(TraceError::System);
    let reader = opened.and_then(|file| TraceReader::new(BufReader::new(file)));
    reader.map_err(|error| refused(file, &error))
}

fn summary(file: &Path) -> Result<Summary, Failure> {
    Summary::of(reader(file)?).map_err(|error| refused(file, &error))
}

fn refused(file: &Path, error: &TraceError) -> Failure {
    let (said, next) = match error {
        TraceError::System(error) => (
            error.in_words(),
            "name the file that `stackrace record` wrote",
        ),
        _ => (
            error.to_string(),
            "record the application again: stackrace record --help",
        ),
    };
    Failure::usage(format!("{}: {said}", file.shown())).next(next)
}

/// A file that remembers whether it could not be written.
struct Written {
    file: File,
    failed: Rc<Cell<bool>>,
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes);
        self.failed.set(self.failed.get() || written.is_err());
        written
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn part(file: &Path, from: &str, to: Option<&str>, output: &Path) -> Result<String, Failure> {
    let time = |name: &str, text: &str| {
        let time = unit::parse_time_ns(text);
        time.map_err(|why| Failure::usage(format!("--{name}: {why}")))
    };
    let from = time("from", from)?;
    let to = to.map(|to| time("to", to)).transpose()?.unwrap_or(u64::MAX);
    if to <= from {
        return Err(Failure::usage("--to is not behind --from").next("give a later --to"));
    }
    let reader = reader(file)?;
    let unwritten = |error: std::io::Error| {
        Failure::usage(format!(
            "-o {}: {error}",
            output.shown(),
            error = error.in_words()
        ))
        .next("name a file that is not there yet")
    };
    let mut make = File::options();
    let made = make.write(true).create_new(true).mode(0o600).open(output);
    let made = made.map_err(unwritten)?;
    let written = Written {
        file: made,
        failed: Rc::default(),
    };
    let failed = written.failed.clone();
    let done = cut(reader, from..to, BufWriter::new(written)).and_then(|(out, ending)| {
        let file = out
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        file.file.sync_all()?;
        Ok(ending)
    });
    match done {
        Ok(ending) if ending.operations == 0 => {
            let _ = std::fs::remove_file(output);
            let why = format!("{}: no operation begins in this span", file.shown());
            Err(Failure::refused(why).next(format!(
                "see how long it is: {}",
                shell(&[
                    Path::new("stackrace"),
                    Path::new("trace"),
                    Path::new("info"),
                    file
                ])
            )))
        }
        Ok(ending) => Ok(format!(
            "{}: {}\n",
            output.shown(),
            unit::counted(ending.operations as usize, "operation")
        )),
        Err(error) => {
            // A trace without an end is none.
            let _ = std::fs::remove_file(output);
            match (failed.get(), error) {
                // The trace that is read is not at fault.
                (true, TraceError::System(error)) => {
                    let (shown, error) = (output.shown(), error.in_words());
                    Err(Failure::unable(format!("-o {shown}: {error}"))
                        .next("free space there, or name another file with -o"))
                }
                (_, error) => Err(refused(file, &error)),
            }
        }
    }
}

/// What the recording cost, in a sentence.
pub(super) fn cost(ending: &Ending) -> String {
    format!(
        "Recording cost about {} of the application's processor time (estimated).",
        unit::percent(ending.cost_share())
    )
}

fn text(name: &str, summary: &Summary, columns: usize) -> String {
    let (origin, ending) = (&summary.origin, &summary.ending);
    let seconds = |ns: u64| unit::time_ns(ns as f64);
    let part = if origin.cut { ", a part" } else { "" };
    let mut text = format!(
        "{name}: {} on {}{part}, Linux {}, {}; {} of {}. The directory had {} before.\n\n",
        unit::time_ns(ending.elapsed_ns as f64),
        origin.file_system,
        origin.kernel,
        unit::counted(origin.processors as usize, "processor"),
        unit::counted(ending.operations as usize, "operation"),
        unit::counted(ending.threads as usize, "thread"),
        unit::counted(summary.files as usize, "file"),
    );
    let head = ["calls", "number", "failed", "bytes", "time", "longest"].map(str::to_owned);
    let rows = summary.classes.iter().map(|(class, total)| {
        let bytes = match total.bytes {
            0 => "–".to_owned(),
            bytes => unit::bytes(bytes),
        };
        vec![
            class.name().to_owned(),
            total.calls.to_string(),
            total.failed.to_string(),
            bytes,
            seconds(total.time),
            seconds(total.longest),
        ]
    });
    text.push_str(&table(&head, &rows.collect::<Vec<_>>(), columns));
    text.push_str(&format!("\n{}\n", bound_words(&summary.bound)));
    for remark in remarks(summary) {
        text.push_str(&format!("- {remark}\n"));
    }
    text
}

/// The bound, in a sentence.
fn bound_words(bound: &Bound) -> String {
    if bound.spent.total() == 0 {
        return "Nothing was recorded.".to_owned();
    }
    let share = unit::percent(bound.storage_share());
    match bound.at_most() {
        Some(at_most) => format!(
            "Storage is {share} of the critical path; no storage makes this more than {} x as fast as when recorded.",
            unit::decimals(at_most, 2, unit::Rounded::Up)
        ),
        None => format!("Storage is {share} of the critical path: it alone limits this."),
    }
}

/// What the path is made of; what is too little to be seen is left out.
fn path_words(spent: &Spent) -> String {
    let parts = [
        (spent.storage, "storage"),
        (spent.processor, "computing"),
        (spent.queued, "waits for a processor"),
        (spent.pages, "waits for pages of files and memory"),
        (spent.other_files, "in other files"),
        (spent.outside, "waits for others (clients, timers)"),
    ];
    let share = |part: u64| part as f64 / spent.total().max(1) as f64;
    let seen = parts.iter().filter(|(part, _)| share(*part) >= SEEN);
    let words = seen.map(|(part, what)| format!("{} {what}", unit::percent(share(*part))));
    format!("the path: {}", words.collect::<Vec<_>>().join(", "))
}

/// How many syncs several threads shared; `None` if none.
fn shared_words(shared: &SharedSyncs) -> Option<String> {
    (shared.shared > 0).then(|| {
        format!(
            "{} of {} were shared by several threads: on slower storage more would be, and in a replay not",
            unit::count(shared.shared),
            unit::counted(shared.syncs as usize, "sync")
        )
    })
}

/// What is not in the trace, or not in a replay of it.
fn left_out(summary: &Summary) -> Vec<String> {
    let ending = &summary.ending;
    let mut found = Vec::new();
    if ending.operations > REPLAYED_MAX {
        found.push(format!(
            "too long for a replay, which makes at most {} operations: record a shorter time",
            unit::count(REPLAYED_MAX)
        ));
    }
    if summary.links_out > 0 {
        found.push(format!(
            "out of the directory lead: {}; what is behind them is not recorded",
            unit::counted(summary.links_out as usize, "link")
        ));
    }
    if ending.elsewhere > 0 {
        found.push(format!(
            "made elsewhere on the file system: {}; if they are the application's data, name the directory (--below) as it does",
            unit::counted(ending.elsewhere as usize, "file")
        ));
    }
    found
}

/// What a reader must know about the bound.
fn remarks(summary: &Summary) -> Vec<String> {
    let (ending, spent) = (&summary.ending, &summary.bound.spent);
    let mut found = vec![path_words(spent)];
    if spent.queued + spent.pages > 0 {
        found.push(
            "waits for a processor or for pages count as if storage could save them".to_owned(),
        );
    }
    if summary.bound.outside_share() > MOSTLY_OUTSIDE {
        found.push(
            "the application mostly answers others: faster storage shortens its answers, hardly the elapsed time".to_owned(),
        );
    }
    found.extend(shared_words(&summary.shared));
    let covered = summary.coverage();
    let mut coverage = format!(
        "covered: {} of the time on storage can be replayed",
        unit::percent(covered)
    );
    if 1.0 - covered > NOT_COVERED {
        coverage.push_str(", too little for a verdict by replay");
    }
    if summary.written_mappings > 0 {
        let mappings = unit::counted(summary.written_mappings as usize, "mapping");
        coverage.push_str(&format!(
            "; what is written through {mappings} of files is not seen"
        ));
    }
    found.push(coverage);
    found.extend(left_out(summary));
    let mut lost = format!("lost: {} of {} events", ending.lost, ending.events);
    if ending.lost_share() > LOST {
        lost.push_str(": too many, the bound may be wrong");
    }
    if ending.not_followed > 0 {
        lost.push_str(&format!(
            "; {} could not be followed",
            unit::counted(ending.not_followed as usize, "thread")
        ));
    }
    if ending.unresolved > 0 {
        lost.push_str(&format!(
            "; {} could not be resolved",
            unit::counted(ending.unresolved as usize, "name")
        ));
    }
    found.push(lost);
    if let Some(device) = &ending.device {
        let flushes = device.flushes.map_or_else(String::new, |flushes| {
            format!(", flushed {} times", unit::count(flushes))
        });
        found.push(format!(
            "the device, for all programs together: {} read, {} written{flushes}",
            unit::bytes(device.read_bytes),
            unit::bytes(device.written_bytes)
        ));
    }
    if summary.resident_bytes > 0 {
        found.push(format!(
            "in memory before: {} of {}",
            unit::bytes(summary.resident_bytes),
            unit::bytes(summary.file_bytes)
        ));
    }
    found.push(cost(ending));
    found
}

/// The same, for programs. Times are in ns.
fn as_json(summary: &Summary) -> Value {
    let class = |(class, total): (&Class, &stackrace_trace::trace::ClassTotal)| {
        json!({
            "class": class.name(), "calls": total.calls, "failed": total.failed, "bytes": total.bytes,
            "time": total.time, "longest": total.longest,
        })
    };
    let (bound, spent) = (&summary.bound, &summary.bound.spent);
    json!({
        "origin": summary.origin,
        "ending": summary.ending,
        "files": summary.files,
        "file-bytes": summary.file_bytes,
        "resident-bytes": summary.resident_bytes,
        "forks": summary.forks,
        "classes": summary.classes.iter().map(class).collect::<Vec<_>>(),
        "path": {
            "storage": spent.storage, "processor": spent.processor, "queued": spent.queued, "pages": spent.pages,
            "other-files": spent.other_files, "outside": spent.outside,
        },
        "storage-share": bound.storage_share(),
        "at-most": bound.at_most(),
        "coverage": summary.coverage(),
        "written-mappings": summary.written_mappings,
        "shared-syncs": summary.shared.shared,
        "lost-share": summary.ending.lost_share(),
        "cost-share": summary.ending.cost_share(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_trace::trace::StopReason;

    #[test]
    fn the_bound_is_said_as_a_share_and_a_limit() {
        let spent = Spent {
            storage: 40,
            processor: 60,
            ..Spent::default()
        };
        assert_eq!(
            bound_words(&Bound { spent }),
            "Storage is 40 % of the critical path; no storage makes this more than 1.67 x as fast as when recorded."
        );
        let spent = Spent {
            storage: 40,
            ..Spent::default()
        };
        assert!(bound_words(&Bound { spent }).contains("it alone limits this"));
        let nothing = Bound {
            spent: Spent::default(),
        };
        assert_eq!(bound_words(&nothing), "Nothing was recorded.");
    }

    #[test]
    fn losses_make_the_bound_doubtful() {
        let ending = Ending {
            events: 1000,
            lost: 2,
            stopped: Some(StopReason::Ended),
            ..Ending::default()
        };
        assert!(ending.lost_share() > LOST);
    }
}
