//! Devices of the device mapper: encrypted (dm-crypt), checked (dm-integrity), with a cache for writes
//! (dm-writecache), with equal blocks stored once (dm-vdo). All are read back from the kernel's own table, and removed by their name.

mod imagined;
mod integrity;
mod luks;
#[cfg(any(test, feature = "testing"))]
mod testing;
mod vdo;
mod writecache;

pub(super) use integrity::KIND as INTEGRITY;
pub(super) use luks::KIND as LUKS;
pub(super) use vdo::KIND as VDO;
pub(super) use writecache::KIND as WRITECACHE;

use stackrace_base::event::Fact;
use stackrace_foundation::foundation::{
    Device, Gives, Layer, LayerError, LayerKind, Setup, StandingLayer, assembled, filesystem,
};
use stackrace_machine::host::{Driver, Host, HostError, Needs, Package, argv};
use stackrace_machine::journal::{Param, UndoKind, text, until_free};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The package of the mapper's own tool.
const DMSETUP: Package = Package::new("dmsetup", &["dmsetup"]);

/// The mapper itself.
const MAPPER: Driver = Driver {
    module: "dm_mod",
    shown_by: "/sys/class/misc/device-mapper",
    what: "mapped devices (dm)",
};

/// Removes the mapped device of a name that stackrace chose.
const REMOVE: UndoKind = UndoKind::new("mapped", "remove", &[Param::OurName], remove);

/// Removes a mapped device, unless it is in use; none of that name is fine.
fn remove(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let name = text(of, 0);
    // All devices, and not /dev/mapper: a link may be missing while the device stands.
    let listed = host.must(&argv(["dmsetup", "ls"]))?.stdout;
    // Lines are `NAME (254:0)`, or `No devices found`.
    let mut lines = listed.lines();
    match lines.any(|line| line.split_whitespace().next() == Some(name)) {
        true => until_free(host, &argv(["dmsetup", "remove", name])),
        false => Ok(()),
    }
}

/// The path at which a mapped device appears.
fn path_of(name: &str) -> PathBuf {
    Path::new("/dev/mapper").join(name)
}

/// The kernel's line about a device, without where it begins and how long it is, if it is of a target:
/// `crypt`, `integrity`, `writecache`.
///
/// # Errors
/// It is of another one, or there is no such device.
fn table(host: &dyn Host, name: &str, target: &str) -> Result<Vec<String>, LayerError> {
    let told = host.must(&argv(["dmsetup", "table", name]))?.stdout;
    words_of(&told, target).ok_or_else(|| {
        LayerError::refused(
            format!(
                "what dmsetup printed is no table of {target}: {}",
                told.trim()
            ),
            "",
        )
    })
}

fn words_of(told: &str, target: &str) -> Option<Vec<String>> {
    let mut words = told.lines().next()?.split_whitespace().skip(2);
    let is_it = words.next() == Some(target);
    is_it.then(|| words.map(String::from).collect())
}

/// A fact that was read back; empty where the kernel does not tell it.
fn found(facts: &[Fact], name: &str) -> String {
    Fact::value_of(facts, name).unwrap_or_default().to_owned()
}

/// Refuses what is read back as another thing than was asked for.
///
/// # Errors
/// The first that differs.
fn same(name: &str, each: &[(&str, String, String)]) -> Result<(), LayerError> {
    match each.iter().find(|(_, found, asked)| found != asked) {
        None => Ok(()),
        Some((what, found, asked)) => Err(LayerError::refused(
            format!("{name} has {what} {found} although {asked} was asked for"),
            "ask for what this kernel takes as it is",
        )),
    }
}

/// The part of a mapped device that the others do not have.
trait Maps: Send + Sync {
    /// The kind of layer.
    const KIND: &'static LayerKind;
    /// Its driver, beside the mapper itself.
    const DRIVERS: &'static [Driver];
    /// Programs needed.
    const TOOLS: &'static [&'static str];

    /// What is asked for in words, for the plan.
    fn asked(&self) -> String;
    /// Bytes that it writes below for so many that are written to it, once.
    fn written_below(&self, bytes: u64) -> u64 {
        bytes
    }
    /// As [`Layer::accepts`].
    ///
    /// # Errors
    /// One clause.
    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        filesystem::no_disks(Self::KIND.name, below)
    }
    /// Maps devices that may be written over under a name of ours; facts that are known before.
    ///
    /// # Errors
    /// The system refuses.
    fn map(
        &self,
        setup: &mut Setup<'_>,
        devices: &[Device],
        name: &str,
    ) -> Result<Vec<Fact>, LayerError>;
    /// Reads back what the kernel maps.
    ///
    /// # Errors
    /// It is not what was asked for.
    fn read_back(&self, host: &dyn Host, name: &str) -> Result<Vec<Fact>, LayerError>;
}

/// A mapped device: a layer.
struct Mapped<M>(M);

impl<M: Maps> Layer for Mapped<M> {
    fn of_kind(&self) -> &'static LayerKind {
        M::KIND
    }

    fn describe_asked(&self) -> String {
        self.0.asked()
    }

    fn written_below(&self, bytes: u64, _devices: usize) -> u64 {
        self.0.written_below(bytes)
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        self.0.accepts(below)
    }

    fn needs(&self) -> Needs {
        Needs {
            drivers: M::DRIVERS,
            ..Needs::as_root(M::TOOLS, M::KIND.packages)
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let devices = filesystem::to_format(host, below)?;
        let name = setup.short_name();
        // From here on the journal knows it by its name.
        let known = self.0.map(setup, &devices, &name)?;
        let path = path_of(&name);
        setup.await_device(&path)?;
        let mut facts = self.0.read_back(host, &name)?;
        facts.extend(known);
        Ok(assembled::standing(host, M::KIND.name, facts, path, name))
    }
}
