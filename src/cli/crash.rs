//! `stackrace crash`: what was lost when the power went, and how.

use super::args::CrashVerb;
use super::images;
use super::setting::Setting;
use super::terminal::print;
use crate::commands::crash_show::{LossAgain, cut_again, is_simulated, recorded};
use stackrace_base::event::{Cut, LossLine};
use stackrace_base::failure::Failure;
use stackrace_base::unit;
use stackrace_results::record::{Record, RecordedLoss};

pub(super) fn exec(setting: &Setting, verb: &CrashVerb) -> Result<u8, Failure> {
    let CrashVerb::Show { run, loss } = verb;
    let (record, study) = recorded(&setting.session, run)?;
    let all = record.losses();
    let cuts = record.cuts().count();
    if cuts == 0 {
        return Err(Failure::refused("the power was not cut in this run").next(
            "name a run of a study with [crash], like: stackrace run durability-ext4 --lab",
        ));
    }
    let Some(number) = loss else {
        print(&list(&record, &all, cuts));
        return Ok(0);
    };
    let chosen = number.checked_sub(1).and_then(|place| all.get(place));
    let Some(chosen) = chosen else {
        return Err(
            Failure::usage(format!("there is no loss {number}")).next(match all.len() {
                0 => "nothing was lost in this run".to_owned(),
                count => format!("write a number from 1 to {count}"),
            }),
        );
    };
    // Before the guests are made, which takes a minute.
    print(&lines(&described(&record, chosen)));
    if !is_simulated(&record) {
        print("the power of a real machine was cut: this cannot be made again\n");
        return Ok(0);
    }
    let again = cut_again(
        &setting.session,
        &record,
        &study,
        chosen.cut,
        images::LabSystems::now().images(),
    )?;
    print(&lines(&made_again(chosen, &again)));
    Ok(0)
}

fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The losses of a run, each below its cut, with the command that makes it again.
fn list(record: &Record, all: &[RecordedLoss<'_>], cuts: usize) -> String {
    let mut text = format!("{} losses after {cuts} power cuts\n", all.len());
    let mut number = 1;
    for of_cut in all.chunk_by(|one, next| std::ptr::eq(one.cut, next.cut)) {
        text.push_str(&format!("{}\n", at(record, of_cut[0].cut)));
        for loss in of_cut {
            // The command first: what was found may be long.
            let command = record.loss_command(number);
            text.push_str(&format!("  {command}  # {}\n", loss.what()));
            number += 1;
        }
        text.push_str(&beyond(of_cut[0].cut));
    }
    text
}

/// Number of losses of a cut that are counted and not kept one by one.
fn beyond(cut: &Cut) -> String {
    let found = cut.found.as_ref();
    let more = found.map_or(0, |found| {
        found.counts.all().saturating_sub(found.losses.len() as u64)
    });
    match more {
        0 => String::new(),
        more => format!("  and {more} more of this cut, counted and not kept\n"),
    }
}

/// Which cut.
fn at(record: &Record, cut: &Cut) -> String {
    let configuration = record.head.configurations.get(cut.configuration);
    let workload = record.head.workloads.get(cut.workload);
    format!(
        "{}, {}, round {}, cut {} ({})",
        configuration.map_or("?", |head| &head.name),
        workload.map_or("?", |head| &head.name),
        cut.round,
        cut.number,
        cut.stratum
    )
}

fn described(record: &Record, loss: &RecordedLoss<'_>) -> Vec<String> {
    let cut = loss.cut;
    let mut lines = vec![at(record, cut)];
    match loss.line {
        Some(line) => lines.extend(promise(line, cut)),
        None => lines.push(format!(
            "could not be mounted: {}",
            cut.recovery.refused.as_deref().unwrap_or("?")
        )),
    }
    if !cut.recovery.repair.is_empty() {
        lines.push(format!("repaired with: {}", cut.recovery.repair.join("; ")));
    }
    lines
}

fn promise(line: &LossLine, cut: &Cut) -> Vec<String> {
    let ledger = &line.ledger;
    let acknowledged = match ledger.acknowledged_ns {
        Some(at) => format!(
            "acknowledged {} before the cut",
            unit::time_ns(cut.at_ns.saturating_sub(at) as f64)
        ),
        None => "not acknowledged".to_owned(),
    };
    vec![
        format!(
            "operation {}: {:?} of {} at {} of {}, generation {}",
            ledger.number,
            ledger.kind,
            unit::bytes(ledger.bytes),
            ledger.offset,
            ledger.object,
            ledger.generation
        ),
        format!("promised: {:?}, {acknowledged}", ledger.promise),
        format!("found: {}", line.found),
    ]
}

fn made_again(loss: &RecordedLoss<'_>, again: &LossAgain) -> Vec<String> {
    let mut lines = again.drives.clone();
    // How long it took and what a device was called depend on the cuts before it in its guest.
    let before = (&loss.cut.found, loss.cut.recovery.mounted);
    lines.push(
        match before == (&again.cut.found, again.cut.recovery.mounted) {
            true => "made again: the same was found".to_owned(),
            false => {
                "made again: something else was found, so this program or its image is not the one \
                  that made the run (made-on.json beside its log names both)"
                    .to_owned()
            }
        },
    );
    lines
}
