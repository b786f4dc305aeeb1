//! A share over AFP, the protocol of Mac file servers: netatalk on a peer or on this machine,
//! mounted here by a client of our own.
//!
//! netatalk keeps a database that numbers every file and directory of a volume (CNID), and writes it
//! for each one made, renamed or deleted. Where it lies is what this layer varies: beside the files,
//! on a disk of its own, or in memory.

use super::{
    Below, Device, Gives, GivesKind, Layer, LayerError, LayerKind, Origin, RaisedLayer, Raising,
    Takes, ext, filesystem, lab_disks, line,
    raising::Memory,
    share::{self, Place},
};
use crate::event::{Fact, LayerFacts};
use crate::host::{Host, LabDisk, Needs, argv};
use crate::journal::Undo;
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where the server keeps its own: everybody may go through there.
const OWN: &str = "/run";

/// Who a guest is at the server; netatalk lets nobody be root.
const GUEST: &str = "nobody";

/// Name of the share.
const SHARE: &str = "work";

/// Where AFP is spoken.
const PORT: u16 = 548;

/// Where those who keep the database are asked, by the server alone.
const DATABASE_PORT: u16 = 4700;

/// This program in a guest of the lab.
const PROGRAM: &str = "/kit/stackrace";

/// What the kernel calls every file system in user space.
const FUSE: &str = "fuse";

