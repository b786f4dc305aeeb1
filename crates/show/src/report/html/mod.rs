//! The whole answer as one page that opens anywhere: no script, no font, nothing fetched.
//!
//! In the order of the questions people ask: the verdict, the figures, why, how it was measured,
//! everything else. It prints, follows the reader's light or dark mode and fits a phone.

mod again;
mod audit;
mod durability;
mod effects;
mod environment;
mod heat;
mod history;
mod latency;
mod live;
mod money;
mod plots;
mod sheet;
mod sweep;
mod tables;
mod trial;
mod view;

pub use history::history;
#[cfg(any(test, feature = "testing"))]
pub use latency::latency_tail;
pub use live::{doing, race};
pub use plots::small;
pub(super) use sheet::sheet;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::{Gallery, Plot};
use super::form::{ReportForm, ReportOptions};
use super::{clients, content};
use stackrace_base::event::{Decide, Precision, Until};
use stackrace_base::unit;
use stackrace_base::unit::is_no_text;
use stackrace_judge::verdict::{State, Verdict};
use stackrace_results::record::Record;

/// The form for people.
pub(super) const HTML: ReportForm = ReportForm {
    name: "html",
    summary: "one page with tables and charts, opens offline",
    extension: "html",
    render,
};

fn render(record: &Record, verdict: &Verdict, options: &ReportOptions) -> Vec<u8> {
    written(page(record, verdict, options)).into_bytes()
}

/// The text of a page or of a piece of one. What commands a terminal or reorders a line, in whatever
/// name it came, is shown as a sign: this is the only way from markup to bytes.
pub fn written(markup: Markup) -> String {
    match markup.0.contains(is_no_text) {
        true => markup.0.replace(is_no_text, "\u{fffd}"),
        false => markup.0,
    }
}

/// A part of the page; an empty one is left out.
struct Section {
    id: &'static str,
    title: &'static str,
    content: Markup,
}

/// Parts that a phone shows when they are opened: why, and how it was measured.
const FOLDED: [&str; 11] = [
    "effects",
    "audit",
    "clients",
    "latency",
    "time",
    "cost",
    "method",
    "environment",
    "commands",
    "study",
    "trials",
];

/// Style sheet of all pages.
pub const STYLE: &str = include_str!("style.css");

/// A page that needs nothing beside it: `more_style` is that of this page alone, `made_by` the version of this program.
pub fn alone(title: &str, made_by: &str, more_style: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "stackrace " (made_by) };
                title { (title) }
                // Our own text; escaped, its `>` selectors would be broken.
                style { (PreEscaped(STYLE)) (PreEscaped(more_style)) }
            }
            body { (content) }
        }
    }
}

fn page(record: &Record, verdict: &Verdict, options: &ReportOptions) -> Markup {
    let content = html! {
        main { (body(record, verdict, options)) }
        footer {
            p class="paper" {
                "The printed version leaves out the environment, commands, costs, time series, trials and what is folded."
            }
            p {
                "Run " code { (record.head.run) } ", stackrace " (record.head.stackrace)
                ", began " (record.started_at()) "."
            }
        }
    };
    alone(&record.head.title, &record.head.stackrace, "", &content)
}

/// Everything the page says, for a page that has other things around it.
pub fn body(record: &Record, verdict: &Verdict, options: &ReportOptions) -> Markup {
    body_with(record, verdict, options, &Gallery::default())
}

/// The plots of that page, in its order.
pub(super) fn plots(record: &Record, verdict: &Verdict) -> Vec<Plot> {
    let gallery = Gallery::default();
    body_with(record, verdict, &ReportOptions::default(), &gallery);
    gallery.into_plots()
}

fn body_with(
    record: &Record,
    verdict: &Verdict,
    options: &ReportOptions,
    gallery: &Gallery,
) -> Markup {
    // What is above the sections first: plots are kept in the order of the page.
    let answer = answer(record, verdict, options, gallery);
    let sections = sections(record, verdict, options, gallery);
    html! {
        (answer)
        nav aria-label="Contents" {
            ul {
                @for section in &sections {
                    li { a href={ "#" (section.id) } { (section.title) } }
                }
            }
        }
        @for section in &sections {
            section id=(section.id) {
                @if FOLDED.contains(&section.id) {
                    // Wide pages and paper show it all the same: see the style sheet.
                    details class="part" { summary { h2 { (section.title) } } (section.content) }
                } @else {
                    h2 { (section.title) }
                    (section.content)
                }
            }
        }
    }
}

