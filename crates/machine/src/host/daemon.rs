//! Servers that can run only once on a machine: finds a running one and what listens at its port,
//! and ends those that stackrace started.
//!
//! Servers that stackrace starts have a mark in their environment, and their children inherit it.
//! The mark contains random digits of the stack that they serve. So no other process has it: not a
//! server of another run, not a process that got the same number later, not a server of the same
//! name after a reboot.

use super::{process, reading};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use stackrace_system::{hold_process, signal_held};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The variable of the environment that holds the mark.
pub const MARK: &str = "STACKRACE_STACK";

/// A process of a name, where there is one: `smbd (process 4711)`. The name is at most 15 characters,
/// as the kernel keeps it; a thread of the kernel has one like any other.
pub(super) fn running(program: &str) -> Option<String> {
    let found = process::all().find(|id| is_called(*id, program))?;
    Some(format!("{program} (process {})", found.as_raw_nonzero()))
}

/// The process that listens at a port, TCP or UDP, any address; `None` if the port is free.
pub(super) fn listener(port: u16) -> Option<String> {
    // TCP's state of listening; and that of UDP, which knows no other.
    let tables = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
    let socket = tables.iter().find_map(|(table, state)| {
        // Of this thread, which may see another network than the process began with.
        let text = reading::text(&Path::new("/proc/thread-self/net").join(table)).ok()?;
        socket_at(&text, port, state).map(str::to_string)
    })?;
    let holders = process::holders(Path::new(&format!("socket:[{socket}]")));
    let first = holders.into_iter().next();
    Some(first.unwrap_or_else(|| "the kernel, or a process that cannot be seen,".to_string()))
}

/// The number of a socket at a port, in a table of `/proc/net`:
/// `0: 0100007F:01BD 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12345 …`.
fn socket_at<'a>(table: &'a str, port: u16, state: &str) -> Option<&'a str> {
    // The tables write addresses and ports in hexadecimal digits.
    let at = format!(":{port:04X}");
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = words.get(1)?.ends_with(&at) && *words.get(3)? == state;
        found.then(|| words.get(9).copied()).flatten()
    })
}

fn is_called(id: Pid, program: &str) -> bool {
    process::about(id, "comm").trim_end() == program
        // One that has ended and was not waited for counts as gone.
        && !process::about(id, "status").contains("State:\tZ")
}

/// A daemon of ours, and all it began.
#[derive(Default)]
pub(super) struct Ours {
    /// Held from the moment they were found, so that a number cannot come to mean another process.
    held: HashMap<Pid, OwnedFd>,
}

impl Ours {
    /// Asks those of a name that bear a mark to end, and what they began when that has not ended with
    /// them; true: none of them is left. To be called until it is.
    ///
    /// What they began is known from before they were first asked: it may have written over its
    /// environment (setproctitle(3)), and when they have ended, nothing says any more whose it was.
    pub(super) fn ask_to_end(&mut self, program: &str, mark: &str) -> bool {
        self.held.retain(|_, process| !has_ended(process));
        // Again until none is new: a server may start children while it is looked for.
        while self.find(program, mark) {}
        for (id, process) in &self.held {
            // Children end with their parent, which takes them down in the order it wants.
            if !self.began(*id) {
                // One that ended meanwhile is what was wanted.
                let _ = signal_held(process, Signal::TERM);
            }
        }
        self.held.is_empty()
    }

    /// Returns true if one of these is the parent of a process.
    fn began(&self, id: Pid) -> bool {
        process::parent(id).is_some_and(|parent| self.held.contains_key(&parent))
    }

    /// Adds what has come since; false: nothing has.
    fn find(&mut self, program: &str, mark: &str) -> bool {
        let before = self.held.len();
        for id in process::all() {
            if self.held.contains_key(&id) {
                continue;
            }
            // Held first: what is read then is of this process, or it has ended.
            let Ok(process) = hold_process(id) else {
                continue;
            };
            let ours = self.began(id) || (is_called(id, program) && bears(id, mark));
            if ours && !has_ended(&process) {
                self.held.insert(id, process);
            }
        }
        self.held.len() > before
    }
}

