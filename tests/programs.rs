//! Programs of others as workloads: commands of the user's, git, a compiler, a PostgreSQL server.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[path = "programs/figures.rs"]
mod figures;

use std::fs;
#[cfg(feature = "postgresql")]
use std::path::Path;
use std::process::{Child, Stdio};

use crate::support::{Ground, Said};
use figures::{
    a_comparison_of_coarse_figures_ends_and_says_why,
    a_printed_figure_that_never_moves_is_doubted_in_the_verdict,
    directories_are_compared_with_a_command_and_its_figures,
    figures_of_other_work_are_not_compared,
    figures_of_other_work_are_not_compared_after_resume_either,
    the_times_that_a_tool_prints_are_compared,
    what_a_tool_says_against_its_figures_stands_in_the_report,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stackrace_test_needs as needs;

/// A study whose command says that it ran.
fn study(ground: &Ground) -> String {
    ground.make_dir("data");
    let mark = ground.path().join("ran");
    format!(
        "title = \"t\"\n[factors]\nn = [1, 2]\n[[stack]]\ndir = {{ path = \"data\" }}\n[[workload]]\nname = \"w\"\n[workload.command]\nrun = \"echo {{n}} >> {0}; head -c 1000 /dev/zero > f\"\nprepare = \"echo prepared >> {0}\"\n[decide]\nrounds-at-most = 2\n",
        mark.display()
    )
}

fn a_study_runs_commands_only_where_the_user_says_so() {
    let ground = Ground::new();
    let text = study(&ground);
    ground.write("s.toml", text);
    let refused = ground.stackrace(&["run", "s.toml"]);
    refused.ended(3);
    for word in [
        "workload w: echo 1 >> ",
        "workload w: echo prepared",
        "--allow-commands",
    ] {
        assert!(refused.err.contains(word), "{word}: {}", refused.err);
    }
    let plan = ground.stackrace(&["plan", "s.toml"]);
    plan.ended(0);
    assert!(
        plan.out.contains("workload w: echo prepared"),
        "{}",
        plan.out
    );
    let ran = ground.path().join("ran");
    assert!(!ran.exists(), "a command ran without permission");
    ground
        .stackrace(&["run", "s.toml", "--allow-commands"])
        .ended(0);
    let lines = fs::read_to_string(&ran).unwrap();
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    let twice = |word| [word; 2];
    assert_eq!(
        lines,
        [&twice("1")[..], &twice("2"), &["prepared"; 4]].concat()
    );
    // The log is no permission either.
    let again = ground.stackrace(&["resume", "--rounds", "1"]);
    again.ended(3);
    assert!(again.err.contains("--allow-commands"), "{}", again.err);
    ground
        .stackrace(&["resume", "--rounds", "1", "--allow-commands"])
        .ended(0);
    assert_eq!(ground.left(), [""; 0]);
}

/// A study whose layer mounts a file system in memory, and says in a file what it does. The first set-up
/// kills stackrace if `deadly` is there.
fn own_storage(ground: &Ground) -> String {
    let said = ground.path().join("said");
    let deadly = ground.path().join("deadly");
    format!(
        r#"title = "t"
[factors]
n = [1, 2]
[[stack]]
[stack.script]
set-up = """
echo up >> {said}
mount -t tmpfs -o size=16M none $STACKRACE_MOUNT
# The parent is timeout(1), and its parent is stackrace.
! rm {deadly} 2> /dev/null || kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat)"""
tear-down = "echo down >> {said}; ! mountpoint -q $STACKRACE_MOUNT || umount $STACKRACE_MOUNT"
describe = "echo 'flavour: number {{n}}'"
drop-caches = "echo cold >> {said}"
[[workload]]
name = "w"
random = {{ mode = "write", size = "1 MiB", block-size = "4 KiB", time = "0.1 s" }}
[decide]
rounds-at-most = 2
"#,
        said = said.display(),
        deadly = deadly.display()
    )
}

/// What the commands of such a study said, how often each.
fn said_of(ground: &Ground) -> [usize; 3] {
    let text = fs::read_to_string(ground.path().join("said")).unwrap_or_default();
    ["up", "down", "cold"].map(|word| text.lines().filter(|line| *line == word).count())
}

fn storage_of_the_users_own_commands_is_measured_and_gone() {
    needs::root();
    let ground = Ground::new();
    ground.write("s.toml", own_storage(&ground));
    let refused = ground.stackrace(&["run", "s.toml"]);
    refused.ended(3);
    for word in [
        "layer script, set-up: echo up",
        "layer script, tear-down: echo down",
        "layer script, describe: ",
        "layer script, drop-caches: ",
        "--allow-commands",
    ] {
        assert!(refused.err.contains(word), "{word}: {}", refused.err);
    }
    ground.stackrace(&["plan", "s.toml"]).ended(0);
    assert_eq!(said_of(&ground), [0; 3], "a command ran without permission");
    let far = ["run", "s.toml", "--allow-commands", "--on", "localhost"];
    let far = ground.stackrace(&far);
    far.ended(3);
    assert!(far.err.contains("on this machine alone"), "{}", far.err);
    let ran = ground.stackrace(&["run", "s.toml", "--allow-commands"]);
    ran.ended(0);
    let [up, down, cold] = said_of(&ground);
    assert!(up >= 2 && up == down && cold >= 4, "{up} {down} {cold}");
    let json = ground
        .stackrace(&["report", "--format", "json"])
        .ended(0)
        .out
        .clone();
    assert!(
        json.contains("flavour") && json.contains("number 2"),
        "{json}"
    );
    assert_eq!(ground.left(), [""; 0]);
}

fn what_a_users_commands_set_up_is_taken_down_only_with_permission() {
    needs::root();
    let ground = Ground::new();
    ground.write("s.toml", own_storage(&ground));
    let dies = |words: &[&str]| {
        ground.write("deadly", "");
        let died = ground.stackrace(words);
        assert_eq!(died.code, None, "{}", died.err);
    };
    let mounted = || {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        mounts.contains(&*ground.path().to_string_lossy())
    };
    dies(&["run", "s.toml", "--allow-commands"]);
    assert!(mounted() && said_of(&ground)[1] == 0);
    // A journal without a record of its own may not use the command of another run.
    let tear_down = own_storage(&ground);
    let tear_down = tear_down
        .lines()
        .find_map(|line| line.strip_prefix("tear-down = "));
    let digest = blake3::hash(tear_down.unwrap().trim_matches('"').as_bytes()).to_hex();
    let theirs = ground.store().join("runs/hostile");
    let at = theirs.join("x").display().to_string();
    hostile(&ground, &[&at, digest.as_str()]);
    for words in [&["clean", "--list"][..], &["clean"]] {
        let kept = ground.stackrace(words);
        for word in ["tear down ", "echo down >> ", "--allow-commands"] {
            assert!(kept.out.contains(word), "{word}: {}", kept.out);
        }
        assert!(mounted() && said_of(&ground)[1] == 0, "it ran unpermitted");
    }
    let cleaned = ground.stackrace(&["clean", "--allow-commands"]);
    cleaned.ended(4);
    let unknown = "the record of its run does not have the command";
    assert!(cleaned.out.contains(unknown), "{}", cleaned.out);
    assert!(!mounted());
    assert_eq!(
        said_of(&ground)[1],
        1,
        "that of the hostile journal ran, too"
    );
    fs::remove_dir_all(&theirs).unwrap();
    ground.stackrace(&["clean"]).ended(0);
    // `resume` takes it down, too, where the study's commands are permitted.
    dies(&["resume", "--allow-commands"]);
    ground.stackrace(&["resume"]).ended(3);
    assert!(mounted());
    ground.stackrace(&["resume", "--allow-commands"]).ended(0);
    assert!(!mounted());
    assert_eq!(ground.left(), [""; 0]);
}

/// Writes the journal of a run that died and left no record, with one entry of the layer script.
fn hostile(ground: &Ground, of: &[&str]) {
    let dir = ground.store().join("runs/hostile");
    fs::create_dir_all(&dir).unwrap();
    let undo = json!({"layer": {"name": "script", "undo": "tear-down", "of": of}});
    let lines = [
        json!({"journal": 3, "run": "hostile"}),
        json!({"mark": "0123456789abcdef"}),
        json!({"entry": 1, "group": "a", "undo": undo}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(dir.join("journal.jsonl"), text).unwrap();
}

/// An entry names a command by its digest, and the command is looked up in the run's own record. So
/// nothing that a journal says is ever run, permission or not.
fn a_journal_gives_no_command() {
    let ground = Ground::new();
    let canary = ground.path().join("canary");
    let order = format!("touch {}", canary.display());
    let ours = ground.store().join("runs/hostile/x").display().to_string();
    let digest = blake3::hash(order.as_bytes()).to_hex().to_string();
    let shell = format!("$({order})");
    let refused = "asks for something that its run did not create";
    let entries: [(&[&str], &str); 8] = [
        (&[&ours, &order], refused),
        (&[&ours, &shell], refused),
        (&[&shell, &digest], refused),
        (&["/etc", &digest], refused),
        (&[&ours, &digest, &order], refused),
        (&[&ours], refused),
        (&[&ours, &digest[1..]], refused),
        // As a run writes it: the record would have to have the command, and there is none.
        (
            &[&ours, &digest],
            "the record of its run does not have the command",
        ),
    ];
    for (of, why) in needs::attacks(entries) {
        for words in [
            &["clean"][..],
            &["clean", "--list"],
            &["clean", "--allow-commands"],
        ] {
            hostile(&ground, of);
            let said = ground.stackrace(words);
            let lists = words.contains(&"--list") && why != refused;
            assert_eq!(said.code, Some(if lists { 0 } else { 4 }), "{}", said.out);
            assert!(lists || said.out.contains(why), "{}", said.out);
            assert!(!canary.exists(), "{words:?} obeyed {of:?}");
        }
    }
}

/// Starts a comparison whose command goes on until it is ended.
fn endless(ground: &Ground) -> Child {
    ground.make_dir("a");
    ground.make_dir("b");
    let number = ground.path().join("number");
    // The first try comes to its end at once.
    let line = format!(
        "if test -e {0}.tried; then echo $$ > {0}; (sleep 1000 &); sleep 1000; fi; touch {0}.tried",
        number.display()
    );
    let mut program = ground.program(&["compare", "a", "b", "--anyway", "--", &line]);
    let mut child = program
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The line is whole once it ends.
    while !fs::read_to_string(&number).is_ok_and(|text| text.ends_with('\n')) {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the comparison is over"
        );
        std::thread::yield_now();
    }
    child
}

/// Processes that work in this ground.
fn working_in(ground: &Ground) -> Vec<String> {
    let here = format!("STACKRACE_DIR={}", ground.path().display());
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| {
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let ours = String::from_utf8_lossy(&environment).contains(&here);
        ours.then(|| fs::read_to_string(entry.path().join("comm")).unwrap_or_default())
    })
    .collect()
}

fn ctrl_c_ends_the_command_with_all_that_it_began() {
    let ground = Ground::new();
    let child = endless(&ground);
    assert!(!working_in(&ground).is_empty());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said = Said::of(&child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert_eq!(working_in(&ground), [""; 0]);
    assert_eq!(ground.left(), [""; 0]);
}

fn what_a_killed_run_left_working_is_ended_by_clean() {
    let ground = Ground::new();
    let mut child = endless(&ground);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!working_in(&ground).is_empty(), "nothing is left to clean");
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(working_in(&ground), [""; 0]);
    assert_eq!(ground.left(), [""; 0]);
}

/// Loads a directory with a workload; its metrics all have values.
fn loads(words: &[&str]) {
    let ground = Ground::new();
    ground.make_dir("data");
    let said = ground.stackrace(&[&["load", "data"], words, &["--json"]].concat());
    said.ended(0);
    let loaded: Value = serde_json::from_str(&said.out).unwrap();
    let metrics = loaded["metrics"].as_array().unwrap();
    assert!(!metrics.is_empty());
    for metric in metrics {
        // What stays in memory is neither read nor written: an ordinary user cannot drop all caches.
        let of_bytes = metric["name"].as_str().unwrap().starts_with("bytes ");
        let may_be_none = of_bytes && !rustix::process::geteuid().is_root();
        let value = metric["value"].as_f64();
        assert!(
            may_be_none || value.is_some_and(|value| value > 0.0),
            "{metric}"
        );
    }
    assert_eq!(working_in(&ground), [""; 0]);
    assert_eq!(ground.left(), [""; 0]);
}

fn git_clones_and_checks_out() {
    needs::tool("git");
    loads(&["git", "files=50", "commits=3"]);
}

fn sources_are_compiled() {
    needs::tool("cc");
    needs::tool("make");
    loads(&["build", "files=4", "jobs=2"]);
}

/// Ends a test where there is no PostgreSQL.
fn postgresql() {
    let installed = fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut all| all.next().is_some());
    if !installed && needs::find("postgres").is_none() {
        needs::skip("needs postgresql");
    }
    needs::tool("setpriv");
}

