//! F2FS on one device.

use super::{
    Gives, GivesKind, Layer, LayerError, LayerKind, RaisedLayer, Raising, Takes, block, filesystem,
    options, raising::Memory,
};
use crate::event::{Fact, LayerFacts};
use crate::host::{Host, Needs};
use crate::setting::{Refusal, Settings};
use std::path::Path;

/// What the driver tells of a mounted file system.
const TOLD: [&str; 3] = ["features", "encoding", "current_reserved_blocks"];

/// F2FS.
pub(super) const KIND: LayerKind = LayerKind {
    name: "f2fs",
    summary: "F2FS, made for flash memory, on one device of at least 40 MiB.",
    settings: &[options::MKFS, options::MOUNT],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Directory,
    example: "f2fs = { mkfs = [\"-O\", \"extra_attr\"], mount = [\"noatime\"] }",
    parse,
};

struct F2fs {
    mkfs: Vec<String>,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    Ok(Box::new(F2fs {
        mkfs: options::mkfs(settings)?,
        mount: options::mount(settings)?,
    }))
}

impl Layer for F2fs {
    fn kind(&self) -> &'static str {
        "f2fs"
    }

    fn describe_asked(&self) -> String {
        filesystem::asked(self.kind(), &self.mkfs, &self.mount)
    }

    fn takes(&self) -> Takes {
        Takes::Devices { min: 1, max: 1 }
    }

    fn needs(&self) -> Needs {
        Needs {
            root: true,
            tools: &["mkfs.f2fs", "wipefs", "mount", "umount"],
            file_system: Some("f2fs"),
            ..Needs::default()
        }
    }

    fn raise(&self, raising: &mut Raising<'_>, below: Gives) -> Result<RaisedLayer, LayerError> {
        let devices = filesystem::devices(below)?;
        let device = devices[0].path.clone();
        // -t 0: blocks that were laid out are not discarded.
        let mut command = ["mkfs.f2fs", "-t", "0"].map(str::to_string).to_vec();
        command.extend(self.mkfs.iter().cloned());
        let uuid = |uuid: &str| vec!["-U".to_string(), uuid.to_string()];
        filesystem::format(raising, &command, uuid, &devices)?;
        let root = raising.mount("f2fs", device.as_os_str(), &self.mount, Memory::No)?;
        let host = raising.host();
        let name = block::kernel_name(host, &device);
        let mut facts = told(host, &name);
        facts.extend(filesystem::mount_facts(
            host,
            &root,
            "f2fs",
            &self.mount,
            &[],
        )?);
        Ok(RaisedLayer {
            gives: Gives::Mounted(root),
            facts: LayerFacts {
                layer: "f2fs".to_string(),
                facts,
            },
            devices: vec![name],
            disks: Vec::new(),
        })
    }
}

/// What the driver shows in `/sys/fs/f2fs`; what this kernel does not show is left out.
fn told(host: &dyn Host, device: &str) -> Vec<Fact> {
    let about = Path::new("/sys/fs/f2fs").join(device);
    let fact = |name: &&str| {
        let text = host.read_text(&about.join(name)).ok()?;
        Some(Fact::new(*name, text.trim()))
    };
    TOLD.iter().filter_map(fact).collect()
}
