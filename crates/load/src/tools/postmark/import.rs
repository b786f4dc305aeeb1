//! The importer of PostMark 1.5x: its verbose and its terse report become results.

use super::parse::{has_report, parse};
use super::report::{PostmarkReport, metrics, values};
use stackrace_base::event::Fact;
use stackrace_base::printed::text::Figures;
use stackrace_base::printed::{Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "postmark",
    summary: "what PostMark 1.5x prints: the verbose or the terse report, with its banner",
    recognises: |text| text.contains("PostMark v1.5") || has_report(text),
    read: |text| Ok(parse(text)?.iter().map(imported).collect()),
};

fn imported(report: &PostmarkReport) -> Imported {
    let setting = |name: &str| Fact::value_of(&report.settings, name);
    let shown = [("transactions", "transactions"), ("number", "files")];
    let shown = shown.map(|(name, word)| setting(name).map(|value| format!(", {value} {word}")));
    let figures = Figures {
        metrics: metrics(),
        values: values(report),
    };
    let mut notes = vec!["PostMark takes the time in whole seconds".to_owned()];
    if report.cut_off {
        notes.push("a part of the text is missing, and its figures with it".to_owned());
    }
    notes.extend(figures.missing("0 or not in the text"));
    Imported {
        // Not known: the banner of 1.53 says 1.51, too.
        settings: report.settings.clone(),
        notes,
        ..figures.imported(
            "postmark",
            format!(
                "PostMark{}",
                shown.into_iter().flatten().collect::<String>()
            ),
        )
    }
}
