//! Disks that are measured by reading their models, beside those models.

use std::path::Path;

use crate::{imported, traces};
use stackrace_drives::measure::{Modelled, Noise, measure, mixed};
use stackrace_drives::trace::{Fit, Measured, replay};
use stackrace_drives::{Card, Nanos};

/// Reads by which a found card is compared with the disk's.
const READS: u64 = 10_000;

/// Measures the disks that ship and those of a folder; prints a line for each.
pub(crate) fn all(folder: &Path, only: Option<&str>) -> Result<(), String> {
    let ship = Card::all_shipped().filter(|card| matches!(card, Card::Disk(_)));
    let mut cards: Vec<Card> = ship.collect();
    for (name, _) in traces(folder)? {
        cards.push(Card::Disk(Box::new(imported(folder, &name)?.card)));
    }
    cards.retain(|card| only.is_none_or(|only| card.model() == only));
    println!(
        "{:<26} {:>7} {:>8} {:>8} {:>8} {:>8} | {:>6} {:>6} {:>6} {:>6}",
        "",
        "reads",
        "minutes",
        "mean ms",
        "found ms",
        "demerit",
        "random",
        "near",
        "behind",
        "noise"
    );
    for card in &cards {
        println!("{}", line(card, only.is_some())?);
    }
    Ok(())
}

fn line(card: &Card, whole: bool) -> Result<String, String> {
    let (again, probe) = found(card, Noise::default())?;
    let noise = Noise {
        jitter: 20_000,
        one_in: 100,
        longer: 20_000_000,
        ..Noise::default()
    };
    let (noisy, _) = found(card, noise)?;
    if whole {
        println!("{}", again.text());
        for (part, time) in probe.parts() {
            println!("{:>8.1} s {}", time as f64 / 1e9, part.words());
        }
    }
    let (trace, times) = times(card, card)?;
    let (_, modelled) = times_of(&again, &trace)?;
    let (_, with_noise) = times_of(&noisy, &trace)?;
    let fit = |of: &[usize], modelled: &[Nanos]| -> Result<Fit, String> {
        let pick = |times: &[Nanos]| of.iter().map(|at| times[*at]).collect::<Vec<_>>();
        Fit::of(&pick(&times), &pick(modelled)).ok_or_else(|| "no reads".to_owned())
    };
    let all: Vec<usize> = (0..trace.len()).collect();
    let (kinds, whole) = (kinds(&trace), fit(&all, &modelled)?);
    let mut text = format!(
        "{:<26} {:>7} {:>8.1} {:>8.3} {:>8.3} {:>7.2} % |",
        card.model(),
        probe.reads,
        probe.now() as f64 / 60e9,
        whole.measured / 1e6,
        whole.modelled / 1e6,
        whole.demerit * 100.0,
    );
    for kind in &kinds {
        text.push_str(&format!(" {:>6.2}", fit(kind, &modelled)?.demerit * 100.0));
    }
    text.push_str(&format!(
        " {:>6.2}",
        fit(&all, &with_noise)?.demerit * 100.0
    ));
    Ok(text)
}

fn found(card: &Card, noise: Noise) -> Result<(Card, Modelled), String> {
    let mut probe = Modelled::new(card, 0, noise).map_err(|error| error.to_string())?;
    let Ok(found) = measure(&mut probe);
    Ok((found.card(card.model()), probe))
}

fn times(card: &Card, of: &Card) -> Result<(Vec<Measured>, Vec<Nanos>), String> {
    let drive = card.drive(0, 0).map_err(|error| error.to_string())?;
    times_of(of, &mixed(drive.sectors(), READS, 7))
}

fn times_of(card: &Card, trace: &[Measured]) -> Result<(Vec<Measured>, Vec<Nanos>), String> {
    let mut drive = card
        .drive(0, 0)
        .map_err(|error| format!("{}: {error}", card.model()))?;
    Ok((trace.to_vec(), replay(&mut *drive, trace)))
}

/// The reads anywhere, those near the one before, and those behind it.
fn kinds(trace: &[Measured]) -> [Vec<usize>; 3] {
    let mut kinds = [const { Vec::new() }; 3];
    let mut behind = 0_u64;
    for (at, one) in trace.iter().enumerate() {
        let kind = match one.request.first.abs_diff(behind) {
            0 => 2,
            1..=20_000 => 1,
            _ => 0,
        };
        kinds[kind].push(at);
        behind = one.request.first + u64::from(one.request.sectors);
    }
    kinds
}
