//! `stackrace drive`: cards of real drives, and how well a card's model meets a drive.

use stackrace_base::unit::ShownPath;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use stackrace_drives::measure::{self, Found, Part, Probe, SMALLEST, Span, WriteProbe, Writes};
use stackrace_drives::trace::{self, Fit, Measured, replay};
use stackrace_drives::{Card, Nanos, SECTOR};

use super::args::DriveVerb;
use super::drive_card;
use super::output;
use super::progress::Preparing;
use super::setting::Setting;
use super::terminal::{error, print, say};
use stackrace_base::bounded::ByteLimit;
use stackrace_base::failure::Failure;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_layers::stack::{self, LayerError};
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::{FixedDevice, Host, HostError, TimedDevice, argv};
use stackrace_run::prepare::observer::Preparation;

/// Reads that a card is checked with on a drive.
const CHECK_READS: u64 = 800;
/// Sectors of a read beside writes: 4 KiB.
const READ_BESIDE: u32 = 8;
/// Largest trace that is read, bytes.
const TRACE_MAX: ByteLimit = ByteLimit::new(256 << 20);

pub(super) fn exec(setting: &Setting, verb: &DriveVerb) -> Result<u8, Failure> {
    match verb {
        DriveVerb::Measure {
            device,
            name,
            output,
            wipe,
        } => {
            // Minutes pass before it is written.
            output.as_deref().map_or(Ok(()), output::check)?;
            let found = match wipe {
                // It is opened for reading only: a mistaken name harms nothing.
                None => {
                    let doing = Preparing::new(setting.quiet);
                    measure::measure(&mut Real::open(device, &doing)?)?
                }
                Some(repeated) => by_writing(setting, device, repeated)?,
            };
            let card = found.card(name);
            for doubt in doubts(&found, &card).iter().filter(|_| !setting.quiet) {
                error(&format!("note: {doubt}\n"));
            }
            let text = card.text();
            match output {
                Some(output) => output::write(output, text.as_bytes())?,
                None => print(&text),
            }
        }
        DriveVerb::Check { card, against } => {
            let card = drive_card::read(card)?.card;
            say(&check(&card, against, &Preparing::drawn(setting.quiet))?);
        }
    }
    Ok(0)
}

/// Measures a drive that its owner allows to be written over.
fn by_writing(setting: &Setting, device: &Path, repeated: &str) -> Result<Found, Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let refused = |error: LayerError| Failure::refused(error.to_string()).next(error.next());
    Real::size_is_enough(&Real::opened(device)?, device)?;
    let fixed = stack::given_up(&host, device, repeated).map_err(refused)?;
    let doing = Preparing::new(setting.quiet);
    // An SSD of which everything was discarded is as new: its cache is empty, and its spare blocks are free.
    let mut discard = argv(["blkdiscard"]);
    discard.push(fixed.node.clone().into());
    if host.must(&discard).is_err() && !setting.quiet {
        let shown = device.shown();
        error(&format!(
            "note: {shown} discards nothing: its cache and spare blocks are measured as they were left\n"
        ));
    }
    let found = measure::measure_by_writing(&mut Real::to_wipe(&fixed, &doing)?)?;
    drop(doing);
    if !found.was_written() && !setting.quiet {
        let shown = device.shown();
        error(&format!(
            "note: a platter turns in {shown}: its writes were not measured; its content is gone\n"
        ));
    }
    // Its content is noise: another study may take the disk without asking again.
    host.leave_device(&fixed)
        .map_err(|error| refused(error.into()))?;
    Ok(found)
}

/// Share of reads from which on a drive did something else meanwhile: a machine at rest has 1 or 2 %.
const DISTURBED: f64 = 0.05;
/// Distance of the nearest model from the reads of an SSD or a volume from which on they were disturbed.
const MISSED: f64 = 0.15;
/// A drive that stood still takes longer for its first read.
const STOOD_STILL: Nanos = 1_000_000_000;

/// What makes a measurement worth less than its card says.
fn doubts(found: &Found, card: &Card) -> Vec<String> {
    let mut doubts = Vec::new();
    let missed = found.missed(card);
    if missed > MISSED && !found.unexplained() {
        doubts.push(format!(
            "no model meets the reads: the nearest is {:.0} % from them. Something else used the drive or the \
             processors, or the drive holds no data (flash answers at once what was never written). Measure it again \
             while nothing runs: iostat -x 1",
            missed * 100.0
        ));
    }
    let missed = found.missed_writing(card);
    if missed > MISSED {
        doubts.push(format!(
            "no model meets the writes: the nearest is {:.0} % from them. Something else used the drive, it grew hot and \
             slowed down, or its cache grows and shrinks. Measure it again when it is cool",
            missed * 100.0
        ));
    }
    let disturbed = found.disturbed();
    if disturbed > DISTURBED {
        doubts.push(format!(
            "{:.0} % of the reads took longer than the arm and the platter can: something else used the \
             drive, and the card is wrong by that. Measure it again while nothing does: iostat -x 1",
            disturbed * 100.0
        ));
    }
    if found.unexplained() {
        doubts.push(
            "the times of reads differ by milliseconds, and no turn of a platter explains it: a disk \
             that something else uses, or a volume of a busy machine. The card is of a volume"
                .to_owned(),
        );
    }
    if found.first_read() > STOOD_STILL {
        doubts.push(format!(
            "the first read took {:.1} s: the drive stood still. That is in no value of the card",
            found.first_read() as f64 / 1e9
        ));
    }
    doubts
}

