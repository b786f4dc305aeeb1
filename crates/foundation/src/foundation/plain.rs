//! A file system that is made on one device, mounted, and read back: what the plain ones share.

use crate::foundation::error::LayerError;
use crate::foundation::gives::{Gives, StandingLayer, Takes};
use crate::foundation::layer::{Layer, LayerKind};
use crate::foundation::setup::{Memory, Setup};
use crate::foundation::{block, filesystem, options, words::Words};
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, Settings};
use stackrace_machine::host::imagined::{Signature, Tool, World, said, text_after, word};
use stackrace_machine::host::{Host, Needs, Output, argv};
use std::ffi::OsString;
use std::path::Path;

/// The devices that one of them takes.
pub const TAKES: Takes = Takes::Devices { min: 1, max: 1 };

/// Properties that set one of them apart.
pub struct Plain {
    /// Its kind, whose name is that to the kernel and after `mkfs.`, too.
    pub kind: &'static LayerKind,
    /// Programs needed.
    pub tools: &'static [&'static str],
    /// Words for mkfs that a study may give.
    pub mkfs: &'static Words,
    /// Mount options that a study may give.
    pub mount: &'static Words,
    /// Words for mkfs besides those of the study, which are given: blocks that were laid out are
    /// not discarded.
    pub keeping: fn(&[String]) -> &'static [&'static str],
    /// Words for mkfs that set the UUID.
    pub uuid: fn(&str) -> [String; 2],
    /// The command that repairs it where it cannot be mounted, before the device; empty if nothing
    /// does.
    pub repair: &'static [&'static str],
    /// Reads back how it was made.
    pub geometry: Geometry,
    /// Every option in force, defaults included, of a device by the kernel's name; empty if the
    /// driver does not say.
    pub all_options: fn(&dyn Host, &str) -> Vec<String>,
}

/// Facts that a machine tells of a file system with this root on this device.
type Geometry = fn(&dyn Host, &Path, &Path) -> Result<Vec<Fact>, LayerError>;

impl Plain {
    /// The layer a study asks for.
    ///
    /// # Errors
    /// Words that are not for a study to give.
    pub fn parse(&'static self, settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
        Ok(Box::new(Asked {
            of: self,
            mkfs: options::mkfs(settings, self.mkfs)?,
            mount: options::mount(settings, self.mount)?,
        }))
    }
}

/// Needs of a file system with this name to the kernel.
fn needs(kind: &LayerKind, tools: &'static [&'static str]) -> Needs {
    Needs {
        file_system: Some(kind.name),
        ..Needs::as_root(tools, kind.packages)
    }
}

/// One of these file systems as a study asks for it.
struct Asked {
    of: &'static Plain,
    mkfs: Vec<String>,
    mount: Vec<String>,
}

impl Layer for Asked {
    fn of_kind(&self) -> &'static LayerKind {
        self.of.kind
    }

    fn describe_asked(&self) -> String {
        filesystem::asked(self.kind(), &self.mkfs, &self.mount)
    }

    fn needs(&self) -> Needs {
        needs(self.of.kind, self.of.tools)
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let (name, asked) = (self.kind(), &self.mount);
        let devices = filesystem::devices(below)?;
        let device = &devices[0].path;
        let mut command = vec![format!("mkfs.{name}")];
        command.extend(
            // Before the study's words: where both set the same, the later one counts.
            (self.of.keeping)(&self.mkfs)
                .iter()
                .map(ToString::to_string),
        );
        command.extend(self.mkfs.iter().cloned());
        let uuid = |uuid: &str| (self.of.uuid)(uuid).to_vec();
        filesystem::format(setup, &command, uuid, &devices)?;
        // Geometry is read once it is mounted: /sys shows what is mounted, and xfs_info asks for a
        // mount point.
        let root = setup.mount(name, device.as_os_str(), asked, Memory::No)?;
        let host = setup.host();
        let mut facts = (self.of.geometry)(host, &root, device)?;
        let all = (self.of.all_options)(host, &block::kernel_name(host, device));
        facts.extend(filesystem::mount_facts(host, &root, name, asked, &all)?);
        if !all.is_empty() {
            let name = "options of the driver, defaults included";
            facts.push(Fact::new(name, all.join(",")));
        }
        Ok(filesystem::standing(host, name, root, facts, &devices))
    }

    fn returns(&self) -> bool {
        true
    }

    fn bring_back(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        brought_back(setup, self.kind(), &self.mount, self.of.repair, below)
    }
}

