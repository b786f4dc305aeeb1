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
