//! What must hold of a disk whatever its parameters, and what they must bring.

use super::*;
use proptest::prelude::*;

const MS: Nanos = 1_000_000;

/// A small disk of 7200 rpm: 2 surfaces, 1000 tracks of 500 sectors, queue and write cache as asked.
fn disk(queue_depth: usize, write_sectors: u64, physical_sectors: u32) -> Disk {
    disk_with(queue_depth, write_sectors, physical_sectors, |_| ())
}

/// The same with some parameters changed.
fn disk_with(
    queue_depth: usize,
    write_sectors: u64,
    physical_sectors: u32,
    change: impl FnOnce(&mut DiskParameters),
) -> Disk {
    let zone = Zone {
        cylinders: 500,
        sectors_per_track: 500,
        data_sectors: None,
        // What a switch takes before a write: 1 ms and 1.5 ms of 8.3 ms.
        track_skew: 62,
        cylinder_skew: 92,
    };
    let mut parameters = DiskParameters {
        geometry: Geometry::new(vec![zone], 2, 7200.0).expect("a sound geometry"),
        seek: SeekCurve::from_data_sheet(500, MS, 8 * MS, 16 * MS).expect("a sound curve"),
        head_switch: MS / 2,
        write_settle: 500_000,
        settle_again: 0,
        overheads: Overheads::all(MS / 10),
        completion: [0; 2],
        bus_sector: [3_400; 2],
        cache: Cache {
            segments: 4,
            segment_sectors: 256,
            read_ahead: 256,
            rules: BufferRules::default(),
            write_sectors,
            destage_after: 10 * MS,
        },
        queue_depth,
        physical_sectors,
        phase: 0,
    };
    change(&mut parameters);
    Disk::new(parameters)
}

fn request(id: u64, operation: Operation, first: u64, sectors: u32) -> Request {
    Request {
        id,
        operation,
        first,
        sectors,
    }
}

const WRITE: Operation = Operation::Write { durable: false };
const DURABLE: Operation = Operation::Write { durable: true };

/// Submits requests at their instants and returns the completions in order.
fn run(disk: &mut Disk, requests: &[(Nanos, Request)]) -> Vec<Completion> {
    let (mut done, mut requests) = (Vec::new(), requests.iter().peekable());
    loop {
        let next = disk.next_event();
        match requests.peek() {
            Some((at, request)) if next.is_none_or(|next| *at <= next) => {
                disk.submit(*request, *at);
                requests.next();
            }
            _ => match next {
                Some(next) => done.extend(disk.complete(next)),
                None => return done,
            },
        }
    }
}

/// Time for `requests` all submitted at once.
fn burst(disk: &mut Disk, requests: impl Iterator<Item = Request>) -> Nanos {
    let requests: Vec<_> = requests.map(|request| (0, request)).collect();
    let done = run(disk, &requests);
    assert_eq!(done.len(), requests.len());
    done.iter().map(|done| done.at).max().unwrap_or(0)
}

/// Sectors all over the disk, the same at each call.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|at| at * 7_919_333 % 499_000 / 8 * 8)
}

#[test]
fn a_queue_makes_scattered_reads_faster() {
    let time = |depth| {
        let reads = scattered(200).zip(0..);
        let reads = reads.map(|(first, id)| request(id, Operation::Read, first, 8));
        burst(&mut disk(depth, 0, 1), reads)
    };
    assert!(
        time(32) * 4 < time(1) * 3,
        "{} against {}",
        time(32),
        time(1)
    );
}

#[test]
fn a_sequential_read_comes_at_the_rate_of_the_platter() {
    let mut disk = disk(1, 0, 1);
    let (mut now, sectors) = (0, 20_000_u64);
    for id in 0..sectors / 100 {
        disk.submit(request(id, Operation::Read, id * 100, 100), now);
        while disk.complete(now).is_none() {
            now = disk.next_event().expect("the read completes");
        }
    }
    // 500 sectors a revolution and the skew of 62 or 92 behind each.
    let tracks = sectors as f64 / 500.0;
    let expected = tracks * (1.0 + 77.0 / 500.0) * 60.0 / 7200.0 * 1e9;
    let ratio = now as f64 / expected;
    assert!((0.95..1.1).contains(&ratio), "{ratio}");
}

