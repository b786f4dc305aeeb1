//! Commands and files of this machine.

use super::*;
use crate::host::argv;
use rustix::process::{Signal, kill_process};

fn host() -> (LocalHost, Arc<Mutex<Vec<CommandRun>>>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&log);
    let host = LocalHost::new(Arc::new(move |run| kept.lock().unwrap().push(run)));
    (host, log)
}

#[test]
fn a_command_is_recorded_as_it_ended() {
    let (host, log) = host();
    let command = argv(["sh", "-c", "echo $LC_ALL; pwd; cat; echo no >&2; exit 3"]);
    let output = host.exec(&command).unwrap();
    assert_eq!(output.status, Some(3));
    assert_eq!(output.stdout, "C\n/\n");
    let failed = host.must(&command).unwrap_err();
    assert!(failed.to_string().contains("failed with exit status 3: no"));
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 2);
    assert_eq!(log[0].stderr, "no\n");
    assert_eq!(log[0].status, Some(3));
    assert_eq!(log[0].argv[0], "sh");
}

#[test]
fn a_command_of_a_run_is_waited_for_and_a_daemon_it_started_is_not() {
    let (host, _) = host();
    host.belong_to("of-this-test");
    let said = tempfile::NamedTempFile::new().unwrap();
    let script = "setsid sleep 61 > /dev/null 2>&1 & echo $$ $! > $0; exec sleep 60";
    let path = said.path().as_os_str();
    let command = argv(["sh".as_ref(), "-c".as_ref(), script.as_ref(), path]);
    std::thread::scope(|scope| {
        let command = scope.spawn(|| host.exec(&command));
        let (id, daemon) = loop {
            let said = std::fs::read_to_string(said.path()).unwrap();
            let mut ids = said
                .split_whitespace()
                .map(|id| Pid::from_raw(id.parse().unwrap()));
            if let (Some(Some(id)), Some(Some(daemon))) = (ids.next(), ids.next()) {
                break (id, daemon);
            }
            std::thread::yield_now();
        };
        // Until it has a session of its own and is another program, it is a command like any other.
        while process::session(daemon) != daemon.to_string()
            || !process::about(daemon, "cmdline").starts_with("sleep")
            || !command_of("of-this-test")
                .is_some_and(|found| process::named(found).starts_with("sleep 60 (process "))
        {
            std::thread::yield_now();
        }
        // What waits for it, as `clean` does, is told of as long as it waits.
        let waits = scope.spawn(|| host.outlive("of-this-test"));
        let times = || {
            process::awaited()
                .iter()
                .filter(|(number, _)| *number == id.as_raw_pid().cast_unsigned())
                .count()
        };
        while times() < 2 {
            std::thread::yield_now();
        }
        // Any other signal that may have been meant for us has the command begun again.
        kill_process(id, Signal::KILL).unwrap();
        command.join().unwrap().unwrap();
        assert_eq!(waits.join().unwrap().unwrap(), None);
        assert_eq!(times(), 0);
        assert!(process::about(daemon, "environ").contains("of-this-test"));
        assert_eq!(command_of("of-this-test"), None);
        kill_process(daemon, Signal::KILL).unwrap();
    });
}

#[test]
fn output_beyond_the_limit_is_counted_and_the_command_still_ends() {
    let (host, _) = host();
    let command = argv(["head", "-c", "200000", "/dev/zero"]);
    let output = host.must(&command).unwrap();
    assert!(output.stdout.len() < 70_000);
    assert!(output.stdout.contains("[134464 more bytes were not kept]"));
}

#[test]
fn a_missing_program_is_named() {
    let (host, log) = host();
    let error = host.exec(&argv(["mkfs.nothing"])).unwrap_err();
    assert_eq!(error.to_string(), "mkfs.nothing is not installed");
    assert!(log.lock().unwrap().is_empty());
    let needs = Needs {
        tools: &["sh", "mkfs.nothing"],
        file_system: Some("nofs"),
        ..Needs::default()
    };
    assert_eq!(host.missing(&needs).len(), 2);
}

#[test]
fn files_are_created_of_their_size_and_never_over_another() {
    use std::os::unix::fs::MetadataExt;
    let (host, _) = host();
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("written");
    let bytes = 3 * (1 << 20) + 7;
    host.create_file(&path, bytes, Filling::Written { seed: 1 })
        .unwrap();
    assert_eq!(path.metadata().unwrap().len(), bytes);
    assert!(path.metadata().unwrap().blocks() * 512 >= bytes);
    let again = host.create_file(&path, 1, Filling::Sparse).unwrap_err();
    assert!(again.is_already_there());
    assert_eq!(path.metadata().unwrap().len(), bytes);
    host.remove_file(&path).unwrap();
    host.remove_file(&path).unwrap();
}

#[test]
fn who_holds_a_directory_is_found() {
    let base = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(base.path().join("open")).unwrap();
    let path = base.path().canonicalize().unwrap();
    let me = format!("(process {})", std::process::id());
    let holders = process::holders(&path);
    assert!(holders.iter().any(|holder| holder.ends_with(&me)));
    drop(file);
    assert!(process::holders(&path).is_empty());
}

#[test]
fn the_mount_of_a_path_is_the_one_the_kernel_uses() {
    let (host, _) = host();
    let proc = host.mount_of(Path::new("/proc/self")).unwrap();
    assert_eq!(proc.file_system, "proc");
    assert_eq!(proc.mount_point, Path::new("/proc"));
}
