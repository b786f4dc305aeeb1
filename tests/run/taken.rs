//! A run that goes on while another one measures in its directories.

use super::*;

/// One directory, measured until it is stopped.
const ONE: &str = study!(
    "One place",
    r#"place = ["one"]"#,
    [r#"dir = { path = "{place}" }"#],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", access = "uniform", time = "200 ms" }"#],
    1000
);

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

pub(crate) fn one_directory_alone_is_measured_by_one_run_at_a_time() {
    let ground = Ground::new();
    ground.make_dir("one");
    let begun = |log: &Log| !log.all("round-finished").is_empty();
    ground.write("one.toml", ONE);
    let mut first = start_until(&ground, &["run", "one.toml"], begun);
    let path = ground.path().join("one");
    let path = path.to_str().unwrap();
    // From another store: another user has one, too.
    let other = ground.path().join("other");
    let study = ["run", "one.toml", "--store", other.to_str().unwrap()];
    let load = ["load", path, "sequential", "mode=write", "size=1MiB"];
    for again in [&study[..], &load] {
        let refused = ground.stackrace(again);
        refused
            .ended(3)
            .err_has("another run of stackrace measures in ")
            .err_has("run one.toml --store ")
            .err_has("nothing was changed");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // The lock went with the process: nothing of it is left to be removed.
    ground.stackrace(&["clean"]).ended(0);
    ground.stackrace(&load).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}
