//! `--clients`: one directory measured by several clients at the same time. They are this machine under
//! several names, each with an sshd login of its own.

use super::*;

/// Two directories, measured by all clients.
pub(crate) const SHARED: &str = study!(
    "two directories of several clients",
    r#"place = ["here", "there"]"#,
    [r#"dir = { path = "GROUND/{place}" }"#],
    [
        r#"sequential = { mode = "write", size = "4 MiB", time = "300 ms", passes = 0 }"#,
        r#"random = { mode = "read", size = "2 MiB", block-size = "4 KiB", time = "300 ms", passes = 0 }"#
    ],
    3
);

/// A ground with the directories and the study, a server, and three names of it.
fn with_clients() -> (Ground, Server, String) {
    let (ground, server) = with_directories();
    let study = SHARED.replace("GROUND", ground.path().to_str().unwrap());
    ground.write("study.toml", study);
    let clients = know_clients(&ground, &server, 3);
    (ground, server, clients)
}

/// So many names of a server, as `--clients` is told.
pub(crate) fn know_clients(ground: &Ground, server: &Server, count: usize) -> String {
    let to = server.to();
    let host = fs::read_to_string(ground.path().join("host.pub")).unwrap();
    let port = server.port;
    let names = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "localhost"];
    let known = names.map(|name| format!("[{name}]:{port} {host}"));
    ground.write("known", known.concat());
    let clients = names.map(|name| to.replace("127.0.0.1", name));
    format!("ssh:{}", clients[..count].join(","))
}

/// Checks that every trial was measured by so many processes, and that nothing is left.
pub(crate) fn each_of_trials(ground: &Ground, processes: usize) {
    let log = log(ground);
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 2 * 2 * 3);
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
        assert_eq!(
            trial["clients"]["each"].as_array().unwrap().len(),
            processes
        );
    }
    for place in ["here", "there"] {
        let left = fs::read_dir(ground.path().join(place)).unwrap();
        assert_eq!(left.count(), 0, "something is left in {place}");
    }
}

/// Checks that the lines that were there are as they were, and that complete trials have followed.
pub(crate) fn went_on(ground: &Ground, before: &[Value]) {
    let after = log(ground);
    assert_eq!(
        after[..before.len()],
        before[..],
        "what was kept has changed"
    );
    let later = of_kind(&after[before.len()..], "trial");
    assert!(!later.is_empty());
    for trial in later {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
    }
}

/// The number at a path of a trial.
fn number(trial: &Value, path: &str) -> f64 {
    let found = trial.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no {path} in {trial}"))
}

pub(crate) fn clients_measure_one_storage_at_the_same_time() {
    let (ground, _server, clients) = with_clients();
    let words = [
        "run",
        "study.toml",
        "--clients",
        &clients,
        "--processes",
        "2",
    ];
    stackrace(&ground, &words).ended(0);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 2 * 2 * 3);
    for trial in &trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
        let each = trial["clients"]["each"].as_array().unwrap();
        assert_eq!(each.len(), 6);
        let sum = |name: &str| -> f64 {
            let of = |part: &Value| number(part, &format!("/phases/0/{name}"));
            each.iter().map(of).sum()
        };
        // What all did together is what each did, added up.
        let whole = trial["phases"][0]["operations"].as_array().unwrap();
        let whole = whole.iter().filter(|op| op["op"] != "fsync");
        let whole: f64 = whole.map(|op| op["count"].as_f64().unwrap()).sum();
        assert_eq!(whole, sum("operations"), "{trial}");
        // Everybody was at work for a while, and did no more in it than in all.
        assert!(number(trial, "/clients/phases/0/window_ns") > 0.0);
        assert!(sum("window_operations") <= whole, "{trial}");
        assert!(sum("window_operations") > 0.0, "{trial}");
    }
    // Another client is the first in each round.
    let firsts: Vec<&str> = (1..=3)
        .map(|round| {
            let mut of_round = trials.iter().filter(|trial| trial["round"] == round);
            let trial = of_round.next().unwrap();
            trial["clients"]["each"][0]["client"].as_str().unwrap()
        })
        .collect();
    assert!(
        firsts[0] != firsts[1] && firsts[1] != firsts[2],
        "{firsts:?}"
    );
    let head = &log[0];
    let metrics = head["workloads"][0]["metrics"].as_array().unwrap();
    let window = metrics
        .iter()
        .filter(|it| it["name"] == "throughput, all at work");
    assert_eq!(window.count(), 1, "{head}");
    for place in ["here", "there"] {
        let left = fs::read_dir(ground.path().join(place)).unwrap();
        assert_eq!(left.count(), 0, "something is left in {place}");
    }
    let report = stackrace(&ground, &["report", "last"]);
    report.ended(0);
}

