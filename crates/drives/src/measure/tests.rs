//! Modelled disks are measured and found again, also with noise, and drives that misbehave end it soundly.

use super::*;
use crate::trace::{Fit, replay};
use crate::{Layout, scattered};

/// Jitter of 20 us, and one read in a hundred 20 ms late.
const NOISY: Noise = Noise {
    jitter: 20_000,
    one_in: 100,
    longer: 20_000_000,
    others: 0,
    begins: 0,
};
/// A drive that is measured for longer is in the way for longer, ns.
const HALF_AN_HOUR: Nanos = 1_800_000_000_000;

fn found(card: &Card, noise: Noise) -> (Found, Modelled) {
    let mut probe = Modelled::new(card, 4 << 30, noise).unwrap();
    let Ok(found) = measure(&mut probe);
    (found, probe)
}

/// How far the found card is from the modelled one on other reads.
fn demerit(card: &Card, again: &Card) -> f64 {
    let mut drive = card.drive_with_data(0, 4 << 30).unwrap();
    let trace = mixed(drive.sectors(), 6000, 7);
    let times = replay(&mut *drive, &trace);
    let modelled = replay(&mut *again.drive_with_data(0, 4 << 30).unwrap(), &trace);
    Fit::of(&times, &modelled).unwrap().demerit
}

/// The disks that ship which are farther than this, when they are measured with this noise.
fn farther_than(most: f64, noise: Noise) -> Vec<String> {
    let disks = Card::all_shipped().filter(|card| matches!(card, Card::Disk(_)));
    let far = disks.filter_map(|card| {
        let (found, probe) = found(&card, noise);
        assert!(probe.now() < HALF_AN_HOUR, "{}", card.model());
        let demerit = demerit(&card, &found.card("again"));
        let words = format!("{}: {:.2} %", card.model(), demerit * 100.0);
        (demerit > most || found.disturbed() > 0.05).then_some(words)
    });
    far.collect()
}

#[test]
fn every_disk_that_ships_is_found_again_by_reading_its_model() {
    assert_eq!(farther_than(0.03, Noise::default()), Vec::<String>::new());
}

#[test]
fn late_reads_and_jitter_do_not_mislead_a_measurement() {
    assert_eq!(farther_than(0.05, NOISY), Vec::<String>::new());
}

#[test]
fn a_slow_machine_between_the_drive_and_the_clock_does_not_mislead_a_measurement() {
    // As much as a converter between USB and SATA adds.
    let jitter = 100_000;
    assert_eq!(
        farther_than(0.08, Noise { jitter, ..NOISY }),
        Vec::<String>::new()
    );
}

#[test]
fn values_of_a_card_are_found_again_with_their_spread() {
    let card = Card::shipped("seagate-st3000dm001").unwrap();
    let Card::Disk(disk) = found(&card, NOISY).0.card("again") else {
        panic!("no disk");
    };
    assert!(
        (disk.rpm.value / 7200.0 - 1.0).abs() < 1e-6,
        "{:?}",
        disk.rpm
    );
    assert_eq!(disk.surfaces.value, 6);
    let Layout::Zones(zones) = &disk.layout.value else {
        panic!("no zones");
    };
    assert_eq!(zones.len(), 16);
    assert_eq!(disk.segments.value.0, 32);
    assert!((disk.read_ahead.value / 1024.0 - 1.0).abs() < 0.05);
    assert!((disk.bus.value[0] / 600.0 - 1.0).abs() < 0.05);
    let again = Card::Disk(disk);
    for value in again.values() {
        let assumed = value.from == crate::Origin::Assumed;
        assert_eq!(value.source.starts_with("not "), assumed, "{value:?}");
    }
    assert_eq!(Card::parse(&again.text()).as_ref(), Ok(&again));
}

#[test]
fn a_second_reader_is_noticed() {
    for name in ["seagate-st3000dm001", "wd-wd30efrx"] {
        for others in [2, 4] {
            let busy = Noise {
                others,
                ..Noise::default()
            };
            let card = Card::shipped(name).unwrap();
            let (found, _) = found(&card, busy);
            assert!(
                found.disturbed() > 0.05 || found.unexplained(),
                "{name}, 1 in {others}: {}",
                found.disturbed()
            );
        }
    }
}

