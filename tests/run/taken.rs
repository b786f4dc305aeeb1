//! A run that goes on while another one measures in its directories.

use super::*;

pub(crate) fn a_run_that_goes_on_notices_another_one_in_its_directories() {
    let ground = Ground::new();
    two_directories(&ground);
    let two_rounds = |log: &Log| log.all("round-finished").len() >= 2;
    let run = ["run", "places.toml", "--anyway"];
    let mut killed = start_until(&ground, &run, two_rounds);
    killed.kill().unwrap();
    killed.wait().unwrap();
    // Another user's, with a store of its own.
    let other = ground.path().join("other");
    let store = ["--rounds", "1000", "--store", other.to_str().unwrap()];
    let mut beside = ground
        .program(&[&run[..], &store].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let measures = || {
        let runs = fs::read_dir(other.join("runs")).into_iter().flatten();
        let mut logs = runs.flatten().map(|run| run.path().join("log.jsonl"));
        logs.any(|log| fs::read_to_string(log).is_ok_and(|log| log.contains("stack-set-up")))
    };
    while !measures() {
        assert_eq!(beside.try_wait().unwrap(), None, "it has ended");
        wait(10);
    }
    let before = Log::bytes(&ground);
    let told = "another run of stackrace measures in";
    let refused = ground.stackrace(&["resume"]);
    refused.ended(3).err_has(told).err_has("--anyway");
    assert_eq!(Log::bytes(&ground), before, "something was begun");
    ground.stackrace(&["resume", "--anyway"]).ended(0);
    let log = Log::of(&ground);
    let warned = log.all("warned").into_iter();
    let kept = warned.filter(|line| line.to_string().contains(told));
    // One for each directory: it is kept with the result.
    assert_eq!(kept.count(), 2);
    beside.kill().unwrap();
    beside.wait().unwrap();
    let clean = ["clean", "--store", other.to_str().unwrap()];
    ground.stackrace(&clean).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}