pub(crate) fn clients_that_make_no_sense_are_refused_before_anything_is_touched() {
    let (ground, server, clients) = with_clients();
    let run = |clients: &str| stackrace(&ground, &["run", "study.toml", "--clients", clients]);
    let to = server.to();
    run(&format!("ssh:{to},{to}")).ended(2).err_has("twice");
    run("rsh:a,b").ended(2).err_has("ssh:HOST");
    run("a,b").ended(2).err_has("ssh:HOST");
    let closed = format!("root@127.0.0.1:{}", free_port());
    run(&format!("ssh:{to},{closed}"))
        .ended(4)
        .err_has("Connection refused");
    stackrace(&ground, &["run", "ext4-vs-xfs", "--clients", &clients])
        .ended(3)
        .err_has("all clients have mounted");
    let words = ["run", "study.toml", "--clients", &clients, "--on", &to];
    stackrace(&ground, &words).ended(2).err_has("--on");
    let study = fs::read_to_string(ground.path().join("study.toml")).unwrap();
    let many = study.replace("place = [", "clients = [1, 9]\nplace = [");
    ground.write("many.toml", &many);
    stackrace(&ground, &["run", "many.toml", "--clients", &clients])
        .ended(2)
        .err_has("needs 9 clients; --clients names 3");
    stackrace(&ground, &["run", "many.toml"])
        .ended(2)
        .err_has("--clients ssh:HOST,HOST");
    ground.write(
        "missing.toml",
        study.replace("/{place}", "/nowhere-{place}"),
    );
    stackrace(&ground, &["run", "missing.toml", "--clients", &clients])
        .ended(3)
        .err_has("nowhere-here is not a directory");
    assert!(log(&ground).is_empty());
    assert_eq!(
        ground.left().len(),
        1,
        "the copy alone: {:?}",
        ground.left()
    );
}

pub(crate) fn the_number_of_clients_can_be_a_factor() {
    let (ground, _server, clients) = with_clients();
    let study = fs::read_to_string(ground.path().join("study.toml")).unwrap();
    let study = study.replace(
        "place = [\"here\", \"there\"]",
        "clients = [1, 2]\nprocesses = [1, 2]",
    );
    ground.write("scale.toml", study.replace("{place}", "here"));
    stackrace(
        &ground,
        &["run", "scale.toml", "--rounds", "1", "--clients", &clients],
    )
    .ended(0);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    let mut numbers: Vec<usize> = trials
        .iter()
        .map(|trial| trial["clients"]["each"].as_array().unwrap().len())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 1, 2, 2, 2, 2, 4, 4]);
}

/// A run with clients of so many rounds that the test ends it.
fn without_end(ground: &Ground, clients: &str) -> Command {
    let run = ["run", "study.toml", "--rounds", "1000"];
    program(ground, &[&run[..], &["--clients", clients]].concat())
}

pub(crate) fn a_client_that_is_killed_ends_the_run_by_name_and_the_run_can_go_on() {
    let (ground, _server, clients) = with_clients();
    let mut command = without_end(&ground, &clients);
    let out = fs::File::create(ground.path().join("out")).unwrap();
    command.stderr(out.try_clone().unwrap()).stdout(out);
    let mut running = command.spawn().unwrap();
    until(|| {
        assert_eq!(running.try_wait().unwrap(), None, "it has ended");
        of_kind(&log(&ground), "trial").len() >= 3
    });
    // The login to the second client; its worker ends with it.
    let victim = processes(&ground, &["BatchMode", "127.0.0.2"]);
    assert_eq!(victim.len(), 1);
    signal(victim[0], Signal::KILL);
    assert!(!running.wait().unwrap().success());
    let before = log(&ground);
    let ended = of_kind(&before, "run-ended")[0];
    assert_eq!(ended["reason"], "failed", "{ended}");
    let detail = ended["detail"].as_str().unwrap();
    assert!(detail.contains("127.0.0.2"), "{detail}");
    for place in ["here", "there"] {
        let left = fs::read_dir(ground.path().join(place)).unwrap();
        assert_eq!(left.count(), 0, "something is left in {place}");
    }
    stackrace(&ground, &["resume", "--rounds", "1"]).ended(0);
    went_on(&ground, &before);
}

pub(crate) fn clients_end_by_themselves_when_the_coordinator_is_killed() {
    let (ground, _server, clients) = with_clients();
    let mut running = without_end(&ground, &clients)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until(|| {
        assert_eq!(running.try_wait().unwrap(), None, "it has ended");
        of_kind(&log(&ground), "trial").len() >= 2
    });
    running.kill().unwrap();
    running.wait().unwrap();
    until(|| processes(&ground, &["agent serve"]).is_empty());
    stackrace(&ground, &["clean", "--clients", &clients]).ended(0);
    for place in ["here", "there"] {
        let left = fs::read_dir(ground.path().join(place)).unwrap();
        assert_eq!(left.count(), 0, "something is left in {place}");
    }
}

/// A comparison tries the directories itself first, which takes a third of its time.
pub(crate) fn clients_are_reached_before_anything_is_tried() {
    let (ground, _server, clients) = with_clients();
    let lost = format!("{clients},no-such-host.invalid");
    for own in [&[][..], &["--with", "files count=5"]] {
        let words = [
            &["compare", "here", "there", "--anyway", "--clients", &lost],
            own,
        ]
        .concat();
        let said = stackrace(&ground, &words);
        said.ended(4).err_has("cannot reach no-such-host.invalid");
        // No word of what was tried, and nothing of it is there.
        assert!(said.err.starts_with("error: "), "{}", said.err);
        let left = ground.left();
        assert!(left.len() <= 1, "the copy alone: {left:?}");
        assert!(!ground.store().exists(), "the store was made");
    }
}
