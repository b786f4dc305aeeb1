//! The answer at the end of a run: the verdict, where it is kept, and the exit code.

use std::path::Path;

use super::args::OutputArgs;
use super::failure::{self, Failure};
use super::report::write;
use super::setting::Setting;
use super::terminal::{error, print_styled, say};
use stackrace_judge::verdict::{State, Verdict};
use stackrace_results::record::{Record, Store};
use stackrace_run::execute::FinishedRun;
use stackrace_run::run::{Ledger, Reason};
use stackrace_show::report;

/// Lines of the answer: with those that say where it is kept, a screen of 24.
const ANSWER_LINES: usize = 20;

/// Shows what a run found, and says how it ended.
pub(super) fn finish(
    setting: &Setting,
    run: FinishedRun,
    output: &OutputArgs,
    decide: bool,
) -> Result<u8, Failure> {
    let id = run.ledger.lock().record().head.run.clone();
    if run.ended.is_err() && !run.store.has_log(&id) {
        // What is on record nowhere is no result.
        return run.ended.map(|_| 0);
    }
    show(setting, &run, output, Some(ANSWER_LINES))?;
    // What was found comes before what went wrong: it is on record, and is what was asked for.
    let reason = run.ended?;
    let ledger = run.ledger.lock();
    let record = ledger.record();
    if reason == Reason::Lost {
        let detail = record.ended().map_or("", |ended| ended.detail);
        let next = record.head.resume_command();
        error(&format!("{detail}\n  next: {next}\n"));
    }
    if reason == Reason::Interrupted {
        let next = record.head.resume_command();
        error(&format!(
            "interrupted: what was measured is kept\n  next: {next}\n"
        ));
    }
    Ok(exit_code(reason, record, &run.verdict, decide))
}

/// Shows a verdict, whole or in so many lines, writes the HTML report if one is asked for, and says
/// where the run is kept.
pub(super) fn show(
    setting: &Setting,
    run: &FinishedRun,
    output: &OutputArgs,
    lines_max: Option<usize>,
) -> Result<(), Failure> {
    let ledger = run.ledger.lock();
    let (record, verdict) = (ledger.record(), &run.verdict);
    if setting.events.is_on_standard_output() {
        // A program reads lines there; the last of them say the same.
    } else if setting.quiet {
        say(&format!("{}\n", report::on_one_line(&verdict.sentence)));
    } else {
        // An open question first: a report of it would have to be made again.
        let next = match (goes_on(record, verdict), &output.html) {
            (Some(command), _) => command,
            (None, Some(_)) => String::new(),
            (None, None) => format!("stackrace report {} --html report.html", record.head.run),
        };
        let options = report::ReportOptions {
            lines_max,
            screen: setting.screen,
            next,
            ..report::ReportOptions::default()
        };
        print_styled(&report::page(record, verdict, &options), setting.colour);
    }
    if let Some(path) = &output.html {
        write(
            path,
            "html",
            record,
            verdict,
            &report::ReportOptions::default(),
        )?;
    }
    if !setting.quiet && !setting.events.is_on_standard_output() {
        where_it_is(&run.store, &ledger);
    }
    Ok(())
}

/// A path on a line of its own.
fn shown(path: &Path) -> String {
    report::on_one_line(&path.to_string_lossy())
}

/// Says where a run is kept.
fn where_it_is(store: &Store, ledger: &Ledger) {
    if let Some(why) = ledger.index_trouble() {
        error(&format!(
            "warning: the index is not up to date: {why}\n  next: stackrace reindex\n"
        ));
    }
    let run = &ledger.record().head.run;
    say(&format!(
        "\nrun     {run}\nrecord  {}\nindex   {}\n",
        shown(&store.run_dir(run)),
        shown(&store.dir().join("stackrace.db"))
    ));
}

fn exit_code(reason: Reason, record: &Record, verdict: &Verdict, decide: bool) -> u8 {
    let failed = record.failures().next().is_some();
    match reason {
        Reason::Interrupted => failure::INTERRUPTED,
        Reason::Lost => failure::TRIAL_FAILED,
        // Before the verdict: a script must not take a comparison that lost a configuration for a
        // clean one.
        _ if failed => failure::TRIAL_FAILED,
        _ if decide && verdict.state != State::Decided => failure::UNDECIDED,
        _ => 0,
    }
}

/// The command that goes on, where a run ended without an answer for want of time or rounds; none: it
/// ended otherwise.
fn goes_on(record: &Record, verdict: &Verdict) -> Option<String> {
    let reason = record.ended()?.reason;
    let stopped = [Reason::Time, Reason::Rounds, Reason::Interrupted]
        .iter()
        .any(|stopped| reason == stopped.word());
    // Further rounds would change nothing where the rest of the question is settled.
    let open = matches!(verdict.state, State::TooFew | State::Undecided) && !verdict.settled;
    // One configuration is measured, and nothing about it is to be decided.
    let asked = record.head.configurations.len() > 1;
    (stopped && open && asked).then(|| record.head.resume_command() + " --until-decided")
}