fn a_postgresql_server_is_loaded_and_gone() {
    postgresql();
    loads(&["postgresql", "scale=1", "time=1 s", "clients=2"]);
    loads(&["postgresql", "scale=1", "time=1 s", "script=select-only"]);
}

fn transactions_of_postgresql_are_timed_and_its_server_is_gone() {
    postgresql();
    with_client();
    let asked = ["promises", "idiom=postgresql", "operations=50"];
    loads(&asked);
    let off = [
        "fsync=off",
        "synchronous-commit=off",
        "full-page-writes=off",
    ];
    loads(&[&asked[..], &off].concat());
}

/// Ends a test where this program has no client for PostgreSQL.
fn with_client() {
    if !cfg!(feature = "postgresql") {
        needs::skip("needs the feature postgresql");
    }
}

/// What is found in a directory of this test's own after the server there was killed.
#[cfg(feature = "postgresql")]
fn killed(settings: &str, harm: impl FnOnce(&Path)) -> stackrace::testing::KilledDatabase {
    let ground = Ground::new();
    let data = ground.make_dir("killed");
    let found = stackrace::testing::killed_database(&data, settings, harm).unwrap();
    assert!(
        found.acknowledged > 0,
        "it was killed before it had done anything"
    );
    assert_eq!(working_in(&ground), [""; 0]);
    found
}

