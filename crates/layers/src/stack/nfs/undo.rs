//! Taking an export back, and ending the server of the kernel.

use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::{BOOT, Param, UndoKind, text};
use std::ffi::OsString;
use std::path::Path;

/// Exports a directory to a client no more.
pub(super) const UNEXPORT: UndoKind =
    UndoKind::new("nfs", "unexport", &[Param::Address, Param::Path], unexport);

/// Ends the kernel's server, which did not run before. An entry names a file that was made with it, and
/// the kernel's own id of the time since the machine was started: after another start, or without that
/// file, the server is not ours.
pub(super) const END_SERVER: UndoKind =
    UndoKind::new("nfs", "end-server", &[Param::Path, Param::Name], end_server);

/// Reads what the kernel's NFS server exports, a line each.
///
/// # Errors
/// When the tool fails.
pub(super) fn exported(host: &dyn Host) -> Result<String, HostError> {
    Ok(host.must(&argv(["exportfs", "-s"]))?.stdout)
}

/// Answer of `exportfs -u` about what is not exported.
const NOT_EXPORTED: &str = "Could not find";

/// Exports a directory to a client no more; one that is not exported to it is fine.
///
/// # Errors
/// When the tool fails.
fn unexport(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let (client, directory) = (text(of, 0), &of[1]);
    let mut command = argv(["exportfs", "-u"]);
    let mut place = OsString::from(format!("{client}:"));
    place.push(directory);
    command.push(place);
    let output = host.exec(&command)?;
    if output.status == Some(0) || output.stderr.contains(NOT_EXPORTED) {
        return Ok(());
    }
    Err(HostError::failed(&command, output))
}

/// Ends the kernel's NFS server, unless the machine was started again since it was begun, or
/// it exports something of another user's by now.
///
/// # Errors
/// When the tools fail.
fn end_server(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let (proof, boot) = (Path::new(&of[0]), text(of, 1));
    let since = host.read_text(Path::new(BOOT))?;
    let begun = since.trim() == boot && host.exists(proof);
    let ours = begun && host.running("nfsd")?.is_some();
    // With exports of another's by now, ending the server would take their files away.
    if ours && exported(host)?.is_empty() {
        host.must(&argv(["rpc.nfsd", "0"]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack;
    use stackrace_machine::host::Filling;
    use stackrace_machine::host::plan::{Fault, PlanHost};

    fn nfsd_runs(host: &PlanHost) -> bool {
        host.running("nfsd").unwrap().is_some()
    }

    #[test]
    fn only_our_own_nfs_server_is_ended() {
        let host = stack::imagined(Fault::Never);
        let boot = host.read_text(Path::new(BOOT)).unwrap();
        let start = || host.must(&argv(["rpc.nfsd", "8"])).unwrap();
        start();
        let proof = Path::new("/run/.stackrace-{id}-nfsd");
        let ours = [proof.into(), boot.trim().into()];
        end_server(&host, &ours).unwrap();
        assert!(nfsd_runs(&host), "nothing shows that it is ours");
        host.create_file(proof, 0, Filling::Sparse).unwrap();
        end_server(&host, &[proof.into(), "another-boot".into()]).unwrap();
        assert!(nfsd_runs(&host), "it was begun after a restart");
        let theirs = argv(["exportfs", "-o", "rw", "10.0.0.1:/srv"]);
        host.must(&theirs).unwrap();
        end_server(&host, &ours).unwrap();
        assert!(nfsd_runs(&host), "another user's directory is exported");
        unexport(&host, &["10.0.0.1".into(), "/srv".into()]).unwrap();
        end_server(&host, &ours).unwrap();
        assert!(!nfsd_runs(&host));
        end_server(&host, &ours).unwrap();
    }
}
