//! A share over SMB: Samba on a peer or on this machine, mounted here by the kernel's client.

use super::{
    Below, Gives, GivesKind, Layer, LayerError, LayerKind, RaisedLayer, Raising, Takes, filesystem,
    line, options,
    raising::Memory,
    share::{self, Place},
};
use crate::event::{Fact, LayerFacts};
use crate::host::{Needs, argv};
use crate::journal::Undo;
use crate::setting::{Kind, Refusal, SettingDoc, Settings};
use std::ffi::OsStr;
use std::path::Path;

/// Where the server keeps its own, sockets among it: their paths are short by law (`sun_path`).
const OWN: &str = "/run";

/// Where SMB is spoken.
const PORT: u16 = 445;

/// Name of the share.
const SHARE: &str = "work";

/// SMB.
pub(super) const KIND: LayerKind = LayerKind {
    name: "smb",
    summary: "A directory served over SMB by Samba and mounted here; in the lab.",
    settings: &[
        SettingDoc::optional(
            "options",
            Kind::Texts,
            "",
            "Options of the share as smb.conf takes them: \"strict sync = no\".",
        ),
        share::SERVER,
        options::MOUNT,
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "smb = { options = [\"strict sync = no\"], server = \"same\" }",
    parse,
};

struct Smb {
    options: Vec<String>,
    place: Place,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    Ok(Box::new(Smb {
        options: share::options(settings, &["path", "include"])?,
        place: Place::parse(settings)?,
        mount: options::mount(settings)?,
    }))
}

impl Layer for Smb {
    fn kind(&self) -> &'static str {
        "smb"
    }

    fn describe_asked(&self) -> String {
        let mut share = format!("SMB 3.1.1{}", self.place.asked());
        if !self.options.is_empty() {
            share.push_str(&format!(", {}", self.options.join(", ")));
        }
        filesystem::asked(&share, &[], &self.mount)
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
                "smbd",
                "ss",
                "testparm",
                "mount.cifs",
                "mount",
                "umount",
                "ip",
                "tc",
            ],
            file_system: Some("cifs"),
            lab: true,
            ..Needs::default()
        }
    }

    fn raise(&self, raising: &mut Raising<'_>, below: Gives) -> Result<RaisedLayer, LayerError> {
        let ready = self.place.ready(raising)?;
        let server = ready.addresses[1];
        let mut facts = ready.facts;
        self.place.serve(raising, below, |raising, root| {
            facts.push(self.serve(raising, &root)?);
            Ok(())
        })?;
        let source = format!("//{server}/{SHARE}");
        let mut options = vec!["guest".to_string(), "vers=3.1.1".to_string()];
        options.extend(self.mount.iter().cloned());
        let root = raising.mount("cifs", OsStr::new(&source), &options, Memory::No)?;
        // `guest` is shown as what it means.
        let host = raising.host();
        let shown = filesystem::mount_facts(host, &root, "cifs", &options[1..], &[])?;
        facts.extend(shown);
        Ok(RaisedLayer {
            gives: Gives::Mounted(root),
            facts: LayerFacts {
                layer: "smb".to_string(),
                facts,
            },
            devices: Vec::new(),
            disks: Vec::new(),
        })
    }
}

impl Smb {
    /// smb.conf(5): everybody who comes is root, everything the server keeps is in a directory of
    /// ours.
    fn configuration(&self, own: &Path, root: &Path) -> String {
        let own = own.display();
        let mut text = String::from(
            "[global]\nserver role = standalone server\nmap to guest = Bad User\nguest account = root\n\
             smb ports = 445\ndisable netbios = yes\nload printers = no\ndisable spoolss = yes\n\
             log level = 0\n",
        );
        for kept in ["pid", "lock", "state", "cache", "ncalrpc"] {
            let word = if kept == "ncalrpc" {
                "dir"
            } else {
                "directory"
            };
            text.push_str(&format!("{kept} {word} = {own}\n"));
        }
        text.push_str(&format!(
            "private dir = {own}\nlog file = {own}/log\n[{SHARE}]\npath = {}\nread only = no\nguest ok = yes\n",
            root.display()
        ));
        for option in &self.options {
            text.push_str(&format!("{option}\n"));
        }
        text
    }

    /// Starts the server; how it understood the share.
    fn serve(&self, raising: &mut Raising<'_>, root: &Path) -> Result<Fact, LayerError> {
        let own = Path::new(OWN).join(raising.name("smb"));
        let file = raising.scratch()?.join(raising.name("smb.conf"));
        raising.create_tree(&own)?;
        raising.create_text(&file, &self.configuration(&own, root))?;
        let host = raising.host();
        let mut command = argv(["testparm", "--suppress-prompt", "--section-name", SHARE]);
        command.push(file.clone().into());
        let found = host.must(&command)?;
        if let Some(line) = found.stderr.lines().find(|line| line.contains("unknown")) {
            return Err(LayerError::refused(
                format!("Samba does not know an option: {line}"),
                "see: man smb.conf",
            ));
        }
        raising.will(Undo::EndDaemon("smbd".to_string()))?;
        let mut command = argv(["smbd", "--daemon", "--log-basename"]);
        command.extend([own.into(), "--configfile".into(), file.into()]);
        host.must(&command)?;
        share::listening(host, "Samba", PORT)?;
        let lines = found.stdout.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| line.contains('=')).collect();
        Ok(Fact::new("share in force", lines.join("; ")))
    }
}
