//! The log of the drives around a cut, for people.

use stackrace_drives::Operation;

use super::capture::Capture;
use super::medium::drive_cuts;
use stackrace_base::unit;
use stackrace_layers::stack::CutOf;
use stackrace_machine::host::LabDisk;
use stackrace_remote::agent::message::CutOrder;

/// Lists what the drives were asked around a cut, and what became of it: a line for each of the last `most` requests
/// before it, on each drive.
pub fn drive_log(
    capture: &Capture,
    disks: &[LabDisk],
    of: CutOf,
    cut: &CutOrder,
    most: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    let drive_cuts = drive_cuts(capture, disks, of);
    for (number, (drive, what)) in capture.drives.iter().zip(drive_cuts).enumerate() {
        let Some(what) = what else { continue };
        let after = what.aftermath(&drive.log.entries, cut.at_ns, cut.seed);
        let keeps = match what.goes_on_for {
            Some(_) => "keeps its power".to_owned(),
            None => format!("{:?} cache", what.power.durability).to_lowercase(),
        };
        lines.push(format!("drive {}, {keeps}:", number + 1));
        let begun = drive.log.entries.iter().enumerate();
        let begun: Vec<_> = begun.filter(|each| each.1.submitted < cut.at_ns).collect();
        for (place, entry) in &begun[begun.len().saturating_sub(most)..] {
            let request = &entry.request;
            let before = unit::time_ns((cut.at_ns - entry.submitted) as f64);
            let kept = after.kept.iter().filter(|kept| kept.write == *place);
            let kept: u64 = kept.map(|kept| kept.end - kept.first).sum();
            let (what, fate) = match request.operation {
                Operation::Flush => ("flush".to_owned(), String::new()),
                operation => {
                    let durable = operation == Operation::Write { durable: true };
                    let what = format!(
                        "write{} of {} sectors at {}",
                        if durable { " (FUA)" } else { "" },
                        request.sectors,
                        request.first
                    );
                    let fate = match kept {
                        0 => ": lost".to_owned(),
                        kept if kept == u64::from(request.sectors) => ": kept".to_owned(),
                        kept => format!(": {kept} sectors kept"),
                    };
                    (what, fate)
                }
            };
            let answered = match entry.completed.filter(|done| *done <= cut.at_ns) {
                Some(done) => format!(
                    "acknowledged {} before",
                    unit::time_ns((cut.at_ns - done) as f64)
                ),
                None => "not acknowledged".to_owned(),
            };
            lines.push(format!(
                "  {before} before the cut: {what}, {answered}{fate}"
            ));
        }
        for (first, end) in &after.damaged {
            lines.push(format!(
                "  sectors {first} to {} cannot be read any more",
                end - 1
            ));
        }
    }
    lines
}
