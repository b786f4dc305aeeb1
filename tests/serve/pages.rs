//! What is shown, to whom, and what changes while a page is open.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::server::{
    Answer, Ended, Events, Server, form, runs, slow, store, token_file, until, with_a_run,
};
use crate::support::Ground;

fn every_page_of_a_finished_run_can_be_read_without_a_script() {
    let (ground, run) = with_a_run();
    let server = Server::start(&ground, &[]);
    let list = server.get("/");
    list.has(200, "Block sizes, quick").has(200, "finished");
    assert!(list.head.contains("default-src 'none'"), "{}", list.head);
    let page = server.get(&format!("/run/{run}"));
    page.has(200, "<svg").has(200, "Method in plain words");
    assert!(!page.body.contains("data-events"), "nothing comes any more");
    let whole = server.get(&format!("/run/{run}/report.html"));
    let file = ground.path().join("report.html");
    ground
        .stackrace(&["report", "--html", file.to_str().unwrap()])
        .ended(0);
    assert_eq!(whole.body, fs::read_to_string(file).unwrap());
    let history = server.get("/history?study=Block+sizes%2C+quick");
    history.has(200, "random write").has(200, &run);
    server.get("/history").has(200, "1 run");
    let beside = server.get(&format!("/beside?a={run}/0&b={run}/1"));
    beside.has(200, "8 KiB beside 4 KiB").has(200, "unpaired");
    server.get("/import").has(200, "bonnie++");
    server.get("/style.css").has(200, "--page");
    server.get("/page.js").has(200, "EventSource");
    let head = server.ask("HEAD", "/", "", "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    for page in [list, page, history, beside] {
        for outside in ["http://", "https://", "<style", "style=", "onclick"] {
            // Names of XML are no addresses to be fetched.
            let body = page.body.replace("http://www.w3.org/", "");
            assert!(!body.contains(outside), "{outside} in\n{body}");
        }
    }
}

fn metrics_have_the_newest_run_of_each_study_and_ask_for_the_token() {
    let (ground, run) = with_a_run();
    let server = Server::start(&ground, &[]);
    let metrics = server.get("/metrics");
    metrics.has(200, "stackrace_runs{stage=\"finished\"} 1\n");
    metrics.has(200, "stackrace_runs{stage=\"running\"} 0\n");
    metrics.has(
        200,
        &format!("stackrace_latest_run{{study=\"Block sizes, quick\",run=\"{run}\",stage=\"finished\"}} 1\n"),
    );
    metrics.has(
        200,
        "stackrace_latest_rounds{study=\"Block sizes, quick\"} 3\n",
    );
    metrics.has(200, "configuration=\"8 KiB\",workload=\"random write\",metric=\"throughput\",unit=\"B/s\",bound=\"low\"}");
    metrics.has(200, "# EOF\n");
    assert!(
        metrics.head.contains("application/openmetrics-text"),
        "{}",
        metrics.head
    );
    let guarded = Server::start(
        &ground,
        &["--token-file", &token_file(&ground, "a-token-for-the-test")],
    );
    let port = guarded.port;
    let plain = |headers: &str| {
        let text = format!("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n");
        Answer::read(guarded.connect(&text))
    };
    plain("").has(401, "needs its token");
    plain("Authorization: Bearer a-token-for-the-test\r\n").has(200, "# EOF\n");
}