#[test]
fn a_drive_that_stood_still_is_measured_as_one_that_turned() {
    let card = Card::shipped("wd-wd30efrx").unwrap();
    let still = Noise {
        begins: 5_000_000_000,
        ..Noise::default()
    };
    let (found, _) = found(&card, still);
    assert!(found.first_read() >= still.begins);
    let demerit = demerit(&card, &found.card("again"));
    assert!(demerit < 0.03, "{demerit}");
}

/// Small reads a second of a card's model, so many at once, all over a drive that holds data.
fn rate(card: &Card, depth: u32) -> f64 {
    let mut model = Modelled::new(card, 4 << 30, Noise::default()).unwrap();
    let room = model.sectors() / 8;
    let places: Vec<u64> = (0..4_000)
        .map(|at| scattered(at ^ 0x33) % room * 8)
        .collect();
    let Ok(time) = model.at_once(depth, &places, 8);
    places.len() as f64 * 1e9 / time as f64
}

#[test]
fn a_drive_in_which_nothing_turns_is_found_again_alone_and_with_many_reads_at_once() {
    for (name, noise) in [
        ("aws-gp3", Noise::default()),
        ("aws-gp3", NOISY),
        ("sata-ssd", Noise::default()),
        ("sata-ssd-protected", Noise::default()),
        ("nvme-ssd", Noise::default()),
    ] {
        let shipped = Card::shipped(name).unwrap();
        let (found, probe) = found(&shipped, noise);
        assert!(!found.turns() && !found.unexplained(), "{name}: {found:?}");
        assert!(probe.now() < HALF_AN_HOUR, "{name}");
        let card = found.card("again");
        let kinds = [&shipped, &card].map(std::mem::discriminant);
        assert_eq!(kinds[0], kinds[1], "{name}: {}", card.text());
        assert_eq!(Card::parse(&card.text()).as_ref(), Ok(&card));
        assert!(card.drive(0, 4 << 30).is_ok(), "{name}");
        let demerit = demerit(&shipped, &card);
        assert!(demerit < 0.03, "{name}: {demerit} {}", card.text());
        for depth in [1, 3, 24, 64, 100] {
            let (own, again) = (rate(&shipped, depth), rate(&card, depth));
            assert!(
                (again / own - 1.0).abs() < 0.08,
                "{name}, {depth}: {own}, {again} {}",
                card.text()
            );
        }
    }
}

/// A drive of which a read fails after so many.
struct Failing {
    inner: Modelled,
    left: u64,
}

impl Probe for Failing {
    type Error = u64;

    fn sectors(&self) -> u64 {
        self.inner.sectors()
    }

    fn read(&mut self, first: u64, sectors: u32) -> Result<Span, u64> {
        self.left = self.left.checked_sub(1).ok_or(first)?;
        let Ok(span) = self.inner.read(first, sectors);
        Ok(span)
    }

    fn at_once(&mut self, depth: u32, places: &[u64], sectors: u32) -> Result<Nanos, u64> {
        self.left = self.left.checked_sub(places.len() as u64).ok_or(0_u64)?;
        let Ok(time) = self.inner.at_once(depth, places, sectors);
        Ok(time)
    }

    fn pause(&mut self, time: Nanos) {
        self.inner.pause(time);
    }

    fn begins(&mut self, part: Part) {
        self.inner.begins(part);
    }
}

#[test]
fn an_error_of_the_drive_ends_the_measurement_wherever_it_comes() {
    let card = Card::shipped("wd-wd30efrx").unwrap();
    for left in [0, 100, 1_000, 10_000, 25_000] {
        let inner = Modelled::new(&card, 0, Noise::default()).unwrap();
        let sectors = inner.sectors();
        let failed = measure(&mut Failing { inner, left }).unwrap_err();
        assert!(failed < sectors);
    }
}

