//! What must hold of an SSD whatever its parameters, and what they must bring.

use super::*;
use proptest::prelude::*;

const US: Nanos = 1_000;

/// 256 MiB on 4 dies; blocks of 1 MiB; TLC of a SATA drive.
fn parameters() -> SsdParameters {
    SsdParameters {
        sectors: (256 << 20) / SECTOR,
        channels: 2,
        dies_per_channel: 2,
        page: 16 << 10,
        pages_per_block: 64,
        over_provisioning: 0.10,
        read: 60 * US,
        program: 700 * US,
        program_slc: 700 * US,
        slc_bytes: 0,
        erase: 3_000 * US,
        suspend: 200 * US,
        channel_unit: 8 * US,
        overhead: 20 * US,
        bus_sector: 930,
        bus_command: 0,
        buffer: 1 << 20,
        protected: false,
    }
}

const WRITE: Operation = Operation::Write { durable: false };

fn request(id: u64, operation: Operation, first: u64, sectors: u32) -> Request {
    Request {
        id,
        operation,
        first,
        sectors,
    }
}

/// Submits one request after the other completes; returns how long all took.
fn one_by_one(ssd: &mut Ssd, from: Nanos, requests: impl Iterator<Item = Request>) -> Nanos {
    let mut now = from;
    for request in requests {
        ssd.submit(request, now);
        now = ssd.next_event().expect("the request completes");
        assert_eq!(ssd.complete(now).map(|done| done.id), Some(request.id));
    }
    now - from
}

/// Writes of 4 KiB at places of a fixed, scattered order.
fn scattered(count: u64, units: u64) -> impl Iterator<Item = Request> {
    (0..count).map(move |id| {
        let unit = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        request(id, WRITE, unit % units * UNIT_SECTORS, 8)
    })
}

fn fill(ssd: &mut Ssd) -> Nanos {
    let sectors = ssd.sectors();
    one_by_one(
        ssd,
        0,
        (0..sectors / 256).map(|id| request(id, WRITE, id * 256, 256)),
    )
}

#[test]
fn overwriting_at_random_amplifies_writes_and_slows_them_down() {
    let mut ssd = Ssd::new(parameters()).expect("a sound drive");
    let start = fill(&mut ssd);
    let fresh = ssd.write_amplification();
    assert_eq!(fresh, Some(1.0));
    let units = ssd.sectors() / UNIT_SECTORS;
    let first = one_by_one(&mut ssd, start, scattered(2_000, units));
    let after = start + first + one_by_one(&mut ssd, start + first, scattered(200_000, units));
    let worn = one_by_one(&mut ssd, after, scattered(2_000, units));
    let amplification = ssd.write_amplification().expect("it was written");
    assert!((1.5..8.0).contains(&amplification), "{amplification}");
    assert!(worn > first * 3 / 2, "{worn} against {first}");
}

#[test]
fn more_over_provisioning_means_less_amplification() {
    let amplification = |over_provisioning| {
        let mut ssd = Ssd::new(SsdParameters {
            over_provisioning,
            ..parameters()
        })
        .expect("a sound drive");
        let start = fill(&mut ssd);
        let units = ssd.sectors() / UNIT_SECTORS;
        one_by_one(&mut ssd, start, scattered(200_000, units));
        ssd.write_amplification().expect("it was written")
    };
    let (little, much) = (amplification(0.07), amplification(0.28));
    assert!(much < little * 0.7, "{much} against {little}");
}

#[test]
fn a_discarded_drive_is_as_good_as_new() {
    let mut ssd = Ssd::new(parameters()).expect("a sound drive");
    let mut now = fill(&mut ssd);
    let whole = request(0, Operation::Discard, 0, ssd.sectors() as u32);
    now += one_by_one(&mut ssd, now, std::iter::once(whole));
    // A second filling moves nothing, because nothing is valid.
    let sectors = ssd.sectors();
    let again = (0..sectors / 256).map(|id| request(id, WRITE, id * 256, 256));
    one_by_one(&mut ssd, now, again);
    assert_eq!(ssd.write_amplification(), Some(1.0));
}

#[test]
fn a_flush_waits_for_flash_unless_power_loss_is_provided_for() {
    let time = |protected| {
        let mut ssd = Ssd::new(SsdParameters {
            protected,
            ..parameters()
        })
        .expect("a sound drive");
        let write = request(0, WRITE, 0, 8);
        let flush = request(1, Operation::Flush, 0, 0);
        one_by_one(&mut ssd, 0, [write, flush].into_iter())
    };
    assert!(time(false) > 700 * US);
    assert!(time(true) < 100 * US);
}

