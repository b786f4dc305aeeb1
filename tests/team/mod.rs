//! Runs in a real PostgreSQL: pushed once however often, read by the pages, refused in words.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]
#![expect(
    clippy::disallowed_methods,
    reason = "a server of PostgreSQL and its tools are processes"
)]

mod database;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use stackrace_test_needs as needs;

use crate::serve::server::{QUICK, Server};
use crate::support::Ground;
use database::{Database, GUEST, OWNER, PASSWORD};

/// The run that every test pushes.
const RUN: &str = "2026-01-02T0304-f1rst";

/// A ground with one run of the id above.
fn ran() -> Ground {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("quick.toml", QUICK);
    ground.stackrace(&["run", "quick.toml", "--quiet"]).ended(0);
    let runs = ground.store().join("runs");
    let made = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let id = made.file_name().unwrap().to_str().unwrap().to_owned();
    keep(&ground, RUN, &log(&made).replace(&id, RUN));
    fs::remove_dir_all(made).unwrap();
    ground
}

fn log(run: &Path) -> String {
    fs::read_to_string(run.join("log.jsonl")).unwrap()
}

fn log_of(ground: &Ground, run: &str) -> String {
    log(&ground.store().join("runs").join(run))
}

/// Puts a log into a store.
fn keep(ground: &Ground, run: &str, log: &str) {
    let dir = ground.store().join("runs").join(run);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("log.jsonl"), log).unwrap();
}

/// Puts more runs into a store, each longer than the one of the test by many trials.
fn keep_many(ground: &Ground, count: usize) {
    let text = log_of(ground, RUN);
    let trials: String = text
        .lines()
        .filter(|line| line.contains("\"event\":\"trial\""))
        .map(|line| format!("{line}\n"))
        .collect();
    for at in 0..count {
        let id = format!("2026-01-02T0305-m{at:03}");
        keep(ground, &id, &(text.replace(RUN, &id) + &trials.repeat(60)));
    }
}

/// The lines of a run as the database has them.
fn lines_of(database: &Database, run: &str) -> String {
    database.sql(
        "team",
        &format!(
            "SELECT convert_from(string_agg(line, ''::bytea ORDER BY number), 'UTF8') FROM stackrace.log_lines WHERE run = '{run}'"
        ),
    )
}

/// Every run of the store is there as it is, once, and so are the rows made from it.
#[track_caller]
fn all_there(ground: &Ground, database: &Database) {
    for run in fs::read_dir(ground.store().join("runs")).unwrap() {
        let run = run.unwrap().file_name().into_string().unwrap();
        let text = log_of(ground, &run);
        assert_eq!(lines_of(database, &run), text.trim_end(), "{run}");
        let trials = text.matches("\"event\":\"trial\"").count();
        let query = format!("SELECT count(*) FROM stackrace.trials WHERE run = '{run}'");
        assert_eq!(database.sql("team", &query), trials.to_string(), "{run}");
    }
}

fn a_pushed_run_is_there_once_however_often_it_is_pushed() {
    let database = Database::start();
    let ground = ran();
    let lines = log_of(&ground, RUN).lines().count();
    let said = ground.stackrace(&["push", &database.team()]);
    assert_eq!(
        said.ended(0).out,
        format!("{RUN}  entered, {lines} lines\n")
    );
    all_there(&ground, &database);
    let said = ground.stackrace(&["push", &database.team(), RUN, "last"]);
    assert_eq!(said.ended(0).out, format!("{RUN}  nothing new\n"));
    ground
        .stackrace(&["runs", "tag", RUN, "before-upgrade"])
        .ended(0);
    let said = ground.stackrace(&["push", &database.team(), "--all"]);
    assert_eq!(said.ended(0).out, format!("{RUN}  its tags entered\n"));
    all_there(&ground, &database);

    // The rows are those of the exported table.
    let csv = ground.stackrace(&["export", RUN, "--table", "observations"]);
    let rows = csv.ended(0).out.lines().count() - 1;
    assert_eq!(
        database.sql(
            "team",
            "SELECT count(*), count(DISTINCT levels->>'block-size') FROM stackrace.observations"
        ),
        format!("{rows}|2")
    );
}