/// Sectors a second of a stream with so many requests under way, by its size in sectors.
fn stream(operation: Operation, depth: u64, sectors: u32) -> f64 {
    let mut disk = disk(32, 4096, 1);
    let (mut now, mut next, total) = (0, 0_u64, 60_000 / u64::from(sectors));
    for _ in 0..total {
        while next < total && next < depth {
            disk.submit(
                request(next, operation, next * u64::from(sectors), sectors),
                now,
            );
            next += 1;
        }
        let done = loop {
            if let Some(done) = disk.complete(now) {
                break done;
            }
            now = disk.next_event().expect("the stream goes on");
        };
        if next < total {
            disk.submit(
                request(next, operation, next * u64::from(sectors), sectors),
                done.at,
            );
            next += 1;
        }
    }
    (total * u64::from(sectors)) as f64 / (now as f64 / 1e9)
}

#[test]
fn streams_come_and_go_at_the_rate_of_the_platter() {
    // 500 sectors a revolution and the skew of 62 or 92 behind each.
    let platter = 500.0 * 120.0 / (1.0 + 77.0 / 500.0);
    for depth in [1, 2, 4, 32] {
        // The largest is longer than what the disk reads ahead.
        for sectors in [32, 128, 500] {
            for operation in [Operation::Read, WRITE] {
                let share = stream(operation, depth, sectors) / platter;
                // What the write cache still holds at the end has not been on the platter.
                assert!(
                    (0.9..1.15).contains(&share),
                    "{operation:?}, {depth} of {sectors} sectors: {share}"
                );
            }
        }
    }
}

#[test]
fn the_write_cache_answers_at_once_and_a_flush_waits_for_the_platter() {
    let mut disk = disk(32, 16_384, 1);
    let writes = scattered(50).zip(0..);
    let mut requests: Vec<_> = writes
        .map(|(first, id)| (0, request(id, WRITE, first, 8)))
        .collect();
    requests.push((0, request(99, Operation::Flush, 0, 0)));
    let done = run(&mut disk, &requests);
    let last_write = done.iter().filter(|done| done.id != 99).map(|done| done.at);
    assert!(last_write.max() < Some(10 * MS));
    let flush = done.iter().find(|done| done.id == 99).map(|done| done.at);
    assert!(flush > Some(100 * MS), "{flush:?}");
    assert_eq!(disk.dirty_sectors(), 0);
}

#[test]
fn a_durable_write_waits_for_the_platter_itself() {
    let mut disk = disk(32, 16_384, 1);
    let done = run(&mut disk, &[(0, request(1, DURABLE, 250_000, 8))]);
    assert!(done[0].at > 8 * MS);
    assert_eq!(disk.dirty_sectors(), 0);
}

#[test]
fn writes_that_continue_each_other_are_destaged_as_one() {
    // 1000 small writes in a row and a flush cost a few revolutions, not a thousand.
    let mut disk = disk(32, 16_384, 8);
    let mut requests: Vec<_> = (0..1000)
        .map(|id| (0, request(id, WRITE, id * 8, 8)))
        .collect();
    requests.push((0, request(1000, Operation::Flush, 0, 0)));
    let done = run(&mut disk, &requests);
    let flush = done.iter().find(|done| done.id == 1000).map(|done| done.at);
    assert!(flush < Some(300 * MS), "{flush:?}");
}

#[test]
fn a_write_of_part_of_a_physical_sector_costs_a_revolution_more() {
    let time = |first| {
        let mut disk = disk(1, 0, 8);
        run(&mut disk, &[(0, request(1, WRITE, first, 8))])[0].at
    };
    let revolution = 60_000_000_000 / 7200;
    let more = time(8_001) - time(8_000);
    assert!(more.abs_diff(revolution) < MS, "{more}");
}

