//! The real server on this machine, where Samba is installed.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use super::*;
use crate::stack::Site;
use crate::stack::testing::Ended;
use crate::stack::undo_all;
use stackrace_machine::host::{Host, local::LocalHost};
use stackrace_machine::journal::Journal;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The real server on this machine: what it understood, where it listens, and that it is gone.
pub(in crate::stack) fn one_client_at_one_address() -> Ended {
    let share = Smb {
        options: vec!["strict sync = no".to_string()],
        mount: Vec::new(),
    };
    let host = LocalHost::new(Arc::new(|_| ()));
    if let Some(missing) = host.missing(&share.server_needs()).first() {
        return Err(missing.to_string());
    }
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap();
    let journal = Journal::create(&scratch.join("journal.jsonl")).unwrap();
    let site = Site {
        host: &host,
        journal: &journal,
        scratch: scratch.clone(),
        tag: "samba".to_string(),
        seed: 1,
        wipe: &[],
        undo: crate::stack::undo_kinds(),
        interrupt: None,
    };
    let local = |last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
    let mut setup = Setup::new(&site).unwrap();
    let ends = Ends {
        place: share::ServerPlace::same(),
        client: local(3),
        server: local(1),
    };
    let mut facts = Vec::new();
    let served = share.serve(&mut setup, &ends, scratch.clone(), &mut facts);
    let listener = host.listener(PORT).unwrap();
    let listening = host.must(&argv(["ss", "-Hltn", "sport", "=", ":445"]));
    let again = host.check_free(&SERVER);
    let file = scratch.join(setup.name("smb.conf"));
    let mut command = argv(["testparm", "--suppress-prompt"]);
    command.push(file.into());
    let understood = host.must(&command);
    let undone = undo_all(&host, &journal).unwrap();
    served.unwrap();
    assert!(listener.unwrap().starts_with("smbd (process "));
    let listening = listening.unwrap().stdout;
    assert_eq!(listening.lines().count(), 1, "{listening}");
    assert!(listening.contains("127.0.0.1:445"), "{listening}");
    let again = again.unwrap_err().to_string();
    assert!(again.ends_with("runs already, and a machine has one"));
    let understood = understood.unwrap().stdout;
    for line in [
        "bind interfaces only = Yes",
        "hosts allow = 127.0.0.3",
        "hosts deny = ALL",
        "strict sync = No",
    ] {
        assert!(understood.contains(line), "{line}: {understood}");
    }
    assert_eq!(undone.failed, []);
    assert_eq!(host.listener(PORT).unwrap(), None);
    Ok(())
}

use stackrace_foundation::foundation::{KillStack, Tried};

pub(super) const TRIED: Tried = Tried {
    kills: &[KillStack {
        name: "smb",
        disks: ("64 MiB", 1),
        layers: &["ext4 = {}", "smb = { server = \"{server}\" }"],
        machines: &[1, 2],
    }],
    changes: &["smbd"],
    standing: "ours smbd",
    ..Tried::NOWHERE
};