#[test]
fn the_smallest_drive_and_one_that_answers_at_once_are_measured() {
    // A drive of any times: of none, of random ones, and of times that fall.
    struct Any(u64, fn(u64) -> Nanos, Nanos);
    impl Probe for Any {
        type Error = std::convert::Infallible;
        fn sectors(&self) -> u64 {
            SMALLEST / crate::SECTOR
        }
        fn read(&mut self, first: u64, sectors: u32) -> Result<Span, Self::Error> {
            assert!(first + u64::from(sectors) <= self.sectors());
            self.0 += 1;
            let begin = self.2;
            self.2 += (self.1)(self.0);
            Ok(Span { begin, end: self.2 })
        }
        fn at_once(&mut self, _: u32, places: &[u64], sectors: u32) -> Result<Nanos, Self::Error> {
            let begin = self.2;
            for first in places {
                let Ok(_) = self.read(*first, sectors);
            }
            Ok(self.2 - begin)
        }
        fn pause(&mut self, time: Nanos) {
            self.2 += time;
        }
        fn begins(&mut self, _part: Part) {}
    }
    let times: [fn(u64) -> Nanos; 4] = [
        |_| 0,
        |number| scattered(number) % 20_000_000,
        |number| 20_000_000 - (number * 1000) % 20_000_000,
        // Whole turns, whatever is read.
        |number| scattered(number) % 4 * 8_000_000,
    ];
    for time in times {
        let Ok(found) = measure(&mut Any(0, time, 0));
        let card = found.card("any");
        assert_eq!(Card::parse(&card.text()).as_ref(), Ok(&card));
        assert!(card.drive(0, 4 << 30).is_ok(), "{}", card.text());
    }
}

/// The same reads with writes between them, and a flush now and then.
fn with_writes(sectors: u64, count: u64) -> Vec<crate::trace::Measured> {
    let mut trace = mixed(sectors, count, 11);
    for (number, measured) in trace.iter_mut().enumerate() {
        let request = &mut measured.request;
        match number % 8 {
            0 => {
                request.operation = crate::Operation::Flush;
                request.sectors = 0;
            }
            1 | 2 | 4 | 6 => request.operation = crate::Operation::Write { durable: false },
            _ => {}
        }
    }
    trace
}

/// Writes over the model of an SSD, and holds the card that is found against it.
#[track_caller]
fn is_found_again_by_writing(name: &str) {
    let shipped = Card::shipped(name).unwrap();
    let mut probe = Modelled::empty(&shipped, 4 << 30).unwrap();
    let Ok(found) = measure_by_writing(&mut probe);
    assert!(found.was_written(), "{name}");
    let again = found.card("again");
    let text = again.text();
    assert_eq!(Card::parse(&text).as_ref(), Ok(&again));
    let missed = found.missed_writing(&again);
    assert!(missed < 0.1, "{name}: {missed} {text}");
    let (Card::Ssd(own), Card::Ssd(card)) = (&shipped, &again) else {
        panic!("{name}: {text}");
    };
    assert_eq!(card.protected.value, own.protected.value, "{name}");
    let apart = (card.slc_share.value - own.slc_share.value).abs();
    assert!(apart < 0.008, "{name}: {text}");
    // Other requests than those that it was measured by.
    let mut drive = shipped.drive_with_data(0, 4 << 30).unwrap();
    let trace = with_writes(drive.sectors(), 6000);
    let times = replay(&mut *drive, &trace);
    let modelled = replay(&mut *again.drive_with_data(0, 4 << 30).unwrap(), &trace);
    let demerit = Fit::of(&times, &modelled).unwrap().demerit;
    assert!(demerit < 0.05, "{name}: {demerit} {text}");
}

#[test]
fn an_ssd_with_a_cache_for_writes_is_found_again_by_writing_over_its_model() {
    is_found_again_by_writing("sata-ssd");
}

#[test]
fn an_ssd_with_a_protected_buffer_is_found_again_by_writing_over_its_model() {
    is_found_again_by_writing("sata-ssd-protected");
}

#[test]
fn an_ssd_with_a_fast_interface_is_found_again_by_writing_over_its_model() {
    is_found_again_by_writing("nvme-ssd");
}

#[test]
fn a_volume_that_is_written_over_has_the_time_of_its_writes() {
    let mut card = Card::shipped("aws-gp3").unwrap();
    let Card::Volume(volume) = &mut card else {
        panic!("no volume");
    };
    volume.capacity.value = 4;
    volume.latency.value = [0.5, 1.5];
    let mut probe = Modelled::empty(&card, 0).unwrap();
    let Ok(found) = measure_by_writing(&mut probe);
    let Card::Volume(again) = found.card("again") else {
        panic!("no volume");
    };
    assert!((again.latency.value[1] - 1.5).abs() < 0.02, "{again:?}");
}

#[test]
fn a_disk_is_not_written_over() {
    let card = Card::shipped("wd-wd30efrx").unwrap();
    let mut probe = Modelled::empty(&card, 0).unwrap();
    let Ok(found) = measure_by_writing(&mut probe);
    assert!(found.turns() && !found.was_written());
    assert_eq!(probe.written, 0);
}