#[test]
fn a_read_of_what_was_just_written_comes_from_the_cache() {
    let mut disk = disk(32, 16_384, 1);
    let write = (0, request(1, WRITE, 300_000, 8));
    let read = (MS, request(2, Operation::Read, 300_000, 8));
    let done = run(&mut disk, &[write, read]);
    let read = done.iter().find(|done| done.id == 2).map(|done| done.at);
    assert!(read < Some(2 * MS), "{read:?}");
}

#[test]
fn no_request_starves_behind_nearer_ones() {
    // Near requests keep coming, one far away waits.
    let mut requests = vec![(0, request(0, Operation::Read, 499_000, 8))];
    requests.extend((1..1500).map(|id| {
        let first = id * 7919 % 5000;
        (id * MS, request(id, Operation::Read, first, 1))
    }));
    let done = run(&mut disk(32, 0, 1), &requests);
    let far = done.iter().find(|done| done.id == 0).map(|done| done.at);
    assert!(far < Some(700 * MS), "{far:?}");
}

prop_compose! {
    fn any_request()(
        kind in 0..10,
        first in 0_u64..600_000,
        sectors in 1_u32..300,
    ) -> (Operation, u64, u32) {
        match kind {
            0 => (Operation::Flush, 0, 0),
            1 => (DURABLE, first, sectors),
            2..=5 => (WRITE, first, sectors),
            _ => (Operation::Read, first, sectors),
        }
    }
}

proptest! {
    #[test]
    fn every_request_completes_once_after_it_came_and_the_same_each_time(
        requests in prop::collection::vec((any_request(), 0_u64..20_000_000), 1..60),
        queue_depth in 1_usize..40,
        write_sectors in prop::sample::select(vec![0, 64, 16_384]),
        physical in prop::sample::select(vec![1, 8]),
    ) {
        let mut at = 0;
        let requests: Vec<_> = requests
            .into_iter()
            .zip(0..)
            .map(|(((operation, first, sectors), pause), id)| {
                at += pause;
                (at, request(id, operation, first, sectors))
            })
            .collect();
        let again = || run(&mut disk(queue_depth, write_sectors, physical), &requests);
        let done = again();
        prop_assert_eq!(&done, &again());
        let mut ids: Vec<_> = done.iter().map(|done| done.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..requests.len() as u64).collect::<Vec<_>>());
        prop_assert!(done.windows(2).all(|pair| pair[0].at <= pair[1].at));
        for done in &done {
            prop_assert!(done.at >= requests[done.id as usize].0);
        }
    }

    #[test]
    fn a_flush_leaves_nothing_dirty_of_what_was_acknowledged_before(
        firsts in prop::collection::vec(0_u64..490_000, 1..60),
    ) {
        let mut disk = disk(32, 16_384, 8);
        let mut requests: Vec<_> = firsts
            .iter()
            .zip(0..)
            .map(|(first, id)| (0, request(id, WRITE, *first, 16)))
            .collect();
        let flush = requests.len() as u64;
        requests.push((0, request(flush, Operation::Flush, 0, 0)));
        let done = run(&mut disk, &requests);
        prop_assert_eq!(done.last().map(|done| done.id), Some(flush));
        prop_assert_eq!(disk.dirty_sectors(), 0);
    }
}

/// Time of the last of these requests, each sent half a second after the one before it.
fn last(rules: BufferRules, requests: &[(Operation, u64, u32)]) -> Nanos {
    last_of(disk_with(1, 512, 1, |it| it.cache.rules = rules), requests)
}

/// The same on a disk.
fn last_of(mut disk: Disk, requests: &[(Operation, u64, u32)]) -> Nanos {
    let sent = requests
        .iter()
        .zip(0..)
        .map(|((operation, first, sectors), id)| {
            (id * 500 * MS, request(id, *operation, *first, *sectors))
        });
    let sent: Vec<_> = sent.collect();
    let done = run(&mut disk, &sent);
    done.iter().map(|done| done.at).max().unwrap_or(0) - (sent.len() as Nanos - 1) * 500 * MS
}

