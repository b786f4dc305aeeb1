//! Power cuts in virtual time: the same study loses the same, also when the program was killed meanwhile.

use super::*;

/// One mount option that keeps what was promised, one that does not; as short as a study can be.
const CUT: &str = r#"
title = "a disk whose power is cut"
seed = 18
[factors]
options = ["barrier=1", "barrier=0"]
[[stack]]
lab-disks = { model = "seagate-st3000dm001", size = "1 GiB", cache = "volatile" }
[[stack]]
ext4 = { mount = ["{options}"] }
[[workload]]
promises = { idiom = "append-fdatasync", operations = 60 }
[crash]
cuts = 6
[decide]
rounds-at-most = 1
until = "never"
"#;

/// A database that waits for its disk, and one that does not.
const DATABASE: &str = r#"
title = "a database whose disk loses its power"
seed = 18
[factors]
commit = ["on", "off"]
[[stack]]
lab-disks = { model = "seagate-st3000dm001", size = "1 GiB", cache = "volatile" }
[[stack]]
ext4 = {}
[[workload]]
promises = { idiom = "postgresql", operations = 40, objects = 8, think-time = "20 ms", synchronous-commit = "{commit}" }
[crash]
cuts = 3
[decide]
rounds-at-most = 1
until = "never"
"#;

const ARGS: [&str; 5] = ["run", "study.toml", "--lab", "--jobs", "1"];

/// What each cut found, by configuration and number. The time until it was mounted again is left out:
/// it depends on which cuts its guest had recovered from before.
fn found(log: &[Value]) -> std::collections::BTreeMap<[u64; 2], Value> {
    let cuts = of_kind(log, "cut");
    let all: std::collections::BTreeMap<_, _> = cuts
        .iter()
        .map(|cut| {
            let place = ["configuration", "number"].map(|word| cut[word].as_u64().unwrap());
            let mut cut = (*cut).clone();
            cut["recovery"]["mount_ns"] = Value::Null;
            (place, without_time(cut))
        })
        .collect();
    assert_eq!(all.len(), cuts.len(), "a cut was made twice");
    all
}

/// A line of the log without the instant at which it was written.
fn without_time(mut line: Value) -> Value {
    line.as_object_mut().unwrap().remove("at");
    line
}

fn whole() -> (Ground, Vec<Value>) {
    whole_of(CUT)
}

fn whole_of(study: &str) -> (Ground, Vec<Value>) {
    let ground = Ground::new();
    ground.write("study.toml", study);
    ground.stackrace(&ARGS).ended(0);
    let log = log(&ground);
    (ground, log)
}

pub(super) fn the_same_seed_loses_the_same() {
    cache("image");
    let (ground, first) = whole();
    let cuts = found(&first);
    assert_eq!(cuts.len(), 12);
    let broken = |configuration: u64| {
        let here = cuts.iter().filter(|(place, _)| place[0] == configuration);
        here.filter(|(_, cut)| cut["found"]["counts"]["lost"] != 0)
            .count()
    };
    assert_eq!(broken(0), 0, "barrier=1 keeps what was promised");
    assert!(broken(1) > 0, "barrier=0 on a volatile cache loses");
    assert_eq!(found(&whole().1), cuts);
    // Made again from the record alone, loss by loss.
    let list = ground.stackrace(&["crash", "show", "last"]);
    assert!(list.ended(0).out.contains(" 1  # "), "{}", list.out);
    let again = ground.stackrace(&["crash", "show", "last", "1"]);
    let same = "made again: the same was found";
    assert!(again.ended(0).out.contains(same), "{}", again.out);
}

pub(super) fn a_postgresql_server_comes_back_after_cuts_the_same_way_each_time() {
    cache("postgresql");
    let cuts = found(&whole_of(DATABASE).1);
    assert_eq!(cuts.len(), 6);
    let mut lost = [0; 2];
    for ([configuration, number], cut) in &cuts {
        let recovery = &cut["recovery"];
        assert_eq!(
            recovery["needed_operator"], false,
            "cut {number}: {recovery}"
        );
        let counts = &cut["found"]["counts"];
        // Older content, whole: the database is consistent.
        for word in ["lost", "torn", "misplaced", "swapped", "collateral"] {
            assert_eq!(counts[word], 0, "cut {number}: {counts}");
        }
        lost[usize::try_from(*configuration).unwrap()] += counts["stale"].as_u64().unwrap();
    }
    assert_eq!(lost[0], 0, "a commit that waits for the disk is kept");
    assert!(lost[1] > 0, "one that does not wait is lost with the power");
    // Also the server's own processes do the same again.
    assert_eq!(found(&whole_of(DATABASE).1), cuts);
}

pub(super) fn a_killed_run_of_cuts_goes_on_and_loses_none_of_them() {
    cache("image");
    let expected = found(&whole().1);
    let ground = Ground::new();
    ground.write("study.toml", CUT);
    // In the middle of the first trial's cuts.
    let after = killed_and_resumed(&ground, &ARGS, "cut", 3);
    assert_eq!(found(&after), expected);
    assert_eq!(
        of_kind(&after, "promised").len(),
        2,
        "a ledger is kept once"
    );
}
