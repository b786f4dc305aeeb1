//! What a page shows while a run goes on.

use super::*;

/// Events as they arrive: name and data.
struct Events(BufReader<TcpStream>);

impl Events {
    fn of(server: &Server, path: &str) -> Self {
        let port = server.port;
        let text = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        let mut from = server.connect(&text);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(from.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.contains("text/event-stream"), "{head}");
        Self(from)
    }

    /// The next event; none: the line is closed.
    fn next(&mut self) -> Option<(String, String)> {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", value)) => name = value.to_owned(),
                Some(("data", value)) => data.push_str(value),
                _ if line == "\n" && !name.is_empty() => return Some((name, data)),
                _ => {}
            }
        }
    }
}

#[test]
pub(crate) fn a_run_is_watched_from_its_first_trial_to_its_end() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write("slow.toml", slow(3));
    let server = Server::start(&ground, &[]);
    let mut racing = Ended(
        ground
            .program(&["run", study.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let run = until(|| runs(&ground).pop());
    let now = ground.store().join("runs").join(&run).join("now.json");
    until(|| now.exists().then_some(()));
    until(|| (server.get(&format!("/run/{run}")).status == 200).then_some(()));
    server.get("/").has(200, "running");
    server
        .get(&format!("/run/{run}"))
        .has(200, &format!("data-events=\"/run/{run}/events?seen="));
    let mut events = Events::of(&server, &format!("/run/{run}/events"));
    let (mut names, mut rates, mut last) = (Vec::new(), 0, String::new());
    while let Some((name, data)) = events.next() {
        if name == "doing" && data.contains("random write") && data.contains("/s</span>") {
            rates += 1;
        }
        if name == "record" {
            last = data;
        }
        names.push(name);
    }
    assert!(rates > 0, "no throughput was shown: {names:?}");
    for name in ["race", "record", "status"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert_eq!(names.last().map(String::as_str), Some("end"));
    assert!(last.contains("3 of at most 3 rounds"), "{last}");
    assert!(racing.0.wait().unwrap().success());
    assert!(!now.exists(), "no run is active any more");
    server.get("/").has(200, "finished");
    // A visitor who comes late sees the end at once.
    let mut late = Events::of(&server, &format!("/run/{run}/events"));
    let end = until(|| late.next().filter(|(name, _)| name == "end"));
    assert!(end.1.contains("finished"), "{}", end.1);
    assert_eq!(late.next(), None);
}

#[test]
pub(crate) fn the_list_tells_of_a_new_run_and_a_killed_one_is_not_running() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write("slow.toml", slow(9));
    let server = Server::start(&ground, &[]);
    let mut events = Events::of(&server, "/events");
    assert!(events.next().unwrap().1.contains("No runs on record"));
    let racing = Ended(
        ground
            .program(&["run", study.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    until(|| {
        events
            .next()
            .unwrap()
            .1
            .contains("run running")
            .then_some(())
    });
    let run = runs(&ground).remove(0);
    let now = ground.store().join("runs").join(&run).join("now.json");
    until(|| now.exists().then_some(()));
    drop(racing);
    until(|| {
        events
            .next()
            .unwrap()
            .1
            .contains("run interrupted")
            .then_some(())
    });
    assert!(now.exists(), "left behind, and not believed");
    server
        .get(&format!("/run/{run}"))
        .has(200, "stackrace resume");
    ground.stackrace(&["clean"]).ended(0);
}