#[cfg(feature = "postgresql")]
fn a_killed_postgresql_server_keeps_what_it_committed() {
    postgresql();
    // The kernel lives on: what was handed to it is kept, with any fsync.
    for settings in ["fsync = \"on\"", "fsync = \"off\""] {
        let found = killed(settings, |_| ());
        assert_eq!(
            (found.stale, found.damaged),
            (0, 0),
            "{settings}: {found:?}"
        );
        assert_eq!(found.refused, None);
        assert!(found.repair.is_empty(), "{found:?}");
    }
    // As a power cut leaves the lock file without fsync: the server refuses until it is removed.
    let found = killed("fsync = \"off\"", |data| {
        fs::write(data.join("data/postmaster.pid"), "").unwrap();
    });
    assert_eq!(found.repair, ["rm data/postmaster.pid"]);
    assert_eq!((found.refused, found.stale, found.damaged), (None, 0, 0));
    // The last commits were in the memory of its processes alone; what is there is whole.
    let found = killed("synchronous-commit = \"off\"", |_| ());
    assert_eq!(found.damaged, 0, "{found:?}");
    assert_eq!(found.refused, None);
}

#[cfg(feature = "postgresql")]
fn a_postgresql_server_that_does_not_start_again_is_a_finding() {
    postgresql();
    let found = killed("fsync = \"on\"", |directory| {
        // Without it nothing says where recovery begins.
        fs::write(directory.join("data/global/pg_control"), [0; 8192]).unwrap();
    });
    let refused = found.refused.unwrap();
    assert!(refused.contains("the end of its log:"), "{refused}");
    assert!(found.damaged > 0);
    assert_eq!(found.found, Some(format!("PostgreSQL: {refused}")));
}