#[test]
fn writing_more_than_the_slc_cache_becomes_slower() {
    let mut ssd = Ssd::new(SsdParameters {
        slc_bytes: 64 << 20,
        program_slc: 200 * US,
        ..parameters()
    })
    .expect("a sound drive");
    let part = |from: u64| (from..from + 256).map(|id| request(id, WRITE, id * 256, 256));
    let fast = one_by_one(&mut ssd, 0, part(0));
    let between = fast + one_by_one(&mut ssd, fast, part(256));
    let slow = one_by_one(&mut ssd, between, part(512));
    assert!(slow > fast * 2, "{slow} against {fast}");
}

#[test]
fn reads_at_once_use_all_dies() {
    let mut ssd = Ssd::new(parameters()).expect("a sound drive");
    let start = fill(&mut ssd) + 1_000_000 * US;
    let reads = |id: u64| request(id, Operation::Read, id * 5_000 * UNIT_SECTORS % 500_000, 8);
    let alone = one_by_one(&mut ssd, start, (0..64).map(reads));
    let later = start + alone + 1_000_000 * US;
    for id in 0..64 {
        ssd.submit(reads(id), later);
    }
    let mut last = later;
    while let Some(next) = ssd.next_event() {
        last = next;
        ssd.complete(next);
    }
    assert!(
        (last - later) * 2 < alone,
        "{} against {alone}",
        last - later
    );
}

#[test]
fn a_drive_without_spare_blocks_is_refused() {
    let none = SsdParameters {
        over_provisioning: 0.0,
        ..parameters()
    };
    assert_eq!(Ssd::new(none).err(), Some(SsdError::NoSpare { needed: 3 }));
    let empty = SsdParameters {
        sectors: 0,
        ..parameters()
    };
    assert_eq!(Ssd::new(empty).err(), Some(SsdError::Empty));
}

proptest! {
    #[test]
    fn every_request_completes_once_after_it_came_and_no_unit_is_lost(
        requests in prop::collection::vec(
            (0..12, 0_u64..600_000, 1_u32..600, 0_u64..3_000_000),
            1..200,
        ),
        protected in any::<bool>(),
    ) {
        let small = SsdParameters { sectors: (32 << 20) / SECTOR, pages_per_block: 8, protected, ..parameters() };
        let mut ssd = Ssd::new(small).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let (mut now, mut done) = (0, Vec::new());
        for (id, (kind, first, sectors, pause)) in (0..).zip(&requests) {
            now += pause;
            let operation = match kind {
                0 => Operation::Flush,
                1 => Operation::Discard,
                2 => Operation::Write { durable: true },
                3..=8 => WRITE,
                _ => Operation::Read,
            };
            let first = first % ssd.sectors();
            let sectors = u64::from(*sectors).min(ssd.sectors() - first) as u32;
            ssd.submit(request(id, operation, first, sectors), now);
            while let Some(one) = ssd.complete(now) {
                done.push(one.id);
            }
            prop_assert!(ssd.flash.is_consistent());
        }
        while let Some(next) = ssd.next_event() {
            prop_assert!(next >= now);
            done.extend(ssd.complete(next).map(|one| one.id));
        }
        done.sort_unstable();
        prop_assert_eq!(done, (0..requests.len() as u64).collect::<Vec<_>>());
    }
}

/// However many reads wait, none of them overtakes: only a program is suspended for a read.
#[test]
fn reads_of_one_die_wait_for_each_other_and_a_page_is_read_once() {
    let one_die = SsdParameters {
        channels: 1,
        dies_per_channel: 1,
        ..parameters()
    };
    let many = |places: &[u64], sectors| {
        let mut ssd = Ssd::new(one_die).expect("a drive").holding_data();
        for (id, first) in (0..).zip(places) {
            ssd.submit(request(id, Operation::Read, *first, sectors), 0);
        }
        let mut last = 0;
        while let Some(now) = ssd.next_event() {
            last = now;
            while ssd.complete(now).is_some() {}
        }
        last
    };
    let page = one_die.page / SECTOR;
    let pages: Vec<u64> = (0..16).map(|at| at * page).collect();
    assert!(many(&pages, 8) >= 16 * one_die.read);
    let [unit, whole] = [8, page as u32].map(|sectors| many(&[0], sectors));
    assert!(whole - unit < one_die.read, "{unit}, {whole}");
}
