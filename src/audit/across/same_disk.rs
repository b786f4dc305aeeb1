//! Configurations whose data lie on the same disk while both are there, or one on the other.

use super::difference::{RunReading, Unlike};

pub(super) fn judge(run: &RunReading<'_>) -> Vec<Unlike> {
    let piles = run.each(|at| {
        let devices = run.set_ups.place(at, "devices")?;
        Some(devices.split(", ").collect::<Vec<&str>>())
    });
    let mut found = Vec::new();
    for (at, (b, pile_b)) in piles.iter().enumerate() {
        for (a, pile_a) in &piles[..at] {
            // One after the other on one disk is how most studies work: only what stands at the same
            // time is in the way.
            if run.set_ups.together(*a, *b) {
                found.extend(shared(run, (*a, pile_a), (*b, pile_b)));
            }
        }
    }
    found
}

fn shared(
    run: &RunReading<'_>,
    (a, pile_a): (usize, &[&str]),
    (b, pile_b): (usize, &[&str]),
) -> Option<Unlike> {
    let (name_a, name_b) = (run.name(a), run.name(b));
    let backing = |above: &str, below: &str, device: &str| Unlike {
        check: "own backing disk",
        sentence: format!(
            "{above} is a stack on {below}: its data lie on {device}, which {below} is measured on. Every byte of {above} is work for {below}, so they are not two storages"
        ),
    };
    if let Some(device) = top_below(pile_a, pile_b) {
        return Some(backing(name_b, name_a, device));
    }
    if let Some(device) = top_below(pile_b, pile_a) {
        return Some(backing(name_a, name_b, device));
    }
    // The uppermost device that both have: a partition, or the disk below.
    let common = pile_a.iter().find(|device| pile_b.contains(device))?;
    Some(Unlike {
        check: "one disk",
        sentence: format!(
            "{name_a} and {name_b} were on one disk at the same time ({common}): what one still has to write can slow down the other, and a difference is not one of disks"
        ),
    })
}

/// The top device of one pile, if it is below the top of the other.
fn top_below<'a>(one: &[&'a str], other: &[&str]) -> Option<&'a str> {
    let top = *one.first()?;
    other.get(1..)?.contains(&top).then_some(top)
}

#[cfg(test)]
mod tests {
    use super::super::sample::Run;
    use super::*;
    use crate::event::Event;

    fn found(a: &str, b: &str) -> Vec<Unlike> {
        Run::of(|at| vec![("devices", [a, b][at])]).read(judge)
    }

    #[test]
    fn one_disk_and_ones_own_backing_disk_are_told_apart() {
        let one = found("loop0, vda1, vda", "loop1, vda1, vda");
        assert_eq!((one.len(), one[0].check), (1, "one disk"), "{one:?}");
        assert!(one[0].sentence.contains("(vda1)"));
        let own = found("vda1, vda", "loop1, vda1, vda");
        assert_eq!(own[0].check, "own backing disk");
        assert!(
            own[0].sentence.starts_with("xfs is a stack on ext4"),
            "{own:?}"
        );
        let turned = found("loop1, vda1, vda", "vda1, vda");
        assert!(turned[0].sentence.starts_with("ext4 is a stack on xfs"));
        assert_eq!(found("loop0, sda", "loop1, sdb"), []);
    }

    /// Stacks that are torn down before the next one is set up use the same disk in turn, as they
    /// should.
    #[test]
    fn stacks_that_never_stand_together_share_nothing() {
        let mut run = Run::of(|at| vec![("devices", ["loop0, vda", "loop1, vda"][at])]);
        let mut lines = Vec::new();
        for mut line in run.record.lines {
            let down = match &mut line.event {
                Event::StackSetUp {
                    round,
                    configuration,
                    layers,
                    ..
                } => {
                    layers[0].facts[0].value = "by this run".to_owned();
                    Some(Event::StackTornDown {
                        round: *round,
                        configuration: *configuration,
                    })
                }
                _ => None,
            };
            let at = line.at.clone();
            lines.push(line);
            lines.extend(down.map(|event| crate::event::LogLine { at, event }));
        }
        run.record.lines = lines;
        run.read(|reading| assert_eq!(judge(reading), []));
    }
}
