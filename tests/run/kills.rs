//! Runs that are killed or interrupted.

use super::*;

fn killed_while_it_measures_it_can_be_cleaned_or_resumed() {
    needs::root_and_loop_devices();
    for clean in [true, false] {
        let ground = Ground::new();
        ground.write("slow.toml", SLOW);
        kill(start_measuring(&ground));
        let before = Log::whole(&ground);
        assert!(!ground.left().is_empty(), "nothing stood");
        if clean {
            let list = ground.stackrace(&["clean", "--list"]);
            list.ended(0);
            assert!(list.out.contains("would undo: unmount"), "{}", list.out);
            assert!(!ground.left().is_empty(), "--list removed something");
            let said = ground.stackrace(&["clean"]);
            said.ended(0);
            assert!(said.out.contains("undone: detach /"), "{}", said.out);
            assert_eq!(ground.left(), [""; 0]);
            let again = ground.stackrace(&["clean"]);
            assert_eq!(again.ended(0).out, "nothing to clean\n");
        }
        resumes(&ground, &before, 1);
    }
}

fn killed_at_any_moment_it_resumes() {
    needs::root_and_loop_devices();
    // Lines of the log at which it is killed: before anything exists, raising, settling between
    // phases, lowering, in the second round.
    for (number, lines) in [1, 4, 5, 17, 20, 47].into_iter().enumerate() {
        let ground = Ground::new();
        ground.write("small.toml", SMALL);
        let reached = |log: &Log| log.0.len() >= lines;
        kill(start_until(&ground, &["run", "small.toml"], reached));
        let before = Log::whole(&ground);
        if number % 2 == 0 {
            ground.stackrace(&["clean"]).ended(0);
            assert_eq!(ground.left(), [""; 0], "killed after {lines} lines");
        }
        resumes(&ground, &before, 2);
    }
}

/// Killed as soon as it has removed something, again and again.
fn what_a_clean_that_is_killed_leaves_the_next_one_removes() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    ground.write("slow.toml", SLOW);
    kill(start_measuring(&ground));
    let before = Log::whole(&ground);
    let mut standing = ground.left().len();
    assert!(standing > 1, "nothing stood");
    while standing > 0 {
        let mut clean = ground.program(&["clean"]);
        let mut clean = clean
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while ground.left().len() == standing && clean.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        kill(clean);
        let left = ground.left();
        assert!(left.len() < standing, "{left:?}");
        standing = left.len();
    }
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
    resumes(&ground, &before, 1);
}

/// What this machine has; the stacks that only the lab has are killed there (tests/lab).
#[expect(
    clippy::disallowed_methods,
    reason = "the program under test is a process"
)]
pub(crate) fn nothing_is_left_of_a_killed(stack: &str) {
    needs::root_and_loop_devices();
    needs::tool(&format!("mkfs.{stack}"));
    let ground = Ground::new();
    let declared = kills(1, "debian-13").into_iter();
    let mut declared = declared.filter(|kill| kill.name.eq_ignore_ascii_case(stack));
    let Kill { name, toml } = declared.next().expect("the layer declares such a stack");
    let mut command = std::process::Command::new("sh");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/kills.sh"));
    command.arg(env!("CARGO_BIN_EXE_stackrace"));
    command
        .env("CHANGES", kill_changes())
        .env("STANDING", kill_standing());
    let said = Said::of(
        &command
            .arg(ground.path())
            .args([name, &toml])
            .output()
            .unwrap(),
    );
    let words = format!("{name}: killed before and after each of ");
    assert!(said.ended(0).out.starts_with(&words), "{}", said.out);
}

fn nothing_is_left_of_a_killed_ext4() {
    nothing_is_left_of_a_killed("ext4");
}

fn nothing_is_left_of_a_killed_xfs() {
    nothing_is_left_of_a_killed("xfs");
}

fn nothing_is_left_of_a_killed_btrfs() {
    nothing_is_left_of_a_killed("btrfs");
}

/// Interrupts a run as Ctrl-C in a terminal does: the signal goes to the whole process group.
pub(crate) fn interrupt(child: Child) -> Said {
    rustix::process::kill_process_group(pid(&child), Signal::INT).unwrap();
    Said::of(&child.wait_with_output().unwrap())
}