/// The failure of a read or a write, with its sectors.
fn failed(error: &HostError, first: u64, sectors: u32) -> Failure {
    let last = first + u64::from(sectors) - 1;
    Failure::unable(format!("{error} (sectors {first} to {last})"))
        .next("see what the kernel says of it: dmesg | tail")
}

/// A drive of this machine.
struct Real<'a> {
    probe: TimedDevice,
    doing: &'a Preparing,
    /// The parts that are measured, and the one at the moment.
    parts: &'static [Part],
    part: Part,
}

/// Reads or writes the sectors at a place with a device of a thread's own.
type Access = fn(&mut TimedDevice, u64, usize) -> Result<[u64; 2], HostError>;

impl<'a> Real<'a> {
    fn open(device: &Path, doing: &'a Preparing) -> Result<Self, Failure> {
        let probe = Self::opened(device)?;
        Self::size_is_enough(&probe, device)?;
        Ok(Self {
            probe,
            doing,
            parts: &Part::READ,
            part: Part::Survey,
        })
    }

    /// A drive that may be written over.
    fn to_wipe(device: &FixedDevice, doing: &'a Preparing) -> Result<Self, Failure> {
        let probe = TimedDevice::open_to_wipe(device);
        Ok(Self {
            probe: probe.map_err(|error| {
                Failure::refused(error.to_string()).next("end what uses the drive: lsblk")
            })?,
            doing,
            parts: &Part::WRITTEN,
            part: Part::Survey,
        })
    }

    fn opened(device: &Path) -> Result<TimedDevice, Failure> {
        // A file is read through a file system and its caches: that is no drive.
        let other = std::fs::metadata(device).is_ok_and(|kind| !kind.file_type().is_block_device());
        if other {
            let shown = device.shown();
            return Err(Failure::refused(format!("{shown} is no block device"))
                .next("name a drive, such as /dev/sda: lsblk"));
        }
        TimedDevice::open(device).map_err(|error| {
            Failure::unable(error.to_string()).next("name a drive that is there, as root: lsblk")
        })
    }

    fn size_is_enough(probe: &TimedDevice, device: &Path) -> Result<(), Failure> {
        let bytes = probe.bytes();
        if bytes >= SMALLEST {
            return Ok(());
        }
        let shown = device.shown();
        Err(
            Failure::refused(format!("{shown} has {bytes} bytes, too few to measure"))
                .next("name a drive of at least 1 GiB: lsblk"),
        )
    }

    /// So many devices for threads of their own.
    fn threads(&mut self, depth: u32) -> Result<Vec<TimedDevice>, Failure> {
        let all = (0..depth).map(|_| self.probe.again());
        let all: Result<Vec<_>, _> = all.collect();
        all.map_err(|error| Failure::unable(error.to_string()))
    }

    /// Accesses all places, `depth` at once; the time until the last has ended.
    fn all(
        &mut self,
        access: Access,
        depth: u32,
        places: &[u64],
        sectors: u32,
    ) -> Result<Nanos, Failure> {
        let bytes = bytes_of(sectors);
        // A thread for each that is under way, each with a buffer of its own.
        let devices = self.threads(depth)?;
        let next = AtomicUsize::new(0);
        let go_on = |mut device: TimedDevice| {
            while let Some(first) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                let done = access(&mut device, first * SECTOR, bytes);
                done.map_err(|error| failed(&error, *first, sectors))?;
            }
            Ok(())
        };
        let begin = SystemClock.now_ns();
        std::thread::scope(|scope| {
            let threads: Vec<_> = devices
                .into_iter()
                .map(|device| scope.spawn(|| go_on(device)))
                .collect();
            threads.into_iter().try_for_each(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })?;
        Ok(SystemClock.now_ns() - begin)
    }

    fn shows(&self, share: Option<f64>) {
        let number = self
            .parts
            .iter()
            .take_while(|part| **part != self.part)
            .count()
            + 1;
        let (words, all) = (self.part.words(), self.parts.len());
        let share = share.filter(|_| self.doing.is_drawn());
        let share = share.map_or(String::new(), |share| format!(", {:.0} %", share * 100.0));
        let step = format!("measuring {words} ({number} of {all}){share}");
        self.doing.now(&step, "");
    }
}

fn bytes_of(sectors: u32) -> usize {
    (u64::from(sectors) * SECTOR) as usize
}

fn span([begin, end]: [u64; 2]) -> Span {
    Span { begin, end }
}

