//! Studies: a refusal has a place, and an accepted study can be planned.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::others::carried_out;
use stackrace_study::plan::{Bounds, MachineFacts, Plan, StorageSpeed, order};
use stackrace_study::study::{self, Kinds, Study};

/// Most configurations that are also planned: a plan's cost grows with them, a check's must not.
const PLANNED_MAX: usize = 64;

/// Most refusals that are also shown.
const RENDERED_MAX: usize = 4;

/// The text of a study.
pub fn study(data: &[u8]) {
    match study::parse("a study.toml", data, &Kinds::real()) {
        Ok(study) => taken(&study, data),
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in &errors {
                assert!(!error.refusal.message.is_empty());
                let text = std::str::from_utf8(data).unwrap_or_default();
                let places = error.refusal.span.iter();
                for span in places.chain(error.context.iter().map(|(span, _)| span)) {
                    assert!(text.get(span.clone()).is_some(), "{span:?} is no place");
                }
            }
            for error in errors.iter().take(RENDERED_MAX) {
                assert!(!error.render(false).is_empty());
            }
            assert!(!errors[0].render(true).is_empty());
        }
    }
}

fn taken(study: &Study, data: &[u8]) {
    assert_eq!(study.text.as_bytes(), data);
    let decide = &study.decide;
    assert!(decide.margin > 0.0 && decide.margin <= 1.0);
    assert!((0.5..=0.9999).contains(&decide.confidence));
    assert!((1..=10_000).contains(&decide.rounds_max));
    assert!(decide.time_max_ns > 0);
    assert!(!study.configurations.is_empty());
    let names: HashSet<&str> = study
        .configurations
        .iter()
        .map(|t| t.name.as_str())
        .collect();
    assert_eq!(names.len(), study.configurations.len(), "names collide");
    for configuration in &study.configurations {
        assert_eq!(configuration.levels.len(), study.factors.len());
        assert_eq!(configuration.workloads.len(), study.workload_heads.len());
        assert!(!configuration.stack.layers.is_empty());
        for layer in &configuration.stack.layers {
            assert!(!layer.describe_asked().is_empty());
            layer.disk_needed();
        }
        for (workload, head) in configuration.workloads.iter().zip(&study.workload_heads) {
            assert!(head.metrics.starts_with(&workload.metrics()));
            assert!(!workload.summary().is_empty());
            assert!(!workload.phases().is_empty());
        }
    }
    for head in &study.workload_heads {
        assert!(head.weight >= 0.0 && head.weight.is_finite());
        assert!(!head.name.trim().is_empty() && !head.metrics.is_empty());
    }
    study.trial_disk_bytes();
    study.working_set_bytes();
    if study.configurations.len() <= PLANNED_MAX {
        planned(study);
        carried_out(study);
    }
}

fn planned(study: &Study) {
    let machine = MachineFacts {
        commands: &|_, _| Ok(vec!["true".to_owned()]),
        missing: &|| Vec::new(),
        free_bytes: &|_| Some(1 << 40),
        speed: StorageSpeed::Modelled(Bounds {
            least: 1e9,
            most: 1e9,
        }),
        memory_bytes: Some(1 << 34),
        scratch: Path::new("/scratch"),
    };
    let plan = Plan::of(study, &machine);
    assert!(!plan.render(stackrace_study::plan::COLUMNS).is_empty());
    assert!(serde_json::to_string(&plan).is_ok());
    let everyone: Vec<usize> = (0..study.configurations.len()).collect();
    let mut round = order(study.seed, &study.hash(), 7, &everyone);
    round.sort_unstable();
    assert_eq!(round, everyone, "a round is not everyone once");
}

/// The study `compare` writes for directories of any names, one in each line: it is understood,
/// and means these directories.
pub fn compare(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for line in text.split('\0').take(8) {
        // As canonicalize(3) gives them: absolute, without `.`, `..` and double slashes.
        let path: PathBuf = Path::new("/")
            .components()
            .chain(Path::new(line).components())
            .filter(|part| !matches!(part, std::path::Component::ParentDir))
            .collect();
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    if paths.len() < 2 {
        return;
    }
    let written = crate::commands::compare::written_for(&paths);
    let study = match study::parse("compare", written.as_bytes(), &Kinds::real()) {
        Ok(study) => study,
        Err(errors) => panic!("{written}\n{}", errors[0]),
    };
    assert_eq!(study.configurations.len(), paths.len());
    for (level, path) in study.factors[0].levels.iter().zip(&paths) {
        assert_eq!(Path::new(&level.value.as_words()), path);
    }
}