fn what_is_not_there_is_said_and_no_path_leads_out_of_the_store() {
    let (ground, run) = with_a_run();
    fs::write(ground.path().join("log.jsonl"), "not yours").unwrap();
    let server = Server::start(&ground, &[]);
    for path in [
        "/run/..",
        "/run/.",
        "/run/",
        "/run/../..",
        "/run/%2e%2e",
        "/run/..%2f..",
        "/run/..%2f../report.html",
        "/run/../events",
        "/run/2026",
        &format!("/run/{run}/log.jsonl"),
        &format!("/run/{run}/../{run}"),
        "/beside?a=../../0&b=../../0",
        "/history?study=..",
        "//etc/passwd",
        "/etc/passwd",
        "/start/x",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
        assert!(!answer.body.contains("not yours"), "{path}");
    }
    server
        .get(&format!("/beside?a={run}/7&b={run}/0"))
        .has(404, "no such configuration");
    server
        .get(&format!("/beside?a={run}&b={run}"))
        .has(400, "one of its configurations");
    let refused = Answer::read(server.connect("PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    refused.has(405, "Only GET");
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(20_000));
    Answer::read(server.connect(&long)).has(431, "too long");
    Answer::read(server.connect("what?\r\n\r\n")).has(400, "Malformed HTTP request");
}

fn strangers_are_kept_out() {
    let (ground, _) = with_a_run();
    let server = Server::start(&ground, &[]);
    let status = |headers: &str| server.ask("GET", "/", headers, "").status;
    assert_eq!(status("Host: evil.example\r\n"), 421);
    assert_eq!(status("Host: localhost:1234\r\n"), 200);
    assert_eq!(status("Origin: http://evil.example\r\n"), 403);
    assert_eq!(
        status("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n"),
        403
    );

    let server = Server::start(
        &ground,
        &[
            "--token-file",
            &token_file(&ground, "correct-horse-battery"),
        ],
    );
    let port = server.port;
    let plain = |path: &str, more: &str| {
        let text = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{more}\r\n");
        Answer::read(server.connect(&text))
    };
    for path in ["/", "/style.css", "/history", "/events"] {
        plain(path, "").has(401, "needs its token");
    }
    plain("/?token=correct-horse-batterz", "").has(403, "Wrong token");
    let visit = plain("/import?token=correct-horse-battery", "");
    assert_eq!(visit.status, 303);
    assert!(
        visit.head.contains("Location: /import\r\n"),
        "{}",
        visit.head
    );
    let cookie = visit.head.split("Set-Cookie: ").nth(1).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite"));
    let cookie = cookie.split(';').next().unwrap();
    plain("/import", &format!("Cookie: {cookie}\r\n")).has(200, "bonnie++");
    plain("/", "Cookie: stackrace=correct-horse-battery\r\n").has(401, "");
    plain("/", "Authorization: Bearer correct-horse-battery\r\n").has(200, "quick");
}

fn a_server_that_was_given_no_hands_only_reads() {
    let (ground, run) = with_a_run();
    let before = store(&ground);
    let server = Server::start(&ground, &[]);
    for path in [
        format!("/run/{run}/stop"),
        format!("/run/{run}/resume"),
        "/start".to_owned(),
        "/import/keep".to_owned(),
    ] {
        server.post(&path, "study=quick.toml").has(403, "--control");
    }
    server.get("/start").has(403, "--control");
    server.post("/", "").has(405, "");
    let text = fs::read_to_string("tests/golden/fio/fio-3.33_two_jobs.json").unwrap();
    server
        .post("/import", &form("fio.json", &text))
        .has(200, "Not kept");
    assert_eq!(store(&ground), before);
}

fn what_other_tools_printed_is_shown_and_kept_only_when_asked() {
    let ground = Ground::new();
    let server = Server::start(&ground, &["--control"]);
    let text = fs::read_to_string("tests/golden/fio/fio-3.33_two_jobs.json").unwrap();
    let shown = server.post("/import", &form("fio.json", &text));
    shown
        .has(200, "Imported from fio-3.33")
        .has(200, "Keep this as a run");
    assert_eq!(runs(&ground).len(), 0);
    let refused = server.post("/import", "name=notes&text=hello");
    refused.has(422, "notes, line 1").has(422, "hello");
    server
        .post("/import", "name=x&text=+")
        .has(422, "No text to read");
    let kept = server.post("/import/keep", &form("fio.json", &text));
    assert_eq!(kept.status, 303, "{}", kept.body);
    let run = runs(&ground).remove(0);
    assert!(kept.head.contains(&format!("Location: /run/{run}\r\n")));
    server
        .get(&format!("/run/{run}"))
        .has(200, "Imported from fio-3.33");
    // As the command keeps it.
    let file = ground.write("fio.json", &text);
    ground
        .stackrace(&["import", file.to_str().unwrap()])
        .ended(0);
    let said = ground.stackrace(&["diff", &runs(&ground)[0], &runs(&ground)[1]]);
    // The same text, so the same measurement: there is nothing to compare.
    let same = said.code == Some(3) && said.err.contains("are there more than once");
    assert!(same || said.err.contains("configurations"), "{}", said.err);
}

/// A run in a process of its own.
fn begun(ground: &Ground, study: &Path) -> Ended {
    let mut command = ground.program(&["run", study.to_str().unwrap()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ended(command.spawn().unwrap())
}

fn a_run_is_watched_from_its_first_trial_to_its_end() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write("slow.toml", slow(3));
    let server = Server::start(&ground, &[]);
    let mut racing = begun(&ground, &study);
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
    assert!(!now.exists(), "nothing goes on any more");
    server.get("/").has(200, "finished");
    // A late visitor hears the end at once.
    let mut late = Events::of(&server, &format!("/run/{run}/events"));
    let end = until(|| late.next().filter(|(name, _)| name == "end"));
    assert!(end.1.contains("finished"), "{}", end.1);
    assert_eq!(late.next(), None);
}

fn the_list_tells_of_a_new_run_and_a_killed_one_is_not_running() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write("slow.toml", slow(9));
    let server = Server::start(&ground, &[]);
    let mut events = Events::of(&server, "/events");
    assert!(events.next().unwrap().1.contains("No runs on record"));
    let racing = begun(&ground, &study);
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

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        every_page_of_a_finished_run_can_be_read_without_a_script,
        metrics_have_the_newest_run_of_each_study_and_ask_for_the_token,
        what_is_not_there_is_said_and_no_path_leads_out_of_the_store,
        strangers_are_kept_out,
        a_server_that_was_given_no_hands_only_reads,
        what_other_tools_printed_is_shown_and_kept_only_when_asked,
        a_run_is_watched_from_its_first_trial_to_its_end,
        the_list_tells_of_a_new_run_and_a_killed_one_is_not_running
    ]
}