/// Mounts a file system again after a power cut; `repair` is the command that repairs it where it
/// cannot be mounted, before the device, and is empty if nothing does.
///
/// # Errors
/// It can neither be mounted nor repaired.
pub fn brought_back(
    setup: &mut Setup<'_>,
    kind: &'static str,
    mount: &[String],
    repair: &[&str],
    below: Gives,
) -> Result<StandingLayer, LayerError> {
    let devices = filesystem::devices(below)?;
    let device = devices[0].path.as_os_str();
    let mut words = argv(repair.iter().map(ToString::to_string));
    // Without words there is no command, and so no device for it.
    words.extend((!repair.is_empty()).then(|| device.to_os_string()));
    let root = filesystem::mount_again(setup, kind, device, mount, &words)?;
    let host = setup.host();
    let facts = filesystem::mount_facts(host, &root, kind, &[], &[])?;
    Ok(filesystem::standing(host, kind, root, facts, &devices))
}

/// Properties of a file system that cannot bear a mark of ours, and so is not made on disks.
pub struct Unmarked {
    /// Its kind, whose name is that to the kernel, too.
    pub kind: &'static LayerKind,
    /// The thing it cannot do, as a sentence.
    pub why: &'static str,
    /// Programs needed.
    pub tools: &'static [&'static str],
    /// The command that tells how it was made, before the device.
    pub ask: &'static [&'static str],
    /// Names of the lines of its answer that matter to figures.
    pub lines: &'static [&'static str],
    /// The command that repairs it after a power cut, before the device.
    pub repair: &'static [&'static str],
}

/// One of these file systems as a study asks for it.
pub struct AskedUnmarked {
    /// Its properties.
    pub of: &'static Unmarked,
    /// The command that makes it, before the study's words and the device.
    pub command: Vec<String>,
    /// What is asked for, in words, without mkfs words and mount options.
    pub text: String,
    /// Words for mkfs.
    pub mkfs: Vec<String>,
    /// Mount options.
    pub mount: Vec<String>,
}

impl Layer for AskedUnmarked {
    fn of_kind(&self) -> &'static LayerKind {
        self.of.kind
    }

    fn describe_asked(&self) -> String {
        filesystem::asked(&self.text, &self.mkfs, &self.mount)
    }

    /// Refuses disks below: there it could not be told from a file system of others.
    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        match below.iter().any(|layer| !layer.disks().is_empty()) {
            true => Err(format!("{}: {ELSEWHERE}", self.of.why)),
            false => Ok(()),
        }
    }

    fn needs(&self) -> Needs {
        needs(self.of.kind, self.of.tools)
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let (kind, mount) = (self.kind(), &self.mount);
        if setup.is_outlived() {
            return Err(LayerError::refused(self.of.why, ELSEWHERE));
        }
        let devices = filesystem::devices(below)?;
        let device = devices[0].path.as_os_str();
        let command = [&self.command[..], &self.mkfs].concat();
        filesystem::format(setup, &command, |_| Vec::new(), &devices)?;
        let mut ask = argv(self.of.ask.iter().map(ToString::to_string));
        ask.push(device.to_os_string());
        let mut facts = told(&setup.host().must(&ask)?.stdout, self.of.lines);
        let root = setup.mount(kind, device, mount, Memory::No)?;
        let host = setup.host();
        facts.extend(filesystem::mount_facts(host, &root, kind, mount, &[])?);
        Ok(filesystem::standing(host, kind, root, facts, &devices))
    }

    fn returns(&self) -> bool {
        true
    }

    fn bring_back(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        brought_back(setup, self.kind(), &self.mount, self.of.repair, below)
    }
}

/// Places where a file system without a mark can be made.
const ELSEWHERE: &str = "put it on loop or on lab-disks";

/// The lines `NAME: VALUE` of these names.
pub fn told(text: &str, names: &[&str]) -> Vec<Fact> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let pairs = pairs.map(|(name, value)| (name.trim(), value.trim()));
    pairs
        .filter(|(name, _)| names.contains(name))
        .map(|(name, value)| Fact::new(name, value))
        .collect()
}

/// The mkfs of a file system as a plan imagines it.
pub const fn imagined_mkfs(name: &'static str) -> Tool {
    Tool::new(name, imagined_format)
}

/// Signs every device that is named.
fn imagined_format(world: &mut World, words: &[OsString]) -> Output {
    let options = words.iter().map(|word| word.to_string_lossy());
    // As `-m` of mkfs.xfs takes it.
    let among = options.filter_map(|word| word.strip_prefix("uuid=").map(str::to_string));
    let named = ["-U", "--uuid", "-L"].iter();
    let mark = named
        .filter_map(|option| text_after(words, option))
        .chain(among)
        .next();
    let signature = Signature {
        file_system: word(words, 0).trim_start_matches("mkfs.").to_string(),
        mark: mark.unwrap_or_default(),
        ..Signature::default()
    };
    world.sign(words, &signature);
    said("")
}

/// Options in force of a driver that does not list its options.
pub fn untold(_host: &dyn Host, _device: &str) -> Vec<String> {
    Vec::new()
}
