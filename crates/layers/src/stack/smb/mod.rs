//! A share over SMB: Samba on a peer or on this machine, mounted here by the kernel's client.

#[cfg(any(test, feature = "testing"))]
pub(super) mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_foundation::foundation::share::{self, Ends, Share, Shared};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, Amount, OneOf},
    Words,
};
use stackrace_foundation::foundation::{
    GivesKind, Layer, LayerError, LayerKind, Memory, Setup, Takes, filesystem, line, options,
};
use stackrace_machine::host::imagined::{Tool, mount_without_device};
use stackrace_machine::host::{Daemon, Needs, Package, argv, argv_at};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Directory of the server's own files, sockets among them: their paths are short by law (`sun_path`).
const OWN: &str = "/run";

/// Port of SMB.
const PORT: u16 = 445;

/// Samba's server, as it is started and found.
const SERVER: Daemon = Daemon {
    program: "smbd",
    port: Some(PORT),
};

/// Name of the share.
const SHARE: &str = "work";

/// The layer `smb` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "smb",
    summary: "A directory served over SMB by Samba and mounted here.",
    settings: &[
        SettingDoc::texts(
            "options",
            "",
            "Options of the share as smb.conf takes them: \"strict sync = no\".",
        ),
        share::SERVER.doc,
        options::MOUNT,
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "smb = { options = [\"strict sync = no\"], server = \"same\" }",
    words: &[&OPTIONS, &MOUNT],
    parse,
    packages: &[
        Package::new("samba", &["smbd", "testparm"]),
        Package::new("cifs-utils", &["mount.cifs"]),
    ],
    imagined: &[
        Tool::new("smbd", |world, _| world.start("smbd", &[PORT])),
        Tool::new("mount.cifs", mount_without_device),
    ],
    shapes: &[
        &[
            "tmpfs = { size = \"1 MiB\" }",
            "smb = { options = [\"strict sync = no\"] }",
        ],
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "drbd = { role = \"dual\" }",
            "gfs2 = { lock = \"dlm\", mounted-on = 2 }",
            "smb = {}",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

/// smb.conf(5), options of a share. Not on the list: what runs commands (`preexec`, `root preexec`,
/// `magic script`, `print command`), whom it lets in, and paths. A module is loaded by its name, and
/// these write and run nothing else.
const OPTIONS: Words = Words {
    tool: "a share of Samba",
    manual: "smb.conf(5)",
    options: &[
        ("aio read size", Amount),
        ("aio write size", Amount),
        ("allocation roundup size", Amount),
        ("block size", Amount),
        ("case sensitive", OneOf(&["yes", "no", "auto"])),
        (
            "csc policy",
            OneOf(&["manual", "documents", "programs", "disable"]),
        ),
        ("default case", OneOf(&["upper", "lower"])),
        ("dos filemode", OneOf(YES_NO)),
        ("dos filetimes", OneOf(YES_NO)),
        ("durable handles", OneOf(YES_NO)),
        ("ea support", OneOf(YES_NO)),
        ("fruit:aapl", OneOf(YES_NO)),
        ("fruit:copyfile", OneOf(YES_NO)),
        ("fruit:encoding", OneOf(&["private", "native"])),
        ("fruit:locking", OneOf(&["netatalk", "none"])),
        ("fruit:metadata", OneOf(&["netatalk", "stream"])),
        ("fruit:resource", OneOf(&["file", "xattr", "stream"])),
        ("kernel oplocks", OneOf(YES_NO)),
        ("kernel share modes", OneOf(YES_NO)),
        ("level2 oplocks", OneOf(YES_NO)),
        ("locking", OneOf(YES_NO)),
        ("mangled names", OneOf(&["yes", "no", "illegal"])),
        ("map archive", OneOf(YES_NO)),
        ("map hidden", OneOf(YES_NO)),
        ("map readonly", OneOf(&["yes", "no", "permissions"])),
        ("map system", OneOf(YES_NO)),
        ("nt acl support", OneOf(YES_NO)),
        ("oplocks", OneOf(YES_NO)),
        ("posix locking", OneOf(YES_NO)),
        ("preserve case", OneOf(YES_NO)),
        (
            "server smb encrypt",
            OneOf(&["default", "off", "if_required", "desired", "required"]),
        ),
        ("short preserve case", OneOf(YES_NO)),
        (
            "smb encrypt",
            OneOf(&["default", "off", "if_required", "desired", "required"]),
        ),
        ("store dos attributes", OneOf(YES_NO)),
        ("strict allocate", OneOf(YES_NO)),
        ("strict locking", OneOf(&["yes", "no", "auto"])),
        ("strict rename", OneOf(YES_NO)),
        ("strict sync", OneOf(YES_NO)),
        ("sync always", OneOf(YES_NO)),
        ("use sendfile", OneOf(YES_NO)),
        (
            "vfs objects",
            OneOf(&[
                "acl_xattr",
                "aio_pthread",
                "catia",
                "catia fruit streams_xattr",
                "fruit streams_xattr",
                "io_uring",
                "streams_xattr",
            ]),
        ),
        ("write cache size", Amount),
    ],
};

const YES_NO: &[&str] = &["yes", "no", "true", "false", "1", "0"];

/// mount.cifs(8). Not on the list: who one is at the server (`credentials`, `username`), other
/// servers, ports and paths (`ip`, `port`, `prefixpath`), owners and modes, and what the layer sets.
const MOUNT: Words = Words {
    tool: "a mount of SMB",
    manual: "mount.cifs(8)",
    options: &[
        ("acdirmax", Amount),
        ("acregmax", Amount),
        ("actimeo", Amount),
        ("bsize", Amount),
        (
            "cache",
            OneOf(&["none", "strict", "loose", "singleclient", "ro"]),
        ),
        ("closetimeo", Amount),
        ("echo_interval", Amount),
        ("esize", Amount),
        ("handletimeout", Amount),
        ("hard", Alone),
        ("mapposix", Alone),
        ("max_channels", Amount),
        ("max_credits", Amount),
        ("mfsymlinks", Alone),
        ("multichannel", Alone),
        ("nobrl", Alone),
        ("nohandlecache", Alone),
        ("nolease", Alone),
        ("noserverino", Alone),
        ("nosharesock", Alone),
        ("nostrictsync", Alone),
        ("posixpaths", Alone),
        ("rasize", Amount),
        ("resilienthandles", Alone),
        ("retrans", Amount),
        ("rsize", Amount),
        ("seal", Alone),
        ("serverino", Alone),
        ("sfu", Alone),
        ("sign", Alone),
        ("soft", Alone),
        ("strictsync", Alone),
        ("wsize", Amount),
    ],
};

struct Smb {
    options: Vec<String>,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let share = Smb {
        options: share::options(settings, &OPTIONS)?,
        mount: options::mount(settings, &MOUNT)?,
    };
    Shared::layer(share, settings)
}

impl Share for Smb {
    const KIND: &'static LayerKind = &KIND;
    type Served = ();

    fn asked(&self) -> String {
        "SMB 3.1.1".to_string()
    }

    fn options(&self) -> &[String] {
        &self.options
    }

    fn mount_options(&self) -> &[String] {
        &self.mount
    }

    fn client_needs(&self) -> Needs {
        Needs {
            file_system: Some("cifs"),
            ..Needs::as_root(
                &["mount.cifs", "mount", "umount", "ip", "tc"],
                KIND.packages,
            )
        }
    }

    fn server_needs(&self) -> Needs {
        Needs {
            daemons: &[SERVER],
            ..Needs::as_root(&["smbd", "testparm", "ip", "tc"], KIND.packages)
        }
    }

    /// Starts the server; how it understood the share.
    fn serve(
        &self,
        setup: &mut Setup<'_>,
        ends: &Ends,
        root: PathBuf,
        facts: &mut Vec<Fact>,
    ) -> Result<(), LayerError> {
        // Nothing in Samba's usual directories: they belong to a server of the machine's own.
        let own = Path::new(OWN).join(setup.name("smb"));
        let file = setup.scratch()?.join(setup.name("smb.conf"));
        setup.create_tree(&own)?;
        setup.create_text(&file, &self.configuration(&own, ends, &root))?;
        let host = setup.host();
        // Asked before the server is started: it says what is in force, and what is misspelt.
        let command = argv_at(
            ["testparm", "--suppress-prompt", "--section-name", SHARE],
            &file,
        );
        let found = host.must(&command)?;
        // testparm(1) warns of an unknown option and succeeds; the server would go on without it.
        if let Some(line) = found.stderr.lines().find(|line| line.contains("unknown")) {
            return Err(LayerError::refused(
                format!("Samba does not know an option: {line}"),
                "see: man smb.conf",
            ));
        }
        let mut command = argv(["smbd", "--daemon", "--log-basename"]);
        command.extend([own.into(), "--configfile".into(), file.into()]);
        setup.start(&[SERVER], &command)?;
        // It goes to the background before it can be reached.
        share::listening(host, "Samba", PORT)?;
        let lines = found.stdout.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| line.contains('=')).collect();
        facts.push(Fact::new("share in force", lines.join("; ")));
        Ok(())
    }

    fn mount(
        &self,
        setup: &mut Setup<'_>,
        ends: &Ends,
        (): (),
        facts: &mut Vec<Fact>,
    ) -> Result<PathBuf, LayerError> {
        let source = format!("//{}/{SHARE}", ends.server);
        // One version: the client would agree with the server on any (mount.cifs(8)).
        let mut options = vec!["guest".to_string(), "vers=3.1.1".to_string()];
        options.extend(self.mount.iter().cloned());
        let root = setup.mount("cifs", OsStr::new(&source), &options, Memory::No)?;
        // `guest` is shown as what it means.
        let (host, seen) = (setup.host(), &options[1..]);
        facts.extend(filesystem::mount_facts(host, &root, "cifs", seen, &[])?);
        Ok(root)
    }
}

impl Smb {
    /// smb.conf(5): the client is root, no other is let in, and everything the server keeps is in a
    /// directory of ours.
    fn configuration(&self, own: &Path, ends: &Ends, root: &Path) -> String {
        let Ends { client, server, .. } = ends;
        let own = own.display();
        // Bad User: a name that the server does not know, as the client's, becomes the guest.
        let mut text = format!(
            "[global]\nserver role = standalone server\nmap to guest = Bad User\nguest account = root\n\
             interfaces = {server}\nbind interfaces only = yes\nhosts allow = {client}\nhosts deny = ALL\n\
             smb ports = {PORT}\ndisable netbios = yes\nload printers = no\ndisable spoolss = yes\n\
             log level = 0\nlog file = {own}/log\nncalrpc dir = {own}\nprivate dir = {own}\n"
        );
        // Each of them would else be that of the machine's own server.
        for kept in ["pid", "lock", "state", "cache"] {
            text.push_str(&format!("{kept} directory = {own}\n"));
        }
        let root = root.display();
        text.push_str(&format!(
            "[{SHARE}]\npath = {root}\nread only = no\nguest ok = yes\n"
        ));
        for option in &self.options {
            text.push_str(&format!("{option}\n"));
        }
        text
    }
}