/// AFP.
pub(super) const KIND: LayerKind = LayerKind {
    name: "afp",
    summary: "A directory served over AFP by netatalk and mounted here; in the lab.",
    settings: &[
        SettingDoc::optional(
            "cnid",
            Kind::Choice(&["volume", "disk", "tmpfs"]),
            "volume",
            "Where the database of file numbers lies: beside the files, on a disk of the lab of its own, in memory.",
        ),
        SettingDoc::optional(
            "cnid-size",
            Kind::Bytes,
            "256 MiB",
            "Size of that disk, or of that memory.",
        ),
        SettingDoc::optional(
            "cnid-rate",
            Kind::Bytes,
            "",
            "Most bytes per second of that disk, reads and writes together.",
        ),
        SettingDoc::optional(
            "cnid-requests",
            Kind::Count,
            "",
            "Most requests per second of that disk, reads and writes together.",
        ),
        SettingDoc::optional(
            "options",
            Kind::Texts,
            "",
            "Options of the volume as afp.conf takes them: \"ea = none\".",
        ),
        share::SERVER,
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "afp = { cnid = \"tmpfs\", server = \"same\" }",
    parse,
};

/// Where the database lies.
enum Database {
    Volume,
    Disk(LabDisk),
    Memory(u64),
}

struct Afp {
    database: Database,
    options: Vec<String>,
    place: Place,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let cnid = settings.text("cnid")?;
    let cnid = cnid.as_deref().unwrap_or("volume");
    for (name, of) in [
        ("cnid-size", ["disk", "tmpfs"].as_slice()),
        ("cnid-rate", &["disk"]),
        ("cnid-requests", &["disk"]),
    ] {
        if settings.given(name) && !of.contains(&cnid) {
            return Err(Refusal::at(
                settings.span_of(name),
                format!("{name} says nothing of a database with cnid = \"{cnid}\""),
                format!("leave it out, or write cnid = \"{}\"", of[0]),
            ));
        }
    }
    let bytes = settings.bytes("cnid-size")?.unwrap_or(256 << 20);
    let database = match cnid {
        "disk" => Database::Disk(lab_disks::own_disk(
            settings,
            ["cnid-size", "cnid-rate", "cnid-requests"],
            bytes,
        )?),
        "tmpfs" if bytes == 0 => {
            return Err(Refusal::at(
                settings.span_of("cnid-size"),
                "a tmpfs without a size may fill the memory",
                "write cnid-size = \"64 MiB\"",
            ));
        }
        "tmpfs" => Database::Memory(bytes),
        _ => Database::Volume,
    };
    Ok(Box::new(Afp {
        database,
        options: share::options(settings, &["path", "vol dbpath", "include"])?,
        place: Place::parse(settings)?,
    }))
}

impl Layer for Afp {
    fn kind(&self) -> &'static str {
        "afp"
    }

    fn describe_asked(&self) -> String {
        let database = match &self.database {
            Database::Volume => "on the volume".to_string(),
            Database::Disk(disk) => format!("on a disk of its own ({})", disk.described()),
            Database::Memory(_) => "on tmpfs".to_string(),
        };
        let mut text = format!("AFP 3.4, CNID database {database}{}", self.place.asked());
        if !self.options.is_empty() {
            text.push_str(&format!(", {}", self.options.join(", ")));
        }
        text
    }

    fn takes(&self) -> Takes {
        Takes::Directory
    }

    fn below(&self) -> Below {
        self.place.below()
    }

    fn needs(&self) -> Needs {
        Needs {
            root: true,
            tools: &[
                "netatalk",
                "ss",
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
            file_system: Some(FUSE),
            lab: true,
            ..Needs::default()
        }
    }

    fn lab_disks(&self) -> Vec<LabDisk> {
        match &self.database {
            Database::Disk(disk) => vec![disk.clone()],
            Database::Volume | Database::Memory(_) => Vec::new(),
        }
    }

    fn raise(&self, raising: &mut Raising<'_>, below: Gives) -> Result<RaisedLayer, LayerError> {
        let ready = self.place.ready(raising)?;
        let server = ready.addresses[1];
        let mut facts = ready.facts;
        let (file, server_facts) = self
            .place
            .serve(raising, below, |raising, root| self.serve(raising, &root))?;
        facts.extend(server_facts);
        let root = raising.mount_point()?;
        let at = format!("{server}:{PORT}");
        let mut command = argv([PROGRAM, "lab", "mount-afp", &at, SHARE]);
        command.push(root.clone().into());
        raising.mount_with(command, &root, Memory::No)?;
        let shown = filesystem::mount_facts(raising.host(), &root, FUSE, &[], &[])?;
        // The database is there since the volume was opened.
        facts.push(self.place.at_server(raising, |raising| {
            self.lies_where_asked(raising.host(), &file)
        })?);
        facts.extend(shown);
        Ok(RaisedLayer {
            gives: Gives::Mounted(root),
            facts: LayerFacts {
                layer: "afp".to_string(),
                facts,
            },
            devices: Vec::new(),
            disks: Vec::new(),
        })
    }
}

impl Afp {
    /// Starts the server; the file its database will be in, and what is known of both.
    fn serve(
        &self,
        raising: &mut Raising<'_>,
        root: &Path,
    ) -> Result<(PathBuf, Vec<Fact>), LayerError> {
        let own = Path::new(OWN).join(raising.name("afp"));
        let (share, database) = (own.join("share"), own.join("cnid"));
        let (files, beside) = (root.join("share"), root.join("cnid"));
        raising.create_tree(&own)?;
        let host = raising.host();
        for directory in [&share, &database, &files, &beside] {
            host.create_dir(directory)?;
        }
        host.must(&words(["chmod", "0711"], &own))?;
        host.must(&words(["chown", &format!("{GUEST}:")], &files))?;
        // A guest may not go where a run keeps its mounts.
        bind(raising, &files, &share)?;
        let mut facts = Vec::new();
        match &self.database {
            Database::Volume => bind(raising, &beside, &database)?,
            Database::Disk(disk) => facts.push(own_file_system(raising, disk, &database)?),
            Database::Memory(bytes) => {
                let mut command = argv(["mount", "-t", "tmpfs", "-o"]);
                command.extend([format!("size={bytes}").into(), "tmpfs".into()]);
                command.push(database.clone().into());
                raising.mount_with(command, &database, Memory::Yes)?;
            }
        }
        let file = own.join("afp.conf");
        raising.create_text(&file, &self.configuration(&own, &share, &database))?;
        // The part of the server that has let a guest in reads it again, with that guest's rights.
        raising.host().must(&words(["chmod", "0644"], &file))?;
        raising.will(Undo::EndDaemon("netatalk".to_string()))?;
        let host = raising.host();
        host.must(&words(["netatalk", "-F"], &file))?;
        share::listening(host, "netatalk", PORT)?;
        if !self.options.is_empty() {
            facts.push(Fact::new("options given", self.options.join("; ")));
        }
        Ok((database.join(SHARE).join(".AppleDB/cnid2.db"), facts))
    }

    /// afp.conf(5): a guest sees one volume; nothing is announced, searched or kept elsewhere.
    fn configuration(&self, own: &Path, share: &Path, database: &Path) -> String {
        let mut text = format!(
            "[Global]\nuam list = uams_guest.so\nguest account = {GUEST}\nafp port = {PORT}\n\
             cnid listen = 127.0.0.1:{DATABASE_PORT}\ncnid server = 127.0.0.1:{DATABASE_PORT}\n\
             zeroconf = no\nspotlight = no\nlog file = {}\nlog level = default:warn\n\
             vol dbpath = {}\n[{SHARE}]\npath = {}\ncnid scheme = dbd\n",
            own.join("log").display(),
            database.display(),
            share.display()
        );
        for option in &self.options {
            text.push_str(&format!("{option}\n"));
        }
        text
    }

    /// Looks where the database really is; an error where that is not what was asked.
    fn lies_where_asked(&self, host: &dyn Host, file: &Path) -> Result<Fact, LayerError> {
        host.must(&words(["ls", "-l"], file))?;
        let found = host.mount_of(file)?;
        let own = file.ancestors().nth(4).unwrap_or(file);
        let right = found.mount_point == own.join("cnid")
            && match &self.database {
                Database::Volume => found.source == host.mount_of(&own.join("share"))?.source,
                Database::Disk(disk) => found.source == host.lab_disk(disk)?,
                Database::Memory(_) => found.file_system == "tmpfs",
            };
        let text = format!(
            "{} on {}",
            found.file_system,
            found.source.to_string_lossy()
        );
        if !right {
            return Err(LayerError::refused(
                format!("the CNID database lies in {text}, which is not what was asked"),
                "",
            ));
        }
        Ok(Fact::new("CNID database in", text))
    }
}

fn words<const N: usize>(words: [&str; N], path: &Path) -> Vec<OsString> {
    let mut command = argv(words);
    command.push(path.into());
    command
}

/// Lets a directory be seen at another one.
fn bind(raising: &mut Raising<'_>, from: &Path, to: &Path) -> Result<(), LayerError> {
    let mut command = words(["mount", "--bind"], from);
    command.push(to.into());
    raising.mount_with(command, to, Memory::Yes)
}

/// Puts a file system on the disk of the database and mounts it.
fn own_file_system(
    raising: &mut Raising<'_>,
    disk: &LabDisk,
    point: &Path,
) -> Result<Fact, LayerError> {
    let host = raising.host();
    let path = host.lab_disk(disk)?;
    host.must(&argv([OsStr::new("blkdiscard"), path.as_os_str()]))?;
    let fact = lab_disks::read_back(host, &path, disk)?;
    let device = Device {
        path: path.clone(),
        origin: Origin::Lab(disk.serial.clone()),
    };
    let format = ["mkfs.ext4", "-q", "-E", ext::EXTENDED].map(String::from);
    filesystem::format(raising, &format, |_| Vec::new(), &[device])?;
    let mut command = words(["mount", "-t", "ext4"], &path);
    command.push(point.into());
    raising.mount_with(command, point, Memory::Yes)?;
    Ok(fact)
}
