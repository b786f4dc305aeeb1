//! Records while the time of day is set.

use super::*;

/// A clock whose time of day can be set, and that goes on by a second where it waits.
#[derive(Default)]
struct Settable {
    passed: std::sync::atomic::AtomicU64,
    day: std::sync::atomic::AtomicU64,
}

impl Settable {
    fn set(&self, day: u64) {
        self.day.store(day, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Clock for Settable {
    fn now_ns(&self) -> u64 {
        self.passed.load(std::sync::atomic::Ordering::Relaxed) * 1_000_000_000
    }

    fn today(&self) -> String {
        let day = self.day.load(std::sync::atomic::Ordering::Relaxed);
        jiff::Timestamp::from_second(day as i64)
            .unwrap()
            .to_string()
    }

    fn sleep(&self, time: Duration) {
        for clock in [&self.passed, &self.day] {
            clock.fetch_add(time.as_secs(), std::sync::atomic::Ordering::Relaxed);
        }
    }
}

#[test]
fn how_long_a_run_took_does_not_rest_on_a_clock_that_is_set() {
    let second = Duration::from_secs(1);
    for (set_to, said) in [
        (1_700_000_005 - 3600, Some("set back by 1 h 00 min")),
        (1_700_000_005 + 86_400, Some("set forward by 24 h 00 min")),
        (0, Some("set back")),
        (1_700_000_006, None),
    ] {
        let (_dir, store) = store();
        let clock = Arc::new(Settable::default());
        clock.set(1_700_000_000);
        let given: Arc<dyn Clock> = Arc::<Settable>::clone(&clock);
        let (mut log, _) = store.create_run(head("r1"), Arc::clone(&given)).unwrap();
        let round = |round| Event::RoundStarted {
            round,
            order: vec![0],
            orders: Vec::new(),
        };
        log.append(round(1)).unwrap();
        clock.sleep(second * 5);
        assert_eq!(log.clock_was_set(), None);
        clock.set(set_to);
        clock.sleep(second * 2);
        let told = log.clock_was_set();
        assert_eq!(told.is_some(), said.is_some(), "{told:?}");
        let told = told.unwrap_or_default();
        assert!(told.contains(said.unwrap_or_default()), "{told}");
        assert_eq!(log.clock_was_set(), None, "told twice");
        log.append(Event::RoundFinished {
            round: 1,
            trials: None,
        })
        .unwrap();
        drop(log);
        // What passes before it goes on does not count, whatever the clock shows meanwhile.
        clock.sleep(second * 1000);
        let (mut log, _) = store.reopen_run("r1", given).unwrap();
        log.append(Event::RunResumed {
            stackrace: String::new(),
            rounds: 1,
        })
        .unwrap();
        clock.sleep(second * 3);
        log.append(round(2)).unwrap();
        let record = store.read("r1").unwrap();
        assert_eq!(record.elapsed_seconds(), 7.0 + 3.0, "{set_to}");
        assert_eq!(record.round_times()[0].seconds, 7.0);
    }
}

#[test]
fn the_last_run_is_the_one_begun_last_whatever_the_clock_shows() {
    let (_dir, store) = store();
    // By an older version: it noted no order.
    write(&store, "2026-11-21T1405-bbbb");
    std::fs::remove_file(store.dir().join("order")).unwrap();
    for run in [
        "2026-11-22T1405-bbbb",
        "2026-11-20T1405-cccc",
        "2026-11-20T1405-bbbb",
    ] {
        write(&store, run);
        assert_eq!(store.find("last").unwrap(), run);
    }
    let expected = [
        "2026-11-21T1405-bbbb",
        "2026-11-22T1405-bbbb",
        "2026-11-20T1405-cccc",
        "2026-11-20T1405-bbbb",
    ];
    assert_eq!(store.ids().unwrap(), expected);
    assert_eq!(store.all_but_newest(4).unwrap(), [""; 0]);
    // One that was copied into the store by hand has its place by its time.
    std::fs::write(store.dir().join("order"), "2026-11-20T1405-cccc\n").unwrap();
    assert_eq!(store.find("last").unwrap(), "2026-11-22T1405-bbbb");
}
