//! Phases that alternate, on files that do no I/O or little.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::spec::{Content, Durability, IoEngine, IoTarget, Pacing, Spec, Stop};
use crate::{Control, Op, PhaseEnd, PhaseOutcome, StartError, run};

const PART_NS: u64 = 2_000_000;

/// The phases at the same time, each in a thread of its own.
fn alternate(specs: &[Spec], part_ns: u64) -> Vec<Result<PhaseOutcome, StartError>> {
    let seats = Alternation::seats(specs.len(), part_ns);
    std::thread::scope(|scope| {
        let phases: Vec<_> = specs
            .iter()
            .zip(seats)
            .map(|(spec, seat)| {
                scope.spawn(move || {
                    let control = Control {
                        seat: Some(seat),
                        ..Control::default()
                    };
                    run(spec, &control)
                })
            })
            .collect();
        phases
            .into_iter()
            .map(|phase| phase.join().unwrap())
            .collect()
    })
}

fn on(directory: &Path, name: &str) -> Spec {
    let path = directory.join(name);
    std::fs::write(&path, vec![0; 1 << 20]).unwrap();
    Spec {
        content: Content::Zero,
        ..Spec::reads(
            vec![IoTarget {
                path,
                bytes: 1 << 20,
            }],
            4096,
        )
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

#[test]
fn a_phase_alternates_until_its_own_time_is_over() {
    let directory = directory();
    for engine in [IoEngine::Null, IoEngine::Sync] {
        let specs = ["a", "b", "c"].map(|name| Spec {
            engine,
            stop: Stop {
                ops: None,
                time_ns: Some(10 * PART_NS),
            },
            ..on(directory.path(), name)
        });
        for outcome in alternate(&specs, PART_NS) {
            let outcome = outcome.unwrap();
            assert_eq!(outcome.ended, PhaseEnd::Complete);
            let total: u64 = outcome.parts.iter().map(|part| part.ops).sum();
            assert_eq!(
                total, outcome.ops[0].count,
                "every operation belongs to a part"
            );
            let bytes: u64 = outcome.parts.iter().map(|part| part.bytes).sum();
            assert_eq!(bytes, outcome.ops[0].bytes);
            // The phase's own clock stood still while the others had their parts.
            let active: u64 = outcome.parts.iter().map(|part| part.ns).sum();
            assert!(
                outcome.elapsed_ns <= active,
                "{} of {active}",
                outcome.elapsed_ns
            );
            assert!(outcome.elapsed_ns >= 10 * PART_NS);
        }
    }
}

#[test]
fn every_second_lap_goes_backwards() {
    let directory = directory();
    let specs = ["a", "b"].map(|name| Spec {
        engine: IoEngine::Null,
        stop: Stop {
            ops: None,
            // Many more than are looked at: on a busy machine a part may take the time of several.
            time_ns: Some(40 * PART_NS),
        },
        ..on(directory.path(), name)
    });
    let places: Vec<Vec<u32>> = alternate(&specs, PART_NS)
        .into_iter()
        .map(|outcome| {
            outcome
                .unwrap()
                .parts
                .iter()
                .map(|part| part.position)
                .collect()
        })
        .collect();
    // The last part may be alone, when the other phase has ended.
    assert_eq!(places[0][..4], [0, 1, 0, 1]);
    assert_eq!(places[1][..4], [1, 0, 1, 0]);
}

#[test]
fn a_part_ends_with_nothing_left_to_sync() {
    let directory = directory();
    for (engine, queue_depth) in [(IoEngine::Sync, 1), (IoEngine::Auto, 4)] {
        let specs = ["a", "b"].map(|name| Spec {
            engine,
            queue_depth,
            read_share: 0.0,
            stop: Stop {
                ops: Some(40),
                time_ns: None,
            },
            durability: Durability {
                // Never reached by counting: every fsync is one that ends a part.
                fsync_every: NonZeroU64::new(1000),
                ..Durability::default()
            },
            ..on(directory.path(), name)
        });
        // Each operation outlasts its part.
        for outcome in alternate(&specs, 1) {
            let outcome = outcome.unwrap();
            let count = |op| {
                outcome
                    .ops
                    .iter()
                    .find(|it| it.op == op)
                    .map_or(0, |it| it.count)
            };
            assert_eq!(count(Op::Write), 40);
            let ended_by_the_next = outcome.parts.len() as u64 - 1;
            assert!(ended_by_the_next > 1);
            assert!(count(Op::Fsync) >= ended_by_the_next, "{engine:?}");
        }
    }
}

#[test]
fn an_open_loop_offers_nothing_while_it_waits() {
    let directory = directory();
    let specs = ["a", "b"].map(|name| Spec {
        engine: IoEngine::Null,
        pacing: Pacing::Fixed(5_000.0),
        stop: Stop {
            ops: None,
            time_ns: Some(10 * PART_NS),
        },
        ..on(directory.path(), name)
    });
    for outcome in alternate(&specs, PART_NS) {
        let outcome = outcome.unwrap();
        // 20 ms of its own time at 5 a millisecond; 200 if the other's time passed as well.
        assert_eq!(outcome.ops[0].count + outcome.unissued, 100);
    }
}

#[test]
fn a_phase_that_cannot_start_keeps_no_other_waiting() {
    let directory = directory();
    let sound = Spec {
        stop: Stop {
            ops: Some(100),
            time_ns: None,
        },
        ..on(directory.path(), "a")
    };
    let missing = Spec {
        targets: vec![IoTarget {
            path: directory.path().join("none"),
            bytes: 4096,
        }],
        ..sound.clone()
    };
    let endless = Spec {
        stop: Stop::default(),
        ..sound.clone()
    };
    let ended = alternate(&[missing, sound, endless], PART_NS);
    assert!(ended[0].is_err() && ended[2].is_err());
    assert_eq!(ended[1].as_ref().unwrap().ops[0].count, 100);
}

#[test]
fn an_observer_is_told_of_both_ends_of_each_part_and_of_no_other_phase() {
    let directory = directory();
    let told = Arc::new(Mutex::new(Vec::new()));
    let running = Arc::new(AtomicUsize::new(0));
    let spec = Spec {
        engine: IoEngine::Null,
        threads: 2,
        stop: Stop {
            ops: None,
            time_ns: Some(4 * PART_NS),
        },
        ..on(directory.path(), "a")
    };
    let seats = Alternation::seats(2, PART_NS).into_iter().enumerate();
    let parts: Vec<usize> = std::thread::scope(|scope| {
        let phases: Vec<_> = seats
            .map(|(index, seat)| {
                let (told, running, spec) = (Arc::clone(&told), Arc::clone(&running), &spec);
                let seat = seat.observed(Box::new(move |moment| {
                    let others = match moment {
                        PartMoment::Begins => running.fetch_add(1, Ordering::SeqCst),
                        PartMoment::Ended => running.fetch_sub(1, Ordering::SeqCst) - 1,
                    };
                    told.lock().unwrap().push((index, moment, others));
                }));
                let control = Control {
                    seat: Some(seat),
                    ..Control::default()
                };
                scope.spawn(move || run(spec, &control).unwrap().parts.len())
            })
            .collect();
        phases
            .into_iter()
            .map(|phase| phase.join().unwrap())
            .collect()
    });
    let told = told.lock().unwrap();
    assert!(told.iter().all(|(_, _, others)| *others == 0), "{told:?}");
    for (index, parts) in parts.into_iter().enumerate() {
        let of = told.iter().filter(|(phase, _, _)| *phase == index);
        let moments: Vec<_> = of.map(|(_, moment, _)| *moment).collect();
        assert_eq!(
            moments,
            [PartMoment::Begins, PartMoment::Ended].repeat(parts)
        );
    }
}

#[test]
fn a_phase_that_waits_can_be_stopped() {
    let mut seats = Alternation::seats(2, PART_NS);
    let waits = seats.pop().unwrap();
    // The other phase is never set up, so that no part begins.
    waits.enter(1);
    assert_eq!(waits.begin(0, || true), None);
    seats[0].give_up();
    assert!(waits.begin(0, || false).is_some(), "the other has left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Workers that do steps of random number, some stopped early: all end, none at the same
    /// time as one of another phase.
    #[test]
    fn one_phase_at_a_time_and_all_come_to_their_end(
        phases in prop::collection::vec(prop::collection::vec(1..6_u64, 1..4), 1..4)
    ) {
        let running: Vec<AtomicUsize> = phases.iter().map(|_| AtomicUsize::new(0)).collect();
        let seats = Alternation::seats(phases.len(), 1);
        let one = Progress { ops: 1, bytes: 1, latency_ns: 1 };
        let overlaps = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for (index, (workers, seat)) in phases.iter().zip(&seats).enumerate() {
                let (running, overlaps) = (&running, &overlaps);
                scope.spawn(move || {
                    seat.enter(workers.len());
                    std::thread::scope(|scope| for &steps in workers {
                        scope.spawn(move || {
                            let mut last = 0;
                            for step in 0..steps {
                                if step > 0 {
                                    seat.finish_part(one);
                                }
                                last = seat.begin(last, || false).unwrap().part;
                                running[index].fetch_add(1, Ordering::SeqCst);
                                std::thread::yield_now();
                                let others = running.iter().enumerate()
                                    .filter(|(other, _)| *other != index)
                                    .map(|(_, count)| count.load(Ordering::SeqCst));
                                overlaps.fetch_add(others.sum(), Ordering::SeqCst);
                                running[index].fetch_sub(1, Ordering::SeqCst);
                            }
                            seat.retire(one);
                        });
                    });
                    let (_, parts) = seat.leave();
                    let done: u64 = parts.iter().map(|part| part.ops).sum();
                    assert_eq!(done, workers.iter().sum::<u64>());
                });
            }
        });
        prop_assert_eq!(overlaps.into_inner(), 0);
    }
}
