//! What the programs that were measured, here or elsewhere, said against their own figures.

use stackrace_base::event::Observation;
use stackrace_results::record::Record;

/// The words against the figures: of each workload those of its first trial that has such, and how many trials have.
pub(super) fn of(record: &Record) -> Vec<String> {
    let mut all = Vec::new();
    for (index, workload) in record.head.workloads.iter().enumerate() {
        let said = |trial: &&Observation| trial.phases.iter().any(|phase| !phase.told.is_empty());
        let own = record.trials().filter(|trial| trial.workload == index);
        let trials: Vec<&Observation> = own.filter(said).collect();
        let first = trials.first().into_iter().flat_map(|trial| &trial.phases);
        for note in first.flat_map(|phase| &phase.told) {
            let trials = match trials.len() {
                1 => String::new(),
                all => format!(" (the first of {all} trials that have such words)"),
            };
            all.push(format!("{}: {note}{trials}", workload.name));
        }
        let imported = record.trials().filter(|trial| trial.workload == index);
        for note in imported.flat_map(|trial| &trial.against) {
            // As the verdict names them, so that each is there once.
            all.push(format!("{}: {note}", workload.name));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::content;
    use stackrace_base::event::Event;
    use stackrace_judge::verdict::{self, Evidence};
    use stackrace_results::record::sample;

    /// On a page of few lines the first note alone is shown.
    #[test]
    fn an_error_of_what_was_measured_leads_the_notes() {
        let mut record = sample::record(&sample::small());
        for line in &mut record.lines {
            if let Event::Trial(trial) = &mut line.event {
                trial.against = vec!["the text says: read: Input/output error".to_owned()];
            }
        }
        let mut verdict = verdict::judge(&Evidence::of(&record));
        verdict.notes = vec!["4 KiB: measured for only 446 ms".to_owned()];
        let notes = content::notes(&record, &verdict);
        assert!(notes[0].contains("Input/output error"), "{notes:?}");
        assert!(notes.contains(&verdict.notes[0]), "{notes:?}");
    }
}
