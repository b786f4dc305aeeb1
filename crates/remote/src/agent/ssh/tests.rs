//! The line that any login takes, and logins that do not become a worker.

use super::*;

#[test]
fn the_script_is_one_line_that_every_login_shell_hands_on() {
    for sudo in [false, true] {
        let script = script("00ff", sudo, sudo.then_some(20));
        let inside = script.strip_prefix("exec sh -c '").unwrap();
        let inside = inside.strip_suffix('\'').unwrap();
        assert!(!inside.contains(['\'', '\\', '\n', '!']), "{inside}");
        assert_eq!(inside.contains("sudo -n"), sudo);
    }
}

#[test]
fn what_is_said_is_kept_to_its_end() {
    let said = SshWords::of(std::io::Cursor::new("ä\n".repeat(SAID_MAX)));
    said.whole();
    said.add("last");
    let whole = said.whole();
    assert!(whole.len() <= SAID_MAX && whole.contains("last"), "{whole}");
}

#[test]
fn another_processor_and_an_older_library_are_refused() {
    let to = Destination::parse("server").unwrap();
    let program = Program {
        bytes: b"\0GLIBC_2.34\0".to_vec(),
        hash: String::new(),
    };
    let here = rustix::system::uname();
    let like = format!(
        "{} {}",
        here.sysname().to_string_lossy(),
        here.machine().to_string_lossy()
    );
    let found = |system: &str, libc: &str| Found {
        system: system.to_string(),
        libc: libc.to_string(),
        ..Found::default()
    };
    for (libc, fits) in [("glibc 2.34", true), ("glibc 2.31", false), ("", true)] {
        assert_eq!(
            check(&to, &found(&like, libc), &program).is_ok(),
            fits,
            "{libc}"
        );
    }
    let error = check(&to, &found("Linux s390x", ""), &program).unwrap_err();
    assert!(error.to_string().contains("is Linux s390x"), "{error}");
}

/// A way on which this script is what `ssh` starts.
fn way(base: &Path, script: &str, stop: StopAsked) -> Way {
    use std::os::unix::fs::PermissionsExt;
    let ssh = base.join("ssh");
    std::fs::write(&ssh, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&ssh, PermissionsExt::from_mode(0o700)).unwrap();
    Way {
        to: Destination::parse("there").unwrap(),
        ssh: vec![ssh.to_str().unwrap().to_owned()],
        sudo: false,
        silence_s: None,
        launcher: None,
        named_by: Vec::new(),
        stop,
    }
}

/// A key is named as the user sees it.
#[test]
fn the_command_for_ssh_begins_where_the_user_is() {
    for shell in [false, true] {
        let base = tempfile::tempdir().unwrap();
        let seen = base.path().join("seen");
        let script = format!("pwd -P > '{}'; exit 1", seen.display());
        let way = way(base.path(), &script, StopAsked::default());
        let failed = match shell {
            true => crate::agent::shell::ShellHost::connect(&way).is_err(),
            false => Remote::connect(&way, &Router::new(Duration::ZERO), 1).is_err(),
        };
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let seen = std::fs::read_to_string(&seen).unwrap();
        assert!(failed && seen.trim() == here.to_str().unwrap(), "{seen}");
    }
}

/// Logins that say nothing, half a line, everything back, or a word now and then; and one that becomes silent where
/// the program is to be copied.
const LOGINS: [&str; 5] = [
    "exec sleep 1000",
    "printf half; exec sleep 1000",
    "exec cat",
    "while :; do echo word; sleep 1; done",
    "echo \"stackrace: system $(uname -sm)\"; echo 'stackrace: have no'; exec sleep 1000",
];

#[test]
fn a_login_that_does_not_end_ends_when_it_is_asked_to() {
    for script in LOGINS {
        for shell in [false, true] {
            let base = tempfile::tempdir().unwrap();
            let began = SystemClock.now_ns();
            // After a moment, so that the wait is under way.
            let stop = StopAsked::when(move || SystemClock.now_ns() > began + 300_000_000);
            let way = way(base.path(), script, stop);
            let error = match shell {
                true => crate::agent::shell::ShellHost::connect(&way).err(),
                false => {
                    let router = Router::new(Duration::ZERO);
                    Remote::connect(&way, &router, 1).err()
                }
            };
            assert!(
                matches!(error, Some(SshError::Stopped { .. })),
                "{script} {shell}: {error:?}"
            );
        }
    }
}

#[test]
fn what_a_login_is_waited_for_has_an_end() {
    let (input, output) = std::io::pipe().unwrap();
    let mut late = PatientPipe::over(input);
    let error = late.read(&mut [0; 1]).unwrap_err();
    assert!(is_given_up(&error) && error.kind() == std::io::ErrorKind::TimedOut);
    // It says so by name, with what was heard until then.
    let base = tempfile::tempdir().unwrap();
    let way = way(base.path(), "", StopAsked::default());
    let error = not_waited_for(&way, "Welcome".to_owned());
    assert!(
        error.to_string().starts_with("there does not answer: "),
        "{error}"
    );
    assert!(error.to_string().ends_with(": Welcome"), "{error}");
    drop(output);
}
