//! Advice is a command that works, and what a machine lacks is said with what to do about it.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Ground, Said};
use stackrace_test_needs as needs;

#[expect(
    clippy::disallowed_methods,
    reason = "what is advised is run by a shell, and the program by a user that has little"
)]
fn command(program: impl AsRef<OsStr>, args: &[&str], ground: &Ground) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_remove("STACKRACE_STORE")
        .current_dir(ground.path());
    command
}

/// Runs a shell's line in which `stackrace` is the program under test.
fn typed(ground: &Ground, line: &str) -> Said {
    let program = env!("CARGO_BIN_EXE_stackrace");
    let script = format!("stackrace() {{ {program} \"$@\"; }}\n{line}\n");
    Said::of(&command("sh", &["-c", &script], ground).output().unwrap())
}

/// The command behind a label of an answer, its lines put together.
fn advised(out: &str, label: &str) -> String {
    let from = out.lines().skip_while(|line| !line.starts_with(label));
    let mut command = String::new();
    for line in from {
        let line = line.trim_start_matches(label).trim();
        command.push_str(line.trim_end_matches('\\'));
        if !line.ends_with('\\') {
            break;
        }
    }
    command
}

fn a_store_that_is_named_needs_no_variable() {
    let ground = Ground::new();
    let runs = |words: &str| typed(&ground, &format!("STACKRACE_STORE= stackrace runs {words}"));
    runs("--store s").ended(0);
    runs("").ended(2).err_has("STACKRACE_STORE, is empty");
}

fn an_advised_command_finds_the_store_that_was_named() {
    let ground = Ground::new();
    let text = fs::read_to_string("tests/golden/fio/fio-3.41_randread.json").unwrap();
    ground.write("fio.json", text);
    let store = ground.path().join("it's a store");
    let store = store.to_str().unwrap();
    let said = ground.stackrace(&["import", "fio.json", "--store", store]);
    let command = advised(&said.ended(0).out, "next ");
    assert!(command.starts_with("stackrace report "), "{command}");
    assert!(command.contains(r"'\''s a store'"), "{command}");
    typed(&ground, &command).ended(0);
    assert!(ground.path().join("report.html").exists());
    let report = ground.stackrace(&["report", "--store", store]);
    let figures = advised(&report.ended(0).out, "figures ");
    typed(&ground, &figures).ended(0);
    // Without the option nothing is said of it.
    let plain = ground.stackrace(&["runs", "prune", "--keep", "0"]);
    assert!(!plain.ended(0).out.contains("it's"), "{}", plain.out);
}

fn a_store_that_is_a_file_is_refused_as_one() {
    let ground = Ground::new();
    let file = ground.write("file", "");
    for (store, why) in [
        (file.clone(), "it is no directory"),
        (file.join("below"), "/file is no directory"),
    ] {
        for verb in [&["runs"][..], &["run", "demo"], &["reindex"]] {
            let args = [verb, &["--store", store.to_str().unwrap()]].concat();
            ground
                .stackrace(&args)
                .ended(3)
                .err_has("no runs can be kept in")
                .err_has(why)
                .err_has("next: name a directory");
        }
    }
    let args = ["clean", "--store", file.to_str().unwrap()];
    ground
        .stackrace(&args)
        .ended(3)
        .err_has("next: name a directory");
    let args = ["doctor", "--quick", "--store", file.to_str().unwrap()];
    let doctor = ground.stackrace(&args);
    assert!(
        doctor
            .ended(0)
            .out
            .contains("no directory that can be used"),
        "{}",
        doctor.out
    );
}

fn a_home_that_is_no_whole_path_is_no_place() {
    let ground = Ground::new();
    let program = env!("CARGO_BIN_EXE_stackrace");
    let output = command(program, &["runs"], &ground)
        .env("HOME", "rel")
        .env_remove("XDG_STATE_HOME")
        .output();
    Said::of(&output.unwrap())
        .ended(2)
        .err_has("HOME is not set, or not a whole path")
        .err_has("next: name one: --store DIR");
    assert!(!ground.path().join("rel").exists());
}