/// Returns true if a process that is held has ended; also one that was not waited for.
fn has_ended(process: &OwnedFd) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // pidfd_open(2): it can be read from when the process has ended.
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Returns true if a process has a mark in its environment.
fn bears(id: Pid, mark: &str) -> bool {
    let environment = process::about(id, "environ");
    let variable = format!("{MARK}={mark}");
    environment.split('\0').any(|word| word == variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process::{Process, Streams};
    use crate::host::{Daemon, Host, HostError, argv, local::LocalHost};
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    /// At most 15 characters; no other program has this name.
    const NAME: &str = "stackrace-testd";

    /// A server in name only. With `two` it starts a child without the mark, and prints its number.
    const SERVER: &str = "#!/bin/sh\n\
        if [ \"$1\" = two ]; then env -i sleep 1000 & echo $!; else echo alone; fi\n\
        while :; do sleep 0.05; done\n";

    /// Starts it with a mark in its environment, or none; what it said, once it has.
    fn started(script: &Path, variable: &str, word: &str) -> (Process, String) {
        let said = tempfile::NamedTempFile::new().unwrap();
        let mut command = argv(["env", variable]);
        command.extend([script.into(), word.into()]);
        let streams = Streams::Open(said.as_file());
        let process = Process::start(&command, Path::new("/"), streams).unwrap();
        loop {
            let text = std::fs::read_to_string(said.path()).unwrap();
            if text.ends_with('\n') {
                return (process, text.trim().to_string());
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn only_what_bears_the_mark_is_ended_and_all_it_began() {
        let base = tempfile::tempdir().unwrap();
        let script = base.path().join(NAME);
        std::fs::write(&script, SERVER).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let mark = format!(".stackrace-r1-t0-{:016x}", std::process::id());
        let (mut ours, begun) = started(&script, &format!("{MARK}={mark}"), "two");
        let (mut theirs, _) = started(&script, "OTHER=1", "alone");
        let (mut of_another, _) = started(&script, &format!("{MARK}={mark}0"), "alone");
        let begun = Pid::from_raw(begun.parse().unwrap()).unwrap();
        assert!(process::about(begun, "environ").is_empty());
        let host = LocalHost::new(Arc::new(|_| ()));
        let server = Daemon {
            program: NAME,
            port: None,
        };
        let refused = host.check_free(&server).unwrap_err();
        assert!(matches!(refused, HostError::Occupied { .. }));
        let words = refused.to_string();
        assert!(words.starts_with("stackrace-testd (process "), "{words}");
        assert!(words.ends_with("runs already, and a machine has one"));
        // A name alone is not enough, and neither is the mark.
        host.end_daemon(NAME, ".stackrace-r1-t0-another").unwrap();
        host.end_daemon("another", &mark).unwrap();
        assert!(ours.ended().is_none());
        host.end_daemon(NAME, &mark).unwrap();
        assert!(ours.ended().is_some());
        assert!(!is_called(begun, "sleep"), "its own was asked after it");
        assert!(theirs.ended().is_none() && of_another.ended().is_none());
        theirs.kill();
        of_another.kill();
    }

    #[test]
    fn who_listens_is_found_by_the_port() {
        let me = format!("(process {})", std::process::id());
        let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let udp = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        for port in [tcp.local_addr(), udp.local_addr()].map(|at| at.unwrap().port()) {
            assert!(listener(port).unwrap().ends_with(&me), "{port}");
        }
        let port = tcp.local_addr().unwrap().port();
        let server = Daemon {
            program: "no-such-server",
            port: Some(port),
        };
        let host = LocalHost::new(Arc::new(|_| ()));
        let refused = host.check_free(&server).unwrap_err().to_string();
        let words = format!("{me} listens at port {port}, where no-such-server would");
        assert!(refused.ends_with(&words), "{refused}");
        drop(tcp);
        host.check_free(&server).unwrap();
    }

    #[test]
    fn who_is_connected_does_not_listen() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:01BD 0200007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n\
            \x20  1: 00000000:01BD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n";
        assert_eq!(socket_at(table, 445, "0A"), Some("4712"));
        assert_eq!(socket_at(table, 445, "07"), None);
        assert_eq!(socket_at(table, 446, "0A"), None);
        assert_eq!(socket_at("0: :01BD", 445, "0A"), None);
    }
}