pub(crate) fn interrupted_it_lowers_what_stands_and_says_the_verdict_so_far() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    ground.write("slow.toml", SLOW);
    let said = interrupt(start_measuring(&ground));
    said.ended(130)
        .err_has("stopping: what stands is torn down");
    assert!(said.out.starts_with("VERDICT"), "{}", said.out);
    // One next step, said once.
    let both = [said.out.as_str(), &said.err].concat();
    let next = both.lines().map(str::trim_start);
    let next: Vec<&str> = next.filter(|line| line.starts_with("next")).collect();
    assert!(
        matches!(next[..], [one] if one.starts_with("next     stackrace resume 20")),
        "{both}"
    );
    assert_eq!(ground.left(), [""; 0]);
    let log = Log::of(&ground);
    assert_eq!(log.ended(), "interrupted");
    assert_eq!(log.trials("complete").len(), 2);
    assert_eq!(log.trials("interrupted").len(), 1);
    let trial = log.all("trial")[2];
    assert!(
        trial["phases"][0]["operations"][0]["count"]
            .as_u64()
            .unwrap()
            > 0,
        "{trial}"
    );
    assert_eq!(log.failures(), []);
    resumes(&ground, &Log::whole(&ground), 1);
}

pub(crate) fn interrupted_at_any_moment_it_lowers_what_stands() {
    needs::root_and_loop_devices();
    for lines in [2, 4, 18, 41] {
        let ground = Ground::new();
        ground.write("small.toml", SMALL);
        let reached = |log: &Log| log.0.len() >= lines;
        let said = interrupt(start_until(&ground, &["run", "small.toml"], reached));
        said.ended(130);
        assert_eq!(ground.left(), [""; 0], "interrupted after {lines} lines");
        let log = Log::of(&ground);
        assert_eq!(log.ended(), "interrupted", "after {lines} lines");
        assert_eq!(log.failures(), [], "after {lines} lines");
    }
}

pub(crate) fn what_a_killed_run_occupies_is_not_in_the_way_of_its_resumption() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    // Room for one disk of 320 MiB, not for two.
    let _store = Mounted::ext4(&ground, "store", 500);
    ground.write("small.toml", SMALL.replace("\"no\"", "\"allocated\""));
    let raised = |log: &Log| !log.all("stack-set-up").is_empty();
    kill(start_until(&ground, &["run", "small.toml"], raised));
    assert!(!ground.left().is_empty(), "nothing stood");
    resumes(&ground, &Log::whole(&ground), 2);
}

#[expect(
    clippy::disallowed_methods,
    reason = "a command of the dead run has to be acted"
)]
pub(crate) fn commands_that_outlive_their_run_are_waited_for() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("dir.toml", DIRECTORY.replace("10 ms", "200 ms"));
    for verb in ["clean", "resume"] {
        let raised = |log: &Log| !log.all("stack-set-up").is_empty();
        kill(start_until(&ground, &["run", "dir.toml"], raised));
        let log = Log::of(&ground);
        let run = log.0[0]["run"].as_str().unwrap();
        // As an mdadm that was under way when the run was killed: the run is not among its words.
        let late = ground.path().join("late");
        let status = fs::read_to_string("/proc/self/stat").unwrap();
        let session = status.split_whitespace().nth(5).unwrap();
        let mut command = std::process::Command::new("sh")
            .args(["-c", "sleep 1; touch \"$0\""])
            .arg(&late)
            .env("STACKRACE_RUN", format!("{run} in session {session}"))
            .spawn()
            .unwrap();
        let store = ground.store();
        ground.stackrace(&[verb]).ended(0);
        assert!(late.exists(), "{verb} did not wait");
        command.wait().unwrap();
        fs::remove_file(late).unwrap();
        assert_eq!(ground.left(), [""; 0]);
        fs::remove_dir_all(store).unwrap();
    }
}

/// Those of kills.
pub(super) fn tests() -> Vec<needs::Test> {
    needs::tests![
        killed_while_it_measures_it_can_be_cleaned_or_resumed,
        killed_at_any_moment_it_resumes,
        what_a_clean_that_is_killed_leaves_the_next_one_removes,
        nothing_is_left_of_a_killed_ext4,
        nothing_is_left_of_a_killed_xfs,
        nothing_is_left_of_a_killed_btrfs,
    ]
}
