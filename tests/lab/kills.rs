//! Whenever a program is killed, results are kept and nothing else is left.

use super::*;

pub(crate) fn after_any_kill_results_are_kept_and_nothing_else() {
    cache("image");
    for victim in ["guest", "program", "nothing"] {
        let ground = Ground::new();
        ground.write("study.toml", LOOP);
        let mut command = ground.program(&["run", "study.toml", "--lab", "--system", &system()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = command.spawn().unwrap();
        until(&mut program, "three trials", || {
            of_kind(&log(&ground), "trial").len() >= 3
        });
        let signal = |id: u32, signal: Signal| {
            kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
        };
        match victim {
            "guest" => {
                let machines = machines(&ground);
                assert_eq!(machines.len(), 1);
                signal(u32::try_from(machines[0]).unwrap(), Signal::KILL);
            }
            "program" => program.kill().unwrap(),
            _ => signal(program.id(), Signal::INT),
        }
        let status = program.wait().unwrap();
        let kept = log(&ground);
        assert!(of_kind(&kept, "trial").len() >= 3, "{victim}");
        let ended = of_kind(&kept, "run-ended");
        match victim {
            "guest" => {
                assert_eq!(status.code(), Some(5));
                assert_eq!(ended[0]["reason"], "failed");
            }
            "program" => {
                assert!(ended.is_empty());
                assert!(!ground.left().is_empty(), "its files wait for clean");
                let cleaned = ground.stackrace(&["clean"]);
                assert_eq!(cleaned.code, Some(0), "{}", cleaned.out);
            }
            _ => {
                assert_eq!(status.code(), Some(130));
                assert_eq!(ended[0]["reason"], "interrupted");
            }
        }
        assert!(machines(&ground).is_empty(), "{victim}");
        assert_eq!(ground.left(), Vec::<String>::new(), "{victim}");
        assert!(ground.stackrace(&["report", "last"]).code == Some(0));
    }
}

/// What a kill leaves is found on both machines, and removed when both are named.
pub(crate) fn kills_are_cleaned<'a>(part: &dyn Fn(&str) -> &'a str) {
    for (victim, code) in [("all", 137), ("line", 5), ("keeper", 137)] {
        let killed = part(&format!("{victim} killed"));
        assert!(killed.contains(&format!("code {code}\n")), "{killed}");
        let left = part(&format!("{victim} killed, stands"));
        // A worker that was not killed tears down what it can.
        assert!(left.contains(".stackrace-peer-"), "{victim}: {left}");
        let device = left.contains("role:") && left.contains("/dev/loop");
        assert!(device || victim != "all", "{left}");
        let cleaned = part(&format!("{victim} cleaned"));
        for words in [
            "add --peer root@10.77.0.3",
            "belongs to a run whose first machine is another",
            "codes 4 4 0",
        ] {
            assert!(cleaned.contains(words), "{victim}: {words}: {cleaned}");
        }
        assert_eq!(
            part(&format!("{victim} cleaned, stands")).trim(),
            "",
            "{victim}"
        );
    }
}

/// In a guest that the program takes for any machine: kill -9 before and after every command by which
/// a stack is raised, used and lowered.
pub(crate) fn killed_before_and_after_every_command_of_a_stack_nothing_is_left() {
    cache("zfs");
    killed_at_every_command(&[], kills(1, &system()));
}

/// The same of stacks over two machines: at the first one's commands everything is killed there, at the
/// peer's the program there.
pub(crate) fn killed_at_every_command_of_either_machine_nothing_is_left() {
    cache("image");
    killed_at_every_command(&["--peer", "root@10.77.0.2"], kills(2, &system()));
}

/// The stacks that `STACKRACE_KILLS` names, with spaces between them: one that failed is tried again
/// without the hours of all others. Where it is not set: all.
#[expect(clippy::disallowed_methods, reason = "the test's own setting")]
fn asked_for(stacks: Vec<Kill>) -> Vec<Kill> {
    let Ok(names) = std::env::var("STACKRACE_KILLS") else {
        return stacks;
    };
    let names: Vec<&str> = names.split_whitespace().collect();
    let asked: Vec<Kill> = stacks
        .into_iter()
        .filter(|stack| names.contains(&stack.name))
        .collect();
    assert_eq!(asked.len(), names.len(), "STACKRACE_KILLS: {names:?}");
    asked
}

/// One by one takes hours under emulation: two at a time, in fresh guests for each stack.
#[expect(clippy::print_stderr, reason = "what is done is said at once")]
pub(crate) fn killed_at_every_command(peer: &[&str], stacks: Vec<Kill>) {
    let at_stack = |stack: &Kill| {
        // In a guest, /tmp is memory.
        let base = "/tmp/kills";
        let kills = include_str!("kills.sh");
        let declared = format!(
            "CHANGES='{}'\nSTANDING=$(cat <<'END'\n{}END\n)\n",
            kill_changes(),
            kill_standing()
        );
        let words = ["kills.sh", "/kit/stackrace", base];
        let words = [&words[..], peer, &[stack.name, &stack.toml]].concat();
        if !peer.is_empty() {
            let script = format!("{SSH}{declared}{kills}");
            let guests = GuestsOverSsh {
                nodes: 2,
                memory_bytes: 1536 << 20,
                path_first: &format!("{base}/shims:"),
            };
            return over_ssh(&guests, &[&[&*script][..], &words[..]].concat());
        }
        let script = format!("{declared}{kills}");
        let ground = Ground::new();
        let mut command = ground.program(&["lab", "shell", "--system", &system()]);
        command.args(["--memory", "1536 MiB", "--", "bash", "-c", &script]);
        Said::of(&command.args(words).output().unwrap())
    };
    let left = Mutex::new(asked_for(stacks));
    let failed = Mutex::new(Vec::new());
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while let Some(stack) = { left.lock().unwrap().pop() } {
                    let said = at_stack(&stack);
                    eprint!("{}", said.out);
                    if said.code != Some(0) || !said.out.contains(", nothing was left") {
                        let said = format!("{}: {}{}", stack.name, said.out, said.err);
                        failed.lock().unwrap().push(said);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.concat());
}
