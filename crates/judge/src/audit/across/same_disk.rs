//! Configurations that use the same disk at the same time, or of which one lies on the other.

use stackrace_base::event::FactFigure;
use stackrace_base::unit;
use std::collections::BTreeSet;

use super::difference::{RunReading, Unlike};

/// Storage that two configurations have in common.
enum Shared<'a> {
    /// The first is a stack on the second, whose data are on this device.
    Backing(usize, usize, &'a str),
    /// Both are on this device.
    Disk(&'a str),
}

pub(super) fn judge(run: &RunReading<'_>) -> Vec<Unlike> {
    let piles = run.each(|at| match &run.set_ups.place(at, "devices")?.figure {
        Some(FactFigure::Devices(names)) => {
            Some(names.iter().map(String::as_str).collect::<Vec<&str>>())
        }
        _ => None,
    });
    let mut found = Vec::new();
    // One sentence for each disk, however many are on it.
    let mut disks: Vec<(&str, BTreeSet<usize>)> = Vec::new();
    for (at, (b, pile_b)) in piles.iter().enumerate() {
        for (a, pile_a) in &piles[..at] {
            // One after the other on one disk is how most studies work: only what stands at the same
            // time is in the way.
            if !run.set_ups.together(*a, *b) || run.set_ups.one_directory(*a, *b) {
                continue;
            }
            match shared((*a, pile_a), (*b, pile_b)) {
                None => {}
                Some(Shared::Backing(above, below, device)) => {
                    found.push(backing(run.name(above), run.name(below), device));
                }
                Some(Shared::Disk(device)) => {
                    match disks.iter_mut().find(|(known, _)| *known == device) {
                        Some((_, on_it)) => on_it.extend([*a, *b]),
                        None => disks.push((device, BTreeSet::from([*a, *b]))),
                    }
                }
            }
        }
    }
    found.extend(
        disks
            .iter()
            .map(|(device, on_it)| one_disk(run, device, on_it)),
    );
    found
}

fn shared<'a>(
    (a, pile_a): (usize, &[&'a str]),
    (b, pile_b): (usize, &[&'a str]),
) -> Option<Shared<'a>> {
    if let Some(device) = top_below(pile_a, pile_b) {
        return Some(Shared::Backing(b, a, device));
    }
    if let Some(device) = top_below(pile_b, pile_a) {
        return Some(Shared::Backing(a, b, device));
    }
    // The uppermost device that both have: a partition, or the disk below.
    let common = pile_a.iter().find(|device| pile_b.contains(device))?;
    Some(Shared::Disk(common))
}

fn backing(above: &str, below: &str, device: &str) -> Unlike {
    Unlike {
        check: "own backing disk",
        sentence: format!(
            "{above} is a stack on {below}: its data lie on {device}, which {below} is measured on. Every byte of {above} is work for {below}, so they are not two storages"
        ),
    }
}

fn one_disk(run: &RunReading<'_>, device: &str, on_it: &BTreeSet<usize>) -> Unlike {
    let names: Vec<&str> = on_it.iter().map(|at| run.name(*at)).collect();
    // All of them: each may be the one in the way.
    let slow = match names.as_slice() {
        [_, _] => "the other",
        _ => "the others",
    };
    Unlike {
        check: "one disk",
        sentence: format!(
            "{} were on one disk at the same time ({device}): while it writes the data of one, {slow} must wait, so a difference may come from that",
            unit::listed_names(&names)
        ),
    }
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
    use stackrace_base::event::{ConfigurationHead, Event, Fact};

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

    #[test]
    fn three_on_one_disk_are_one_note() {
        let facts = |_: usize| vec![("devices", "vda1, vda")];
        let mut run = Run::of(facts);
        run.record.head.configurations.push(ConfigurationHead {
            cost: None,
            name: "btrfs".to_owned(),
            levels: Vec::new(),
        });
        let mut third = run.record.lines.last().unwrap().clone();
        if let Event::StackSetUp { configuration, .. } = &mut third.event {
            *configuration = 2;
        }
        run.record.lines.push(third);
        let found = run.read(judge);
        assert_eq!(found.len(), 1, "{found:?}");
        let sentence = &found[0].sentence;
        assert!(
            sentence.starts_with("ext4, xfs and btrfs were on one disk"),
            "{sentence}"
        );
        assert!(sentence.contains("the others must wait"), "{sentence}");
    }

    /// Settings of a workload as factors: there is only one storage, and its trials follow each other.
    #[test]
    fn one_directory_measured_in_two_ways_is_no_shared_disk() {
        let mut run = Run::of(|_| vec![("devices", "vda1, vda")]);
        let directories = ["/srv/a", "/srv/a", "/srv/b"];
        let mut lines = run.record.lines.iter_mut().rev();
        for directory in &directories[..2] {
            if let Some(Event::StackSetUp { layers, .. }) = lines.next().map(|it| &mut it.event) {
                layers[0]
                    .facts
                    .push(Fact::of_older_log("directory", *directory));
            }
        }
        run.read(|reading| assert_eq!(judge(reading), []));
        if let Some(Event::StackSetUp { layers, .. }) =
            run.record.lines.last_mut().map(|it| &mut it.event)
        {
            layers[0].facts.pop();
            layers[0]
                .facts
                .push(Fact::of_older_log("directory", directories[2]));
        }
        assert_eq!(run.read(judge)[0].check, "one disk");
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
                    layers[0].facts[0] = Fact::of_older_log("mounted", "by this run");
                    Some(Event::StackTornDown {
                        served: Vec::new(),
                        round: *round,
                        configuration: *configuration,
                    })
                }
                _ => None,
            };
            let at = line.at.clone();
            lines.push(line);
            lines.extend(down.map(|event| stackrace_base::event::LogLine {
                at,
                since_ns: None,
                event,
            }));
        }
        run.record.lines = lines;
        run.read(|reading| assert_eq!(judge(reading), []));
    }
}