fn values_below_zero_are_out_of_range() {
    let ground = Ground::new();
    for (option, why) in [
        (
            ["--margin", "-5%"],
            "next: write a share such as 5 %: above 0",
        ),
        (["--within", "-.5%"], "next: write a share"),
        (["--confidence", "-95%"], "next: write a share"),
        (["--size", "-1GiB"], "write it without the minus"),
        (["--time", "-5s"], "write it without the minus"),
        (["--rounds", "-3"], "-3 is not in 1..=10000"),
        (["--seed", "-4"], "next: write a whole number from 0 on"),
    ] {
        let args = [&["compare", "a", "b"][..], &option].concat();
        let said = ground.stackrace(&args);
        said.ended(2).err_has(why).err_has(option[0]);
        assert!(!said.err.contains("tip:"), "{}", said.err);
    }
}

/// The program as a user that owns nothing here, through another program that takes something from it.
fn as_another(ground: &Ground, through: &[&str], args: &[&str]) -> Said {
    let program = ground.path().join("stackrace");
    if !program.exists() {
        let from = env!("CARGO_BIN_EXE_stackrace");
        // By another process: no test beside this one must hold it open for writing.
        crate::support::tool("cp", &[from, program.to_str().unwrap()]);
        fs::set_permissions(ground.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = ground.make_dir("home");
        std::os::unix::fs::chown(home, Some(65534), Some(65534)).unwrap();
    }
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let words = [&user, through, &[program.to_str().unwrap()], args].concat();
    let mut command = command(needs::tool("setpriv"), &words, ground);
    command.env("HOME", ground.path().join("home"));
    Said::of(&command.output().unwrap())
}

fn a_directory_that_cannot_be_written_is_refused_before_anything_starts() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    as_another(&ground, &[], &["run", "demo"])
        .ended(3)
        .err_has("cannot write to /var/tmp/")
        .err_has("next: go to a directory that you may write to")
        .err_has("nothing was changed");
    let memory = fs::metadata("/dev/shm")
        .map(|_| "/dev/shm")
        .unwrap_or("/tmp");
    as_another(&ground, &[], &["compare", ".", memory, "--anyway"])
        .ended(3)
        .err_has("cannot write to /var/tmp/")
        .err_has("nothing was changed");
    let runs = ground.path().join("home/.local/state/stackrace/runs");
    assert!(fs::read_dir(runs).map_or(0, Iterator::count) == 0);
}

fn a_user_who_may_start_too_few_threads_is_told_the_limit() {
    needs::root_and_loop_devices();
    needs::tool("prlimit");
    let ground = Ground::new();
    for processes in ["1", "3", "6"] {
        let through = ["prlimit", &format!("--nproc={processes}")].map(str::to_owned);
        let through: Vec<&str> = through.iter().map(String::as_str).collect();
        let said = as_another(
            &ground,
            &through,
            &["load", "home", "random", "mode=read", "size=1MiB"],
        );
        said.err_has("next: raise the limit on processes (ulimit -u");
        assert!(
            matches!(said.code, Some(3 | 4)),
            "{processes}: {}",
            said.err
        );
        assert!(!said.err.contains("panicked"), "{}", said.err);
    }
}

