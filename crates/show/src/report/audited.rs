//! What set the pace and what spoils the figures, before it has a form.

use super::content::{TextRow, TextTable};
use super::figure;
use stackrace_base::event::RunStarted;
use stackrace_judge::audit::{Audit, AuditCell, Grade, Judgement, Limit, LimitedBy, SetUps};
use stackrace_results::record::Record;

/// More configurations than this with the same limits share a line.
const CONFIGURATIONS_APART_MAX: usize = 6;

/// A limit further away than this would press what was measured to the bottom of a chart.
const NEAR: f64 = 3.0;

/// The audit of a record.
pub(super) fn audit(record: &Record) -> Audit {
    let trials: Vec<_> = record.trials().collect();
    Audit::of(&record.head, &trials, &SetUps::of(&record.lines))
}

/// One line a configuration, naming what set its pace: `xfs: device rate (loop0 97 % busy, 412 MB/s)`.
pub(super) fn limited(audit: &Audit, head: &RunStarted) -> Vec<String> {
    // Without the figures behind a limit, configurations with the same limits share one line.
    let lines = |briefly: bool| {
        let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
        for (at, configuration) in head.configurations.iter().enumerate() {
            let cells = audit.cells.iter().filter(|cell| cell.configuration == at);
            let words = pace(&cells.collect::<Vec<_>>(), head, briefly);
            if words.is_empty() {
                continue;
            }
            match lines
                .iter_mut()
                .find(|(known, _)| briefly && *known == words)
            {
                Some((_, names)) => names.push(&configuration.name),
                None => lines.push((words, vec![&configuration.name])),
            }
        }
        lines
    };
    let mut found = lines(false);
    if found.len() > CONFIGURATIONS_APART_MAX {
        found = lines(true);
    }
    let all = head.configurations.len();
    // A single configuration is named, although it is all there are.
    let line = |(words, names): (String, Vec<&str>)| match names.len() {
        some if some > 1 && some == all => format!("all {all} configurations: {words}"),
        _ => format!("{}: {words}", names.join("; ")),
    };
    found.into_iter().map(line).collect()
}

/// `device rate in import and copy; one CPU in browse (its thread 99 % busy)`.
fn pace(cells: &[&AuditCell], head: &RunStarted, briefly: bool) -> String {
    let mut limits: Vec<(LimitedBy, Vec<&AuditCell>)> = Vec::new();
    for cell in cells {
        let Some(by) = cell.limited_by else { continue };
        match limits.iter_mut().find(|(known, _)| *known == by) {
            Some((_, same)) => same.push(cell),
            None => limits.push((by, vec![cell])),
        }
    }
    // A limit that holds for all workloads needs no list of them.
    let one = limits.len() == 1;
    let part = |(by, same): &(LimitedBy, Vec<&AuditCell>)| {
        let mut words = by.words().to_owned();
        if !one || same.len() < cells.len() {
            let names = same
                .iter()
                .filter_map(|cell| head.workloads.get(cell.workload));
            let names: Vec<&str> = names.map(|workload| workload.name.as_str()).collect();
            words.push_str(&format!(" in {}", names.join(", ")));
        }
        // The figures of one workload stand for all that have the same limit.
        if let ([first, others @ ..], false) = (same.as_slice(), briefly) {
            let workload = head
                .workloads
                .get(first.workload)
                .filter(|_| !others.is_empty());
            let of = workload.map_or(String::new(), |workload| format!("{}: ", workload.name));
            words.push_str(&format!(" ({of}{})", first.limited_how));
        }
        words
    };
    limits.iter().map(part).collect::<Vec<_>>().join("; ")
}

/// The limit that set the pace of a cell; `–` where it cannot be told.
pub(super) fn pace_word(cell: &AuditCell) -> &'static str {
    cell.limited_by.map_or(figure::MISSING, LimitedBy::words)
}

/// Every configuration on every workload: what set the pace, and what more than "ok" is to be said.
pub(super) fn table(audit: &Audit, head: &RunStarted) -> Option<TextTable> {
    let row = |cell: &AuditCell| {
        let remarks: Vec<String> = remarks(cell)
            .map(|judgement| format!("{}: {}", judgement.check, judgement.words()))
            .collect();
        let how = match cell.limited_how.as_str() {
            "" => pace_word(cell).to_owned(),
            how => format!("{} ({how})", pace_word(cell)),
        };
        Some(TextRow::of(vec![
            head.configurations.get(cell.configuration)?.name.clone(),
            head.workloads.get(cell.workload)?.name.clone(),
            how,
            match remarks.is_empty() {
                true => format!("ok{}", unjudged(cell)),
                false => format!("{}{}", remarks.join("; "), unjudged(cell)),
            },
        ]))
    };
    let rows: Vec<TextRow> = audit.cells.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| TextTable {
        title: "What was measured".to_owned(),
        note: "The bottleneck in most trials, and remarks on the figures.".to_owned(),
        head: ["configuration", "workload", "limited by", "remarks"]
            .map(str::to_owned)
            .to_vec(),
        text: vec![1, 2, 3],
        rows,
    })
}

