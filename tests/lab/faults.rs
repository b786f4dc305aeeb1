//! Faults of machines, as they come and on request.

use super::*;

/// Faults on request that are on record.
pub(crate) fn faults(log: &[Value]) -> Vec<&str> {
    let warned = of_kind(log, "warned").into_iter();
    warned
        .filter_map(|warned| warned["text"].as_str()?.strip_prefix("fault on request: "))
        .collect()
}

/// The trial that another machine was missing from fails; the rest of the round has it again.
pub(crate) fn a_fault_of_a_peer_that_comes_back_costs_one_trial() {
    cache("image");
    let ground = Ground::new();
    ground.write("study.toml", FOR_TWO);
    let mut command = ground.program(&["run", "study.toml", "--lab", "--system", &system()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    until(&mut program, "a stack stands", || {
        !of_kind(&log(&ground), "stack-set-up").is_empty()
    });
    for what in ["cut", "on"] {
        let said = ground.stackrace(&["lab", "fault", "power", "2", what]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let status = program.wait().unwrap();
    let log = log(&ground);
    let ends: Vec<&Value> = of_kind(&log, "trial")
        .iter()
        .map(|trial| &trial["ended"])
        .collect();
    assert_eq!(ends.len(), 3);
    let why = ends[0]["error"].as_str().unwrap_or_default();
    // Either the machine was missed, or its replica: what was there, and what is there now.
    let replica = why.contains("was Connected when the stack was set up, and is now");
    assert!(
        why.contains("node2: ") && (why.starts_with("node2: ") || replica),
        "{why}"
    );
    assert_eq!(status.code(), Some(5));
    for end in &ends[1..] {
        assert_eq!(end["state"], "complete", "{end}");
    }
    assert_eq!(
        of_kind(&log, "stack-torn-down").len(),
        3,
        "all of it is gone"
    );
    let [cut, on] = faults(&log)[..] else {
        panic!("{:?}", faults(&log));
    };
    assert_eq!((cut, on), ("node2 lost its power", "node2 has power again"));
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
}

/// What a run meets is on its record, and a machine can be asked while it runs.
pub(crate) fn a_fault_on_request_happens_and_is_on_record() {
    cache("image");
    let ground = Ground::new();
    let none = ground.stackrace(&["lab", "fault", "power", "1", "cut"]);
    assert_eq!(none.code, Some(4), "{}", none.err);
    assert!(
        none.err.contains("no machine of the lab runs"),
        "{}",
        none.err
    );
    let study = SLOW.replace("\"3 s\"", "\"600 s\"");
    ground.write("study.toml", &study);
    let mut command = ground.program(&["run", "study.toml", "--lab"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    until(&mut program, "a stack stands", || {
        !of_kind(&log(&ground), "stack-set-up").is_empty()
    });
    let wrong = ground.stackrace(&["lab", "fault", "disk", "1", "disk-0", "fail"]);
    assert_eq!(wrong.code, Some(4), "{}", wrong.err);
    let serials: Vec<&str> = wrong.err.split([' ', ',', '\n']).collect();
    let serials = serials
        .iter()
        .filter(|word| word.starts_with("disk-") && word.len() > 8);
    let serials: Vec<&&str> = serials.collect();
    assert_eq!(serials.len(), 2, "{}", wrong.err);
    for serial in serials {
        let said = ground.stackrace(&["lab", "fault", "disk", "1", serial, "fail"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out.contains("fails from now on"), "{}", said.out);
    }
    until(&mut program, "the trial failed", || {
        of_kind(&log(&ground), "trial")
            .iter()
            .any(|trial| trial["ended"]["state"] == "failed")
    });
    let alone = ground.stackrace(&["lab", "fault", "link", "1", "cut"]);
    assert!(alone.err.contains("no network"), "{}", alone.err);
    let gone = ground.stackrace(&["lab", "fault", "power", "1", "cut"]);
    assert_eq!(gone.code, Some(0), "{}", gone.err);
    assert_eq!(program.wait().unwrap().code(), Some(5));
    let log = log(&ground);
    let told = faults(&log);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].starts_with("every request to disk-"), "{told:?}");
    assert_eq!(told[2], "node1 lost its power");
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
}

/// A study of one stack of the lab with one round, whose trial lasts long enough for a fault.
fn one_stack(layers: &str) -> String {
    format!(
        "title = \"storage that loses a part\"\n[factors]\ntime = [\"20 s\"]\n{layers}[[workload]]\n\
         random = {{ mode = \"write\", size = \"8 MiB\", access = \"uniform\", fsync-every = 8, time = \"{{time}}\" }}\n\
         [decide]\nrounds-at-most = 1\nat-most = \"30 min\"\nuntil = \"never\"\n"
    )
}

/// Runs a study in the lab, makes faults while its trial measures, and returns the reasons of the trials that failed;
/// none may be complete.
fn all_failed(study: &str, faults: &dyn Fn(&Ground)) -> Vec<String> {
    let ground = Ground::new();
    ground.write("study.toml", study);
    let mut command = ground.program(&["run", "study.toml", "--lab", "--system", &system()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    until(&mut program, "a trial measures", || {
        let runs = fs::read_dir(ground.store().join("runs")).into_iter();
        let now = runs
            .flatten()
            .flatten()
            .map(|run| run.path().join("now.json"));
        let mut now = now.filter_map(|path| fs::read_to_string(path).ok());
        now.any(|text| text.contains("\"part\":\"random write\""))
    });
    faults(&ground);
    let status = program.wait().unwrap();
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    let ends = trials.iter().map(|trial| &trial["ended"]);
    let why = ends.map(|end| end["error"].as_str().unwrap_or_default().to_owned());
    let why: Vec<String> = why.collect();
    assert!(
        !why.is_empty() && !why.contains(&String::new()),
        "{trials:?}"
    );
    assert_eq!(status.code(), Some(5), "{why:?}");
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
    why
}

/// Makes every request to one disk of the first machine fail.
fn fail_a_disk(ground: &Ground) {
    let wrong = ground.stackrace(&["lab", "fault", "disk", "1", "disk-0", "fail"]);
    let mut words = wrong.err.rsplit([' ', ',', '\n']);
    let serial = words.find(|word| word.starts_with("disk-") && word.len() > 8);
    let said = ground.stackrace(&["lab", "fault", "disk", "1", serial.unwrap(), "fail"]);
    said.ended(0);
}

pub(crate) fn an_array_that_loses_a_member_is_another_storage() {
    cache("image");
    let layers = "[[stack]]\nlab-disks = { size = \"128 MiB\", count = 2 }\n[[stack]]\nmd = { raid = 1 }\n\
                  [[stack]]\next4 = {}\n";
    let why = all_failed(&one_stack(layers), &fail_a_disk);
    let told = "the array was at work on 2 members when the stack was set up, and is now at work on 1 member";
    assert!(why[0].contains(told), "{why:?}");
}

pub(crate) fn a_pool_that_loses_a_disk_is_another_storage() {
    cache("zfs");
    let layers = "[[stack]]\nlab-disks = { size = \"256 MiB\", count = 2 }\n[[stack]]\nzpool = { topology = \"mirror\" }\n\
                  [[stack]]\ndataset = {}\n";
    let why = all_failed(&one_stack(layers), &fail_a_disk);
    let told = "the pool was ONLINE when the stack was set up, and is now DEGRADED";
    assert!(why[0].contains(told), "{why:?}");
}

pub(crate) fn a_server_that_goes_away_in_mid_trial_fails_it() {
    cache("image");
    let layers = "[[stack]]\nlab-disks = { size = \"128 MiB\" }\n[[stack]]\next4 = {}\n[[stack]]\nnfs = {}\n";
    let why = all_failed(&one_stack(layers), &|ground| {
        ground
            .stackrace(&["lab", "fault", "power", "2", "cut"])
            .ended(0);
        ground
            .stackrace(&["lab", "fault", "power", "2", "on"])
            .ended(0);
    });
    let told = "node2: it was started again: its part of the stack is gone (";
    assert!(why[0].starts_with(told), "{why:?}");
    // No number of the kernel's stands for words.
    assert!(!why[0].contains("Unknown error"), "{why:?}");
}