impl Probe for Real<'_> {
    type Error = Failure;

    fn sectors(&self) -> u64 {
        self.probe.bytes() / SECTOR
    }

    fn read(&mut self, first: u64, sectors: u32) -> Result<Span, Failure> {
        let read = self.probe.read(first * SECTOR, bytes_of(sectors));
        read.map(span)
            .map_err(|error| failed(&error, first, sectors))
    }

    fn at_once(&mut self, depth: u32, places: &[u64], sectors: u32) -> Result<Nanos, Failure> {
        self.all(TimedDevice::read, depth, places, sectors)
    }

    fn pause(&mut self, time: Nanos) {
        SystemClock.sleep(Duration::from_nanos(time));
    }

    fn begins(&mut self, part: Part) {
        self.part = part;
        self.shows(None);
    }
}

impl WriteProbe for Real<'_> {
    fn write(&mut self, first: u64, sectors: u32) -> Result<Span, Failure> {
        let written = self.probe.write(first * SECTOR, bytes_of(sectors));
        written
            .map(span)
            .map_err(|error| failed(&error, first, sectors))
    }

    fn flush(&mut self) -> Result<Span, Failure> {
        let flushed = self.probe.flush();
        flushed
            .map(span)
            .map_err(|error| Failure::unable(error.to_string()))
    }

    fn write_at_once(
        &mut self,
        depth: u32,
        places: &[u64],
        sectors: u32,
    ) -> Result<Nanos, Failure> {
        self.all(TimedDevice::write, depth, places, sectors)
    }

    fn goes_on(&mut self, share: f64) {
        self.shows(Some(share));
    }

    fn read_beside(&mut self, reads: &[u64], writes: &Writes<'_>) -> Result<Vec<Nanos>, Failure> {
        let devices = self.threads(writes.depth)?;
        let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let bytes = bytes_of(writes.sectors);
        let write_on = |mut device: TimedDevice| {
            while !over.load(Ordering::Relaxed) {
                let first =
                    writes.places[next.fetch_add(1, Ordering::Relaxed) % writes.places.len()];
                let written = device.write(first * SECTOR, bytes);
                written.map_err(|error| failed(&error, first, writes.sectors))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = devices
                .into_iter()
                .map(|device| scope.spawn(|| write_on(device)))
                .collect();
            let times: Result<Vec<Nanos>, Failure> = reads
                .iter()
                .map(|first| self.read(*first, READ_BESIDE).map(|span| span.took()))
                .collect();
            over.store(true, Ordering::Relaxed);
            threads.into_iter().try_for_each(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?;
            times
        })
    }
}

fn check(card: &Card, against: &Path, doing: &Preparing) -> Result<String, Failure> {
    let shown = against.shown();
    let is_text = std::fs::metadata(against).is_ok_and(|kind| kind.is_file());
    let requests = if is_text {
        trace::trace(&drive_card::text(against, TRACE_MAX)?).map_err(|error| {
            Failure::usage(format!("{shown}: {error}")).next("name a drive instead: lsblk")
        })?
    } else {
        measure::sample(&mut Real::open(against, doing)?, CHECK_READS)?
    };
    let drive = card.drive_with_data(0, drive_card::SSD_BYTES);
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

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_drives::measure::{Modelled, Noise};

    fn doubts_of(noise: Noise) -> Vec<String> {
        let card = Card::shipped("seagate-st3000dm001").unwrap();
        let mut drive = Modelled::new(&card, 0, noise).unwrap();
        let Ok(found) = measure::measure(&mut drive);
        doubts(&found, &found.card("found"))
    }

    #[test]
    fn a_drive_at_rest_raises_no_doubt_and_a_busy_one_does() {
        assert_eq!(doubts_of(Noise::default()), Vec::<String>::new());
        let busy = doubts_of(Noise {
            others: 2,
            ..Noise::default()
        });
        assert!(busy[0].contains("use"), "{busy:?}");
    }

    #[test]
    fn an_ssd_beside_other_work_raises_a_doubt() {
        let card = Card::shipped("sata-ssd").unwrap();
        let doubts = |noise| {
            let mut drive = Modelled::new(&card, 4 << 30, noise).unwrap();
            let Ok(found) = measure::measure(&mut drive);
            doubts(&found, &found.card("found"))
        };
        assert_eq!(doubts(Noise::default()), Vec::<String>::new());
        let late = Noise {
            jitter: 400_000,
            ..Noise::default()
        };
        let said = doubts(late);
        assert!(said[0].starts_with("no model meets the reads"), "{said:?}");
    }

    #[test]
    fn a_drive_that_stood_still_is_said_to() {
        let still = doubts_of(Noise {
            begins: 5_000_000_000,
            ..Noise::default()
        });
        assert_eq!(still.len(), 1);
        assert!(
            still[0].starts_with("the first read took 5.0 s"),
            "{still:?}"
        );
    }

    #[test]
    fn a_read_that_fails_is_named_by_its_sectors() {
        let error = std::io::Error::from_raw_os_error(5);
        let error = HostError::path("read", Path::new("/dev/sdx"), error);
        let said = failed(&error, 4096, 8).into_parts().0;
        assert!(
            said.contains("/dev/sdx") && said.ends_with("(sectors 4096 to 4103)"),
            "{said}"
        );
    }
}
