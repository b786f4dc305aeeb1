//! What may be done from a page, and what a page for others needs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use super::server::{Ended, Server, runs, slow, token_file, until};
use crate::support::Ground;

fn studies_are_started_stopped_and_gone_on_with_where_that_is_allowed() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.make_dir("studies");
    ground.write("studies/slow.toml", slow(2));
    ground.write("secret.toml", slow(2));
    let server = Server::start(&ground, &["--control", "--studies", "studies"]);
    assert_eq!(server.token().len(), 32, "{}", server.link);
    server.get("/start").has(200, "slow.toml");
    for study in ["..%2Fsecret.toml", "%2Fetc%2Fpasswd", "demo", ""] {
        server
            .post("/start", &format!("study={study}"))
            .has(409, "no study");
    }
    let stranger = server.ask(
        "POST",
        "/start",
        "Origin: http://evil.example\r\n",
        "study=slow.toml",
    );
    assert_eq!(stranger.status, 403);
    assert_eq!(runs(&ground).len(), 0);

    assert_eq!(server.post("/start", "study=slow.toml").status, 303);
    let run = until(|| runs(&ground).pop());
    let now = ground.store().join("runs").join(&run).join("now.json");
    let told: serde_json::Value = until(|| serde_json::from_slice(&fs::read(&now).ok()?).ok());
    assert_ne!(told["pid"], server.pid());
    server.get("/start").has(200, &format!("Watch it: {run}"));
    server
        .post(&format!("/run/{run}/resume"), "")
        .has(409, "going on already");
    assert_eq!(server.post(&format!("/run/{run}/stop"), "").status, 303);
    let again = server.post(&format!("/run/{run}/stop"), "");
    assert_eq!(again.status, 409, "a second Ctrl-C would end it at once");
    until(|| {
        server
            .get("/start")
            .body
            .contains("exit code 130")
            .then_some(())
    });
    server
        .get(&format!("/run/{run}"))
        .has(200, "Continue this run");
    server
        .post(&format!("/run/{run}/stop"), "")
        .has(409, "not going on");

    assert_eq!(server.post(&format!("/run/{run}/resume"), "").status, 303);
    until(|| {
        server
            .get("/start")
            .body
            .contains("It ended well")
            .then_some(())
    });
    server
        .get(&format!("/run/{run}"))
        .has(200, "2 of at most 2 rounds");
    server.post("/run/../stop", "").has(404, "no such run");
}

fn of_many_starts_at_once_one_runs_and_the_others_are_told_why() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.make_dir("studies");
    ground.write("studies/slow.toml", slow(2));
    let server = Server::start(&ground, &["--control", "--studies", "studies"]);
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..30)
            .map(|_| scope.spawn(|| server.post("/start", "study=slow.toml").status))
            .collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let count = |status: u16| answers.iter().filter(|one| **one == status).count();
    assert_eq!((count(303), count(409)), (1, 29), "{answers:?}");
    server
        .post("/start", "study=slow.toml")
        .has(409, "started from here and goes on");
    until(|| {
        let page = server.get("/start").body;
        page.contains("It ended well").then_some(())
    });
    assert_eq!(runs(&ground).len(), 1);
    assert_eq!(server.post("/start", "study=slow.toml").status, 303);
    until(|| (runs(&ground).len() == 2).then_some(()));
}

fn a_token_is_never_a_word_of_the_command() {
    let ground = Ground::new();
    let token = "correct-horse-battery";
    ground
        .stackrace(&["serve", "--token", token])
        .ended(3)
        .err_has("--token-file FILE");
    let file = token_file(&ground, token);
    let server = Server::start(&ground, &["--token-file", &file]);
    assert_eq!(server.token(), token);
    server.get("/").has(200, "Runs");
    let words = fs::read_to_string(format!("/proc/{}/cmdline", server.pid())).unwrap();
    assert!(!words.contains(token), "{words}");
    // One that others can read is no secret.
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    ground
        .stackrace(&["serve", "--token-file", &file])
        .ended(3)
        .err_has("chmod 600");
}

