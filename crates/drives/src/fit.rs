//! A card from reads of a real drive: what can be measured is, the rest is assumed and says so.
//!
//! The drive is a function from a place and a length to the time that a read took, so that a model
//! can stand in for it.

use crate::card::{CardOverheads, Layout, Seek};
use crate::cards::{Card, VolumeCard};
use crate::trace::Measured;
use crate::{DiskCard, Nanos, Operation, Origin, Request, SECTOR, Stated, scattered};

/// Reads so many sectors from one on; returns how long it took.
pub type Read<'a, E> = dyn FnMut(u64, u32) -> Result<Nanos, E> + 'a;

/// Smallest drive that can be measured, bytes: its places must lie farther apart than a read.
pub const SMALLEST: u64 = 1 << 30;

/// Sectors of a small read: 4 KiB.
const SMALL: u32 = 8;
/// Sectors of a large read: 1 MiB.
const LARGE: u32 = 2048;
/// Places at which the rate is measured.
const PLACES: u64 = 9;
/// Large reads timed at each.
const LARGE_READS: u64 = 16;
/// Seeks timed for each distance.
const SEEKS: u64 = 32;
/// A drive whose platter turned faster than this would turn more than 40,000 times a minute.
const SHORTEST_TURN: Nanos = 1_500_000;

/// The findings of reads of a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    sectors: u64,
    turn: Sample,
    small: Sample,
    rates: Vec<f64>,
    /// Seeks to the next place, over a third of the drive, and over all of it.
    seeks: [Sample; 3],
}

/// Middle and middle half of repeated times, ms.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    middle: f64,
    low: f64,
    high: f64,
}

impl Sample {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (times.len() as f64 * share) as usize;
            times
                .get(place.min(times.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0.0)
        };
        Self {
            middle: at(0.5),
            low: at(0.25),
            high: at(0.75),
        }
    }

    fn words(&self) -> String {
        format!(
            "half of the reads between {:.3} and {:.3} ms",
            self.low, self.high
        )
    }
}

/// A place among so many sectors.
fn place(number: u64, sectors: u64) -> u64 {
    scattered(number) % sectors / u64::from(SMALL) * u64::from(SMALL)
}

fn ms(time: Nanos) -> f64 {
    time as f64 / 1e6
}

/// Measures a drive of so many sectors by reading, about 1,500 reads.
///
/// # Errors
/// The first error of a read.
pub fn probe<E>(sectors: u64, read: &mut Read<'_, E>) -> Result<Probed, E> {
    let mut rates = Vec::new();
    for place in 0..PLACES {
        let last = sectors - (LARGE_READS + 2) * u64::from(LARGE);
        let first = last / (PLACES - 1) * place / u64::from(SMALL) * u64::from(SMALL);
        let mut time = 0;
        for number in 0..LARGE_READS + 1 {
            let took = read(first + number * u64::from(LARGE), LARGE)?;
            // The first one seeks.
            time += if number > 0 { took } else { 0 };
        }
        let bytes = (LARGE_READS * u64::from(LARGE) * SECTOR) as f64;
        rates.push(bytes * 1e3 / time.max(1) as f64);
    }
    let mut small = Vec::new();
    let first = sectors / 2 / u64::from(LARGE) * u64::from(LARGE);
    for number in 0..64 {
        let took = read(first + number * u64::from(SMALL), SMALL)?;
        if number > 0 {
            small.push(ms(took));
        }
    }
    let small = Sample::of(small);
    let turn = turn(sectors, read)?;
    let mut seeks = Vec::new();
    for distance in [sectors / 2000, sectors / 3, sectors / 100 * 98] {
        seeks.push(seek(sectors, distance, turn.middle, small.middle, read)?);
    }
    let seeks = [seeks[0], seeks[1], seeks[2]];
    Ok(Probed {
        sectors,
        turn,
        small,
        rates,
        seeks,
    })
}

/// Reads that each end before the one before them: each waits for the platter to turn, less the step.
/// Two steps tell the turn from the step.
fn turn<E>(sectors: u64, read: &mut Read<'_, E>) -> Result<Sample, E> {
    let mut middles = Vec::new();
    let mut all = Vec::new();
    for step in [u64::from(SMALL), u64::from(SMALL) * 5] {
        let mut times = Vec::new();
        for place in 0..8 {
            let last = sectors / 10 * (place + 1);
            for number in 0..8 {
                let first = (last - number * step) / u64::from(SMALL) * u64::from(SMALL);
                let took = read(first, SMALL)?;
                if number > 0 {
                    times.push(ms(took));
                }
            }
        }
        let sample = Sample::of(times);
        middles.push(sample.middle);
        all.push(sample);
    }
    let more = (middles[0] - middles[1]).max(0.0) / 4.0;
    Ok(Sample {
        middle: middles[0] + more,
        low: all[0].low + more,
        high: all[0].high + more,
    })
}

