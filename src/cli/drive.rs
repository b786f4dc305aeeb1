//! `stackrace drive`: cards of real drives, and how well a card's model meets a drive.

use std::path::Path;

use stackrace_drives::fit::{self, SMALLEST};
use stackrace_drives::trace::{self, Fit, Measured, replay};
use stackrace_drives::{CARDS, Card, Nanos, SECTOR};

use super::args::DriveVerb;
use super::terminal::{print, say};
use super::words::unknown;
use crate::bounded::ByteLimit;
use crate::failure::Failure;
use crate::host::ReadProbe;

/// Reads that a card is checked with on a drive.
const CHECK_READS: u64 = 800;
/// Bytes of a modelled SSD.
const SSD_BYTES: u64 = 4 << 30;
/// Largest card and trace that are read, bytes.
const TEXT_MAX: ByteLimit = ByteLimit::new(256 << 20);

pub(super) fn exec(verb: &DriveVerb) -> Result<u8, Failure> {
    match verb {
        DriveVerb::Fit { device, name } => {
            // It is opened for reading only: a fit by mistake harms nothing.
            let mut probe = open(device)?;
            let sectors = probe.bytes() / SECTOR;
            let found = fit::probe(sectors, &mut |first, count| read(&mut probe, first, count))?;
            print(&found.card(name).text());
        }
        DriveVerb::Check { card, against } => {
            let card = card_of(card)?;
            say(&check(&card, against)?);
        }
    }
    Ok(0)
}

fn open(device: &Path) -> Result<ReadProbe, Failure> {
    let probe = ReadProbe::open(device).map_err(|error| Failure::unable(error.to_string()))?;
    if probe.bytes() < SMALLEST {
        let (shown, bytes) = (device.display(), probe.bytes());
        return Err(
            Failure::refused(format!("{shown} has {bytes} bytes, too few to measure"))
                .next("name a drive of at least 1 GiB: lsblk"),
        );
    }
    Ok(probe)
}

fn read(probe: &mut ReadProbe, first: u64, sectors: u32) -> Result<Nanos, Failure> {
    let bytes = u64::from(sectors) * SECTOR;
    let took = probe.read(first * SECTOR, bytes as usize);
    took.map_err(|error| Failure::unable(error.to_string()))
}

/// A text file of bounded size.
fn text(path: &Path) -> Result<String, Failure> {
    // By what is read, not by the size it says: a device says 0 and never ends.
    let bytes = TEXT_MAX.read(path);
    let bytes = bytes.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{}: this is not UTF-8 text", path.display())))
}

/// The card of this name, or the one in this file.
fn card_of(named: &Path) -> Result<Card, Failure> {
    let word = named.to_string_lossy();
    let cards: Vec<Card> = CARDS
        .iter()
        .filter_map(|text| Card::parse(text).ok())
        .collect();
    // A name goes before a file: a file is said with a path, ./ in front.
    if let Some(card) = cards.iter().find(|card| card.model() == word) {
        return Ok(card.clone());
    }
    if !named.exists() {
        let names: Vec<&str> = cards.iter().map(Card::model).collect();
        return Err(unknown("card or file", &word, &names));
    }
    let card = Card::parse(&text(named)?);
    card.and_then(|card| card.drive(0, SSD_BYTES).map(|_| card)).map_err(|error| {
        Failure::usage(format!("{word}: {error}"))
            .next("compare it with a card that is known to work: stackrace show drives seagate-st3000dm001")
    })
}

fn check(card: &Card, against: &Path) -> Result<String, Failure> {
    let shown = against.display();
    let is_text = std::fs::metadata(against).is_ok_and(|kind| kind.is_file());
    let requests = if is_text {
        trace::trace(&text(against)?).map_err(|error| {
            Failure::usage(format!("{shown}: {error}")).next("name a drive instead: lsblk")
        })?
    } else {
        let mut probe = open(against)?;
        let sectors = probe.bytes() / SECTOR;
        let mut read = |first, count| read(&mut probe, first, count);
        fit::sample(sectors, CHECK_READS, &mut read)?
    };
    let drive = card.drive(0, SSD_BYTES);
    let mut drive = drive.map_err(|error| Failure::usage(error.to_string()))?;
    let beyond = trace::beyond(&requests, &*drive);
    if beyond > 0 && !matches!(card, Card::Ssd(_)) {
        let (model, bytes) = (card.model(), drive.sectors() * SECTOR);
        return Err(Failure::usage(format!(
            "{beyond} requests of {shown} lie beyond the {bytes} bytes of {model}"
        ))
        .next("choose the card of that drive: stackrace show drives"));
    }
    let times: Vec<Nanos> = requests.iter().map(|one| one.service).collect();
    let modelled = replay(&mut *drive, &requests);
    Ok(report(
        card,
        &shown.to_string(),
        &requests,
        &times,
        &modelled,
    ))
}

fn report(
    card: &Card,
    against: &str,
    requests: &[Measured],
    times: &[Nanos],
    modelled: &[Nanos],
) -> String {
    let Some(fit) = Fit::of(times, modelled) else {
        return format!("{against} holds no request\n");
    };
    let sorted = |times: &[Nanos]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times
    };
    let (measured, model) = (sorted(times), sorted(modelled));
    let at = |times: &[Nanos], share: usize| {
        let place = (times.len() * share / 100).min(times.len() - 1);
        times[place] as f64 / 1e6
    };
    let percentiles: String = [10, 50, 90, 99]
        .map(|share| {
            format!(
                "  {share:>2} %   {:>9.3} {:>9.3}\n",
                at(&measured, share),
                at(&model, share)
            )
        })
        .concat();
    format!(
        "{} beside {against}: {} requests, one at a time\n\n\
         ms      measured  modelled\n  mean   {:>9.3} {:>9.3}\n{percentiles}\n\
         demerit {:.1} % (distance between the distributions over the mean; 8 % or less is good)\n",
        card.model(),
        requests.len(),
        fit.measured / 1e6,
        fit.modelled / 1e6,
        fit.demerit * 100.0,
    )
}
