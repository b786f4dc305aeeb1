//! What `--print-study` shows is what runs.

use proptest::prelude::*;

use super::*;

fn share() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(0.501..0.999_f64)
}

proptest! {
    /// The study that `--print-study` shows, when it is run, is the comparison with all its flags.
    #[test]
    fn the_printed_study_is_the_one_that_runs(
        (margin, confidence) in (share(), share()),
        seed in prop::option::of(0..=i64::MAX as u64),
        time_ns in 1_000_000_000..86_400_000_000_000_u64,
        size in prop::option::of((1_u64 << 20)..1 << 34),
        (each, warm, priced) in any::<(bool, bool, bool)>(),
        rounds_max in prop::option::of(1..=ROUNDS_MAX),
        until_decided in any::<bool>(),
    ) {
        let until_decided = until_decided && rounds_max.is_none();
        let overrides = Overrides {
            margin, confidence, seed, rounds_max, until_decided, each, ..Overrides::default()
        };
        let request = CompareRequest {
            time_ns,
            size,
            warm,
            overrides,
            costs: match priced {
                true => ["73 EUR", "120.5 EUR"].map(|it| Price::read(it).unwrap()).to_vec(),
                false => Vec::new(),
            },
            ..request_for(&["/srv/a".into(), "/srv/b \"quoted\"".into()])
        };
        let sides = sides_of(&request.directories);
        let mut parts = Shape::of(request.purpose, time_ns, sides.len()).unsized_parts();
        if let Some(size) = size {
            parts.iter_mut().for_each(|part| part.size.bytes = size);
        }
        let plain = study(&request, &sides, &parts);
        let printed = overrides.written_with_limits(overrides.written(plain.clone())).text();
        let printed = study_file::parse("compare", printed.as_bytes());
        let printed = printed.map_err(|failure| failure.render()).unwrap();
        // Once more from the flags themselves.
        let mut runs = typed::made(plain.clone()).ok().unwrap();
        overrides.apply(&mut runs);
        prop_assert_eq!(&printed.decide, &runs.decide);
        prop_assert_eq!(&printed.title, &runs.title);
        prop_assert_eq!(printed.policy, runs.policy);
        let levels = |study: &Study| {
            let levels = study.factors.iter().flat_map(|factor| factor.levels.clone());
            levels.map(|level| (level.label, level.value, level.cost)).collect::<Vec<_>>()
        };
        prop_assert_eq!(levels(&printed), levels(&runs));
        let work = |study: &Study| {
            let all = study.configurations.iter().map(|one| {
                let work = one.workloads.iter().map(|work| work.summary());
                (one.name.clone(), one.stack.layers.len(), work.collect::<Vec<_>>())
            });
            (format!("{:?}", study.workload_heads), all.collect::<Vec<_>>())
        };
        prop_assert_eq!(work(&printed), work(&runs));
        let limited = rounds_max.is_none() && !until_decided;
        let limit = if limited { time_ns } else { study_file::NO_LIMIT_NS };
        prop_assert_eq!(printed.decide.time_max_ns, limit);
        prop_assert_eq!(printed.decide.until == stackrace_base::event::Until::Each, each);
        prop_assert_eq!(printed.policy.drop_caches, !warm);
        if let Some(seed) = seed {
            prop_assert_eq!(printed.seed, seed);
        }
        if let Some(size) = size {
            let plain = plain.text();
            prop_assert!(plain.contains(&format!("{size}")), "{plain}");
        }
    }
}

#[test]
fn memory_is_refused_where_something_is_asked_of_storage() {
    let directories = ["/srv/a".into(), "/srv/b".into()];
    let on = |file_system: &str, count: usize| {
        let mut sides = sides_of(&directories[..count]);
        for side in &mut sides {
            file_system.clone_into(&mut side.lies_on.file_system);
        }
        sides
    };
    let plain = request_for(&directories[..1]);
    let purpose = CompareRequest {
        purpose: stackrace_study::purpose::find("etcd").unwrap(),
        ..request_for(&directories[..1])
    };
    let required = CompareRequest {
        required: vec![RequiredBound {
            metric: "fsync latency p99".to_owned(),
            bound: "<= 10 ms".to_owned(),
            source: None,
        }],
        ..request_for(&directories[..1])
    };
    assert_eq!(in_memory(&on("tmpfs", 1), &plain), None);
    assert_eq!(in_memory(&on("ext4", 1), &required), None);
    assert_eq!(in_memory(&on("tmpfs", 2), &required), None);
    for asked in [&purpose, &required] {
        let said = in_memory(&on("tmpfs", 1), asked).unwrap();
        assert!(said.starts_with("/srv/a lies in memory (tmpfs)"), "{said}");
    }
}
