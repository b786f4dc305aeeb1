//! What each mechanism of the model mends, in which requests, and how well a drive is met whose trace had no say
//! in the choice.

use crate::disksim::Import;
use crate::{fit, imported, traces, unpacked};
use stackrace_drives::trace::{Fit, Measured, replay, trace};
use stackrace_drives::{BufferRules, DiskCard, Fetched, Nanos, Operation};
use stackrace_drives::{ReadAheadAfter, ReadAheadUntil, Written};
use std::path::Path;

/// A mechanism, and what takes it away from a drive.
type Mechanism = (&'static str, fn(&mut Import));

const MECHANISMS: [Mechanism; 6] = [
    ("settles again on the same track", |drive| {
        drive.card.settle_again = None;
    }),
    ("fetched sectors are dropped or kept", |drive| {
        rules(drive, |rules| rules.fetched = Fetched::Overwritten);
    }),
    ("reads ahead at once where they are dropped", |drive| {
        if drive.waits {
            rules(drive, |rules| rules.after = ReadAheadAfter::Sequence);
        }
    }),
    ("reading ahead ends with the track", |drive| {
        rules(drive, |rules| rules.until = ReadAheadUntil::Full);
    }),
    ("sectors that pass are kept", |drive| {
        rules(drive, |rules| rules.passing = false);
    }),
    ("reads of written data", |drive| {
        rules(drive, |rules| rules.written = Written::UntilDestaged);
    }),
];

/// A kind of request: an operation, and where it lies from the end of the one before it.
const CLASSES: [&str; 5] = [
    "reads in sequence",
    "reads within 600 sectors",
    "reads farther away",
    "writes in sequence",
    "other writes",
];

/// Sectors about the end of the last request that count as near: two tracks of these drives.
const NEAR: u64 = 600;

struct Drive {
    name: String,
    import: Import,
    trace: Vec<Measured>,
}

/// What its firmware does with its buffer: every imported card states it.
fn rules(drive: &mut Import, change: fn(&mut BufferRules)) {
    if let Some(rules) = &mut drive.card.buffer {
        change(&mut rules.value);
    }
}

impl Drive {
    /// The card without the mechanisms of these numbers.
    fn without(&self, numbers: &[usize]) -> DiskCard {
        let mut import = self.import.clone();
        for number in numbers {
            (MECHANISMS[*number].1)(&mut import);
        }
        import.card
    }

    fn demerit(&self, without: &[usize]) -> Result<f64, String> {
        Ok(fit(&self.without(without), &self.trace)?.demerit * 100.0)
    }

    /// The number of the class of each request, by its place in the trace.
    fn classes(&self) -> Vec<usize> {
        let mut behind = u64::MAX;
        let class = self.trace.iter().map(|one| {
            let request = one.request;
            let away = request.first.abs_diff(behind);
            behind = request.first + u64::from(request.sectors);
            match (request.operation, away) {
                (Operation::Read, 0) => 0,
                (Operation::Read, ..NEAR) => 1,
                (Operation::Read, _) => 2,
                (_, 0) => 3,
                _ => 4,
            }
        });
        class.collect()
    }

    /// Distance of each class, ms; `None` where the trace has fewer than 100 of it.
    fn by_class(&self, without: &[usize]) -> Result<Vec<Option<f64>>, String> {
        let mut disk = self
            .without(without)
            .disk(0)
            .map_err(|error| error.to_string())?;
        let times = replay(&mut disk, &self.trace);
        let classes = self.classes();
        let of = |class: usize| {
            let chosen = (0..times.len()).filter(|at| classes[*at] == class);
            let (measured, modelled): (Vec<Nanos>, Vec<Nanos>) =
                chosen.map(|at| (self.trace[at].service, times[at])).unzip();
            let fit = Fit::of(&measured, &modelled).filter(|fit| fit.requests >= 100)?;
            Some(fit.distance / 1e6)
        };
        Ok((0..CLASSES.len()).map(of).collect())
    }
}

/// The mechanisms that pay for these drives: without one of them, the mean of their demerits would be larger.
fn chosen(drives: &[&Drive]) -> Result<Vec<usize>, String> {
    let mean = |without: &[usize]| -> Result<f64, String> {
        let all: Result<Vec<f64>, String> =
            drives.iter().map(|drive| drive.demerit(without)).collect();
        Ok(all?.iter().sum::<f64>() / drives.len() as f64)
    };
    let all = mean(&[])?;
    let mut useless = Vec::new();
    for number in 0..MECHANISMS.len() {
        if mean(&[number])? < all {
            useless.push(number);
        }
    }
    Ok(useless)
}

/// Prints three tables: each drive without each mechanism and left out, and each class of request without each.
pub(crate) fn mechanisms(folder: &Path) -> Result<(), String> {
    let drives: Result<Vec<Drive>, String> = traces(folder)?
        .into_iter()
        .map(|(name, path)| {
            let trace =
                trace(&unpacked(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
            let import = imported(folder, &name)?;
            Ok(Drive {
                name,
                import,
                trace,
            })
        })
        .collect();
    let drives = drives?;
    for (number, (name, _)) in MECHANISMS.iter().enumerate() {
        println!("{}  {name}", letter(number));
    }
    println!(
        "\nDemerit, %: of the model, without each mechanism, and with those alone that pay for the other drives"
    );
    print!("{:<14} {:>6}", "drive", "model");
    for number in 0..MECHANISMS.len() {
        print!(" {:>6}", format!("-{}", letter(number)));
    }
    println!(" {:>8}  without", "left out");
    for drive in &drives {
        print!("{:<14} {:>6.1}", drive.name, drive.demerit(&[])?);
        for number in 0..MECHANISMS.len() {
            print!(" {:>6.1}", drive.demerit(&[number])?);
        }
        let others: Vec<&Drive> = drives.iter().filter(|one| one.name != drive.name).collect();
        let useless = chosen(&others)?;
        let names: String = useless.iter().map(|number| letter(*number)).collect();
        println!(
            " {:>8.1}  {}",
            drive.demerit(&useless)?,
            if names.is_empty() { "none" } else { &names }
        );
    }
    println!("\nDistance by class of request, mean over the drives, ms");
    print!("{:<26} {:>6}", "class", "model");
    for number in 0..MECHANISMS.len() {
        print!(" {:>6}", format!("-{}", letter(number)));
    }
    println!();
    let mut columns = Vec::new();
    columns.push(mean_by_class(&drives, &[])?);
    for number in 0..MECHANISMS.len() {
        columns.push(mean_by_class(&drives, &[number])?);
    }
    for (class, name) in CLASSES.iter().enumerate() {
        print!("{name:<26}");
        for column in &columns {
            print!(" {:>6.3}", column[class]);
        }
        println!();
    }
    Ok(())
}

fn letter(number: usize) -> char {
    char::from(b'A' + number as u8)
}

fn mean_by_class(drives: &[Drive], without: &[usize]) -> Result<Vec<f64>, String> {
    let rows: Result<Vec<_>, String> = drives.iter().map(|drive| drive.by_class(without)).collect();
    let rows = rows?;
    let mean = |class: usize| {
        let known: Vec<f64> = rows.iter().filter_map(|row| row[class]).collect();
        known.iter().sum::<f64>() / known.len().max(1) as f64
    };
    Ok((0..CLASSES.len()).map(mean).collect())
}
