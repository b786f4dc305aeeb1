//! What was really measured: configurations × checks in words, the evidence behind each to open.

use maud::{Markup, html};

use super::tables::{GridCell, grid};
use crate::report::{audited, content, durability, figure};
use stackrace_base::event::RunStarted;
use stackrace_judge::audit::{Audit, AuditCell, AuditCheck, Grade, checks};
use stackrace_judge::verdict::Verdict;
use stackrace_results::record::Record;

/// More cells than this show the evidence of what is more than "ok" only: a page of hundreds of
/// configurations would be mostly that.
const EVIDENCE_CELLS_MAX: usize = 60;

/// A grid per workload.
pub(super) fn audit(record: &Record, verdict: &Verdict) -> Markup {
    let (audit, head) = (audited::audit(record), &record.head);
    if audit.cells.is_empty() {
        return html! {};
    }
    // Of a large study only remarks have their evidence shown, or the page would be mostly that.
    let whole = audit.cells.len() <= EVIDENCE_CELLS_MAX;
    html! {
        p {
            "The bottleneck of each configuration, and the worst result of each check. Flagged trials still "
            "count. " (figure::MISSING) " means unknown or not applicable."
        }
        @for unlike in &audit.unlike { p { strong { "Not like with like: " } (unlike.sentence) "." } }
        @for (at, workload) in head.workloads.iter().enumerate() {
            @let cells: Vec<&AuditCell> = audit.cells.iter().filter(|cell| cell.workload == at).collect();
            @if !cells.is_empty() {
                h3 { (workload.name) }
                @for effect in verdict.order_effects.iter().filter(|effect| effect.workload == at) {
                    p { strong { (content::ORDER_EFFECTS) ": " } (effect.sentence) "." }
                }
                (table(&workload.name, &cells, head))
                @for cell in &cells { (evidence(cell, head, whole)) }
            }
        }
        (limits(&audit))
        @let promised = durability::promised(record);
        @if !promised.is_empty() {
            h3 { "What the stacks promise" }
            p { "As their settings say. A run that cuts the power finds out: " code { "docs/workloads/promises.md" } "." }
            ul { @for line in &promised { li { (line) } } }
        }
    }
}

/// Checks that say something of any of these cells; limits are in a column of their own.
fn said(cells: &[&AuditCell]) -> Vec<&'static AuditCheck> {
    // A column for each check that judged anything here; empty ones would hide the others.
    let said = |name: &str| cells.iter().any(|cell| cell.judgement(name).is_some());
    let all = checks().into_iter();
    all.filter(|check| !check.limits && said(check.name))
        .collect()
}

fn table(workload: &str, cells: &[&AuditCell], head: &RunStarted) -> Markup {
    let checks = said(cells);
    let text = |content: Markup| GridCell::of("text", content);
    let mut names = vec![
        text(html! { "configuration" }),
        text(html! { "limited by" }),
    ];
    names.extend(checks.iter().map(|check| GridCell {
        title: Some(check.question.to_owned()),
        ..text(html! { (check.name) })
    }));
    let rows = cells.iter().map(|cell| {
        let limited = html! {
            (audited::pace_word(cell))
            @if !cell.limited_how.is_empty() { br; small { (cell.limited_how) } }
        };
        let mut row = vec![text(html! { (configuration(cell, head)) }), text(limited)];
        row.extend(checks.iter().map(|check| grade(cell, check)));
        row
    });
    grid(
        &format!("What was measured: {workload}"),
        "audit",
        std::iter::once(names).chain(rows).collect(),
    )
}

fn grade(cell: &AuditCell, check: &AuditCheck) -> GridCell<'static> {
    let Some(judgement) = cell.judgement(check.name) else {
        return GridCell::of("unjudged", html! { (figure::MISSING) });
    };
    let class = match judgement.grade {
        Grade::NotJudged => "unjudged",
        Grade::Ok => "ok",
        Grade::Note => "note",
        Grade::NotAsAsked | Grade::Invalid => "grave",
    };
    GridCell {
        title: Some(judgement.words()),
        ..GridCell::of(class, html! { (judgement.grade.word()) })
    }
}

