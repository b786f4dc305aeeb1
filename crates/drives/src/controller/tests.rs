//! What must hold of a controller whatever its array, and what its cache must bring.

use super::*;
use crate::{Volume, VolumeParameters};
use proptest::prelude::*;

const MS: Nanos = 1_000_000;

/// Drives of 5 ms and 200 requests a second each, so that what an array costs can be counted.
fn drives(count: usize) -> Vec<Volume> {
    let one = Volume::new(VolumeParameters {
        sectors: 1 << 20,
        latency: [5 * MS; 2],
        iops: 200.0,
        burst_iops: 200.0,
        credit: 0.0,
        rate: 100e6,
        request_bytes: 1 << 20,
    });
    vec![one.expect("a sound volume"); count]
}

fn array(layout: ArrayLayout, count: usize, write_sectors: u64) -> Controller<Volume> {
    let parameters = ControllerParameters {
        layout,
        chunk: 128,
        write_sectors,
        overhead: MS / 20,
        bus_sector: 1_000,
    };
    Controller::new(drives(count), parameters).expect("a sound array")
}

const WRITE: Operation = Operation::Write { durable: false };

/// Time until all requests of one kind, all submitted at once, have completed.
fn burst(
    controller: &mut Controller<Volume>,
    operation: Operation,
    places: &[(u64, u32)],
) -> Nanos {
    for (id, (first, sectors)) in (0..).zip(places) {
        let request = Request {
            id,
            operation,
            first: *first,
            sectors: *sectors,
        };
        controller.submit(request, 0);
    }
    let (mut last, mut count) = (0, 0);
    while let Some(next) = controller.next_event() {
        while let Some(done) = controller.complete(next) {
            (last, count) = (done.at, count + 1);
        }
    }
    assert_eq!(count, places.len());
    last
}

fn scattered(count: u64) -> Vec<(u64, u32)> {
    (0..count).map(|at| (at * 7919 % 8000 * 128, 8)).collect()
}

#[test]
fn a_small_write_to_parity_costs_four_times_that_to_a_stripe() {
    // Without a cache: two reads and two writes in place of one write.
    let stripe = burst(
        &mut array(ArrayLayout::Stripe, 4, 0),
        WRITE,
        &scattered(400),
    );
    let parity = burst(
        &mut array(ArrayLayout::Parity, 4, 0),
        WRITE,
        &scattered(400),
    );
    let ratio = parity as f64 / stripe as f64;
    assert!((3.5..4.5).contains(&ratio), "{ratio}");
}

#[test]
fn a_mirror_reads_from_both_drives() {
    let stripe = burst(
        &mut array(ArrayLayout::Stripe, 4, 0),
        Operation::Read,
        &scattered(400),
    );
    let mirror = burst(
        &mut array(ArrayLayout::Mirror, 4, 0),
        Operation::Read,
        &scattered(400),
    );
    let ratio = mirror as f64 / stripe as f64;
    assert!((0.8..1.2).contains(&ratio), "{ratio}");
}

#[test]
fn a_write_to_a_mirror_goes_to_both_drives() {
    let stripe = burst(
        &mut array(ArrayLayout::Stripe, 4, 0),
        WRITE,
        &scattered(400),
    );
    let mirror = burst(
        &mut array(ArrayLayout::Mirror, 4, 0),
        WRITE,
        &scattered(400),
    );
    let ratio = mirror as f64 / stripe as f64;
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
}

#[test]
fn the_protected_cache_answers_until_it_is_full() {
    let few = burst(
        &mut array(ArrayLayout::Parity, 4, 65_536),
        WRITE,
        &scattered(100),
    );
    assert!(few < 2 * MS, "{few}");
    let mut cached = array(ArrayLayout::Parity, 4, 65_536);
    let request = Request {
        id: 0,
        operation: WRITE,
        first: 0,
        sectors: 8,
    };
    cached.submit(request, 0);
    assert!(cached.complete(MS).is_some());
    let mut full = array(ArrayLayout::Parity, 4, 64);
    for id in 0..100 {
        full.submit(
            Request {
                id,
                first: id * 1280,
                ..request
            },
            0,
        );
    }
    let early = std::iter::from_fn(|| full.complete(MS)).count();
    assert!((8..20).contains(&early), "{early}");
}

#[test]
fn full_stripes_are_written_without_reading() {
    // In one piece from the cache: 3 data drives and parity, 4 requests of drives a stripe.
    let whole: Vec<_> = (0..100).map(|at| (at * 384, 384)).collect();
    let parts: Vec<_> = (0..100).map(|at| (at * 384, 128)).collect();
    let whole = burst(&mut array(ArrayLayout::Parity, 4, 1 << 20), WRITE, &whole);
    let parts = burst(&mut array(ArrayLayout::Parity, 4, 0), WRITE, &parts);
    assert!(whole < parts, "{whole} against {parts}");
}

#[test]
fn an_array_of_too_few_drives_is_refused() {
    let parameters = ControllerParameters {
        layout: ArrayLayout::Mirror,
        chunk: 128,
        write_sectors: 0,
        overhead: 0,
        bus_sector: 0,
    };
    let odd = Controller::new(drives(3), parameters).err();
    assert!(matches!(
        odd,
        Some(ControllerError::Drives { drives: 3, .. })
    ));
    let parameters = ControllerParameters {
        layout: ArrayLayout::Stripe,
        chunk: 0,
        ..parameters
    };
    let chunk = Controller::new(drives(3), parameters).err();
    assert_eq!(chunk, Some(ControllerError::Chunk(0)));
}

proptest! {
    #[test]
    fn every_request_completes_once_after_it_came(
        layout in prop::sample::select(vec![
            ArrayLayout::Stripe, ArrayLayout::Mirror, ArrayLayout::Parity,
        ]),
        write_sectors in prop::sample::select(vec![0, 256, 65_536]),
        requests in prop::collection::vec(
            (0..10, 0_u64..1_000_000, 1_u32..1000, 0_u64..20_000_000),
            1..60,
        ),
    ) {
        let mut controller = array(layout, 4, write_sectors);
        let (mut now, mut done) = (0, Vec::new());
        for (id, (kind, first, sectors, pause)) in (0..).zip(&requests) {
            now += pause;
            while let Some(one) = controller.complete(now) {
                prop_assert!(one.at <= now);
                done.push(one.id);
            }
            let operation = match kind {
                0 => Operation::Flush,
                1 => Operation::Discard,
                2..=5 => WRITE,
                _ => Operation::Read,
            };
            let request = Request { id, operation, first: *first, sectors: *sectors };
            controller.submit(request, now);
        }
        while let Some(next) = controller.next_event() {
            while let Some(one) = controller.complete(next) {
                done.push(one.id);
            }
        }
        done.sort_unstable();
        prop_assert_eq!(done, (0..requests.len() as u64).collect::<Vec<_>>());
    }
}
