//! A share over NFS: the kernel's server on a peer or on this machine, mounted here.

mod imagined;
#[cfg(any(test, feature = "testing"))]
mod testing;
mod undo;

use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_foundation::foundation::share::{self, Ends, Share, Shared};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, Amount, OneOf},
    Words,
};
use stackrace_foundation::foundation::{
    GivesKind, Layer, LayerError, LayerKind, Memory, Setup, Takes, filesystem, line, options,
};
use stackrace_machine::host::{Daemon, Driver, Host, Needs, Package, argv};
use stackrace_machine::journal::BOOT;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Threads of the server: what the kernel's own scripts start.
const THREADS: &str = "8";

/// Directory in which the kernel's server is told what to do.
const CONTROL: &str = "/proc/fs/nfsd";

/// File that tells the kernel's server that no client claims locks of before any more (nfsd(7)).
const END_OF_CLAIMS: &str = "/proc/fs/nfsd/v4_end_grace";

/// Number of times, and pause between them, that the end of claims is looked for: as long as it was
/// set to.
const CLAIM_LOOKS: u32 = 100;
const CLAIM_LOOK: Duration = Duration::from_millis(100);

/// The server itself: threads of the kernel.
const SERVER: Daemon = Daemon {
    program: "nfsd",
    port: Some(2049),
};

/// The daemon that tells a client what it may mount.
const MOUNTD: Daemon = Daemon {
    program: "rpc.mountd",
    port: None,
};

/// The daemon that tells which service is at which port: many machines run one, which is then used
/// and left alone.
const RPCBIND: Daemon = Daemon {
    program: "rpcbind",
    port: Some(111),
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NfsVersion {
    V3,
    V4,
}

const VERSION: ChoiceDoc<NfsVersion> = choice!(
    "version",
    ["3" => NfsVersion::V3, "4" => NfsVersion::V4],
    "4",
    "Version: 3, or 4 (4.2).",
);

impl NfsVersion {
    /// The version as nfs(5) has it.
    fn mounted(self) -> &'static str {
        match self {
            Self::V3 => "3",
            Self::V4 => "4.2",
        }
    }
}

