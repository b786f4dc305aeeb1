//! A share over NFS: the kernel's server on a peer or on this machine, mounted here.

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
use std::ffi::OsString;
use std::path::Path;

/// Threads of the server: what the kernel's own scripts start.
const THREADS: &str = "8";

/// NFS.
pub(super) const KIND: LayerKind = LayerKind {
    name: "nfs",
    summary: "A directory served over NFS by the kernel's server and mounted here; in the lab.",
    settings: &[
        SettingDoc::optional(
            "version",
            Kind::Choice(&["3", "4"]),
            "4",
            "Version: 3, or 4 (4.2).",
        ),
        SettingDoc::optional(
            "export",
            Kind::Choice(&["sync", "async"]),
            "sync",
            "sync: the server answers when the data are on its disk; async: before.",
        ),
        share::SERVER,
        options::MOUNT,
        line::DELAY,
        line::RATE,
    ],
    takes: Takes::Directory,
    gives: GivesKind::Directory,
    example: "nfs = { version = \"4\", export = \"async\", delay = \"1 ms\" }",
    parse,
};

struct Nfs {
    version: &'static str,
    export: String,
    place: Place,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    Ok(Box::new(Nfs {
        version: match settings.text("version")?.as_deref() {
            Some("3") => "3",
            _ => "4.2",
        },
        export: settings
            .text("export")?
            .unwrap_or_else(|| "sync".to_string()),
        place: Place::parse(settings)?,
        mount: options::mount(settings)?,
    }))
}

impl Layer for Nfs {
    fn kind(&self) -> &'static str {
        "nfs"
    }

    fn describe_asked(&self) -> String {
        let share = format!(
            "NFS {}, {}{}",
            self.version,
            self.export,
            self.place.asked()
        );
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
                "exportfs",
                "rpcbind",
                "rpc.nfsd",
                "rpc.mountd",
                "mount.nfs",
                "mount",
                "umount",
                "modprobe",
                "ip",
                "tc",
            ],
            lab: true,
            ..Needs::default()
        }
    }

    fn raise(&self, raising: &mut Raising<'_>, below: Gives) -> Result<RaisedLayer, LayerError> {
        let ready = self.place.ready(raising)?;
        let [client, server] = ready.addresses.map(|address| address.to_string());
        let mut facts = ready.facts;
        let source = self.place.serve(raising, below, |raising, root| {
            facts.push(self.export(raising, &client, &root)?);
            // Version 4 sees one tree, whose root it is; version 3 names the directory.
            let seen = if self.is_3() { root } else { "/".into() };
            let mut source = OsString::from(format!("{server}:"));
            source.push(&seen);
            Ok(source)
        })?;
        let mut options = vec![format!("vers={}", self.version), "proto=tcp".to_string()];
        let kind = if self.is_3() {
            // Locks of version 3 need a daemon of their own; nobody else uses these files.
            options.push("nolock".to_string());
            "nfs"
        } else {
            "nfs4"
        };
        options.extend(self.mount.iter().cloned());
        let root = raising.mount(kind, &source, &options, Memory::No)?;
        let host = raising.host();
        facts.extend(filesystem::mount_facts(host, &root, kind, &options, &[])?);
        Ok(RaisedLayer {
            gives: Gives::Mounted(root),
            facts: LayerFacts {
                layer: "nfs".to_string(),
                facts,
            },
            devices: Vec::new(),
            disks: Vec::new(),
        })
    }
}

impl Nfs {
    fn is_3(&self) -> bool {
        self.version == "3"
    }

    /// Starts the server and lets it serve a directory to the client; what it says it exports.
    fn export(
        &self,
        raising: &mut Raising<'_>,
        client: &str,
        root: &Path,
    ) -> Result<Fact, LayerError> {
        let host = raising.host();
        host.must(&argv(["modprobe", "nfsd"]))?;
        let running = host.read_text(Path::new("/proc/fs/nfsd/threads"));
        if running.is_ok_and(|threads| !["", "0"].contains(&threads.trim())) {
            return Err(LayerError::refused(
                "an NFS server is running already, and a machine has one",
                "let such stacks stand one after the other: provision = \"each-round\"",
            ));
        }
        raising.will(Undo::EndNfs)?;
        host.must(&argv(["rpcbind", "-w"]))?;
        // After a start, clients of before may claim their locks: there are none.
        host.must(&argv([
            "rpc.nfsd",
            "--grace-time",
            "10",
            "--lease-time",
            "10",
            THREADS,
        ]))?;
        host.must(&argv(["rpc.mountd"]))?;
        let asked = format!("rw,{},no_root_squash,no_subtree_check,fsid=0", self.export);
        let mut served = OsString::from(format!("{client}:"));
        served.push(root);
        let mut command = argv(["exportfs", "-o", &asked]);
        command.push(served);
        host.must(&command)?;
        let listed = host.must(&argv(["exportfs", "-s"]))?.stdout;
        let in_force = in_force(&listed, root);
        match in_force {
            Some(options) if options.split(',').any(|option| option == self.export) => {
                Ok(Fact::new("export in force", options))
            }
            found => Err(LayerError::refused(
                format!(
                    "the server exports with {found:?} although {} was asked",
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