/// Physical limits of what a run measured that are worth a line in a chart of these values: not more
/// than [`NEAR`] times the largest, and only for rates of bytes.
pub(super) fn limits_near(
    record: &Record,
    unit: &str,
    values: impl Iterator<Item = f64>,
) -> Vec<(f64, String)> {
    // `f64::max` passes over what is not a number.
    let most = values.fold(0.0, f64::max);
    if unit != "B/s" {
        return Vec::new();
    }
    let measured = |limit: &Limit| {
        let devices = record.trials().flat_map(|trial| &trial.counted.devices);
        limit.line
            || devices
                .into_iter()
                .any(|device| limit.is_of(&device.device))
    };
    let limits = stackrace_judge::audit::limits(&record.head.environment).into_iter();
    limits
        // A limit far above would press the lines to the floor of the chart.
        .filter(|limit| limit.bytes_per_s <= NEAR * most && measured(limit))
        .map(|limit| {
            let rate = figure::value("B/s", limit.bytes_per_s);
            (
                limit.bytes_per_s,
                format!("{}: {}, {rate}", limit.device, limit.words),
            )
        })
        .collect()
}

/// `; not judged: page cache`; empty if every check that applies could judge.
fn unjudged(cell: &AuditCell) -> String {
    let judgements = cell.judgements.iter();
    let open = judgements.filter(|judgement| judgement.grade == Grade::NotJudged);
    let names: Vec<&str> = open.map(|judgement| judgement.check).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("; not judged: {}", names.join(", ")),
    }
}

/// Judgements that say more than "ok"; a limit is none.
pub(super) fn remarks(cell: &AuditCell) -> impl Iterator<Item = &Judgement> {
    // A check that only finds the bottleneck has its own column and is no remark.
    let limits = |check: &str| {
        let mut all = stackrace_judge::audit::checks().into_iter();
        all.any(|known| known.limits && known.name == check)
    };
    cell.judgements
        .iter()
        .filter(move |judgement| judgement.grade > Grade::Ok && !limits(judgement.check))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::Fact;
    use stackrace_results::record::sample;

    #[test]
    fn one_line_a_configuration_says_what_limited_it() {
        let record = sample::record(&sample::small());
        let mut trials: Vec<_> = record.trials().cloned().collect();
        for trial in &mut trials {
            if trial.configuration == 0 || trial.workload == 1 {
                trial.counted.devices[0].busy_ns = trial.elapsed_ns;
            } else {
                trial.counted.cpu_system_ns = trial.elapsed_ns;
            }
        }
        let trials: Vec<_> = trials.iter().collect();
        let audit = Audit::of(&record.head, &trials, &SetUps::default());
        let lines = limited(&audit, &record.head);
        assert_eq!(lines.len(), 2);
        let ext4 = "ext4: device rate (import: loop3 100 % busy, ";
        assert!(lines[0].starts_with(ext4), "{}", lines[0]);
        assert!(
            lines[1].starts_with("xfs: one CPU in import, copy (import: its thread 100 % busy); device rate in browse (loop3 100 % busy, "),
            "{}",
            lines[1]
        );
    }

    #[test]
    fn a_limit_is_drawn_where_it_is_near_and_measured() {
        let mut record = sample::record(&sample::small());
        let near = |record: &Record, unit: &str, most: f64| {
            limits_near(record, unit, [1.0, most].into_iter()).len()
        };
        let limit = |device: &str| Fact::of_older_log(format!("limit {device}"), "300 B/s, USB");
        record.head.environment.push(limit("sdz"));
        assert_eq!(near(&record, "B/s", 300.0), 0, "no trial used it");
        record.head.environment.push(limit("vda"));
        assert_eq!(near(&record, "B/s", 100.0), 1);
        assert_eq!(near(&record, "B/s", 99.0), 0, "too far");
        assert_eq!(near(&record, "op/s", 100.0), 0);
        let limit = Fact::of_older_log("limit vda", "600000000 B/s, SATA 6.0 Gbit/s");
        record.head.environment.push(limit);
        let verdict =
            stackrace_judge::verdict::judge(&stackrace_judge::verdict::Evidence::of(&record));
        let page = crate::report::by_name("html").unwrap();
        let page = page.render(&record, &verdict, &crate::report::ReportOptions::default());
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains("<g class=\"limit\"><title>vda: SATA 6.0 Gbit/s, 600 MB/s"));
    }

    #[test]
    fn many_configurations_share_a_line() {
        let record = sample::record(&sample::sweep());
        let lines = limited(&audit(&record), &record.head);
        assert_eq!(lines, ["all 24 configurations: no single bottleneck"]);
    }
}