/// A read that no part of the platter is needed for takes less.
const HIT: Nanos = MS / 2;

#[test]
fn what_the_host_has_fetched_is_dropped_kept_or_overwritten_as_the_rules_say() {
    // The same sectors again; reading ahead has filled the segment meanwhile.
    let again = [(Operation::Read, 1000, 8), (Operation::Read, 1000, 8)];
    let behind = [(Operation::Read, 1000, 8), (Operation::Read, 1008, 8)];
    for (fetched, hit) in [
        (Fetched::Kept, true),
        (Fetched::Dropped, false),
        (Fetched::Overwritten, false),
    ] {
        let rules = BufferRules {
            fetched,
            ..BufferRules::default()
        };
        assert_eq!(last(rules, &again) < HIT, hit, "{fetched:?}");
        assert!(last(rules, &behind) < HIT, "{fetched:?}");
    }
}

#[test]
fn reading_ahead_ends_where_the_rules_say() {
    // The first track ends at 500, the first cylinder at 1000.
    for (until, over_track, over_cylinder) in [
        (ReadAheadUntil::Full, true, true),
        (ReadAheadUntil::Cylinder, true, false),
        (ReadAheadUntil::Track, false, false),
    ] {
        let rules = BufferRules {
            until,
            ..BufferRules::default()
        };
        let hit = |first| {
            let reads = [
                (Operation::Read, first, 8),
                (Operation::Read, first + 40, 8),
            ];
            last(rules, &reads) < HIT
        };
        assert_eq!(hit(480), over_track, "{until:?}");
        assert_eq!(hit(980), over_cylinder, "{until:?}");
        assert!(hit(100), "{until:?}");
    }
}

#[test]
fn sectors_that_pass_before_those_of_a_read_are_kept_only_by_rule() {
    let hits = |passing| {
        let rules = BufferRules {
            passing,
            fetched: Fetched::Kept,
            ..BufferRules::default()
        };
        // Reading ahead would take their room.
        let without_reading_ahead = || {
            disk_with(1, 0, 1, |it| {
                it.cache.rules = rules;
                it.cache.read_ahead = 0;
            })
        };
        // Where the platter stands differs from place to place.
        let before = (1..40_u64).map(|at| at * 11_000 + 200);
        let hit = before.filter(|at| {
            let reads = [(Operation::Read, *at, 8), (Operation::Read, at - 8, 8)];
            last_of(without_reading_ahead(), &reads) < HIT
        });
        hit.count()
    };
    // Now and then the platter stands just right.
    let (with, without) = (hits(true), hits(false));
    assert!(
        without < 5 && (without + 8..=39).contains(&with),
        "{with} against {without}"
    );
}

#[test]
fn written_data_are_read_from_the_buffer_as_the_rules_say() {
    let again = [(WRITE, 1000, 8), (Operation::Read, 1000, 8)];
    for (written, hit) in [
        (Written::Kept, true),
        // They are on the platter by then.
        (Written::UntilDestaged, false),
        (Written::NotRead, false),
    ] {
        let rules = BufferRules {
            written,
            ..BufferRules::default()
        };
        assert_eq!(last(rules, &again) < HIT, hit, "{written:?}");
    }
}

#[test]
fn a_command_settles_again_only_on_the_track_where_the_arm_stands() {
    let time = |settle_again, first| {
        let mut disk = disk_with(1, 0, 1, |it| it.settle_again = settle_again);
        // The second one waits for a part of a turn, which the settling takes from it.
        let writes = [
            (0, request(0, WRITE, 0, 8)),
            (100 * MS, request(1, WRITE, first, 8)),
        ];
        run(&mut disk, &writes).iter().map(|done| done.at).max()
    };
    let turn = 60_000 * MS / 7200;
    // More than a turn is never hidden.
    assert_eq!(time(0, 400).map(|at| at + turn), time(turn, 400));
    assert_eq!(time(0, 100_000), time(turn, 100_000));
}
