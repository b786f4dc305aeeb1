//! What stored results say to a question asked afterwards.

use super::content::{self, TextRow, TextTable};
use super::render::render;
use super::screen::Screen;
use super::sheet::{Sheet, SheetPart};
use super::styled::{Style, Styled};
use stackrace_judge::verdict::RunAnswer;

/// The pages for a terminal, one for each run.
pub fn answers(answers: &[RunAnswer], screen: Screen) -> Styled {
    let mut pages = Styled::default();
    for (at, answer) in answers.iter().enumerate() {
        if at > 0 {
            pages.add(Style::Plain, "\n");
        }
        pages.append(page(answer, screen));
    }
    pages
}

fn page(answer: &RunAnswer, screen: Screen) -> Styled {
    let mut lead = answer.sentences.clone();
    lead.extend(worth(answer));
    let mut facts = vec![("run".to_owned(), answer.run.clone())];
    // Rounds only number imported results, and no margin is applied to them.
    if !answer.imported {
        facts.push(("rounds".to_owned(), rounds(answer)));
        facts.push(("margin".to_owned(), content::share(answer.margin)));
    }
    let mut parts = Vec::new();
    if !answer.comparisons.is_empty() {
        parts.push(SheetPart::Table(comparisons(answer)));
    }
    if !answer.notes.is_empty() {
        parts.push(SheetPart::List("Notes".to_owned(), answer.notes.clone()));
    }
    let sheet = Sheet {
        title: answer.title.clone(),
        lead,
        facts,
        parts,
    };
    render(&sheet, "terminal", screen)
}

fn rounds(answer: &RunAnswer) -> String {
    answer.rounds.to_string()
}

/// Reliability of the sentences.
fn worth(answer: &RunAnswer) -> Option<String> {
    if answer.imported {
        return Some(
            "Imported, not measured here: neither randomized nor measured in turn, so there is no verdict. Each interval holds alone with 95 %."
                .to_owned(),
        );
    }
    let confidence = content::share(answer.confidence);
    let together = match answer.family {
        1 => format!("The interval holds with {confidence} confidence"),
        n => format!("All {n} intervals hold together with {confidence} confidence"),
    };
    // The study's own question has its confidence in its sentence.
    answer.chosen_after.then(|| {
        format!(
            "Chosen after the run, so exploratory. {together}. Valid only if chosen before seeing results."
        )
    })
}

fn comparisons(answer: &RunAnswer) -> TextTable {
    let row = |comparison: &stackrace_judge::verdict::Comparison| {
        let mut cells = vec![
            content::comparison_name(comparison),
            content::comparison_place(comparison),
        ];
        cells.extend(content::ratio_cells(comparison));
        TextRow::of(cells)
    };
    TextTable {
        title: "Comparisons".to_owned(),
        note: "A ratio above 1: the first named is better.".to_owned(),
        head: ["comparison", "on", "ratio", "interval", "verdict"]
            .map(str::to_owned)
            .to_vec(),
        text: vec![1, 4],
        rows: answer.comparisons.iter().map(row).collect(),
    }
}