fn without_proc_no_false_thing_is_said() {
    needs::root_and_loop_devices();
    needs::tool("unshare");
    let ground = Ground::new();
    let without = |args: &str| {
        let program = env!("CARGO_BIN_EXE_stackrace");
        let store = ground.store();
        let line = format!(
            "mount -t tmpfs none /proc && exec {program} --store {} {args}",
            store.display()
        );
        let output = command("unshare", &["--mount", "sh", "-c", &line], &ground).output();
        Said::of(&output.unwrap())
    };
    let doctor = without("doctor");
    let said = &doctor.ended(0).out;
    assert!(said.contains("mount -t proc proc /proc"), "{said}");
    for wrong in [
        "does not know the file system ext4",
        "processors      0",
        "quiet",
    ] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
    for args in [
        "run demo",
        "plan ext4-vs-xfs",
        "compare . /dev/shm",
        "clean",
        "load . random mode=read size=1MiB",
    ] {
        without(args)
            .ended(4)
            .err_has("needs /proc, and it is not mounted")
            .err_has("next: mount it: sudo mount -t proc proc /proc");
    }
}

/// Debian's sudo looks into directories of the system alone, whatever the PATH of who types it.
fn root_is_advised_with_a_program_that_sudo_finds() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let program = ground.path().join("stackrace");
    let root = ground.path().join("home/root.toml");
    as_another(&ground, &[], &["runs"]).ended(0);
    let study = "[[stack]]\nloop = { size = \"64 MiB\" }\n[[stack]]\next4 = {}\n[[workload]]\nfiles = { count = 5 }\n";
    fs::write(&root, study).unwrap();
    let words = ["run", root.to_str().unwrap()];
    let said = as_another(&ground, &[], &words).ended(4).err.clone();
    let typed = format!("run it as root: sudo {} ", program.display());
    let (_, advised) = said
        .split_once(&typed)
        .unwrap_or_else(|| panic!("no {typed} in {said}"));
    let advised: Vec<&str> = advised.split_whitespace().collect();
    // The whole command that was typed, and nothing that stands for a part of it.
    assert!(advised.ends_with(&words) && !said.contains('…'), "{said}");
    // A plan changes nothing: it is the run that root is needed for.
    let plan = as_another(&ground, &[], &["plan", root.to_str().unwrap()]);
    let folded = plan.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let advised = format!("{typed}run {}", root.display());
    assert!(folded.contains(&advised), "{}", plan.out);
    let doctor = as_another(&ground, &[], &["doctor", "--quick"]);
    let advised = format!("As root (sudo {})", program.display());
    let folded = doctor.ended(0).out.replace("\n", " ");
    assert!(folded.contains(&advised), "{}", doctor.out);
}

/// A study that ships has no file: its name with an ending would be one that is not there.
fn a_study_that_ships_is_advised_by_its_name() {
    let ground = Ground::new();
    let said = ground.stackrace(&["run", "four-drives"]);
    // As root the disks of the lab are missing, and as another user its rights as well.
    assert!(matches!(said.code, Some(3 | 4)), "{}", said.err);
    said.err_has("stackrace run four-drives --lab");
    assert!(!said.err.contains("four-drives.toml"), "{}", said.err);
    ground
        .stackrace(&["run", "four-drive"])
        .err_has("did you mean \"four-drives\"?");
}

fn a_store_that_is_named_from_a_directory_that_is_gone_is_said_to_be_that() {
    let ground = Ground::new();
    ground.make_dir("gone");
    let line = "cd gone && rmdir ../gone && stackrace runs --store here";
    typed(&ground, line)
        .ended(2)
        .err_has("cannot find the store here from the directory you stand in: ")
        .err_has("next: go to another directory (cd), or give the whole path: --store /DIR");
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        an_advised_command_finds_the_store_that_was_named,
        a_store_that_is_named_needs_no_variable,
        a_store_that_is_a_file_is_refused_as_one,
        a_store_that_is_named_from_a_directory_that_is_gone_is_said_to_be_that,
        a_home_that_is_no_whole_path_is_no_place,
        values_below_zero_are_out_of_range,
        a_directory_that_cannot_be_written_is_refused_before_anything_starts,
        a_user_who_may_start_too_few_threads_is_told_the_limit,
        without_proc_no_false_thing_is_said,
        root_is_advised_with_a_program_that_sudo_finds,
        a_study_that_ships_is_advised_by_its_name,
    ]
}
