//! A share over AFP, the protocol of Mac file servers: netatalk on a peer or on this machine,
//! mounted here by a client of our own.
//!
//! netatalk keeps a database that numbers every file and directory of a volume (CNID), and writes it
//! for each one made, renamed or deleted. Where it lies is what this layer varies: beside the files,
//! on a disk of its own, or in memory.

#[cfg(any(test, feature = "testing"))]
mod testing;

use crate::stack::{ext, lab_disks};
use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_foundation::foundation::share::{self, Ends, Share, Shared};
use stackrace_foundation::foundation::words::{
    OptionValue::{Amount, OneOf},
    Words,
};
use stackrace_foundation::foundation::{
    GivesKind, Layer, LayerError, LayerKind, Memory, Setup, Takes, filesystem, line,
};
use stackrace_machine::host::imagined::{Tool, World, last, word};
use stackrace_machine::host::{
    Daemon, Host, LabDisk, Needs, Output, Package, ProgramPart, argv, argv_at,
};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Directory of the server's own files: all users may go through there.
const OWN: &str = "/run";

/// The user that a guest is at the server, the one without rights; netatalk lets no guest be root.
const GUEST: &str = "nobody";

/// Name of the share.
const SHARE: &str = "work";

/// Port of AFP.
const PORT: u16 = 548;

/// Port at which the keepers of the database are asked, by the server alone.
const DATABASE_PORT: u16 = 4700;

/// The server: who starts the others, who speaks AFP, who keeps the database.
const SERVERS: [Daemon; 3] = [
    Daemon {
        program: "netatalk",
        port: Some(PORT),
    },
    Daemon {
        program: "afpd",
        port: None,
    },
    Daemon {
        program: "cnid_metad",
        port: Some(DATABASE_PORT),
    },
];

/// The kernel's name of every file system in user space.
const FUSE: &str = "fuse";

/// The program that mounts it, in a machine of its own.
const CLIENT: ProgramPart = ProgramPart {
    name: "the AFP client",
    built: cfg!(feature = "afp"),
};

/// Places of the database of file numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CnidPlace {
    Volume,
    Disk,
    Tmpfs,
}

const CNID: ChoiceDoc<CnidPlace> = choice!(
    "cnid",
    [
        "volume" => CnidPlace::Volume,
        "disk" => CnidPlace::Disk,
        "tmpfs" => CnidPlace::Tmpfs,
    ],
    "volume",
    "Where the database of file numbers lies: beside the files, on a disk of the lab of its own, in memory.",
);

