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

/// Said of each answer to what the study did not ask.
const CHOSEN_AFTER: &str = "Chosen after the run, so exploratory.";

/// Reliability of the sentences.
fn worth(answer: &RunAnswer) -> Option<String> {
    if answer.imported {
        return Some(
            "Imported, not measured here: neither randomized nor measured in turn, so there is no verdict. Each interval holds alone with 95 %."
                .to_owned(),
        );
    }
    let confidence = content::share(answer.confidence);
    let all = answer.comparisons.len();
    let given = answer.comparisons.iter().filter(|c| c.lacking.is_none());
    let together = match (given.count(), answer.family) {
        (0, _) if all == 0 => return None,
        (0, _) => return answer.chosen_after.then(|| CHOSEN_AFTER.to_owned()),
        (1, 1) => format!("The interval holds with {confidence} confidence"),
        (given, _) if given < all => {
            format!("The intervals that are given hold together with {confidence} confidence")
        }
        (_, n) => format!("All {n} intervals hold together with {confidence} confidence"),
    };
    // The study's own question has its confidence in its sentence.
    answer
        .chosen_after
        .then(|| format!("{CHOSEN_AFTER} {together}. Valid only if chosen before seeing results."))
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

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::Event;
    use stackrace_judge::verdict::{Question, ask};
    use stackrace_results::record::sample;

    /// What is said of the reliability of the answer on a metric that these configurations lack.
    fn reliability(lack: &[usize]) -> String {
        let mut record = sample::record(&sample::small());
        for line in &mut record.lines {
            if let Event::Trial(trial) = &mut line.event
                && lack.contains(&trial.workload)
            {
                trial.metrics[3] = None;
            }
        }
        let question = Question {
            metric: Some("read latency p99".to_owned()),
            ..Question::default()
        };
        worth(&ask(&[record], &question).unwrap()[0]).unwrap()
    }

    #[test]
    fn nothing_is_said_to_hold_where_there_is_no_interval() {
        let none = reliability(&[0, 1, 2]);
        assert!(!none.contains("hold"), "{none}");
        let two = reliability(&[0]);
        assert!(
            two.contains("The intervals that are given hold together"),
            "{two}"
        );
        let all = reliability(&[]);
        assert!(all.contains("All 3 intervals hold together"), "{all}");
    }
}