fn sections(
    record: &Record,
    verdict: &Verdict,
    options: &ReportOptions,
    gallery: &Gallery,
) -> Vec<Section> {
    [
        ("figures", "Figures", tables::figures(record, verdict)),
        (
            "durability",
            "When the power goes",
            durability::durability(record, verdict, gallery),
        ),
        (
            "effects",
            "Effects of the factors",
            effects::effects(verdict),
        ),
        (
            "beside",
            "Beside published figures",
            tables::beside(verdict, options),
        ),
        ("audit", "What was measured", audit::audit(record, verdict)),
        ("clients", clients::CLIENTS, tables::clients(record)),
        (
            "rounds",
            "Round by round",
            plots::rounds(record, verdict, gallery),
        ),
        (
            "sweep",
            "By size and number",
            html! { (heat::heat(record, verdict)) (sweep::sweep(record, verdict, gallery)) },
        ),
        (
            "money",
            "Cost and performance",
            money::scatter(record, verdict, gallery),
        ),
        (
            "latency",
            "Latency",
            latency::latency(record, verdict, gallery),
        ),
        ("time", "Over time", plots::time(record, verdict, gallery)),
        ("cost", "What it cost", tables::resources(record)),
        ("method", "Method in plain words", method(record, verdict)),
        (
            "environment",
            "Environment",
            environment::environment(record),
        ),
        ("commands", "Commands", environment::commands(record)),
        ("study", "Study", again::study(record)),
        ("trials", "Every trial", trial::trials(record)),
    ]
    .into_iter()
    .map(|(id, title, content)| Section { id, title, content })
    .filter(|section| !section.content.0.is_empty())
    .collect()
}

