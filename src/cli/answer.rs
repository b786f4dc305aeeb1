//! The answer at the end of a run: the verdict, where it is kept, and the exit code.

use super::args::OutputArgs;
use super::failure::{self, Failure};
use super::report::{render, write};
use super::setting::Setting;
use super::terminal::{error, print_data, print_styled, say};
use crate::commands::longer::{self, NextStep};
use stackrace_base::event::{Observation, again, shell};
use stackrace_base::unit::ShownPath;
use stackrace_judge::verdict::{Enough, Evidence, Placed, RECORD_AGAIN, State, Verdict, withheld};
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
    finish_with(setting, run, output, (decide, &|_, _| Placed::default()))
}

/// Where the storage of a run stands, which its record alone does not tell.
type Placing<'a> = dyn Fn(&Record, &Verdict) -> Placed + 'a;

/// Shows what a run found, with where its storage stands below the figures, and says how it ended.
pub(super) fn finish_with(
    setting: &Setting,
    run: FinishedRun,
    output: &OutputArgs,
    (decide, place): (bool, &Placing<'_>),
) -> Result<u8, Failure> {
    let id = run.ledger.lock().record().head.run.clone();
    if run.ended.is_err() && !run.store.has_log(&id) {
        // What is on record nowhere is no result.
        return run.ended.map(|_| 0);
    }
    let placed = place(run.ledger.lock().record(), &run.verdict);
    show(setting, &run, output, (Some(ANSWER_LINES), &placed))?;
    if !pageless(setting, output) {
        for text in placed.sentences() {
            for line in report::wrap(&format!("\n{text}"), setting.screen.columns()) {
                say(&format!("{line}\n"));
            }
        }
    }
    // What was found comes before what went wrong: it is on record, and is what was asked for.
    let reason = run.ended?;
    let ledger = run.ledger.lock();
    let record = ledger.record();
    let why = match reason {
        Reason::Lost => record.ended().map_or("", |ended| ended.detail),
        Reason::Interrupted => "interrupted: what was measured is kept",
        _ => "",
    };
    if !why.is_empty() {
        // Said once: the page above has it.
        let next = match pageless(setting, output) {
            true => format!("  next: {}\n", record.head.resume_command()),
            false => String::new(),
        };
        error(&format!("{why}\n{next}"));
    }
    Ok(exit_code(reason, record, &run.verdict, decide))
}

/// Returns true if no page is shown, which would end with the next command.
fn pageless(setting: &Setting, output: &OutputArgs) -> bool {
    setting.quiet || output.json || setting.events.is_on_standard_output()
}

/// Shows a verdict, whole or in so many lines (the HTML report also says where the storage stands), writes the HTML report if one is asked for, and says
/// where the run is kept.
pub(super) fn show(
    setting: &Setting,
    run: &FinishedRun,
    output: &OutputArgs,
    (lines_max, placed): (Option<usize>, &Placed),
) -> Result<(), Failure> {
    let ledger = run.ledger.lock();
    let (record, verdict) = (ledger.record(), &run.verdict);
    let whole = report::ReportOptions {
        placed: placed.clone(),
        ..report::ReportOptions::default()
    };
    if setting.events.is_on_standard_output() {
        // A program reads lines there; the last of them say the same.
    } else if output.json {
        print_data(&render("json", record, verdict, &whole)?);
    } else if setting.quiet {
        say(&format!("{}\n", report::on_one_line(&verdict.sentence)));
    } else {
        // An open question first: a report of it would have to be made again.
        let reason = run.ended.as_ref().ok().copied();
        let step = reason.and_then(|reason| next_step(record, verdict, reason));
        // What went wrong after the last result says below what to do.
        let advised = run.ended.as_ref().is_err_and(Failure::is_advised);
        let next = match (step, &output.html) {
            _ if advised => NextStep::default(),
            (Some(step), _) => step,
            (None, Some(_)) => NextStep::default(),
            (None, None) => {
                let html = again(&["report", &record.head.run, "--html", "report.html"]);
                NextStep::new("", html)
            }
        };
        let options = report::ReportOptions {
            lines_max,
            screen: setting.screen,
            before_next: next.before,
            next: next.command,
            ..report::ReportOptions::default()
        };
        print_styled(&report::page(record, verdict, &options), setting.colour);
    }
    if let Some(path) = &output.html {
        write(path, "html", record, verdict, &whole)?;
    }
    if !pageless(setting, output) {
        where_it_is(&run.store, &ledger);
    }
    Ok(())
}

/// Says where a run is kept.
fn where_it_is(store: &Store, ledger: &Ledger) {
    if let Some(why) = ledger.index_trouble() {
        error(&format!(
            "warning: the index is not up to date: {why}\n  next: {}\n",
            again(&["reindex"])
        ));
    }
    let run = &ledger.record().head.run;
    say(&format!(
        "\nrun     {run}\nrecord  {}\nindex   {}\n",
        store.run_dir(run).shown(),
        store.dir().join("stackrace.db").shown()
    ));
}

fn exit_code(reason: Reason, record: &Record, verdict: &Verdict, decide: bool) -> u8 {
    let failed = record.failures().next().is_some();
    // One configuration of which nothing is required is measured, and nothing is to be decided.
    let asks = record.head.configurations.len() > 1 || !verdict.required.is_empty();
    match reason {
        Reason::Interrupted => failure::INTERRUPTED,
        // Something failed, or a replay is not like its application.
        Reason::Lost | Reason::Failed => failure::TRIAL_FAILED,
        // Before the verdict: a script must not take a comparison that lost a configuration for a
        // clean one.
        _ if failed => failure::TRIAL_FAILED,
        // The same is true of a replay that is not like its application, whatever ended the run.
        _ if withheld(&Evidence::of(record)).is_some() => failure::TRIAL_FAILED,
        _ if verdict.enough() == Some(Enough::Fails) => failure::WORSE,
        _ if verdict.enough() == Some(Enough::Open) => failure::UNDECIDED,
        _ if decide && asks && verdict.state != State::Decided => failure::UNDECIDED,
        _ => 0,
    }
}

/// The step that makes the answer whole, most often a command; `None` if nothing is missing.
fn next_step(record: &Record, verdict: &Verdict, reason: Reason) -> Option<NextStep> {
    let resume = record.head.resume_command();
    match reason {
        Reason::Interrupted => return Some(NextStep::new("", resume)),
        // The same would be lost again, unless what is known to help is done first.
        Reason::Lost => {
            let advice = record.mendable().map(Observation::next);
            let advice = advice.filter(|advice| !advice.is_empty());
            let before = advice.map_or(String::new(), |advice| format!("{advice}, then"));
            return Some(NextStep::new(before, resume));
        }
        _ => {}
    }
    let limited = matches!(reason, Reason::Time | Reason::Rounds);
    let on = match limited {
        true => resume.clone() + " --until-decided",
        false => resume,
    };
    // What is decided needs no more rounds, even if what failed could take part again.
    let mendable = record.mendable().filter(|_| reason != Reason::Decided);
    if let Some(failed) = mendable {
        let advice = match failed.next() {
            "" => format!(
                "mend what made {} fail",
                named(record, failed.configuration)
            ),
            advice => advice.to_owned(),
        };
        return Some(NextStep::new(format!("{advice}, then"), on));
    }
    if let Some(longer) = longer::advice(record, verdict) {
        return Some(longer);
    }
    if withheld(&Evidence::of(record)).is_some() {
        let record = again(&["record", "--help"]);
        return Some(NextStep::new(RECORD_AGAIN, record));
    }
    // One configuration is measured, and nothing about it is to be decided.
    let asked = record.head.configurations.len() > 1 || !verdict.required.is_empty();
    // Further rounds would change nothing where the rest of the question is settled.
    let open = matches!(verdict.state, State::TooFew | State::Undecided) && !verdict.settled;
    if !asked || !open {
        return None;
    }
    match can_be_decided(record, verdict) {
        true => limited.then_some(NextStep::new("", on)),
        false => begin_anew(record),
    }
}

fn named(record: &Record, configuration: usize) -> &str {
    let known = record.head.configurations.get(configuration);
    known.map_or("a configuration", |one| one.name.as_str())
}

/// Returns true if further rounds could decide anything: two that are compared are both still measured.
fn can_be_decided(record: &Record, verdict: &Verdict) -> bool {
    let failed: Vec<&str> = record
        .failures()
        .map(|trial| named(record, trial.configuration))
        .collect();
    let mut compared = verdict.overall.iter().chain(&verdict.ranking).peekable();
    // Nothing failed, and nothing is compared yet.
    if failed.is_empty() || compared.peek().is_none() {
        return failed.is_empty();
    }
    compared.any(|c| !failed.contains(&c.a.as_str()) && !failed.contains(&c.b.as_str()))
}

/// Advice where a failure leaves nothing to compare: only another run can answer.
fn begin_anew(record: &Record) -> Option<NextStep> {
    let failed = record.failures().next()?;
    let name = named(record, failed.configuration);
    let advice = match failed.next() {
        "" => format!("mend what made {name} fail, or leave {name} out"),
        advice => format!("{name}: {advice}"),
    };
    let again = shell(&record.head.command);
    Some(NextStep::new(format!("{advice}, then begin anew"), again))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{Ended, Event};
    use stackrace_judge::verdict::judge;
    use stackrace_results::record::sample;

    /// The next step after the made-up run, in whose first round a configuration failed like this, and left the run.
    fn next(failed: usize, error: &str, advice: &str, reason: Reason) -> Option<String> {
        let mut record = sample::record(&sample::small());
        let of = |event: &Event| match event {
            Event::Trial(trial) => Some((trial.configuration, trial.round, trial.workload)),
            _ => None,
        };
        record
            .lines
            .retain(|line| of(&line.event).is_none_or(|of| of.0 != failed || of == (failed, 1, 0)));
        for line in &mut record.lines {
            match &mut line.event {
                Event::Trial(trial) if trial.configuration == failed => {
                    trial.ended = Ended::Failed {
                        error: error.to_owned(),
                    };
                    advice.clone_into(&mut trial.advice);
                }
                Event::RunEnded { reason: ended, .. } => reason.word().clone_into(ended),
                _ => {}
            }
        }
        let verdict = judge(&Evidence::of(&record));
        next_step(&record, &verdict, reason)
            .map(|step| format!("{}: {}", step.before, step.command))
    }

    #[test]
    fn the_next_step_after_a_failure_is_one_that_can_decide() {
        for failed in [0, 1] {
            let said = next(
                failed,
                "cannot set up the stack: script: no",
                "",
                Reason::Rounds,
            );
            let said = said.unwrap();
            assert!(!said.contains("resume"), "{said}");
            assert!(said.contains(" out, then begin anew: stackrace "), "{said}");
            let advice = "install it: apt install xfsprogs";
            let said = next(failed, "mkfs.xfs is not installed", advice, Reason::Failed).unwrap();
            assert!(
                said.contains(advice) && said.contains("begin anew"),
                "{said}"
            );
            // What is mended by hand is tried again.
            let full = "write failed: No space left on device";
            let said = next(failed, full, "", Reason::Rounds).unwrap();
            assert!(said.starts_with("mend what "), "{said}");
            assert!(
                said.ends_with(" --until-decided") && said.contains("then: stackrace resume "),
                "{said}"
            );
        }
    }

    #[test]
    fn an_interrupted_run_has_one_next_step() {
        let record = sample::record(&sample::small());
        let verdict = judge(&Evidence::of(&record));
        for reason in [Reason::Interrupted, Reason::Lost] {
            let said = next_step(&record, &verdict, reason).unwrap();
            assert_eq!(said, NextStep::new("", record.head.resume_command()));
        }
    }
}
