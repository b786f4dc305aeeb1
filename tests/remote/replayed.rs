//! A recorded application that is replayed on another machine, and by clients not at all.

use std::fs;

use super::{Server, log, of_kind, stackrace};
use crate::replay::slow;
use crate::support::Ground;

/// Two directories, and a trace at a path that each side reads.
const REPLAYED: &str = study!(
    "a replay elsewhere",
    r#"place = ["here", "there"]"#,
    [r#"dir = { path = "GROUND/{place}" }"#],
    [r#"replay = { trace = "TRACE", home = "here" }"#],
    3
);

fn ground() -> (Ground, Server) {
    let ground = Ground::new();
    let server = Server::start(&ground);
    ground.make_dir("here");
    ground.make_dir("there");
    ground.write("app.trace", slow());
    (ground, server)
}

fn study(ground: &Ground, trace: &str) {
    let here = ground.path().to_str().unwrap();
    let study = REPLAYED.replace("TRACE", trace);
    ground.write("study.toml", study.replace("GROUND", here));
}

pub(crate) fn a_replay_over_ssh_is_held_against_its_home_there() {
    let (ground, server) = ground();
    let trace = ground.path().join("app.trace");
    study(&ground, trace.to_str().unwrap());
    let said = stackrace(&ground, &["run", "study.toml", "--on", &server.to()]);
    let out = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let unlike =
        "No verdict: the replay of replay on here is not like the application: it takes 0.0";
    assert!(out.contains(unlike), "{}{}", said.out, said.err);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 6);
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
        let replayed = &trial["phases"][0]["replayed"];
        assert_eq!(*replayed, serde_json::json!({ "calls": 3, "differing": 0 }));
    }
    // Nothing of it is left there.
    for place in ["here", "there"] {
        assert_eq!(fs::read_dir(ground.path().join(place)).unwrap().count(), 0);
    }
}

pub(crate) fn a_replay_is_refused_where_its_trace_is_not_and_by_clients() {
    let (ground, server) = ground();
    let to = server.to();
    // Where the program works, which over there is another directory.
    study(&ground, "/proc/self/cwd/app.trace");
    stackrace(&ground, &["run", "study.toml", "--on", &to])
        .ended(3)
        .err_has("/proc/self/cwd/app.trace: No such file or directory; name the file that `stackrace record` wrote, or copy it to this path");
    let trace = ground.path().join("app.trace");
    study(&ground, trace.to_str().unwrap());
    let other = to.replace("127.0.0.1", "127.0.0.2");
    let known = fs::read_to_string(ground.path().join("known")).unwrap();
    ground.write("known", known.replace("[localhost]", "[127.0.0.2]"));
    let clients = format!("ssh:{to},{other}");
    let refused = stackrace(&ground, &["run", "study.toml", "--clients", &clients]);
    let why =
        "replay replays one application, and each of several clients would do all that it did";
    refused.ended(3).err_has(why);
    assert!(log(&ground).is_empty());
}
