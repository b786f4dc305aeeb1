//! Storage that stops answering, is taken away or is used up under the program, on mapped devices of a guest.

use super::*;

#[expect(
    clippy::disallowed_methods,
    reason = "a test watches the program from outside"
)]
fn wait(seconds: u64) {
    thread::sleep(Duration::from_secs(seconds));
}

pub(crate) fn storage_that_stops_is_taken_away_or_is_used_up_is_named_and_nothing_is_lost() {
    cache("image");
    let ground = Ground::new();
    let words = ["lab", "shell", "--system", &system()];
    let guest = ["--disk", "2 GiB", "--disk", "1 GiB", "--", "bash", "-c"];
    let script = [include_str!("trouble.sh"), "trouble.sh", "/kit/stackrace"];
    let cases = ["suspended", "taken_away", "quota"];
    let said = ground.stackrace(&[&words[..], &guest, &script, &cases].concat());
    said.ended(0);
    let part = |name: &str| {
        let mut parts = said.out.split("\n== ");
        let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
        part.unwrap_or_else(|| panic!("no part {name}: {}{}", said.out, said.err))
    };
    let has = |name: &str, all: &[&str]| {
        let part = part(name);
        for words in all {
            assert!(part.contains(words), "{name}: {words}: {part}");
        }
    };
    has(
        "suspended",
        &[
            "code 130\n",
            "waiting for storage: ",
            "does not return",
            "stopped at once; `stackrace clean` removes what is left",
            "undone: remove /mnt/a/.stackrace-load-",
        ],
    );
    assert!(!part("suspended").contains("left: "), "{}", said.out);
    // What is on a device that is gone cannot be removed: it is named, and the other configuration goes on.
    has(
        "taken_away",
        &[
            "code 5\n",
            "No verdict: /mnt/a failed in round ",
            "Input/output error",
            "next     mend what made /mnt/a fail, then:",
            "not undone: remove /mnt/a/.stackrace-",
            "code 4\n",
        ],
    );
    has(
        "quota",
        &["/mnt/b/few has 8 MiB free; this needs 64 MiB", "code 3\n"],
    );
    assert_eq!(part("quota").matches("Disk quota exceeded").count(), 2);
    assert!(!part("quota").contains("left: "), "{}", said.out);
}

/// The nearest to a suspended machine that a guest can be brought to from outside: all of it stands still, and its
/// clocks go on. (Asleep in earnest, a guest of the lab does not wake up again: its reset ends it.)
pub(crate) fn a_trial_in_which_the_whole_machine_stood_still_does_not_count() {
    cache("image");
    let ground = Ground::new();
    let study = "title = \"It stands still\"\n[[stack]]\nlab-disks = { size = \"128 MiB\", latency = \"20 ms\" }\n\
                 [[stack]]\next4 = {}\n[[workload]]\nrandom = { mode = \"read\", size = \"1 MiB\", \
                 block-size = \"4 KiB\", direct = true, time = \"8 s\" }\n[decide]\nrounds-at-most = 1\n";
    ground.write("study.toml", study);
    let mut command = ground.program(&["run", "study.toml", "--lab", "--system", &system()]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut program = command.spawn().unwrap();
    let run = || fs::read_dir(ground.store().join("runs")).ok()?.next()?.ok();
    let now = || {
        let text = fs::read(run()?.path().join("now.json")).ok()?;
        serde_json::from_slice::<Value>(&text).ok()
    };
    until(&mut program, "a trial is measured", || {
        now().is_some_and(|now| {
            now["part"] == "random read" && now["elapsed_ns"].as_u64() > Some(1_000_000_000)
        })
    });
    let [machine] = machines(&ground)[..] else {
        panic!("one machine");
    };
    let machine = Pid::from_raw(machine).unwrap();
    kill_process(machine, Signal::STOP).unwrap();
    wait(4);
    kill_process(machine, Signal::CONT).unwrap();
    let said = Said::of(&program.wait_with_output().unwrap());
    said.ended(0)
        .err_has("does not count: the program was stopped for")
        .err_has("it is measured again");
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    let ended: Vec<&Value> = trials
        .iter()
        .map(|trial| &trial["ended"]["state"])
        .collect();
    assert_eq!(ended, ["interrupted", "complete"], "{ended:?}");
    // By the clock that no one sets: with the gap in it, and so longer than was asked for.
    let took = |trial: &Value| trial["elapsed_ns"].as_u64().unwrap();
    assert!(took(trials[0]) >= 8_000_000_000, "{}", trials[0]);
    assert_eq!(trials[1]["counted"]["paused_ns"], 0, "{}", trials[1]);
    assert!(machines(&ground).is_empty());
}

/// A guest would go on for ever, unseen.
pub(crate) fn a_shell_in_a_guest_that_is_told_to_end_leaves_no_guest() {
    cache("image");
    for signal in [Signal::TERM, Signal::HUP] {
        let ground = Ground::new();
        let words = ["lab", "shell", "--system", &system(), "--", "sleep", "600"];
        let mut command = ground.program(&words);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut program = command.spawn().unwrap();
        until(&mut program, "a machine runs", || {
            !machines(&ground).is_empty()
        });
        wait(12);
        let id = Pid::from_raw(i32::try_from(program.id()).unwrap()).unwrap();
        kill_process(id, signal).unwrap();
        let said = Said::of(&program.wait_with_output().unwrap());
        said.ended(130).err_has("stopping: the guests are ended");
        assert!(machines(&ground).is_empty());
        assert_eq!(ground.left(), Vec::<String>::new());
    }
}