/// A sentence of ours, in which what can be typed stands between backticks.
pub fn prose(sentence: &str) -> Markup {
    html! {
        @for (at, part) in sentence.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn answer(
    record: &Record,
    verdict: &Verdict,
    options: &ReportOptions,
    gallery: &Gallery,
) -> Markup {
    let class = match verdict.state {
        State::Decided => "decided",
        State::Undecided if verdict.hints() => "hint",
        State::Undecided | State::TooFew | State::Unpaired => "open",
    };
    let notes = content::notes(record, verdict);
    html! {
        // The sentence first, then each workload, then where the storage stands.
        header class={ "answer " (class) } {
            p class="badge" { (verdict.grade()) }
            h1 { (record.head.title) }
            p class="verdict" { (prose(&verdict.sentence)) }
            @for detail in verdict.details.iter().chain(&options.placed.sentences()) { p { (prose(detail)) } }
            ul class="facts" {
                @for fact in content::facts(record, verdict) { li { (fact) } }
            }
            @if !options.next.is_empty() {
                p class="next" {
                    "Next: "
                    @if !options.before_next.is_empty() { (options.before_next) ": " }
                    code { (options.next) }
                }
            }
        }
        @if !notes.is_empty() {
            section class="notes" aria-label="Notes" {
                h2 { "Before you believe the figures" }
                ul { @for note in &notes { li { (prose(note)) } } }
            }
        }
        (plots::hero(record, verdict, gallery))
    }
}

fn method_of_imports(verdict: &Verdict) -> Markup {
    html! {
        p {
            "Another program measured this, and stackrace read what it printed. In which order it measured, and "
            "what else went on, is not known: a difference may come from either. "
            @if verdict.rounds < 2 { "One result of each configuration gives no interval." } @else {
                "Intervals come from several results of one configuration, taken as if nothing else had changed "
                "between them."
            }
        }
    }
}

fn which_ones(configurations: usize) -> String {
    match configurations {
        1 => "The configuration was".to_owned(),
        several => format!("Each of the {several} configurations was"),
    }
}

fn method(record: &Record, verdict: &Verdict) -> Markup {
    let head = &record.head;
    if record.imported() {
        return method_of_imports(verdict);
    }
    let decide = &head.decide;
    let margin = content::share(verdict.margin);
    let rounds = record.complete_rounds().len();
    let anew = rounds > 0
        // Once per round or more: set up anew each time. Once in all: it stood throughout.
        && (0..head.configurations.len()).any(|at| record.layer_facts(at).len() >= rounds.max(2));
    html! {
        p {
            (which_ones(head.configurations.len())) " measured once per round, "
            @if anew { "on storage set up anew each time, " }
            "in a new random order every round (seed " (head.seed) "). "
            "Slow drift (temperature, neighbours, a filling disk) therefore affects all configurations alike, "
            "and only values of the same round are compared. "
            "Trials that failed or were interrupted are shown but not judged."
        }
        @if let Some(words) = content::preconditioning(record) { p { (words) } }
        p {
            "A comparison is a ratio: the geometric mean over the rounds of one value over the other, with "
            "an interval. Above 1 always means better, also for metrics where lower is better. "
            "All comparisons on this page hold together with at least "
            (content::share(verdict.confidence)) " probability: the intervals are wide enough to cover "
            "their number and every check of the results. "
            @if verdict.workloads.iter().any(|comparison| !comparison.within.is_empty()) {
                "Comparisons within levels of other factors are the exception: each holds on its own, without "
                "correction for their number. "
            }
            @if verdict.checked_at.is_some() { "The results were checked after every round, from the third on. " }
            @if verdict.overall.iter().chain(&verdict.workloads).any(|one| one.order_effect.is_some()) {
                "A configuration that comes first in a round may be slower or faster for that alone. Each one comes "
                "first equally often, so this effect can be measured. Some comparisons on this page leave it out."
            }
        }
        p {
            "The study says that a difference below the margin of " (margin) " does not matter. "
            "“No difference larger than x” is a result: the whole interval lies within ±x. "
            "“Probably” is a hint and no claim: the plain 80 % interval of these rounds excludes a ratio of 1. "
            "“Undecided” is not a result: the true difference may or may not matter. More rounds can decide."
        }
        p {
            "The interval beside a configuration's own value describes that value alone. Whether two such "
            "intervals overlap says nothing about their difference: read the comparisons."
        }
        p {
            "The run was planned to stop "
            (match decide.until {
                Until::Overall => "when the overall figure is decided",
                Until::Each => "when the overall figure and every workload are decided",
                Until::Never => "when all rounds are done",
            })
            (match (decide.until, decide.precision) {
                (Until::Never, _) | (_, Precision::Direction) => "",
                (_, _) => " and its size is known",
            })
            ", after at most " (decide.rounds_max) " rounds" (or_limit(decide)) "."
            @match record.ended() {
                None => {}
                // Its detail is the answer, which stands at the head of the page.
                Some(ended) if ended.reason == "decided" => " It ended when that was decided.",
                Some(ended) => { " It ended (" (ended.reason) "): " (ended.detail) "." }
            }
        }
    }
}

/// The limit of a run in time, behind that of its rounds; nothing where it has none.
fn or_limit(decide: &Decide) -> String {
    let limit = decide.time_limit_ns();
    limit.map_or_else(String::new, |ns| {
        format!(" or {}", unit::long_time(ns as f64 / 1e9))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{Ended, Event, ImportedText};
    use stackrace_judge::verdict::{Evidence, judge};
    use stackrace_results::record::sample;

    fn page_of(record: &Record) -> String {
        let verdict = judge(&Evidence::of(record));
        written(page(record, &verdict, &ReportOptions::default()))
    }

    #[test]
    fn a_question_that_failed_does_not_ask_for_more_rounds() {
        let mut record = sample::without_rounds();
        assert!(page_of(&record).contains(">too few rounds</p>"));
        let last = record.lines.last_mut().unwrap();
        let Event::Trial(trial) = &mut last.event else {
            panic!("{last:?}");
        };
        trial.ended = Ended::Failed {
            error: "a disk was pulled".to_owned(),
        };
        trial.elapsed_ns = 0;
        let page = page_of(&record);
        assert!(page.contains(">failed</p>"), "{page}");
        assert!(!page.contains(">0 ns<"), "nothing was timed: {page}");
    }

    #[test]
    fn the_page_of_an_import_claims_no_order_of_rounds() {
        let mut record = sample::record(&sample::small());
        assert!(page_of(&record).contains("in a new random order every round"));
        let mut imported = record.lines[0].clone();
        imported.event = Event::Imported(Box::new(ImportedText {
            file: "a.json".to_owned(),
            tool: "fio".to_owned(),
            version: None,
            hash: String::new(),
            text: String::new(),
        }));
        record.lines.push(imported);
        let page = page_of(&record);
        assert!(!page.contains("random order"), "{page}");
        assert!(page.contains("Another program measured this"), "{page}");
    }
}
