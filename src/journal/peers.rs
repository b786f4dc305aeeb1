//! Undoing what stands between machines.

use crate::host::{Host, HostError, LAB_MARK, LINE_HANDLE, argv, shown};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// The kernel's own id of the time since the machine was started.
pub(crate) const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// How often, and with what pause, a replicated device that is open is tried again.
const BUSY_TRIES: usize = 30;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// The peer an entry speaks of: of its name, since its number may be another one's by now.
///
/// # Errors
/// When it is not among those that can be talked to.
pub(crate) fn named<'a>(
    host: &'a dyn Host,
    node: usize,
    name: &str,
) -> Result<&'a dyn Host, HostError> {
    if name.is_empty() {
        return host.peer(node);
    }
    let peers = (2..=host.nodes()).filter_map(|node| host.peer(node).ok());
    let mut named = peers.filter(|peer| peer.name() == name);
    named.next().ok_or_else(|| HostError::Elsewhere {
        host: name.to_owned(),
        said: format!("nothing can be undone there without a line to it: add --peer {name}"),
        next: format!("stackrace clean --peer {name}"),
        kind: ErrorKind::NotConnected,
    })
}

/// What drbdsetup says of a name it does not know, and where its driver is not loaded.
const NO_REPLICA: [&str; 4] = [
    "Unknown resource",
    "does not exist",
    "No such",
    "Could not connect to 'drbd' generic netlink family",
];

/// Takes down a replicated device; none of that name is fine.
///
/// # Errors
/// When it stays in use, or the tool fails.
pub(super) fn down_replica(host: &dyn Host, name: &str) -> Result<(), HostError> {
    let command = argv(["drbdsetup", "down", name]);
    let mut tries = 1;
    loop {
        let output = host.exec(&command)?;
        let said = |word: &str| output.stderr.contains(word) || output.stdout.contains(word);
        if output.status == Some(0) || NO_REPLICA.iter().any(|words| said(words)) {
            return Ok(());
        }
        if tries == BUSY_TRIES || !said("open") {
            let command = shown(&command);
            return Err(HostError::Failed { command, output });
        }
        tries += 1;
        host.pause(BUSY_PAUSE);
    }
}

/// Takes away what delays or slows a network card, if that is what [`Undo`](super::Undo) put there.
///
/// # Errors
/// When the tool fails.
pub(super) fn plain_line(host: &dyn Host, card: &str) -> Result<(), HostError> {
    let found = host.must(&argv(["tc", "qdisc", "show", "dev", card]))?;
    if found.stdout.contains(&format!(" {LINE_HANDLE} root")) {
        host.must(&argv(["tc", "qdisc", "del", "dev", card, "root"]))?;
    }
    Ok(())
}

/// What the kernel's NFS server exports, a line each.
///
/// # Errors
/// When the tool fails.
pub(crate) fn exported(host: &dyn Host) -> Result<String, HostError> {
    Ok(host.must(&argv(["exportfs", "-s"]))?.stdout)
}

/// What `exportfs -u` says of what is not exported.
const NOT_EXPORTED: &str = "Could not find";

/// Exports a directory to a client no more; one that is not exported to it is fine.
///
/// # Errors
/// When the tool fails.
pub(super) fn unexport(host: &dyn Host, client: &str, directory: &Path) -> Result<(), HostError> {
    let mut command = argv(["exportfs", "-u"]);
    let mut place = OsString::from(format!("{client}:"));
    place.push(directory);
    command.push(place);
    let output = host.exec(&command)?;
    if output.status == Some(0) || output.stderr.contains(NOT_EXPORTED) {
        return Ok(());
    }
    let command = shown(&command);
    Err(HostError::Failed { command, output })
}

/// Ends the kernel's NFS server, unless the machine was started again since it was begun, or
/// somebody else has it export something by now.
///
/// # Errors
/// When the tools fail.
pub(super) fn end_nfs_server(host: &dyn Host, boot: &str) -> Result<(), HostError> {
    let since = host.read_text(Path::new(BOOT))?;
    let ours = since.trim() == boot && host.running("nfsd")?.is_some();
    if ours && exported(host)?.is_empty() {
        host.must(&argv(["rpc.nfsd", "0"]))?;
    }
    Ok(())
}

/// As journals of before name a daemon.
///
/// # Errors
/// Outside of the lab, where it may be somebody else's; when it does not end.
pub(super) fn end_in_lab(host: &dyn Host, program: &str) -> Result<(), HostError> {
    match host.exists(Path::new(LAB_MARK)) {
        true => host.end_daemon(program, ""),
        false => Err(HostError::NotOurs {
            path: program.into(),
            why: "an old journal names it, which the lab wrote, and this is not the lab"
                .to_string(),
        }),
    }
}

/// As journals of before name the kernel's NFS server and what belongs to it.
///
/// # Errors
/// Outside of the lab; when the tools fail.
pub(super) fn end_nfs_in_lab(host: &dyn Host) -> Result<(), HostError> {
    end_in_lab(host, "rpc.mountd")?;
    host.must(&argv(["exportfs", "-ua"]))?;
    host.must(&argv(["exportfs", "-f"]))?;
    host.must(&argv(["rpc.nfsd", "0"]))?;
    end_in_lab(host, "rpcbind")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::plan::PlanHost;
    use crate::journal::{Journal, Undo, undo_all};

    fn nfsd_runs(host: &PlanHost) -> bool {
        host.running("nfsd").unwrap().is_some()
    }

    #[test]
    fn only_our_own_nfs_server_is_ended() {
        let host = PlanHost::new();
        let boot = host.read_text(Path::new(BOOT)).unwrap();
        let start = || host.must(&argv(["rpc.nfsd", "8"])).unwrap();
        start();
        end_nfs_server(&host, "another-boot").unwrap();
        assert!(nfsd_runs(&host), "it was begun after a restart");
        let theirs = argv(["exportfs", "-o", "rw", "10.0.0.1:/srv"]);
        host.must(&theirs).unwrap();
        end_nfs_server(&host, boot.trim()).unwrap();
        assert!(nfsd_runs(&host), "somebody else's directory is exported");
        unexport(&host, "10.0.0.1", Path::new("/srv")).unwrap();
        end_nfs_server(&host, boot.trim()).unwrap();
        assert!(!nfsd_runs(&host));
        end_nfs_server(&host, boot.trim()).unwrap();
    }

    #[test]
    fn journals_of_before_are_undone_in_the_lab_alone() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("journal.jsonl");
        let text = concat!(
            "{\"journal\":1}\n",
            "{\"entry\":1,\"group\":\"r1-t0\",\"undo\":{\"end-daemon\":\"smbd\"}}\n",
            "{\"entry\":2,\"group\":\"r1-t1\",\"undo\":\"end-nfs\"}\n",
        );
        std::fs::write(&path, text).unwrap();
        let host = PlanHost::new();
        for tool in ["smbd", "rpcbind", "rpc.mountd", "rpc.nfsd"] {
            host.must(&argv([tool, "8"])).unwrap();
        }
        let journal = Journal::open(&path).unwrap();
        let report = undo_all(&host, &journal).unwrap();
        assert_eq!(report.failed.len(), 2);
        assert!(report.failed[0].1.contains("this is not the lab"));
        assert_eq!(host.left().len(), 4);
        host.create_dir(Path::new(LAB_MARK)).unwrap();
        let report = undo_all(&host, &journal).unwrap();
        let old = [Undo::EndNfs, Undo::EndDaemon("smbd".to_string())];
        assert_eq!(report.undone, old);
        assert_eq!(host.left(), [LAB_MARK]);
    }
}
