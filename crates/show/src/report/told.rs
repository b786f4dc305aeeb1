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
