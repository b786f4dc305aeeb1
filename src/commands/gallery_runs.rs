//! Where one directory stands among the runs of a gallery: those on drives of the same class and model.

use std::collections::BTreeSet;
use std::path::Path;

use stackrace_base::event::{DriveTold, MetricHead};
use stackrace_base::failure::Failure;
use stackrace_base::unit;
use stackrace_judge::verdict::{AmongRuns, MetricCell, Placed, RUNS_LEAST, Verdict};
use stackrace_results::record::Record;
use stackrace_show::gallery::drives;
use stackrace_stats::median;

use super::gallery::{self, Gathered};
use super::standing::primary;

/// One figure of a run in a gallery.
struct GalleryFigure {
    /// Number of its run among all.
    run: usize,
    /// Drives of its configuration, each as class and model.
    drives: BTreeSet<String>,
    workload: String,
    metric: MetricHead,
    value: f64,
}

/// The figures of the runs of a gallery.
#[derive(Default)]
pub(crate) struct GalleryFigures(Vec<GalleryFigure>);

impl GalleryFigures {
    /// Reads them from a folder: one of logs, or one that was made.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn read(dir: &Path) -> Result<(Self, Gathered), Failure> {
        let mut figures = Self::default();
        let mut number = 0;
        let none = BTreeSet::new();
        let gathered = gallery::read(dir, &none, &mut |run| {
            figures.add(&run.record, &run.verdict, number);
            number += 1;
        })?;
        Ok((figures, gathered))
    }

    fn add(&mut self, record: &Record, verdict: &Verdict, number: usize) {
        for row in &verdict.configurations {
            let drives = named(&drives(record, Some(row.configuration)));
            // One figure of each workload: the one that it is judged by.
            let cells = row.cells.iter().filter(|cell| cell.primary);
            self.0.extend(cells.filter_map(|cell| {
                Some(GalleryFigure {
                    run: number,
                    drives: drives.clone(),
                    workload: cell.workload_name.clone(),
                    metric: cell.metric.clone(),
                    value: cell.value?.estimate,
                })
            }));
        }
    }

    /// Places the figures of a run of one directory among them.
    pub(crate) fn place(&self, record: &Record, verdict: &Verdict, placed: &mut Placed) {
        let own = drives(record, Some(0));
        if own.is_empty() || own.iter().any(|drive| drive.model.is_none()) {
            let told: Vec<String> = named(&own).into_iter().collect();
            let told = match told.as_slice() {
                [] => "this storage tells no drive".to_owned(),
                told => format!(
                    "this storage tells no model of its drive ({})",
                    unit::listed(told)
                ),
            };
            placed.without_runs = Some(format!(
                "{told}: nothing says which runs of the gallery are of the same one"
            ));
            return;
        }
        // Of several drives all must be the same ones, as in an array.
        let own = named(&own);
        placed.runs = primary(verdict)
            .filter_map(|cell| self.among(cell, &own))
            .collect();
    }

    fn among(&self, cell: &MetricCell, own: &BTreeSet<String>) -> Option<AmongRuns> {
        let value = cell.value?.estimate;
        let same = self.0.iter().filter(|one| {
            (&one.workload, &one.metric, &one.drives) == (&cell.workload_name, &cell.metric, own)
        });
        let same: Vec<&GalleryFigure> = same.collect();
        // A run with several configurations on one drive counts once.
        let runs: BTreeSet<usize> = same.iter().map(|one| one.run).collect();
        let of_run = |run: &usize| {
            let values = same.iter().filter(|one| one.run == *run);
            median(&values.map(|one| one.value).collect::<Vec<f64>>())
        };
        let values: Vec<f64> = runs.iter().filter_map(of_run).collect();
        let oriented = |value| cell.metric.better.oriented(value);
        let worse = values
            .iter()
            .filter(|other| oriented(**other) < oriented(value));
        let ends = values
            .iter()
            .copied()
            .reduce(f64::min)
            .zip(values.iter().copied().reduce(f64::max));
        let spread = ends
            .zip(median(&values))
            .filter(|_| values.len() >= RUNS_LEAST);
        Some(AmongRuns {
            workload: cell.workload_name.clone(),
            unit: cell.metric.unit.clone(),
            drive: unit::listed(&own.iter().collect::<Vec<_>>()),
            value,
            runs: values.len(),
            worse: worse.count(),
            spread: spread.map(|((low, high), median)| [low, median, high]),
        })
    }
}

fn named(drives: &[DriveTold]) -> BTreeSet<String> {
    drives.iter().map(DriveTold::words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{DriveClass, Event, Fact};
    use stackrace_judge::verdict::{Evidence, judge};
    use stackrace_results::record::sample;

    /// A made-up run of one directory, on a drive of this model.
    fn run(model: Option<&str>, speed: fn(usize, usize) -> f64) -> (Record, Verdict) {
        let mut shape = sample::small();
        shape.configurations.truncate(1);
        shape.workloads.truncate(1);
        shape.comparison = None;
        shape.speed = speed;
        let mut record = sample::record(&shape);
        for line in &mut record.lines {
            if let Event::StackSetUp { layers, .. } = &mut line.event {
                let drive = DriveTold {
                    class: DriveClass::Ssd,
                    model: model.map(str::to_owned),
                    bytes: None,
                };
                layers[0]
                    .facts
                    .push(Fact::new("disk sda", "").of_drive(drive));
            }
        }
        let verdict = judge(&Evidence::of(&record));
        (record, verdict)
    }

    fn gallery(runs: &[(Record, Verdict)]) -> GalleryFigures {
        let mut figures = GalleryFigures::default();
        for (number, (record, verdict)) in runs.iter().enumerate() {
            figures.add(record, verdict, number);
        }
        figures
    }

    fn said(figures: &GalleryFigures, (record, verdict): &(Record, Verdict)) -> Vec<String> {
        let mut placed = Placed::default();
        figures.place(record, verdict, &mut placed);
        placed.sentences()
    }

    #[test]
    fn a_run_stands_among_those_on_drives_of_its_class_and_model() {
        let acme = Some("ACME 900");
        let runs = [
            run(acme, |_, _| 100e6),
            run(acme, |_, _| 200e6),
            run(acme, |_, _| 300e6),
            // Faster, and another drive.
            run(Some("OTHER 1"), |_, _| 900e6),
        ];
        let said = said(&gallery(&runs), &run(acme, |_, _| 250e6));
        assert!(said[0].starts_with("import: 2"), "{said:?}");
        assert!(
            said[0].contains("better than 2 of the 3 runs on SSD ACME 900 in the gallery ("),
            "{said:?}"
        );
        assert!(said[1].contains("may differ"), "{said:?}");
    }

    #[test]
    fn fewer_than_three_runs_are_said_to_be_too_few() {
        let acme = Some("ACME 900");
        let runs = [run(acme, |_, _| 100e6), run(acme, |_, _| 200e6)];
        let too_few = "import: the gallery has 2 runs on SSD ACME 900: too few to say what is normal, which takes 3";
        assert_eq!(said(&gallery(&runs), &run(acme, |_, _| 250e6)), [too_few]);
        let none = said(&gallery(&[]), &run(acme, |_, _| 250e6));
        assert!(none[0].contains("has 0 runs on"), "{none:?}");
    }

    #[test]
    fn a_drive_without_a_model_is_compared_with_none() {
        let unnamed = run(None, |_, _| 100e6);
        let said = said(&gallery(&[run(None, |_, _| 1e6)]), &unnamed);
        assert_eq!(
            said,
            [
                "this storage tells no model of its drive (SSD): nothing says which runs of the gallery are of the same one"
            ]
        );
    }
}
