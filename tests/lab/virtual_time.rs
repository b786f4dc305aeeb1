//! Runs in virtual time: the same study gives the same log, byte for byte.

use super::*;

/// Both file systems on a modelled disk, as short as a study can be.
const MODELLED: &str = r#"
title = "a modelled disk"
seed = 7
[factors]
filesystem = ["ext4", "xfs"]
[[stack]]
lab-disks = { model = "seagate-st3000dm001", size = "2 GiB" }
[[stack]]
"{filesystem}" = {}
[[workload]]
files = { count = 50 }
[decide]
rounds-at-most = 2
until = "never"
"#;

/// The same, with a second workload in each guest.
fn two_trials_a_guest() -> String {
    let second = r#"[[workload]]
random = { mode = "read", size = "4 MiB", access = "uniform", operations = 50, time = "1 min" }
[decide]"#;
    MODELLED.replace("[decide]", second)
}

/// The only log of a new store, and what stands beside it.
fn made(jobs: &str) -> (String, Value) {
    let ground = Ground::new();
    let study = ground.write("study.toml", MODELLED);
    let study = study.to_str().unwrap();
    let said = ground.stackrace(&["run", study, "--lab", "--jobs", jobs]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let runs = fs::read_dir(ground.store().join("runs")).unwrap();
    let run = runs.map(|entry| entry.unwrap().path()).next().unwrap();
    let beside = fs::read(run.join("made-on.json")).unwrap();
    (
        fs::read_to_string(run.join("log.jsonl")).unwrap(),
        serde_json::from_slice(&beside).unwrap(),
    )
}

/// However many guests run side by side, and however busy the machine is meanwhile.
pub(super) fn the_log_does_not_depend_on_the_number_of_jobs() {
    let (one, _) = made("1");
    for jobs in ["2", "4"] {
        let (log, beside) = made(jobs);
        let lines = one.lines().zip(log.lines());
        // A line, not a whole log: it says what differs.
        for (expected, line) in lines {
            assert_eq!(line, expected, "with --jobs {jobs}");
        }
        assert_eq!(log.len(), one.len(), "with --jobs {jobs}");
        assert_eq!(beside["jobs"].to_string(), jobs);
    }
    let complete = one
        .lines()
        .filter(|line| line.contains(r#""state":"complete""#));
    assert_eq!(complete.count(), 4);
}

/// What each trial of a log has measured, by its place in the design.
fn measured(log: &[Value]) -> std::collections::BTreeMap<[u64; 3], Value> {
    let trials = of_kind(log, "trial");
    let found: std::collections::BTreeMap<_, _> = trials
        .iter()
        .map(|trial| {
            assert_eq!(trial["ended"]["state"], "complete", "{trial}");
            let place = ["round", "configuration", "workload"];
            let place = place.map(|word| trial[word].as_u64().unwrap());
            (place, trial["phases"].clone())
        })
        .collect();
    assert_eq!(found.len(), trials.len(), "a place was filled twice");
    found
}

/// The trials that are missing are those of the run that was not killed, to the last digit.
pub(super) fn a_killed_run_in_virtual_time_goes_on_as_if_nothing_had_happened() {
    let whole = Ground::new();
    whole.write("study.toml", two_trials_a_guest());
    let args = ["run", "study.toml", "--lab", "--jobs", "1"];
    whole.stackrace(&args).ended(0);
    let expected = measured(&log(&whole));
    assert_eq!(expected.len(), 8);

    let ground = Ground::new();
    ground.write("study.toml", two_trials_a_guest());
    let mut command = ground.program(&args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    // An odd number: the third guest still has a workload to do.
    until(&mut program, "five trials", || {
        of_kind(&log(&ground), "trial").len() >= 5
    });
    program.kill().unwrap();
    program.wait().unwrap();
    let before = log(&ground);
    assert!(of_kind(&before, "run-ended").is_empty());
    ground.stackrace(&["clean"]).ended(0);
    ground.stackrace(&["resume"]).ended(0);
    let after = log(&ground);
    assert_eq!(
        after[..before.len()],
        before[..],
        "what was kept has changed"
    );
    assert_eq!(of_kind(&after, "run-resumed").len(), 1);
    assert_eq!(measured(&after), expected);
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
}