/// The layer `afp` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "afp",
    summary: "A directory served over AFP by netatalk and mounted here.",
    settings: &[
        CNID.doc,
        SettingDoc::bytes(
            "cnid-size",
            "256 MiB",
            "Size of that disk, or of that memory.",
        ),
        SettingDoc::text(
            "cnid-model",
            "",
            "A drive of `stackrace show drives`: that disk is then modelled, in virtual time.",
        ),
        SettingDoc::bytes(
            "cnid-rate",
            "",
            "Most bytes per second of that disk, reads and writes together.",
        ),
        SettingDoc::count(
            "cnid-requests",
            "",
            "Most requests per second of that disk, reads and writes together.",
        ),
        SettingDoc::texts(
            "options",
            "",
            "Options of the volume as afp.conf takes them: \"ea = none\".",
        ),
        share::SERVER.doc,
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "afp = { cnid = \"tmpfs\", server = \"same\" }",
    words: &[&OPTIONS],
    parse,
    // Debian 12 came without it; the daemon that numbers files comes with it.
    packages: &[Package {
        only_on: Some("debian-13"),
        ..Package::new("netatalk", &["netatalk"])
    }],
    imagined: &[
        Tool::new("netatalk", |world, _| {
            world.start("netatalk", &[PORT, DATABASE_PORT])
        }),
        Tool::new("stackrace", imagined_mount),
    ],
    shapes: &[
        &["loop = { size = \"1 GiB\" }", "xfs = {}", "afp = {}"],
        &[
            "tmpfs = { size = \"1 MiB\" }",
            "afp = { cnid = \"tmpfs\", server = \"same\", options = [\"ea = none\"] }",
        ],
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "ext4 = {}",
            "afp = { cnid = \"disk\", cnid-rate = \"4 MB\", delay = \"1 ms\" }",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

/// `stackrace lab mount-afp SERVER VOLUME DIRECTORY` as a plan imagines it.
fn imagined_mount(world: &mut World, words: &[OsString]) -> Output {
    let source = format!("afp://{}/{}", word(words, 3), word(words, 4));
    world.mount(source.as_ref(), Path::new(&last(words)), FUSE, "")
}

/// afp.conf(5), options of a volume. Not on the list: what runs commands (`preexec`, `root
/// postexec`), whom it lets in, links, and where things lie.
const OPTIONS: Words = Words {
    tool: "a volume of netatalk",
    manual: "afp.conf(5)",
    options: &[
        ("acls", OneOf(YES_NO)),
        ("appledouble", OneOf(&["ea", "v2"])),
        ("case sensitive", OneOf(YES_NO)),
        ("convert appledouble", OneOf(YES_NO)),
        ("delete veto files", OneOf(YES_NO)),
        ("ea", OneOf(&["sys", "samba", "ad", "none"])),
        ("invisible dots", OneOf(YES_NO)),
        ("legacy volume size", OneOf(YES_NO)),
        ("network ids", OneOf(YES_NO)),
        ("read only", OneOf(&["no", "false", "0"])),
        ("search db", OneOf(YES_NO)),
        ("stat vol", OneOf(YES_NO)),
        ("time machine", OneOf(YES_NO)),
        ("unix priv", OneOf(YES_NO)),
        ("vol size limit", Amount),
    ],
};

const YES_NO: &[&str] = &["yes", "no", "true", "false", "1", "0"];

/// Place of the database.
enum Database {
    Volume,
    Disk(LabDisk),
    Memory(u64),
}

/// Place where its server put the database.
struct Kept {
    /// The file it will be in.
    file: PathBuf,
    /// Its own disk, if it has one.
    disk: Option<PathBuf>,
}

struct Afp {
    database: Database,
    options: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let cnid = settings.choice(CNID)?;
    for (name, of) in [
        ("cnid-size", [CnidPlace::Disk, CnidPlace::Tmpfs].as_slice()),
        ("cnid-model", &[CnidPlace::Disk]),
        ("cnid-rate", &[CnidPlace::Disk]),
        ("cnid-requests", &[CnidPlace::Disk]),
    ] {
        if settings.given(name) && !of.contains(&cnid) {
            let cnid = CNID.word(cnid);
            return Err(Refusal::at(
                settings.span_of(name),
                format!("{name} has no meaning with cnid = \"{cnid}\""),
                format!("leave it out, or write cnid = \"{}\"", CNID.word(of[0])),
            ));
        }
    }
    let bytes = settings.bytes("cnid-size")?;
    let database = match cnid {
        CnidPlace::Volume => Database::Volume,
        CnidPlace::Disk => Database::Disk(lab_disks::own_disk(
            settings,
            ["cnid-model", "cnid-size", "cnid-rate", "cnid-requests"],
            bytes,
        )?),
        // The kernel takes 0 for "no limit".
        CnidPlace::Tmpfs if bytes == 0 => {
            return Err(Refusal::at(
                settings.span_of("cnid-size"),
                "a tmpfs without a size may fill the memory",
                "write cnid-size = \"64 MiB\"",
            ));
        }
        CnidPlace::Tmpfs => Database::Memory(bytes),
    };
    let options = share::options(settings, &OPTIONS)?;
    Shared::layer(Afp { database, options }, settings)
}

impl Share for Afp {
    const KIND: &'static LayerKind = &KIND;
    type Served = Kept;

    fn asked(&self) -> String {
        let database = match &self.database {
            Database::Volume => "on the volume".to_string(),
            Database::Disk(disk) => format!("on a disk of its own ({})", disk.described()),
            Database::Memory(bytes) => {
                format!("on tmpfs of {}", stackrace_base::unit::bytes(*bytes))
            }
        };
        format!("AFP 3.4, CNID database {database}")
    }

    fn options(&self) -> &[String] {
        &self.options
    }

    fn client_needs(&self) -> Needs {
        Needs {
            file_system: Some(FUSE),
            part: Some(CLIENT),
            ..Needs::as_root(&["umount", "ip", "tc"], &[])
        }
    }

    fn server_needs(&self) -> Needs {
        let own_disk = matches!(self.database, Database::Disk(_));
        Needs {
            daemons: &SERVERS,
            lab: own_disk,
            ..Needs::as_root(
                match own_disk {
                    false => &["netatalk", "chown", "chmod", "mount", "umount", "ip", "tc"],
                    true => &[
                        "netatalk",
                        "chown",
                        "chmod",
                        "mount",
                        "umount",
                        "blkdiscard",
                        "wipefs",
                        "mkfs.ext4",
                        "ip",
                        "tc",
                    ],
                },
                KIND.packages,
            )
        }
    }

    fn lab_disks(&self) -> Vec<LabDisk> {
        match &self.database {
            Database::Disk(disk) => vec![disk.clone()],
            Database::Volume | Database::Memory(_) => Vec::new(),
        }
    }

    fn serve(
        &self,
        setup: &mut Setup<'_>,
        ends: &Ends,
        root: PathBuf,
        facts: &mut Vec<Fact>,
    ) -> Result<Kept, LayerError> {
        let own = Path::new(OWN).join(setup.name("afp"));
        // Not in the run's directory, through which a guest may not go.
        setup.create_tree(&own)?;
        let own_disk = self.lay_out(setup, &own, &root)?;
        let (disk, fact) = own_disk.unzip();
        facts.extend(fact);
        let file = own.join("afp.conf");
        setup.create_text(&file, &self.configuration(&own, ends))?;
        // The part of the server that has let a guest in reads it again, with that guest's rights.
        let host = setup.host();
        host.must(&argv_at(["chmod", "0644"], &file))?;
        setup.start(&SERVERS, &argv_at(["netatalk", "-F"], &file))?;
        share::listening(host, "netatalk", PORT)?;
        if !self.options.is_empty() {
            facts.push(Fact::new("options given", self.options.join("; ")));
        }
        Ok(Kept {
            file: own.join("cnid").join(SHARE).join(".AppleDB/cnid2.db"),
            disk,
        })
    }

    fn mount(
        &self,
        setup: &mut Setup<'_>,
        ends: &Ends,
        served: Kept,
        facts: &mut Vec<Fact>,
    ) -> Result<PathBuf, LayerError> {
        let root = setup.mount_point()?;
        let at = SocketAddr::new(ends.server, PORT).to_string();
        // Linux has no client for AFP in its kernel: this program serves the mount through FUSE.
        let command = argv_at(["stackrace", "lab", "mount-afp", &at, SHARE], &root);
        setup.mount_with(command, &root, Memory::No)?;
        let shown = filesystem::mount_facts(setup.host(), &root, FUSE, &[], &[])?;
        // The database is there since the volume was opened.
        facts.push(
            ends.place
                .at_server(setup, |setup| self.lies_where_asked(setup.host(), &served))?,
        );
        facts.extend(shown);
        Ok(root)
    }
}

impl Afp {
    /// Puts what is served and the database where they belong; the latter's own disk and what is known
    /// of it.
    fn lay_out(
        &self,
        setup: &mut Setup<'_>,
        own: &Path,
        root: &Path,
    ) -> Result<Option<(PathBuf, Fact)>, LayerError> {
        let (share, database) = (own.join("share"), own.join("cnid"));
        let (files, beside) = (root.join("share"), root.join("cnid"));
        let host = setup.host();
        for directory in [&share, &database, &files, &beside] {
            host.create_dir(directory)?;
        }
        // A guest gets through to the share, and sees nothing else of the directory.
        host.must(&argv_at(["chmod", "0711"], own))?;
        host.must(&argv_at(["chown", &format!("{GUEST}:")], &files))?;
        // A guest may not go where a run keeps its mounts.
        bind(setup, &files, &share)?;
        match &self.database {
            Database::Volume => bind(setup, &beside, &database)?,
            Database::Disk(disk) => return own_file_system(setup, disk, &database).map(Some),
            Database::Memory(bytes) => {
                let mut command = argv(["mount", "-t", "tmpfs", "-o"]);
                command.extend([format!("size={bytes}").into(), "tmpfs".into()]);
                command.push(database.clone().into());
                setup.mount_with(command, &database, Memory::Yes)?;
            }
        }
        Ok(None)
    }

    /// afp.conf(5): a guest, who comes from the client, sees one volume; nothing is announced, searched
    /// or kept elsewhere.
    fn configuration(&self, own: &Path, ends: &Ends) -> String {
        let own = own.display();
        // Without a signature of ours netatalk would draw one and keep it in a file of the
        // machine's.
        let mut text = format!(
            "[Global]\nuam list = uams_guest.so\nguest account = {GUEST}\n\
             afp listen = {server}\nafp port = {PORT}\n\
             cnid listen = 127.0.0.1:{DATABASE_PORT}\ncnid server = 127.0.0.1:{DATABASE_PORT}\n\
             zeroconf = no\nspotlight = no\nsignature = stackrace\n\
             log file = {own}/log\nlog level = default:warn\nvol dbpath = {own}/cnid\n\
             [{SHARE}]\npath = {own}/share\ncnid scheme = dbd\nhosts allow = {client}\n",
            server = ends.server,
            client = ends.client,
        );
        for option in &self.options {
            text.push_str(&format!("{option}\n"));
        }
        text
    }

    /// Looks where the database really is; an error where that is not what was asked.
    fn lies_where_asked(&self, host: &dyn Host, kept: &Kept) -> Result<Fact, LayerError> {
        let file = kept.file.as_path();
        // An error where the file is missing: its mount would be answered for all the same.
        host.must(&argv_at(["ls", "-l"], file))?;
        let found = host.mount_of(file)?;
        // The file lies in OWN/cnid/SHARE/.AppleDB.
        let own = file.ancestors().nth(4).unwrap_or(file);
        let right = found.mount_point == own.join("cnid")
            && match &self.database {
                Database::Volume => found.source == host.mount_of(&own.join("share"))?.source,
                Database::Disk(_) => kept.disk.as_ref().is_some_and(|disk| found.source == *disk),
                Database::Memory(_) => found.file_system == "tmpfs",
            };
        let text = format!(
            "{} on {}",
            found.file_system,
            found.source.to_string_lossy()
        );
        if !right {
            return Err(LayerError::refused(
                format!("the CNID database lies in {text}, which is not what was asked for"),
                "",
            ));
        }
        Ok(Fact::new("CNID database in", text))
    }
}

/// Lets a directory be seen at another one.
fn bind(setup: &mut Setup<'_>, from: &Path, to: &Path) -> Result<(), LayerError> {
    let mut command = argv_at(["mount", "--bind"], from);
    command.push(to.into());
    // As if its content were lost: while the server runs it must not be unmounted to settle.
    setup.mount_with(command, to, Memory::Yes)
}

/// Puts a file system on the disk of the database and mounts it.
fn own_file_system(
    setup: &mut Setup<'_>,
    disk: &LabDisk,
    point: &Path,
) -> Result<(PathBuf, Fact), LayerError> {
    let (device, fact) = lab_disks::own_device(setup, disk)?;
    let path = device.path.clone();
    // On a small disk the tool would take blocks of 1 KiB, which are written one by one.
    let format = ["mkfs.ext4", "-q", "-b", "4096", "-E", ext::EXTENDED].map(String::from);
    filesystem::format(setup, &format, |_| Vec::new(), &[device])?;
    let mut command = argv_at(["mount", "-t", "ext4"], &path);
    command.push(point.into());
    setup.mount_with(command, point, Memory::Yes)?;
    Ok((path, fact))
}
