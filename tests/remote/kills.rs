//! Whichever process is killed, results are kept and nothing is left.

use super::*;

/// Starts the study with a loop device, and returns when three trials are on record here.
pub(crate) fn three_trials(ground: &Ground, to: &str) -> Child {
    ground.write("study.toml", LOOP);
    let mut command = program(ground, &["run", "study.toml", "--on", to]);
    let out = fs::File::create(ground.path().join("out")).unwrap();
    command.stderr(out.try_clone().unwrap()).stdout(out);
    let mut program = command.spawn().unwrap();
    until(|| {
        assert_eq!(program.try_wait().unwrap(), None, "it has ended");
        of_kind(&log(ground), "trial").len() >= 3
    });
    program
}

/// Words of the worker on the other side.
pub(crate) const WORKER: &[&str] = &["/stackrace agent serve"];

pub(crate) fn signal(id: i32, signal: Signal) {
    kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
}

/// How a run ends, by what was killed.
pub(crate) fn ended_as(victim: &str, code: Option<i32>, ended: &[&Value], said: &str) {
    match victim {
        "program" => assert!(ended.is_empty(), "{said}"),
        "nothing" => {
            assert_eq!(code, Some(130), "{said}");
            assert_eq!(ended[0]["reason"], "interrupted", "{said}");
        }
        _ => {
            assert_eq!(code, Some(5), "{victim}: {said}");
            assert_eq!(ended[0]["reason"], "failed", "{victim}: {said}");
            assert!(
                said.contains("what was measured until then is kept"),
                "{said}"
            );
        }
    }
}

/// Whether `clean` here names the machine over there: what may be left on it is known by the record alone.
fn named_here(ground: &Ground, to: &str) -> bool {
    let here = stackrace(ground, &["clean"]);
    let command = format!("which did not end: stackrace clean --on {to}");
    here.ended(0).out.contains(&command)
}

pub(crate) fn after_any_kill_results_are_kept_and_nothing_is_left() {
    needs::root_and_loop_devices();
    for victim in ["ssh", "worker", "program", "nothing"] {
        let ground = Ground::new();
        let server = Server::start(&ground);
        let to = server.to();
        let mut program = three_trials(&ground, &to);
        let here = i32::try_from(program.id()).unwrap();
        if victim == "nothing" {
            let cleaned = stackrace(&ground, &["clean", "--on", &to]);
            cleaned.ended(4);
            assert!(cleaned.out.contains("is alive"), "{}", cleaned.out);
            assert_eq!(copies(&ground).len(), 1, "it is in use");
        }
        // The words of ssh hold those of the worker too.
        let found = |words: &[&str]| {
            let ssh = processes(&ground, &["BatchMode"]);
            let mut found = processes(&ground, words);
            found.retain(|id| words == ["BatchMode"] || !ssh.contains(id));
            found
        };
        let words: &[&str] = match victim {
            "ssh" => &["BatchMode"],
            _ => WORKER,
        };
        let mut victims = vec![here];
        if ["ssh", "worker"].contains(&victim) {
            // A command that is just being started has the words of the one that starts it.
            until(|| {
                victims = found(words);
                victims.len() == 1
            });
        }
        let interrupted = victim == "nothing";
        signal(
            victims[0],
            if interrupted {
                Signal::INT
            } else {
                Signal::KILL
            },
        );
        let code = program.wait().unwrap().code();
        let said = fs::read_to_string(ground.path().join("out")).unwrap();
        let kept = log(&ground);
        assert!(of_kind(&kept, "trial").len() >= 3, "{victim}: {said}");
        let ended = of_kind(&kept, "run-ended");
        ended_as(victim, code, &ended, &said);
        // A worker without a coordinator ends by itself.
        until(|| found(WORKER).is_empty());
        assert_eq!(named_here(&ground, &to), victim == "program", "{victim}");
        stackrace(&ground, &["clean", "--on", &to]).ended(0);
        assert_eq!(ground.left(), Vec::<String>::new(), "{victim}");
        assert_eq!(stackrace(&ground, &["report", "last"]).code, Some(0));
        if ["ssh", "program"].contains(&victim) {
            let resumed = stackrace(&ground, &["resume", "last", "--more-time", "1 s"]);
            resumed.ended(0);
            let log = log(&ground);
            assert_eq!(of_kind(&log, "run-resumed").len(), 1);
            let ended = of_kind(&log, "run-ended");
            assert_eq!(ended.last().unwrap()["reason"], "time", "{}", resumed.out);
            stackrace(&ground, &["clean", "--on", &to]).ended(0);
            assert_eq!(ground.left(), Vec::<String>::new(), "{victim}");
        }
    }
}

/// A run whose first machine and whose keeper are dead: only both machines together know what is
/// left, and where.
pub(crate) fn what_a_dead_run_left_on_a_peer_is_removed_with_the_peer_named() {
    for first_is_here in [true, false] {
        let ground = Ground::new();
        let server = Server::start(&ground);
        let to = server.to();
        let home = ground.path().join("home/.local/state/stackrace/on");
        let store = match first_is_here {
            true => ground.store(),
            false => home.join(".stackrace-0123456789abcdef"),
        };
        let directory = home.join(".stackrace-peer-0123456789abcdef");
        let made = directory.join("made");
        fs::create_dir_all(&made).unwrap();
        fs::write(directory.join("file"), "held back until all else is gone").unwrap();
        let dead = store.join("probes/0123456789abcdef");
        fs::create_dir_all(&dead).unwrap();
        let entry = |id: u32, group: &str, undo: Value| {
            let peer = serde_json::json!({ "node": 2, "host": to, "undo": undo });
            serde_json::json!({ "entry": id, "group": group, "undo": { "on-peer": peer } })
        };
        let tree = entry(1, "ground", serde_json::json!({ "remove-tree": directory }));
        let one = entry(2, "r1-t0", serde_json::json!({ "remove-dir": made }));
        let head = "{\"journal\":3,\"run\":\"0123456789abcdef\"}\n{\"mark\":\"0123456789abcdef\"}";
        let place = serde_json::json!({ "place": home });
        let journal = format!("{head}\n{place}\n{tree}\n{one}\n");
        fs::write(dead.join("journal.jsonl"), journal).unwrap();

        let on: &[&str] = match first_is_here {
            true => &[],
            false => &["--on", &to.replace("127.0.0.1", "localhost")],
        };
        let clean = |words: &[&str]| stackrace(&ground, &[&["clean"], on, words].concat());
        let alone = clean(&[]);
        alone.ended(4);
        let next = format!("add --peer {to}");
        assert!(alone.out.contains(&next), "{}", alone.out);
        let elsewhere = stackrace(&ground, &["clean", "--on", &to]);
        elsewhere.ended(4);
        let words = "belongs to a run whose first machine is another";
        assert!(elsewhere.out.contains(words), "{}", elsewhere.out);
        let listed = clean(&["--peer", &to, "--list"]);
        assert!(listed.out.contains("would undo: "), "{}", listed.out);
        assert!(made.is_dir() && directory.join("file").exists());

        let cleaned = clean(&["--peer", &to]);
        cleaned.ended(0);
        let words = format!("on {to}\n");
        assert!(cleaned.out.contains(&words), "{}", cleaned.out);
        assert!(!directory.exists());
        assert_eq!(ground.left(), Vec::<String>::new());
        assert_eq!(clean(&["--peer", &to]).code, Some(0));
        stackrace(&ground, &["clean", "--on", &to]).ended(0);
    }
}