#[cfg(not(feature = "postgresql"))]
fn a_killed_postgresql_server_keeps_what_it_committed() {
    with_client();
}

#[cfg(not(feature = "postgresql"))]
fn a_postgresql_server_that_does_not_start_again_is_a_finding() {
    with_client();
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        a_study_runs_commands_only_where_the_user_says_so,
        storage_of_the_users_own_commands_is_measured_and_gone,
        what_a_users_commands_set_up_is_taken_down_only_with_permission,
        a_journal_gives_no_command,
        directories_are_compared_with_a_command_and_its_figures,
        what_a_tool_says_against_its_figures_stands_in_the_report,
        a_comparison_of_coarse_figures_ends_and_says_why,
        a_printed_figure_that_never_moves_is_doubted_in_the_verdict,
        figures_of_other_work_are_not_compared,
        figures_of_other_work_are_not_compared_after_resume_either,
        the_times_that_a_tool_prints_are_compared,
        ctrl_c_ends_the_command_with_all_that_it_began,
        what_a_killed_run_left_working_is_ended_by_clean,
        git_clones_and_checks_out,
        sources_are_compiled,
        a_postgresql_server_is_loaded_and_gone,
        transactions_of_postgresql_are_timed_and_its_server_is_gone,
        a_killed_postgresql_server_keeps_what_it_committed,
        a_postgresql_server_that_does_not_start_again_is_a_finding,
    ]
}
