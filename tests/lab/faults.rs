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
