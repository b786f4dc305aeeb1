//! Stacks that live on several machines: replicas, shared file systems, shares.

use super::*;

/// Runs a script in the first of some guests, which may ask the others over SSH.
pub(crate) fn over_ssh(guests: &GuestsOverSsh<'_>, script: &[&str]) -> Said {
    let (cache, ground) = (cache("image"), Ground::new());
    let program = Path::new(env!("CARGO_BIN_EXE_stackrace"));
    let dirs = (cache.as_path(), ground.path());
    let said = stackrace::testing::over_ssh((&system(), program), dirs, guests, script);
    assert!(machines(&ground).is_empty());
    let (out, err, code) = said.unwrap();
    Said { out, err, code }
}

/// Runs a study of one round in the lab, and returns the log, what was raised as text by configuration.
pub(crate) fn one_round(study: &str, configurations: usize) -> (Ground, Vec<String>) {
    let ground = Ground::new();
    ground.write("study.toml", study);
    let outside = ground.stackrace(&["run", "study.toml"]);
    assert_eq!(outside.code, Some(4), "{}", outside.err);
    assert!(outside.err.contains("--lab"), "{}", outside.err);
    let said = ground.stackrace(&["run", "study.toml", "--lab", "--system", &system()]);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert!(!log.is_empty(), "{}{}", said.out, said.err);
    let workloads = log[0]["workloads"].as_array().unwrap().len();
    assert_eq!(
        trials.len(),
        configurations * workloads,
        "{}{}",
        said.out,
        said.err
    );
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
    }
    assert_eq!(of_kind(&log, "stack-torn-down").len(), configurations);
    let mut raised: Vec<(u64, String)> = of_kind(&log, "stack-set-up")
        .iter()
        .map(|raised| {
            (
                raised["configuration"].as_u64().unwrap(),
                raised.to_string(),
            )
        })
        .collect();
    raised.sort();
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
    (ground, raised.into_iter().map(|(_, text)| text).collect())
}

pub(crate) fn replicated_devices_are_what_was_asked_on_two_machines() {
    cache("image");
    let (_ground, raised) = one_round(REPLICATED, 4);
    for (raised, words) in raised.iter().zip([
        [
            "lab-disks on node2",
            "line to the peer",
            "8000",
            "Primary/Secondary",
        ],
        ["StandAlone", "Primary/Unknown", "ext3", "UpToDate/"],
        [
            "SyncSource",
            "UpToDate/Inconsistent",
            "lock_nolock",
            "under way",
        ],
        [
            "Primary/Primary",
            "lock_dlm",
            "2 of 2 machines",
            "Connected",
        ],
    ]) {
        for word in words {
            assert!(raised.contains(word), "{word}: {raised}");
        }
    }
}

pub(crate) fn two_machines_load_one_file_system_at_once() {
    cache("image");
    let (ground, raised) = one_round(BOTH, 2);
    assert!(raised[0].contains("1 of 2 machines") && raised[1].contains("2 of 2 machines"));
    let log = log(&ground);
    let heads = log[0]["workloads"].as_array().unwrap();
    for trial in of_kind(&log, "trial") {
        let heads = heads[trial["workload"].as_u64().unwrap() as usize]["metrics"].clone();
        let others = trial["others"].as_array().cloned().unwrap_or_default();
        assert_eq!(
            others.len() as u64,
            trial["configuration"].as_u64().unwrap()
        );
        let names: Vec<&str> = heads
            .as_array()
            .unwrap()
            .iter()
            .map(|head| head["name"].as_str().unwrap())
            .collect();
        let mut sums = 0;
        for (at, name) in names.iter().enumerate() {
            let Some(of_one) = name.strip_suffix(", all nodes") else {
                continue;
            };
            let of_one = names.iter().position(|name| *name == of_one).unwrap();
            let value = |list: &Value, at: usize| list[at].as_f64().unwrap();
            let each = others.iter().map(|other| value(&other["metrics"], of_one));
            let sum = value(&trial["metrics"], of_one) + each.sum::<f64>();
            assert!(
                (value(&trial["metrics"], at) / sum - 1.0).abs() < 1e-9,
                "{name}"
            );
            sums += 1;
        }
        assert!(sums > 0);
        for other in &others {
            assert_eq!(other["host"], "node2");
            assert!(other["elapsed_ns"].as_u64().unwrap() > 0);
            assert!(
                trial["notes"][0]
                    .as_str()
                    .unwrap()
                    .starts_with("node2 did the same")
            );
        }
    }
}

pub(crate) fn shares_are_served_by_a_peer_and_by_the_same_machine() {
    cache("image");
    let (_ground, raised) = one_round(SHARED, 6);
    for (number, raised) in raised.iter().enumerate() {
        assert_eq!(raised.contains("ext4 on node2"), number < 3, "{raised}");
        assert_eq!(raised.contains("line to the peer"), number < 3, "{raised}");
        let words = ["vers=3", "vers=4.2", "vers=3.1.1"][number % 3];
        assert!(raised.contains(words), "{words}: {raised}");
    }
}