fn configuration<'a>(cell: &AuditCell, head: &'a RunStarted) -> &'a str {
    let configuration = head.configurations.get(cell.configuration);
    configuration.map_or(figure::MISSING, |configuration| configuration.name.as_str())
}

/// Every sentence with its figures.
fn evidence(cell: &AuditCell, head: &RunStarted, whole: bool) -> Markup {
    let shown = cell
        .judgements
        .iter()
        .filter(|judgement| whole || judgement.grade != Grade::Ok);
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() {
        return html! {};
    }
    html! {
        details {
            summary {
                "Evidence: " (configuration(cell, head)) ", " (figure::counted(cell.trials, "trial"))
            }
            ul {
                @for judgement in shown {
                    li {
                        strong { (judgement.check) " (" (judgement.grade.word()) "): " }
                        (judgement.words()) ". "
                        span class="faint" {
                            "Round " (judgement.round)
                            @if !judgement.evidence.is_empty() { ": " }
                            @for (at, figure) in judgement.evidence.iter().enumerate() {
                                @if at > 0 { "; " }
                                (figure.words())
                            }
                        }
                    }
                }
            }
        }
    }
}

fn limits(audit: &Audit) -> Markup {
    if audit.limits.is_empty() {
        return html! {};
    }
    html! {
        h3 { "Physical limits" }
        p { "The charts over time show those within reach." }
        ul {
            @for limit in &audit.limits {
                li { (limit.device) ": " (figure::value("B/s", limit.bytes_per_s)) ", " (limit.words) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::Fact;
    use stackrace_judge::verdict::{Evidence, judge};
    use stackrace_results::record::sample;

    fn judged(record: &Record) -> Verdict {
        judge(&Evidence::of(record))
    }

    #[test]
    fn the_grid_says_in_words_what_each_check_found() {
        let mut record = sample::record(&sample::small());
        for line in &mut record.lines {
            if let stackrace_base::event::Event::Trial(trial) = &mut line.event {
                trial.counted.devices[0].busy_ns = trial.elapsed_ns;
                if trial.configuration == 1 {
                    trial.counted.cache_hit_bytes = Some(u64::MAX);
                    trial.counted.fetched_bytes = 0;
                }
            }
        }
        record.head.environment.push(Fact::of_older_log(
            "limit sda",
            "600000000 B/s, SATA 6.0 Gbit/s",
        ));
        let page = audit(&record, &judged(&record)).into_string();
        for words in [
            "<td class=\"ok\"",
            "100 % of the bytes read came from the page cache",
            ">not as asked</td>",
            "device rate<br>",
            "(threshold 10 %)",
            "SATA 6.0 Gbit/s",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert_eq!(page.matches("<table").count(), 3, "one a workload");
    }

    #[test]
    fn a_workload_in_slices_says_what_the_order_of_the_turns_did() {
        let record = sample::in_slices();
        let verdict = judged(&record);
        let page = audit(&record, &verdict).into_string();
        let words = "<strong>Order of turns: </strong>measured in slices of 50.0 ms: ";
        assert_eq!(page.matches(words).count(), 1, "{page}");
        let (_, after) = page.split_once(words).unwrap();
        let (before, _) = page.split_once(words).unwrap();
        assert!(before.contains("browse") && after.contains("by 0 % (at most 0 %)"));
    }

    #[test]
    fn imported_figures_are_not_judged() {
        let mut record = sample::record(&sample::small());
        for line in &mut record.lines {
            if let stackrace_base::event::Event::Trial(trial) = &mut line.event {
                trial.settled.caches = "unknown".to_owned();
            }
        }
        assert_eq!(audit(&record, &judged(&record)).into_string(), "");
    }
}
