//! A file system that is made on one device, mounted, and read back: what the plain ones share.

use super::{
    Gives, Layer, LayerError, RaisedLayer, Raising, Takes, block, filesystem, options,
    raising::Memory,
};
use crate::event::Fact;
use crate::host::{Host, Needs};
use crate::setting::{Refusal, Settings};
use std::path::Path;

/// What one of them takes.
pub(super) const TAKES: Takes = Takes::Devices { min: 1, max: 1 };

/// What is special about one of them.
pub(super) struct Plain {
    /// Its name: in a study, to the kernel and after `mkfs.`.
    pub(super) name: &'static str,
    /// Programs needed.
    pub(super) tools: &'static [&'static str],
    /// Words for mkfs besides those of the study, which are given: blocks that were laid out are
    /// not discarded.
    pub(super) keeping: fn(&[String]) -> &'static [&'static str],
    /// Words for mkfs that set the UUID.
    pub(super) uuid: fn(&str) -> [String; 2],
    /// How it was made, read back.
    pub(super) geometry: Geometry,
    /// Every option in force, defaults included, of a device by the kernel's name; empty: the
    /// driver does not say.
    pub(super) all_options: fn(&dyn Host, &str) -> Vec<String>,
}

/// What a machine tells of a file system with this root on this device.
type Geometry = fn(&dyn Host, &Path, &Path) -> Result<Vec<Fact>, LayerError>;

impl Plain {
    /// The layer a study asks for.
    ///
    /// # Errors
    /// Words that are not for a study to give.
    pub(super) fn parse(&'static self, settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
        Ok(Box::new(Asked {
            of: self,
            mkfs: options::mkfs(settings)?,
            mount: options::mount(settings)?,
        }))
    }
}

/// One of them as a study asks for it.
struct Asked {
    of: &'static Plain,
    mkfs: Vec<String>,
    mount: Vec<String>,
}

impl Layer for Asked {
    fn kind(&self) -> &'static str {
        self.of.name
    }

    fn describe_asked(&self) -> String {
        filesystem::asked(self.kind(), &self.mkfs, &self.mount)
    }

    fn takes(&self) -> Takes {
        TAKES
    }

    fn needs(&self) -> Needs {
        Needs {
            root: true,
            tools: self.of.tools,
            file_system: Some(self.kind()),
            ..Needs::default()
        }
    }

    fn raise(&self, raising: &mut Raising<'_>, below: Gives) -> Result<RaisedLayer, LayerError> {
        let (name, asked) = (self.kind(), &self.mount);
        let devices = filesystem::devices(below)?;
        let device = &devices[0].path;
        let mut command = vec![format!("mkfs.{name}")];
        command.extend(
            (self.of.keeping)(&self.mkfs)
                .iter()
                .map(ToString::to_string),
        );
        command.extend(self.mkfs.iter().cloned());
        let uuid = |uuid: &str| (self.of.uuid)(uuid).to_vec();
        filesystem::format(raising, &command, uuid, &devices)?;
        let root = raising.mount(name, device.as_os_str(), asked, Memory::No)?;
        let host = raising.host();
        let mut facts = (self.of.geometry)(host, &root, device)?;
        let all = (self.of.all_options)(host, &block::kernel_name(host, device));
        facts.extend(filesystem::mount_facts(host, &root, name, asked, &all)?);
        if !all.is_empty() {
            let name = "options of the driver, defaults included";
            facts.push(Fact::new(name, all.join(",")));
        }
        Ok(filesystem::raised(host, name, root, facts, &devices))
    }
}

/// Of a driver that does not list its options.
pub(super) fn untold(_host: &dyn Host, _device: &str) -> Vec<String> {
    Vec::new()
}