/// The guests are used as machines like any other, from node1 by its user: one stack over two of
/// them, also where the user sits at a third; and what a kill leaves is cleaned.
pub(crate) fn one_stack_stands_on_two_machines_over_ssh() {
    let guests = GuestsOverSsh {
        nodes: 3,
        memory_bytes: 1 << 30,
        path_first: "",
    };
    let said = over_ssh(&guests, &[PEERS]);
    said.ended(0);
    // What bash says of those it sees killed is apart: it belongs to no part.
    let part = |name: &str| {
        let mut parts = said.out.split("\n== ");
        let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
        part.unwrap_or_else(|| panic!("no part {name}: {}{}", said.out, said.err))
    };
    for (run, peer) in [("here and node2", 2), ("node2 and node3", 3)] {
        let text = part(run);
        assert!(text.contains("1 complete round"), "{text}");
        assert!(text.contains("code 0\n"), "{text}");
        let log: Vec<Value> = text
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(text.contains("\ncomplete 2\n"), "{text}");
        let raised = of_kind(&log, "stack-set-up");
        assert_eq!(raised.len(), 2, "{text}");
        for raised in raised {
            let raised = raised.to_string();
            let loops = format!("loop on root@10.77.0.{peer}");
            for words in [
                &*loops,
                "UpToDate/UpToDate",
                "line to the peer\"",
                "B/s, one TCP",
            ] {
                assert!(raised.contains(words), "{words}: {raised}");
            }
        }
        let environment = log[0]["environment"].to_string();
        let over = format!("root@10.77.0.{peer}=10.77.0.{peer}");
        assert!(environment.contains(&over), "{environment}");
        assert_eq!(part(&format!("{run}, stands")).trim(), "");
    }
    for (study, stack) in [
        ("shares", ["loop on root@10.77.0.2", "nfs", "smb"]),
        ("gfs2", ["loop on root@10.77.0.2", "drbd", "gfs2"]),
    ] {
        let text = part(study);
        assert!(text.contains("code 0\n"), "{text}");
        let complete = if study == "shares" { 2 } else { 1 };
        assert!(text.contains(&format!("\ncomplete {complete}")), "{text}");
        for layer in stack {
            let raised = format!("\"layer\":\"{layer}\"");
            assert!(text.contains(&raised), "{layer}: {text}");
        }
        assert_eq!(part(&format!("{study}, stands")).trim(), "");
    }
    kills_are_cleaned(&part);
    // The run whose coordinator was killed. Its record says where the peer is.
    let resumed = part("resumed");
    assert!(resumed.contains("code 0\n"), "{resumed}");
    assert_eq!(part("resumed, stands").trim(), "");
    let warned = part("line killed");
    assert!(
        warned.contains("next: stackrace clean --peer root@10.77.0.3"),
        "{warned}"
    );
}

/// The shortest of the round trips that were measured, ms, in the order of the layers.
pub(crate) fn round_trips(raised: &str) -> Vec<f64> {
    let said = raised.split("shortest of 20 round trips ").skip(1);
    said.map(|text| text.split(" ms").next().unwrap().parse().unwrap())
        .collect()
}

pub(crate) fn a_peer_serves_what_is_replicated_to_a_third_machine() {
    cache("image");
    let (_ground, raised) = one_round(SERVED, 2);
    for raised in &raised {
        for words in [
            "lab-disks on node2",
            "lab-disks on node3",
            "drbd on node2",
            "ext3 on node2",
            "Primary/Secondary",
        ] {
            assert!(raised.contains(words), "{words}: {raised}");
        }
        // Of the line between the servers, then of that to the client: each has its own delay.
        let [servers, client] = round_trips(raised)[..] else {
            panic!("two lines are measured: {raised}");
        };
        assert!(servers >= 10.0, "{servers} ms: {raised}");
        assert!(client >= 30.0, "{client} ms: {raised}");
    }
}

pub(crate) fn netatalk_keeps_its_database_in_three_places() {
    cache("image");
    if system() == "debian-12" {
        needs::skip("Debian 12 has no netatalk");
    }
    let (_ground, raised) = one_round(AFP, 6);
    for (number, raised) in raised.iter().enumerate() {
        assert_eq!(raised.contains("ext4 on node2"), number < 3, "{raised}");
        assert_eq!(raised.contains("line to the peer"), number < 3, "{raised}");
        // The words of a fact, which say what was seen.
        let seen = raised.split("CNID database in").nth(1).unwrap();
        let kind = ["ext4 on /dev/", "ext4 on /dev/", "tmpfs on tmpfs"][number % 3];
        let seen = &seen[..seen.len().min(60)];
        assert!(seen.contains(kind), "{kind}: {seen}");
    }
}