/// The layer `nfs` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "nfs",
    summary: "A directory served over NFS by the kernel's server and mounted here.",
    settings: &[
        VERSION.doc,
        SettingDoc::choice(
            "export",
            &["sync", "async"],
            "sync",
            "sync: the server answers when the data are on its disk; async: before.",
        ),
        share::SERVER.doc,
        options::MOUNT,
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "nfs = { version = \"4\", export = \"async\", delay = \"1 ms\" }",
    words: &[&MOUNT],
    parse,
    packages: &[
        Package::new("nfs-common", &["mount.nfs"]),
        Package::new("nfs-kernel-server", &["exportfs", "rpc.nfsd", "rpc.mountd"]),
        Package::new("rpcbind", &["rpcbind"]),
    ],
    undo: &[undo::UNEXPORT, undo::END_SERVER],
    imagined: imagined::TOOLS,
    shapes: &[
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "ext4 = {}",
            "nfs = { version = \"3\", export = \"async\", delay = \"1 ms\" }",
        ],
        &[
            "loop = { size = \"1 GiB\" }",
            "xfs = {}",
            "nfs = { server = \"same\" }",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

/// nfs(5). Not on the list: other servers, ports and ways to prove who one is (`addr`, `port`,
/// `mountport`, `sec`), and what the layer sets (`vers`, `proto`).
const MOUNT: Words = Words {
    tool: "a mount of NFS",
    manual: "nfs(5)",
    options: &[
        ("ac", Alone),
        ("acdirmax", Amount),
        ("acdirmin", Amount),
        ("acregmax", Amount),
        ("acregmin", Amount),
        ("actimeo", Amount),
        ("cto", Alone),
        ("hard", Alone),
        ("lookupcache", OneOf(&["all", "none", "pos", "positive"])),
        ("max_connect", Amount),
        ("nconnect", Amount),
        ("noac", Alone),
        ("nocto", Alone),
        ("nordirplus", Alone),
        ("nosharecache", Alone),
        ("rdirplus", Alone),
        ("retrans", Amount),
        ("retry", Amount),
        ("rsize", Amount),
        ("sharecache", Alone),
        ("soft", Alone),
        ("softerr", Alone),
        ("timeo", Amount),
        ("write", OneOf(&["lazy", "eager", "wait"])),
        ("wsize", Amount),
    ],
};

struct Nfs {
    version: NfsVersion,
    export: String,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let share = Nfs {
        version: settings.choice(VERSION)?,
        export: settings.text("export")?,
        mount: options::mount(settings, &MOUNT)?,
    };
    Shared::layer(share, settings)
}

impl Share for Nfs {
    const KIND: &'static LayerKind = &KIND;
    /// The directory that is exported.
    type Served = PathBuf;

    fn asked(&self) -> String {
        format!("NFS {}, {}", self.version.mounted(), self.export)
    }

    fn mount_options(&self) -> &[String] {
        &self.mount
    }

    fn client_needs(&self) -> Needs {
        Needs {
            file_system: Some("nfs"),
            ..Needs::as_root(&["mount.nfs", "mount", "umount", "ip", "tc"], KIND.packages)
        }
    }

    fn server_needs(&self) -> Needs {
        Needs {
            drivers: &[Driver {
                module: "nfsd",
                shown_by: "/proc/net/rpc/nfsd",
                what: "the server of NFS (nfsd)",
            }],
            daemons: &[SERVER, MOUNTD],
            ..Needs::as_root(
                &[
                    "exportfs",
                    "rpcbind",
                    "rpc.nfsd",
                    "rpc.mountd",
                    "modprobe",
                    "ip",
                    "tc",
                ],
                KIND.packages,
            )
        }
    }

    fn returns(&self) -> bool {
        true
    }

    fn serve(
        &self,
        setup: &mut Setup<'_>,
        ends: &Ends,
        root: PathBuf,
        facts: &mut Vec<Fact>,
    ) -> Result<PathBuf, LayerError> {
        start(setup, ends)?;
        facts.push(self.export(setup, ends, &root)?);
        Ok(root)
    }

    fn mount(
        &self,
        setup: &mut Setup<'_>,
        ends: &Ends,
        served: PathBuf,
        facts: &mut Vec<Fact>,
    ) -> Result<PathBuf, LayerError> {
        // Both are said: without them the client tries one version after the other (nfs(5)).
        let version = format!("vers={}", self.version.mounted());
        let mut options = vec![version, "proto=tcp".to_string()];
        // Version 4 sees one tree, whose root it is; version 3 names the directory.
        let (kind, seen) = match self.version {
            NfsVersion::V3 => ("nfs", served),
            NfsVersion::V4 => ("nfs4", PathBuf::from("/")),
        };
        if self.version == NfsVersion::V3 {
            // Locks of version 3 need a daemon of their own; no other machine uses these files.
            options.push("nolock".to_string());
        }
        options.extend(self.mount.iter().cloned());
        let mut source = OsString::from(match ends.server {
            IpAddr::V4(server) => format!("{server}:"),
            IpAddr::V6(server) => format!("[{server}]:"),
        });
        source.push(&seen);
        let root = setup.mount(kind, &source, &options, Memory::No)?;
        let host = setup.host();
        facts.extend(filesystem::mount_facts(host, &root, kind, &options, &[])?);
        Ok(root)
    }
}

/// Starts the server, which exports nothing yet.
fn start(setup: &mut Setup<'_>, ends: &Ends) -> Result<(), LayerError> {
    let host = setup.host();
    host.must(&argv(["modprobe", "nfsd"]))?;
    // A machine has one server of NFS, which is the kernel's.
    host.check_free(&SERVER)?;
    host.check_free(&MOUNTD)?;
    let theirs = undo::exported(host)?;
    if let Some(first) = theirs.lines().next() {
        return Err(LayerError::refused(
            format!("the server has exports that are not ours: {}", first.trim()),
            "take it back (exportfs -u), or run the study in the lab: stackrace run STUDY --lab",
        ));
    }
    // Only where none runs: one of the machine's own is used and left alone.
    if host.check_free(&RPCBIND).is_ok() {
        setup.start(&[RPCBIND], &argv(["rpcbind", "-w"]))?;
    }
    if host.shares_kernel() {
        // Through it the server is told what to do, in the network in which it was mounted alone, and
        // that of an earlier set-up is gone.
        host.exec(&argv(["umount", CONTROL]))?;
        host.must(&argv(["mount", "-t", "nfsd", "nfsd", CONTROL]))?;
    }
    let boot = host.read_text(Path::new(BOOT))?;
    let proof = setup.prove("nfsd")?;
    setup.will(undo::END_SERVER.of([proof.into(), boot.trim().into()]))?;
    let server = ends.server.to_string();
    let mut command = argv(["rpc.nfsd", "--host", &server]);
    // After a start, clients of before may claim their locks: there are none.
    command.extend(argv(["--grace-time", "10", "--lease-time", "10", THREADS]));
    host.must(&command)?;
    end_claims(host)?;
    setup.start(&[MOUNTD], &argv(["rpc.mountd"]))
}

/// Ends the time for claims at once, because there are none: else the first file that a workload opens
/// would wait for its end.
fn end_claims(host: &dyn Host) -> Result<(), LayerError> {
    let place = Path::new(END_OF_CLAIMS);
    for _ in 0..CLAIM_LOOKS {
        match host.write_text(place, "Y") {
            Ok(()) => return Ok(()),
            // Newer kernels are busy while they do not yet know of clients, and once they have ended it
            // by themselves. Of another machine, the system's words are all that is known.
            Err(error) if error.to_string().contains("busy") => {}
            Err(error) => return Err(error.into()),
        }
        if host.read_text(place)?.starts_with('Y') {
            return Ok(());
        }
        host.pause(CLAIM_LOOK);
    }
    // By now it is over by itself.
    Ok(())
}

impl Nfs {
    /// Lets the client alone have a directory; what the server says it exports.
    fn export(&self, setup: &mut Setup<'_>, ends: &Ends, root: &Path) -> Result<Fact, LayerError> {
        let client = match ends.client {
            IpAddr::V4(client) => client.to_string(),
            IpAddr::V6(client) => format!("[{client}]"),
        };
        // An export outlives its directory: without an entry it would stand in the server's table.
        setup.will(undo::UNEXPORT.of([client.clone().into(), root.into()]))?;
        // fsid=0 is the root of what version 4 sees, and names file systems without a UUID
        // (exports(5)). The workload is root on its own machine, so it has to be root here.
        let asked = format!("rw,{},no_root_squash,no_subtree_check,fsid=0", self.export);
        let mut command = argv(["exportfs", "-o", &asked]);
        let mut served = OsString::from(format!("{client}:"));
        served.push(root);
        command.push(served);
        let host = setup.host();
        host.must(&command)?;
        match in_force(&undo::exported(host)?, root) {
            // By whole words: "sync" is a part of "async".
            Some(options) if options.split(',').any(|option| option == self.export) => {
                Ok(Fact::new("export in force", options))
            }
            found => Err(LayerError::refused(
                format!(
                    "the server exports with {found:?} although {} was asked for",
                    self.export
                ),
                "",
            )),
        }
    }
}

/// Options a directory is exported with, as `exportfs -s` prints them:
/// `/srv/a  10.77.0.1(sync,wdelay,rw)`.
fn in_force<'a>(listed: &'a str, root: &Path) -> Option<&'a str> {
    let root = root.to_string_lossy();
    let line = listed.lines().find(|line| {
        line.strip_prefix(&*root)
            .is_some_and(|rest| rest.starts_with(char::is_whitespace))
    })?;
    line.split_once('(')?.1.strip_suffix(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_an_export_are_found() {
        let listed = "/srv/ab  10.77.0.1(sync,rw)\n/srv/a  10.77.0.1(async,wdelay,rw)\n";
        assert_eq!(
            in_force(listed, Path::new("/srv/a")),
            Some("async,wdelay,rw")
        );
        assert_eq!(in_force(listed, Path::new("/srv")), None);
    }
}