/// Time to move over a distance. A read after it waits for up to a turn: of n reads the shortest
/// waited for about a turn over n + 1.
fn seek<E>(
    sectors: u64,
    distance: u64,
    turn: f64,
    command: f64,
    read: &mut Read<'_, E>,
) -> Result<Sample, E> {
    let mut shortest = Vec::new();
    for _ in 0..3 {
        shortest.push(f64::INFINITY);
    }
    let room = sectors - distance - u64::from(SMALL);
    for number in 0..SEEKS * 3 {
        let first = place(number, room);
        read(first, SMALL)?;
        let took = ms(read(
            first + distance / u64::from(SMALL) * u64::from(SMALL),
            SMALL,
        )?);
        let third = &mut shortest[(number % 3) as usize];
        *third = third.min(took);
    }
    let wait = turn / (SEEKS + 1) as f64;
    let times = shortest
        .into_iter()
        .map(|time| (time - wait - command).max(0.01));
    Ok(Sample::of(times.collect()))
}

fn measured<T>(value: T, source: String) -> Stated<T> {
    Stated {
        value,
        from: Origin::Measured,
        source,
    }
}

fn assumed<T>(value: T) -> Stated<T> {
    let source = "not measured: usual for drives of this kind".to_owned();
    Stated {
        value,
        from: Origin::Assumed,
        source,
    }
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl Probed {
    /// Returns true if reads wait for a platter.
    #[must_use]
    pub fn turns(&self) -> bool {
        self.turn.middle * 1e6 >= SHORTEST_TURN as f64 && self.turn.middle > 3.0 * self.small.middle
    }

    /// The card: of a hard disk, or of a volume where nothing turns.
    #[must_use]
    pub fn card(&self, model: &str) -> Card {
        if self.turns() {
            Card::Disk(Box::new(self.disk(model)))
        } else {
            Card::Volume(Box::new(self.volume(model)))
        }
    }

    fn rates_words(&self) -> String {
        let rates: Vec<String> = self.rates.iter().map(|rate| format!("{rate:.0}")).collect();
        format!(
            "reads of 1 MiB at {PLACES} places, first to last: {} MB/s",
            rates.join(", ")
        )
    }

    fn disk(&self, model: &str) -> DiskCard {
        let [outer, inner] = edges(&self.rates);
        let [next, average, full] = self.seeks.map(|seek| seek.middle);
        let full_stroke = full.max(average);
        let from_seeks = |seek: &Sample| format!("{:.3} to {:.3}", seek.low, seek.high);
        let spread: Vec<String> = self.seeks.iter().map(from_seeks).collect();
        let spread = format!(
            "shortest of {SEEKS} reads, three times: {} ms",
            spread.join(", ")
        );
        let next_track = next.min(average);
        DiskCard {
            model: model.to_owned(),
            name: format!("{model}, measured by reading"),
            rpm: measured(
                (60e3 / self.turn.middle).round(),
                format!(
                    "a turn of {:.3} ms; {}",
                    self.turn.middle,
                    self.turn.words()
                ),
            ),
            surfaces: assumed(4),
            layout: measured(
                Layout::Rates {
                    capacity: self.sectors * SECTOR,
                    outer: round(outer),
                    inner: round(inner),
                },
                self.rates_words(),
            ),
            seek: measured(
                Seek::DataSheet {
                    next_track: round(next_track),
                    average: round(average.max(next_track)),
                    full_stroke: round(full_stroke.max(next_track)),
                },
                spread,
            ),
            head_switch: assumed(round(next_track)),
            write_settle: assumed(0.5),
            overheads: measured(
                CardOverheads::All(round(self.small.middle)),
                format!("sequential reads of 4 KiB; {}", self.small.words()),
            ),
            completion: None,
            bus: assumed([600.0; 2]),
            segments: assumed((16, 1024.0)),
            read_ahead: assumed(1024.0),
            buffer: None,
            settle_again: None,
            write_cache: assumed(16_384.0),
            destage_after: assumed(100.0),
            queue_depth: assumed(32),
            physical_sector: assumed(4096),
            shingled: None,
            claims: Vec::new(),
        }
    }

    fn volume(&self, model: &str) -> VolumeCard {
        let latency = self.seeks[1].middle.max(self.turn.middle).max(0.001);
        let iops = (1e3 / latency).round().max(1.0);
        let mib =
            self.rates.iter().sum::<f64>() / self.rates.len() as f64 * 1e6 / f64::from(1 << 20);
        VolumeCard {
            model: model.to_owned(),
            name: format!("{model}, measured by reading; nothing in it turns"),
            capacity: measured(
                (self.sectors * SECTOR).div_ceil(1 << 30),
                "size of the device, GiB".to_owned(),
            ),
            latency: measured(
                [round(latency); 2],
                format!(
                    "random reads of 4 KiB, {}; writing is assumed to take as long",
                    self.turn.words()
                ),
            ),
            iops: measured(
                iops,
                "one read after the other: with several at once it may do more".to_owned(),
            ),
            burst_iops: assumed(iops),
            credit: assumed(0.0),
            rate: measured(round(mib), self.rates_words()),
            request: assumed(256),
            claims: Vec::new(),
        }
    }
}

/// Rates at both edges, from all places. The rate falls evenly over the cylinders, and outer cylinders
/// hold more, so over the sectors its square falls evenly.
fn edges(rates: &[f64]) -> [f64; 2] {
    let squares: Vec<f64> = rates.iter().map(|rate| rate * rate).collect();
    let count = squares.len() as f64;
    let mean = squares.iter().sum::<f64>() / count;
    let middle = (count - 1.0) / 2.0;
    let (mut both, mut spread) = (0.0, 0.0);
    for (place, square) in squares.iter().enumerate() {
        both += (place as f64 - middle) * (square - mean);
        spread += (place as f64 - middle).powi(2);
    }
    // A drive that is faster at its end than at its beginning is noise.
    let half = (-both / spread * middle).max(0.0);
    [mean + half, (mean - half).max(mean / 100.0)].map(f64::sqrt)
}

/// Reads for a check of a card: half anywhere, half in sequence, as a trace with what they took.
///
/// # Errors
/// The first error of a read.
pub fn sample<E>(sectors: u64, count: u64, read: &mut Read<'_, E>) -> Result<Vec<Measured>, E> {
    (0..count)
        .map(|id| {
            // Runs of eight: the first anywhere, then four more places, then three that follow.
            let run = if id % 8 < 5 { id } else { id / 8 * 8 + 4 };
            let first = place(run, sectors - 64) + (id - run) * u64::from(SMALL);
            let request = Request {
                id,
                operation: Operation::Read,
                first,
                sectors: SMALL,
            };
            let service = read(first, SMALL)?;
            Ok(Measured {
                request,
                service,
                pause: 0,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Fit, replay};
    use crate::{CARDS, Drive};

    fn model(name: &str) -> Card {
        let cards = CARDS.iter().map(|text| Card::parse(text).unwrap());
        cards.into_iter().find(|card| card.model() == name).unwrap()
    }

    /// Reads of a model, one after the other.
    fn reads(card: &Card) -> (u64, impl FnMut(u64, u32) -> Result<Nanos, String>) {
        let mut drive = card.drive(0, 4 << 30).unwrap();
        let (sectors, mut now) = (drive.sectors(), 0);
        let read = move |first, sectors| {
            let (begin, id, operation) = (now, 0, Operation::Read);
            drive.submit(
                Request {
                    id,
                    operation,
                    first,
                    sectors,
                },
                now,
            );
            while drive.complete(now).is_none() {
                now = drive.next_event().ok_or("idle")?;
            }
            Ok(now - begin)
        };
        (sectors, read)
    }

    #[test]
    fn a_card_is_found_again_by_reading_its_model() {
        let card = model("seagate-st3000dm001");
        let (sectors, mut read) = reads(&card);
        let found = probe(sectors, &mut read).unwrap();
        assert!(found.turns());
        let Card::Disk(disk) = found.card("again") else {
            panic!("no disk");
        };
        assert!(
            (disk.rpm.value / 7200.0 - 1.0).abs() < 0.01,
            "{:?}",
            disk.rpm
        );
        let Layout::Rates {
            outer,
            inner,
            capacity,
        } = disk.layout.value
        else {
            panic!("no rates");
        };
        assert_eq!(capacity, sectors * SECTOR);
        assert!(
            (outer / 210.0 - 1.0).abs() < 0.05 && (inner / 102.0 - 1.0).abs() < 0.05,
            "{outer} {inner}"
        );
        let Seek::DataSheet { average, .. } = disk.seek.value else {
            panic!("no seeks");
        };
        assert!((average / 8.5 - 1.0).abs() < 0.12, "{average}");
        // The card that was found does what the drive does.
        let trace = sample(sectors, 800, &mut reads(&card).1).unwrap();
        let times: Vec<Nanos> = trace.iter().map(|one| one.service).collect();
        let modelled = replay(&mut disk.disk(0).unwrap(), &trace);
        let fit = Fit::of(&times, &modelled).unwrap();
        assert!(fit.demerit < 0.10, "{fit:?}");
    }

    #[test]
    fn a_drive_in_which_nothing_turns_becomes_a_volume() {
        for name in ["aws-gp3", "sata-ssd"] {
            let card = model(name);
            let (sectors, mut read) = reads(&card);
            let found = probe(sectors, &mut read).unwrap();
            assert!(!found.turns(), "{name}: {found:?}");
            let card = found.card("again");
            assert_eq!(Card::parse(&card.text()).as_ref(), Ok(&card));
            assert!(card.drive(0, 4 << 30).is_ok(), "{name}");
        }
    }

    #[test]
    fn an_error_of_the_drive_ends_the_measurement() {
        let mut count = 0;
        let mut read = |_, _| {
            count += 1;
            if count < 100 { Ok(1) } else { Err("gone") }
        };
        assert_eq!(probe(1 << 24, &mut read), Err("gone"));
    }
}
