//! `stackrace drive`: cards of real drives, and how well a card's model meets a drive.

use stackrace_base::unit::ShownPath;
use std::path::Path;

use stackrace_drives::fit::{self, SMALLEST};
use stackrace_drives::trace::{self, Fit, Measured, replay};
use stackrace_drives::{Card, Nanos, SECTOR};

use super::args::DriveVerb;
use super::drive_card;
use super::terminal::{print, say};
use stackrace_base::bounded::ByteLimit;
use stackrace_base::failure::Failure;
use stackrace_machine::host::ReadProbe;

/// Reads that a card is checked with on a drive.
const CHECK_READS: u64 = 800;
/// Largest trace that is read, bytes.
const TRACE_MAX: ByteLimit = ByteLimit::new(256 << 20);

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
            let card = drive_card::read(card)?.card;
            say(&check(&card, against)?);
        }
    }
    Ok(0)
}

fn open(device: &Path) -> Result<ReadProbe, Failure> {
    let probe = ReadProbe::open(device).map_err(|error| Failure::unable(error.to_string()))?;
    if probe.bytes() < SMALLEST {
        let (shown, bytes) = (device.shown(), probe.bytes());
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

fn check(card: &Card, against: &Path) -> Result<String, Failure> {
    let shown = against.shown();
    let is_text = std::fs::metadata(against).is_ok_and(|kind| kind.is_file());
    let requests = if is_text {
        trace::trace(&drive_card::text(against, TRACE_MAX)?).map_err(|error| {
            Failure::usage(format!("{shown}: {error}")).next("name a drive instead: lsblk")
        })?
    } else {
        let mut probe = open(against)?;
        let sectors = probe.bytes() / SECTOR;
        let mut read = |first, count| read(&mut probe, first, count);
        fit::sample(sectors, CHECK_READS, &mut read)?
    };
    let drive = card.drive(0, drive_card::SSD_BYTES);
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