fn a_run_whose_study_gives_commands_is_continued_on_a_command_line_only() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = slow(9).replace(
        "[decide]",
        "[[workload]]\nname = \"waits\"\ncommand = { run = \"sleep 0.1\" }\n[decide]",
    );
    let study = ground.write("commands.toml", study);
    let server = Server::start(&ground, &["--control"]);
    let mut command = ground.program(&["run", study.to_str().unwrap(), "--allow-commands"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let racing = Ended(command.spawn().unwrap());
    let run = until(|| runs(&ground).pop());
    until(|| (server.get(&format!("/run/{run}")).status == 200).then_some(()));
    drop(racing);
    let page = until(|| {
        let page = server.get(&format!("/run/{run}"));
        page.body.contains("continues it").then_some(page)
    });
    page.has(200, &format!("stackrace resume {run} --allow-commands"));
    assert!(!page.body.contains("Continue this run"));
    ground.stackrace(&["clean"]).ended(0);
}

/// Numbers of processes that do not write the run's log: another program, the server, the first.
#[expect(clippy::disallowed_methods, reason = "the canary is a process")]
fn a_forged_now_file_stops_no_other_process() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.make_dir("studies");
    ground.write("studies/slow.toml", slow(8));
    let server = Server::start(&ground, &["--control", "--studies", "studies"]);
    assert_eq!(server.post("/start", "study=slow.toml").status, 303);
    let run = until(|| runs(&ground).pop());
    let dir = ground.store().join("runs").join(&run);
    let told: serde_json::Value =
        until(|| serde_json::from_slice(&fs::read(dir.join("now.json")).ok()?).ok());
    // A run that stands still writes no news of its own, and still holds its log.
    let of = |pid: &serde_json::Value| Pid::from_raw(i32::try_from(pid.as_i64()?).ok()?);
    let running = of(&told["pid"]).unwrap();
    kill_process(running, Signal::STOP).unwrap();
    let stat = format!("/proc/{}/stat", told["pid"]);
    until(|| {
        fs::read_to_string(&stat)
            .ok()?
            .contains(") T ")
            .then_some(())
    });
    let canary = std::process::Command::new("env")
        .args(["--default-signal=INT", "sleep", "1000"])
        .spawn()
        .unwrap();
    let mut canary = Ended(canary);
    for pid in stackrace_test_needs::attacks([canary.0.id(), server.pid(), 1, 0, u32::MAX]) {
        let mut forged = told.clone();
        forged["pid"] = pid.into();
        fs::write(dir.join("now.json"), forged.to_string()).unwrap();
        server
            .post(&format!("/run/{run}/stop"), "")
            .has(409, "It is not stopped");
        assert!(canary.0.try_wait().unwrap().is_none(), "it was stopped");
        server.get("/").has(200, "slow");
    }
    kill_process(running, Signal::KILL).unwrap();
}

fn what_is_started_goes_on_when_the_server_ends() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.make_dir("studies");
    ground.write("studies/slow.toml", slow(2));
    let server = Server::start(&ground, &["--control", "--studies", "studies"]);
    assert_eq!(server.post("/start", "study=slow.toml").status, 303);
    let run = until(|| runs(&ground).pop());
    // Ctrl-C on the server's terminal.
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    drop(server);
    let log = ground.store().join("runs").join(run).join("log.jsonl");
    until(|| {
        fs::read_to_string(&log)
            .ok()?
            .contains("\"run-ended\"")
            .then_some(())
    });
    assert!(fs::read_to_string(&log).unwrap().contains("\"rounds\""));
}

fn a_page_for_others_has_a_token_and_says_it_is_not_encrypted() {
    let ground = Ground::new();
    for (words, part) in [
        (vec!["--listen", "storage:80"], "no address"),
        (
            vec!["--token-file", &token_file(&ground, "short")],
            "at least 12",
        ),
        (vec!["--studies", "."], "--control"),
        (
            vec!["--control", "--studies", "nowhere"],
            "no such directory",
        ),
    ] {
        let words: Vec<&str> = std::iter::once("serve").chain(words).collect();
        ground.stackrace(&words).ended(2).err_has(part);
    }
    let mut child = Ended(
        ground
            .program(&["serve", "--listen", "0.0.0.0:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let line = |from: &mut dyn BufRead| {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        line
    };
    let link = line(&mut BufReader::new(child.0.stdout.take().unwrap()));
    let token = link.trim().split_once("/?token=").unwrap().1;
    assert_eq!(token.len(), 32, "{link}");
    let mut said = BufReader::new(child.0.stderr.take().unwrap());
    line(&mut said);
    assert!(line(&mut said).contains("nothing is encrypted"));
    // The way that it advises leads to the port that was asked for.
    let port = link
        .split("/?token=")
        .next()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap();
    let way = line(&mut said);
    assert!(way.contains(&format!("127.0.0.1:{port} instead")), "{way}");
    assert!(
        way.contains(&format!("-L {port}:127.0.0.1:{port} ")),
        "{way}"
    );
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        studies_are_started_stopped_and_gone_on_with_where_that_is_allowed,
        of_many_starts_at_once_one_runs_and_the_others_are_told_why,
        a_token_is_never_a_word_of_the_command,
        a_run_whose_study_gives_commands_is_continued_on_a_command_line_only,
        a_forged_now_file_stops_no_other_process,
        what_is_started_goes_on_when_the_server_ends,
        a_page_for_others_has_a_token_and_says_it_is_not_encrypted
    ]
}