fn pushes_at_once_and_killed_ones_lose_and_double_nothing() {
    let database = Database::start();
    let ground = ran();
    keep_many(&ground, 6);
    let address = database.team();
    let words = ["push", &address, "--all"];
    let push = || {
        ground
            .program(&words)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    // The first ones are killed while they make the tables, the later ones while they enter runs.
    for at in 0..12 {
        let mut pushing = push();
        std::thread::sleep(Duration::from_millis(15 * at));
        let _ = pushing.kill();
        pushing.wait().unwrap();
    }
    let pushing = [push(), push(), push()];
    for mut one in pushing {
        assert!(one.wait().unwrap().success());
    }
    all_there(&ground, &database);
    let said = ground.stackrace(&words);
    assert_eq!(
        said.ended(0).out.matches("nothing new").count(),
        7,
        "{}",
        said.out
    );
}

fn what_a_log_has_gained_is_added_and_another_log_is_refused() {
    let database = Database::start();
    let ground = ran();
    let whole = log_of(&ground, RUN);
    let half: String = whole.split_inclusive('\n').take(4).collect();
    // The last line is being written.
    keep(&ground, RUN, &format!("{half}{{\"at\":\"20"));
    ground.stackrace(&["push", &database.team()]).ended(0);
    assert_eq!(lines_of(&database, RUN), half.trim_end());
    keep(&ground, RUN, &whole);
    let said = ground.stackrace(&["push", &database.team()]);
    let added = whole.lines().count() - 4;
    assert_eq!(said.ended(0).out, format!("{RUN}  {added} lines added\n"));
    all_there(&ground, &database);

    // What was read before another one pushed more is no other log.
    keep(&ground, RUN, &half);
    let said = ground.stackrace(&["push", &database.team()]);
    assert_eq!(said.ended(0).out, format!("{RUN}  nothing new\n"));
    keep(&ground, RUN, &whole.replacen("\"seed\":", "\"seed\":1", 1));
    let said = ground.stackrace(&["push", &database.team()]);
    assert!(
        said.ended(3).err.contains("has another run of the id"),
        "{}",
        said.err
    );
    assert_eq!(lines_of(&database, RUN), whole.trim_end());
}

fn pages_show_what_was_pushed_and_change_nothing() {
    let database = Database::start();
    let ground = ran();
    ground.stackrace(&["push", &database.team()]).ended(0);
    let elsewhere = Ground::new();
    let server = Server::start(&elsewhere, &["--from", &database.team()]);
    let own = Server::start(&ground, &[]);
    let report = format!("/run/{RUN}/report.html");
    let here = own.get(&report);
    assert_eq!((here.status, server.get(&report).body), (200, here.body));
    let history = "/history?study=Block+sizes%2C+quick";
    for path in [
        "/",
        &format!("/run/{RUN}"),
        history,
        &format!("/beside?a={RUN}%2F0&b={RUN}%2F1"),
        "/metrics",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.contains(RUN), "{path}: {}", answer.body);
    }
    for path in [
        "/run/2026-01-02T0304-0ther",
        "/run/%27%3B%20DROP%20SCHEMA%20stackrace%3B--",
        "/history?study=no",
    ] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    assert_eq!(server.post("/start", "study=quick.toml").status, 403);

    // A server that was restarted is connected to again.
    database.sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stackrace'");
    assert_eq!(server.get(&format!("/run/{RUN}")).status, 200);
    all_there(&ground, &database);
    let said = elsewhere.stackrace(&["serve", "--from", &database.team(), "--control"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
}

fn rows_that_others_changed_are_input_and_no_orders() {
    let database = Database::start();
    let ground = ran();
    ground.stackrace(&["push", &database.team()]).ended(0);
    let server = Server::start(&Ground::new(), &["--from", &database.team()]);
    let page = || server.get(&format!("/run/{RUN}"));
    let team = |query: &str| database.sql("team", query);
    assert_eq!(page().status, 200);
    for (change, says) in [
        (
            "DELETE FROM stackrace.log_lines WHERE number = 2",
            "line 2 of its log is missing",
        ),
        (
            "UPDATE stackrace.log_lines SET line = '\\xff0a' WHERE number = 0",
            "does not begin a run",
        ),
    ] {
        // Its length is what tells a page that a log has changed.
        team(&format!(
            "{change}; UPDATE stackrace.runs SET bytes = bytes + 1"
        ));
        let answer = page();
        assert_eq!(answer.status, 500, "{change}");
        assert!(answer.body.contains(says), "{change}: {}", answer.body);
        // Pushing again says that the rows are not those of the log; it mends nothing in silence.
        assert_eq!(ground.stackrace(&["push", &database.team()]).code, Some(3));
        team("TRUNCATE stackrace.runs CASCADE");
        ground.stackrace(&["push", &database.team()]).ended(0);
        assert_eq!(page().status, 200);
    }
    // A log under another id is not shown as the run of that id.
    team("CREATE TABLE kept AS SELECT * FROM stackrace.log_lines; CREATE TABLE kept_runs AS SELECT * FROM stackrace.runs;
          UPDATE kept SET run = 'another'; UPDATE kept_runs SET run = 'another';
          INSERT INTO stackrace.runs SELECT * FROM kept_runs; INSERT INTO stackrace.log_lines SELECT * FROM kept");
    let answer = server.get("/run/another");
    assert!(
        answer.status == 500 && answer.body.contains("is the log of another run"),
        "{}",
        answer.body
    );
    // What is no id is listed and leads nowhere; its text is text.
    team(
        "UPDATE kept_runs SET run = '../<b>', title = '<script>'; INSERT INTO stackrace.runs SELECT * FROM kept_runs",
    );
    std::thread::sleep(Duration::from_millis(1100));
    let list = server.get("/").body;
    assert!(
        list.contains("&lt;script&gt;") && !list.contains("<script>"),
        "{list}"
    );
    assert!(!list.contains("/run/.."), "{list}");
}

fn what_cannot_be_pushed_is_refused_with_the_next_step() {
    let database = Database::start();
    let ground = ran();
    let team = database.team();
    let open = ground.write("open-address", &team);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let nowhere = database.address(OWNER, "nowhere");
    let secret = team.replace("owner@", "owner:s3cret-word@");
    let by_query = format!("{team}&password=s3cret-word");
    let unreachable = "postgresql://owner@127.0.0.1:1/team?sslmode=disable";
    for (address, code, says, next) in [
        (
            "mysql://there",
            2,
            "no address of a database",
            "postgresql://USER@HOST/DATABASE",
        ),
        (
            &nowhere,
            4,
            "database \\\"nowhere\\\" does not exist",
            "createdb nowhere",
        ),
        (&secret, 3, "the address has a password", "~/.pgpass"),
        (&by_query, 3, "the address has a password", "@FILE"),
        (
            "@open-address",
            3,
            "other users may open open-address",
            "chmod 600 open-address",
        ),
        ("@missing", 2, "cannot read missing", "name a file"),
        (
            unreachable,
            4,
            "cannot connect to owner@127.0.0.1:1/team",
            "pg_isready",
        ),
        (
            &format!("{team}&sslmode=maybe"),
            2,
            "sslmode=maybe is unknown",
            "verify-full",
        ),
    ] {
        let said = ground.stackrace(&["push", address]);
        assert_eq!(said.code, Some(code), "{address}: {}", said.err);
        assert!(said.err.contains(says), "{address}: {}", said.err);
        assert!(said.err.contains(next), "{address}: {}", said.err);
        assert!(!said.err.contains("s3cret"), "{}", said.err);
    }
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'stackrace'";
    assert_eq!(database.sql("team", made), "0");
}

fn tables_that_are_missing_foreign_or_of_another_version_are_left_alone() {
    let database = Database::start();
    let ground = ran();
    let team = database.team();
    let said = ground.stackrace(&["serve", "--from", &team]);
    assert!(
        said.ended(2).err.contains("has no results of stackrace"),
        "{}",
        said.err
    );
    assert_eq!(
        database.sql(
            "team",
            "SELECT count(*) FROM pg_namespace WHERE nspname = 'stackrace'"
        ),
        "0"
    );

    // What is called like ours and is not is left alone.
    database.sql("postgres", "CREATE DATABASE other");
    database.sql(
        "other",
        "CREATE SCHEMA stackrace; CREATE TABLE stackrace.mine (x int)",
    );
    let said = ground.stackrace(&["push", &database.address(OWNER, "other")]);
    assert!(
        said.ended(4)
            .err
            .contains("schema \\\"stackrace\\\" already exists"),
        "{}",
        said.err
    );
    assert_eq!(
        database.sql(
            "other",
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'stackrace'"
        ),
        "1"
    );

    ground.stackrace(&["push", &team]).ended(0);
    for (version, next) in [
        (2, "use that stackrace, or a newer one"),
        (0, "make a new database"),
    ] {
        database.sql(
            "team",
            &format!("UPDATE stackrace.schema_version SET version = {version}"),
        );
        for words in [["push", &team].as_slice(), &["serve", "--from", &team]] {
            let said = ground.stackrace(words);
            assert!(
                said.ended(3)
                    .err
                    .contains(&format!("are of version {version}")),
                "{}",
                said.err
            );
            assert!(said.err.contains(next), "{}", said.err);
        }
    }
}

fn passwords_come_from_where_psql_takes_them() {
    let database = Database::start();
    let ground = ran();
    ground.stackrace(&["push", &database.team()]).ended(0);
    let guest = database.address(GUEST, "team");
    let private = |name: &str, text: &str| {
        let path = ground.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    // A colon and a backslash are escaped in the file of passwords, and by percent in an address.
    let passwords = private(
        "passwords",
        &format!("# ours\nelsewhere:*:*:*:no\n*:*:team:{GUEST}:only\\:a\\\\test\n"),
    );
    private(
        "address",
        &guest.replace("guest@", "guest:only%3Aa%5Ctest@"),
    );
    let push = |address: &str| {
        let mut command: Command = ground.program(&["push", address]);
        command
            .env_remove("PGPASSWORD")
            .env_remove("PGPASSFILE")
            .env("HOME", "/nonexistent");
        command
    };
    let ended = |command: &mut Command| {
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, err) = ended(&mut push(&guest));
    assert!(code == Some(4) && err.contains("~/.pgpass"), "{err}");
    let (_, err) = ended(push(&guest).env("PGPASSWORD", "a-wrong-one"));
    assert!(
        err.contains("authentication failed") && !err.contains("a-wrong-one"),
        "{err}"
    );
    for (address, variable, value) in [
        (guest.as_str(), "PGPASSWORD", PASSWORD),
        (&guest, "PGPASSFILE", passwords.to_str().unwrap()),
        ("@address", "PGAPPNAME", ""),
    ] {
        // The guest is let in, and may do nothing there yet.
        let (code, err) = ended(push(address).env(variable, value));
        assert!(
            code == Some(4) && err.contains("GRANT USAGE ON SCHEMA"),
            "{variable}: {err}"
        );
    }
    database.sql("team", &format!("GRANT USAGE ON SCHEMA stackrace TO {GUEST}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stackrace TO {GUEST}"));
    let (code, err) = ended(push("@address").env("PGOPTIONS", ""));
    assert_eq!(code, Some(0), "{err}");
}

fn a_server_is_trusted_by_its_certificate_alone() {
    let database = Database::start();
    let (port, roots) = database.encrypt();
    let ground = ran();
    let other = Database::start();
    let (_, others) = other.encrypt();
    ground.write("others.crt", fs::read(others).unwrap());
    let roots = roots.to_str().unwrap();
    let push = |host: &str, words: &str| {
        let address = format!("postgresql://{OWNER}@{host}:{port}/team?{words}");
        ground.stackrace(&["push", &address])
    };
    let entered = || database.sql("team", "SELECT to_regclass('stackrace.runs') IS NOT NULL");
    // The server takes no other connection, so that one that is taken is encrypted.
    push("127.0.0.1", "sslmode=disable")
        .ended(4)
        .err_has("no encryption");
    let other = format!(
        "sslmode=require&sslrootcert={}",
        ground.path().join("others.crt").display()
    );
    push("127.0.0.1", &other)
        .ended(4)
        .err_has("sslrootcert=FILE");
    // Signed by the right one, but of another name.
    let right = format!("sslmode=verify-full&sslrootcert={roots}");
    push("localhost", &right)
        .ended(4)
        .err_has("not valid for name");
    push("127.0.0.1", "sslmode=require&sslrootcert=/nowhere")
        .ended(4)
        .err_has("/nowhere");
    assert_eq!(
        entered(),
        "f",
        "something was entered over a connection that was refused"
    );
    push("127.0.0.1", &right).ended(0);
    all_there(&ground, &database);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        a_server_is_trusted_by_its_certificate_alone,
        a_pushed_run_is_there_once_however_often_it_is_pushed,
        pushes_at_once_and_killed_ones_lose_and_double_nothing,
        what_a_log_has_gained_is_added_and_another_log_is_refused,
        pages_show_what_was_pushed_and_change_nothing,
        rows_that_others_changed_are_input_and_no_orders,
        what_cannot_be_pushed_is_refused_with_the_next_step,
        tables_that_are_missing_foreign_or_of_another_version_are_left_alone,
        passwords_come_from_where_psql_takes_them,
    ]
}
